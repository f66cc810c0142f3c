# SPDX-License-Identifier: Apache-2.0
"""Tests of subjects against each other: at points, over ranges, at equal load, of several runs and generators."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from storqual.cli.compare import compare_command
from storqual.report.parts.studies import _generators
from storqual.study.comparisons import (
    Contest,
    common_loads,
    compare,
    compare_runs,
    comparison_sentences,
    contests,
    curve,
    equal_loads,
    generator_contests,
    leader_sentence,
    leaders,
    response_at,
    shift_at_equal_load,
)
from storqual.study.findings import findings
from storqual.study.points import StudyPoint
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_size
from tests.support.make_run import make_run
from tests.support.study_points import point, swept
from tests.support.synthetic_shape import point_name

SIZES = (512, 1024, 2048, 4096, 8192, 16384)
Curves = Mapping[str, Mapping[float, Sequence[float]]]


def curves(gains: Mapping[str, Sequence[float]], *, noise: float = 0.005, launches: int = 5, seed: int = 1) -> Curves:
    """Each adapter's gain over 1000 IOPS at each size, with noise."""
    random = np.random.default_rng([7, seed])
    return {
        name: {
            size: list(1000 * gain * np.exp(random.normal(0, noise, launches)))
            for size, gain in zip(SIZES, over, strict=True)
        }
        for name, over in gains.items()
    }


def size(level: float) -> str:
    return format_size(int(level))


AHEAD_THEN_EQUAL = {"qla": (1.13, 1.13, 1.12, 1.13, 1.0, 1.0), "sym": (1.0,) * 6}


def test_ranges_are_found_where_they_were_planted() -> None:
    """13 % over the other up to 4 KiB, equal above."""
    (comparison,) = compare(curves(AHEAD_THEN_EQUAL))
    assert [(part.start, part.end, part.relation) for part in comparison.ranges] == [
        (512, 4096, "ahead"),
        (8192, 16384, "equal"),
    ]
    first = comparison.ranges[0]
    assert first.least is not None
    assert first.most is not None
    assert 0.10 < first.least < 0.12
    assert 0.13 < first.most < 0.15


def test_sentences_say_the_range_and_its_interval() -> None:
    (comparison,) = compare(curves(AHEAD_THEN_EQUAL))
    first, second = comparison_sentences(comparison, "IOPS", at=size)
    assert first.startswith("qla gives 1")
    assert " % more IOPS than sym from 512 to 4k (interval 1" in first
    assert second == "qla and sym are equal in IOPS within 3 % from 8k to 16k."


def test_the_order_of_two_adapters_does_not_change_what_is_said() -> None:
    measured = curves(AHEAD_THEN_EQUAL)
    (comparison,) = compare(measured)
    (turned,) = compare(dict(reversed(measured.items())))
    assert turned.ranges[0].relation == "behind"
    assert comparison_sentences(turned, "IOPS", at=size)[0] == comparison_sentences(comparison, "IOPS", at=size)[0]


def test_lower_is_better_where_it_is() -> None:
    (comparison,) = compare(curves({"a": (1.0,) * 6, "b": (1.25,) * 6}), better="lower")
    assert {level.relation for level in comparison.levels} == {"ahead"}
    assert comparison_sentences(comparison, "CPU per I/O")[0].startswith("b takes 2")


def test_single_launches_show_nothing() -> None:
    (comparison,) = compare({"a": {1: [100.0]}, "b": {1: [50.0]}})
    assert [level.relation for level in comparison.levels] == ["open"]
    assert comparison_sentences(comparison, "IOPS") == [
        (
            "a and b have too few launches, or launches that vary too much, at 1: nothing can be said "
            "about the difference in IOPS."
        )
    ]


def test_equal_adapters_are_rarely_told_apart() -> None:
    """Over three pairs and six levels together at most 5 % of comparisons show any difference."""
    wrong = sum(
        any(
            level.relation in ("ahead", "behind")
            for comparison in compare(curves({"a": (1,) * 6, "b": (1,) * 6, "c": (1,) * 6}, seed=seed))
            for level in comparison.levels
        )
        for seed in range(200)
    )
    assert wrong <= 0.05 * 200


def test_equal_is_not_said_of_adapters_at_the_margin() -> None:
    """Two adapters 3 % apart are called equal within 3 % at most once in twenty times."""
    wrong = sum(
        any(
            level.relation == "equal"
            for level in compare(curves({"a": (1.0305,) * 6, "b": (1.0,) * 6}, noise=0.02, seed=seed))[0].levels
        )
        for seed in range(200)
    )
    assert wrong <= 0.05 * 200


def test_a_leader_is_ahead_of_every_other() -> None:
    comparisons = compare(
        curves(
            {
                "a": (1.2, 1.2, 1.2, 1.2, 1.0, 1.0),
                "b": (1.0, 1.0, 1.2, 1.2, 1.0, 1.0),
                "c": (1.0, 1.0, 1.0, 1.0, 1.0, 1.3),
            }
        )
    )
    assert leaders(comparisons) == {512: "a", 1024: "a", 2048: None, 4096: None, 8192: None, 16384: "c"}
    assert leader_sentence(comparisons, "IOPS", at=size) == (
        "In IOPS a leads from 512 to 1k; none is shown to lead from 2k to 8k; c leads at 16k."
    )


@pytest.mark.parametrize("wrong", [{"a": {1: [1.0]}}, {"a": {1: [1.0]}, "b": {2: [1.0]}}])
def test_what_cannot_be_compared_is_refused(wrong: Curves) -> None:
    with pytest.raises(ValueError, match=r".+"):
        compare(wrong)


def loaded(
    cost: float, tops: Sequence[float], noise: float = 0.0, seed: int = 1
) -> dict[float, list[tuple[float, float]]]:
    """A curve of (IOPS, CPU % ) whose CPU is proportional to IOPS."""
    random = np.random.default_rng([7, seed])
    return {
        depth: [
            (top * np.exp(random.normal(0, noise)), top * cost * np.exp(random.normal(0, noise))) for _ in range(4)
        ]
        for depth, top in enumerate(tops, start=1)
    }


def test_cpu_at_equal_iops_is_read_between_the_levels() -> None:
    """Measured at other loads, one takes 47 % more CPU for the same IOPS."""
    first, other = curve(loaded(1.47, (1000, 2000, 4000, 9000))), curve(loaded(1.0, (1500, 3000, 7900)))
    assert common_loads(first, other) == pytest.approx((1500, 7900))
    assert response_at(first, 2500).value == pytest.approx(2500 * 1.47)
    assert shift_at_equal_load(first, other, 5000).value == pytest.approx(0.47)


def test_the_interval_at_equal_load_holds_the_truth() -> None:
    """In at least 92 of 100 noisy curves."""
    held = 0
    trials = 200
    for seed in range(trials):
        first = curve(loaded(1.2, (1000, 2000, 4000), 0.01, seed))
        other = curve(loaded(1.0, (900, 2500, 5000), 0.01, seed + 1000))
        shift = shift_at_equal_load(first, other, 3000)
        assert shift.low is not None
        assert shift.high is not None
        held += shift.low <= 0.2 <= shift.high
    assert held >= 0.92 * trials


def test_nothing_is_said_beyond_what_both_reached() -> None:
    first, other = curve(loaded(1.0, (1000, 2000, 1500))), curve(loaded(1.0, (3000, 4000)))
    assert common_loads(first, other) is None
    with pytest.raises(ValueError, match="outside the curve"):
        response_at(first, 2500)


def test_launches_that_differ_a_hundredfold_give_no_interval() -> None:
    (comparison,) = compare({"a": {1: [1.0, 400.0]}, "b": {1: [2.0, 300.0]}}, better="lower")
    assert [(level.relation, level.shift.low) for level in comparison.levels] == [("open", None)]
    (sentence,) = comparison_sentences(comparison, "CPU time per I/O")
    assert sentence.endswith(
        "that vary too much, at 1: nothing can be said about the difference in CPU time per I/O."
    )


def test_an_interval_that_reaches_tenfold_is_not_read_out() -> None:
    """`-93 % to +1430 % better` would be read as if it said something."""
    (comparison,) = compare({"a": {1: [1.0, 2.5]}, "b": {1: [1.0, 2.4]}}, better="lower")
    ((low, high),) = [(level.shift.low, level.shift.high) for level in comparison.levels]
    assert low is not None
    assert high is not None
    assert 9 < high < 99
    (sentence,) = comparison_sentences(comparison, "CPU time per I/O")
    assert sentence.endswith(
        "that vary too much, at 1: nothing can be said about the difference in CPU time per I/O."
    )


POINTS = tuple(point_name("rand_read", bs=4096, drives=1, iodepth=depth) for depth in (1, 16))


def run_of(folder: Path, name: str, **options: object) -> Path:
    """A run of two points on one adapter, unless told otherwise."""
    return make_run(folder, **{"run": name, "points": POINTS, "adapters": ("sym",), "launches": 4, **options})


def test_adapters_of_one_run_are_compared(tmp_path: Path) -> None:
    run = run_of(tmp_path, "20261121T100000Z-one-0001", adapters=("sym", "mpt"), effect={"mpt": -0.3})
    comparison = compare_runs([run])
    assert comparison.subjects == ("sym", "mpt")
    contest = next(contest for contest in comparison.contests if contest.metric == "iops")
    assert set(contest.leaders.values()) == {"sym"}
    assert any("sym gives 4" in sentence for sentence in contest.sentences)


def test_runs_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    names = ["20261121T100000Z-one-0001", "20261121T110000Z-one-0002"]
    runs = [run_of(tmp_path, name, effect=effect) for name, effect in zip(names, (0.0, -0.3), strict=True)]
    comparison = compare_runs(runs)
    assert comparison.subjects == tuple(f"sym {name}" for name in names)
    document = comparison.to_json()
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
    comparison = compare_runs(runs)
    assert comparison.subjects == ("sym superdome", "sym rp7400")
    contest = next(contest for contest in comparison.contests if contest.metric == "iops")
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
    answer = CliRunner().invoke(compare_command, [str(run)])
    assert answer.exit_code == 0, answer.output
    assert "compared: sym, mpt" in answer.output
    assert "In IOPS sym leads" in answer.output
    document = json.loads(CliRunner().invoke(compare_command, ["--json", str(run)]).output)
    assert document["subjects"] == ["sym", "mpt"]


def test_a_workload_with_one_level_is_compared_as_well_and_suspect_launches_are_told(tmp_path: Path) -> None:
    """Twenty benches alike and a suite of one point: the slow one is found."""
    names = ["20261121T100000Z-one-0001", "20261121T110000Z-one-0002"]
    runs = [
        run_of(tmp_path, name, points=POINTS[:1], bench=bench, effect=effect, suspect=suspect)
        for name, bench, effect, suspect in zip(
            names, ("desk1", "desk2"), (0.0, -0.3), ({}, {"sym": "load"}), strict=True
        )
    ]
    answer = CliRunner().invoke(compare_command, list(map(str, runs)))
    assert answer.exit_code == 0, answer.output
    assert "In IOPS sym desk1 leads at 4 KiB" in answer.output
    assert "suspect: 8 of 16 launches" in answer.output


def test_it_is_said_when_nothing_could_be_compared(tmp_path: Path) -> None:
    names = ["20261121T100000Z-one-0001", "20261121T110000Z-one-0002"]
    runs = [run_of(tmp_path, name, points=(point,)) for name, point in zip(names, POINTS, strict=True)]
    answer = CliRunner().invoke(compare_command, list(map(str, runs)))
    assert "nothing is compared: no point was measured" in answer.output


def points_with(
    rates: dict[str, float], *, launches: int = 6, adapter: str = "sym", noise: float = 0.004
) -> list[StudyPoint]:
    """Reads of two sizes by each engine, at so many IOPS."""
    draw = random.Random(5)
    return [
        StudyPoint(
            subject=adapter,
            bench="b1",
            adapter=adapter,
            point=f"reads[bs={size},engine={engine}]",
            workload="reads",
            levels={"bs": size, "engine": engine},
            varied=(),
            pattern={},
            drives=("a",),
            ports=1,
            launches=tuple({"iops": rate * draw.gauss(1, noise)} for _ in range(launches)),
        )
        for engine, rate in rates.items()
        for size in (2048, 65536)
    ]


def told(points: list[StudyPoint]) -> tuple[list[Contest], str]:
    compared = generator_contests(points)
    return compared, " ".join(sentence for contest in compared for sentence in contest.sentences)


def test_ways_that_give_the_same_are_called_equal_with_their_interval() -> None:
    (contest,), text = told(points_with({"libaio": 100, "psync": 100, "sg": 100}))
    assert {line.subject for line in contest.lines} == {"libaio", "psync", "sg"}
    assert {level.relation for pair in contest.comparisons for level in pair.levels} == {"equal"}
    assert "libaio" in text
    assert "sg" in text


def test_a_way_that_gives_less_is_found() -> None:
    (contest,), _ = told(points_with({"libaio": 100, "psync": 100, "sg": 80}))
    relations = {(pair.first, pair.second): {level.relation for level in pair.levels} for pair in contest.comparisons}
    assert relations == {("libaio", "psync"): {"equal"}, ("libaio", "sg"): {"ahead"}, ("psync", "sg"): {"ahead"}}


def test_one_launch_shows_nothing() -> None:
    (contest,), _ = told(points_with({"libaio": 100, "sg": 100}, launches=1))
    assert {level.relation for pair in contest.comparisons for level in pair.levels} == {"open"}


def test_each_adapter_is_compared_with_itself() -> None:
    points = points_with({"libaio": 100, "sg": 100}) + points_with({"libaio": 50, "sg": 50}, adapter="mpt")
    compared, _ = told(points)
    assert [contest.title.partition(",")[0] for contest in compared] == ["sym", "mpt"]
    assert {level.relation for contest in compared for pair in contest.comparisons for level in pair.levels} == {
        "equal"
    }


def test_only_a_suite_that_asks_for_it_has_the_study() -> None:
    points = points_with({"libaio": 100, "sg": 100})
    assert len(findings(points, ["generators"], benches={}).generators) == 1
    assert findings(points, ["scaling"], benches={}).generators == ()


def test_the_report_has_figures_and_intervals_of_each_way() -> None:
    (study,) = _generators(findings(points_with({"libaio": 100, "sg": 80}), ["generators"], benches={}))
    rows = [row for chart in study.charts if chart.table for row in chart.table.rows]
    assert {str(row[1]) for row in rows} == {"libaio", "sg"}
    assert any("sym, reads: " in sentence and "libaio" in sentence for sentence in study.sentences)
    assert not list(_generators(findings(points_with({"libaio": 100}), ["generators"], benches={})))


BLOCK_SIZES = (512, 4096, 65536)


def rivals() -> list[StudyPoint]:
    """Two adapters over block size: the first is 20 % ahead at 512 bytes and equal above."""
    gains = {"qla": (1.2, 1.0, 1.0), "sym": (1.0, 1.0, 1.0)}
    return [
        point(name, "seq_read", 1000 * gain, bs=size)
        for name, over in gains.items()
        for size, gain in zip(BLOCK_SIZES, over, strict=True)
    ]


def test_a_contest_finds_who_leads_where() -> None:
    """Ahead where it was planted, nobody elsewhere, and the first sentence says it."""
    by_metric = {contest.metric: contest for contest in contests(rivals())}
    assert by_metric["iops"].leaders == {512.0: "qla", 4096.0: None, 65536.0: None}
    assert by_metric["iops"].sentences[0] == (
        "In IOPS qla leads at 512 B; none is shown to lead from 4 KiB to 64 KiB."
    )


def test_one_subject_is_no_contest() -> None:
    assert contests([point for point in rivals() if point.subject == "qla"]) == []


def test_what_has_no_interval_anywhere_is_told_once() -> None:
    points = [
        point(name, "seq_read", 1000.0, bs=size, launches=1)
        for name in ("qla", "sym", "mraid")
        for size in BLOCK_SIZES
    ]
    by_metric = {contest.metric: contest.sentences for contest in contests(points)}
    assert by_metric["iops"] == (
        "In IOPS nothing can be compared: there are too few launches, or they vary too much.",
    )


def test_levels_that_only_one_subject_has_are_left_out() -> None:
    points = [point for point in rivals() if (point.subject, point.levels["bs"]) != ("sym", 65536)]
    assert [level.at for level in contests(points)[0].comparisons[0].levels] == [512.0, 4096.0]


def test_cpu_at_equal_iops_finds_the_planted_cost() -> None:
    by_metric = {load.of: load for load in equal_loads(swept(1.5))}
    shift = by_metric["cpu_percent"].shift
    assert shift.low is not None
    assert shift.high is not None
    assert shift.low < 1 / 1.5 - 1 < shift.high < 0
    assert "qla has 33" in by_metric["cpu_percent"].sentence
    assert "less CPU utilisation than sym" in by_metric["cpu_percent"].sentence


def test_equal_adapters_show_nothing_at_equal_load() -> None:
    sentences = [load.sentence for load in equal_loads(swept(1.0)) if load.of == "cpu_percent"]
    assert any("no difference between" in sentence for sentence in sentences)
