# SPDX-License-Identifier: Apache-2.0
"""A Runner that replays a table of exact commands and their outputs, and fails on any other command."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError, ToolError


@dataclass(frozen=True)
class Call:
    """One command that must come next, as a person would type it, and how it ends."""

    line: str
    stdout: str = ""
    stderr: str = ""
    rc: int = 0


@dataclass
class Replay:
    """Give out the calls in order; `done` asserts that none is left."""

    calls: list[Call]
    seen: list[str] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        """Answer as the table says. A command that is not the next of the table fails the test."""
        line = shlex.join(argv)
        self.seen.append(line)
        assert self.calls, f"one command more than the table has: {line}"
        call = self.calls.pop(0)
        assert line == call.line
        return Completed(tuple(argv), call.rc, call.stdout, call.stderr, 0.0)

    def done(self) -> None:
        assert self.calls == []


@dataclass
class Tools:
    """A Runner that answers by whole command lines; tools that are `broken` do not end, and others are missing."""

    answers: dict[str, str]
    broken: set[str] = field(default_factory=set)

    def __call__(self, argv: Sequence[str], **options: Any) -> Completed:
        line = shlex.join(argv)
        if argv[0] in self.broken:
            raise ToolError(f"`{argv[0]}` did not end within 120 s")
        if line not in self.answers:
            raise MissingToolError(f"`{argv[0]}` is not installed on this machine")
        return Completed(tuple(argv), 0, self.answers[line], "", 0.0)
