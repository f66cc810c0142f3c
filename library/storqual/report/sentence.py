# SPDX-License-Identifier: Apache-2.0
"""The outcome in one plain sentence; it explains the verdict and never makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storqual.judge.outcome import required_roles
from storqual.report.figures import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storqual.report.cells import Phrase
    from storqual.report.criterion import Criterion


def sentence_for(verdict: Mapping[str, Any], rows: Sequence[Criterion], drops: Mapping[str, str]) -> Phrase:
    """What the outcome means here, with how many required criteria it rests on; `drops` names the arms' drops.

    Where the outcome does not follow from counting criteria (the rig, the guard, the gate's policy), the judge's own
    reason is the sentence.
    """
    required = [row for row in rows if row.required]
    reason = str(verdict.get("reason") or "")
    sectors = verdict.get("sectors_written_outside_claims")
    if isinstance(sectors, int) and sectors > 0:
        shown = count(sectors, "verdict:/sectors_written_outside_claims")
        return (shown, " sectors were written to disks that no claim covers; nothing measured here may be used.")
    if reason and reason in (verdict.get("warnings") or ()):
        return (f"The run is not valid; {reason.rstrip('.')}.",)
    told = _counted(str(verdict.get("outcome")), required, drops) or _holes(verdict)
    if told:
        return told
    return (
        f"{reason[:1].upper()}{reason[1:].rstrip('.')}." if reason else "There was no required criterion to judge.",
    )


def _counted(word: str, required: Sequence[Criterion], drops: Mapping[str, str]) -> Phrase:
    """The sentence where the outcome follows from the criteria; empty where it does not."""
    if not required:
        return ()
    if word in ("PASS", "MARGINAL"):
        return _passed(required)
    bad = [row for row in required if row.outcome == word and not row.waived]
    if not bad:
        return ()
    shown, total = count(len(bad), f"count:criteria:{word}"), count(len(required), "count:criteria:required")
    if word == "FAIL" and all(row.against == "baseline" for row in bad):
        names = drops.get("candidate", "The candidate"), drops.get("baseline", "the baseline")
        return ("{} is shown to be worse than {} at ".format(*names), shown, " of ", total, " required criteria.")
    return (shown, " of ", total, _ENDINGS.get(word, " required criteria did not pass."))


_ENDINGS = {
    "FAIL": " required criteria failed.",
    "ERROR": " required criteria could not be judged: what they need is missing or invalid.",
    "INCONCLUSIVE": " required criteria are undecided: what was measured neither shows a loss nor excludes one.",
}


def _passed(required: Sequence[Criterion]) -> Phrase:
    total = count(len(required), "count:criteria:required")
    alone = len(required) == 1
    waived = sum(row.waived for row in required)
    if waived:
        held = count(len(required) - waived, "count:criteria:held")
        accepted = count(waived, "count:criteria:WAIVED")
        return (held, " of ", total, " required criteria hold; ", accepted, " failed and are waived.")
    narrow = sum(row.outcome == "MARGINAL" for row in required)
    if narrow:
        close = count(narrow, "count:criteria:MARGINAL")
        if alone:
            return ("The ", total, " required criterion holds, only just.")
        return ("All ", total, " required criteria hold, ", close, " of them only just.")
    compared = sum(row.against == "baseline" for row in required)
    if not compared:
        return ("The ", total, " required criterion holds.") if alone else ("All ", total, " required criteria hold.")
    noun = "criterion" if compared == 1 else "criteria"
    shown = f" required {noun} the candidate was shown to be no worse than its margin allows"
    if compared == len(required):
        return ("At the " if alone else "At all ", total, shown, ".")
    rest = len(required) - compared
    told = (count(compared, "count:criteria:compared"), shown, "; ", count(rest, "count:criteria:others"))
    return ("At ", *told, " other holds." if rest == 1 else " others hold.")


def _holes(verdict: Mapping[str, Any]) -> Phrase:
    """Planned points that were not measured and that nobody explained; empty when there are none."""
    skipped = (verdict.get("coverage") or {}).get("skipped") or ()
    holes = sum(not entry.get("reason") for entry in skipped)
    if not holes or verdict.get("exit_code") == 0:
        return ()
    noun = "point was" if holes == 1 else "points were"
    return (count(holes, "count:holes"), f" planned {noun} not measured, and no reason is on record.")


if TYPE_CHECKING:
    from collections.abc import Sequence

    from storqual.report.criterion import Criterion
    from storqual.report.material import Material


def signers_for(material: Material, rows: Sequence[Criterion]) -> tuple[tuple[str, ...], bool]:
    """Sentences for the first screen, and whether anybody may sign at all."""
    roles = " and ".join(role.replace("-", " ") for role in required_roles(material.run))
    code = material.verdict.get("exit_code")
    if code == 0:
        waived = any(row.waived for row in rows)
        lines = [f"May be signed by: {roles}" + (", with the waivers below." if waived else ".")]
        kinds = {str(bench.get("kind")) for bench in material.run.benches.values()}
        if "hardware" not in kinds:
            lines.append("A signature under this run says that the method works; it releases no hardware.")
        return tuple(lines), True
    if code == 1:
        return (f"Nobody, until waivers cover every failure; then: {roles}.",), False
    return ("Nobody: what was not judged cannot be signed or waived. Repeat or resume the run.",), False
