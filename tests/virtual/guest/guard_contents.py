# SPDX-License-Identifier: Apache-2.0
"""States of drives with something on them that nobody uses: file systems, members, tables, unknown data, stamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guard_state import EXT4, NVME, State
from guard_tools import MIB, Bench, gpt, partition_table, run, with_partition, zfs

from storqual_core.guard.signatures import make_stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_UNKNOWN = "it holds data of an unknown kind in its"


def _unmounted(*argv: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        bench.made(argv[0], *argv[1:], bench.node())

    return arrange


def _unmounted_partition(bench: Bench) -> str:
    node = with_partition(bench)
    run(*EXT4, node)
    return node


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
    bench.made(*EXT4, bench.node(), "65536k")


def _one_stamp(bench: Bench) -> None:
    _stamped(bench, ends=["end"])
    bench.poke(5 * MIB, b"somebody's data")


def _nvme_unmounted(bench: Bench) -> str:
    bench.made(*EXT4, bench.node("n"), "65536k", letter="n")
    return bench.node("n")


def _poked(offset: int, data: bytes) -> Callable[[Bench], None]:
    return lambda bench: bench.poke(offset, data)


def _luks(bench: Bench) -> None:
    bench.poke(0, b"LUKS\xba\xbe\x00\x01" + bytes(160) + b"2f4cd5b2-1d5a-4a90-9f4b-6c3b1f0a2d11")


CONTENTS = [
    State("unmounted ext4", "holds a file system (ext4)", _unmounted(*EXT4)),
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
    State("NVMe drive with unmounted ext4", "holds a file system (ext4)", _nvme_unmounted, NVME),
]
