# SPDX-License-Identifier: Apache-2.0
"""Files that a boot loader reads are where it looks, which is not where `fsync` puts them."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed, run
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import ToolError
from storqual_core.provision.restore import Tools, restore
from storqual_core.tools import boot_files
from tests.support.fake_boot import FakeBench, boot_step
from tests.support.replay import Call, Replay

XFS = "22 1 {number} / {point} rw,relatime - xfs /dev/sdz9 rw\n"


def mounted(tmp_path: Path, line: str) -> str:
    """A proc whose mount table says that `tmp_path` is on such a file system."""
    device = tmp_path.stat().st_dev
    (tmp_path / "proc" / "self").mkdir(parents=True)
    text = line.format(number=f"{os.major(device)}:{os.minor(device)}", point=tmp_path)
    (tmp_path / "proc" / "self" / "mountinfo").write_text(text)
    return str(tmp_path / "proc")


def test_xfs_is_frozen_and_anything_else_is_written_out(tmp_path: Path) -> None:
    proc = mounted(tmp_path, XFS)
    frozen = shlex.join(["sh", "-c", boot_files._FREEZE, "sh", str(tmp_path)])
    replay = Replay([Call(frozen), Call(f"sync -f {tmp_path}")])
    boot_files.settle(replay, [str(tmp_path), str(tmp_path / "proc")], proc)
    boot_files.settle(replay, [str(tmp_path)], str(tmp_path / "none"))
    replay.done()


def test_a_freeze_ends_thawed_and_keeps_its_status(tmp_path: Path) -> None:
    """The program that freezes is stood in for: a file is frozen while it is there."""
    state, log = tmp_path / "frozen", tmp_path / "log"
    tool = tmp_path / "fsfreeze"
    tool.write_text(f'#!/bin/sh\necho "$1" >> {log}\ncase $1 in --freeze) : > {state};; *) rm {state};; esac\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["sh", "-c", boot_files._FREEZE, "sh", "/boot"]
    ended = subprocess.run(command, env=environment, check=False, timeout=15)
    assert (ended.returncode, state.exists()) == (0, False)
    assert log.read_text().split() == ["--freeze", "--unfreeze"]
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert subprocess.run(command, env=environment, check=False, timeout=15).returncode != 0


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """The bytes of a disk with ext4 on it, and where it is mounted."""
    tools = ("mkfs.ext4", "grub-fstest", "losetup", "mount")
    if os.geteuid() != 0 or not all(shutil.which(tool) for tool in tools):
        pytest.skip("needs root, a loop device and grub-fstest")
    image, point = tmp_path / "disk", tmp_path / "boot"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=False, capture_output=True).returncode:
        pytest.skip("this machine mounts no loop device")
    try:
        yield image, point
    finally:
        subprocess.run(["umount", str(point)], check=True)


def on_disk(image: Path, point: Path, name: str) -> bool:
    """Whether GRUB would find the file in the disk's bytes of this moment."""
    argv = ["grub-fstest", str(image), "cmp", f"(loop0)/{name}", str(point / name)]
    return subprocess.run(argv, check=False, capture_output=True).returncode == 0


def test_grub_sees_a_file_only_after_it_was_settled(ext4: tuple[Path, Path]) -> None:
    """Why it is needed, and that it is enough: read by GRUB's own reader from the disk's bytes."""
    image, point = ext4
    (point / "grub").mkdir()
    unseen = 0
    for number in range(10):
        replace_file(point / "grub" / "custom.cfg", f"{number}\n")
        # a `sync` of somebody else on this machine may come in between
        unseen += not on_disk(image, point, "grub/custom.cfg")
        boot_files.settle(run, [str(point / "grub")])
        assert on_disk(image, point, "grub/custom.cfg")
    assert unseen


def test_files_are_read_back_as_grub_reads_them(ext4: tuple[Path, Path]) -> None:
    _image, point = ext4
    (point / "grub").mkdir()
    file = point / "grub" / "custom.cfg"
    replace_file(file, "one\n")
    assert boot_files.check_seen(run, [str(file)], "grub-fstest")
    assert not boot_files.check_seen(run, [str(file)], "grub-fstest-that-is-missing")


def test_a_file_that_grub_reads_differently_is_named(tmp_path: Path) -> None:
    proc = mounted(tmp_path, XFS)
    file = str(tmp_path / "custom.cfg")
    (tmp_path / "custom.cfg").write_text("x")
    loop = "losetup --find --show --read-only --direct-io=on /dev/sdz9"
    freeze = Call(shlex.join(["sh", "-c", boot_files._FREEZE, "sh", str(tmp_path)]))
    turn = [
        Call(loop, "/dev/loop7\n"),
        Call(f"grub2-fstest /dev/loop7 cmp '(loop0)/custom.cfg' {file}", "", "not found", 1),
        Call("losetup --detach /dev/loop7"),
    ]
    replay = Replay([*turn, freeze, *turn, freeze, *turn])
    with pytest.raises(ToolError, match=r"does not see .*custom\.cfg as it was written: /dev/sdz9"):
        boot_files.check_seen(replay, [file], "grub2-fstest", proc)
    replay.done()


def _set_in_place(path: str, name: str, value: str) -> None:
    """What grub-editenv sets, in the file's own blocks: the earliest that a loader can see it."""
    lines = [line for line in Path(path).read_text().rstrip("#").splitlines() if not line.startswith(f"{name}=")]
    text = "".join(f"{line}\n" for line in (*lines, f"{name}={value}")).ljust(1024, "#")
    handle = os.open(path, os.O_WRONLY)
    os.pwrite(handle, text.encode(), 0)
    os.fsync(handle)
    os.close(handle)


def test_grub_is_never_told_to_boot_what_it_does_not_see(ext4: tuple[Path, Path], tmp_path: Path) -> None:
    """The disk's bytes after each step of a trial, of a default of ours and of a restore, by GRUB's own reader."""
    image, point = ext4
    old, new = "6.1.0-1-amd64", "6.1.0-2-amd64"
    bench = FakeBench(point / "root", [old, new], old)
    environment = f"{point}/root/boot/grub/grubenv"
    armed: list[tuple[str, str]] = []

    def seen(path: str) -> str:
        argv = ["grub-fstest", str(tmp_path / "copy"), "cat", f"(loop0)/root/boot/{path}"]
        return subprocess.run(argv, check=False, capture_output=True, text=True).stdout

    def look() -> None:
        shutil.copyfile(image, tmp_path / "copy")
        told = dict(line.partition("=")[::2] for line in seen("grub/grubenv").splitlines() if "=" in line)
        for name in ("next_entry", "saved_entry"):
            identifier = told.get(name, "")
            if identifier.startswith("storqual-"):
                assert f"--id {identifier} {{" in seen("grub/custom.cfg")
                assert (seen(f"vmlinuz-{new}"), seen(f"initrd.img-{new}")) == ("kernel", "images")
                armed.append((name, identifier))

    def runner(argv: Sequence[str], **options: Any) -> Completed:
        look()
        if argv[0] in ("grub-reboot", "grub-set-default"):
            name = "next_entry" if argv[0] == "grub-reboot" else "saved_entry"
            _set_in_place(environment, name, argv[-1])
            argv = ["grub-editenv", environment, "list"]
        ended = run(argv, **options) if argv[0] in ("grub-editenv", "sync") else bench(argv, **options)
        look()
        return ended

    run(["grub-editenv", environment, "create"]).expect()
    boot_files.settle(run, [str(point)])
    for name, text in ((f"vmlinuz-{new}", "kernel"), (f"initrd.img-{new}", "images")):
        replace_file(point / "root" / "boot" / name, text)
    state = str(tmp_path / "state")
    system = replace(bench.system, runner=runner)
    boot_step(system, state, "trial", kernel=new, mark="abc", fallback=old)
    boot_step(system, state, "default", kernel=new, arguments=["nosmt"])
    restore(state, Tools(bench, system), check=False)
    look()
    assert {("next_entry", "storqual-trial"), ("saved_entry", "storqual-kept")} <= set(armed)
