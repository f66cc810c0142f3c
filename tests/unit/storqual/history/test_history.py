# SPDX-License-Identifier: Apache-2.0
"""The index of runs, noise of points, control charts."""

import json
import math
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.cli import storqual
from storqual.history.index import (
    Noise,
    control_chart,
    extract_of,
    history_of,
    index_file,
    noise_of,
    open_history,
    pooled,
    reference_shifts,
)
from storqual.judge.earlier import ReferenceReading, read_histories
from storqual.judge.verdict import judge_run
from storqual.run import read_run
from storqual.statistics.estimates import FEWEST
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import add_reference, make_run

pytestmark = pytest.mark.slow


def judged(folder: Path, name: str, **options: object) -> Path:
    path = make_run(folder, run=name, **options)
    judge_run(path)
    return path


def test_runs_are_read_once_known_again_and_forgotten(tmp_path: Path) -> None:
    first, second = (judged(tmp_path, f"2026010{number}T000000Z-x-0000") for number in (1, 2))
    assert history_of(tmp_path)["index"] == {"read": 2, "known": 0, "forgotten": 0, "problems": ()}
    assert history_of(tmp_path)["index"] == {"read": 0, "known": 2, "forgotten": 0, "problems": ()}
    first.rename(tmp_path / "moved")
    shutil.rmtree(second)
    answer = history_of(tmp_path)
    assert answer["index"] == {"read": 0, "known": 1, "forgotten": 1, "problems": ()}
    assert [Path(run["path"]).name for run in answer["runs"]] == ["moved"]
    copy = Path(shutil.copytree(tmp_path / "moved", tmp_path / "copied")) / "verdict.json"
    copy.write_text(json.dumps({**json.loads(copy.read_text()), "as_of": "2026-02-01T00:00:00Z"}), encoding="utf-8")
    assert history_of(tmp_path)["noise"] == answer["noise"] != []


def test_the_index_is_rebuilt_from_the_runs(tmp_path: Path) -> None:
    judged(tmp_path, "20260101T000000Z-x-0000")
    before = history_of(tmp_path)
    for spoil in (Path.unlink, lambda path: path.write_bytes(b"no database at all" * 100)):
        spoil(index_file(tmp_path))
        after = history_of(tmp_path)
        assert after["index"]["read"] == 1
        assert {**after, "index": None} == {**before, "index": None}


def test_an_index_that_came_with_the_runs_is_not_read(tmp_path: Path) -> None:
    """It could say another noise of each run, or have a table that is a view without an end."""
    run = judged(tmp_path, "20260101T000000Z-x-0000")
    before = history_of(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(run, copy / run.name)
    with sqlite3.connect(index_file(tmp_path)) as forged:
        forged.execute("UPDATE noise SET sd_pair = 1e-9, df_pair = 1e9")
    shutil.copy(index_file(tmp_path), copy / ".history.sqlite")
    assert history_of(copy)["noise"] == before["noise"]
    assert [path.name for path in copy.iterdir() if path.is_file()] == [".history.sqlite"]


def test_a_run_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    judged(tmp_path, "20260101T000000Z-x-0000")
    bad = judged(tmp_path, "20260102T000000Z-x-0000")
    (bad / "run.json").write_text("{}", encoding="utf-8")
    answer = history_of(tmp_path)
    assert answer["index"]["read"] == 1
    assert [problem.partition(":")[0] for problem in answer["index"]["problems"]] == [bad.name]


@pytest.mark.parametrize("design", ["interleaved", "sessions"])
def test_the_noise_of_a_point_is_what_was_planted(tmp_path: Path, design: str) -> None:
    path = judged(
        tmp_path,
        "20260101T000000Z-x-0000",
        design=design,
        sessions=12,
        launches=12 if design == "interleaved" else 1,
        noise=0.02,
        effect=-0.2,
    )
    entries = [entry for entry in noise_of(read_run(path)) if entry.metric == "iops"]
    assert entries
    if design == "interleaved":
        deviations = [entry.sd_pair / math.sqrt(2) for entry in entries if entry.sd_pair]
        # the log-ratios of 12 pairs, and two thirds as much from what their launches have in common
        assert {entry.df_pair for entry in entries} <= {11.0, 11.0 + 121 / 16}
    else:
        deviations = [entry.sd_session for entry in entries if entry.sd_session]
        assert {entry.df_session for entry in entries} == {10.0}
    assert 0.012 < sum(deviations) / len(deviations) < 0.028


def test_noise_of_several_runs_is_pooled_by_degrees_of_freedom() -> None:
    point = ("b", "a", "p", "iops")
    (entry,) = pooled([Noise(*point, 0.01, 9.0, None, 0.0), Noise(*point, 0.03, 1.0, 0.02, 2.0)])
    assert entry.sd_pair == pytest.approx(math.sqrt((9 * 1e-4 + 9e-4) / 10))
    assert (entry.df_pair, entry.sd_session, entry.df_session) == (10.0, 0.02, 2.0)


def test_the_extract_is_what_the_judge_reads(tmp_path: Path) -> None:
    judged(tmp_path, "20260101T000000Z-x-0000")
    file = tmp_path / "extract.json"
    file.write_bytes(extract_of(tmp_path))
    histories = read_histories(file)
    assert histories
    assert json.loads(extract_of(tmp_path, ["nobody"]))["noise"] == []
    with pytest.raises(BadInputError, match="found no folder"):
        extract_of(tmp_path / "nowhere")


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_the_command_tells_runs_and_noise_and_writes_the_extract(tmp_path: Path, noise: float) -> None:
    judged(tmp_path, "20260101T000000Z-x-0000", design="interleaved", launches=3, noise=noise)
    extract = tmp_path / "noise.json"
    result = CliRunner().invoke(
        storqual, ["history", str(tmp_path), "--extract", str(extract)], standalone_mode=False
    )
    assert result.exception is None
    assert "20260101T000000Z-x-0000  baseline -> candidate" in result.stdout
    assert re.search(r"^noise +vbench +[1-9][0-9]* +[0-9.]+ %$", result.stdout, re.MULTILINE)
    assert read_histories(extract)


def readings(values: list[float]) -> list[ReferenceReading]:
    return [
        ReferenceReading(
            f"r{number:02d}", "b1", "0x5", f"2026-01-{number + 1:02d}T0{at}:00:00Z", value * (1 + 0.001 * at)
        )
        for number, value in enumerate(values)
        for at in range(2)
    ]


def test_a_bench_out_of_control_makes_its_campaign_suspect() -> None:
    """Ten campaigns within one percent, then one 8 % below, then one as before."""
    usual = [1000 + 5 * (-1) ** number for number in range(10)]
    chart = control_chart(readings([*usual, 920.0, 1000.0]))
    assert [point.run for point in chart if point.suspect] == ["r10"]
    assert "out of control" in chart[10].suspect
    # the suspect one does not widen the limits of the next
    assert chart[11].low == chart[10].low


@pytest.mark.parametrize(("share", "suspect"), [(1.0, False), (1.1, True)])
def test_a_campaign_on_a_bench_out_of_control_says_so_in_its_verdict(
    tmp_path: Path, share: float, suspect: bool
) -> None:
    path = make_run(tmp_path, noise=0.003)
    add_reference(path, share)
    warnings = [text for text in judge_run(path)["warnings"] if "this campaign is suspect" in text]
    assert [text.partition(" gave ")[0] for text in warnings] == ["vbench: its golden reference 0x5"] * suspect


def test_how_far_a_reference_is_from_its_usual_value_is_known_after_enough_campaigns(tmp_path: Path) -> None:
    assert reference_shifts(tmp_path) == {}
    with open_history(tmp_path) as history:
        for reading in readings([*[1000.0] * FEWEST, 900.0]):
            run = (reading.run, "", reading.run, "", "", "", "", "", "", "")
            history._connection.execute("INSERT OR IGNORE INTO run VALUES (?,?,?,?,?,?,?,?,?,?)", run)
            columns = (reading.run, reading.bench, reading.drive, reading.moment, reading.iops)
            history._connection.execute("INSERT INTO reference VALUES (?,?,?,?,?)", columns)
        history._connection.commit()
    shifts = reference_shifts(tmp_path)
    assert list(shifts) == ["b1"]
    assert "-10 %" in shifts["b1"]
    assert f"r{FEWEST:02d}" in shifts["b1"]


def test_there_are_no_limits_before_there_are_enough_campaigns() -> None:
    chart = control_chart(readings([1000.0] * (FEWEST - 1) + [10.0]))
    assert all(point.low is None and not point.suspect for point in chart)
