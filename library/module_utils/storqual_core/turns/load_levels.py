# SPDX-License-Identifier: Apache-2.0
"""What a data load reaches, as names of levels, and what each is on a drive: sizes, addresses, ways, memory.

The names are the same for every drive, so that a plan can combine them and a report can count them. What a name means
follows from the drive and its queue, which only the bench knows: a level that a drive, its adapter or its kernel does
not have is told with the reason. Nothing here reads or writes a drive. All sizes and addresses are in sectors of 512
bytes, in whole blocks of the drive.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Iterator, Mapping, Sequence

from ..host.sysfs import SysfsDrive
from ..kit.machine import Machine

_HIGHEST = 13
NO_REQUEST = "longer than the longest request"
"""What the reason begins with why a power of two is no size on a drive."""
_PAGE_SECTORS = 8

SIZES = (
    "2^0",
    "2^1",
    *(f"2^{power}{more}" for power in range(2, _HIGHEST + 1) for more in ("-1", "", "+1")),
    *(f"{limit}{more}" for limit in ("limit", "segments", "hard") for more in ("-1", "", "+1")),
    "double",
    *(f"drawn{number}" for number in (1, 2, 3)),
)
"""In blocks: powers of two with a block less and more; `limit` is the longest request that the kernel sends, `hard`
the longest that the driver takes, `segments` as many pages as a request may have segments; `double` two limits;
`drawn` another length each time."""
_BOUNDARIES = (16, 20, 21, 22, 24, 28, 31, 32, 33, 36)
PLACES = ("start", "end", *(f"2^{power}" for power in _BOUNDARIES), "drawn1", "drawn2")
"""Where a write lies: at an end of what may be written, at so many sectors, or anywhere."""
SIDES = ("below", "across", "above")
"""Of the boundary of its place: it ends there, crosses it, or begins there."""
WAYS = ("direct", "dsync", "buffered", "range", "mmap", "uring", "polled", "sg10", "sg16")
"""How a write enters the kernel: O_DIRECT, with RWF_DSYNC (a write through the cache, or a flush after it), buffered
with fdatasync, with sync_file_range, mapped with msync, io_uring with fixed buffers, the same on queues that are
polled, WRITE(10) and (16) by SG_IO."""
SHAPES = ("aligned", "offset", "segments", "one_page", "huge", "straddle", "across4g", "mixed4g")
"""What its memory is: pages; at an offset in its first page; many pieces at offsets; one page many times; a huge
page; across a boundary of 64 KiB of a huge page; across the address of 4 GiB; pages below and above 4 GiB of the
machine's memory by turns."""
READS = ("direct", "buffered", "mmap", "uring", "polled", "sg10", "sg16", "verify")
"""How it is read back: as for WAYS; `verify` has the drive compare it, or read it without handing it over."""
COMMANDS = (
    *("write6", "write12", "write_verify10", "write_verify16", "write_same10", "write_same16"),
    *("compare_and_write", "zeroout", "discard", "unmap", "unmap_parts", "read6", "read12"),
)
"""Commands that are seldom sent, each once at least with every size and place of its own; `unmap_parts` is an UNMAP
of several ranges, with blocks between them that stay."""
COMMAND_SIZES = ("2^0", "2^1", "2^3", "2^5+1", "2^7", "2^8")
LAYERS = ("ext4", "btrfs", "crypt", "integrity")
"""What of the kernel's own is loaded on top of a drive: a file system with checksums of its metadata, one with
checksums of all, dm-crypt, and dm-integrity, which has checksums below everything."""
FIRST_LAYER, LAYER_S = 64, 60.0
"""The number of the first of them, in place of a drive's, in what is told; how long one may take (seconds)."""
FACTORS: Mapping[str, Sequence[str]] = {
    "size": SIZES,
    "place": PLACES,
    "side": SIDES,
    "way": WAYS,
    "shape": SHAPES,
    "read": READS,
}
COMMAND_FACTORS: Mapping[str, Sequence[str]] = {"size": COMMAND_SIZES, "place": PLACES, "command": COMMANDS}


@dataclass(frozen=True)
class QueueLimits:
    """What a drive's queue says of itself: sectors of 512 bytes, `alignment` and `segment_bytes` in bytes.

    `fua`: writes through the cache are one command; 0 for a `discard` or `zeroes` that it does not have. `compare`
    are the blocks that COMPARE AND WRITE takes. `keeps_zeros`: what is unmapped reads as zeros. `polls`: it can be
    asked for completions instead of waiting for an interrupt. `protection` is the type of T10 protection information
    that the drive is formatted with (0 for none), `integrity` the folder of sysfs that says who makes and checks it,
    `inserts` whether what is below the kernel makes it too.
    """

    block: int = 1
    limit: int = 2560
    hard: int = 2560
    segments: int = 128
    segment_bytes: int = 65536
    alignment: int = 512
    depth: int = 32
    fua: bool = False
    scsi: bool = True
    discard: int = 0
    zeroes: int = 0
    keeps_zeros: bool = False
    compare: int = 0
    polls: bool = False
    protection: int = 0
    integrity: str = ""
    inserts: bool = True


def read_limits(machine: Machine, drive: SysfsDrive) -> QueueLimits:
    """The limits of a drive as the kernel has them now; an older kernel's missing ones are the safe ones."""
    queue = f"/sys/block/{drive.name}/queue"

    def number(name: str, default: int) -> int:
        value = machine.number(f"{queue}/{name}")
        return default if value is None else value

    block = max(1, number("logical_block_size", 512) // 512)
    # as the kernel read it by READ CAPACITY(16): PROT_EN and P_TYPE
    protection = machine.number(f"/sys/block/{drive.name}/device/scsi_disk/{drive.hctl}/protection_type")
    integrity = f"/sys/block/{drive.name}/integrity"
    if machine.text(f"{integrity}/format") in ("", "none", "nop"):
        integrity = ""
    limit = number("max_sectors_kb", 512) * 2
    host = machine.number(f"/sys/class/scsi_host/{drive.host}/can_queue") if drive.host else None
    provisioning = machine.read(f"/sys/block/{drive.name}/device/vpd_pgb2") or b""
    block_limits = machine.read(f"/sys/block/{drive.name}/device/vpd_pgb0") or b""
    return QueueLimits(
        compare=block_limits[5] if len(block_limits) > 5 else 0,
        block=block,
        limit=limit // block * block,
        hard=number("max_hw_sectors_kb", limit // 2) * 2 // block * block,
        segments=number("max_segments", 64),
        segment_bytes=number("max_segment_size", 4096),
        # the kernel makes protection information of whole blocks of memory; later ones say so themselves
        alignment=max(number("dma_alignment", 511) + 1, block * 512 if integrity else 0),
        depth=max(number("nr_requests", 32), host or 0),
        fua=machine.text(f"{queue}/fua") == "1",
        protection=protection or 0,
        integrity=integrity,
        inserts=machine.text(f"/sys/class/scsi_host/{drive.host}/proc_name") != "scsi_debug",
        polls=machine.text(f"{queue}/io_poll") == "1",
        scsi=bool(drive.hctl),
        discard=number("discard_max_bytes", 0) // 512,
        zeroes=number("write_zeroes_max_bytes", 0) // 512,
        keeps_zeros=len(provisioning) > 5 and bool(provisioning[5] & 0x04),
    )


def drawn_size(limits: QueueLimits, most: int, share: float) -> int:
    """Sectors of any length up to the longest request: that at a share, from 0 to 1, of all octaves."""
    blocks = max(1, min(limits.limit, most) // limits.block)
    return min(blocks, int(2 ** (share * math.log2(blocks + 1)))) * limits.block


def size_of(level: str, limits: QueueLimits, most: int, share: float = 0.5) -> tuple[int, str]:
    """Sectors of a size, or 0 and why there is none: nothing is longer than `most`; `share` as for drawn_size."""
    if level.startswith("drawn"):
        return drawn_size(limits, most, share), ""
    name, more = level, 0
    if level[-2:] in ("-1", "+1"):
        name, more = level[:-2], int(level[-2:])
    block = limits.block
    if name.startswith("2^"):
        sectors = (1 << int(name[2:])) * block
        if sectors > limits.limit:
            return 0, f"{NO_REQUEST} ({limits.limit // 2} KiB)"
    elif name == "double":
        sectors = 2 * limits.limit + block
    else:
        pages = max(_PAGE_SECTORS, block)
        sectors = {"limit": limits.limit, "hard": limits.hard, "segments": limits.segments * pages}[name]
        if name == "segments" and sectors > max(limits.limit, 2 * block):
            return 0, f"{limits.segments} segments of a page are longer than the longest request"
    sectors += more * block
    if sectors > most:
        return 0, f"{sectors // 2} KiB are longer than the {most // 2} KiB that this load has at most"
    return sectors, ""


@dataclass(frozen=True)
class Region:
    """A place with its sectors; `anchor` is the boundary that its writes lie at."""

    name: str
    first: int
    sectors: int
    anchor: int

    @property
    def end(self) -> int:
        return self.first + self.sectors

    def begin_of(self, length: int, side: str, block: int) -> int:
        """Where a write of `length` sectors begins on that side of the anchor."""
        if side == "below":
            return self.first if self.name == "start" else self.anchor - length
        if side == "above":
            return self.end - length if self.name == "end" else self.anchor
        return self.anchor - max(length // 2 // block, 1 if length > block else 0) * block


def regions_of(first: int, end: int, span: int, seed: int, taken: Sequence[Region] = ()) -> list[Region]:
    """The places that lie within sectors `first` to `end`, each `span` sectors to both sides of its anchor.

    `taken` are parts that are something else's.
    """
    draw = random.Random(f"{seed}/places")  # noqa: S311 - a drawn load, no secret
    anchors = {"start": first + span, "end": end - span}
    anchors.update((f"2^{power}", 1 << power) for power in _BOUNDARIES)
    for number in (1, 2):
        anchors[f"drawn{number}"] = draw.randrange(first + span, max(first + span + 1, end - span)) // 8 * 8
    placed: list[Region] = []
    for name in ("start", "end", *sorted(anchors, key=lambda anchor: -anchors[anchor])):
        region = Region(name, anchors[name] - span, 2 * span, anchors[name])
        others = [*placed, *taken]
        if region.first < first or region.end > end:
            continue
        if all(region.end <= other.first or region.first >= other.end for other in others):
            placed.append(region)
    return sorted(placed, key=lambda area: PLACES.index(area.name))


def reached_places(first: int, end: int, span: int, seed: int) -> list[str]:
    """The names of the places that a drive has room for."""
    return [region.name for region in regions_of(first, end, span, seed)]


def alias_places(regions: Sequence[Region], first: int, end: int, block: int, grid: int, most: int) -> list[int]:
    """Blocks that nothing of the load writes a second time, where a write lands whose address went wrong.

    For the anchor of each region, and the block before it: the address cut to n bits, and a power of two higher or
    lower; and `grid` blocks evenly spread at one phase, which an address that wraps at a round capacity meets.
    """
    candidates: list[int] = []
    for region in regions:
        for probe in (region.anchor, region.anchor - block):
            for power in range(13, 42):
                if 1 << power < 2 * end:
                    candidates += [probe & ((1 << power) - 1), probe + (1 << power), probe - (1 << power)]
    step = max(block, (end - first) // max(1, grid) // 2048 * 2048)
    anchor = regions[0].anchor if regions else first
    candidates += range(first + (anchor - first) % step, end, step)
    free = [
        place
        for place in dict.fromkeys(place // block * block for place in candidates)
        if first <= place <= end - block and not any(area.first <= place < area.end for area in regions)
    ]
    return sorted(free[:most])


def parts_of(first: int, sectors: int, block: int) -> list[tuple[int, int]]:
    """Up to three ranges of these sectors, as first sector and how many, with a block between one and the next."""
    number = min(3, (sectors // block + 1) // 2)
    part = (sectors // block - number + 1) // number
    ranges = [(first + at * (part + 1) * block, part * block) for at in range(number)]
    begin = ranges[-1][0]
    return [*ranges[:-1], (begin, first + sectors - begin)]


def widths(total: int, block_bytes: int, most: int, draw: random.Random) -> Iterator[int]:
    """Odd lengths in whole blocks that sum to `total` bytes, at most `most` of them."""
    blocks, left = total // block_bytes, most
    while blocks:
        least = -(-blocks // left)
        length = min(blocks, max(least, draw.randint(1, 8)))
        yield length * block_bytes
        blocks, left = blocks - length, left - 1
