# SPDX-License-Identifier: Apache-2.0
"""What is kept of samples: by point and arm, with histograms added up and none held."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from storqual.metrics import Unavailable, Value
from storqual.run import Run, read_run, read_samples
from storqual.run.layout import dump_line
from storqual.run.measurements import measurements, measurements_at
from tests.support.make_run import make_run

P99 = "latency_p99_us"


def rewritten(path: Path, **primitives: Any) -> Run:
    """The run with these primitives in each sample."""
    file = path / "samples.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["primitives"].update(primitives)
    file.write_bytes(b"".join(map(dump_line, lines)))
    return read_run(path)


def test_a_point_has_every_launch_in_order_and_the_bins_of_each_arm(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    found = measurements(run, {}, ["iops"], histograms=True)
    assert set(found.points) == set(run.points)
    for key, data in found.points.items():
        own = [one for one in read_samples(run.path) if (one.bench, one.adapter, one.point) == key]
        assert {launch.id for launch in data.every()} == {one.id for one in own}
        for arm, launches in data.launches.items():
            assert [launch.start for launch in launches] == sorted(one.start for one in own if one.arm == arm)
            assert all(launch.number("iops") for launch in launches)
            total: Counter[int] = Counter()
            for one in own:
                for ns, number in (one.primitives.get("read_bins") or {}).items() if one.arm == arm else ():
                    total[int(ns)] += number
            assert data.bins.get((arm, "read"), {}) == total


def test_what_nobody_asked_for_is_not_kept(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    first = run.plan.points[0].key
    found = measurements(run, {first: ["iops"]})
    assert list(found.points) == [first]
    assert not found.points[first].bins
    assert {tuple(launch.values) for launch in found.points[first].every()} == {("iops",)}
    assert found.finished.keys() == run.points.keys()
    assert list(measurements_at(run, {first: ["iops"]}).points[first].every()) == list(found.points[first].every())


def test_samples_that_came_in_since_are_noticed(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    found = measurements(run, {}, ["iops"])
    assert found.is_of(run)
    file = run.path / "samples.jsonl"
    file.write_bytes(file.read_bytes()[:-1])
    assert not found.is_of(run)


@pytest.mark.parametrize("sessions", [1, 4])
def test_launches_too_short_for_a_percentile_share_the_bins_of_their_session(tmp_path: Path, sessions: int) -> None:
    shape = {"design": "interleaved"} if sessions == 1 else {"sessions": sessions}
    path = make_run(tmp_path, **shape)
    run = rewritten(path, read_ios=600, read_bins={"1000": 595, "2000": 5}, write_ios=0, write_bins={})
    key = next(key for key in run.points if key[2].startswith("rand_read"))
    for launches in measurements(run, {key: [P99]}).points[key].launches.values():
        for session in {launch.session for launch in launches}:
            own = [launch for launch in launches if launch.session == session]
            pool = own[0].pool
            assert pool is not None
            assert all(launch.pool is pool for launch in own)
            assert pool.launches == len(own)
            if len(own) > 1:
                assert pool.primitives["read_bins"] == {"1000": 595 * len(own), "2000": 5 * len(own)}
            assert all(isinstance(launch.values[P99], Unavailable) for launch in own)


def test_a_launch_that_says_its_percentile_itself_has_no_pool(tmp_path: Path) -> None:
    run = rewritten(
        make_run(tmp_path), read_ios=6000, read_bins={"1000": 5900, "2000": 100}, write_ios=0, write_bins={}
    )
    key = next(key for key in run.points if key[2].startswith("rand_read"))
    for launch in measurements(run, {key: [P99]}).points[key].every():
        assert isinstance(launch.values[P99], Value)
        assert launch.pool is None


def test_a_percentile_that_is_only_shown_pools_nothing(tmp_path: Path) -> None:
    """The verdict is the same whoever else looked at the samples."""
    run = rewritten(make_run(tmp_path), read_ios=600, read_bins={"1000": 600}, write_ios=0, write_bins={})
    for data in measurements(run, {key: ["iops"] for key in run.points}, [P99]).points.values():
        assert {launch.pool for launch in data.every()} == {None}


@pytest.mark.parametrize("bins", [{"x": 1}, [1], 7, {"1000": "many"}])
def test_bins_that_are_none_are_not_drawn_and_have_a_reason(tmp_path: Path, bins: Any) -> None:
    run = rewritten(make_run(tmp_path), read_bins=bins, write_bins=bins)
    for data in measurements(run, {}, [P99], histograms=True).points.values():
        assert not any(data.bins.values())
        assert all(isinstance(launch.values[P99], Unavailable) for launch in data.every())


def test_histograms_are_let_go(tmp_path: Path) -> None:
    """A launch costs the same with six bins and with six hundred."""
    sizes = []
    for number in (6, 600):
        path = make_run(tmp_path / str(number), sessions=8)
        run = rewritten(path, read_ios=50 * number, read_bins={str(1000 * at): 50 for at in range(1, number + 1)})
        tracemalloc.start()
        found = measurements(run, {key: ["iops"] for key in run.points}, histograms=True)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        launches = sum(1 for data in found.points.values() for _ in data.every())
    bins = sum(len(total) for data in found.points.values() for total in data.bins.values())
    assert (sizes[1] - sizes[0]) / launches < 150 * bins / launches + 200


def test_a_launch_that_was_lost_does_not_finish_its_point(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    file = path / "samples.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lost = lines[0]
    key = (lost["bench"], lost["adapter"], lost["point"])
    for line in lines:
        if (line["bench"], line["adapter"], line["point"], line["arm"]) == (*key, lost["arm"]):
            line["status"] = "lost"
    file.write_bytes(b"".join(map(dump_line, lines)))
    found = measurements(read_run(path), {}, ["iops"])
    assert lost["arm"] not in found.finished[key]
    assert found.finished[key]
