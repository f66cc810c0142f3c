# SPDX-License-Identifier: Apache-2.0
"""What kind of bench this is, found by evidence: of every distribution, and of benches that are no usual ones."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual_core.facts.bench_kind import kind_words, provisioning_objections, read_kind, unknown_for_provisioning
from storqual_core.kit.command import Completed
from storqual_core.kit.machine import Machine
from storqual_core.tools.rpm import QUERY

EL9 = "5.14.0-427.20.1.el9_4.x86_64"
UEK = "5.15.0-300.1.1.el9uek.x86_64"
SUSE = "6.4.0-150600.23.7-default"
EFI = "/sys/firmware/efi/efivars"
INFO = f"{EFI}/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
SECURE = f"{EFI}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ROOT = "1 0 8:2 / / rw - ext4 /dev/sda2 rw\n"
BLSCFG = "insmod blscfg\nblscfg\n"


def no_tool(argv: Sequence[str], **_: Any) -> Completed:
    raise AssertionError(f"{argv} was run")


def owned_by(package: str) -> Callable[..., Completed]:
    """Rpm, which has one package for whatever file is asked about."""
    name, version, release = package.rsplit("-", 2)

    def run(argv: Sequence[str], **_: Any) -> Completed:
        assert list(argv[:5]) == ["rpm", "-q", "--qf", QUERY, "-f"]
        return Completed(tuple(argv), 0, f"{name}\t0\t{version}\t{release}\tx86_64\t1\n", "", 0.1)

    return run


def bench(root: Path, files: Mapping[str, str | bytes], release: str) -> Machine:
    """A machine of these files; a folder ends with a slash."""
    for path, text in {"/proc/sys/kernel/osrelease": f"{release}\n", **files}.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            place.mkdir(exist_ok=True)
        elif isinstance(text, bytes):
            place.write_bytes(text)
        else:
            place.write_text(text)
    return Machine(str(root))


def values(kind: Mapping[str, Mapping[str, str]], *names: str) -> list[str]:
    return [kind[name]["value"] for name in names]


NAMES = ("packages", "front_end", "loader", "loader_folder", "loader_program", "loader_writes", "initramfs")


def test_a_debian_bench_is_known_without_a_command(tmp_path: Path) -> None:
    files = {
        "/boot/vmlinuz-6.1.0-47-amd64": "",
        "/var/lib/dpkg/info/linux-image-6.1.0-47-amd64.list": "/.\n/boot/vmlinuz-6.1.0-47-amd64\n",
        "/usr/bin/apt-get": "",
        "/usr/bin/grub-editenv": "",
        "/usr/sbin/mkinitramfs": "",
        "/boot/grub/grub.cfg": "menuentry 'a' {\n}\n",
        "/boot/grub/grubenv": "",
        "/proc/self/mountinfo": ROOT,
        "/lib/depmod.d/ubuntu.conf": "search updates ubuntu built-in\n",
    }
    kind = read_kind(bench(tmp_path, files, "6.1.0-47-amd64"), no_tool)
    assert values(kind, *NAMES) == ["dpkg", "apt-get", "grub", "/boot/grub", "grub-editenv", "yes", "initramfs-tools"]
    assert values(kind, "module_order", "secure_boot", "immutable") == ["updates ubuntu built-in", "off", "no"]
    assert unknown_for_provisioning(kind) == []
    assert list(provisioning_objections(kind, ["the kernel of the drop"])) == []
    assert "module order updates ubuntu built-in" in kind_words(kind)


def test_a_bench_with_entries_of_its_own_is_known_by_its_loader_and_its_packages(tmp_path: Path) -> None:
    """Rocky with Oracle's kernel: no name of a distribution is asked."""
    files = {
        f"/lib/modules/{UEK}/vmlinuz": "",
        "/usr/bin/rpm": "",
        "/usr/bin/dnf": "",
        "/usr/bin/dracut": "",
        "/usr/bin/grub2-editenv": "",
        "/boot/grub2/grub.cfg": BLSCFG,
        "/boot/grub2/grubenv": "",
        "/boot/loader/entries/": "",
        "/proc/self/mountinfo": ROOT + "2 1 8:1 / /boot rw - xfs /dev/sda1 rw\n",
        "/usr/lib/depmod.d/dist.conf": "# EL\nsearch updates extra built-in weak-updates\n",
        "/etc/depmod.d/mpt3sas.conf": "override mpt3sas * weak-updates/mpt3sas\n",
        "/etc/os-release": "ID=rocky\n",
        "/sys/fs/selinux/enforce": "1",
        "/etc/selinux/config": "# SELINUX= can be\nSELINUX=disabled\nSELINUXTYPE=targeted\n",
        "/proc/sys/crypto/fips_enabled": "1\n",
        "/sys/fs/cgroup/system.slice/tuned.service/": "",
        "/etc/tuned/active_profile": "throughput-performance\n",
        "/sys/kernel/kexec_crash_loaded": "1\n",
        "/etc/kdump.conf": "",
        SECURE: b"\x06\0\0\0\x01",
        "/sys/kernel/security/lockdown": "none [integrity] confidentiality\n",
        "/sys/module/module/parameters/sig_enforce": "Y\n",
    }
    kind = read_kind(bench(tmp_path, files, UEK), owned_by("kernel-uek-core-5.15.0-300.1.1.el9uek"))
    assert values(kind, *NAMES) == ["rpm", "dnf", "grub-blscfg", "/boot/grub2", "grub2-editenv", "yes", "dracut"]
    assert "kernel-uek-core" in kind["packages"]["evidence"]
    assert values(kind, "module_order", "module_overrides", "loader_entries") == [
        "updates extra built-in weak-updates",
        "mpt3sas * weak-updates/mpt3sas",
        "/boot/loader/entries",
    ]
    assert values(kind, "secure_boot", "lockdown", "signed_modules_only", "selinux", "fips", "tuned", "kdump") == [
        *("on", "integrity", "yes", "enforcing", "on", "throughput-performance", "loaded")
    ]
    assert "says disabled for the next boot" in kind["selinux"]["evidence"]


@pytest.mark.parametrize(
    ("mount", "device", "writes", "why"),
    [
        ("xfs /dev/sda1", "", "yes", "is on xfs at /boot"),
        ("ext4 /dev/mapper/vg-boot", "dm", "no", "LVM or device mapper"),
        ("ext4 /dev/md0", "md", "no", "an md array"),
        ("btrfs /dev/sda1", "", "no", "into which GRUB does not write"),
        ("zfs boot", "", "no", "into which GRUB does not write"),
    ],
)
def test_a_loader_that_cannot_forget_a_trial_is_told_before_anything_is_installed(
    tmp_path: Path, mount: str, device: str, writes: str, why: str
) -> None:
    files = {
        "/boot/grub2/grub.cfg": BLSCFG,
        "/boot/grub2/grubenv": "",
        "/proc/self/mountinfo": f"{ROOT}2 1 9:1 / /boot rw - {mount} rw\n",
        **({f"/sys/dev/block/9:1/{device}/": ""} if device else {}),
    }
    kind = read_kind(bench(tmp_path, files, EL9), no_tool)
    assert kind["loader_writes"]["value"] == writes
    assert why in kind["loader_writes"]["evidence"]
    told = list(provisioning_objections(kind, ["the kernel of the drop"]))
    assert len(told) == (writes == "no")
    assert all(why in sentence and "could not forget it" in sentence for sentence in told)


def test_an_environment_behind_a_link_is_looked_at_where_it_lies(tmp_path: Path) -> None:
    """EL8 with UEFI: /boot/grub2/grubenv leads to the EFI system partition."""
    files = {
        "/boot/grub2/grub.cfg": BLSCFG,
        "/boot/efi/EFI/redhat/grubenv": "",
        "/proc/self/mountinfo": f"{ROOT}2 1 8:1 / /boot/efi rw - vfat /dev/sda1 rw\n",
    }
    machine = bench(tmp_path, files, EL9)
    (tmp_path / "boot/grub2/grubenv").symlink_to("../efi/EFI/redhat/grubenv")
    kind = read_kind(machine, no_tool)
    assert values(kind, "loader_environment", "loader_writes") == ["/boot/efi/EFI/redhat/grubenv", "yes"]
    assert "is on vfat at /boot/efi" in kind["loader_writes"]["evidence"]


@pytest.mark.parametrize(
    ("told", "loader"), [("systemd-boot 252.39", "systemd-boot"), ("GRUB2 BLS 2.12", "grub2-bls")]
)
def test_a_loader_of_efi_variables_is_known_by_what_it_says_of_itself(tmp_path: Path, told: str, loader: str) -> None:
    files = {
        INFO: b"\x06\0\0\0" + told.encode("utf-16-le") + b"\0\0",
        "/boot/grub2/grub.cfg": "",
        "/boot/efi/loader/entries/": "",
        "/usr/bin/bootctl": "",
        "/proc/self/mountinfo": f"{ROOT}3 1 0:30 / {EFI} ro - efivarfs efivarfs ro\n",
    }
    kind = read_kind(bench(tmp_path, files, SUSE), no_tool)
    assert values(kind, "loader", "loader_folder", "loader_program", "loader_writes") == [
        loader,
        "/boot/efi",
        "bootctl",
        "no",
    ]


def test_upstreams_reader_of_entries_is_told_from_red_hats(tmp_path: Path) -> None:
    files = {"/boot/grub/grub.cfg": "insmod blsuki\nblscfg --path /boot/loader/entries\n"}
    assert values(read_kind(bench(tmp_path, files, EL9), no_tool), "loader") == ["grub-blsuki"]


@pytest.mark.parametrize(
    ("files", "maker"),
    [
        ({"/usr/bin/dracut": ""}, "dracut"),
        ({"/usr/bin/dracut": "", "/usr/sbin/mkinitramfs": "", "/etc/kernel/postinst.d/dracut": ""}, "dracut"),
        ({"/usr/bin/dracut": "", "/usr/sbin/mkinitramfs": ""}, ""),
        ({}, ""),
    ],
)
def test_the_maker_of_the_initramfs_is_the_one_that_a_kernel_calls(
    tmp_path: Path, files: dict[str, str], maker: str
) -> None:
    """Ubuntu has dracut from 25.10 on, and may have both."""
    kind = read_kind(bench(tmp_path, files, EL9), no_tool)
    assert kind["initramfs"]["value"] == maker


@pytest.mark.parametrize(
    ("files", "keeper"),
    [
        ({"/run/ostree-booted": ""}, "ostree"),
        ({"/run/ostree-booted": "", "/usr/bin/bootc": ""}, "bootc"),
        (
            {
                "/usr/sbin/transactional-update": "",
                "/proc/self/mountinfo": "1 0 0:20 / / ro,relatime - btrfs /dev/sda2 ro\n",
            },
            "transactional-update",
        ),
        ({"/usr/sbin/transactional-update": "", "/proc/self/mountinfo": ROOT}, "no"),
    ],
)
def test_a_system_of_images_takes_no_packages(tmp_path: Path, files: dict[str, str], keeper: str) -> None:
    kind = read_kind(bench(tmp_path, files, EL9), no_tool)
    assert kind["immutable"]["value"] == keeper
    told = list(provisioning_objections(kind, ["the kernel of the drop"]))
    assert [keeper in sentence and "as images" in sentence for sentence in told] == [True] * (keeper != "no")
    # what needs no provisioning still works
    assert list(provisioning_objections(kind, [])) == []


def test_what_is_not_known_names_what_was_looked_at(tmp_path: Path) -> None:
    kind = read_kind(bench(tmp_path, {}, EL9), no_tool)
    told = unknown_for_provisioning(kind)
    assert [sentence.partition(":")[0] for sentence in told] == ["packages", "loader", "loader writes", "initramfs"]
    assert all("looked at" in sentence for sentence in told)
    assert f"/boot/vmlinuz-{EL9}" in told[0]
    assert "/boot/grub2/grub.cfg" in told[1]


def test_a_file_of_depmod_hides_its_namesake_further_back_and_a_later_one_adds(tmp_path: Path) -> None:
    files = {
        "/lib/depmod.d/dist.conf": "search updates extra built-in\n",
        "/etc/depmod.d/dist.conf": "search updates built-in extra\n",
        "/etc/depmod.d/zz.conf": "search weak-updates\n",
        "/etc/depmod.d/README": "search nothing\n",
    }
    kind = read_kind(bench(tmp_path, files, EL9), no_tool)
    assert kind["module_order"]["value"] == "updates built-in extra weak-updates"
    assert read_kind(bench(tmp_path / "none", {}, EL9), no_tool)["module_order"]["value"] == "updates built-in"
