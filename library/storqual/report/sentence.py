# SPDX-License-Identifier: Apache-2.0
"""The outcome in one plain sentence; it explains the verdict and never makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storqual.report.figures import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storqual.report.rows import Row
    from storqual.report.view import Phrase

__all__ = ["sentence_for"]


def sentence_for(verdict: Mapping[str, Any], rows: Sequence[Row], drops: Mapping[str, str]) -> Phrase:
    """What the outcome means here, with how many required criteria it rests on; `drops` names the arms' drops."""
    word = str(verdict.get("outcome"))
    required = [row for row in rows if row.required]
    total = count(len(required), "count:criteria:required")
    sectors = verdict.get("sectors_written_outside_claims")
    if isinstance(sectors, int) and sectors > 0:
        shown = count(sectors, "verdict:/sectors_written_outside_claims")
        return (shown, " sectors were written to disks that no claim covers; nothing measured here may be used.")
    if not required:
        return ("There was no required criterion to judge.",)
    if word == "FAIL":
        return _failed(required, drops)
    if word == "ERROR":
        return _unjudged(required, verdict)
    if word == "INCONCLUSIVE":
        return _undecided(required, verdict)
    waived = sum(row.waived for row in required)
    if waived:
        held = count(len(required) - waived, "count:criteria:held")
        return (
            held,
            " of ",
            total,
            " required criteria hold; ",
            count(waived, "count:criteria:WAIVED"),
            " failed and are waived.",
        )
    narrow = sum(row.outcome == "MARGINAL" for row in required)
    if narrow:
        return (
            "All ",
            total,
            " required criteria hold, ",
            count(narrow, "count:criteria:MARGINAL"),
            " of them only just.",
        )
    if all(row.against == "baseline" for row in required):
        return (
            "At all ",
            total,
            " required criteria the candidate was shown to be no worse than the baseline by more than its margin.",
        )
    return ("All ", total, " required criteria hold.")


def _failed(required: Sequence[Row], drops: Mapping[str, str]) -> Phrase:
    failed = [row for row in required if row.outcome == "FAIL" and not row.waived]
    if not failed:
        return ("The run failed; the warnings below say why.",)
    shown, total = count(len(failed), "count:criteria:FAIL"), count(len(required), "count:criteria:required")
    if all(row.against == "baseline" for row in failed):
        worse = f"{drops.get('candidate', 'The candidate')} is worse than {drops.get('baseline', 'the baseline')}"
        return (f"{worse} by more than the margin at ", shown, " of ", total, " required criteria.")
    return (shown, " of ", total, " required criteria failed.")


def _unjudged(required: Sequence[Row], verdict: Mapping[str, Any]) -> Phrase:
    bad = [row for row in required if row.outcome == "ERROR"]
    if not bad:
        return _holes(verdict) or ("The rig was not valid during this run; the warnings below say why.",)
    shown, total = count(len(bad), "count:criteria:ERROR"), count(len(required), "count:criteria:required")
    return (shown, " of ", total, " required criteria could not be judged: what they need is missing or invalid.")


def _undecided(required: Sequence[Row], verdict: Mapping[str, Any]) -> Phrase:
    bad = [row for row in required if row.outcome == "INCONCLUSIVE"]
    if not bad:
        return _holes(verdict) or ("The run could not be judged; the warnings below say why.",)
    shown, total = count(len(bad), "count:criteria:INCONCLUSIVE"), count(len(required), "count:criteria:required")
    return (
        shown,
        " of ",
        total,
        " required criteria are undecided: the data shows the candidate neither within its margin nor beyond it.",
    )


def _holes(verdict: Mapping[str, Any]) -> Phrase:
    """Planned points that were not measured and that nobody explained; empty when there are none."""
    skipped = (verdict.get("coverage") or {}).get("skipped") or ()
    holes = sum(not entry.get("reason") for entry in skipped)
    if not holes:
        return ()
    return (count(holes, "count:holes"), " planned points were not measured, and no reason is on record.")
