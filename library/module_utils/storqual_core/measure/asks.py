# SPDX-License-Identifier: Apache-2.0
"""What a launch on a file system asks for, as it stands in a batch file: which one, and how large its file is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Mapping

from .fio_job import FioAsk, read_ask

KINDS = ("ext4", "xfs")
_MIB = 1 << 20
_KEYS = frozenset({"kind", "file_bytes"})
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
    if entry is None:
        return None
    if not isinstance(entry, dict) or set(entry) != _KEYS or entry["kind"] not in KINDS:
        expected = f"a mapping of {', '.join(sorted(_KEYS))} with kind one of {', '.join(KINDS)}"
        problems.append(f"{where}: found {str(entry)[:120]!r}, expected {expected}")
        return None
    size = entry["file_bytes"]
    if not isinstance(size, int) or isinstance(size, bool) or size < _MIB or size % _MIB:
        problems.append(f"{where}: file_bytes: found {str(size)[:40]!r}, expected bytes in whole MiB, at least one")
        return None
    return FileSystemAsk(entry["kind"], size)


BY = {"iodepth": 1 << 16, "numjobs": 4096}
"""What may be raised, and how far fio can go with it."""
_PPM = 1000000
_DRAINS = 50
_BEYOND = 10
_LOAD_KEYS = frozenset({"cap_ns", "share_ppm", "by", "least", "most"})


@dataclass(frozen=True)
class LoadAsk:
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


def read_load(entry: object, where: str, problems: list[str]) -> LoadAsk | None:
    """The `load` part of a launch; None where there is none, or where `problems` says what is wrong with it."""
    if entry is None:
        return None
    if not isinstance(entry, dict) or set(entry) != _LOAD_KEYS or entry.get("by") not in BY:
        expected = f"a mapping of {', '.join(sorted(_LOAD_KEYS))} with by one of {', '.join(sorted(BY))}"
        problems.append(f"{where}: found {str(entry)[:120]!r}, expected {expected}")
        return None
    numbers = {}
    limits = {
        "cap_ns": (1, 10**15),
        "share_ppm": (0, 999999),
        "least": (1, BY[entry["by"]]),
        "most": (1, BY[entry["by"]]),
    }
    for name, (lowest, highest) in limits.items():
        value = entry[name]
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            told = f"found {str(value)[:40]!r}, expected a whole number from {lowest} to {highest}"
            problems.append(f"{where}: {name}: {told}")
            return None
        numbers[name] = value
    if numbers["least"] > numbers["most"]:
        problems.append(f"{where}: found least {numbers['least']}, expected at most {numbers['most']}")
        return None
    return LoadAsk(by=entry["by"], **numbers)


PURGES = ("none", "discard", "format")
MEDIA = ("all", "flash")
_PRECONDITION_KEYS = frozenset({"purge", "consent", "beside", "fill", "steady", "media"})
_STEADY = frozenset({"fio", "volume", "rounds"})


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
    before = len(problems)
    if not isinstance(entry, dict) or not set(entry) <= _PRECONDITION_KEYS:
        problems.append(
            f"{where}: found {str(entry)[:120]!r}, expected a mapping of {', '.join(sorted(_PRECONDITION_KEYS))}"
        )
        return None
    purge, consent = entry.get("purge", "none"), entry.get("consent") or []
    if purge not in PURGES:
        problems.append(f"{where}: purge: found {str(purge)[:40]!r}, expected one of {', '.join(PURGES)}")
    media = entry.get("media", "all")
    if media not in MEDIA:
        problems.append(f"{where}: media: found {str(media)[:40]!r}, expected one of {', '.join(MEDIA)}")
    if not isinstance(consent, list) or not all(isinstance(word, str) for word in consent):
        problems.append(f"{where}: consent: found {str(consent)[:80]!r}, expected a list of texts")
        consent = []
    beside = entry.get("beside") or {}
    if not isinstance(beside, dict) or not all(isinstance(target, dict) for target in beside.values()):
        problems.append(f"{where}: beside: found {str(beside)[:80]!r}, expected a mapping of drive ids to claims")
    fill = _fill(entry.get("fill"), f"{where}: fill", problems)
    steady = _steady(entry.get("steady"), f"{where}: steady", problems)
    if len(problems) > before:
        return None
    return PreconditionAsk(str(purge), tuple(consent), fill, steady, str(media), beside)


def _fill(entry: object, where: str, problems: list[str]) -> FillAsk | None:
    if entry is None:
        return None
    if isinstance(entry, dict) and set(entry) == {"bs", "times"}:
        bs, times = entry["bs"], entry["times"]
        if _whole(bs, 512, 1 << 30) and _whole(times, 1, 100):
            return FillAsk(bs, times)
    problems.append(f"{where}: found {str(entry)[:120]!r}, expected bs (bytes) and times (1 to 100)")
    return None


def _steady(entry: object, where: str, problems: list[str]) -> SteadyAsk | None:
    if entry is None:
        return None
    if not isinstance(entry, dict) or set(entry) != _STEADY:
        problems.append(f"{where}: found {str(entry)[:120]!r}, expected {', '.join(sorted(_STEADY))}")
        return None
    fio = read_ask(entry["fio"], f"{where}: fio", problems)
    volume, rounds = entry["volume"], entry["rounds"]
    sound = isinstance(volume, (int, float)) and not isinstance(volume, bool) and 0 <= volume <= 100
    if not sound or not _whole(rounds, 1, 10000):
        problems.append(f"{where}: found volume {volume!r} and rounds {rounds!r}, expected 0 to 100 and 1 to 10000")
        return None
    return None if fio is None else SteadyAsk(fio, float(volume), rounds)


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
