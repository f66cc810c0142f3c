# SPDX-License-Identifier: Apache-2.0
"""Packages and initramfs of a bench, whoever makes them: the same steps by dpkg or rpm, initramfs-tools or dracut."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.archives import compose, new_file
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError, ToolError
from storqual_core.kit.machine import Machine
from storqual_core.provision.boot import System
from storqual_core.provision.initramfs import Initramfs
from storqual_core.provision.kernel_package import look_at_package
from storqual_core.provision.package_services import packages_of
from storqual_core.tools import TOOLS, dpkg, rpm
from storqual_core.tools.capabilities import offers
from tests.support.replay import Call, Replay

RELEASE = "5.14.0-503.11.1.el9_5.x86_64"
OWNER = f"rpm -q --qf '{rpm.QUERY}' -f -- /lib/modules/{RELEASE}/vmlinuz"
NAME = f"rpm -q --qf '{rpm.QUERY}' -- kernel-core"
ROW = "kernel-core\t0\t5.14.0\t503.11.1.el9_5\tx86_64\t1\n"
FILES = f"/lib/modules/{RELEASE}/vmlinuz\n"


@pytest.fixture
def rpm_root(tmp_path: Path) -> Path:
    for path in (f"lib/modules/{RELEASE}/vmlinuz", "usr/bin/rpm", "usr/bin/dpkg-query", "boot/grub/grub.cfg"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    return tmp_path


def test_dpkg_and_rpm_offer_the_same() -> None:
    assert [name for name in TOOLS if "packages" in offers(TOOLS[name]())] == ["dpkg", "rpm"]


def test_the_owner_of_the_running_kernel_tells_whose_packages_they_are(rpm_root: Path) -> None:
    """Both programs are there: dpkg is installed on RPM benches, and rpm on Debian."""
    assert packages_of(Machine(str(rpm_root)), Replay([Call(OWNER, ROW)]), RELEASE) is rpm
    none = Call(OWNER, f"file /lib/modules/{RELEASE}/vmlinuz is not owned by any package\n", rc=1)
    owner = Call(
        f"dpkg-query -S -- /lib/modules/{RELEASE}/vmlinuz", f"linux-image-x: /lib/modules/{RELEASE}/vmlinuz\n"
    )
    assert packages_of(Machine(str(rpm_root)), Replay([none, owner]), RELEASE) is dpkg


def test_with_a_kernel_of_no_package_the_manager_that_is_there_is_taken(tmp_path: Path) -> None:
    assert packages_of(Machine(str(tmp_path)), Replay([]), RELEASE) is dpkg
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/rpm").write_text("")
    assert packages_of(Machine(str(tmp_path)), Replay([]), RELEASE) is rpm


def test_a_kernel_package_of_rpm_is_looked_at_with_its_release_from_its_files(rpm_root: Path) -> None:
    calls = [Call(OWNER, ROW), Call(NAME, ROW), Call("rpm -ql -- kernel-core-5.14.0-503.11.1.el9_5", FILES)]
    system = System(Replay(calls), boot=str(rpm_root / "boot"), release=RELEASE)
    found = look_at_package(system, "kernel-core", "5.14.0-503.11.1.el9_5")
    assert (found["missing"], found["kernel"], found["version"]) == (False, RELEASE, "5.14.0-503.11.1.el9_5")
    assert "rpm's own record" in found["settings"][0]["proof"]


def test_a_kernel_package_of_rpm_is_missing_beside_another_of_its_name(rpm_root: Path) -> None:
    """What dpkg cannot have side by side, rpm can: it is installed, and nothing has to go."""
    system = System(Replay([Call(OWNER, ROW), Call(NAME, ROW)]), boot=str(rpm_root / "boot"), release=RELEASE)
    assert look_at_package(system, "kernel-core", "5.14.0-570.1.1.el9_6")["missing"]


@pytest.mark.parametrize(
    ("program", "name", "line"),
    [
        ("usr/sbin/mkinitramfs", f"initrd.img-{RELEASE}", f"update-initramfs -u -k {RELEASE}"),
        ("usr/bin/dracut", f"initramfs-{RELEASE}.img", f"dracut --force /boot/initramfs-{RELEASE}.img {RELEASE}"),
        # Ubuntu with dracut keeps Debian's name
        ("usr/bin/dracut", f"initrd.img-{RELEASE}", f"dracut --force /boot/initrd.img-{RELEASE} {RELEASE}"),
    ],
)
def test_an_initramfs_is_made_by_its_own_maker_and_read_to_its_end(
    tmp_path: Path, program: str, name: str, line: str
) -> None:
    for path, content in ((program, b""), (f"boot/{name}", compose([new_file("etc/a.conf", b"x")]))):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    initramfs = Initramfs(Machine(str(tmp_path)), Replay([Call(line)]), RELEASE)
    assert initramfs.make() == (line, {"etc/a.conf": b"x"})
    (tmp_path / f"boot/{name}").write_bytes(b"\x1f\x8bcut")
    with pytest.raises(ToolError):
        Initramfs(Machine(str(tmp_path)), Replay([Call(line)]), RELEASE).make()


def test_a_bench_without_a_maker_of_initramfs_is_told(tmp_path: Path) -> None:
    def missing(argv: Sequence[str], **_: Any) -> Completed:
        raise MissingToolError(argv[0])

    with pytest.raises(MissingToolError, match="none of update-initramfs, dracut is installed"):
        Initramfs(Machine(str(tmp_path)), missing, RELEASE).make()
