# SPDX-License-Identifier: Apache-2.0
"""`storqual history`: the index of a folder of runs, control charts of benches, noise of points."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from storqual.history.chart import control_chart
from storqual.history.extract import NEWEST
from storqual.history.index import open_history
from storqual.history.noise import pooled

__all__ = ["history_of"]


def history_of(runs: Path) -> dict[str, Any]:
    """What the index says, brought up to date first. Raises BadInputError for a folder that is none."""
    with open_history(runs) as history:
        updated = history.update(runs)
        chart = control_chart(history.readings())
        noise = pooled(history.noise(NEWEST))
        listed = history.runs()
    suspects = {point.run: point.suspect for point in chart if point.suspect}
    return {
        "index": asdict(updated),
        "runs": [{**run, "suspect": suspects.get(run["run"], "")} for run in listed],
        "control_chart": [{**asdict(point), "suspect": point.suspect} for point in chart],
        "noise": [asdict(entry) for entry in noise],
    }
