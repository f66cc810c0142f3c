# SPDX-License-Identifier: Apache-2.0
"""What people add to a run in their own words: notes with links and attachments, before anybody has signed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storqual.base.text import visible_text
from storqual.run.events import append_event_locked, iter_events
from storqual.run.files import limit_of
from storqual.run.layout import locked, sha256_of, write_bytes
from storqual_core.kit.durable import is_name, read_regular
from storqual_core.kit.errors import BadInputError

NOTES = "notes"
_MOST_TEXT = 10_000


@dataclass(frozen=True)
class Attachment:
    """A file beside a note: its path in the run directory, bytes, SHA-256."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """What it was called, without the number of its note."""
        return self.path.rpartition("/")[2].partition("-")[2]


@dataclass(frozen=True)
class Note:
    """A note: what somebody says, since when, with links (to a tracker, say) and attachments."""

    at: str
    by: str
    text: str
    links: tuple[str, ...]
    files: tuple[Attachment, ...]

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], at: str) -> "Note":
        """One that was written. Raises KeyError, TypeError or ValueError."""
        files = (Attachment(str(file["path"]), int(file["size"]), str(file["sha256"])) for file in fields["files"])
        links = tuple(str(link) for link in fields["links"])
        return cls(at, str(fields["by"]), str(fields["text"]), links, tuple(files))

    def to_fields(self) -> dict[str, Any]:
        """As it is written; the time stands beside it."""
        files = [asdict(file) for file in self.files]
        return {"by": self.by, "text": self.text, "links": list(self.links), "files": files}


def make_note(
    text: str, by: str, links: Sequence[str], attached: Sequence[Path], *, folder: str, number: int
) -> tuple[Note, dict[str, bytes]]:
    """A note with the bytes of its attachments by their paths, which lie in `folder` of the run; nothing is written.

    Raises BadInputError with every problem: no text, links that are no web addresses, files that cannot be attached.
    """
    problems = []
    words, who = visible_text(text.strip()), visible_text(by.strip())
    if not words or len(words) > _MOST_TEXT:
        problems.append(f"the text of a note: found {len(words)} characters, expected 1 to {_MOST_TEXT}")
    if not who:
        problems.append("a note needs the name of its author")
    problems += [
        f"link {visible_text(link)!r}: expected an address that begins with https:// or http://"
        for link in links
        if not link.startswith(("https://", "http://")) or visible_text(link) != link or set(link) & set(' \t\n"<>')
    ]
    files: dict[str, bytes] = {}
    for path in attached:
        if not is_name(path.name):
            problems.append(f"{path}: this file name cannot be kept; it may have letters, digits, '_', '-' and '.'")
            continue
        try:
            data = read_regular(path, limit_of(f"{folder}/").most)
        except BadInputError as problem:
            problems += problem.problems
            continue
        name = f"{folder}/{number:04d}-{path.name}"
        if name in files:
            problems.append(f"{path}: another attachment has the same name; rename one of them")
        else:
            files[name] = data
    if problems:
        raise BadInputError(problems)
    attachments = tuple(Attachment(name, len(data), sha256_of(data)) for name, data in files.items())
    return Note("", who, words, tuple(links), attachments), files


def add_note(run: Path, text: str, by: str, links: Sequence[str], attached: Sequence[Path]) -> Note:
    """Put a note into the chain of a run that nobody has signed, its attachments into `notes/`.

    Raises BadInputError for a note that is none, and for a signed run.
    """
    with locked(run) as folder:
        note, files = make_note(text, by, links, attached, folder=NOTES, number=len(read_notes(folder)) + 1)
        for name, data in files.items():
            write_bytes(folder / name, data)
        event = append_event_locked(folder, "noted", note.to_fields())
    return Note.from_fields(event.fields, event.time)


def read_notes(run: Path) -> tuple[Note, ...]:
    """The notes in the chain of a run, in their order. Raises StorqualError for a damaged chain."""
    return tuple(Note.from_fields(event.fields, event.time) for event in iter_events(run) if event.kind == "noted")
