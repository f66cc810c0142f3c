# SPDX-License-Identifier: Apache-2.0
"""What spoils a whole campaign, and what spoils single points: evidence beside the numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from storqual.base.text import telling_line
from storqual.run import Event, Run, guard_ledger, recovered


def sectors_outside(run: Run) -> int:
    """Sectors written to disks that no claim covers."""
    return int(guard_ledger(run.events, run.benches)["sectors_written_outside_claims"])


def rig_problems(run: Run) -> list[str]:
    """Sentences that make the run an ERROR whatever was measured: the rig or the guard is not valid."""
    problems = []
    outside = sectors_outside(run)
    if outside:
        problems.append(f"{outside} sectors were written to disks that no claim covers")
    problems += [told for told, why in _spoiling(run) if not why]
    return problems + _shared_boots(run) + _changed_inputs(run) + _not_in_effect(run)


def overcome_problems(run: Run) -> list[str]:
    """What went wrong while the campaign was under way and was put right when it was resumed: worth a warning."""
    return [f"{told}; {why}" for told, why in _spoiling(run) if why]


def _spoiling(run: Run) -> Iterator[tuple[str, str]]:
    """What each event says against the rig, and why it no longer does; empty where it still does."""
    for event in run.events:
        sentence = _spoils(event)
        if sentence:
            yield f"{event.bench}: {sentence}" if event.bench else sentence, recovered(run, event)


def _changed_inputs(run: Run) -> list[str]:
    """Suite, gate and drops were frozen by digest at plan time: what was changed since decides nothing."""
    return [problem.removeprefix(f"{run.path}/") for problem in run.verify_inputs()]


def _not_in_effect(run: Run) -> list[str]:
    """Settings that a session was measured without: read back otherwise than declared, or shown to have no effect."""
    said = []
    for event in run.events:
        if event.kind != "session_started":
            continue
        for setting in (event.fields.get("provisioned") or {}).get("settings") or ():
            wrong = _setting_problem(setting)
            if wrong:
                where = " of ".join(str(setting[name]) for name in ("name", "drive") if setting.get(name))
                said.append(f"{event.bench}: session {event.text('session')}, {where}: {wrong}")
    return said


def _setting_problem(setting: Mapping[str, Any]) -> str:
    """Why this setting was not what the drop says; empty when it was, or when nothing speaks against it."""
    declared, found = setting.get("declared"), setting.get("read_back")
    if declared is not None and found != declared:
        return f"declared {declared}, read back {found}"
    if setting.get("proven") is False:
        return f"declared {declared}, but not in effect: {setting.get('proof') or 'no reason was recorded'}"
    return ""


def _spoils(event: Event) -> str:
    """What an event of that kind says about the rig; empty for one that says nothing."""
    if event.kind == "kernel_panic":
        panic = telling_line(event.text("text")) or "no text was kept"
        return f"the kernel of the {event.fields.get('arm') or 'bench'} panicked: {panic}"
    if event.kind == "provision_failed":
        return f"session {event.text('session')} could not be provisioned: {_first_line(event.text('reason'))}"
    if event.kind == "unplugged":
        return f"drive {event.text('drive')} was unplugged while it was measured"
    if event.kind == "restore_failed":
        return f"the bench was not left as it was found: {_first_line(event.text('reason'))}"
    if event.kind == "failed":
        return f"{_first_line(event.text('message'))} (task {event.fields.get('task') or 'unknown'})"
    return ""


def _shared_boots(run: Run) -> list[str]:
    """Sessions of a drop that costs a reboot must not share a boot: one session would be counted as two."""
    costly = {(session.bench, session.id) for session in run.sessions if session.change == "reboot"}
    boots: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for event in run.events:
        if event.kind == "session_started" and event.bench and (event.bench, event.text("session")) in costly:
            boots[(event.bench, event.text("boot_id"))].append(event.text("session"))
    return [
        f"{bench}: sessions {', '.join(sessions)} ran on one boot, so they are one session"
        for (bench, _), sessions in boots.items()
        if len(set(sessions)) > 1
    ]


def log_findings(run: Run) -> Mapping[str, list[str]]:
    """What the kernel log says, by what it speaks of: a sample's id, or a block where no launch is named.

    A perfect number with a reset in the middle is no pass.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for event in run.events:
        if event.kind != "block_finished":
            continue
        block = event.text("block")
        for finding in event.fields.get("findings") or ():
            line = (finding.get("lines") or [finding.get("line") or "no line was kept"])[0]
            more = int(finding.get("count") or 1) - 1
            launch = finding.get("launch")
            where = block if launch is None else f"{block}/{launch}"
            found[where].append(
                f"kernel log, {finding.get('kind')}: {line}" + (f" (and {more} more)" if more > 0 else "")
            )
    return found


def unfinished_blocks(run: Run) -> list[str]:
    """Blocks that did not end as planned, and why."""
    said = []
    for event in run.events:
        if event.kind == "block_finished" and event.text("outcome") not in ("", "done"):
            why = _first_line(event.text("message"))
            mended = recovered(run, event)
            told = f"{event.bench}: block {event.text('block')} ended {event.text('outcome')}: {why}"
            said.append(f"{told}; {mended}" if mended else told)
    return said


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason was recorded"
