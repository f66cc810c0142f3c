# SPDX-License-Identifier: Apache-2.0
"""The annex as a page: what was noted after a run was signed; made from the signed notes, evidence of nothing."""

from __future__ import annotations

from collections.abc import Sequence

from storqual.report.documents.document import Document, Section
from storqual.report.notes import note_rows
from storqual.run import Run
from storqual.run.notes import Note


def annex_page(run: Run, notes: Sequence[Note]) -> Document:
    """The page of the annex of `run`, which lies in its folder `annex`."""
    drops = " against ".join(run.arms[arm].drop for arm in ("candidate", "baseline") if arm in run.arms)
    section = Section(
        "notes",
        "Notes after signing",
        ("Each note has its own signature. The files signed before are unchanged.",),
        notes=note_rows(notes, below="annex/"),
    )
    return Document(
        kind="Annex",
        title=drops,
        subject=(f"Run {run.name}",),
        sections=(section,),
        foot="Made by storqual from the signed notes beside this page; storqual verify checks their signatures.",
    )
