# SPDX-License-Identifier: Apache-2.0
"""What is on a drive: known formats, storqual's stamps and ledger, unknown data; and what a guard makes of it.

The first and the last MiB of a claimed drive belong to the guard: a 4 KiB stamp at the very start and at the very
end, zeros in the rest. fio is given the window between (`window`), so the stamps outlive any campaign.

- A stamp is eight copies of one 512-byte record. A sector is written whole or not at all, so after a power cut in the
  middle of a stamp each sector is a valid record or what was there before.
- A record names the drive and its size. A copy of a stamped drive (`dd`) is therefore no scratch drive.
- Of an empty drive the end is stamped first, then the start, each flushed. One stamp beside an otherwise empty drive
  is an interrupted stamping; one stamp beside data is data.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Collection, Mapping, Sequence

from ..kit.command import Runner, run
from ..kit.durable import make_folder, replace_json
from ..kit.errors import StorqualError, ToolError
from ..kit.machine import Machine, block_node, visible
from ..tools.blkid import FormatSignature, probe
from .claims import Claim, VolumeClaim

STAMP = 4096
"""Bytes of one stamp."""
AREA = 1 << 20
"""Bytes at each end that belong to the guard."""
_SECTOR = 512
_MAGIC = b"storqual scratch"
_VERSION = 1
# magic, version, which end, size of the drive, length of id, id, length of run id, run id; then SHA-256 of all that
_HEAD = struct.Struct("<16sHcxQH256sH128s")


@dataclass(frozen=True)
class Window:
    """What fio may touch of a target: bytes."""

    offset: int
    size: int


def window(size: int) -> Window:
    """What lies between the guard's areas of a drive of `size` bytes, in whole MiB. ValueError when nothing does."""
    inner = (size - 2 * AREA) // AREA * AREA
    if inner <= 0:
        raise ValueError(f"a drive of {size} bytes is too small: the guard keeps 1 MiB at each end")
    return Window(AREA, inner)


def make_stamp(drive: str, size: int, *, end: str, run: str = "") -> bytes:
    """The 4096 bytes for the `start` or the `end` of a drive. Raises ValueError for a name that does not fit."""
    name, campaign = drive.encode("utf-8"), run.encode("utf-8")[:128]
    if not name or len(name) > 256:
        raise ValueError(f"{drive!r} is not a drive name of 1 to 256 bytes")
    if end not in ("start", "end"):
        raise ValueError(f"{end!r} is neither start nor end")
    head = _HEAD.pack(_MAGIC, _VERSION, end[:1].encode(), size, len(name), name, len(campaign), campaign)
    record = (head + hashlib.sha256(head).digest()).ljust(_SECTOR, b"\0")
    return record * (STAMP // _SECTOR)


def _record_is_valid(record: bytes, drive: bytes, size: int, end: bytes) -> bool:
    head, digest = record[: _HEAD.size], record[_HEAD.size : _HEAD.size + 32]
    if hashlib.sha256(head).digest() != digest:
        return False
    magic, version, which, found_size, length, name, _, _ = _HEAD.unpack(head)
    return (magic, version, which, found_size, name[:length]) == (_MAGIC, _VERSION, end, size, drive)


def read_stamp(block: bytes, drive: str, size: int, *, end: str) -> str:
    """What 4096 bytes from an end of a drive are: `stamp`, `foreign` (another drive's stamp), `empty` or `data`."""
    if not any(block):
        return "empty"
    name = drive.encode("utf-8")
    valid = foreign = other = 0
    for place in range(0, STAMP, _SECTOR):
        record = block[place : place + _SECTOR]
        if not any(record):
            continue
        if _record_is_valid(record, name, size, end[:1].encode()):
            valid += 1
        elif record.startswith(_MAGIC):
            foreign += 1
        else:
            other += 1
    if foreign:
        return "foreign"
    return "stamp" if valid and not other else "data"


def write_stamps(path: str, drive: str, size: int, *, run: str = "", clear: bool = False) -> None:
    """Stamp both ends of a device: the end first, then the start, each on the medium before the next step.

    With `clear` the rest of the guard's areas is zeroed: at the start after its stamp, so that at every moment either
    what was made there is known by its UUID, or a stamp is in place. Raises OSError, ValueError.
    """
    zeros = bytes(AREA - STAMP)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if clear:
            _write(descriptor, zeros, size - AREA)
        _write(descriptor, make_stamp(drive, size, end="end", run=run), size - STAMP)
        os.fsync(descriptor)
        _write(descriptor, make_stamp(drive, size, end="start", run=run), 0)
        os.fsync(descriptor)
        if clear:
            _write(descriptor, zeros, STAMP)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, offset)
        offset += done
        view = view[done:]


_SCHEMA = "storqual.made/1"


@dataclass(frozen=True)
class Ledger:
    """UUIDs made per drive, drives that are just being cleared, and drives lent to a program that writes anywhere."""

    path: Path
    made: Mapping[str, frozenset[str]] = field(default_factory=dict)
    restamping: frozenset[str] = frozenset()
    lent: frozenset[str] = frozenset()

    @classmethod
    def read(cls, state_dir: str) -> Ledger:
        """The ledger of a bench; empty when nothing was ever made. Raises StorqualError when it cannot be read."""
        path = Path(state_dir) / "made.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            kept = document[_SCHEMA]
            made = {str(drive): frozenset(map(str, uuids)) for drive, uuids in kept["made"].items()}
            lent = frozenset(map(str, kept.get("lent", ())))
            return cls(path, made, frozenset(map(str, kept["restamping"])), lent)
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as problem:
            raise StorqualError(
                f"the list of what storqual made on drives, {path}, cannot be read: {problem}"
            ) from problem

    def announce(self, *drives: str, name: str = "") -> tuple[Ledger, str]:
        """The UUID of something that is about to be made on `drives`, a new one or `name`.

        It is on disk before this returns.
        """
        name = name or str(uuid.uuid4())
        added = {drive: self.made.get(drive, frozenset()) | {name} for drive in drives}
        return replace(self, made={**self.made, **added}).written(), name

    def clearing(self, drive: str) -> Ledger:
        """`drive` is about to be cleared and stamped."""
        return replace(self, restamping=self.restamping | {drive}).written()

    def lending(self, drive: str) -> Ledger:
        """`drive`, which is held, is about to be overwritten anywhere, its stamps included."""
        return replace(self, lent=self.lent | {drive}).written()

    def cleared(self, drive: str) -> Ledger:
        """`drive` is stamped and nothing made is left on it."""
        made = {name: uuids for name, uuids in self.made.items() if name != drive}
        own = {drive}
        return replace(self, made=made, restamping=self.restamping - own, lent=self.lent - own).written()

    def written(self) -> Ledger:
        make_folder(self.path.parent)
        made = {drive: sorted(uuids) for drive, uuids in sorted(self.made.items())}
        kept = {"made": made, "restamping": sorted(self.restamping), "lent": sorted(self.lent)}
        replace_json(self.path, {_SCHEMA: kept})
        return self


_NAMESPACE = uuid.UUID("5b1f5a5c-2f0e-5d0b-9f63-6d1d8c3a7e11")


def volume_uuid(members: Sequence[str]) -> str:
    """The UUID of the volume that storqual makes of these drives (by id, in any order).

    The same drives give the same UUID, so that a plan can name a volume that is made later, on any day.
    """
    return str(uuid.uuid5(_NAMESPACE, "\n".join(sorted(members))))


def volume_path(name: str) -> str:
    """The link that udev makes to the array with this UUID, whatever its number is after a boot."""
    digits = name.replace("-", "")
    return "/dev/disk/by-id/md-uuid-" + ":".join(digits[place : place + 8] for place in range(0, 32, 8))


def own_volumes(machine: Machine, state_dir: str, claims: Sequence[Claim]) -> tuple[VolumeClaim, ...]:
    """The running arrays on these drives that storqual made, with those of the drives that are their members.

    Raises StorqualError when the list of what storqual made cannot be read.
    """
    made = Ledger.read(machine.path(state_dir)).made
    volumes = []
    for name in machine.names("/sys/block"):
        array = machine.text(f"/sys/block/{name}/md/uuid").lower()
        members = tuple(claim.id for claim in claims if array and array in made.get(claim.id, ()))
        if members:
            volumes.append(VolumeClaim(name, block_node(name), array, members))
    return tuple(volumes)


END = 8 << 20
"""Bytes at each end in which anything that is not zero counts as data."""

_CHUNK = 256 << 10


@dataclass(frozen=True)
class Content:
    """Formats found, and the state of both ends: `empty`, `stamp`, `foreign` (another drive's stamp) or `data`.

    `stamps` are the ends whose first or last 4 KiB are this drive's stamp, whatever lies beside it; `unsteady` says
    that the ends were not the same when they were read again.
    """

    signatures: tuple[FormatSignature, ...]
    start: str
    end: str
    problem: str = ""
    stamps: tuple[str, ...] = ()
    unsteady: bool = False

    @property
    def stamped(self) -> bool:
        return (self.start, self.end) == ("stamp", "stamp")


def read_content(path: str, drive: str, size: int, *, runner: Runner = run) -> Content:
    """Look at a device or file of `size` bytes that should be the drive `drive`; never raises, problems are told.

    A stamped drive costs two reads of 1 MiB and the probe; any other drive two reads of 8 MiB.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as problem:
        return Content((), "data", "data", f"cannot be opened: {problem.strerror}")
    try:
        # what another host or an sg command wrote is not in this kernel's cache
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        # one command at a time: reading ahead gains nothing here, and old adapters take it badly
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        ends = start, end, stamps = _ends(descriptor, drive, size)
        unsteady = False
        if "data" in (start, end):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            unsteady = _ends(descriptor, drive, size) != ends
        return Content(tuple(probe(descriptor, path, runner=runner)), start, end, stamps=stamps, unsteady=unsteady)
    except OSError as problem:
        return Content((), "data", "data", f"cannot be read: {problem.strerror}")
    except ToolError as problem:
        return Content((), "data", "data", f"cannot be examined: {problem}")
    finally:
        os.close(descriptor)


UNKNOWN = "holds data of an unknown kind"

UNSTEADY = "gave other data when it was read again: drive, adapter or driver is faulty, or something writes to it"


def _ends(descriptor: int, drive: str, size: int) -> tuple[str, str, tuple[str, ...]]:
    if size < 2 * AREA:
        return _state_of(_read(descriptor, 0, size)), "empty", ()
    head, tail = _read(descriptor, 0, AREA), _read(descriptor, size - AREA, AREA)
    start = read_stamp(head[:STAMP], drive, size, end="start")
    end = read_stamp(tail[-STAMP:], drive, size, end="end")
    stamps = tuple(name for name, state in (("start", start), ("end", end)) if state == "stamp")
    if start in ("stamp", "empty") and any_set(head[STAMP:]):
        start = "data"
    if end in ("stamp", "empty") and any_set(tail[:-STAMP]):
        end = "data"
    if (start, end) == ("stamp", "stamp"):
        return start, end, stamps
    # without both stamps, everything else in the ends counts
    reach = min(END, size // 2)
    if start in ("stamp", "empty") and any_set(_read(descriptor, AREA, reach - AREA)):
        start = "data"
    if end in ("stamp", "empty") and any_set(_read(descriptor, size - reach, reach - AREA)):
        end = "data"
    return start, end, stamps


def _state_of(data: bytes) -> str:
    return "data" if any_set(data) else "empty"


def any_set(data: bytes) -> bool:
    """Whether any byte is not zero: one comparison in C, where a loop would take seconds on an emulated bench."""
    return data != bytes(len(data))


def _read(descriptor: int, offset: int, length: int) -> bytes:
    """Exactly `length` bytes. Raises OSError when the device ends before."""
    chunks = []
    while length > 0:
        chunk = os.pread(descriptor, min(length, _CHUNK), offset)
        if not chunk:
            raise OSError(5, "it ends before its stated size")
        chunks.append(chunk)
        offset += len(chunk)
        length -= len(chunk)
    return b"".join(chunks)


_USAGES = {
    "filesystem": "holds a file system",
    "raid": "is a member of a RAID, pool or volume group",
    "crypto": "holds encrypted data",
    "partition table": "has a partition table",
}


def objection(
    content: Content,
    *,
    made: Collection[str] = (),
    restamping: bool = False,
    lent: bool = False,
    member: bool = False,
) -> str:
    """Why what is on a drive forbids to overwrite it, as the rest of a sentence; `` when it may be overwritten.

    `made` are the UUIDs of what storqual itself made on this drive; `restamping` says that storqual was interrupted
    while it cleared this very drive, so that one stamp is enough; `lent` that a program to which it was given for
    overwriting never ended, so that data of no known format is that program's; `member` that the drive is part of an
    array which is named to the guard, whose initialisation or rebuild writes to it while it is read.
    """
    if content.problem:
        return content.problem
    if content.unsteady and not (member and content.signatures):
        return UNSTEADY
    foreign = [signature for signature in content.signatures if signature.uuid not in made or not signature.uuid]
    if foreign:
        return "; ".join(_words(signature) for signature in foreign)
    # a mirror copies the stamp at one member's end to the others
    if "foreign" in (content.start, content.end) and not content.signatures:
        return "carries the scratch stamp of another drive, so it is a copy of that drive"
    own = bool(content.signatures) or (restamping and bool(content.stamps)) or lent
    if own or (content.start in ("stamp", "empty") and content.end in ("stamp", "empty")):
        return ""
    where = [name for name, state in (("first", content.start), ("last", content.end)) if state == "data"]
    return f"{UNKNOWN} in its {' and its '.join(where)} 8 MiB"


def _words(signature: FormatSignature) -> str:
    label = f" labelled {visible(signature.label)}" if signature.label else ""
    return f"{_USAGES.get(signature.usage, 'holds data')} ({visible(signature.kind)}{label})"
