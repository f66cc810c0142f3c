# SPDX-License-Identifier: Apache-2.0
"""The reader of samples: whole ones, and launches of which only the beginning and the end of a line is read."""

import json
import re
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import loads

from storqual.metrics import Unavailable, Value
from storqual.run import Launch, Run, is_measured, planned_session, read_launches, read_run, read_samples, records
from storqual.run.layout import dump_line
from storqual.run.measurements import measurements, measurements_at
from storqual_core.kit.errors import StorqualError
from tests.support.make_run import make_run
from tests.support.simulated_campaign import Bench, Rates, drive, plan

SAMPLE = {
    "schema": "storqual.sample/1", "id": "s01-b01/0", "bench": "b", "adapter": "sym", "arm": "baseline",
    "configuration": "baseline", "session": "s01", "block": "s01-b01", "point": "rand_read[bs=4k]", "n": 1,
    "start": "2026-11-21T10:00:00.000Z", "runtime_s": 3.0, "status": "ok", "series": {"iops": [1.0, 2.0]},
    "primitives": {"read_bins": {"1000": 5}}, "suspect": [], "raw": [{"path": "raw/x", "sha256": "x"}],
}  # fmt: skip

TEXT = st.text(max_size=8)


def stored(folder: Path, *lines: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "samples.jsonl").write_bytes(b"".join(lines))
    return folder


def whole_lines_parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    seen: list[bytes] = []

    def parse(data: bytes) -> object:
        if b'"primitives"' in data:
            seen.append(data)
        return loads(data)

    monkeypatch.setattr(records, "loads", parse)
    return seen


def test_launches_are_those_of_the_samples_and_no_primitives_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_run(tmp_path)
    expected = [Launch.of(sample) for sample in read_samples(path)]
    parsed = whole_lines_parsed(monkeypatch)
    assert list(read_launches(path)) == expected
    assert parsed == []


def test_only_the_wanted_lines_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path)
    point = read_run(path).plan.points[0]
    every = [sample for sample in read_samples(path) if (sample.bench, sample.adapter, sample.point) == point.key]
    parsed = whole_lines_parsed(monkeypatch)
    assert list(read_samples(path, lambda launch: launch.key == point.key)) == every
    assert len(parsed) == len(every) > 0
    assert list(read_run(path).samples_at(point)) == every


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "point": st.text(min_size=1, max_size=8), "start": TEXT, "suspect": st.lists(TEXT, max_size=2),
            "n": st.integers(-5, 10**18), "runtime_s": st.floats(-1e18, 1e18),
            "status": st.sampled_from(["ok", "lost", "fine"]), "series": st.dictionaries(TEXT, st.just([1.0])),
            "primitives": st.dictionaries(TEXT | st.just("suspect"), st.integers(0, 2**62) | st.just([]), max_size=3),
            "extra": TEXT,
        },
    ),
    st.permutations(list(SAMPLE)),
    st.sampled_from([True, False]),
)  # fmt: skip
def test_a_launch_is_that_of_its_sample_whatever_the_line_is(
    tmp_path_factory: pytest.TempPathFactory, changed: dict[str, object], order: list[str], in_order: bool
) -> None:
    """Numbers that no launch can have are the whole reader's to refuse: the other one passes them over."""
    line = {**SAMPLE, **changed}
    if not in_order:
        line = {name: line[name] for name in order}
    path = stored(tmp_path_factory.getbasetemp() / "lines", dump_line(line))
    try:
        expected = [Launch.of(sample) for sample in read_samples(path)]
    except StorqualError:
        with pytest.raises(StorqualError):
            list(read_launches(path))
    else:
        assert list(read_launches(path)) == expected


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": "x"}\n',
        dump_line(SAMPLE).replace(b'"status":"ok"', b'"status":"fine"'),
        dump_line(SAMPLE).replace(b'"raw":[', b'"raw":[[]'),
        dump_line({**SAMPLE, "primitives": [1]}).replace(b'"suspect":[]', b'"suspect":{}'),
    ],
)
def test_a_line_that_is_no_sample_is_no_launch(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(StorqualError, match=r"samples\.jsonl:1: this is not a sample"):
        list(read_launches(stored(tmp_path, line)))


def test_a_launch_is_not_read_twice(tmp_path: Path) -> None:
    path = stored(tmp_path, dump_line(SAMPLE), dump_line({**SAMPLE, "n": 2}))
    for read in (read_samples, read_launches, lambda run: read_samples(run, lambda _: False)):
        with pytest.raises(StorqualError, match=r"samples\.jsonl:2: found sample s01-b01/0 twice"):
            list(read(path))


def test_a_torn_last_line_is_not_there_yet(tmp_path: Path) -> None:
    path = stored(tmp_path, dump_line(SAMPLE), dump_line(SAMPLE)[:-20])
    assert [launch.id for launch in read_launches(path)] == ["s01-b01/0"]


def test_a_start_that_is_no_time_is_told_with_its_sample(tmp_path: Path) -> None:
    (launch,) = read_launches(stored(tmp_path, dump_line({**SAMPLE, "start": "noon"})))
    with pytest.raises(StorqualError, match="sample s01-b01/0: found start 'noon'"):
        _ = launch.began


def test_nan_is_no_json(tmp_path: Path) -> None:
    line = json.dumps({**SAMPLE, "primitives": {"read_ios": float("nan")}}).encode() + b"\n"
    with pytest.raises(StorqualError, match="this is not a sample"):
        list(read_samples(stored(tmp_path, line)))


def test_of_lines_as_a_bench_writes_them_no_primitives_are_parsed_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have a reason, notes and a seed besides."""
    path = plan(tmp_path)
    drive(path, Bench(Rates()))
    expected = [Launch.of(sample) for sample in read_samples(path)]
    assert expected
    parsed = whole_lines_parsed(monkeypatch)
    assert list(read_launches(path)) == expected
    assert parsed == []


LIBRARY = Path(__file__).resolve().parents[4] / "library"
FOLDERS = ("", "module_utils", "..")


def files() -> list[Path]:
    """The files of the section's table; a folder named in front of a list of files is theirs."""
    text = (LIBRARY / "README.md").read_text(encoding="utf-8")
    section = text.partition("## The path of one sample\n")[2].partition("\n## ")[0]
    folder, paths = "", []
    for row in (line for line in section.splitlines() if line.startswith("| ") and "`" in line):
        for name in re.findall(r"`([^`]+)`", row):
            if name.endswith("/"):
                folder = name
                continue
            places = [LIBRARY / root / prefix / name for root in FOLDERS for prefix in ("", folder)]
            paths.append(next((path.resolve() for path in places if path.is_file()), LIBRARY / name))
    return paths


def test_a_sample_passes_at_most_25_files() -> None:
    paths = files()
    assert [path for path in paths if not path.is_file()] == []
    # the metric's own file has no name of its own in the list
    assert 20 < len(paths) == len(set(paths)) <= 25


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


P99 = "latency_p99_us"


def rewritten(path: Path, **primitives: Any) -> Run:
    file = path / "samples.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["primitives"].update(primitives)
    file.write_bytes(b"".join(map(dump_line, lines)))
    return read_run(path)


def test_a_point_has_every_launch_in_order_and_the_bins_of_each_arm(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    measured = measurements(run, {}, ["iops"], histograms=True)
    assert set(measured.points) == set(run.points)
    for key, data in measured.points.items():
        samples = [sample for sample in read_samples(run.path) if (sample.bench, sample.adapter, sample.point) == key]
        assert {launch.id for launch in data.every()} == {sample.id for sample in samples}
        for arm, launches in data.launches.items():
            assert [launch.start for launch in launches] == sorted(
                sample.start for sample in samples if sample.arm == arm
            )
            assert all(launch.number("iops") for launch in launches)
            total: Counter[int] = Counter()
            for sample in samples:
                for ns, number in (sample.primitives.get("read_bins") or {}).items() if sample.arm == arm else ():
                    total[int(ns)] += number
            assert data.bins.get((arm, "read"), {}) == total


def test_what_nobody_asked_for_is_not_kept(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    first = run.plan.points[0].key
    measured = measurements(run, {first: ["iops"]})
    assert list(measured.points) == [first]
    assert not measured.points[first].bins
    assert {tuple(launch.values) for launch in measured.points[first].every()} == {("iops",)}
    assert measured.finished.keys() == run.points.keys()
    assert list(measurements_at(run, {first: ["iops"]}).points[first].every()) == list(measured.points[first].every())


def test_samples_that_came_in_since_are_noticed(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    measured = measurements(run, {}, ["iops"])
    assert measured.is_of(run)
    file = run.path / "samples.jsonl"
    file.write_bytes(file.read_bytes()[:-1])
    assert not measured.is_of(run)


@pytest.mark.parametrize("sessions", [1, 4])
def test_launches_too_short_for_a_percentile_share_the_bins_of_their_session(tmp_path: Path, sessions: int) -> None:
    shape = {"design": "interleaved"} if sessions == 1 else {"sessions": sessions}
    path = make_run(tmp_path, **shape)
    run = rewritten(path, read_ios=600, read_bins={"1000": 595, "2000": 5}, write_ios=0, write_bins={})
    key = next(key for key in run.points if key[2].startswith("rand_read"))
    for launches in measurements(run, {key: [P99]}).points[key].launches.values():
        for session in {launch.session for launch in launches}:
            members = [launch for launch in launches if launch.session == session]
            pool = members[0].pool
            assert pool is not None
            assert all(launch.pool is pool for launch in members)
            assert pool.launches == len(members)
            if len(members) > 1:
                assert pool.primitives["read_bins"] == {"1000": 595 * len(members), "2000": 5 * len(members)}
            assert all(isinstance(launch.values[P99], Unavailable) for launch in members)


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
        measured = measurements(run, {key: ["iops"] for key in run.points}, histograms=True)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        launches = sum(1 for data in measured.points.values() for _ in data.every())
    bins = sum(len(total) for data in measured.points.values() for total in data.bins.values())
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
    measured = measurements(read_run(path), {}, ["iops"])
    assert lost["arm"] not in measured.finished[key]
    assert measured.finished[key]
