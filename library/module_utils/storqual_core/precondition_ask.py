# SPDX-License-Identifier: Apache-2.0
"""What a block asks to be done to its drives before anything is measured, as it stands in the block file."""

from __future__ import annotations

from dataclasses import dataclass

from .fio_job import FioAsk, read_ask

__all__ = ["PURGES", "FillAsk", "PreconditionAsk", "SteadyAsk", "read_precondition"]

PURGES = ("none", "discard", "format")
_KEYS = frozenset({"purge", "consent", "fill", "steady"})
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
    """Purge (none, discard, or format, which needs a consent that names the drives), fill, then steady state."""

    purge: str
    consent: tuple[str, ...]
    fill: FillAsk | None
    steady: SteadyAsk | None


def read_precondition(entry: object, where: str, problems: list[str]) -> PreconditionAsk | None:
    """The `precondition` of a block; None where there is none, or where `problems` says what is wrong with it."""
    if entry is None:
        return None
    before = len(problems)
    if not isinstance(entry, dict) or not set(entry) <= _KEYS:
        problems.append(f"{where}: found {str(entry)[:120]!r}, expected a mapping of {', '.join(sorted(_KEYS))}")
        return None
    purge, consent = entry.get("purge", "none"), entry.get("consent") or []
    if purge not in PURGES:
        problems.append(f"{where}: purge: found {str(purge)[:40]!r}, expected one of {', '.join(PURGES)}")
    if not isinstance(consent, list) or not all(isinstance(word, str) for word in consent):
        problems.append(f"{where}: consent: found {str(consent)[:80]!r}, expected a list of texts")
        consent = []
    fill = _fill(entry.get("fill"), f"{where}: fill", problems)
    steady = _steady(entry.get("steady"), f"{where}: steady", problems)
    if len(problems) > before:
        return None
    return PreconditionAsk(str(purge), tuple(consent), fill, steady)


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
