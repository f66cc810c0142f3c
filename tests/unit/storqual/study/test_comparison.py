# SPDX-License-Identifier: Apache-2.0
"""Tests of `storqual compare`: adapters of one run, the same adapter in several, and nothing to compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.cli.compare import compare_command
from storqual.study.comparisons import compare_runs
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.synthetic_shape import point_name

POINTS = tuple(point_name("rand_read", bs=4096, drives=1, iodepth=depth) for depth in (1, 16))


def run_of(folder: Path, name: str, **options: object) -> Path:
    """A run of two points on one adapter, unless told otherwise."""
    return make_run(folder, **{"run": name, "points": POINTS, "adapters": ("sym",), "launches": 4, **options})


def test_adapters_of_one_run_are_compared(tmp_path: Path) -> None:
    run = run_of(tmp_path, "20261121T100000Z-one-0001", adapters=("sym", "mpt"), effect={"mpt": -0.3})
    found = compare_runs([run])
    assert found.subjects == ("sym", "mpt")
    contest = next(one for one in found.contests if one.metric == "iops")
    assert set(contest.leaders.values()) == {"sym"}
    assert any("sym gives 4" in sentence for sentence in contest.sentences)


def test_runs_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    names = ["20261121T100000Z-one-0001", "20261121T110000Z-one-0002"]
    runs = [run_of(tmp_path, name, effect=effect) for name, effect in zip(names, (0.0, -0.3), strict=True)]
    found = compare_runs(runs)
    assert found.subjects == tuple(f"sym {name}" for name in names)
    document = found.to_json()
    assert document["schema"] == "storqual.compare/1"
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_several_systems_stand_side_by_side_by_the_names_of_their_benches(tmp_path: Path) -> None:
    """As the Superdome, the rp8400 and the rp7400 in the A6826A paper: one adapter each, and the drops the same."""
    names = ["20261121T100000Z-one-0001", "20261121T110000Z-one-0002"]
    systems = {"superdome": 0.0, "rp7400": -0.3}
    runs = [
        run_of(tmp_path, name, bench=bench, effect=effect)
        for name, (bench, effect) in zip(names, systems.items(), strict=True)
    ]
    found = compare_runs(runs)
    assert found.subjects == ("sym superdome", "sym rp7400")
    contest = next(one for one in found.contests if one.metric == "iops")
    assert set(contest.leaders.values()) == {"sym superdome"}


def test_both_arms_of_a_run_can_be_compared(tmp_path: Path) -> None:
    run = run_of(tmp_path, "20261121T100000Z-one-0001", effect=-0.3)
    assert compare_runs([run], arms=("baseline", "candidate")).subjects == ("sym baseline", "sym candidate")


def test_one_subject_is_nothing_to_compare(tmp_path: Path) -> None:
    """It is told what would be."""
    run = run_of(tmp_path, "20261121T100000Z-one-0001")
    with pytest.raises(BadInputError, match="found 1 measured adapter, expected at least two"):
        compare_runs([run])


def test_the_command_prints_sentences_or_json(tmp_path: Path) -> None:
    run = run_of(tmp_path, "20261121T100000Z-one-0001", adapters=("sym", "mpt"), effect={"mpt": -0.3})
    told = CliRunner().invoke(compare_command, [str(run)])
    assert told.exit_code == 0, told.output
    assert "compared: sym, mpt" in told.output
    assert "In IOPS sym leads" in told.output
    document = json.loads(CliRunner().invoke(compare_command, ["--json", str(run)]).output)
    assert document["subjects"] == ["sym", "mpt"]
