# SPDX-License-Identifier: Apache-2.0
"""Error counters that moved while a block ran, as evidence about the points on those drives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from storqual.judge.extract import Key, Place
from storqual.judge.numbers import percent
from storqual.judge.question import Judged, Question
from storqual.run import Run
from storqual_core.host.counters import ERROR_WORDS
from storqual_core.measure.precondition import settled_from

Counted = Mapping[tuple[str, str], Sequence[str]]
"""Sentences by bench and block, and by drive: `("vbench", "s01-b01/0x5000...")`."""


def counted_errors(run: Run) -> Counted:
    """What the bench read from its drives' error counters before and after each block.

    Healthy commands, retries that nobody saw included, move none of them.
    """
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for event in run.events:
        if event.kind != "block_finished":
            continue
        block = event.text("block")
        for node, disk in ((event.fields.get("end") or {}).get("disks") or {}).items():
            drive = str(disk.get("id") or disk.get("wwn") or node)
            for counter, number in (disk.get("errors") or {}).items():
                if number:
                    what = ERROR_WORDS.get(counter, counter)
                    told = f"error counters, drive {drive}: {what}: {number} ({counter}) in block {block}"
                    found[str(event.bench), f"{block}/{drive}"].append(told)
    return found


def errors_of(question: Question, counted: Counted) -> list[str]:
    """The sentences about a question's drives in the blocks of its launches."""
    if not counted:
        return []
    blocks = {launch.block for arm in ("baseline", "candidate") for launch in question.place.of(arm)}
    return sorted(
        sentence
        for block in blocks
        for drive in question.point.drives
        for sentence in counted.get((question.point.bench, f"{block}/{drive}"), ())
    )


Grown = Mapping[tuple[str, str], Sequence[str]]
"""Sentences by bench and drive."""


def grown_errors(run: Run) -> Grown:
    """What grew between the first look before the campaign and the last one after it.

    A count that was not there before, or went back, says nothing. Which arm a drive was in when it happened is not
    known: nobody asks drives while they are measured.
    """
    before: dict[str, Mapping[str, Mapping[str, int]]] = {}
    after: dict[str, Mapping[str, Mapping[str, int]]] = {}
    for event in run.events:
        if event.kind == "environment" and event.bench:
            looked = event.fields.get("smart") or {}
            if event.fields.get("when") == "before":
                before.setdefault(event.bench, looked)
            else:
                after[event.bench] = looked
    return {
        (bench, drive): tuple(
            f"SMART, drive {drive}: {name} grew from {first[name]} to {count} during the campaign"
            for name, count in counts.items()
            if count > first.get(name, count)
        )
        for bench, drives in after.items()
        for drive, counts in drives.items()
        for first in [before.get(bench, {}).get(drive, {})]
    }


def recorded_errors_of(question: Question, grown: Grown) -> list[str]:
    """The sentences about a question's drives."""
    return [told for drive in question.point.drives for told in grown.get((question.point.bench, drive), ())]


def unsteady_benches(run: Run) -> dict[str, str]:
    """Benches whose drives did not settle before the campaign, and how far they were from it, as a sentence."""
    found: dict[str, str] = {}
    for entry in run.preconditioned:
        report = entry.report.get("steady")
        if report is None:
            continue
        found.pop(entry.bench, None)
        if not report.get("steady"):
            found[entry.bench] = _sentence(report)
    return found


def with_steadiness(question: Question, judged: Judged, unsteady: Mapping[str, str]) -> Judged:
    """A pass on drives that still changed decides nothing, unless the arms alternated: then the drift cancels."""
    reason = unsteady.get(question.point.bench)
    alternated = question.criterion.against in ("baseline", "peers") and not question.by_session
    if reason is None or alternated or judged.outcome not in ("PASS", "MARGINAL"):
        return judged
    return replace(judged, outcome="INCONCLUSIVE", reason=f"{reason}; {judged.reason}")


def _sentence(report: Mapping[str, object]) -> str:
    drift, snia = report.get("drift"), report.get("snia")
    told = f"the drives were not steady after {report.get('rounds')} rounds"
    if isinstance(drift, list) and len(drift) == 3:
        change, low, high = (percent(float(value), signed=True) for value in drift)
        told += f": drift {change} ({low} to {high}) over {report.get('window_s')} s"
    if isinstance(snia, dict):
        told += f"; SNIA: range {percent(float(snia['range']))}, excursion {percent(float(snia['excursion']))}"
    return told


_FEWEST_LAUNCHES = 8
_FEWEST_SECONDS = 4
_LARGEST_OFF = 0.01
_SPREADS = 3.0


def short_ramps(places: Mapping[Key, Place]) -> list[str]:
    """A sentence for each bench whose launches still settle when they are measured."""
    series: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)
    for (bench, _, _), place in places.items():
        for launches in place.arms.values():
            series[bench] += [one.seconds for one in launches if len(one.seconds) >= _FEWEST_SECONDS]
    said = []
    for bench, seconds in series.items():
        found = _transient(seconds)
        if found is not None:
            cut, off = found
            told = f"launches settle for {cut} s more than their ramp, {100 * off:+.1f} % off in that time"
            said.append(f"{bench}: {told}: a longer ramp would cut it")
    return said


def _transient(series: list[tuple[float, ...]]) -> tuple[int, float] | None:
    """How many seconds of the usual launch are a transient, and how far they are off; None for none."""
    if len(series) < _FEWEST_LAUNCHES:
        return None
    length = min(map(len, series))
    shares = np.array([np.asarray(one[:length]) / np.mean(one) for one in series])
    cut = settled_from(shares.mean(axis=0).tolist(), group=1)
    if not cut:
        return None
    off = shares[:, :cut].mean(axis=1) / shares[:, cut:].mean(axis=1) - 1
    mean, error = float(off.mean()), float(off.std(ddof=1)) / np.sqrt(len(off))
    return (cut, mean) if abs(mean) > max(_LARGEST_OFF, _SPREADS * error) else None
