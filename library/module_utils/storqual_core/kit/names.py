# SPDX-License-Identifier: Apache-2.0
"""Names that become part of a path: benches, drops, suites, adapters, batches, runs. One alphabet for all of them."""

from __future__ import annotations

from .errors import BadInputError
from .machine import visible

CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
ALPHABET = "letters, digits, `_`, `-` and `.`"
MOST = 64
"""Characters of a name; a run's id, which holds the name of its suite, may have twice as many."""


def is_name(text: object, *, most: int = MOST) -> bool:
    """Whether a text is a name: it begins with a letter or digit and has no character that a path would read."""
    return isinstance(text, str) and 0 < len(text) <= most and CHARACTERS.issuperset(text) and text[0] not in "_-."


def checked_name(text: object, what: str, *, most: int = MOST) -> str:
    """`text`, which is a name. Raises BadInputError for anything else; `what` says whose name it would be."""
    if not is_name(text, most=most):
        raise BadInputError([f"{what} '{visible(str(text)[:80])}': expected a name of at most {most} {ALPHABET}"])
    return str(text)
