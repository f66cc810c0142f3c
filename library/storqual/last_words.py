# SPDX-License-Identifier: Apache-2.0
"""The last words of a kernel, in one line."""

from __future__ import annotations

__all__ = ["telling_line"]

_TELLING = ("Kernel panic", "BUG:", "Oops", "panic")


def telling_line(text: str) -> str:
    """The line of a console's or log's end that says most: the panic before what led to it, else the first one.

    Empty for a text without words.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for word in _TELLING for line in lines if word in line), lines[0] if lines else "")
