# SPDX-License-Identifier: Apache-2.0
"""Dumps of a panic: written to the one drive that the guard allowed, and taken for proof only of their own trial."""

import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.host.sysfs import read_drives
from storqual_core.kit.archives import read_archive
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.turns import crash_dump
from storqual_core.turns.bench_faults import ACTS, AFTER
from storqual_core.turns.crash_dump import DumpPlace, dump_place, find_panic, make_script, pack
from storqual_core.turns.drive_faults import Aim
from tests.support.bench_tree import BenchTree

A, B = "0x5000c50000000001", "0x5000c50000000002"
MIB = 1 << 20
TAG = "00ff00ff00ff00ff"
LINE = f"storqual: trial {TAG} panics on boot"
LOG = f"""\
[    1.0] Linux version 6.1
[   61.0] {LINE} 11111111-2222-3333-4444-555555555555
[   62.0] sysrq: Trigger a crash
[   62.1] Kernel panic - not syncing: sysrq triggered crash
"""
PLACE = DumpPlace("naa.5000c50000000001", 40960, 5 * MIB, 12 * MIB)


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    tree = BenchTree(tmp_path).adapter("0000:00:05.0").scsi("sda", hctl="2:0:0:0", wwn=A, serial="S1")
    return tree.scsi("sdb", hctl="2:0:1:0", wwn=B, serial="S2")


def aim_at(tree: BenchTree, run: Callable[..., Completed], spare: tuple[int, int] = (5 * MIB - 512, 13 * MIB)) -> Aim:
    drive = next(one for one in read_drives(tree.machine) if one.id == A)
    return Aim(tree.machine, run, drive, 0.0, 0.2, spare, TAG)


def silent(argv: Sequence[str], **_: object) -> Completed:
    return Completed(tuple(argv), 0, "", "", 0.0)


def flattened(*records: tuple[int, bytes]) -> bytes:
    body = b"".join(struct.pack(">qq", at, len(data)) + data for at, data in records)
    return b"makedumpfile\0".ljust(4096, b"\0") + body


END = struct.pack(">qq", -1, -1)


def telling(log: str) -> Callable[..., Completed]:
    """A makedumpfile that finds this log in a dump."""

    def run(argv: Sequence[str], **_: object) -> Completed:
        assert Path(argv[2]).read_bytes() == b"head\0\0\0\0more"
        Path(argv[3]).write_text(log, encoding="utf-8")
        return Completed(tuple(argv), 0, "", "", 0.0)

    return run


def found(tree: BenchTree, stream: bytes, log: str = LOG) -> list[tuple[str, str]]:
    aim, told = aim_at(tree, telling(log)), []
    with Path(tree.machine.path("/dev/sda")).open("r+b") as file:
        file.seek(dump_place(aim).first)
        file.write(stream)
    AFTER["kdump"](aim, lambda seen, text: told.append((seen, text)))
    return told


def test_a_dump_lies_behind_the_load_in_whole_mebibytes_of_what_the_guard_lets_be_written(tree: BenchTree) -> None:
    assert dump_place(aim_at(tree, silent)) == PLACE


def test_a_drive_without_room_takes_no_dump(tree: BenchTree) -> None:
    with pytest.raises(ToolError, match="too few for a dump"):
        dump_place(aim_at(tree, silent, (5 * MIB + 512, 2 * MIB - 1024)))


@pytest.mark.parametrize("wwid", ["naa.5000c50000000002", "", "t10.ATA  a drive; reboot"])
def test_a_drive_that_a_crash_kernel_cannot_know_for_certain_takes_no_dump(tree: BenchTree, wwid: str) -> None:
    tree.write("/sys/block/sda/device/wwid", f"{wwid}\n")
    with pytest.raises(ToolError, match="cannot know drive"):
        dump_place(aim_at(tree, silent))


def test_the_dump_is_told_with_the_trial_and_the_panic_that_it_names(tree: BenchTree) -> None:
    stream = flattened((8, b"more"), (0, b"head")) + END
    [(seen, text)] = found(tree, stream)
    assert seen == "dumped"
    assert text == (
        f"a dump of {len(stream)} bytes on drive {A}: {LINE} 11111111-2222-3333-4444-555555555555: "
        "Kernel panic - not syncing: sysrq triggered crash"
    )


@pytest.mark.parametrize(
    ("stream", "log", "why"),
    [
        (b"", LOG, "no dump of makedumpfile lies there"),
        (flattened((0, b"head"), (8, b"more")), LOG, "not whole: no record at byte"),
        (flattened((0, b"head")) + struct.pack(">qq", 4, 13 * MIB), LOG, "goes on behind"),
        (flattened((0, b"head"), (8, b"more")) + END, LOG.replace(TAG, "1" * 16), "names another boot"),
        (flattened((0, b"head"), (8, b"more")) + END, LOG.rpartition("[")[0], "names no panic"),
        (flattened((0, b"head"), (8, b"more")) + END, "", "names another boot"),
    ],
    ids=["none", "cut off", "too long", "of another trial", "without a panic", "empty log"],
)
def test_what_is_no_dump_of_this_panic_is_no_proof(tree: BenchTree, stream: bytes, log: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        found(tree, stream, log)


def test_a_panic_ahead_of_the_trials_own_line_is_another() -> None:
    *earlier, panic = LOG.splitlines()
    with pytest.raises(ToolError, match="names no panic"):
        find_panic("\n".join([panic, *earlier]), LINE)


def test_without_memory_for_a_crash_kernel_nothing_panics(tree: BenchTree) -> None:
    tree.write("/sys/kernel/kexec_crash_size", "0\n")
    with pytest.raises(ToolError, match="has no crashkernel="):
        ACTS["kdump"](aim_at(tree, silent), lambda _seen, _text: None)


def test_a_crash_kernel_stops_the_watchdog_reaches_its_drive_alone_and_the_panic_is_announced_first(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write("/sys/kernel/kexec_crash_size", "201326592\n")
    tree.write("/proc/sys/kernel/osrelease", "6.1.0\n")
    tree.write("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda console=ttyS0 crashkernel=192M quiet nokaslr\n")
    tree.write("/dev/kmsg", "")
    for name in ("busybox", "makedumpfile"):
        tree.write(f"/usr/bin/{name}", name)
    tree.write("/lib/libc.so.6", "libc")
    for module in ("scsi_mod", "sym53c8xx", "sd_mod", "i6300esb"):
        tree.write(f"/lib/modules/{module}.ko", module)
    tree.write("/sys/class/watchdog/watchdog0/identity", "i6300ESB timer")
    tree.write("/sys/class/watchdog/watchdog0/device/driver/x", "")
    Path(tree.machine.path("/sys/class/watchdog/watchdog0/device/driver/module")).symlink_to("/sys/module/i6300esb")
    tree.write("/sys/block/sda/device/driver/module", "")
    place = Path(tree.machine.path("/sys/block/sda/device/driver/module"))
    place.unlink()
    place.symlink_to("/sys/module/sd_mod")
    bound = Path(tree.machine.path("/sys/bus/pci/devices/0000:00:05.0/driver/module"))
    if not bound.is_symlink():
        bound.symlink_to("/sys/module/sym53c8xx")

    def run(argv: Sequence[str], **_: object) -> Completed:
        if argv[0] == "ldd":
            return Completed(tuple(argv), 0, "\tlibc.so.6 => /lib/libc.so.6 (0x00007f07)\n", "", 0.0)
        assert argv[:2] == ["modprobe", "--show-depends"]
        options = " safe=y" if argv[2] == "sym53c8xx" else ""
        needed = "" if argv[2] == "i6300esb" else "insmod /lib/modules/scsi_mod.ko \n"
        lines = f"{needed}builtin crc\ninsmod /lib/modules/{argv[2]}.ko{options}\n"
        return Completed(tuple(argv), 0, lines, "", 0.0)

    loaded: list[tuple[str, bytes, str]] = []

    def load(kernel: str, archive: str, line: str) -> None:
        loaded.append((kernel.removeprefix(str(tree.root)), Path(archive).read_bytes(), line))
        tree.write("/sys/kernel/kexec_crash_loaded", "1\n")

    happened: list[str] = []
    monkeypatch.setattr(crash_dump, "load_crash_kernel", load)
    monkeypatch.setattr(crash_dump, "write_attribute", lambda path, value: happened.append(f"{value} to {path}"))
    monkeypatch.setattr(crash_dump.time, "sleep", lambda _s: happened.append("told"))
    with pytest.raises(ToolError, match="and did not"):
        ACTS["kdump"](aim_at(tree, run), lambda seen, _text: happened.append(seen))
    assert happened == ["armed", "told", f"c to {tree.machine.path('/proc/sysrq-trigger')}"]
    assert tree.machine.text("/dev/kmsg").startswith(LINE)
    [(kernel, image, words)] = loaded
    assert (kernel, words) == (
        "/boot/vmlinuz-6.1.0",
        "console=ttyS0 nokaslr nr_cpus=1 irqpoll reset_devices panic=10",
    )
    files = {member.name: member.content for member in read_archive(image, 0)[0]}
    assert [name for name in files if name.endswith(".ko")] == [
        f"lib/modules/{name}.ko" for name in ("i6300esb", "scsi_mod", "sym53c8xx", "sd_mod")
    ]
    assert files["bin/makedumpfile"] == b"makedumpfile"
    assert files["lib/libc.so.6"] == b"libc"
    assert b"insmod /lib/modules/sym53c8xx.ko safe=y\n" in files["init"]


def test_programs_of_the_archive_may_be_run_and_each_folder_comes_before_its_files() -> None:
    members, _ = read_archive(pack({"/init": b"#!", "/lib/x/y.ko": b"k", "/lib/z": b"z"}), 0)
    assert [(one.name, oct(one.fields[1])) for one in members] == [
        *(("lib", "0o40755"), ("lib/x", "0o40755")),
        *(("init", "0o100755"), ("lib/x/y.ko", "0o100755"), ("lib/z", "0o100755")),
    ]


class CrashedBench:
    """What a crash kernel sees, as folders, and its script run there by a shell of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("sys/block", "dev", "bin"):
            (root / folder).mkdir(parents=True)

    def disk(self, name: str, wwid: str, sectors: int) -> Path:
        place = self.root / "sys/block" / name
        (place / "device").mkdir(parents=True)
        (place / "device/wwid").write_text(f"{wwid}\n", encoding="ascii")
        (place / "size").write_text(f"{sectors}\n", encoding="ascii")
        node = self.root / "dev" / name
        node.write_bytes(bytes(sectors * 512))
        return node

    def run(self, place: DumpPlace, dump: bytes) -> str:
        """The script from its search for the drive on, with a dump that is so long."""
        script = make_script(place, [("/lib/a.ko", "")])
        _, _, search = script.partition("insmod /lib/a.ko\n")
        assert search
        for path in ("/sys/block", "/dev/"):
            search = search.replace(path, f"{self.root}{path}")
        search = search.replace("[ -b ", "[ -e ").replace(f"left={crash_wait(script)}", "left=1")
        (self.root / "vmcore").write_bytes(dump)
        assert search.count("reboot -f") == 1
        search = search.replace("reboot -f", ":").replace("\nsync\n", "\n")
        stand_ins = f'makedumpfile() {{ cat "{self.root}/vmcore"; }}; timeout() {{ shift; "$@"; }}\n'
        ended = subprocess.run(["sh", "-c", stand_ins + search], capture_output=True, text=True, check=True)
        return ended.stdout


def test_options_of_a_module_are_words_of_no_shell(tmp_path: Path) -> None:
    options = f"a=1;touch<{tmp_path}/x b=2>{tmp_path}/y c={tmp_path}/*|d"
    line = next(line for line in make_script(PLACE, [("/lib/a.ko", options)]).splitlines() if "insmod" in line)
    ended = subprocess.run(
        ["sh", "-c", f'insmod() {{ echo "$@"; }}\n{line}'], capture_output=True, text=True, check=True
    )
    assert ended.stdout == f"/lib/a.ko {options}\n"
    assert not list(tmp_path.iterdir())


def crash_wait(script: str) -> str:
    match = re.search(r"left=(\d+)\n", script)
    assert match
    return match.group(1)


@pytest.mark.skipif(not shutil.which("dd"), reason="needs dd on this machine")
def test_the_script_writes_to_the_one_drive_within_its_bytes_and_nowhere_else(tmp_path: Path) -> None:
    bench, place = CrashedBench(tmp_path), DumpPlace("naa.1", 8192, 1 * MIB, 2 * MIB)
    right, other = bench.disk("sdb", "naa.1", 8192), bench.disk("sda", "naa.2", 8192)
    said = bench.run(place, b"x" * (3 * MIB))
    assert "the dump goes to sdb" in said
    data = right.read_bytes()
    assert (data[:MIB].strip(b"\0"), data[MIB : 3 * MIB].strip(b"x"), data[3 * MIB :].strip(b"\0")) == (b"", b"", b"")
    assert other.read_bytes().strip(b"\0") == b""


@pytest.mark.parametrize(
    "disks",
    [[("sda", "naa.2", 8192)], [("sda", "naa.1", 4096)], [("sda", "naa.1", 8192), ("sdb", "naa.1", 8192)]],
    ids=["another drive", "another size", "two of them"],
)
def test_the_script_writes_nothing_when_the_drive_is_not_there_for_certain(
    tmp_path: Path, disks: list[tuple[str, str, int]]
) -> None:
    bench = CrashedBench(tmp_path)
    nodes = [bench.disk(*disk) for disk in disks]
    said = bench.run(replace(PLACE, wwid="naa.1", sectors=8192), b"x" * MIB)
    assert "no dump is written" in said
    assert not any(node.read_bytes().strip(b"\0") for node in nodes)
