# SPDX-License-Identifier: Apache-2.0
"""The manifest of a run directory: every file and folder as it was signed, and how a directory differs from it.

It covers everything but the signatures themselves and `annex/`, the one folder for what comes after signing. Of a
file it keeps the bytes and whether it may be executed. Whatever would let its content change unseen (links, a second
name, write permission for everybody) or makes it more than a file is refused, whenever it is looked at.

Manifests of schema 1 left `judgements/` out, and knew no folders, second names or permissions: runs that were signed
by those rules are checked by them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storqual.base.files import SECOND_NAME, OddFileError, digest_of
from storqual.run.files import Entry as Found
from storqual.run.files import open_file, read_bytes, walk
from storqual.run.layout import ANNEX, dump_json, sha256_of
from storqual_core.kit.errors import BadInputError

MANIFEST = "signoff.manifest.json"
SCHEMA = "storqual.manifest/2"
FIRST_SCHEMA = "storqual.manifest/1"
_LINES = ".jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: path in the run directory, bytes, SHA-256; of line files also the SHA-256 of their sorted lines."""

    path: str
    size: int
    sha256: str
    sorted_sha256: str | None = None
    executable: bool | None = None

    @classmethod
    def of(cls, run: Path, path: str) -> Entry:
        """The entry of a file as it is now. Raises OSError, OddFileError."""
        handle = open_file(run, path)
        status = os.fstat(handle)
        digest = digest_of(handle, status.st_size, path)
        executable = bool(status.st_mode & 0o111) or None
        lines = _sorted_digest(run, path) if path.endswith(_LINES) else None
        return cls(path, status.st_size, digest, lines, executable)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Entry:
        """Read one entry. Raises KeyError or TypeError."""
        executable = True if entry.get("executable") else None
        return cls(
            str(entry["path"]), int(entry["size"]), str(entry["sha256"]), entry.get("sorted_sha256"), executable
        )

    def to_json(self) -> dict[str, Any]:
        """Its entry in a manifest."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _sorted_digest(run: Path, path: str) -> str:
    """What stays the same when lines only change places."""
    return sha256_of(b"\n".join(sorted(read_bytes(run, path).split(b"\n"))))


@dataclass(frozen=True)
class Manifest:
    """What a signature is about: files and folders, and by which rules a directory is compared with them."""

    schema: str
    files: tuple[Entry, ...]
    folders: tuple[str, ...] = ()

    @property
    def first_rules(self) -> bool:
        """Whether it was made by schema 1."""
        return self.schema == FIRST_SCHEMA

    @property
    def rules(self) -> str:
        """By what a run directory is compared with it, for people."""
        if self.first_rules:
            return f"{FIRST_SCHEMA}: files and links; not folders, permissions, second names or `judgements/`"
        return f"{SCHEMA}: files, folders, permissions, links and second names"


def list_files(run: Path) -> Manifest:
    """Every file and folder that a signature is about, in the order of their paths.

    Raises BadInputError for what is no plain file or folder, or can be changed by another name or by anybody.
    """
    found = list(_walk(run))
    odd = ((one.path, oddity(one)) for one in found)
    problems = [f"{run / path}: {told}, expected plain files in a run directory" for path, told in odd if told]
    if problems:
        raise BadInputError(problems)
    files = sorted(one.path for one in found if not one.folder)
    return Manifest(
        SCHEMA, tuple(Entry.of(run, path) for path in files), tuple(sorted(one.path for one in found if one.folder))
    )


def _walk(run: Path) -> Iterator[Found]:
    """What lies below a run directory, but for signatures and the annex. Raises as `walk`."""
    for one in walk(run):
        top = one.path.partition("/")[0]
        signature = top.startswith("signoff") and top == one.path and not one.folder
        if not signature and top != ANNEX:
            yield one


_SPECIAL_RIGHTS = stat.S_ISUID | stat.S_ISGID


def oddity(found: Found) -> str:
    """Why that is no plain file or folder that is its owner's alone; empty when it is."""
    mode = found.status.st_mode
    if found.odd:
        return found.odd
    if not found.folder and mode & _SPECIAL_RIGHTS:
        return "runs with the rights of its owner or group (setuid or setgid)"
    return "can be written by anyone" if mode & stat.S_IWOTH else ""


def dump_manifest(run: str, manifest: Manifest) -> bytes:
    """The manifest as bytes; equal directories give equal bytes."""
    files = [entry.to_json() for entry in manifest.files]
    # a name that is no UTF-8 must survive: other than in the run's own files, everything is written in ASCII
    document = {"schema": manifest.schema, "run": run, "files": files, "folders": list(manifest.folders)}
    return dump_json(document, ascii_only=True)


def parse_manifest(data: bytes) -> Manifest:
    """A manifest, of this schema or of the first. Raises ValueError for bytes that are none."""
    try:
        document = json.loads(data)
        schema = document["schema"]
        if schema not in (SCHEMA, FIRST_SCHEMA):
            raise ValueError(f"found schema {schema!r}, expected {SCHEMA!r}")
        files = tuple(Entry.from_json(entry) for entry in document["files"])
        folders = () if schema == FIRST_SCHEMA else tuple(str(folder) for folder in document["folders"])
    except (KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError(f"this is not a manifest ({problem!r})") from None
    return Manifest(schema, files, folders)


def manifest_differences(run: Path, signed: Manifest) -> list[str]:
    """What is no longer as it was signed, a sentence for each file or folder; empty when all is."""
    before = {entry.path: entry for entry in signed.files}
    sizes = {entry.size for entry in signed.files}
    plain: dict[str, Entry] = {}
    said: dict[str, str] = {}
    folders = set()
    for one, odd in _seen_by(run, signed):
        then = before.get(one.path)
        now = "" if odd or one.folder else _as_it_is(run, one, sizes if then is None else {then.size})
        if odd:
            said[one.path] = f"was added: it {odd}" if then is None else odd
        elif one.folder:
            folders.add(one.path)
        elif isinstance(now, Entry):
            plain[one.path] = now
        else:
            said[one.path] = now or ("was added" if then is None else "was changed")
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
            said[path] = "was changed: its lines are in another order" if same else "was changed"
        elif now.executable != then.executable and not signed.first_rules:
            said[path] = "is executable now" if now.executable else "is no longer executable"
    said.update(dict.fromkeys(missing, "is missing"))
    if not signed.first_rules:
        said.update(dict.fromkeys(folders.difference(signed.folders), "was added (a folder)"))
        said.update(dict.fromkeys(set(signed.folders).difference(folders, said), "is missing (a folder)"))
    return [f"{path}: {said[path]}" for path in sorted(said)]


def _as_it_is(run: Path, found: Found, sizes: Collection[int]) -> Entry | str:
    """A file as it is now; empty when it has another size: what cannot be what was signed need not be read."""
    try:
        return Entry.of(run, found.path) if found.status.st_size in sizes else ""
    except OSError as problem:
        return f"cannot be read ({problem.strerror})"
    except OddFileError as problem:
        return f"cannot be read ({problem})"


def _seen_by(run: Path, signed: Manifest) -> Iterator[tuple[Found, str]]:
    """What the rules of a manifest look at, and what is odd about it by them."""
    for one in _walk(run):
        if not signed.first_rules:
            yield one, oddity(one)
        elif not one.folder and not one.path.startswith(("judgements/", "signoff")):
            yield one, "" if one.odd == SECOND_NAME else one.odd
