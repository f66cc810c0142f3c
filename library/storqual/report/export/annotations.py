# SPDX-License-Identifier: Apache-2.0
"""A verdict where a merge request is read: GitHub workflow commands, and GitLab's code quality report.

Both point at the candidate's drop manifest, the file that such a request changes. What decides stands first, because
GitHub shows only so many annotations of a step; what passed is not annotated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from storqual.base.text import terminal_text
from storqual.report.criterion import Criterion, read_criteria, waived_by
from storqual.report.material import Material
from storqual.report.parts.sentence import sentence_for

MOST = 10
"""Annotations of one kind that GitHub shows for a step."""

_LEVELS = {"FAIL": "error", "ERROR": "error", "INCONCLUSIVE": "error", "MARGINAL": "warning"}
_SEVERITIES = {"error": "critical", "warning": "minor", "notice": "info"}
_ORDER = ("error", "warning", "notice")


@dataclass(frozen=True, slots=True)
class _Note:
    """One annotation; texts are made safe."""

    level: str
    check: str
    text: str


def github_annotations(material: Material, checkout: Path) -> str:
    """Workflow commands, one a line: the run's outcome, then its worst criteria, then how many more there are.

    `checkout` is the folder that file names are relative to.
    """
    notes = list(_notes(material))
    file = _file(material, checkout)
    lines = [_command(file, notes[0])]
    for level in _ORDER:
        own = [note for note in notes[1:] if note.level == level]
        # the first of a kind may be the outcome; the last one tells how many are left
        shown = own if len(own) < MOST else own[: MOST - 2]
        lines += [_command(file, note) for note in shown]
        if len(own) > len(shown):
            more = f"{len(own) - len(shown)} more, see the report"
            lines.append(_command(file, _Note(level, "storqual", more)))
    return "".join(f"{line}\n" for line in lines)


def gitlab_code_quality(material: Material, checkout: Path) -> str:
    """The JSON list of GitLab's code quality report; fingerprints stay the same when a run is exported again.

    `checkout` is the folder that file names are relative to.
    """
    run = material.run.name
    file = _file(material, checkout)
    listed = [
        {
            "description": note.text,
            "check_name": note.check,
            "fingerprint": hashlib.sha256(f"{run}\0{number}\0{note.check}\0{note.text}".encode()).hexdigest(),
            "severity": _SEVERITIES[note.level],
            "location": {"path": file, "lines": {"begin": 1}},
        }
        for number, note in enumerate(_notes(material))
        if number or note.level != "notice"
    ]
    return json.dumps(listed, ensure_ascii=False, indent=1) + "\n"


def _notes(material: Material) -> Iterator[_Note]:
    """The outcome first, then every required criterion that did not simply pass, the worst first."""
    rows = read_criteria(material.verdict)
    drops = {arm: drop.drop for arm, drop in material.run.arms.items()}
    outcome = str(material.verdict.get("outcome"))
    sentence = "".join(str(part) for part in sentence_for(material.verdict, rows, drops))
    yield _Note(_LEVELS.get(outcome, "notice"), "storqual", terminal_text(f"{outcome}: {sentence}"))
    notes = [_of_row(row) for row in rows if row.required and row.outcome not in ("PASS", "SKIPPED")]
    yield from sorted(notes, key=lambda note: _ORDER.index(note.level))


def _of_row(row: Criterion) -> _Note:
    place = "/".join(part for part in row.key if part)
    text = f"{row.outcome} {row.text('id')} at {place}: {row.text('reason')}"
    if row.waived:
        waiver = row.fields["waiver"]
        text += f" ({waived_by(waiver)}, {waiver.get('reference')})"
    level = "warning" if row.waived else _LEVELS.get(row.outcome, "notice")
    return _Note(level, terminal_text(row.text("id")), terminal_text(text))


def _file(material: Material, checkout: Path) -> str:
    """The candidate's manifest in the checkout; the copy in the run where it came from somewhere else."""
    entry = (material.document.get("inputs") or {}).get("candidate") or {}
    source = checkout / str(entry.get("source") or "")
    inside = source != checkout and source.is_relative_to(checkout) and ".." not in source.parts
    return terminal_text(str(source.relative_to(checkout)) if inside else material.run.arms["candidate"].file)


def _command(file: str, note: _Note) -> str:
    title = "storqual" if note.check == "storqual" else f"storqual: {note.check}"
    properties = {"file": file, "line": "1", "title": title}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{note.level} {listed}::{_data(note.text)}"


def _data(text: str) -> str:
    """Text of a workflow command: a line end or a percent sign in it must not begin another one."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
