# SPDX-License-Identifier: Apache-2.0
"""Run a search for the load at a latency cap: one fio process per load, the whole curve kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

from .fio_job import FioAsk
from .launch_run import Launched
from .load_ask import LoadAsk
from .load_search import LoadStep, expected_ns, next_load, response_ns

__all__ = ["Curve", "run_to_cap"]

_WAYS = ("read", "write", "trim")


@dataclass
class Curve:
    """The launches of a search in the order they were run; `notes` are those of fio."""

    ask: LoadAsk
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

    def primitives(self) -> dict[str, Any]:
        """What a sample holds of it: counts and bins of each launch, and what was asked."""
        return {
            "load_steps": [{"load": load, **_counts(launched)} for load, launched in self.runs],
            "load_cap_ns": self.ask.cap_ns,
            "load_share_ppm": self.ask.share_ppm,
            "load_most": self.ask.most,
        }

    def texts(self) -> list[tuple[str, str]]:
        """What fio wrote in the launches that do not stand for the search, as (text, type)."""
        others = [launched for _, launched in self.runs if launched is not self.chosen]
        return [(launched.output, "json" if launched.result.version else "txt") for launched in others]


def run_to_cap(ask: LoadAsk, fio: FioAsk, run: Callable[[FioAsk], tuple[Launched, list[str]]]) -> Curve:
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


def _counts(launched: Launched) -> dict[str, Any]:
    """I/Os, time, latency and bins over all directions."""
    primitives = launched.result.primitives
    bins: dict[str, int] = {}
    for way in _WAYS:
        for edge, count in (primitives.get(f"{way}_bins") or {}).items():
            bins[edge] = bins.get(edge, 0) + count
    return {
        "ios": sum(int(primitives.get(f"{way}_ios", 0)) for way in _WAYS),
        "runtime_ns": int(primitives.get("runtime_ns", 0)),
        "lat_sum_ns": sum(int(primitives.get(f"{way}_lat_sum_ns", 0)) for way in _WAYS),
        "bins": bins,
    }


def _step(load: int, launched: Launched, ask: LoadAsk) -> LoadStep | None:
    """The step that a launch is; None when it has no response time."""
    counts = _counts(launched)
    response = response_ns(counts["ios"], counts["lat_sum_ns"], counts["bins"], ask.share_ppm)
    if response is None or not counts["runtime_ns"]:
        return None
    return LoadStep(load, counts["ios"] / counts["runtime_ns"] * 1e9, response)
