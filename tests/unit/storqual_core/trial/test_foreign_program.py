# SPDX-License-Identifier: Apache-2.0
"""Real processes: their output as it comes, their limit, and that nobody of their group is left."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from storqual_core.kit.errors import MissingToolError, ToolError
from storqual_core.trial import foreign_program
from storqual_core.trial.foreign_program import run_foreign

pytestmark = pytest.mark.slow


def test_both_outputs_are_told_in_order_and_the_status_is_kept() -> None:
    told: list[str] = []
    ended = run_foreign(["sh", "-c", "echo a; echo b >&2; printf c; exit 3"], limit_s=20, tell=told.append)
    assert ("".join(told), ended.status, ended.hung, ended.stuck, ended.cut) == ("a\nb\nc", 3, False, False, 0)


def test_output_before_a_hang_is_told_and_the_whole_group_is_killed(tmp_path: Path) -> None:
    told: list[str] = []
    script = f"trap '' TERM; echo begun; sleep 600 & echo $! > {tmp_path}/child; wait; sleep 600"
    began = time.monotonic()
    ended = run_foreign(["sh", "-c", script], limit_s=0.5, tell=told.append)
    assert (ended.hung, ended.stuck, ended.status) == (True, False, -9)
    assert "".join(told) == "begun\n"
    assert time.monotonic() - began < 25
    child = int((tmp_path / "child").read_text(encoding="ascii"))
    assert not running(child)


def test_what_a_program_leaves_behind_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    ended = run_foreign(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/child"], limit_s=60)
    assert (ended.status, ended.hung) == (0, False)
    assert time.monotonic() - began < 20
    assert not running(int((tmp_path / "child").read_text(encoding="ascii")))


def running(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_bytes_that_are_no_text_and_characters_in_two_pieces_are_told() -> None:
    told: list[str] = []
    code = "import os,time; os.write(1, b'\\xc3'); time.sleep(0.3); os.write(1, b'\\xa4\\xff')"
    run_foreign([sys.executable, "-c", code], limit_s=20, tell=told.append)
    assert "".join(told) == "\u00e4\ufffd"


def test_output_beyond_the_most_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_program, "MOST_OUTPUT", 10)
    told: list[str] = []
    ended = run_foreign(["printf", "0123456789abc"], limit_s=20, tell=told.append)
    assert ("".join(told), ended.cut) == ("0123456789", 3)


def test_a_program_that_is_not_there_or_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="no-such-program"):
        run_foreign(["no-such-program-here"], limit_s=1)
    plain = tmp_path / "plain"
    plain.write_text("x", encoding="ascii")
    plain.chmod(0o700)
    with pytest.raises(ToolError, match="cannot be started"):
        run_foreign([str(plain)], limit_s=1)
