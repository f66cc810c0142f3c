# SPDX-License-Identifier: Apache-2.0
"""The reader of samples: whole ones, and launches of which only the beginning and the end of a line is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import loads

from storqual.run import Launch, read_launches, read_run, read_samples, records
from storqual.run.layout import dump_line
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
