# SPDX-License-Identifier: Apache-2.0
"""The module starts a block once, fetches it piece by piece, stops it, and says what it changed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storqual.bench.program import build_program
from storqual_core.guard.claims import read_claims
from storqual_core.guard.files import make_file
from storqual_core.kit.errors import GuardRefusalError
from tests.support.fake_fio import block_text, fake_fio, job, launch, result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

pytestmark = pytest.mark.slow

SIZE = 1 << 20


class Block:
    """One block on a local bench whose fio answers at once, or waits while `hold` exists."""

    def __init__(self, folder: Path, module: ModuleType, program: Path) -> None:
        self.module = module
        self.program = program
        self.hold = folder / "hold"
        self.drive = folder / "state" / "targets" / "d0"
        claim = {"claim": {"file": str(self.drive), "size": SIZE}}
        for found in read_claims({str(self.drive): claim}):
            make_file(found, str(folder / "state"))
        (folder / "out").write_text(result(job()), encoding="utf-8")
        (folder / "bin").mkdir()
        fake_fio(folder / "bin", f"while [ -e {self.hold} ]; do sleep 0.05; done\ncat {folder}/out")
        self.path = folder / "state" / "spool" / "r1" / "s01-b01.json"
        self.path.parent.mkdir(parents=True)
        launches = [launch(index, drives=[str(self.drive)]) for index in range(2)]
        text = block_text(folder / "state", launches, targets={str(self.drive): claim})
        self.path.write_text(text, encoding="utf-8")

    def __call__(self, state: str, *, check: bool = False, offset: int = 0) -> dict[str, Any]:
        """What the module returns."""
        given = {"state": state, "block_file": str(self.path), "program": str(self.program), "offset": offset}
        returned: dict[str, Any] = self.module.work(given, check)
        return returned

    def until_ended(self) -> dict[str, Any]:
        """Collect until there is an end."""
        deadline = time.monotonic() + 20
        while True:
            taken = self("collected")
            if taken["end"] is not None and not taken["running"]:
                return taken
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def block(
    tmp_path: Path, load_module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Block]:
    """A block that does not outlive its test."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    block = Block(tmp_path, load_module("bench_block"), build_program(tmp_path))
    yield block
    block("stopped")


def test_a_block_is_started_once_and_collected_to_its_end(block: Block) -> None:
    block.hold.touch()
    assert block("started", check=True) == {"running": False, "samples": 0, "of": 2, "end": None, "changed": True}
    assert not (block.path.parent / "s01-b01.jsonl").exists()
    first, second = block("started"), block("started")
    assert (first["running"], first["changed"], second["changed"]) == (True, True, False)
    block.hold.unlink()
    taken = block.until_ended()
    assert (taken["samples"], taken["end"]["outcome"], block("started")["changed"]) == (2, "done", False)
    lines = taken["lines"].splitlines()
    assert [json.loads(lines[0])["kind"], json.loads(lines[-1])["kind"]] == ["start", "end"]
    later = block("collected", offset=len(lines[0]) + 1)
    assert later["lines"] == "".join(line + "\n" for line in lines[1:])
    assert block("collected", offset=later["offset"])["lines"] == ""


def test_stopping_changes_something_only_while_it_runs(block: Block) -> None:
    assert block("stopped")["changed"] is False
    block.hold.touch()
    block("started")
    assert block("stopped", check=True)["running"] is True
    stopped = block("stopped")
    assert (stopped["changed"], stopped["running"], stopped["end"]["outcome"]) == (True, False, "stopped")
    assert block("stopped")["changed"] is False


def test_a_refusal_of_the_guard_is_the_modules_failure(block: Block) -> None:
    block.drive.unlink()
    block.drive.write_bytes(b"somebody's" * 100)
    with pytest.raises(GuardRefusalError, match="d0"):
        block("started")
