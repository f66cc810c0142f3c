# SPDX-License-Identifier: Apache-2.0
"""What lies beside what was signed: signatures by the names of their files, the annex, leftovers of a sign-off."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from storqual.base.files import OddFileError, size_problem
from storqual.run.files import look_at, walk
from storqual.run.layout import ANNEX
from storqual.signoff.manifest import MANIFEST, Entry, Manifest, oddity

_LARGEST_ANNEX = 2 << 30
"""Bytes: thirty notes with the largest attachments."""
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


def signature_files(run: Path) -> list[str]:
    """The names of what lies beside the run's own files and calls itself part of a sign-off. Raises OSError."""
    names = (entry.name for entry in run.iterdir() if entry.name.startswith("signoff"))
    return sorted(name for name in names if (run / name).is_symlink() or not (run / name).is_dir())


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
        elif not (name.endswith(".sig") and _STATEMENT.match(name.removesuffix(".sig")) and name[:-4] in left):
            problems.append(f"{name}: was added and is not part of a sign-off")
    return found, problems


def odd_files(run: Path, names: Iterable[str]) -> list[str]:
    """Files of a sign-off that somebody else could change unseen, or that are none."""
    problems = []
    for name in names:
        found = look_at(run, name)
        odd = oddity(found)
        if not odd and found.status.st_mode & 0o111:
            odd = "is executable"
        problems += [f"{name}: {odd}"] if odd else []
    return problems


def added_since(run: Path, signed: Manifest | None) -> tuple[list[Entry], list[str]]:
    """What was added after signing, with its digests, and what of that is no plain file.

    It lies in `annex/`; runs that were signed by the first rules have it in `judgements/` too.
    """
    entries: list[Entry] = []
    problems: list[str] = []
    for place in (ANNEX, "judgements") if signed is not None and signed.first_rules else (ANNEX,):
        try:
            top = look_at(run, place)
            below = sorted(walk(run, place), key=lambda one: one.path) if top.folder else []
        except FileNotFoundError:
            continue
        size = sum(one.status.st_size for one in below)
        if size > _LARGEST_ANNEX:
            problems.append(f"{place}: {size_problem(size, _LARGEST_ANNEX)}")
            continue
        for one in (top, *below):
            odd = oddity(one)
            try:
                if not odd and not one.folder:
                    entries.append(Entry.of(run, one.path))
            except (OSError, OddFileError) as problem:
                odd = f"cannot be read ({getattr(problem, 'strerror', problem)})"
            problems += [f"{one.path}: {odd}"] if odd else []
    return entries, problems


_HALF = re.compile(r"\.(signoff\.[A-Za-z0-9_.-]+|verdict\.json|waivers\.yml)\.[a-z0-9_]{8}\Z")
"""A file that is written beside its place before it takes it (`storqual.run.layout.write_bytes`)."""


def clear_leftovers(run: Path) -> None:
    """Remove them, so that signing again writes what it would have written. A whole signature stays."""
    for folder in (run, *run.glob("judgements/*"), *run.glob("annex/judgements/*")):
        for file in folder.glob(".*") if folder.is_dir() and not folder.is_symlink() else ():
            if _HALF.match(file.name) and file.is_file() and not file.is_symlink():
                file.unlink()
    names = signature_files(run)
    signed, _ = named_signatures(names)
    for name in names:
        statement = name.removesuffix(".sig")
        alone = name.endswith(".statement.json.sig") and statement not in names
        if alone or (name == MANIFEST and not signed):
            (run / name).unlink()
