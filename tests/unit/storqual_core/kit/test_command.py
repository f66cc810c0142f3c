# SPDX-License-Identifier: Apache-2.0
"""Running one tool."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from storqual.base.child import await_end, ticks_of_start
from storqual_core.kit.command import Completed, run, run_first
from storqual_core.kit.errors import MissingToolError, ToolError


def test_a_tool_speaks_the_c_locale_has_no_input_and_keeps_its_outputs_apart() -> None:
    program = (
        "import os, sys; print(os.environ['LC_ALL'], sys.stdin.read() == ''); sys.stderr.write('note'); sys.exit(3)"
    )
    ended = run([sys.executable, "-c", program])
    assert (ended.rc, ended.stdout, ended.stderr) == (3, "C True\n", "note")
    with pytest.raises(ToolError, match="ended with status 3: note"):
        ended.expect(0, 1)


def test_a_tool_that_hangs_is_ended() -> None:
    with pytest.raises(ToolError, match=r"did not end within 0\.2 s"):
        run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)


def has_ended(pid: Path) -> bool:
    """Whether the process in this file has ended or is about to: a signal takes its time on a busy machine."""
    number = int(pid.read_text())
    ticks = ticks_of_start(number)
    return ticks is None or await_end(number, ticks, 10.0)


def test_what_a_tool_that_hangs_has_started_ends_with_it(tmp_path: Path) -> None:
    """A script of a package would go on writing to a bench that is put back meanwhile."""
    pid = tmp_path / "pid"
    with pytest.raises(ToolError, match="did not end within"):
        run(["sh", "-c", f"sleep 60 & echo $! > {pid}; wait"], timeout=1.0)
    assert has_ended(pid)


def test_ctrl_c_ends_a_tool_that_the_terminal_does_not_reach(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    # a run of tests that a shell started in its background ignores the signal
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    # the line that it reads is sent when its start is over
    acts = f"read line; sleep 60 & echo $! > {pid}; kill -INT $PPID; wait"
    try:
        with pytest.raises(KeyboardInterrupt):
            run(["sh", "-c", acts], timeout=60, send=b"go\n")
    finally:
        signal.signal(signal.SIGINT, former)
    assert has_ended(pid)


def test_a_missing_tool_is_told_from_a_failing_one() -> None:
    with pytest.raises(MissingToolError, match="`storcli-of-nobody` is not installed"):
        run(["storcli-of-nobody", "show"])


def test_the_first_name_that_is_installed_is_run() -> None:
    seen = []

    def runner(argv: list[str], **options: Any) -> Completed:
        seen.append(argv[0])
        if argv[0] != "storcli":
            raise MissingToolError(argv[0])
        return Completed(tuple(argv), 1, "", "it broke", 0.0)

    ended = run_first(runner, ("storcli64", "storcli", "perccli"), ["show", "J"], timeout=5)
    assert ended.argv == ("storcli", "show", "J")
    assert seen == ["storcli64", "storcli"]
    with pytest.raises(MissingToolError, match="none of a, b is installed"):
        run_first(runner, ("a", "b"), ["show"])


def test_the_last_words_of_a_tool_are_for_a_sentence() -> None:
    """The last line of one output, else of the other; nothing in it can act on a terminal."""
    ended = Completed(("t", "a b"), 7, "first\nlast\x1b[2J\n\n", "", 0.0)
    assert ended.last_words() == r"last\x1b[2J"
    both = Completed(("t",), 7, "output\n", "error\n", 0.0)
    assert (both.last_words(), both.last_words(of="stdout")) == ("error", "output")
    assert Completed(("t",), 0, " \n", "", 0.0).last_words() == "no message"
    assert str(ended.failure("it did not stop")) == r"it did not stop: last\x1b[2J (status 7); command: t 'a b'"
