# SPDX-License-Identifier: Apache-2.0
"""Notes that people added to a run, with their links and attachments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from storqual.report.figures import minute
from storqual.run.notes import Note


@dataclass(frozen=True)
class NoteRow:
    """A note: what is shown of it; `links` are addresses, `files` names with their places beside the page."""

    at: str
    by: str
    text: str
    links: tuple[str, ...]
    files: tuple[tuple[str, str, str], ...]


def note_rows(notes: Iterable[Note], *, below: str = "") -> tuple[NoteRow, ...]:
    """The notes in their order; `below` is the folder of the run that the page lies in."""
    return tuple(
        NoteRow(
            minute(one.at),
            one.by,
            one.text,
            one.links,
            tuple((file.name, file.path.removeprefix(below), file.sha256) for file in one.files),
        )
        for one in notes
    )
