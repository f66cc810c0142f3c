# SPDX-License-Identifier: Apache-2.0
"""States of drives below md, LVM, device-mapper, bcache and other layers, in every level and state of them."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from guard_state import BOTH, EXT4, State
from guard_tools import LVM, MOUNT, Bench, CannotMakeError, linear, loaded, mapped, put, run, wait_for, with_partition

if TYPE_CHECKING:
    from collections.abc import Callable

_NODE = "/dev/md77"


def _array(level: str, *letters: str, metadata: str = "1.2", more: tuple[str, ...] = ()) -> Callable[[Bench], None]:
    """A running array over drives; the drive that is claimed is `a`."""

    def arrange(bench: Bench) -> None:
        loaded("raid456" if level in "4 5 6" else f"raid{level}" if level.isdigit() else "md-mod")
        bench.touched |= set(letters) - {"missing"}
        members = [letter if letter == "missing" else bench.node(letter) for letter in letters]
        run("mdadm", "--create", _NODE, "--run", "--force", f"--level={level}", f"--raid-devices={len(members)}",
            f"--metadata={metadata}", "--homehost=any", *more, *members)  # fmt: skip
        bench.later("mdadm", "--stop", _NODE)

    return arrange


def _built(bench: Bench) -> None:
    """An array without metadata: once it is stopped nothing tells of it, while it runs the kernel does."""
    loaded("raid0")
    bench.touched |= {"a", "b"}
    run("mdadm", "--build", _NODE, "--level=0", "--raid-devices=2", bench.node("a"), bench.node("b"))
    bench.later("mdadm", "--stop", _NODE)


def _spare(bench: Bench) -> None:
    _array("1", "b", "c", more=("--assume-clean",))(bench)
    bench.touched.add("a")
    run("mdadm", "--manage", _NODE, "--add", bench.node("a"))


def _faulty(bench: Bench) -> None:
    """Failed and not yet taken out: md still holds it."""
    _array("1", "a", "b", more=("--assume-clean",))(bench)
    run("mdadm", "--manage", _NODE, "--fail", bench.node("a"))


def _removed(bench: Bench) -> None:
    """Taken out of a running array: nobody holds it, and it is still a member by its label."""
    _faulty(bench)
    run("mdadm", "--manage", _NODE, "--remove", bench.node("a"))


def _inactive(bench: Bench) -> None:
    """Half an array, assembled and not started."""
    bench.touched |= {"a", "b"}
    _array("0", "a", "b")(bench)
    run("mdadm", "--stop", _NODE)
    run("mdadm", "--assemble", "--no-degraded", _NODE, bench.node("a"), check=False)


def _container(kind: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        bench.touched |= {"a", "b"}
        os.environ.update(IMSM_NO_PLATFORM="1", IMSM_DEVNAME_AS_SERIAL="1")
        run("mdadm", "--create", "/dev/md78", "--run", "--force", f"--metadata={kind}", "--raid-devices=2",
            bench.node("a"), bench.node("b"))  # fmt: skip
        bench.later("mdadm", "--stop", "/dev/md78")

    return arrange


def _group(bench: Bench, *letters: str) -> None:
    nodes = [bench.node(letter) for letter in letters]
    bench.touched |= set(letters)
    run("pvcreate", *LVM, "-ff", "-y", *nodes)
    run("vgcreate", *LVM, "sqguard", *nodes)
    bench.later("vgchange", *LVM, "-an", "sqguard")


def _volumes(*calls: tuple[str, ...], modules: tuple[str, ...] = (), letters: str = "ab") -> Callable[[Bench], None]:
    """A volume group over drives and volumes made in it, one call after the other."""

    def arrange(bench: Bench) -> None:
        for module in modules:
            loaded(module)
        _group(bench, *letters)
        for argv in calls:
            run(argv[0], *LVM, "-y", *argv[1:])

    return arrange


_SMALL = ("lvcreate", "-Wn", "-Zn", "-L", "64M", "-n", "data")


def _group_without_volumes(bench: Bench) -> None:
    _group(bench, "a")


def _volume_alone(bench: Bench) -> None:
    bench.made("pvcreate", *LVM, "-ff", "-y", bench.node())


def _mapping(
    table: Callable[[Bench], str], *modules: str, title: str = "sqstack", touched: str = "a"
) -> Callable[[Bench], None]:
    """A device-mapper device whose table names the drive."""

    def arrange(bench: Bench) -> None:
        for module in modules:
            loaded(module)
        bench.touched |= set(touched)
        mapped(bench, title, table(bench))

    return arrange


def _thin(bench: Bench) -> str:
    return f"0 65536 thin-pool {bench.node('b')} {bench.node('a')} 128 0 1 skip_block_zeroing"


def _table(target: str) -> Callable[[Bench], str]:
    return lambda bench: target.format(**{letter: bench.node(letter) for letter in "abc"})


def _table_not_yet_live(bench: Bench) -> None:
    """A table that was loaded and is not in use yet already holds its drives."""
    bench.touched.add("a")
    mapped(bench, "sqwait", "0 2048 zero")
    run("dmsetup", "load", "--noudevsync", "sqwait", text=linear(bench, length=2048))
    bench.later("dmsetup", "clear", "sqwait")


def _on_a_volume_on_a_partition(bench: Bench) -> str:
    """Five layers: a partition, LVM on it, an encrypted volume on that, a loop device on that, a file system."""
    part = with_partition(bench)
    bench.later("vgchange", *LVM, "-an", "sqguard")
    run("pvcreate", *LVM, "-ff", "-y", part)
    run("vgcreate", *LVM, "sqguard", part)
    run("lvcreate", *LVM, "-y", "-Wn", "-Zn", "-L", "16M", "-n", "data", "sqguard")
    loaded("dm-crypt")
    crypt = mapped(bench, "sqdeep", f"0 16384 crypt aes-xts-plain64 {'33' * 64} 0 /dev/mapper/sqguard-data 0")
    run("modprobe", "loop")
    node = run("losetup", "--show", "-f", crypt).stdout.strip()
    bench.later("losetup", "-d", node)
    run(*EXT4, node)
    bench.mount(node, "-o", "noinit_itable")
    return bench.node()


def _opened(version: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        loaded("dm-crypt")
        bench.touched.add("a")
        key = "0123456789abcdef"
        run("cryptsetup", "luksFormat", "-q", "--type", version, "--pbkdf", "pbkdf2", "--pbkdf-force-iterations",
            "1000", bench.node(), text=key)  # fmt: skip
        run("cryptsetup", "open", "--type", "luks", bench.node(), "sqluks", text=key)
        bench.later("cryptsetup", "close", "sqluks")

    return arrange


def _integrity(bench: Bench) -> None:
    loaded("dm-integrity")
    bench.touched.add("a")
    run("integritysetup", "format", "-q", "--no-wipe", bench.node())
    run("integritysetup", "open", bench.node(), "sqinteg")
    bench.later("integritysetup", "close", "sqinteg")


def _verity(bench: Bench) -> None:
    loaded("dm-verity")
    bench.touched |= {"a", "b"}
    said = run("veritysetup", "format", "--data-blocks=64", bench.node("b"), bench.node("a")).stdout
    root = next(line.split()[-1] for line in said.splitlines() if line.startswith("Root hash"))
    run("veritysetup", "open", bench.node("b"), "sqverity", bench.node("a"), root)
    bench.later("veritysetup", "close", "sqverity")


def _bcache_running(bench: Bench) -> None:
    """A backing device that the kernel took: its superblock by hand, since the guest has no bcache-tools."""
    loaded("bcache")
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    # where it lies (sectors), version (a backing device), magic, UUID, no set yet; blocks of one sector
    fields = struct.pack("<QQ", 8, 1) + magic + os.urandom(16)
    body = fields.ljust(184, b"\0") + struct.pack("<H", 1) + bytes(14)
    bench.poke(4096, (struct.pack("<Q", _crc64(body)) + body).ljust(4096, b"\0"))
    Path("/sys/fs/bcache/register").write_text(bench.node())
    wait_for(lambda: any(Path("/sys/block").glob("bcache*")), "the bcache device", 5)
    name = next(Path("/sys/block").glob("bcache*")).name
    bench.undo.append(lambda: wait_for(lambda: not any(Path("/sys/block").glob("bcache*")), "the end of bcache"))
    bench.undo.append(lambda: put(f"/sys/block/{name}/bcache/stop", "1"))


def _crc64(data: bytes) -> int:
    value = (1 << 64) - 1
    for byte in data:
        value ^= byte << 56
        for _ in range(8):
            value = ((value << 1) ^ 0x42F0E1EBA9EA3693 if value >> 63 else value << 1) & ((1 << 64) - 1)
    return value ^ ((1 << 64) - 1)


def _drbd(bench: Bench) -> None:
    del bench
    loaded("drbd")
    if run("sh", "-c", "command -v drbdsetup", check=False).returncode:
        raise CannotMakeError("the guest's image has no drbd-utils, and the kernel takes DRBD's metadata from them")


def _zram(bench: Bench) -> None:
    """Memory pages that the kernel writes out to a drive."""
    bench.later("modprobe", "-r", "zram")
    loaded("zram")
    bench.touched.add("a")
    put("/sys/block/zram0/backing_dev", bench.node())
    put("/sys/block/zram0/disksize", "16M")
    bench.undo.append(lambda: put("/sys/block/zram0/reset", "1"))


def _panic_record(bench: Bench) -> None:
    """Where the kernel writes its log when it panics."""
    bench.later("modprobe", "-r", "pstore_blk")
    loaded("pstore_blk", f"blkdev={bench.node()}", "best_effort=1")
    bench.touched.add("a")


def _flash(bench: Bench) -> None:
    bench.later("modprobe", "-r", "block2mtd")
    loaded("block2mtd", f"block2mtd={bench.node()},65536")


MD_MADE = "md array md77 (raid{}) is made of it"
_LINEAR = "device-mapper volume sqstack (dm-"

STACKS = [
    State("md RAID 0", MD_MADE.format(0), _array("0", "a", "b")),
    State("md RAID 1, degraded", MD_MADE.format(1), _array("1", "a", "missing")),
    State("md RAID 4", MD_MADE.format(4), _array("4", "a", "b", "c", more=("--assume-clean",))),
    State("md RAID 5, degraded", MD_MADE.format(5), _array("5", "a", "b", "missing", more=("--assume-clean",))),
    State("md RAID 6, degraded", MD_MADE.format(6), _array("6", "a", "b", "c", "missing", more=("--assume-clean",))),
    State("md RAID 10", MD_MADE.format(10), _array("10", "a", "b", more=("--assume-clean",))),
    State("md linear", "md array md77 (linear) is made of it", _array("linear", "a", "b")),
    State("md array without metadata", MD_MADE.format(0), _built),
    State("md member, metadata 0.90, running", MD_MADE.format(1), _array("1", "a", "b", metadata="0.90")),
    State("md spare", MD_MADE.format(1), _spare),
    State("md member that failed", MD_MADE.format(1), _faulty),
    State("md member that was taken out", "(linux_raid_member", _removed),
    State("md array that is not started", "md array md77 (", _inactive),
    State("md container of DDF, running", "md array md78 (", _container("ddf")),
    State("md container of IMSM, running", "md array md78 (", _container("imsm")),
    State("LVM physical volume without a group", "(LVM2_member", _volume_alone),
    State("LVM volume group without volumes", "(LVM2_member", _group_without_volumes),
    State(
        "LVM stripe",
        "LVM volume sqguard-data (dm-",
        _volumes(("lvcreate", "-Wn", "-Zn", "-i", "2", "-L", "64M", "-n", "data", "sqguard")),
        BOTH,
    ),
    State(
        "LVM RAID volume",
        "LVM volume sqguard-data_rimage_0 (dm-",
        _volumes(
            ("lvcreate", "-Wn", "-Zn", "--type", "raid1", "--nosync", "-L", "64M", "-n", "data", "sqguard"),
            modules=("dm-raid", "raid1"),
        ),
    ),
    State(
        "LVM snapshot",
        "LVM volume sqguard-snap",
        _volumes(
            (*_SMALL, "sqguard"),
            ("lvcreate", "-s", "-L", "32M", "-n", "snap", "sqguard/data"),
            modules=("dm-snapshot",),
            letters="a",
        ),
    ),
    State(
        "LVM volume cached on it",
        "LVM volume sqguard-",
        lambda b: _volumes(
            (*_SMALL, "sqguard", b.node("b")),
            ("lvcreate", "-Wn", "-Zn", "-L", "32M", "-n", "fast", "sqguard", b.node("a")),
            ("lvconvert", "--type", "writecache", "--cachevol", "fast", "sqguard/data"),
            modules=("dm-writecache",),
        )(b),
    ),
    State("below a thin pool", _LINEAR, _mapping(_thin, "dm-thin-pool", touched="ab")),
    State(
        "below dm-cache",
        _LINEAR,
        _mapping(
            _table("0 65536 cache {a} {b} {c} 512 1 writethrough smq 0"), "dm-cache", "dm-cache-smq", touched="abc"
        ),
    ),
    State("below dm-era", _LINEAR, _mapping(_table("0 65536 era {b} {a} 1024"), "dm-era", touched="ab")),
    State(
        "below dm-writecache",
        _LINEAR,
        _mapping(_table("0 65536 writecache s {b} {a} 4096 0"), "dm-writecache", touched="ab"),
    ),
    State("below dm-snapshot-origin", _LINEAR, _mapping(_table("0 65536 snapshot-origin {a}"), "dm-snapshot")),
    State(
        "copy-on-write store of a snapshot",
        _LINEAR,
        _mapping(_table("0 65536 snapshot {b} {a} P 16"), "dm-snapshot", touched="ab"),
    ),
    State(
        "below dm-mirror",
        _LINEAR,
        _mapping(_table("0 65536 mirror core 2 1024 nosync 2 {a} 0 {b} 0"), "dm-mirror", touched="ab"),
        BOTH,
    ),
    State("below dm-striped", _LINEAR, _mapping(_table("0 65536 striped 2 128 {a} 0 {b} 0"), touched="ab"), BOTH),
    State("below dm-delay", _LINEAR, _mapping(_table("0 65536 delay {a} 0 10"), "dm-delay")),
    State("below dm-flakey", _LINEAR, _mapping(_table("0 65536 flakey {a} 0 10 0"), "dm-flakey")),
    State(
        "log of dm-log-writes", _LINEAR, _mapping(_table("0 65536 log-writes {b} {a}"), "dm-log-writes", touched="ab")
    ),
    State("below dm-unstripe", _LINEAR, _mapping(_table("0 65536 unstriped 2 128 0 {a} 0"), "dm-unstripe")),
    State(
        "below dm-switch",
        _LINEAR,
        _mapping(_table("0 65536 switch 2 128 0 {a} 0 {b} 0"), "dm-switch", touched="ab"),
        BOTH,
    ),
    State(
        "below a device-mapper table that is not yet live", "device-mapper volume sqwait (dm-", _table_not_yet_live
    ),
    State("dm-integrity, open", "sqinteg (dm-", _integrity),
    State("dm-verity, open", "sqverity (dm-", _verity),
    State("LUKS1, open", "encrypted volume sqluks (dm-", _opened("luks1")),
    State("LUKS2, open", "encrypted volume sqluks (dm-", _opened("luks2")),
    State("below five layers, the top one mounted", f"is mounted on {MOUNT} (ext4)", _on_a_volume_on_a_partition),
    State("backing device of a running bcache", "bcache device bcache", _bcache_running),
    State("below DRBD", "DRBD device drbd", _drbd),
    State("backing store of zram", "holds it exclusively", _zram),
    State("where the kernel writes when it panics", "holds it exclusively", _panic_record),
    State("below a block2mtd flash", "holds it exclusively", _flash),
]
