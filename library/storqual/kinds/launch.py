# SPDX-License-Identifier: Apache-2.0
"""Launches of fio: a sample from the record of the bench program, what fio printed, and the counters around it."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from storqual.kinds.kind import Kind, PlannedTurn, Raw
from storqual_core.turns.derive import RECORD, derive

RECORD_END = f".{RECORD}.gz"
"""How the name of a launch's record ends."""


def derive_launch(turn: PlannedTurn, raw: Raw) -> Mapping[str, Any]:
    """The sample of a launch. Many are derived at once elsewhere (`storqual.run.recompute`), by the same function."""
    texts = raw.texts()
    records = [text for path, text in texts.items() if path.endswith(RECORD_END)]
    if len(records) != 1:
        raise ValueError(f"it has {len(records)} records of its launch, expected one")
    record = from_json(records[0], allow_inf_nan=False)
    if record["run"] != turn.run:
        raise ValueError(f"its record is of run {record['run']!r}")
    return derive(record, texts)


LAUNCH = Kind(
    name="launch",
    derive=derive_launch,
    absent=("Performance", "IOPS, latency and CPU time are measured by a suite's workloads"),
)
