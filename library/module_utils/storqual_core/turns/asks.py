# SPDX-License-Identifier: Apache-2.0
"""What a launch on a file system asks for, as it stands in a batch file: which one, and how large its file is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Mapping

from .entries import EntryReader
from .fio_job import FioAsk, read_ask

KINDS = ("ext4", "xfs")
_MIB = 1 << 20
_OWN_MIB = 384
"""What a file system gets beyond its file: mkfs.xfs makes none below 300 MiB, and its log alone takes 64 MiB."""


@dataclass(frozen=True)
class FileSystemAsk:
    """One file of `file_bytes` on a fresh file system of this kind, on each drive of the launch."""

    kind: str
    file_bytes: int


def part_bytes(file_bytes: int) -> int:
    """How much of a drive a file system with a file of this size takes, in whole MiB (bytes).

    The same on every drive, large or small: so the file lies where drives are compared, and mkfs has the same to do.
    """
    return (file_bytes * 5 // 4 // _MIB + 1 + _OWN_MIB) * _MIB


def read_file_system(entry: object, where: str, problems: list[str]) -> FileSystemAsk | None:
    """The `file_system` of a launch; None where there is none, or where `problems` says what is wrong with it."""
    reader = EntryReader(where, problems)
    fields = {} if entry is None else reader.keys(entry, ("kind", "file_bytes"))
    if not fields:
        return None
    kind, size = reader.choice(fields, "kind", KINDS), reader.whole(fields, "file_bytes", _MIB, 1 << 60)
    if size % _MIB:
        reader.complain("file_bytes", size, "bytes in whole MiB")
    return FileSystemAsk(kind, size) if reader.sound else None


BY = {"iodepth": 1 << 16, "numjobs": 4096}
"""What may be raised, and how far fio can go with it."""
_PPM = 1000000
_DRAINS = 50
_BEYOND = 10


@dataclass(frozen=True)
class LatencyCap:
    """Raise `by` (iodepth, numjobs; per drive) from `least` to `most` until the response time passes `cap_ns`.

    The response time is the mean (`share_ppm` 0), or the percentile of so many parts per million.
    """

    cap_ns: int
    share_ppm: int
    by: str
    least: int
    most: int

    def runtime_s(self, response_ns: float) -> float:
        """How long a launch with several I/Os outstanding must run for such a response time to be right within 1 %.

        At its end fio waits for all that is outstanding, and gives each of them the time at which the last one came
        back: up to twice what it took. Those are the I/Os of one response time. In 50 response times they raise the
        mean by 1 %; for a percentile they must be no more than a tenth of what lies beyond it. Beyond the cap it is
        enough to know that it is passed.
        """
        drains = _DRAINS
        if self.share_ppm:
            drains = max(drains, _BEYOND * _PPM // (_PPM - self.share_ppm))
        return drains * min(response_ns, self.cap_ns) / 1e9

    def at(self, ask: FioAsk, load: int, response_ns: float = 0.0) -> FioAsk:
        """The launch of one step, from which such a response time is expected; 0 where nothing is known of it."""
        step = replace(ask, iodepth=load) if self.by == "iodepth" else replace(ask, numjobs=load)
        if step.iodepth == 1:
            return step
        return replace(step, runtime_s=max(step.runtime_s, self.runtime_s(response_ns)))


def read_latency_cap(entry: object, where: str, problems: list[str]) -> LatencyCap | None:
    """The `load` part of a launch; None where there is none, or where `problems` says what is wrong with it."""
    reader = EntryReader(where, problems)
    fields = {} if entry is None else reader.keys(entry, ("cap_ns", "share_ppm", "by", "least", "most"))
    if not fields:
        return None
    by = reader.choice(fields, "by", tuple(BY))
    cap_ns, share_ppm = reader.whole(fields, "cap_ns", 1, 10**15), reader.whole(fields, "share_ppm", 0, 999999)
    most = reader.whole(fields, "most", 1, BY[by])
    return LatencyCap(cap_ns, share_ppm, by, reader.whole(fields, "least", 1, most), most) if reader.sound else None


PURGES = ("none", "discard", "format")
MEDIA = ("all", "flash")
_PRECONDITION_KEYS = frozenset({"purge", "consent", "beside", "fill", "steady", "media"})
_MOST_VOLUME = 100


@dataclass(frozen=True)
class FillAsk:
    """Sequential writes of `bs` bytes over the whole drive, so many `times`: independent of any workload."""

    bs: int
    times: int


@dataclass(frozen=True)
class SteadyAsk:
    """Rounds of a load (`fio`, whose runtime is a round's) until it is level.

    `volume` is how much is written before the first test, in capacities of a drive; `rounds` is the most.
    """

    fio: FioAsk
    volume: float
    rounds: int


@dataclass(frozen=True)
class PreconditionAsk:
    """Purge (none, discard, or format, which needs a consent that names the drives), fill, then steady state.

    `media`: of all drives, or only of those whose medium does not turn (`flash`). `beside` are the claims on the
    bench's other drives, by id: a format may reach them as well.
    """

    purge: str
    consent: tuple[str, ...]
    fill: FillAsk | None
    steady: SteadyAsk | None
    media: str = "all"
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_precondition(entry: object, where: str, problems: list[str]) -> PreconditionAsk | None:
    """The `precondition` of a batch; None where there is none, or where `problems` says what is wrong with it."""
    if entry is None:
        return None
    reader = EntryReader(where, problems)
    fields = {"purge": "none", "media": "all", "consent": [], **reader.keys(entry, (), _PRECONDITION_KEYS)}
    purge, media = reader.choice(fields, "purge", PURGES), reader.choice(fields, "media", MEDIA)
    consent = reader.words({"consent": fields["consent"] or []}, "consent", least=0)
    beside = fields.get("beside") or {}
    if not isinstance(beside, dict) or not all(isinstance(target, dict) for target in beside.values()):
        reader.complain("beside", beside, "a mapping of drive ids to claims")
    fill = _fill(reader.inside("fill"), fields.get("fill"))
    steady = _steady(reader.inside("steady"), fields.get("steady"))
    return PreconditionAsk(purge, consent, fill, steady, media, beside) if reader.sound else None


def _fill(reader: EntryReader, entry: object) -> FillAsk | None:
    fields = {} if entry is None else reader.keys(entry, ("bs", "times"))
    if not fields:
        return None
    return FillAsk(reader.whole(fields, "bs", 512, 1 << 30), reader.whole(fields, "times", 1, 100))


def _steady(reader: EntryReader, entry: object) -> SteadyAsk | None:
    fields = {} if entry is None else reader.keys(entry, ("fio", "volume", "rounds"))
    if not fields:
        return None
    fio = read_ask(fields["fio"], f"{reader.where}: fio", reader.problems)
    volume, rounds = reader.number(fields, "volume", least=0.0), reader.whole(fields, "rounds", 1, 10000)
    if volume > _MOST_VOLUME:
        reader.complain("volume", volume, f"at most {_MOST_VOLUME} capacities")
    return None if fio is None else SteadyAsk(fio, float(volume), rounds)
