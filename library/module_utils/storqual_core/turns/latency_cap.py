# SPDX-License-Identifier: Apache-2.0
"""Run a search for the load at a latency cap: one fio process per load, the whole curve kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Callable, Mapping, Sequence

from .asks import LatencyCap
from .derive import counts_of
from .fio_job import FioAsk
from .launch import Launched

MOST_STEPS = 24
"""Launches of a search at most: what brackets the cap closes in on it within half as many."""
CLOSE = 1.25
"""A bracket is narrow enough when its ends differ by this factor, or by one: between them a line will do."""
_PPM = 1000000


@dataclass(frozen=True)
class LoadStep:
    """One launch of a search: its load, I/Os per second, and response time (ns; a mean or a percentile)."""

    load: int
    rate: float
    response_ns: float


def next_load(steps: Sequence[LoadStep], cap_ns: float, *, least: int, most: int) -> int | None:
    """The load to try after `steps`; None when the cap is bracketed narrowly, or is not within `least` to `most`."""
    if not steps:
        return least
    if len(steps) >= MOST_STEPS:
        return None
    above = min((step for step in steps if step.response_ns > cap_ns), key=lambda step: step.load, default=None)
    below = [step for step in steps if step.response_ns <= cap_ns and (above is None or step.load < above.load)]
    if not below:
        return None
    low = max(below, key=lambda step: step.load)
    expected = math.ceil(cap_ns / 1e9 * (above or low).rate)
    if above is None:
        ahead = min(max(expected, 2 * low.load), 4 * low.load, most)
        return ahead if ahead > low.load else None
    if above.load - low.load <= 1 or above.load <= CLOSE * low.load:
        return None
    inside = low.load < expected < above.load
    middle = expected if inside else round(math.sqrt(low.load * above.load))
    # a guess at the edge of the bracket would hardly narrow it
    margin = max((above.load - low.load) // 10, 1)
    return min(max(middle, low.load + margin), above.load - margin)


def expected_ns(steps: Sequence[LoadStep], load: int) -> float:
    """The response time at a load (ns) at most: at the plateau it grows with the load; 0 when nothing was run."""
    below = max((step for step in steps if step.load <= load), key=lambda step: step.load, default=None)
    return below.response_ns * load / below.load if below is not None else 0.0


def at_response(steps: Sequence[LoadStep], response: float) -> tuple[float, float] | None:
    """Rate (1/s) and load at a response time (ns), between the two launches around it; None outside the curve."""
    ordered = sorted(steps, key=lambda step: step.load)
    for low, high in zip(ordered, ordered[1:]):
        if low.response_ns <= response < high.response_ns:
            share = (response - low.response_ns) / (high.response_ns - low.response_ns)
            return low.rate + share * (high.rate - low.rate), low.load + share * (high.load - low.load)
    if ordered and ordered[-1].response_ns == response:
        return ordered[-1].rate, float(ordered[-1].load)
    return None


def response_ns(ios: int, lat_sum_ns: int, bins: Mapping[str, int], share_ppm: int) -> float | None:
    """The mean (`share_ppm` 0) or the percentile of a launch; None without I/O, latencies, or bins that hold all."""
    if ios <= 0 or lat_sum_ns <= 0:
        return None
    if share_ppm == 0:
        return lat_sum_ns / ios
    total = sum(bins.values())
    if total < ios:
        return None
    rank, seen = math.ceil(share_ppm * total / _PPM), 0
    for edge, count in sorted((int(edge), count) for edge, count in bins.items()):
        seen += count
        if seen >= rank:
            return float(edge)
    return None


def read_steps(entries: Sequence[Mapping[str, object]], share_ppm: int) -> tuple[LoadStep, ...]:
    """The steps of a sample's primitive `load_steps`. Raises KeyError, TypeError or ValueError for anything else."""
    steps = []
    for entry in entries:
        ios, runtime_ns = int(str(entry["ios"])), int(str(entry["runtime_ns"]))
        bins = entry.get("bins") or {}
        if not isinstance(bins, dict) or runtime_ns <= 0:
            raise ValueError("a load step without a runtime, or with bins that are none")
        response = response_ns(ios, int(str(entry["lat_sum_ns"])), bins, share_ppm)
        if response is None:
            raise ValueError(f"the launch at load {entry['load']} has no response time")
        steps.append(LoadStep(int(str(entry["load"])), ios / runtime_ns * 1e9, response))
    return tuple(steps)


@dataclass
class Curve:
    """The launches of a search in the order they were run; `notes` are those of fio."""

    ask: LatencyCap
    runs: list[tuple[int, Launched]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def chosen(self) -> Launched:
        """The launch that stands for the search: the first that went wrong, else the highest load within the cap."""
        for _, launched in self.runs:
            if launched.result.status != "ok":
                return launched
        return max(self.runs, key=self._rank)[1]

    def _rank(self, run: tuple[int, Launched]) -> tuple[bool, int]:
        load, launched = run
        step = _step(load, launched, self.ask)
        within = step is not None and step.response_ns <= self.ask.cap_ns
        return within, load if within else -load

    def asked(self) -> dict[str, int]:
        """What was searched for, as primitives."""
        return {"load_cap_ns": self.ask.cap_ns, "load_share_ppm": self.ask.share_ppm, "load_most": self.ask.most}


def run_to_cap(ask: LatencyCap, fio: FioAsk, run: Callable[[FioAsk], tuple[Launched, list[str]]]) -> Curve:
    """Search for the cap with `run`, which runs one launch; ends at the first launch that does not end well."""
    curve = Curve(ask)
    steps: list[LoadStep] = []
    load = next_load(steps, ask.cap_ns, least=ask.least, most=ask.most)
    while load is not None:
        launched, notes = run(ask.at(fio, load, expected_ns(steps, load)))
        curve.runs.append((load, launched))
        curve.notes += [note for note in notes if note not in curve.notes]
        step = _step(load, launched, ask)
        if launched.result.status != "ok" or step is None:
            break
        steps.append(step)
        load = next_load(steps, ask.cap_ns, least=ask.least, most=ask.most)
    return curve


def _step(load: int, launched: Launched, ask: LatencyCap) -> LoadStep | None:
    """The step that a launch is; None when it has no response time."""
    counts = counts_of(launched.result)
    response = response_ns(counts["ios"], counts["lat_sum_ns"], counts["bins"], ask.share_ppm)
    if response is None or not counts["runtime_ns"]:
        return None
    return LoadStep(load, counts["ios"] / counts["runtime_ns"] * 1e9, response)
