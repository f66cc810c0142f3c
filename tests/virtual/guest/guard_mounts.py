# SPDX-License-Identifier: Apache-2.0
"""States of drives in use by mounts and loop devices that a path or a mount table does not tell; odd sectors."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from guard_state import EXT4, State
from guard_tools import (
    MIB,
    MOUNT,
    Bench,
    debug_claim,
    debug_drive,
    kept_open,
    loaded,
    private_node,
    run,
    unsettled,
    with_partition,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def _loop_by_a_removed_node(bench: Bench) -> None:
    run("modprobe", "loop")
    node = private_node(bench)
    loop = run("losetup", "--show", "-f", node).stdout.strip()
    bench.later("losetup", "-d", loop)
    Path(node).unlink()


def _loop_with_an_offset(bench: Bench) -> None:
    run("modprobe", "loop")
    loop = run("losetup", "--show", "-o", "64M", "--sizelimit", "32M", "-f", bench.node()).stdout.strip()
    bench.later("losetup", "-d", loop)


def _loop_over_a_partition(bench: Bench) -> str:
    run("modprobe", "loop")
    part = with_partition(bench)
    loop = run("losetup", "--show", "-f", part).stdout.strip()
    bench.later("losetup", "-d", loop)
    return part


def _loop_read_only(bench: Bench) -> None:
    run("modprobe", "loop")
    loop = run("losetup", "--show", "-r", "-f", bench.node()).stdout.strip()
    bench.later("losetup", "-d", loop)


def _loop_file(bench: Bench) -> None:
    """A file of a file system of the drive is a loop device; the file itself is gone."""
    run("modprobe", "loop")
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")
    os.truncate(_file(), 8 * MIB)
    loop = run("losetup", "--show", "-f", _file()).stdout.strip()
    bench.later("losetup", "-d", loop)
    Path(_file()).unlink()
    run("umount", "-l", MOUNT)


def _file() -> str:
    path = Path(MOUNT) / "image"
    path.touch()
    return str(path)


def _swap_file(bench: Bench) -> None:
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")
    path = _file()
    Path(path).write_bytes(bytes(4 * MIB))
    Path(path).chmod(0o600)
    run("mkswap", path)
    run("swapon", path)
    bench.later("swapoff", path)


def _bound(bench: Bench) -> None:
    """Mounted, bound to another folder, and the first place unmounted."""
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")
    Path("/mnt/storqual-bound").mkdir(exist_ok=True)
    run("mount", "--bind", MOUNT, "/mnt/storqual-bound")
    bench.later("umount", "/mnt/storqual-bound")
    run("umount", MOUNT)


def _namespace_without_a_program(bench: Bench) -> None:
    """A mount namespace that only a bound file keeps alive: no process shows what is mounted in it."""
    bench.made(*EXT4, bench.node(), "65536k")
    place = Path("/run/sqspaces")
    place.mkdir(exist_ok=True)
    run("mount", "--bind", str(place), str(place))
    run("mount", "--make-private", str(place))
    bench.later("umount", "-l", str(place))
    (place / "one").touch()
    Path(MOUNT).mkdir(parents=True, exist_ok=True)
    run("unshare", f"--mount={place / 'one'}", "mount", bench.node(), MOUNT)
    bench.later("umount", str(place / "one"))


def _chroot(bench: Bench) -> None:
    """A program in a chroot on the drive, from which the mount looks like /."""
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")
    code = f"import os,time; os.chroot({MOUNT!r}); os.chdir('/'); print('open', flush=True); time.sleep(600)"
    inside = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert inside.stdout is not None
    inside.stdout.readline()
    bench.undo.append(lambda: (inside.kill(), inside.wait()))


def _unmounted_with_an_open_file(bench: Bench) -> None:
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")
    kept_open(_file(), os.O_RDWR, bench)
    run("umount", "-l", MOUNT)


def _never_attached(bench: Bench) -> None:
    """A mount that a program holds by a descriptor and attached nowhere (fsopen, fsmount)."""
    bench.made(*EXT4, bench.node(), "65536k")
    libc = ctypes.CDLL(None, use_errno=True)
    context = libc.syscall(430, b"ext4", 0)
    libc.syscall(431, context, 1, b"source", bench.node().encode(), 0)
    libc.syscall(431, context, 6, None, None, 0)
    mounted = libc.syscall(432, context, 0, 0)
    os.close(context)
    if mounted < 0:
        raise RuntimeError(f"fsmount: {os.strerror(ctypes.get_errno())}")
    bench.undo.append(lambda: os.close(mounted))


def _mounted_file_system(*argv: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        bench.made(argv[0], *argv[1:], bench.node())
        bench.mount(bench.node())

    return arrange


def _xfs_log(bench: Bench) -> None:
    bench.touched |= {"a", "b"}
    run("mkfs.xfs", "-q", "-f", "-K", "-l", f"logdev={bench.node('a')},size=64m", bench.node("b"))
    bench.mount(bench.node("b"), "-o", f"logdev={bench.node('a')}")


def _exported_by_nfs(bench: Bench) -> None:
    """NFS serves what is mounted, so the mount is what is found."""
    loaded("nfsd")
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")
    run("mount", "-t", "nfsd", "none", "/proc/fs/nfsd", check=False)
    bench.later("umount", "/proc/fs/nfsd")


def _debug(*options: str) -> Callable[[Bench], str]:
    def arrange(bench: Bench) -> str:
        bench.later("modprobe", "-r", "scsi_debug")
        loaded("scsi_debug", *options)
        return debug_drive().node

    return arrange


def _label_in_sectors_of_4_kib(bench: Bench) -> str:
    """A GUID table in the second sector of a drive whose sectors have 4 KiB."""
    node = _debug("dev_size_mb=40", "sector_size=4096")(bench)
    run(*unsettled("parted", "-s", node, "mklabel", "gpt"))
    return node


MOUNTS = [
    State("under a loop device whose node was removed", "it backs loop device", _loop_by_a_removed_node),
    State("under a loop device with an offset", "it backs loop device", _loop_with_an_offset),
    State("partition under a loop device", "backs loop device", _loop_over_a_partition),
    State("under a loop device that only reads", "it backs loop device", _loop_read_only),
    State("loop device over a removed file of an unmounted file system", "is made of it", _loop_file),
    State("swap file on a mounted file system", "it is a system disk: it carries swap", _swap_file),
    State("mounted elsewhere by a bind", "it is mounted on /mnt/storqual-bound (ext4)", _bound),
    State("mounted in a namespace that no program is in", "holds it exclusively", _namespace_without_a_program),
    State("a program in a chroot on it", f"it is mounted on {MOUNT} (ext4)", _chroot),
    State("unmounted lazily, a file on it still open", "holds it exclusively", _unmounted_with_an_open_file),
    State("mounted by a descriptor and attached nowhere", "holds it exclusively", _never_attached),
    State("mounted xfs", f"it is mounted on {MOUNT} (xfs)", _mounted_file_system("mkfs.xfs", "-q", "-f", "-K")),
    State("mounted btrfs", f"it is mounted on {MOUNT} (btrfs)", _mounted_file_system("mkfs.btrfs", "-q", "-f", "-K")),
    State("external log of a mounted XFS", "holds it exclusively", _xfs_log),
    State("mounted, the NFS server loaded", f"it is mounted on {MOUNT} (ext4)", _exported_by_nfs),
    State("write-protected SCSI drive", "it is read-only", _debug("dev_size_mb=40", "wp=1"), debug_claim),
    State("unreadable sectors at the start", "cannot be read", _debug("dev_size_mb=40", "opts=2"), debug_claim),
    State("GPT on sectors of 4 KiB", "it has a partition table (gpt)", _label_in_sectors_of_4_kib, debug_claim),
]
