# SPDX-License-Identifier: Apache-2.0
"""Whether a block was measured, wherever its launches ended up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from storqual.run import is_measured, planned_session, read_run
from tests.support.make_run import make_run

if TYPE_CHECKING:
    from pathlib import Path


def test_launches_are_known_by_what_they_are(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    moved = [{**line, "id": f"s01.2-b01/{number}", "session": "s01.2"} for number, line in enumerate(lines)]
    for kept, measured in ((moved, True), (moved[1:], False), ([], False)):
        (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        run = read_run(path)
        assert is_measured(run, "vbench", run.sessions[0].batches) is measured
        assert not is_measured(run, "another", run.sessions[0].batches)


def test_a_block_that_nobody_planned_was_not_measured(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    assert not is_measured(run, "vbench", ["s01-b09"])
    assert not is_measured(run, "vbench", [])


def test_an_attempt_names_its_session() -> None:
    """`s03.2` is the second try of `s03`."""
    assert [planned_session(name) for name in ("s03.2", "s03")] == ["s03", "s03"]
