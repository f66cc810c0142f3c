# SPDX-License-Identifier: Apache-2.0
"""The manifest of a run directory: every file with its size and digest, and how a directory differs from it.

It covers every file but `signoff*` and `judgements/` at the top: signatures come after it, and a run may be judged
again by other rules at any time without touching what was signed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storqual.run.layout import dump_json, sha256_of
from storqual_core.kit.errors import BadInputError

MANIFEST = "signoff.manifest.json"
SCHEMA = "storqual.manifest/1"
_LINES = ".jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: path in the run directory, bytes, SHA-256; of line files also the SHA-256 of their sorted lines."""

    path: str
    size: int
    sha256: str
    sorted_sha256: str | None = None

    @classmethod
    def of(cls, run: Path, path: str) -> Entry:
        """The entry of a file as it is now. Raises OSError."""
        with (run / path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        return cls(path, size, digest, _sorted_digest(run / path) if path.endswith(_LINES) else None)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Entry:
        """Read one entry. Raises KeyError or TypeError."""
        return cls(str(entry["path"]), int(entry["size"]), str(entry["sha256"]), entry.get("sorted_sha256"))


def _sorted_digest(path: Path) -> str:
    """What stays the same when lines only change places."""
    return sha256_of(b"\n".join(sorted(path.read_bytes().split(b"\n"))))


def list_files(run: Path) -> list[Entry]:
    """Every file that the manifest covers, in the order of their paths.

    Raises BadInputError for what is neither file nor folder: a link leads out of what is signed.
    """
    paths, problems = [], []
    for path, plain in _walk(run, ""):
        if plain:
            paths.append(path)
        else:
            problems.append(f"{run / path}: found a link or a special file, expected plain files in a run directory")
    if problems:
        raise BadInputError(problems)
    return [Entry.of(run, path) for path in sorted(paths)]


def _walk(run: Path, folder: str) -> Iterator[tuple[str, bool]]:
    """Paths below `folder`, and whether each is a plain file; folders are gone into, links are not."""
    with os.scandir(run / folder) as found:
        for entry in found:
            path = f"{folder}{entry.name}"
            if not folder and (entry.name.startswith("signoff") or entry.name == "judgements"):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(run, f"{path}/")
            else:
                yield path, entry.is_file(follow_symlinks=False)


def dump_manifest(run: str, entries: Sequence[Entry]) -> bytes:
    """The manifest as bytes; equal files give equal bytes."""
    files = [{name: value for name, value in asdict(entry).items() if value is not None} for entry in entries]
    # a name that is no UTF-8 must survive: other than in the run's own files, everything is written in ASCII
    return dump_json({"schema": SCHEMA, "run": run, "files": files}, ascii_only=True)


def parse_manifest(data: bytes) -> tuple[Entry, ...]:
    """The entries of a manifest. Raises ValueError for bytes that are none."""
    try:
        document = json.loads(data)
        if document["schema"] != SCHEMA:
            raise ValueError(f"found schema {document['schema']!r}, expected {SCHEMA!r}")
        return tuple(Entry.from_json(entry) for entry in document["files"])
    except (KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError(f"found no manifest ({problem!r})") from None


def manifest_differences(run: Path, signed: Sequence[Entry]) -> list[str]:
    """What is no longer as it was signed, a sentence for each file; empty when all is."""
    before = {entry.path: entry for entry in signed}
    plain: dict[str, Entry] = {}
    said: dict[str, str] = {}
    for path, regular in _walk(run, ""):
        try:
            if regular:
                plain[path] = Entry.of(run, path)
            else:
                said[path] = "is a link or a special file now" if path in before else "was added (a link)"
        except OSError as problem:
            said[path] = f"cannot be read ({problem.strerror})"
    missing = {path for path in before if path not in plain and path not in said}
    by_digest = {before[path].sha256: path for path in sorted(missing, reverse=True)}
    for path, now in plain.items():
        then = before.get(path)
        if then is None:
            old = by_digest.pop(now.sha256, None)
            if old is None:
                said[path] = "was added"
            else:
                said[old] = f"was renamed to {path}"
                missing.discard(old)
        elif now.sha256 != then.sha256:
            same = now.sorted_sha256 is not None and now.sorted_sha256 == then.sorted_sha256
            said[path] = "was changed: its lines were put in another order" if same else "was changed"
    said.update(dict.fromkeys(missing, "is missing"))
    return [f"{path}: {said[path]}" for path in sorted(said)]


_ROLE = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
_ENVELOPE = re.compile(rf"signoff\.({_ROLE})\.json\Z")
_STATEMENT = re.compile(rf"signoff\.({_ROLE})\.statement\.json\Z")


@dataclass(frozen=True, slots=True)
class Named:
    """A signature by the names of its files: an envelope, or a statement and the signature beside it."""

    role: str
    file: str
    detached: str | None = None


def envelope_name(role: str) -> str:
    """The file of a DSSE envelope."""
    return f"signoff.{role}.json"


def statement_name(role: str) -> str:
    """The file of a statement that `ssh-keygen -Y` signs."""
    return f"signoff.{role}.statement.json"


def named_signatures(names: Iterable[str]) -> tuple[list[Named], list[str]]:
    """Signatures among the files whose names begin with `signoff`, and what is wrong with the others."""
    left = set(names) - {MANIFEST}
    found, problems = [], []
    for name in sorted(left):
        envelope, statement = _ENVELOPE.match(name), _STATEMENT.match(name)
        if envelope:
            found.append(Named(envelope.group(1), name))
        elif statement and f"{name}.sig" in left:
            found.append(Named(statement.group(1), name, f"{name}.sig"))
        elif statement:
            problems.append(f"{name}: is not signed, {name}.sig is missing")
        elif not (name.endswith(".sig") and name.removesuffix(".sig") in left):
            problems.append(f"{name}: was added, it is no part of a sign-off")
    return found, problems
