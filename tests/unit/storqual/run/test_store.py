# SPDX-License-Identifier: Apache-2.0
"""The run directory: whole lines, a chain of events, inputs that are what they were."""

from __future__ import annotations

import json
import math
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from storqual.run import (
    append_check,
    append_event,
    coverage,
    finish_run,
    guard_ledger,
    iter_events,
    read_run,
    read_run_json,
    sha256_of,
    write_json,
)
from storqual.run.files import read_lines
from storqual.run.layout import append_lines
from storqual.run.records import Event
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS


def note(run: Path, count: int) -> None:
    """Append so many notes; for several processes at once."""
    for number in range(count):
        append_event(run, "note", {"text": f"{number}"})


def test_a_synthetic_run_reads_as_a_run(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    assert len(list(run.samples)) == 4 * 2 * len(POINTS)
    assert (coverage(run).planned, coverage(run).measured, coverage(run).holes) == (8, 8, ())
    assert [session.arm for session in run.plan.sessions] == ["baseline", "candidate", "candidate", "baseline"]
    assert run.verify_inputs() == []
    assert run.input_file("suite").is_file()


def test_equal_arguments_give_equal_runs(tmp_path: Path) -> None:
    paths = [make_run(tmp_path / name, effect=-0.05) for name in ("a", "b")]
    files = [sorted(path.relative_to(root) for path in root.rglob("*")) for root in paths]
    assert files[0] == files[1]
    assert all(
        (paths[0] / f).read_bytes() == (paths[1] / f).read_bytes() for f in files[0] if (paths[0] / f).is_file()
    )


def test_a_hole_and_a_skip_are_told_apart(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, missing=[f"sym/{POINTS[0]}"], skipped={f"mpt/{POINTS[1]}": "no room"}))
    found = coverage(run)
    assert (found.planned, found.measured) == (8, 6)
    assert [(cell.adapter, cell.reason) for cell in found.skipped] == [("mpt", "no room")]
    assert [(hole.adapter, hole.point) for hole in found.holes] == [("sym", POINTS[0])]
    assert {"bench": "vbench", "adapter": "sym", "point": POINTS[0], "reason": ""} in found.to_json()["skipped"]


def test_a_chain_that_was_changed_is_found(tmp_path: Path) -> None:
    """Changed, removed or swapped: the line after it says so."""
    path = make_run(tmp_path)
    good = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    changed = [*good[:3], good[3].replace(b"s01", b"s09"), *good[4:]]
    for bad in (changed, good[:2] + good[3:], [good[1], good[0], *good[2:]]):
        (path / "events.jsonl").write_bytes(b"".join(bad))
        with pytest.raises(StorqualError, match="digest"):
            list(iter_events(path))


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    before = len(list(iter_events(path)))
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(note, [path] * 3, [15] * 3))
    assert len(list(iter_events(path))) == before + 45


def test_a_torn_line_is_cut_off_by_the_next_writer(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    before = len(list(iter_events(path)))
    with (path / "events.jsonl").open("ab") as file:
        file.write(b'{"time": "2026-')
    assert len(list(iter_events(path))) == before
    append_event(path, "note", {"text": "after"})
    assert [event.kind for event in iter_events(path)][before:] == ["note"]


@pytest.mark.parametrize("torn", [b"", b"x", b"x" * 200_000], ids=["nothing", "short", "long"])
def test_only_whole_lines_are_kept(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"one\ntwo\n" + torn)
    append_lines(path, b"three\n")
    assert list(read_lines(path.parent, path.name)) == [(1, b"one"), (2, b"two"), (3, b"three")]


_OF_BATCH = {"bench": "b", "session": "s", "block": "s-b01"}


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("blok_started", {}, "found kind 'blok_started', expected one of"),
        ("block_started", {"bench": "b"}, "event block_started: session: is missing"),
        ("note", {"text": "x", "previous": "y"}, "event note: previous: is not known"),
        ("block_started", {**_OF_BATCH, "file_sha256": "0" * 64}, "which the store writes itself"),
    ],
    ids=["kind", "field", "unknown", "own"],
)
def test_an_event_must_be_one(tmp_path: Path, kind: str, fields: dict[str, str], said: str) -> None:
    """Nothing is appended otherwise."""
    path = make_run(tmp_path, finished=False)
    before = (path / "events.jsonl").read_bytes()
    with pytest.raises(BadInputError, match=said):
        append_event(path, kind, fields)
    assert (path / "events.jsonl").read_bytes() == before


def test_a_check_needs_a_known_outcome(tmp_path: Path) -> None:
    path = make_run(tmp_path, finished=False)
    append_check(path, {"id": "cabling", "outcome": "PASS", "source": "robot"})
    assert [(check.id, check.outcome) for check in read_run(path).checks] == [("cabling", "PASS")]
    with pytest.raises(BadInputError, match="found outcome 'OK'"):
        append_check(path, {"id": "cabling", "outcome": "OK", "source": "robot"})


def test_an_input_that_was_changed_is_found(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    (path / "inputs" / "suite.yml").write_text("workloads: {}\n", encoding="utf-8")
    (problem,) = read_run(path).verify_inputs()
    assert "inputs/suite.yml" in problem


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"this is not a run directory"):
        read_run(tmp_path)
    write_json(tmp_path / "run.json", {"schema": "storqual.run/9"})
    with pytest.raises(BadInputError, match=r"found schema 'storqual\.run/9'"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "this is not a sample"),
        (b'{"id": "x"}', "this is not a sample"),
        (None, "twice"),
    ],
    ids=["no json", "no sample", "twice"],
)
def test_a_damaged_sample_is_not_skipped(tmp_path: Path, line: bytes | None, said: str) -> None:
    path = make_run(tmp_path)
    samples = path / "samples.jsonl"
    samples.write_bytes(samples.read_bytes() + (line or samples.read_bytes().splitlines()[0]) + b"\n")
    with pytest.raises(StorqualError, match=said):
        list(read_run(path).samples)


def test_a_sample_of_no_known_status_is_damage(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    samples = path / "samples.jsonl"
    samples.write_bytes(samples.read_bytes().replace(b'"status":"ok"', b'"status":"fine"', 1))
    with pytest.raises(StorqualError, match="'fine'"):
        list(read_run(path).samples)


def test_json_never_holds_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"value": math.nan})
    assert not (tmp_path / "x.json").exists()


def disks(bench: str, boot: str, before: int, after: int, **more: object) -> Event:
    """The end of a block with one disk."""
    disk = {"wwn": "0x5", "claimed": False, "system": False, **more}
    disk |= {"write_sectors_before": before, "write_sectors_after": after}
    return Event("t", "block_finished", bench, {"boot_id": boot, "end": {"disks": {"sdx": disk}}})


def test_sectors_outside_claims_are_summed_over_boots() -> None:
    events = [disks("b", "1", 0, 0), disks("b", "1", 7, 7), disks("b", "2", 0, 2)]
    ledger = guard_ledger(events, {"b": {"kind": "virtual"}})
    assert (ledger["sectors_written_outside_claims"], ledger["applies"]) == (9, True)


def test_system_and_claimed_disks_are_listed_and_not_counted() -> None:
    events = [disks("b", "1", 0, 5, system=True), disks("b", "1", 0, 5, claimed=True, wwn="0x6")]
    ledger = guard_ledger(events, {"b": {"kind": "virtual"}})
    assert ledger["sectors_written_outside_claims"] == 0
    assert [disk["sectors_written"] for disk in ledger["disks"]] == [5, 5]


def test_a_drive_that_came_back_counts_from_nought() -> None:
    """Taken away and returned within one boot: its counter begins anew, and never counts backwards."""
    events = [disks("b", "1", 0, 50), disks("b", "1", 3, 7)]
    assert guard_ledger(events, {"b": {"kind": "virtual"}})["sectors_written_outside_claims"] == 57


def test_a_disk_that_one_batch_claims_is_claimed_in_the_run() -> None:
    """The member of a volume is written while the next configuration is made, whose batch reads a drive alone."""
    events = [disks("b", "1", 0, 5), disks("b", "1", 9, 9, claimed=True), disks("b", "1", 20, 20)]
    ledger = guard_ledger(events, {"b": {"kind": "virtual"}})
    assert (ledger["sectors_written_outside_claims"], ledger["disks"][0]["sectors_written"]) == (0, 20)


def test_finishing_twice_changes_nothing(tmp_path: Path) -> None:
    path = make_run(tmp_path, finished=False)
    documents = []
    for _ in range(2):
        finish_run(path)
        documents.append(read_run_json(path))
        append_event(path, "judged", {"outcome": "PASS"})
    assert documents[0] == documents[1]
    assert documents[0]["finished"] == [event.time for event in iter_events(path) if event.bench][-1]
    assert [entry["session"] for entry in documents[0]["provisioned"]] == ["s01", "s02", "s03", "s04"]
    assert documents[0]["versions"]["fio"] == {"vbench": "fio-3.33"}
    assert set(documents[0]["benches"]["vbench"]["environment"]) == {"before", "after"}
    assert documents[0]["overhead"]["seconds_per_sample"] == 0.06


def test_raw_files_are_named_by_what_they_hold(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    for sample in read_run(path).samples:
        for raw in sample.raw:
            assert sha256_of((path / raw.path).read_bytes()) == raw.sha256
            assert raw.sha256 in raw.path


def test_a_run_can_be_moved(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a")
    moved = tmp_path / "elsewhere"
    path.rename(moved)
    assert read_run(moved).verify_inputs() == []
    assert str(tmp_path) not in json.dumps(read_run_json(moved))
