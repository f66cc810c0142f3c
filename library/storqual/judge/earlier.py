# SPDX-License-Identifier: Apache-2.0
"""The extract of earlier campaigns that a run was planned with: the noise of its points."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.judge.against_baseline import Histories
from storqual.judge.decision import History
from storqual.run import Launch, Run
from storqual.run.files import limit_of, parse_line
from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError

SCHEMA = "storqual.history/1"
EXTRACT = "inputs/history.json"


def read_histories(path: Path | None) -> Histories:
    """Noise by bench, adapter, point and metric from `{"schema", "noise": [{...}]}`; nothing without a file.

    An entry has the four that name it, and `sd_pair`, `df_pair`, `sd_session`, `df_session` of log-ratios as far as
    they are known. Raises BadInputError for a file of another shape.
    """
    if path is None:
        return {}
    try:
        document = _history(path)
        if document["schema"] != SCHEMA:
            raise BadInputError([f"{path}:1: found schema {document['schema']!r}, expected {SCHEMA!r}"])
        return {
            (entry["bench"], entry["adapter"], entry["point"], entry["metric"]): History(
                sd_pair=entry.get("sd_pair"),
                df_pair=float(entry.get("df_pair") or 0.0),
                sd_session=entry.get("sd_session"),
                df_session=float(entry.get("df_session") or 0.0),
            )
            for entry in document["noise"]
        }
    except (ValueError, KeyError, TypeError) as problem:
        raise BadInputError([f"{path}: found no history ({problem}), expected {SCHEMA}"]) from None


@dataclass(frozen=True, slots=True)
class ReferenceReading:
    """One launch on a reference drive: I/Os per second at a moment (ISO time)."""

    run: str
    bench: str
    drive: str
    moment: str
    iops: float


def readings_of(run: Run, reference: Iterable[Launch]) -> Iterator[ReferenceReading]:
    drives = {name: str(bench.get("reference") or "") for name, bench in run.benches.items()}
    for launch in reference:
        iops = launch.number("iops")
        if launch.status == "ok" and iops is not None:
            yield ReferenceReading(run.name, launch.bench, drives.get(launch.bench, ""), launch.start, iops)


def out_of_control(run: Run, reference: Iterable[Launch], history: Path | None) -> dict[str, str]:
    """Benches whose reference left its limits, and how it did; their campaign is suspect. Raises BadInputError."""
    limits = _limits(history)
    if not limits:
        return {}
    values: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for reading in readings_of(run, reference):
        values[reading.bench, reading.drive].append(reading.iops)
    left = {}
    for (bench, drive), readings in values.items():
        low, high = limits.get((bench, drive), (-math.inf, math.inf))
        mean = math.fsum(readings) / len(readings)
        if not low <= mean <= high:
            left[bench] = f"its golden reference {drive} gave {mean:.0f} IOPS, outside of {low:.0f} to {high:.0f}"
    return left


def _history(path: Path) -> dict[str, Any]:
    """The extract at `path`, which a person may have named. Raises StorqualError."""
    document: dict[str, Any] = parse_line(read_regular(path, limit_of(EXTRACT).most), EXTRACT)
    return document


def _limits(history: Path | None) -> dict[tuple[str, str], tuple[float, float]]:
    if history is None:
        return {}
    try:
        entries = _history(history).get("reference") or []
        return {(entry["bench"], entry["drive"]): (float(entry["low"]), float(entry["high"])) for entry in entries}
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise BadInputError([f"{history}: found no history ({problem})"]) from None
