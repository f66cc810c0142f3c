# SPDX-License-Identifier: Apache-2.0
"""Read the serial console log: where it ended before, what came since, and what a dying kernel said."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["mark", "panic_text", "since"]

# colours, cursor moves and titles of boot loader and init
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_PANIC = re.compile(r"Kernel panic - not syncing")
_PANIC_END = re.compile(r"---\[ end Kernel panic")
# what the kernel prints ahead of a panic and belongs to it
_TROUBLE = re.compile(
    r"BUG:|Oops|general protection fault|Unable to handle kernel|VFS: Cannot open root|sysrq: |Call Trace:"
)
_BOOT = re.compile(r"---\[ end Kernel panic|\] Linux version \d")
_BEFORE, _AFTER = 60, 80


def mark(log: Path) -> int:
    """Where the log ends now, in bytes; 0 when there is none yet."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def since(log: Path, start: int) -> str:
    """What the console said since `start`, without escape sequences, one clean line each."""
    try:
        with log.open("rb") as handle:
            handle.seek(start)
            text = handle.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    # a bare return means that the line was drawn again: what stands at the end is what was seen last
    return "\n".join(line.rsplit("\r", 1)[-1] for line in text.rstrip("\r").split("\n"))


def panic_text(text: str) -> str:
    """The last kernel panic in console text with the trouble that led to it; "" when there is none."""
    lines = text.split("\n")
    panics = [number for number, line in enumerate(lines) if _PANIC.search(line) and not _PANIC_END.search(line)]
    if not panics:
        return ""
    at = panics[-1]
    first = at
    for number in range(at, max(-1, at - _BEFORE), -1):
        if number < at and _BOOT.search(lines[number]):
            break  # trouble of the boot before
        if _TROUBLE.search(lines[number]):
            first = number
    last = next(
        (number for number in range(at, min(len(lines), at + _AFTER)) if _PANIC_END.search(lines[number])),
        min(len(lines), at + _AFTER) - 1,
    )
    return "\n".join(lines[first : last + 1]).strip()
