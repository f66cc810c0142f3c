# SPDX-License-Identifier: Apache-2.0
"""From criteria to the outcome of a run: the first rule that applies, and the waivers that it rests on.

Waivers are said in the same words on every page, in every export and by every command.
"""

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from storqual.base.text import fits_name
from storqual.inputs.policy import DEFAULT_ROLES, Waiver, load_gate
from storqual.judge.entry import VerdictEntry
from storqual.run import Run
from storqual.run.turns import COUNTED
from storqual_core.kit.quantities import format_percent, is_whole

EXIT_CODES: Mapping[str, int] = {"PASS": 0, "MARGINAL": 0, "FAIL": 1, "INCONCLUSIVE": 2, "ERROR": 2}


def run_outcome(
    criteria: Sequence[VerdictEntry], rig: Sequence[str], *, holes: int, marginal_passes: bool
) -> tuple[str, str]:
    """The run's outcome and its sentence. A rig or guard that is not valid comes before everything."""
    if rig:
        return "ERROR", rig[0]
    required = [entry for entry in criteria if entry.required]
    counts = Counter(entry.outcome for entry in required if not (entry.outcome == "FAIL" and entry.waiver))
    total = f"{len(required)} required criteria"
    if counts["FAIL"]:
        return "FAIL", f"{counts['FAIL']} of {total} failed"
    if counts["ERROR"]:
        first = next(entry for entry in required if entry.outcome == "ERROR")
        return "ERROR", f"{counts['ERROR']} of {total} could not be judged: {first.reason}"
    if not any(_is_judged(entry) and entry.outcome != "SKIPPED" for entry in required):
        return "ERROR", "no required criterion was judged at any point"
    if counts["INCONCLUSIVE"]:
        return "INCONCLUSIVE", f"{counts['INCONCLUSIVE']} of {total} are undecided"
    if holes:
        return "INCONCLUSIVE", f"{holes} planned points were not measured, and no reason was recorded"
    if counts["MARGINAL"] and not marginal_passes:
        return "FAIL", f"{counts['MARGINAL']} of {total} pass only marginally, which the gate does not accept"
    waived = sum(entry.waiver is not None for entry in required)
    passes = f"{len(required) - waived} of {total} pass" if waived else f"all {total} pass"
    used = with_waivers(used_waivers(entry.to_json() for entry in required))
    accepted = f"; {waived} failed and {'is' if waived == 1 else 'are'} accepted {used}" if waived else ""
    if counts["MARGINAL"]:
        return "MARGINAL", f"{passes}, {counts['MARGINAL']} of them near their limit{accepted}"
    return "PASS", f"{passes}{accepted}"


def _is_judged(entry: VerdictEntry) -> bool:
    """Whether a criterion was asked of the campaign itself, at a point or of its turns, not of a written test."""
    return entry.against != "check" or entry.source == COUNTED


@dataclass(frozen=True, slots=True)
class WaiverProblem:
    """What is wrong with a waiver: it matches nothing, has expired, a failure exceeds its loss, or it is too wide."""

    kind: Literal["unused", "expired", "loss", "wide"]
    text: str


def apply_waivers(
    criteria: Sequence[VerdictEntry], waivers: Sequence[Waiver], *, drop: str, suite: str, today: date
) -> list[WaiverProblem]:
    """Put its waiver into each accepted failure; returns what is wrong with the waivers.

    A waiver counts through its last day, for failures within its loss. One that matches nothing, has expired, or
    covers more than what failed is reported; an expired one counts no more.
    """
    doubts = []
    for waiver in waivers:
        name = f"waiver {waiver.reference} of {waiver.owner}"
        here = _of_drop(waiver.drop, drop) and fnmatch.fnmatchcase(suite, waiver.suite)
        # what decides nothing needs no acceptance, and would be counted as a failure that was accepted
        covered = [entry for entry in criteria if here and entry.required and _covers(waiver, entry)]
        failed = [entry for entry in covered if entry.outcome == "FAIL"]
        if not failed:
            doubts.append(WaiverProblem("unused", f"{name} matches no failure"))
            continue
        if today > waiver.expiry:
            doubts.append(WaiverProblem("expired", f"{name} expired on {waiver.expiry.isoformat()}"))
            continue
        for entry in failed:
            if waiver.max_loss is not None and not _is_within(entry, waiver.max_loss):
                doubts.append(WaiverProblem("loss", f"{name} {_beyond(entry, waiver.max_loss)}"))
                continue
            entry.waiver = {
                "owner": waiver.owner,
                "reason": waiver.reason,
                "reference": waiver.reference,
                "expiry": waiver.expiry.isoformat(),
            }
        if len(covered) > len(failed):
            text = f"is wider than what failed: it covers {len(covered)} criteria, {len(failed)} failed"
            doubts.append(WaiverProblem("wide", f"{name} {text}"))
    return doubts


def _is_within(entry: VerdictEntry, max_loss: float) -> bool:
    """Whether a failure has a loss, and one that is no larger; to four decimals of a percent, as in verdict.json."""
    return entry.loss_percent is not None and entry.loss_percent <= round(100 * max_loss, 4)


def _beyond(entry: VerdictEntry, max_loss: float) -> str:
    """Why a waiver with `max_loss` does not accept a failure."""
    point = "/".join(name for name in (entry.adapter, entry.point) if name) or str(entry.bench)
    accepted = f"accepts a loss of {format_percent(max_loss)}"
    if entry.loss_percent is not None:
        return f"{accepted}, {point} lost {format_percent(entry.loss_percent / 100)}"
    return (
        f"{accepted}, but {entry.id} of {point} has no loss in percent, so max_loss does not cover it; only a waiver "
        "without max_loss can accept it"
    )


def _of_drop(pattern: str, drop: str) -> bool:
    """Whether a drop is meant: by a pattern, or by a range `28.00..28.09` in which numbers count as numbers."""
    first, dots, last = pattern.partition("..")
    if dots:
        return _natural(first) <= _natural(drop) <= _natural(last)
    return fnmatch.fnmatchcase(drop, pattern)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts 9.2 before 9.10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if is_whole(part) else (1, 0, part) for part in parts]


def _covers(waiver: Waiver, entry: VerdictEntry) -> bool:
    if not fnmatch.fnmatchcase(str(entry.adapter or ""), waiver.adapter):
        return False
    if not fnmatch.fnmatchcase(str(entry.bench or ""), waiver.bench):
        return False
    return fits_name(entry.id, waiver.criterion) and fits_name(entry.point or "", waiver.point)


def required_roles(run: Run) -> tuple[str, ...]:
    """The roles whose signatures this run needs, one each. Raises BadInputError for a gate that cannot be read."""
    if "gate" not in (run.document.get("inputs") or {}):
        return DEFAULT_ROLES
    return tuple(load_gate(run.input_file("gate")).signatures) or DEFAULT_ROLES


def used_waivers(criteria: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The waivers in entries of a verdict, each once, in their order."""
    waivers = (entry.get("waiver") for entry in criteria)
    return each_waiver(entry_waiver for entry_waiver in waivers if isinstance(entry_waiver, Mapping))


def each_waiver(waivers: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Waivers, each once: one that accepts several failures is one."""
    return list({_named(waiver): waiver for waiver in waivers}.values())


def with_waivers(waivers: Iterable[Mapping[str, Any]]) -> str:
    """`with 2 waivers: LAB-12 of Pat through 2026-12-31; LAB-13 of Kim through 2027-01-31`; empty without any."""
    named = [_named(waiver) for waiver in each_waiver(waivers)]
    return f"with {len(named)} {'waiver' if len(named) == 1 else 'waivers'}: {'; '.join(named)}" if named else ""


def waiver_list(waivers: Iterable[Mapping[str, Any]]) -> str:
    """The same without the number, for a page that states it by itself."""
    return "; ".join(_named(waiver) for waiver in each_waiver(waivers))


def _named(waiver: Mapping[str, Any]) -> str:
    return " ".join(f"{waiver.get(name) or 'unknown'}{word}" for name, word in _PARTS)


_PARTS = (("reference", " of"), ("owner", " through"), ("expiry", ""))
