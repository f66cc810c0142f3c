# SPDX-License-Identifier: Apache-2.0
"""matchpathcon: the SELinux context that a file has, and the one that the policy names for its path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import line_error, numbered_lines

_VERIFIED = re.compile(r"(/.*) verified\.")
_DIFFERS = re.compile(r"(/.*) has context (\S+), should be (\S+)")
_UNREAD = re.compile(r"(/.*) error: (.+)")


@dataclass(frozen=True)
class Context:
    """A file's context and the one of its path, both empty where they are the same; `problem`: it was not read."""

    path: str
    has: str = ""
    wants: str = ""
    problem: str = ""

    @property
    def agrees(self) -> bool:
        return self.type_of(self.has) == self.type_of(self.wants) and not self.problem

    @staticmethod
    def type_of(context: str) -> str:
        """User and level may differ: the policy decides by the type."""
        return [*context.split(":"), "", "", ""][2]


def parse_verified(text: str) -> tuple[Context, ...]:
    """`matchpathcon -V PATH...`. Raises ToolError with the line that is of no file, and where it printed nothing."""
    contexts = []
    for number, line in numbered_lines(text):
        verified, differs, unread = (shape.fullmatch(line) for shape in (_VERIFIED, _DIFFERS, _UNREAD))
        if verified:
            contexts.append(Context(verified.group(1)))
        elif differs:
            contexts.append(Context(*differs.groups()))
        elif unread:
            contexts.append(Context(unread.group(1), problem=unread.group(2)))
        else:
            raise line_error("matchpathcon -V", number, line, "a file that is verified, or its context and another")
    if not contexts:
        raise ToolError("matchpathcon -V printed nothing")
    return tuple(contexts)


def verify(runner: Runner, paths: Sequence[str]) -> tuple[Context, ...]:
    """Each path's context beside the policy's. Raises ToolError."""
    # the status tells of a file that differs, and so does the answer
    ended = runner(["matchpathcon", "-V", *paths], timeout=60.0)
    return parse_verified(f"{ended.stdout}\n{ended.stderr}")
