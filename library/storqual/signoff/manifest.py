# SPDX-License-Identifier: Apache-2.0
"""The manifest of a run directory: every file and folder as it was signed, and how a directory differs from it.

It covers everything but the signatures themselves and `annex/`, the one folder for what comes after signing. Of a
file it keeps the bytes and whether it may be executed. Whatever would let its content change unseen (links, a second
name, write permission for everybody) or makes it more than a file is refused, whenever it is looked at.
"""

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from storqual.base.files import OddFileError, digest_of, size_problem
from storqual.run.files import LIMITS, open_file, read_bytes, read_lines, walk
from storqual.run.layout import ANNEX, MANIFEST, SIGNATURE, dump_json
from storqual_core.kit.errors import BadInputError

SCHEMA = "storqual.manifest/2"
RULES = f"{SCHEMA}: files, folders, permissions, links and second names"
"""By what a run directory is compared with its manifest, for people."""
_LINES = ".jsonl"


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file: path in the run directory, bytes, SHA-256; of the run's line files also a digest of their lines."""

    path: str
    size: int
    sha256: str
    lines: str | None = None
    executable: bool | None = None

    @classmethod
    def of(cls, run: Path, path: str) -> "ManifestEntry":
        """The entry of a file as it is now. Raises OSError, OddFileError."""
        # first what ends at a line that is too long: a file without lines may have any size
        lines = _lines_digest(run, path) if path in LIMITS and path.endswith(_LINES) else None
        handle = open_file(run, path)
        status = os.fstat(handle)
        digest = digest_of(handle, status.st_size, path)
        executable = bool(status.st_mode & 0o111) or None
        return cls(path, status.st_size, digest, lines, executable)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "ManifestEntry":
        """Read one entry. Raises KeyError or TypeError."""
        executable = True if entry.get("executable") else None
        return cls(str(entry["path"]), int(entry["size"]), str(entry["sha256"]), entry.get("lines"), executable)

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def _lines_digest(run: Path, path: str) -> str:
    """What stays the same when lines only change places: the sum of their digests. Raises as `read_lines`."""
    total = sum(int.from_bytes(hashlib.sha256(line).digest()) for _, line in read_lines(run, path))
    return f"{total % (1 << 256):064x}"


@dataclass(frozen=True)
class Manifest:
    """What a signature is about: every file and folder."""

    files: tuple[ManifestEntry, ...]
    folders: tuple[str, ...] = ()


@dataclass
class FolderListing:
    """A run directory as it was looked at.

    `annex` are the files that were added after signing, `signatures` the digests of the files at its top whose names
    begin with `signoff`; neither are among `files` and `folders`, which a signature is about. `odd` says by path why
    something is no plain file or folder that is its owner's alone, `.` for the run directory itself. Two listings of
    one folder are equal when nothing was changed between them, not even changed and changed back: `stamps` has the
    inode and the change time, which no user can set.
    """

    files: dict[str, ManifestEntry] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    annex: dict[str, ManifestEntry] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    stamps: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        return [f"{path}: {self.odd[path]}" for path in sorted(self.odd)]

    @property
    def manifest(self) -> Manifest:
        """What a signature on it would be about."""
        return Manifest(tuple(self.files[path] for path in sorted(self.files)), tuple(sorted(self.folders)))


_TICK_NS = 20_000_000
"""Twice the coarsest step of a file system's clock on Linux: within it a change leaves no other change time."""


def look(run: Path) -> FolderListing:
    """Every file and folder of a run directory as it is now. Raises OSError for a directory that cannot be read."""
    listing = FolderListing()
    top = run.stat()
    listing.stamps["."] = _stamp(top)
    if top.st_mode & stat.S_IWOTH:
        listing.odd["."] = f"the run directory {_FOR_ANYBODY}"
    plain = _plain_files(run, listing)
    if max(changed for _, _, changed, *_ in listing.stamps.values()) > time.time_ns() - _TICK_NS:
        time.sleep(_TICK_NS / 1e9)
    signed = _signed_sizes(run) if MANIFEST in listing.stamps else {}
    sizes = set(signed.values())
    for path in plain:
        size = listing.stamps[path][-1]
        try:
            if signed and _is_signed(path) and size != signed.get(path) and (path in signed or size not in sizes):
                # it cannot be what was signed under this or another name: it need not be read
                entry = ManifestEntry(path, size, "")
            else:
                entry = ManifestEntry.of(run, path)
        except (OSError, OddFileError) as problem:
            listing.odd[path] = f"cannot be read ({getattr(problem, 'strerror', problem)})"
            continue
        if path.startswith(f"{ANNEX}/"):
            listing.annex[path] = entry
        elif _is_of_sign_off(path):
            listing.signatures[path] = entry.sha256
        else:
            listing.files[path] = entry
    return listing


def _signed_sizes(run: Path) -> dict[str, int]:
    """The bytes of each file that was signed; none where there is no manifest that can be read."""
    try:
        return {entry.path: entry.size for entry in parse_manifest(read_bytes(run, MANIFEST)).files}
    except (OSError, OddFileError, ValueError):
        return {}


def _is_signed(path: str) -> bool:
    return not _is_of_sign_off(path) and not path.startswith(f"{ANNEX}/")


def _plain_files(run: Path, listing: FolderListing) -> list[str]:
    files: list[str] = []
    annex = 0
    try:
        for entry in walk(run):
            path, status = entry.path, entry.status
            listing.stamps[path] = _stamp(status)
            in_annex = path.partition("/")[0] == ANNEX
            odd = entry.odd or oddity(status) or _odd_name(path, status)
            annex += status.st_size if in_annex else 0
            if odd:
                listing.odd[path] = odd
            elif not entry.folder:
                files.append(path)
            elif not in_annex:
                listing.folders.append(path)
    except OSError as problem:
        if problem.filename in (None, str(run)):
            raise
        listing.odd[os.path.relpath(problem.filename, run)] = f"cannot be read ({problem.strerror})"
    except OddFileError as problem:
        listing.odd["."] = str(problem)
    if annex > _LARGEST_ANNEX:
        listing.odd[ANNEX] = size_problem(annex, _LARGEST_ANNEX)
    return [path for path in sorted(files) if annex <= _LARGEST_ANNEX or not path.startswith(f"{ANNEX}/")]


def _is_of_sign_off(path: str) -> bool:
    """Whether something is at the top of a run directory and is called like a part of a sign-off."""
    return path.startswith("signoff") and "/" not in path


def _odd_name(path: str, status: os.stat_result) -> str:
    """Why something cannot be what it is called; empty when it can."""
    folder = stat.S_ISDIR(status.st_mode)
    if path == ANNEX and not folder:
        return "is not a folder"
    if not _is_of_sign_off(path):
        return ""
    return "is a folder with the name of a signature" if folder else "is executable" * bool(status.st_mode & 0o111)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_ctime_ns, status.st_mode, status.st_size


_LARGEST_ANNEX = 2 << 30
"""Bytes: thirty notes with the largest attachments."""
_SPECIAL_RIGHTS = stat.S_ISUID | stat.S_ISGID
_FOR_ANYBODY = "can be written by anyone"


def oddity(status: os.stat_result) -> str:
    """Why a plain file or folder is not its owner's alone; empty when it is."""
    if not stat.S_ISDIR(status.st_mode) and status.st_mode & _SPECIAL_RIGHTS:
        return "runs with the rights of its owner or group (setuid or setgid)"
    return _FOR_ANYBODY if status.st_mode & stat.S_IWOTH else ""


def list_files(run: Path) -> Manifest:
    """Every file and folder that a signature is about, in the order of their paths.

    Raises BadInputError for what is no plain file or folder, or can be changed by another name or by anybody.
    """
    listing = look(run)
    if listing.odd:
        expected = "expected plain files in a run directory"
        raise BadInputError([f"{run / path}: {listing.odd[path]}, {expected}" for path in sorted(listing.odd)])
    return listing.manifest


def dump_manifest(run: str, manifest: Manifest) -> bytes:
    """The manifest as bytes; equal directories give equal bytes."""
    files = [entry.to_json() for entry in manifest.files]
    # a name that is no UTF-8 must survive: other than in the run's own files, everything is written in ASCII
    return dump_json(
        {"schema": SCHEMA, "run": run, "files": files, "folders": list(manifest.folders)}, ascii_only=True
    )


def parse_manifest(data: bytes) -> Manifest:
    """A manifest as storqual writes it. Raises ValueError for any other bytes."""
    if data.count(b",") > LIMITS[MANIFEST].values:
        raise ValueError("it has more values than any manifest")
    try:
        document = json.loads(data)
        if document["schema"] != SCHEMA:
            raise ValueError(f"found schema {document['schema']!r}, expected {SCHEMA!r}")
        manifest = Manifest(
            tuple(ManifestEntry.from_json(entry) for entry in document["files"]),
            tuple(str(folder) for folder in document["folders"]),
        )
        same = dump_manifest(document["run"], manifest) == data
    except (KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError(f"this is not a manifest ({problem!r})") from None
    if not same:
        raise ValueError("it is not written as storqual writes it")
    return manifest


def manifest_differences(listing: FolderListing, signed: Manifest) -> list[str]:
    """What is no longer as it was signed, or is odd, a sentence for each file or folder; empty when all is well."""
    before = {entry.path: entry for entry in signed.files}
    signed_paths = {".", *before, *signed.folders}
    # of what a signature is not about, nothing was added
    signed_paths |= {path for path in listing.odd if _is_of_sign_off(path) or path.partition("/")[0] == ANNEX}
    sentences = {path: odd if path in signed_paths else f"was added: it {odd}" for path, odd in listing.odd.items()}
    missing = {path for path in before if path not in listing.files and path not in sentences}
    by_digest = {before[path].sha256: path for path in sorted(missing, reverse=True)}
    for path, now in listing.files.items():
        then = before.get(path)
        if then is None:
            old = by_digest.pop(now.sha256, None)
            if old is None:
                sentences[path] = "was added"
            else:
                sentences[old] = f"was renamed to {path}"
                missing.discard(old)
        elif now.sha256 != then.sha256:
            same = now.lines is not None and now.lines == then.lines
            sentences[path] = "was changed: its lines are in another order" if same else "was changed"
        elif now.executable != then.executable:
            sentences[path] = "is executable now" if now.executable else "is no longer executable"
    sentences.update(dict.fromkeys(missing, "is missing"))
    sentences.update(dict.fromkeys(set(listing.folders).difference(signed.folders), "was added (a folder)"))
    lost = set(signed.folders).difference(listing.folders, sentences)
    sentences.update(dict.fromkeys(lost, "is missing (a folder)"))
    return [f"{path}: {sentences[path]}" for path in sorted(sentences)]


@dataclass(frozen=True, slots=True)
class Named:
    """A signature by the names of its files: an envelope, or a statement and the signature beside it."""

    role: str
    file: str
    detached: str | None = None


def envelope_name(role: str) -> str:
    return f"signoff.{role}.json"


def statement_name(role: str) -> str:
    """The file of a statement that `ssh-keygen -Y` signs."""
    return f"signoff.{role}.statement.json"


def signature_names(run: Path) -> list[str]:
    """The names of the files at the top of a run directory that call themselves part of a sign-off."""
    return sorted(path.name for path in run.glob("signoff*") if path.is_file() and not path.is_symlink())


def named_signatures(names: Iterable[str]) -> tuple[list[Named], list[str]]:
    """Signatures among the files whose names begin with `signoff`, and what is wrong with the others."""
    names_left = set(names) - {MANIFEST}
    signatures, problems = [], []
    for name in sorted(names_left):
        match = SIGNATURE.match(name)
        if match and not match["detached"]:
            signatures.append(Named(match["role"], name))
        elif match and f"{name}.sig" in names_left:
            signatures.append(Named(match["role"], name, f"{name}.sig"))
        elif match:
            problems.append(f"{name}: is not signed, {name}.sig is missing")
        elif not (name.endswith(".sig") and name[:-4] in names_left and _is_statement(name[:-4])):
            problems.append(f"{name}: was added and is not part of a sign-off")
    return signatures, problems


def _is_statement(name: str) -> bool:
    match = SIGNATURE.match(name)
    return match is not None and match["detached"] is not None


_HALF = re.compile(r"\.(signoff\.[A-Za-z0-9_.-]+|verdict\.json|waivers\.yml)\.[a-z0-9_]{8}\Z")
"""A file that is written beside its place before it takes it (`storqual.run.layout.write_bytes`)."""


def clear_leftovers(run: Path) -> None:
    """Remove them, so that signing again writes what it would have written. A whole signature stays."""
    for folder in (run, *run.glob("judgements/*"), *run.glob("annex/judgements/*")):
        # the path of the open run directory is a link itself
        for file in folder.glob(".*") if folder == run or not folder.is_symlink() else ():
            if _HALF.match(file.name) and file.is_file() and not file.is_symlink():
                file.unlink()
    names = signature_names(run)
    for name in names:
        alone = name.endswith(".sig") and _is_statement(name[:-4]) and name[:-4] not in names
        if alone or (name == MANIFEST and not any(map(SIGNATURE.match, names))):
            (run / name).unlink()
