# SPDX-License-Identifier: Apache-2.0
"""What a resumed campaign put right; how each kind of failure is overcome is tested where it is judged."""

from pathlib import Path

import pytest

from storqual.judge.evidence import unfinished_batches
from storqual.run import read_run, recovered
from tests.support.make_run import make_run
from tests.support.synthetic_shape import point_name

POINTS = (point_name("rand_read", bs=4096, drives=1, iodepth=1), point_name("seq_read", bs=4096, drives=1, iodepth=1))
CUT_OFF = {"kind": "block_finished", "bench": "vbench", "session": "s01", "block": "s01-b01", "outcome": "lost"}
ENDED = "vbench: batch s01-b01 ended lost: no reason was recorded"


@pytest.mark.parametrize(
    ("missing", "expected"),
    [((), f"{ENDED}; its launches were measured later"), (POINTS[:1], ENDED)],
    ids=["measured", "not measured"],
)
def test_a_block_that_was_cut_off(tmp_path: Path, missing: tuple[str, ...], expected: str) -> None:
    run = read_run(make_run(tmp_path, points=POINTS, events=[CUT_OFF], missing=missing, missing_in=("baseline",)))
    assert unfinished_batches(run) == [expected]


def test_what_went_well_needs_no_getting_over(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, points=POINTS))
    assert {event.kind for event in run.events} >= {"block_finished", "session_started"}
    assert not any(recovered(run, event) for event in run.events)
