# SPDX-License-Identifier: Apache-2.0
"""What a launch that goes to a latency cap asks for, as it stands in a block file."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .fio_job import FioAsk

__all__ = ["BY", "LoadAsk", "read_load"]

BY = {"iodepth": 1 << 16, "numjobs": 4096}
"""What may be raised, and how far fio can go with it."""
_PPM = 1000000
_DRAINS = 50
_BEYOND = 10
_KEYS = frozenset({"cap_ns", "share_ppm", "by", "least", "most"})


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
    if not isinstance(entry, dict) or set(entry) != _KEYS or entry.get("by") not in BY:
        expected = f"a mapping of {', '.join(sorted(_KEYS))} with by one of {', '.join(sorted(BY))}"
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
