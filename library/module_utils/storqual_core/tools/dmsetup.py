# SPDX-License-Identifier: Apache-2.0
"""dmsetup: which paths a multipath device has, as the kernel's own target says; devices made, changed, removed."""

from __future__ import annotations

import re
from typing import Iterator

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.quantities import is_whole

_NUMBER = re.compile(r"\d+:\d+")
_CHANGE_S = 60.0


def read_paths(runner: Runner, number: str) -> dict[str, bool]:
    """The paths of the multipath device `number` (`252:0`) by device number, and whether each is active.

    Raises ToolError when it is no multipath device, cannot be asked, or the answer is not understood.
    """
    major, _, minor = number.partition(":")
    done = runner(["dmsetup", "status", "--major", major, "--minor", minor], timeout=20.0).expect()
    return parse_status(done.stdout)


def create_device(runner: Runner, name: str, table: str) -> None:
    """Make a device of that name with that table. Raises ToolError."""
    runner(["dmsetup", "create", name, "--table", table], timeout=_CHANGE_S).expect()


def load_table(runner: Runner, name: str, table: str) -> None:
    """Give a device another table; what is under way ends by the old one first. Raises ToolError."""
    runner(["dmsetup", "reload", name, "--table", table], timeout=_CHANGE_S).expect()
    runner(["dmsetup", "resume", name], timeout=_CHANGE_S).expect()


def read_table(runner: Runner, name: str) -> str:
    """The table that is in effect, as the kernel prints it. Raises ToolError."""
    return runner(["dmsetup", "table", name], timeout=20.0).expect().stdout


def remove_device(runner: Runner, name: str) -> None:
    """Take a device away; one that is still open is tried for some seconds. Raises ToolError."""
    runner(["dmsetup", "remove", "--retry", name], timeout=_CHANGE_S).expect()


def parse_status(text: str) -> dict[str, bool]:
    """The paths in the one line of a multipath target's status. Raises ToolError for anything else."""
    lines = text.splitlines()
    # a device that is named has its name in front: `name: 0 2097152 multipath …`
    words = lines[0].rpartition(": ")[2].split() if len(lines) == 1 else []
    try:
        return _paths(iter(words))
    except (ValueError, StopIteration):
        raise ToolError(f"this is not a status of a multipath device: {text.strip()[:200]!r}") from None


def _paths(words: Iterator[str]) -> dict[str, bool]:
    """Features, hardware handler, then each group of paths with the words of its selector."""
    paths: dict[str, bool] = {}
    _expect(_take(words, 3)[2] == "multipath")
    for _ in ("features", "hardware handler"):
        _take(words, _count(words))
    groups = _count(words)
    next(words)
    for _ in range(groups):
        next(words)
        _take(words, _count(words))
        count, arguments = _count(words), _count(words)
        for _ in range(count):
            device, state, *_ = _take(words, 3 + arguments)
            _expect(bool(_NUMBER.fullmatch(device)) and state in ("A", "F"))
            paths[device] = state == "A"
    _expect(next(words, None) is None)
    return paths


def _expect(fits: bool) -> None:
    if not fits:
        raise ValueError


def _take(words: Iterator[str], count: int) -> list[str]:
    """The next `count` words. Raises StopIteration when there are fewer."""
    return [next(words) for _ in range(count)]


def _count(words: Iterator[str]) -> int:
    """The next word, which says how many follow. Raises ValueError for anything but a small whole number."""
    word = next(words)
    _expect(is_whole(word) and len(word) < 5)
    return int(word)
