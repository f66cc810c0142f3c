# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from storqual.trials.one import send_program

if TYPE_CHECKING:
    import pytest

    from storqual.trials.link import Link


class LinkToHere:
    """A bench that is this machine."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def run(self, command: str) -> str:
        return subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
        ).stdout

    def put(self, data: bytes, path: str) -> None:
        self.sent.append(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(data)


def test_the_program_is_sent_once_and_python_keeps_what_it_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    link, state = LinkToHere(), str(tmp_path / "state of a bench")
    folder = send_program(cast("Link", link), sys.executable, state)
    assert send_program(cast("Link", link), sys.executable, state) == folder
    assert len(link.sent) == 1
    code = f"import sys; sys.path.insert(0, {folder!r}); import storqual_core.trial.program"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, stdin=subprocess.DEVNULL)
    assert [path for path in Path(folder).rglob("program.*.pyc") if path.parts[-3] == "trial"]
