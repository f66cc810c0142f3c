# SPDX-License-Identifier: Apache-2.0
"""The states of the guard's live test: what is done to drives, what is claimed, and the words of the refusal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from guard_tools import (
    MIB,
    MOUNT,
    Bench,
    array,
    gpt,
    in_another_namespace,
    kept_open,
    linear,
    mapped,
    partition_table,
    put,
    run,
    volume_group,
    with_partition,
    zfs,
)

from storqual_core.machine import Machine
from storqual_core.scratch_stamp import make_stamp
from storqual_core.sysfs import read_drives

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storqual_core.guard_claims import Claim

__all__ = ["STATES", "State"]


@dataclass(frozen=True)
class State:
    """One target with something to lose. `arrange` returns the path that bare fio is pointed at, if not the drive.

    `claims` are what the guard is asked for; `says` must be in one of its refusals.
    """

    name: str
    says: str
    arrange: Callable[[Bench], str | None]
    claims: Callable[[Bench], Sequence[Claim]] = lambda bench: [bench.claim()]
    engine: str = "psync"


def _mounted(bench: Bench) -> None:
    bench.made("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")


def _mounted_by_id(bench: Bench) -> str:
    link = f"/dev/disk/by-id/wwn-{bench.claims['a'].wwn}"
    bench.made("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", bench.node(), "65536k")
    bench.mount(link if Path(link).exists() else bench.node(), "-o", "noinit_itable")
    return link if Path(link).exists() else bench.node()


def _mounted_partition(bench: Bench) -> str:
    node = with_partition(bench)
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", node)
    bench.mount(node, "-o", "noinit_itable")
    return node


def _parent_of_mounted(bench: Bench) -> None:
    _mounted_partition(bench)


def _mounted_read_only(bench: Bench) -> None:
    bench.made("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "ro")


def _mounted_elsewhere(bench: Bench) -> None:
    bench.made("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", bench.node(), "65536k")
    Path(MOUNT).mkdir(parents=True, exist_ok=True)
    in_another_namespace(["mount", "-o", "ro", bench.node(), MOUNT], bench)


def _no_mtab(bench: Bench) -> None:
    mtab = Path("/etc/mtab")
    if mtab.is_symlink() or mtab.exists():
        mtab.rename("/etc/mtab.away")
        bench.undo.append(lambda: Path("/etc/mtab.away").rename("/etc/mtab"))
    _mounted(bench)


def _btrfs_pair(bench: Bench) -> str:
    bench.touched |= {"a", "b"}
    run("mkfs.btrfs", "-q", "-f", "-K", "-d", "single", "-m", "raid1", bench.node("b"), bench.node("a"))
    run("btrfs", "device", "scan", bench.node("a"), bench.node("b"), check=False)
    bench.mount(bench.node("b"), "-o", "ro")
    return bench.node("a")


def _journal(bench: Bench) -> None:
    bench.touched |= {"a", "b"}
    run("mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "4096", bench.node("a"), "8192")
    journal = f"device={bench.node('a')}"
    run(
        "mkfs.ext4",
        "-q",
        "-F",
        "-b",
        "4096",
        "-E",
        "nodiscard,lazy_itable_init=1",
        "-J",
        journal,
        bench.node("b"),
        "65536k",
    )
    bench.mount(bench.node("b"), "-o", "noinit_itable")


def _unmounted(*argv: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        bench.made(argv[0], *argv[1:], bench.node())

    return arrange


def _unmounted_partition(bench: Bench) -> str:
    node = with_partition(bench)
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", node)
    return node


def _swap(bench: Bench) -> None:
    bench.made("mkswap", bench.node())
    run("swapon", bench.node())
    bench.later("swapoff", bench.node())


def _swap_partition(bench: Bench) -> str:
    node = with_partition(bench)
    run("mkswap", node)
    run("swapon", node)
    bench.later("swapoff", node)
    return node


def _above_swap(bench: Bench) -> None:
    _swap_partition(bench)


def _logical_volume_mounted(bench: Bench) -> str:
    node = volume_group(bench, active=True)
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", node)
    bench.mount(node, "-o", "noinit_itable")
    return bench.node()


def _linear_mounted(bench: Bench) -> str:
    bench.touched.add("a")
    node = mapped(bench, "sqlin", linear(bench))
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", node)
    bench.mount(node, "-o", "noinit_itable")
    return bench.node()


def _crypt(bench: Bench) -> str:
    run("modprobe", "dm-crypt")
    bench.touched.add("a")
    key = "00" * 32
    return mapped(
        bench, "sqcrypt", f"0 131072 crypt aes-xts-plain64 {key}{'11' * 32} 0 {bench.node()} 0", "CRYPT-PLAIN-sqcrypt"
    )


def _false_multipath(bench: Bench) -> str:
    table = f"0 65536 linear {bench.node('a')} 0\n65536 65536 linear {bench.node('b')} 0"
    return mapped(bench, "sqmpath", table, "mpath-sqmpath")


def _loop(bench: Bench) -> str:
    run("modprobe", "loop")
    node = run("losetup", "--show", "-f", bench.node()).stdout.strip()
    bench.later("losetup", "-d", node)
    return bench.node()


def _loop_mounted(bench: Bench) -> str:
    _loop(bench)
    node = run("losetup", "-n", "-O", "NAME", "-j", bench.node()).stdout.split()[0]
    bench.made("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", node, "65536k")
    bench.mount(node, "-o", "noinit_itable")
    return node


def _nvme_target(bench: Bench) -> None:
    run("modprobe", "nvmet")
    if not Path("/sys/kernel/config/nvmet").exists():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config", check=False)
    place = "/sys/kernel/config/nvmet/subsystems/sqguard"
    for folder in (place, f"{place}/namespaces/1"):
        Path(folder).mkdir()
        bench.later("rmdir", folder)
    put(f"{place}/namespaces/1/device_path", bench.node())
    put(f"{place}/namespaces/1/enable", "1")
    bench.undo.append(lambda: put(f"{place}/namespaces/1/enable", "0"))


def _scsi_target(bench: Bench) -> None:
    run("modprobe", "target_core_iblock")
    if not Path("/sys/kernel/config/target").exists():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config", check=False)
    for folder in ("/sys/kernel/config/target/core/iblock_7", "/sys/kernel/config/target/core/iblock_7/sqguard"):
        Path(folder).mkdir()
        bench.later("rmdir", folder)
    place = "/sys/kernel/config/target/core/iblock_7/sqguard"
    put(f"{place}/control", f"udev_path={bench.node()}")
    put(f"{place}/udev_path", bench.node())
    put(f"{place}/enable", "1")


def _read_only(bench: Bench) -> None:
    run("blockdev", "--setro", bench.node())
    bench.later("blockdev", "--setrw", bench.node())


def _offline(bench: Bench) -> None:
    state = f"/sys/block/{bench.name()}/device/state"
    put(state, "offline")
    bench.undo.append(lambda: put(state, "running"))


def _node_swapped(bench: Bench) -> None:
    node, number = bench.node("a"), os.stat(bench.node("b")).st_rdev  # noqa: PTH116 - as os.mknod
    Path(node).rename(f"{node}.away")
    os.mknod(node, 0o60600, number)
    bench.undo.append(lambda: Path(f"{node}.away").replace(node))


def _clone(bench: Bench) -> None:
    for end, offset in (("start", 0), ("end", -4096)):
        bench.poke(offset, make_stamp(bench.claims["b"].id, bench.claims["a"].size, end=end))


def _stamped(bench: Bench, *, ends: Sequence[str] = ("start", "end")) -> None:
    for end in ends:
        stamp = make_stamp(bench.claims["a"].id, bench.claims["a"].size, end=end)
        bench.poke(0 if end == "start" else -4096, stamp)


def _stamped_then_used(bench: Bench) -> None:
    _stamped(bench)
    bench.poke(64 << 10, b"somebody's data")


def _stamped_then_file_system(bench: Bench) -> None:
    _stamped(bench)
    bench.made("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", bench.node(), "65536k")


def _one_stamp(bench: Bench) -> None:
    _stamped(bench, ends=["end"])
    bench.poke(5 * MIB, b"somebody's data")


def _nothing(bench: Bench) -> None:
    del bench


def _sg(bench: Bench) -> str:
    _mounted(bench)
    return bench.drives["a"].sg


def _nvme_generic(bench: Bench) -> str:
    bench.made("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", bench.node("n"), "65536k", letter="n")
    bench.mount(bench.node("n"), "-o", "noinit_itable")
    return bench.node("n")


def _nvme_unmounted(bench: Bench) -> str:
    bench.made("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1", bench.node("n"), "65536k", letter="n")
    return bench.node("n")


def _twins(bench: Bench) -> str:
    """Two drives that say they are the same one, as a cloned virtual disk or a lost multipath does."""
    bench.later("modprobe", "-r", "scsi_debug")
    run("modprobe", "scsi_debug", "add_host=2", "vpd_use_hostno=0", "dev_size_mb=20")
    return "/dev/" + next(drive.name for drive in read_drives(Machine()) if drive.identity.model == "scsi_debug")


def _twins_claim(bench: Bench) -> list[Claim]:
    twin = next(drive.identity for drive in read_drives(Machine()) if drive.identity.model == "scsi_debug")
    texts = {name: getattr(twin, name) for name in ("wwn", "serial", "vendor", "model", "size")}
    return [bench.claim(id=twin.wwn, **texts)]


def _system_disk(bench: Bench) -> str:
    del bench
    return "/dev/zero"  # bare fio is not let loose on the disk that the bench lives on


def _system_claim(bench: Bench) -> list[Claim]:
    size = int(Path("/sys/block/vda/size").read_text()) * 512
    serial = Path("/sys/block/vda/serial").read_text().strip()
    return [bench.claim(id=serial, wwn="", serial=serial, vendor="", model="virtio-blk", size=size)]


def _poked(offset: int, data: bytes) -> Callable[[Bench], None]:
    return lambda bench: bench.poke(offset, data)


def _luks(bench: Bench) -> None:
    bench.poke(0, b"LUKS\xba\xbe\x00\x01" + bytes(160) + b"2f4cd5b2-1d5a-4a90-9f4b-6c3b1f0a2d11")


_N = lambda bench: [bench.claim("n")]  # noqa: E731 - a word for a column of the table
_AB = lambda bench: [bench.claim("a"), bench.claim("b")]  # noqa: E731 - as above
_UNKNOWN = "it holds data of an unknown kind in its"
_WRONG = "it is not the claimed drive: its "

STATES = [
    State("mounted whole disk", f"it is mounted on {MOUNT} (ext4); unmount it", _mounted),
    State("mounted through a by-id link", f"it is mounted on {MOUNT} (ext4)", _mounted_by_id),
    State("mounted partition", f"is mounted on {MOUNT} (ext4); unmount it", _mounted_partition),
    State("parent of a mounted partition", f"1 on it is mounted on {MOUNT} (ext4)", _parent_of_mounted),
    State("mounted read-only", f"it is mounted on {MOUNT} (ext4)", _mounted_read_only),
    State("mounted in another mount namespace", "in the mount namespace of process", _mounted_elsewhere),
    State("mounted, bench without /etc/mtab", f"it is mounted on {MOUNT} (ext4)", _no_mtab),
    State("sg node of a mounted disk", f"it is mounted on {MOUNT} (ext4)", _sg, engine="sg"),
    State("second device of a mounted btrfs", "it is part of the mounted btrfs", _btrfs_pair),
    State("external journal of a mounted ext4", "holds it exclusively", _journal),
    State("active swap", "it is a system disk: it carries swap", _swap),
    State("active swap partition", "it is a system disk: it carries swap", _swap_partition),
    State("parent of an active swap partition", "it is a system disk: it carries swap", _above_swap),
    State("LVM physical volume, group inactive", "(LVM2_member", lambda b: volume_group(b, active=False) and None),
    State(
        "LVM logical volume active", "LVM volume sqguard-data (dm-", lambda b: volume_group(b, active=True) and None
    ),
    State("LVM logical volume mounted", f"on it is mounted on {MOUNT} (ext4)", _logical_volume_mounted),
    State(
        "md member, array running", "md array md77 (raid1) is made of it", lambda b: array(b, stopped=False) and None
    ),
    State("md array of two claims", "md array md77 (raid1) is made of it", lambda b: array(b, stopped=False), _AB),
    State("md member, array stopped", "(linux_raid_member", lambda b: array(b, stopped=True) and None),
    State(
        "md member, superblock at the end",
        "(linux_raid_member",
        lambda b: array(b, stopped=True, metadata="1.0") and None,
    ),
    State("under dm-linear", "device-mapper volume sqlin (dm-", lambda b: mapped(b, "sqlin", linear(b)) and None),
    State("under a mounted dm-linear", f"sqlin (dm-0) on it is mounted on {MOUNT} (ext4)", _linear_mounted),
    State("under dm-crypt", "encrypted volume sqcrypt (dm-", _crypt),
    State("multipath device over two different drives", "multipath device sqmpath", _false_multipath, _AB),
    State("under a loop device", "reads and writes", _loop),
    State("under a mounted loop device", f"is mounted on {MOUNT} (ext4)", _loop_mounted),
    State("served by an NVMe target", "it is served to other machines by an NVMe target", _nvme_target),
    State("served by a SCSI target", "it is served to other machines by a SCSI target", _scsi_target),
    State("held open with O_EXCL", "holds it exclusively", lambda b: kept_open(b.node(), os.O_RDONLY | os.O_EXCL, b)),
    State(
        "open for writing in a program",
        "it is open for writing in python3",
        lambda b: kept_open(b.node(), os.O_RDWR, b),
    ),
    State(
        "open for commands through its sg node",
        "it is open for writing in python3",
        lambda b: kept_open(b.drives["a"].sg, os.O_RDWR, b),
    ),
    State(
        "unmounted ext4",
        "holds a file system (ext4)",
        _unmounted("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,nodiscard"),
    ),
    State("unmounted ext4 in a partition", "it has a partition table (dos)", _unmounted_partition),
    State("unmounted xfs", "holds a file system (xfs)", _unmounted("mkfs.xfs", "-q", "-f", "-K")),
    State("unmounted btrfs", "holds a file system (btrfs)", _unmounted("mkfs.btrfs", "-q", "-f", "-K")),
    State("swap signature, not active", "(swap", _unmounted("mkswap")),
    State("LUKS", "holds encrypted data (crypto_LUKS)", _luks),
    State("ZFS pool member", "(zfs_member", zfs),
    State("VMFS label", "(VMFS_volume_member", _poked(0x100000, b"\x0d\xd0\x01\xc0")),
    State("Ceph BlueStore", "(ceph_bluestore", _poked(0, b"bluestore block device\n")),
    State("Oracle ASM", "(oracleasm", _poked(32, b"ORCLDISK")),
    State("GPT alone", "it has a partition table (gpt)", gpt),
    State("MBR alone", "it has a partition table (dos)", _poked(0, partition_table(512))),
    State("unknown data at the start", f"{_UNKNOWN} first 8 MiB", _poked(0, b"x")),
    State("unknown data near the start", f"{_UNKNOWN} first 8 MiB", _poked(8 * MIB - 512, b"x")),
    State("unknown data near the end", f"{_UNKNOWN} last 8 MiB", _poked(-8 * MIB, b"x")),
    State("unknown data at the end", f"{_UNKNOWN} last 8 MiB", _poked(-1, b"x")),
    State("copy of another scratch drive", "it carries the scratch stamp of another drive", _clone),
    State("stamped, then data in the guard's area", f"{_UNKNOWN} first 8 MiB", _stamped_then_used),
    State("stamped, then a file system", "holds a file system (ext4)", _stamped_then_file_system),
    State("one stamp beside data", f"{_UNKNOWN} first 8 MiB", _one_stamp),
    State("NVMe drive mounted", f"it is mounted on {MOUNT} (ext4)", _nvme_generic, _N),
    State("NVMe drive with unmounted ext4", "holds a file system (ext4)", _nvme_unmounted, _N),
    State("read-only", "it is read-only", _read_only),
    State("offline", "its state is offline", _offline),
    State("device node is another drive's", "is missing or is another device", _node_swapped),
    State(
        "serial right, WWN wrong",
        "has its serial but says WWN",
        _nothing,
        lambda b: [b.claim(wwn="0x5000c500ffffffff")],
    ),
    State("WWN right, serial wrong", f"{_WRONG}serial is", _nothing, lambda b: [b.claim(serial="OTHER")]),
    State("model wrong", f"{_WRONG}model is", _nothing, lambda b: [b.claim(model="OTHER")]),
    State("vendor wrong", f"{_WRONG}vendor is", _nothing, lambda b: [b.claim(vendor="OTHER")]),
    State("size wrong", f"{_WRONG}size is", _nothing, lambda b: [b.claim(size=b.claims["a"].size - 512)]),
    State("claim states no serial", "the claim does not state it", _nothing, lambda b: [b.claim(serial="")]),
    State(
        "two drives swapped in the claims",
        f"{_WRONG}serial is",
        _nothing,
        lambda b: [b.claim("a", serial=b.claims["b"].serial), b.claim("b", serial=b.claims["a"].serial)],
    ),
    State(
        "claim for another bench",
        "no drive of this bench has WWN",
        _nothing,
        lambda b: [b.claim(wwn="0x5000c500eeeeeeee", serial="ELSEWHERE", id="0x5000c500eeeeeeee")],
    ),
    State(
        "one drive claimed twice", "it is the same device as", _nothing, lambda b: [b.claim(), b.claim(id="again")]
    ),
    State("two drives with one WWN", "2 devices of this bench answer to that name", _twins, _twins_claim),
    State("system disk claimed", "it is a system disk: it carries /", _system_disk, _system_claim),
]
