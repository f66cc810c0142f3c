# SPDX-License-Identifier: Apache-2.0
"""One line of each bench on a terminal, as a terminal shows it; rare lines elsewhere."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from storqual.bench.live_line import Board, LiveLine, describe_terminal, displaced, progress_line, remove_board


class Screen:
    """A terminal with the few commands that a board uses."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self.row = 0

    def write(self, text: str, end: str) -> None:
        for part in re.findall(r"\x1b\[\d*[AK]|[\r\n]|[^\x1b\r\n]+", text + end):
            if part.endswith("A") and part.startswith("\x1b"):
                self.row -= int(part[2:-1])
                assert self.row >= 0
            elif part == "\n":
                self.row += 1
                self.lines += [""] * (self.row - len(self.lines) + 1)
            elif part.startswith("\x1b"):
                self.lines[self.row] = ""
            elif part != "\r":
                self.lines[self.row] += part

    @property
    def shown(self) -> list[str]:
        return [line for line in self.lines if line]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("STORQUAL_LIVE", "STORQUAL_BOARD", "STORQUAL_TERMINAL"):
        monkeypatch.delenv(name, raising=False)
    describe_terminal(os.terminal_size((40, 24)))
    yield
    remove_board()
    for name in ("STORQUAL_LIVE", "STORQUAL_TERMINAL"):
        os.environ.pop(name)


@pytest.mark.usefixtures("terminal")
def test_each_of_several_benches_has_one_line_on_a_terminal() -> None:
    screen = Screen()
    benches = [progress_line(screen.write, f"b{number}", 8) for number in range(8)]
    for turn in range(5):
        for number, bench in enumerate(benches):
            assert isinstance(bench, Board)
            now = 10.0 * turn + number
            replace(bench, clock=lambda now=now: now).show(f"b{number} at turn {turn}")
    assert screen.shown == [f"b{number} at turn 4" for number in range(8)]


@pytest.mark.usefixtures("terminal")
def test_what_is_printed_below_the_board_stays_and_the_board_goes_on_below_it() -> None:
    screen = Screen()
    first, second = (progress_line(screen.write, name, 2) for name in ("b1", "b2"))
    first.show("b1 measures")
    second.show("b2 measures")
    screen.write("changed: [b1]", "\n")
    displaced("b1")
    assert isinstance(second, Board)
    second = replace(second, clock=lambda: 1e9)
    second.show("b2 goes on")
    assert screen.shown == ["b1 measures", "b2 measures", "changed: [b1]", "b2 goes on"]
    displaced()
    first.show("b1 again")
    assert screen.shown[-2:] == ["b2 goes on", "b1 again"]


@pytest.mark.usefixtures("terminal")
def test_a_line_is_cut_where_it_would_be_two() -> None:
    screen = Screen()
    progress_line(screen.write, "b1", 2).show("b1 " + "x" * 100)
    assert [len(line) for line in screen.shown] == [39]


@pytest.mark.usefixtures("terminal")
def test_a_board_is_not_painted_for_every_word() -> None:
    written: list[str] = []
    board = Board(_file(), "b1", lambda text, _end: written.append(text), 80, clock=lambda: 5.0)
    for number in range(50):
        board.show(str(number))
    assert len(written) == 1


def _file() -> Path:
    return Path(os.environ["STORQUAL_BOARD"])


@pytest.mark.usefixtures("terminal")
def test_more_benches_than_a_terminal_has_rows_write_lines_that_stay() -> None:
    assert isinstance(progress_line(lambda _text, _end: None, "b1", 32), LiveLine)
    assert isinstance(progress_line(lambda _text, _end: None, "b1", 1), LiveLine)


def test_one_bench_has_a_line_that_is_written_over_on_a_terminal() -> None:
    written: list[tuple[str, str]] = []
    line = LiveLine(lambda text, end: written.append((text, end)), live=True)
    line.show("one")
    line.show("two \x1b[2J\x9b1A")
    line.close()
    assert written == [("\r\x1b[2Kone", ""), ("\r\x1b[2Ktwo \\x1b[2J\\x9b1A", ""), ("\r\x1b[2K", "")]


def test_many_benches_without_a_board_write_lines_of_their_own_and_no_flood() -> None:
    written: list[tuple[str, str]] = []
    now = [0.0]
    line = LiveLine(lambda text, end: written.append((text, end)), live=True, benches=32, clock=lambda: now[0])
    for second in range(0, 320, 2):
        now[0] = float(second)
        line.show(f"bench00 at {second} s")
    line.close()
    assert written == [("bench00 at 0 s", "\n"), ("bench00 at 160 s", "\n")]
