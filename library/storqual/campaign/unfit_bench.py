# SPDX-License-Identifier: Apache-2.0
"""Why a bench is put out of service at the end of its campaign: a drive fails, or its reference left its limits."""

from storqual.base.text import terminal_text
from storqual.judge.earlier import EXTRACT, out_of_control
from storqual.run import Run
from storqual.run.measurements import reference_launches


def unfit_reasons(run: Run, bench: str) -> list[str]:
    """A sentence for each reason. Raises StorqualError for a damaged run."""
    says: dict[str, bool] = {}
    for event in run.events:
        logs = event.fields.get("logs") if (event.kind, event.bench) == ("environment", bench) else None
        # one that says nothing at a later look has not become better
        says |= {drive: log["passed"] for drive, log in (logs or {}).items() if log.get("passed") is not None}
    failing = [
        f"drive {terminal_text(drive)} says that it fails (SMART)" for drive, passed in says.items() if not passed
    ]
    history = run.path / EXTRACT
    if not (run.benches.get(bench) or {}).get("reference") or not history.is_file():
        return failing
    left = out_of_control(run, reference_launches(run), history)
    return [*failing, *([left[bench]] if bench in left else [])]
