# SPDX-License-Identifier: Apache-2.0
"""What was published of a run: verdict, report and exports belong together, and the chain says which they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from storqual.run.events import append_event_locked, iter_events
from storqual.run.evidence import evidence_findings
from storqual.run.files import DAMAGE, damage_told, file_digest
from storqual.run.layout import EVENTS, locked
from storqual.run.notes import changed_attachments, read_notes
from storqual.run.recompute import SampleCheck
from storqual.run.run import Run, read_run

PUBLISHED = ("verdict.json", "report.html", "junit.xml", "pytest.html", "ocp.jsonl")


def record_published(run: Path) -> None:
    """Append the digests of what was published, unless the chain has them. Raises BadInputError for a signed run."""
    with locked(run):
        files = {name: file_digest(run, name) for name in PUBLISHED if (run / name).is_file()}
        said = [event.fields.get("files") for event in iter_events(run) if event.kind == "published"]
        if said[-1:] != [files]:
            append_event_locked(run, "published", {"files": files})


def run_findings(path: Path, samples: SampleCheck | None = None) -> list[str]:
    """Everything that speaks against a run as it lies there, a sentence each; empty for one that is whole.

    `samples` is what was found when they were read; without it they are read now. What cannot be read as what it is
    speaks against it as well. Raises nothing of the run's own.
    """
    try:
        run = read_run(path)
        return [
            *evidence_findings(run, samples),
            *published_findings(run),
            *changed_attachments(path, read_notes(path)),
        ]
    except DAMAGE as problem:
        return damage_told(path, problem)


def published_findings(run: Run) -> Iterator[str]:
    """Published files that are not those that were published last, a sentence each."""
    published = [event for event in run.events if event.kind == "published"]
    said: dict[str, str] = dict(published[-1].fields["files"]) if published else {}
    for name, digest in said.items():
        path = run.path / name
        if not path.is_file():
            yield f"{name}: is missing, although {EVENTS} says that it was published"
        elif file_digest(run.path, name) != digest:
            yield f"{name}: is not what was published"
