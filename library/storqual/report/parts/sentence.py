# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run in one sentence, for the first screen and for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storqual.judge.outcome import listed, used_waivers
from storqual.report.change import once_each
from storqual.report.criterion import Criterion
from storqual.report.figures import count
from storqual.report.view import Phrase


def sentence_for(verdict: Mapping[str, Any], rows: Sequence[Criterion], drops: Mapping[str, str]) -> Phrase:
    """What the outcome means here, with how many required measurements it rests on; `drops` names the arms' drops.

    Where the outcome does not follow from counting criteria (the rig, the guard, the gate's policy), the judge's own
    reason is the sentence.
    """
    required = once_each([row for row in rows if row.required])
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
    disturbed = _disturbed(bad) if word == "INCONCLUSIVE" else ""
    if disturbed:
        return (shown, " of ", total, f" required criteria are undecided: {disturbed}.")
    if word == "FAIL" and all(row.against == "baseline" for row in bad):
        names = drops.get("candidate", "The candidate"), drops.get("baseline", "the baseline")
        return ("{} is shown to be worse than {} at ".format(*names), shown, " of ", total, " required criteria.")
    return (shown, " of ", total, _ENDINGS.get(word, " required criteria did not pass."))


_ARMS = ("candidate", "baseline")


def _disturbed(undecided: Sequence[Criterion]) -> str:
    """Why no launch of an arm counts at any of these points; empty where some do, or none was disturbed."""
    counts = [(row.fields.get("samples") or {}, row.fields.get("suspect") or {}) for row in undecided]
    empty = [arm for arm in _ARMS if all(samples.get(arm) == 0 for samples, _ in counts)]
    suspect = [arm for arm in _ARMS if all(found.get(arm) for _, found in counts)]
    without = [arm for arm in empty if arm in suspect]
    if not without:
        return ""
    whose = f" of the {without[0]}" if len(without) == 1 and len(empty) == 1 else ""
    return f"no launch{whose} counts as evidence, because all of them were disturbed (suspect)"


_ENDINGS = {
    "FAIL": " required criteria failed.",
    "ERROR": " required criteria could not be judged: what they need is missing or invalid.",
    "INCONCLUSIVE": " required criteria are undecided: the measurements neither prove nor rule out a loss.",
}


def _passed(required: Sequence[Criterion]) -> Phrase:
    total = count(len(required), "count:criteria:required")
    alone = len(required) == 1
    waived = sum(row.waived for row in required)
    if waived:
        held = count(len(required) - waived, "count:criteria:held")
        accepted = count(waived, "count:criteria:WAIVED")
        used = used_waivers(row.fields for row in required)
        number = count(len(used), "count:waivers")
        noun = "waiver" if len(used) == 1 else "waivers"
        told: Phrase = ("Passes with ", number, f" {noun}: {listed(used)}. ", held, " of ", total)
        ending = f" failed and {'is' if waived == 1 else 'are'} waived."
        return (*told, " required measurements pass; ", accepted, ending)
    narrow = sum(row.outcome == "MARGINAL" for row in required)
    if narrow:
        close = count(narrow, "count:criteria:MARGINAL")
        if alone:
            return ("The ", total, " required criterion passes, near its limit.")
        return ("All ", total, " required criteria pass, ", close, " of them near their limit.")
    compared = [row for row in required if row.against == "baseline"]
    if not compared:
        return (
            ("The ", total, " required criterion passes.") if alone else ("All ", total, " required criteria pass.")
        )
    noun = "measurement" if len(compared) == 1 else "measurements"
    shown = count(len(compared), "count:criteria:compared")
    every = "the" if len(compared) == 1 else "all"
    told = (f"The unacceptable loss is excluded at {every} ", shown, f" required {noun}")
    rest = [row for row in required if row.against != "baseline"]
    if not rest:
        return (*told, ".")
    checks = all(row.against == "check" for row in rest)
    one, several = ("check", "checks") if checks else ("other criterion", "other criteria")
    number = count(len(rest), "count:criteria:others")
    return (*told, "; ", number, f" {one} holds." if len(rest) == 1 else f" {several} hold.")


def _holes(verdict: Mapping[str, Any]) -> Phrase:
    """Planned points that were not measured and that nobody explained; empty when there are none."""
    skipped = (verdict.get("coverage") or {}).get("skipped") or ()
    holes = sum(not entry.get("reason") for entry in skipped)
    if not holes or verdict.get("exit_code") == 0:
        return ()
    noun = "point was" if holes == 1 else "points were"
    return (count(holes, "count:holes"), f" planned {noun} not measured, and no reason was recorded.")
