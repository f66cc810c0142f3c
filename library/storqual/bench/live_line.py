# SPDX-License-Identifier: Apache-2.0
"""Progress on a terminal: one line of each bench, written over; elsewhere a line from time to time."""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from storqual.base.text import terminal_text

_PLAIN_EVERY_S = 20.0
_APART_S = 5.0
"""So far apart, on the whole, are the lines of several benches."""
_CLEAR = "\r\x1b[2K"
_UP = "\x1b[{}A"
_BOARD = "STORQUAL_BOARD"
_SIZE = "STORQUAL_TERMINAL"
_LIVE = "STORQUAL_LIVE"
_AGAIN_S = 0.5
"""So far apart, at least, are two paintings of a board."""

Write = Callable[[str, str], None]


class Line(Protocol):
    """Where the progress of one bench is shown."""

    def show(self, text: str) -> None:
        """Show `text` in the place of what was shown before."""

    def close(self) -> None:
        """The progress is over."""


def progress_line(write: Write, bench: str, benches: int = 1) -> Line:
    """The line of a bench of so many: a board on a terminal that has room for all of them, else lines that stay.

    `write(text, end)` prints. The process that started the play has described the terminal in the environment.
    """
    live = os.environ.get(_LIVE) == "1"
    board = os.environ.get(_BOARD)
    columns, rows = (int(number) for number in (os.environ.get(_SIZE) or "80 0").split())
    if live and board and 1 < benches < rows:
        return Board(Path(board), bench, write, columns)
    return LiveLine(write, live=live, benches=benches)


def describe_terminal(size: os.terminal_size | None) -> None:
    """Put what `progress_line` needs into the environment of the workers; `size` is None without a terminal."""
    os.environ.setdefault(_LIVE, "0" if size is None else "1")
    if size is not None:
        handle, name = tempfile.mkstemp(prefix="storqual-board-")
        os.close(handle)
        os.environ[_BOARD] = name
        os.environ[_SIZE] = f"{size.columns} {size.lines}"


def displaced(bench: str | None = None) -> None:
    """Something else was printed below the board: it is painted anew there, without `bench`; None: without any."""
    path = os.environ.get(_BOARD)
    if path:
        with _state(Path(path)) as state:
            state["painted"] = 0
            if bench is None:
                state["lines"].clear()
            else:
                state["lines"].pop(bench, None)


def remove_board() -> None:
    path = os.environ.pop(_BOARD, None)
    if path:
        Path(path).unlink(missing_ok=True)


@contextmanager
def _state(path: Path) -> Iterator[dict[str, Any]]:
    """What is on the board, for one process at a time: lines by bench, how many are painted, and when."""
    with path.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        state: dict[str, Any] = {"lines": {}, "painted": 0, "at": 0.0}
        with suppress(ValueError):
            state.update(json.load(file))
        yield state
        file.seek(0)
        file.truncate()
        json.dump(state, file)


@dataclass(frozen=True)
class Board:
    """One line of each bench at the end of a terminal; each bench is followed by a process of its own.

    `file` holds what is on the board. A line is cut at `columns`, because a wrapped one would be two.
    """

    file: Path
    bench: str
    write: Write
    columns: int
    clock: Callable[[], float] = time.monotonic

    def show(self, text: str) -> None:
        """Put the bench's line on the board, and paint the board unless it was painted just now."""
        with _state(self.file) as state:
            new = self.bench not in state["lines"]
            state["lines"][self.bench] = terminal_text(text)[: self.columns - 1]
            if not new and self.clock() - state["at"] < _AGAIN_S:
                return
            lines = [f"\r\x1b[2K{line}" for _, line in sorted(state["lines"].items())]
            up = _UP.format(state["painted"]) if state["painted"] else ""
            state.update(painted=len(lines), at=self.clock())
            # with the file locked: boards reach the terminal in the order in which they were painted
            self.write(up + "\n".join(lines), "\n")

    def close(self) -> None:
        """The line stays until the bench has another one."""


class LiveLine:
    """Write progress through `write(text, end)`; on a terminal one line is written over, elsewhere lines are rare.

    Where nothing is written over, each of several benches writes a line that stays, the less often the more `benches`
    there are.
    """

    def __init__(
        self,
        write: Callable[[str, str], None],
        *,
        live: bool,
        benches: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._live = live and benches == 1
        self._every_s = max(_PLAIN_EVERY_S, _APART_S * benches)
        self._clock = clock
        self._last: float | None = None

    def show(self, text: str) -> None:
        """Show `text` now on a terminal; elsewhere when the last line is old enough."""
        if self._live:
            self._write(_CLEAR + terminal_text(text), "")
            return
        now = self._clock()
        if self._last is None or now - self._last >= self._every_s:
            self._last = now
            self._write(terminal_text(text), "\n")

    def close(self) -> None:
        """Leave the terminal's line empty for what comes next."""
        if self._live:
            self._write(_CLEAR, "")
