# SPDX-License-Identifier: Apache-2.0
"""rpm: packages and their kernels, what verifies, who signed, installing through a front end."""

import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import BadInputError, MissingToolError, ToolError
from storqual_core.tools import rpm
from tests.support.cpio_archive import PACKERS, archive
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

QUERY = f"rpm -q --qf '{rpm.QUERY}'"
EL9 = "5.14.0-427.20.1.el9_4.x86_64"


def row(name: str, version: str, release: str, architecture: str = "x86_64") -> str:
    return f"{name}\t0\t{version}\t{release}\t{architecture}\t1716000000\n"


@pytest.mark.parametrize(
    ("name", "labels", "missing"),
    [
        (
            "query.txt",
            [
                f"kernel-core-{EL9}",
                "kernel-core-5.14.0-503.11.1.el9_5.x86_64",
                "bpftool-7.3.0-427.20.1.el9_4.x86_64",
                "gpg-pubkey-abcd1234-5f000000",
            ],
            ("multiversion(kernel)",),
        ),
        (
            "names.txt",
            [
                "kernel-uek-core-5.15.0-300.1.1.el9uek.x86_64",
                "grub2-tools-2.06-80.el9.x86_64",
                "kernel-default-6.4.0-150600.23.7.3.x86_64",
            ],
            ("kernel",),
        ),
        ("last.txt", [f"kernel-{EL9}"], ()),
        ("repoquery.txt", ["perf-5.14.0-162.1.1.el9_1.x86_64"], ()),
        ("owner.txt", [f"kernel-core-{EL9}"], ("/boot/vmlinuz-own",)),
    ],
)
def test_packages_are_read_as_rpm_prints_them(name: str, labels: list[str], missing: tuple[str, ...]) -> None:
    found = rpm.parse_packages(fixture_text("rpm", name))
    assert ([package.label for package in found.packages], found.missing) == (labels, missing)


@pytest.mark.parametrize(
    "line", ["kernel-modules-extra", "some-words-here", "a.b-c-d", "sda-0-x", "x-1", f"/boot/vmlinuz-{EL9}", "gpg"]
)
def test_words_with_dashes_are_no_package(line: str) -> None:
    with pytest.raises(ToolError, match="line 2 is not a package"):
        rpm.parse_packages(f"kernel-{EL9}\n{line}\n")


@pytest.mark.parametrize(
    ("files", "release"),
    [
        # EL7 to EL10, real-time, 64 KiB pages, debug, UEK, SUSE, Fedora, 32-bit Arm
        ("/boot/vmlinuz-3.10.0-1127.el7.x86_64 /lib/modules/3.10.0-1127.el7.x86_64/kernel", "3.10.0-1127.el7.x86_64"),
        ("/lib/modules/4.18.0-74.el8.x86_64/vmlinuz", "4.18.0-74.el8.x86_64"),
        (f"/boot/vmlinuz-{EL9} /lib/modules/{EL9}/vmlinuz /boot/.vmlinuz-{EL9}.hmac", EL9),
        (f"/lib/modules/{EL9}+rt/vmlinuz", f"{EL9}+rt"),
        ("/usr/lib/modules/6.12.0-55.el10.aarch64+64k/vmlinuz", "6.12.0-55.el10.aarch64+64k"),
        (f"/lib/modules/{EL9}+debug/vmlinuz /lib/modules/{EL9}+debug/System.map", f"{EL9}+debug"),
        ("/lib/modules/5.15.0-207.156.6.el9uek.x86_64/vmlinuz", "5.15.0-207.156.6.el9uek.x86_64"),
        (
            "/boot/vmlinux-5.3.18-24.67-default.gz /boot/vmlinuz-5.3.18-24.67-default /boot/sysctl.conf-5.3.18",
            "5.3.18-24.67-default",
        ),
        ("/usr/lib/modules/5.13.0-1-default/vmlinuz", "5.13.0-1-default"),
        ("/lib/modules/6.16.11-100.fc41.x86_64/vmlinuz", "6.16.11-100.fc41.x86_64"),
        ("/usr/lib/modules/6.4.0-150600.23.7-default/Image", "6.4.0-150600.23.7-default"),
        # modules, tools, debug information and sources are no kernels
        (f"/lib/modules/{EL9}/modules.builtin /lib/modules/{EL9}/kernel/fs/xfs/xfs.ko.xz", None),
        ("/usr/sbin/bpftool /usr/share/doc/bpftool", None),
        (f"/usr/lib/debug/lib/modules/{EL9}/vmlinux", None),
        (f"/usr/src/kernels/{EL9}/Makefile", None),
        (f"/boot/System.map-{EL9} /boot/config-{EL9} /boot/symvers-{EL9}.gz", None),
        (
            "/lib/modules/../vmlinuz /lib/modules/*/vmlinuz /boot/vmlinuz-.. /boot/vmlinuz-$(id) /boot/vmlinuz--x",
            None,
        ),
    ],
)
def test_a_kernel_is_known_by_the_files_of_its_package(files: str, release: str | None) -> None:
    assert rpm.kernel_releases(files.split()) == ((release,) if release else ())


def test_kernels_are_told_with_their_releases_and_meta_packages_are_none() -> None:
    listed = row("kernel", "5.14.0", "427.20.1.el9_4") + row("kernel-core", "5.14.0", "427.20.1.el9_4")
    suse = row("kernel-default", "6.4.0", "150600.23.7.3")
    calls = [
        Call(f"{QUERY} --whatprovides 'installonlypkg(kernel)' 'multiversion(kernel)'", f"{listed}{listed}{suse}"),
        Call(f"rpm -ql -- kernel-{EL9}", "(contains no files)\n"),
        Call(f"rpm -ql -- kernel-core-{EL9}", fixture_text("rpm", "files.txt")),
        Call(
            "rpm -ql -- kernel-default-6.4.0-150600.23.7.3.x86_64",
            "/usr/lib/modules/6.4.0-150600.23.7-default/vmlinuz",
        ),
    ]
    found = rpm.kernels(Replay(calls))
    assert [(kernel.package, kernel.release) for kernel in found] == [
        ("kernel-core", EL9),
        ("kernel-default", "6.4.0-150600.23.7-default"),
    ]


@pytest.mark.parametrize("wants", [f"kernel-core-uname-r = {EL9}", "kernel-core = 5.14.0-427.20.1.el9_4"])
def test_a_meta_package_is_followed_to_the_package_with_the_image(wants: str) -> None:
    """rpm 4.18 finds nothing by a name with a version (`no package provides kernel-core = ...`)."""
    other = EL9.replace("427", "503")
    cores = [row("kernel-core", "5.14.0", f"{number}.20.1.el9_4") for number in (427, 503)]
    calls = [
        Call("rpm -ql -- kernel", "(contains no files)\n"),
        Call("rpm -q --requires -- kernel", f"{wants}\nkernel-modules-core-uname-r = {EL9}\nrpmlib(X) <= 4\n"),
        Call(f"{QUERY} --whatprovides {wants.partition(' ')[0]}", "".join(cores)),
        Call(f"rpm -ql -- kernel-core-{EL9}", fixture_text("rpm", "files.txt")),
        Call(f"rpm -ql -- kernel-core-{other}", fixture_text("rpm", "files.txt").replace(EL9, other)),
        Call(
            f"{QUERY} --whatprovides kernel-modules-core-uname-r",
            row("kernel-modules-core", "5.14.0", "427.20.1.el9_4"),
        ),
        Call(f"rpm -ql -- kernel-modules-core-{EL9}", f"/lib/modules/{EL9}/modules.order\n"),
    ]
    assert rpm.kernel_of(Replay(calls), "kernel") == EL9
    with pytest.raises(ToolError, match="should carry one kernel, it carries none"):
        rpm.kernel_of(
            Replay([Call("rpm -ql -- bpftool", "/usr/sbin/bpftool\n"), Call("rpm -q --requires -- bpftool")]),
            "bpftool",
        )


def test_a_package_is_there_in_the_version_that_is_asked_for() -> None:
    both = row("kernel-core", "5.14.0", "427.20.1.el9_4") + row("kernel-core", "5.14.0", "503.11.1.el9_5")
    kernels = Call(f"{QUERY} --whatprovides 'installonlypkg(kernel)' 'multiversion(kernel)'", both)
    found = rpm.installed(
        Replay([Call(f"{QUERY} -- kernel-core", both), kernels]), "kernel-core", "5.14.0-503.11.1.el9_5"
    )
    assert found is not None
    assert (found.version, found.complete) == ("5.14.0-503.11.1.el9_5", True)
    assert rpm.installed(Replay([Call(f"{QUERY} -- kernel-core", both)]), "kernel-core", "6.0-1") is None
    absent = Call(f"{QUERY} -- kernel", "package kernel is not installed\n", rc=1)
    assert rpm.installed(Replay([absent]), "kernel") is None


def test_a_package_that_a_cut_transaction_left_twice_is_not_complete() -> None:
    twice = row("kmod-example", "1.0", "1.el9") + row("kmod-example", "1.1", "1.el9")
    none = "no package provides installonlypkg(kernel)\nno package provides multiversion(kernel)\n"
    kernels = Call(f"{QUERY} --whatprovides 'installonlypkg(kernel)' 'multiversion(kernel)'", none, rc=2)
    found = rpm.installed(Replay([Call(f"{QUERY} -- kmod-example", twice), kernels]), "kmod-example", "1.1-1.el9")
    assert found is not None
    assert not found.complete


def test_files_are_paths_and_nothing_else() -> None:
    assert rpm.parse_files(fixture_text("rpm", "no_files.txt")) == ()
    with pytest.raises(ToolError, match="line 1 is not the path of a file: 'package x is not installed'"):
        rpm.parse_files("package x is not installed\n")


def test_what_deviates_and_what_is_missing_is_told_apart() -> None:
    files, needs = rpm.parse_verify(fixture_text("rpm", "verify.txt"))
    assert [(file.what, file.kind, file.missing, file.note) for file in files] == [
        (".......T.", "", False, ""),
        ("S.5....T.", "c", False, ""),
        ("", "g", True, ""),
        ("", "", True, "Permission denied"),
        ("..?......", "", False, "Permission denied"),
    ]
    assert needs == ("kernel-core = 5.14.0 is needed by (installed) kernel-modules",)
    assert rpm.parse_verify("") == ((), ())
    missing = "package kernel-core is not installed"
    assert rpm.parse_verify(f"{missing}\n") == ((), (missing,))


def test_a_package_that_is_not_signed_is_not_taken_for_signed() -> None:
    found = rpm.parse_signatures(fixture_text("rpm", "checksig.txt"))
    assert [(each.file, each.good, each.signed, each.keys) for each in found] == [
        ("/tmp/a b.rpm", True, True, ()),
        ("/tmp/b.rpm", False, True, ()),
        ("/tmp/c.rpm", True, False, ()),
        ("/tmp/d.rpm", False, True, ("db42a60e",)),
    ]
    found = rpm.parse_signatures(fixture_text("rpm", "checksig_verbose.txt"))
    assert [(each.good, each.signed, each.keys) for each in found] == [
        (True, True, ("8483c65d",)),
        (False, True, ("3228467c",)),
    ]


def test_scripts_are_told_with_what_runs_them() -> None:
    scripts = rpm.parse_scripts(fixture_text("rpm", "scripts.txt"))
    assert [(script.when, script.interpreter) for script in scripts] == [
        ("preinstall", "/bin/sh"),
        ("postinstall", "/sbin/ldconfig"),
        ("posttrans", "/bin/sh"),
        ("triggerin", "/bin/sh"),
    ]
    assert "weak-modules --add-kernel" in scripts[2].text
    assert rpm.parse_scripts("") == ()


DNF = "dnf -y --setopt=installonly_limit=0 install /a.rpm /b.rpm"
ZYPPER = "zypper --non-interactive install --oldpackage /a.rpm /b.rpm"


class WithoutDnf(Replay):
    """A bench whose front end is zypper."""

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        """Answer as the table says; `dnf` is not installed."""
        if argv[0] in ("dnf", "yum"):
            raise MissingToolError("not there")
        return super().__call__(argv, **options)


def test_files_are_installed_beside_what_is_there_by_the_front_end_of_the_bench(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.sync", lambda: synced.append(1))
    done = "Installed:\n  a-1-1.el9.x86_64\n\nComplete!\n"
    rpm.install_packages(Replay([Call(DNF, done)]), ["/a.rpm", "/b.rpm"])
    rpm.install_packages(
        WithoutDnf([Call(ZYPPER, "(1/1) Installing: a-1-1.x86_64 [..done]\n")]), ["/a.rpm", "/b.rpm"]
    )
    assert synced == [1, 1]


@pytest.mark.parametrize(
    ("tool", "text", "status", "cause"),
    [
        ("dnf", "installed_with_failed_script.txt", 0, "50-dracut.install failed"),
        ("dnf", "nothing_to_do.txt", 0, "nothing to do"),
        ("dnf", "no_room.txt", 1, "/boot lacks 42 MiB"),
        ("dnf", "lock.txt", 1, "held by process 4711"),
        ("dnf", "no_match.txt", 1, "Unable to find a match"),
        ("zypper", "installed.txt", 107, "a script of a package failed: .*posttrans"),
        ("zypper", "nothing_to_do.txt", 0, "nothing to do"),
        ("zypper", "lock.txt", 7, "held by process 5899 .*packagekitd"),
        ("zypper", "unknown.txt", 104, "not known: .*No provider of"),
    ],
)
def test_success_that_is_none_is_a_failure_with_its_cause(tool: str, text: str, status: int, cause: str) -> None:
    """A script that failed is a warning to rpm, and dnf ends with 0."""
    call = Call(DNF if tool == "dnf" else ZYPPER, fixture_text(tool, text), rc=status)
    replay = (Replay if tool == "dnf" else WithoutDnf)([call])
    with pytest.raises(ToolError, match=cause):
        rpm.install_packages(replay, ["/a.rpm", "/b.rpm"])


@pytest.mark.parametrize(
    "text",
    [
        "Error: Failed to download metadata for repo 'bench': Cannot download repomd.xml: All mirrors were tried\n",
        "Error: Failed to download metadata for repo 'bench': repomd.xml parser error: Parse error at line: 1\n",
    ],
)
def test_a_repository_whose_index_is_gone_or_broken_is_named(text: str) -> None:
    ended = Call("dnf --assumeno --setopt=installonly_limit=0 install kernel", "", text, 1)
    with pytest.raises(ToolError, match=r"dnf would not install kernel: .*repo 'bench': .*repomd\.xml"):
        rpm.preview(Replay([ended]), ["kernel"])


@pytest.mark.parametrize("name", ["-i", "--eval", "a b", "a;b", "", "../a", "%{x}"])
def test_a_package_name_can_be_no_option(name: str) -> None:
    for ask in (rpm.installed, rpm.kernel_of, rpm.files_of, rpm.remove_package):
        with pytest.raises(BadInputError, match="expected a name"):
            ask(Replay([]), name)
    with pytest.raises(BadInputError, match="version-release"):
        rpm.named("kernel-core", "5.14.0")


def test_the_owner_of_a_file_is_told_or_empty() -> None:
    path = f"/lib/modules/{EL9}/vmlinuz"
    line = f"{QUERY} -f -- {path}"
    assert (
        rpm.owner(Replay([Call(line, row("kernel-core", "5.14.0", "427.20.1.el9_4"))]), path) == f"kernel-core-{EL9}"
    )
    assert rpm.owner(Replay([Call(line, f"file {path} is not owned by any package\n", rc=1)]), path) == ""
    missing = Call(line, stderr=f"error: file {path}: No such file or directory\n", rc=1)
    assert rpm.owner(Replay([missing]), path) == ""


CONTENTS = {"/lib/modules/5.14/extra/hba.ko": b"a module" * 300, "/boot/.hidden": b"x", "/etc/depmod.d/hba.conf": b""}


def package(pack: Callable[[bytes], bytes]) -> bytes:
    """A package file; its first header ends within eight bytes, as most do."""

    def header(entries: int, store: bytes) -> bytes:
        return b"\x8e\xad\xe8\x01" + bytes(4) + struct.pack(">II", entries, len(store)) + bytes(16 * entries) + store

    signature = header(2, b"signed")
    names = {f".{path}": content for path, content in CONTENTS.items()}
    fill = bytes(-(96 + len(signature)) % 8)
    return bytes(96) + signature + fill + header(1, b"name") + pack(archive(names))


@pytest.mark.parametrize("pack", PACKERS.values(), ids=list(PACKERS))
def test_the_files_in_a_package_are_read_whatever_packed_them(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "x.rpm"
    file.write_bytes(package(pack))
    assert rpm.payload(str(file)) == CONTENTS


def test_a_package_that_is_cut_or_changed_ends_in_a_sentence(tmp_path: Path) -> None:
    file, whole, chance = tmp_path / "x.rpm", package(PACKERS["gzip"]), random.Random(7)
    cuts = [whole[:size] for size in range(0, len(whole) - 20, 3)]
    for data in (*cuts, package(lambda plain: plain.replace(b"s/5.14/", b"s/../x/"))):
        file.write_bytes(data)
        with pytest.raises(ToolError, match=r"x\.rpm"):
            rpm.payload(str(file))
    told = 0
    for _ in range(1000):
        changed = bytearray(package(PACKERS["plain"]) if chance.random() < 0.5 else whole)
        for _ in range(chance.randint(1, 6)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        file.write_bytes(changed)
        try:
            rpm.payload(str(file))
        except ToolError:
            told += 1
    assert told
