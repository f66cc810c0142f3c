# SPDX-License-Identifier: Apache-2.0
"""Signed notes after the sign-off: each an envelope in `annex/notes/` about the manifest that was signed.

What was signed is not touched: a note names the manifest's digest and those of its attachments, and has a signature
of its own. `annex/index.html` shows the notes; it is made from them and is evidence of nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.inputs.policy import TrustedKey, fingerprint, load_trust
from storqual.run import is_signed, read_run, sha256_of, write_bytes
from storqual.run.files import DAMAGE, file_digest, parse_line, read_bytes
from storqual.run.layout import ANNEX, EVENTS, MANIFEST, dump_json, locked
from storqual.run.notes import NOTES as OWN_NOTES
from storqual.run.notes import Note, make_note
from storqual.signoff.signature import (
    load_private_key,
    open_envelope,
    public_line,
    read_payload,
    seal,
    time_problem,
    validity_problem,
)
from storqual.signoff.statement import STATEMENT_TYPE
from storqual_core.kit.durable import is_name
from storqual_core.kit.errors import BadInputError

NOTES = f"{ANNEX}/notes"
PREDICATE_TYPE = "urn:storqual:note:1"


@dataclass(frozen=True)
class AnnexNote:
    """A note of the annex as it was found; `problem` is empty when its signature holds."""

    file: str
    note: Note
    problem: str

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "at": self.note.at, **self.note.to_fields(), "problem": self.problem}


@dataclass(frozen=True)
class NoteRequest:
    """What is asked: the signed run, the note, and the key that signs it (a file) with the trusted keys."""

    run: Path
    text: str
    links: tuple[str, ...]
    attached: tuple[Path, ...]
    key: Path
    trusted: Path
    passphrase: Callable[[], str]
    now: datetime | None = None


def add_to_annex(request: NoteRequest) -> AnnexNote:
    """Sign a note and put it into the annex; nothing is written when anything speaks against it.

    Raises BadInputError for a run that nobody has signed, a note that is none, a key that is not trusted today.
    """
    with locked(request.run, signed=True):
        return _add(request)


def _add(request: NoteRequest) -> AnnexNote:
    run = read_run(request.run)
    if not is_signed(run.path):
        reason = "this run is not signed; notes on it are part of what will be signed"
        raise BadInputError([f"{run.path}: {reason}"])
    now = (request.now or datetime.now(UTC)).astimezone(UTC)
    private = load_private_key(request.key, request.passphrase)
    key_id = fingerprint(public_line(private))
    who = next((key for key in load_trust(request.trusted).keys if key.id == key_id), None)
    problem = "" if who is None else validity_problem(who, now.date())
    if who is None or problem:
        unknown = f"key {key_id} is not listed in {request.trusted}; add it there"
        raise BadInputError([f"{request.key}: {problem or unknown}"])
    number = len(list((run.path / NOTES).glob("*.json"))) + 1
    note, files = make_note(request.text, who.name, request.links, request.attached, folder=NOTES, number=number)
    note = replace(note, at=now.isoformat(timespec="seconds").replace("+00:00", "Z"))
    statement = _statement(run.name, who.id, note, manifest=file_digest(run.path, MANIFEST))
    for path, data in files.items():
        write_bytes(run.path / path, data)
    file = f"{NOTES}/{number:04d}.json"
    # the signature last: with it the note counts
    write_bytes(run.path / file, seal(statement, private))
    return AnnexNote(file, note, "")


def _statement(run: str, key: str, note: Note, *, manifest: str) -> bytes:
    subjects = {MANIFEST: manifest, **{attachment.path: attachment.sha256 for attachment in note.files}}
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"run": run, "key": key, "at": note.at, **note.to_fields()},
    }
    return dump_json(statement, ascii_only=True)


def annex_notes(path: Path, keys: Mapping[str, TrustedKey], moment: datetime) -> tuple[AnnexNote, ...]:
    """The notes in the annex of the run directory `path`, each held to its signature and its attachments.

    `keys` are trusted, by fingerprint. Raises OSError.
    """
    manifest = path / MANIFEST
    data = read_bytes(path, MANIFEST) if manifest.is_file() else b""
    files = sorted((path / NOTES).glob("*.json"))
    return tuple(_checked(path, file, data, keys, moment) for file in files)


def _checked(path: Path, file: Path, manifest: bytes, keys: Mapping[str, TrustedKey], moment: datetime) -> AnnexNote:
    name = file.relative_to(path).as_posix()
    note = Note("", "", "", (), ())
    try:
        data = read_bytes(path, name)
        statement = parse_line(read_payload(data), name)
        predicate = statement["predicate"]
        note = Note.from_fields(predicate, str(predicate["at"]))
        key = keys.get(str(predicate["key"]))
        if key is None:
            return AnnexNote(name, note, f"it is signed with the key {predicate['key']}, which is not trusted")
        payload = open_envelope(data, key)
        problem = _problem(statement, note, key, moment)
        run = str(parse_line(manifest, MANIFEST)["run"]) if manifest else ""
        if payload != _statement(run, key.id, note, manifest=sha256_of(manifest)):
            problem = problem or "it is about another manifest or other attachments, or has a field that no note has"
        return AnnexNote(name, note, problem or "; ".join(changed_attachments(path, [note])))
    except DAMAGE as broken:
        return AnnexNote(name, note, f"it is not a signed note ({broken})")


def _problem(statement: Mapping[str, Any], note: Note, key: TrustedKey, moment: datetime) -> str:
    """Whether this person could say that, at that time."""
    if statement["predicateType"] != PREDICATE_TYPE:
        return "it is a statement of another kind"
    if note.by != key.name:
        return f"it names {note.by}, but the key is that of {key.name}"
    if any(not attachment.path.startswith(f"{NOTES}/") for attachment in note.files):
        return "an attachment lies outside of the annex"
    return time_problem(key, note.at, moment)


def changed_attachments(run: Path, notes: Sequence[Note]) -> list[str]:
    problems = []
    for file in (file for note in notes for file in note.files):
        path = run / file.path
        folder, _, name = file.path.rpartition("/")
        if not is_name(name) or folder not in (OWN_NOTES, NOTES):
            problems.append(f"{EVENTS}: a note has an attachment that lies in no folder of notes")
        elif not path.is_file():
            problems.append(f"{file.path}: is missing, although a note says that it was attached")
        elif file_digest(run, file.path) != file.sha256:
            problems.append(f"{file.path}: is not what was attached")
    return problems
