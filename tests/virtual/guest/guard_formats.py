# SPDX-License-Identifier: Apache-2.0
"""States of drives that hold a format of the field, made by its tool, or as far as a reader of labels looks."""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING

from guard_state import EXT4, State
from guard_tools import MIB, MOUNT, Bench, gpt, partition_table, poke, run, unsettled

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST = "it holds data of an unknown kind in its first"
_LAST = "it holds data of an unknown kind in its last"
_KEY = "0123456789abcdef0123456789abcdef"


def _made(*argv: str) -> Callable[[Bench], None]:
    return lambda bench: bench.made(argv[0], *argv[1:], bench.node())


def _poked(*pieces: tuple[int, bytes]) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        for offset, data in pieces:
            bench.poke(offset, data)

    return arrange


def _label(kind: str) -> Callable[[Bench], None]:
    """A partition table by parted, with a partition where the table holds one at that place."""

    def arrange(bench: Bench) -> None:
        bench.made(*unsettled("parted", "-s", bench.node(), "mklabel", kind))
        # some kinds have partitions from the start; they are gone when the kernel reads the table again
        bench.later("blockdev", "--rereadpt", bench.node())
        bench.undo.append(lambda: poke(bench.node(), (0, bytes(MIB)), (-MIB, bytes(MIB))))

    return arrange


def _gpt_by_parted(bench: Bench) -> None:
    _label("gpt")(bench)


def _gpt_backup_alone(bench: Bench) -> None:
    """The first sectors zeroed, as `dd` of one MiB does; the copy at the end is still there."""
    _gpt_by_parted(bench)
    bench.poke(0, bytes(MIB))


def _hybrid(bench: Bench) -> None:
    """A GUID table whose first sector also names a partition of its own, as boot sticks have it."""
    gpt(bench)
    bench.poke(0, partition_table(512))


def _mbr_in_the_last_entry(bench: Bench) -> None:
    table = bytearray(partition_table(512))
    entry, table[446:462] = table[446:462], bytes(16)
    table[494:510] = entry
    bench.poke(0, bytes(table))


def _luks(version: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        bench.touched.add("a")
        run("cryptsetup", "luksFormat", "-q", "--type", version, "--pbkdf", "pbkdf2", "--pbkdf-force-iterations",
            "1000", bench.node(), text=_KEY)  # fmt: skip

    return arrange


def _luks_second_header(bench: Bench) -> None:
    """The first header lost: LUKS2 keeps a copy 16 KiB further on."""
    _luks("luks2")(bench)
    bench.poke(0, bytes(4096))


def _integrity(bench: Bench) -> None:
    bench.touched.add("a")
    run("integritysetup", "format", "-q", "--no-wipe", bench.node())


def _verity(bench: Bench) -> None:
    bench.touched |= {"a", "b"}
    run("veritysetup", "format", "--data-blocks=64", bench.node("b"), bench.node("a"))


def _btrfs_member(bench: Bench) -> None:
    bench.touched |= {"a", "b"}
    run("mkfs.btrfs", "-q", "-f", "-K", "-d", "single", "-m", "raid1", bench.node("b"), bench.node("a"))


def _xfs_log(bench: Bench) -> None:
    bench.touched |= {"a", "b"}
    run("mkfs.xfs", "-q", "-f", "-K", "-l", f"logdev={bench.node('a')},size=64m", bench.node("b"))


def _brick(bench: Bench) -> None:
    """What GlusterFS puts on the root of a brick, which is an XFS."""
    bench.made("mkfs.xfs", "-q", "-f", "-K", bench.node())
    bench.mount(bench.node())
    os.setxattr(MOUNT, "trusted.glusterfs.volume-id", bytes(range(16)))
    run("umount", MOUNT)


def _zfs_at_the_end(bench: Bench) -> None:
    """The front labels lost; the last two lie in the last 512 KiB."""
    uberblock = (0x00BAB10C).to_bytes(8, "little") + (5000).to_bytes(8, "little")
    for label in (-(512 << 10), -(256 << 10)):
        bench.poke(label + (128 << 10), uberblock.ljust(1024, b"\0") * 8)


def _lvm_label(sector: int) -> Callable[[Bench], None]:
    rest = (struct.pack("<I", 32) + b"LVM2 001" + b"x" * 32).ljust(492, b"\0")
    digest = zlib.crc32(rest, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    return _poked((sector * 512, b"LABELONE" + struct.pack("<QI", sector, digest) + rest))


def _member(metadata: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        bench.touched |= {"a", "b"}
        run("mdadm", "--create", "/dev/md77", "--run", "--force", "--level=1", "--raid-devices=2", "--assume-clean",
            f"--metadata={metadata}", "--homehost=any", bench.node("a"), bench.node("b"))  # fmt: skip
        run("mdadm", "--stop", "/dev/md77")

    return arrange


def _container(kind: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        bench.touched |= {"a", "b"}
        os.environ.update(IMSM_NO_PLATFORM="1", IMSM_DEVNAME_AS_SERIAL="1")
        run("mdadm", "--create", "/dev/md78", "--run", "--force", f"--metadata={kind}", "--raid-devices=2",
            bench.node("a"), bench.node("b"))  # fmt: skip
        run("mdadm", "--stop", "/dev/md78")

    return arrange


def _journal(bench: Bench) -> None:
    bench.made("mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "4096", bench.node(), "8192")


def _ext4_backup(bench: Bench) -> None:
    """The first superblock lost; the first copy of a file system with blocks of 1 KiB is at 8 MiB."""
    bench.made(*EXT4, "-b", "1024", bench.node(), "65536k")
    bench.poke(0, bytes(1 * MIB))


def _wiped(bench: Bench) -> None:
    """wipefs takes the magic numbers away and leaves the data."""
    bench.made(*EXT4, bench.node(), "65536k")
    run("wipefs", "-q", "-a", bench.node())


def _kernel_only(bench: Bench) -> None:
    """A partition that was added to the kernel by hand, with no table on the drive, and only its middle in use."""
    name = bench.node()
    run("addpart", name, "1", "204800", "2048")
    bench.later("delpart", name, "1")


def _bcachefs(bench: Bench) -> None:
    magic = bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")
    bench.poke(4096, bytes(16) + struct.pack("<HH", 28, 28) + bytes(4) + magic + b"\1" * 64)


_NTFS = (
    (
        0,
        b"\xebR\x90NTFS    "
        + struct.pack("<HB7xB18xQQQb3xb3xQ", 512, 8, 0xF8, (1 << 20) - 1, 4, 8, -10, 1, 7).ljust(499, b"\0")
        + b"\x55\xaa",
    ),
    # the first record of the table of files, that of the volume, and the copy of the first
    *((place, b"FILE".ljust(1024, b"\0")) for place in (16384, 16384 + 3 * 1024, 32768)),
)  # fmt: skip

_MAGIC = {
    "hibernation image": ((4096 - 10, b"S1SUSPEND"), "(swsuspend"),
    "crash dump area": ((0, b"KDUMP   " + struct.pack("<I", 6)), _FIRST),
    "ISO image": ((32768, b"\x01CD001\x01".ljust(2048, b"\0")), "iso9660"),
    "VMFS without its volume label": ((0x200000, b"\x5e\xf1\xab\x2f"), "(VMFS"),
    "ReiserFS": ((65536, bytes(44) + struct.pack("<H", 4096) + bytes(6) + b"ReIsEr2Fs" + bytes(100)), _FIRST),
    "exFAT": ((0, (b"\xebv\x90EXFAT   " + bytes(53)).ljust(510, b"\1") + b"\x55\xaa"), "(exfat)"),
    "HFS+": ((1024, b"H+\0\4" + bytes(36) + struct.pack(">I", 4096) + bytes(400)), "(hfsplus)"),
    "APFS": ((0, bytes(32) + b"NXSB" + struct.pack("<I", 4096) + bytes(64)), _FIRST),
    "F2FS": ((1024, struct.pack("<IHH", 0xF2F52010, 1, 14) + bytes(1024)), "(f2fs"),
    "BitLocker": ((0, b"\xebX\x90-FVE-FS-".ljust(510, b"\0") + b"\x55\xaa"), "it has a partition table (dos)"),
    "SquashFS": ((0, b"hsqs" + bytes(24) + struct.pack("<HH", 4, 0) + bytes(64)), "(squashfs"),
    "JFS": ((32768, b"JFS1" + struct.pack("<I", 1) + b"\1" * 128), _FIRST),
    "OCFS2": ((0x2000, b"OCFSV2" + bytes(58)), "(ocfs2"),
    "GFS2": ((0x10000, b"\x01\x16\x19\x70" + bytes(60)), "(gfs2"),
    "VDO": ((0, b"dmvdo001" + bytes(60) + b"\1"), "(vdo"),
    "Stratis": ((512, b"\1\2\3\4!Stra0tis\x86\xff\x02^\x41rh" + bytes(32)), _FIRST),
    "label of an unknown array in the last sector": ((-512, b"RAIDLABEL"), _LAST),
    "Promise firmware RAID at the end": ((-63 * 512, b"Promise Technology, Inc."), "(promise_fasttrack_raid_member"),
    "Storage Spaces": ((4096, b"SPACEDB "), _FIRST),
}  # fmt: skip
"""By name: place and bytes, and words of the refusal: some readers of labels know the format, others see data."""

LABELS = [
    *(State(name, says, _poked(piece)) for name, (piece, says) in _MAGIC.items()),
    State("bcachefs member", _FIRST, _bcachefs),
    State("NTFS", "holds a file system (ntfs)", _poked(*_NTFS)),
    State("ZFS pool member, labels at the end alone", "(zfs_member", _zfs_at_the_end),
    *(State(f"LVM2 label in sector {sector}", "(LVM2_member", _lvm_label(sector)) for sector in range(4)),
    State("hybrid MBR", "it has a partition table (", _hybrid),
    State("MBR, fourth entry alone", "it has a partition table (dos)", _mbr_in_the_last_entry),
]
"""Formats that are made by their bytes alone, so that they can be looked at in any file."""

FORMATS = [
    State("unmounted ext2", "holds a file system (ext2)", _made("mkfs.ext2", "-q", "-F")),
    State("unmounted Minix", "(minix", _made("mkfs.minix")),
    State("unmounted BFS", "(bfs", _made("mkfs.bfs")),
    State("GlusterFS brick", "holds a file system (xfs)", _brick),
    State("external journal of an ext4 that is not mounted", "(jbd", _journal),
    State("external log of an XFS that is not mounted", "it holds", _xfs_log),
    State("second device of a btrfs that is not mounted", "holds a file system (btrfs)", _btrfs_member),
    State("ext4 whose first superblock is lost", _FIRST, _ext4_backup),
    State("ext4 after wipefs", _FIRST, _wiped),
    *(
        State(f"md member, metadata {metadata}, array stopped", "(linux_raid_member", _member(metadata))
        for metadata in ("0.90", "1.1", "1.2")
    ),
    State("member of a DDF container", "(ddf_raid_member", _container("ddf")),
    State("member of an IMSM container", "(isw_raid_member", _container("imsm")),
    State("LUKS1, closed", "holds encrypted data (crypto_LUKS)", _luks("luks1")),
    State("LUKS2, closed", "holds encrypted data (crypto_LUKS)", _luks("luks2")),
    State("LUKS2 whose first header is lost", "it ", _luks_second_header),
    State("dm-integrity, closed", "it ", _integrity),
    State("dm-verity hashes", "(DM_verity_hash", _verity),
    State("GPT by parted", "it has a partition table (gpt)", _gpt_by_parted),
    State("GPT backup at the end alone", "it ", _gpt_backup_alone),
    *(
        State(f"partition table of kind {kind}", "it ", _label(kind))
        for kind in ("bsd", "mac", "sun", "dvh", "amiga")
    ),
    State("partition that only the kernel knows of", "the kernel knows partitions of it", _kernel_only),
]
