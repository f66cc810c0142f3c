# SPDX-License-Identifier: Apache-2.0
"""What a sign-off's files are called: `signoff.<role>.json`, or `signoff.<role>.statement.json` with its `.sig`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from storqual.signoff.manifest import MANIFEST

__all__ = ["Named", "envelope_name", "named_signatures", "statement_name"]

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
