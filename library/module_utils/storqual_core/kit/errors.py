# SPDX-License-Identifier: Apache-2.0
"""Every error that a user can cause or meet; each carries the exit code of the command that ends with it."""

from __future__ import annotations

from typing import Sequence

EXIT_UNEXPECTED = 70
"""Nobody foresaw the error (EX_SOFTWARE of sysexits.h): none of the codes of the verdict, and no person's mistake."""


EXIT_BENCH_LOST = 5
"""A bench is out of service: neither the drop's failure nor an error of what was judged."""


class StorqualError(Exception):
    """Something a person must know; the message is one or more complete lines."""

    exit_code = 2


_MOST_TOLD = 50
"""Problems; nobody reads on, and most of them have one cause."""
_LONGEST = 2000
"""Characters of one; it may quote what somebody wrote."""


def _message(problems: Sequence[str]) -> str:
    lines = [line if len(line) <= _LONGEST else line[:_LONGEST] + "…" for line in problems[:_MOST_TOLD]]
    more = len(problems) - len(lines)
    return "\n".join([*lines, f"and {more} more"] if more else lines)


class BadInputError(StorqualError):
    """A user wrote something that cannot be used; nothing was touched. The message has the first `problems`."""

    exit_code = 3

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__(_message(self.problems))


class GuardRefusalError(StorqualError):
    """A user asked for a write that the guard does not allow; each refusal names drive, reason and remedy."""

    exit_code = 4

    def __init__(self, refusals: Sequence[str]) -> None:
        self.refusals = list(refusals)
        super().__init__("\n".join(self.refusals))


class ToolError(StorqualError):
    """A tool on the bench failed, timed out, or said something that is not understood."""


def refuse_for(reasons: Sequence[str]) -> None:
    """Raise ToolError with all `reasons`, when there are any."""
    if reasons:
        raise ToolError("; ".join(reasons))


class MissingToolError(ToolError):
    """A tool is not installed on the bench."""
