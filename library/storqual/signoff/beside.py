# SPDX-License-Identifier: Apache-2.0
"""What lies beside what was signed: signatures by the names of their files, and leftovers of a sign-off."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from storqual.run.layout import MANIFEST, SIGNATURE


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


def signature_names(run: Path) -> list[str]:
    """The names of the files at the top of a run directory that call themselves part of a sign-off."""
    return sorted(path.name for path in run.glob("signoff*") if path.is_file() and not path.is_symlink())


def named_signatures(names: Iterable[str]) -> tuple[list[Named], list[str]]:
    """Signatures among the files whose names begin with `signoff`, and what is wrong with the others."""
    left = set(names) - {MANIFEST}
    found, problems = [], []
    for name in sorted(left):
        match = SIGNATURE.match(name)
        if match and not match["detached"]:
            found.append(Named(match["role"], name))
        elif match and f"{name}.sig" in left:
            found.append(Named(match["role"], name, f"{name}.sig"))
        elif match:
            problems.append(f"{name}: is not signed, {name}.sig is missing")
        elif not (name.endswith(".sig") and name[:-4] in left and _is_statement(name[:-4])):
            problems.append(f"{name}: was added and is not part of a sign-off")
    return found, problems


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
