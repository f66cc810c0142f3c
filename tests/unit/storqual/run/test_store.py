# SPDX-License-Identifier: Apache-2.0
"""The run directory: whole lines, a chain of events, inputs that are what they were."""

import errno
import json
import math
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual.run import (
    EVENT_KINDS,
    append_check,
    append_event,
    coverage,
    create_run,
    finish_run,
    guard_ledger,
    is_signed,
    iter_events,
    read_run,
    read_run_json,
    sha256_of,
    write_json,
)
from storqual.run.event_kinds import Stage, event_problems, line_problems
from storqual.run.files import read_lines
from storqual.run.layout import NoSpaceError, append_lines, locked, opened
from storqual.run.records import Event
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.event_examples import example, mistakes, stored
from tests.support.make_run import make_run
from tests.support.sealed_run import chained, lines_of
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
    ledger = coverage(run)
    assert (ledger.planned, ledger.measured) == (8, 6)
    assert [(cell.adapter, cell.reason) for cell in ledger.skipped] == [("mpt", "no room")]
    assert [(hole.adapter, hole.point) for hole in ledger.holes] == [("sym", POINTS[0])]
    assert {"bench": "vbench", "adapter": "sym", "point": POINTS[0], "reason": ""} in ledger.to_json()["skipped"]


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
    ("kind", "fields", "message"),
    [
        ("blok_started", {}, "found kind 'blok_started', expected one of"),
        ("block_started", {"bench": "b"}, "event block_started: session: is missing"),
        ("note", {"text": "x", "previous": "y"}, "event note: previous: is not known"),
        ("block_started", {**_OF_BATCH, "file_sha256": "0" * 64}, "which the store writes itself"),
    ],
    ids=["kind", "field", "unknown", "own"],
)
def test_an_event_must_be_one(tmp_path: Path, kind: str, fields: dict[str, str], message: str) -> None:
    """Nothing is appended otherwise."""
    path = make_run(tmp_path, finished=False)
    before = (path / "events.jsonl").read_bytes()
    with pytest.raises(BadInputError, match=message):
        append_event(path, kind, fields)
    assert (path / "events.jsonl").read_bytes() == before


def test_a_check_needs_a_known_outcome(tmp_path: Path) -> None:
    path = make_run(tmp_path, finished=False)
    append_check(path, {"id": "cabling", "outcome": "PASS", "source": "robot"})
    assert [(check.id, check.outcome) for check in read_run(path).checks] == [("cabling", "PASS")]
    with pytest.raises(BadInputError, match="found outcome 'OK'"):
        append_check(path, {"id": "cabling", "outcome": "OK", "source": "robot"})


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"this is not a run directory"):
        read_run(tmp_path)
    write_json(tmp_path / "run.json", {"schema": "storqual.run/9"})
    with pytest.raises(BadInputError, match=r"found schema 'storqual\.run/9'"):
        read_run(tmp_path)
    for name in ("../x", "a\nb", "{{ x }}", "-rf", 7, None):
        write_json(tmp_path / "run.json", {"schema": "storqual.run/2", "run": name})
        with pytest.raises(BadInputError, match=r"run\.json: run '"):
            read_run(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [(b"{", "this is not a sample"), (b'{"id": "x"}', "this is not a sample"), (None, "twice")],
    ids=["no json", "no sample", "twice"],
)
def test_a_damaged_sample_is_not_skipped(tmp_path: Path, line: bytes | None, message: str) -> None:
    path = make_run(tmp_path)
    samples = path / "samples.jsonl"
    samples.write_bytes(samples.read_bytes() + (line or samples.read_bytes().splitlines()[0]) + b"\n")
    with pytest.raises(StorqualError, match=message):
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


SIGNATURE = "signoff.release-manager.json"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path, points=POINTS[:1], adapters=("sym",))


def refused_after_waiting(run: Path, meanwhile: Callable[[], object]) -> str:
    """What somebody is told who waited for the lock while `meanwhile` happened under it."""
    messages: list[str] = []
    begun = threading.Event()

    def write() -> None:
        begun.set()
        try:
            append_event(run, "note", {"text": "late"})
        except BadInputError as problem:
            messages.append(str(problem))

    writer = threading.Thread(target=write)
    with locked(run):
        writer.start()
        begun.wait()
        meanwhile()
    writer.join()
    return "".join(messages)


def test_who_waited_for_a_run_that_was_signed_writes_nothing(run: Path) -> None:
    before = (run / "events.jsonl").read_bytes()
    assert "this run is signed" in refused_after_waiting(run, (run / SIGNATURE).touch)
    assert (run / "events.jsonl").read_bytes() == before


def test_who_waited_for_a_folder_that_is_another_now_writes_nothing(run: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(run, tmp_path / "other"))

    def exchange() -> None:
        run.rename(tmp_path / "gone")
        other.rename(run)

    before = (run / "events.jsonl").read_bytes()
    message = refused_after_waiting(run, exchange)
    # the writer may have come before or after the exchange; what it wrote it wrote to the folder that it held
    changed = (run / "events.jsonl").read_bytes() != before
    assert changed == (message == "")
    assert (tmp_path / "gone" / "events.jsonl").read_bytes() == before


def test_a_thread_that_holds_a_run_may_take_it_again(run: Path) -> None:
    with locked(run) as folder, locked(run) as again, locked(folder):
        append_event(again, "note", {"text": "inside"})
    append_event(run, "note", {"text": "outside"})
    assert [event.text("text") for event in read_run(run).events][-2:] == ["inside", "outside"]


def test_a_signature_made_under_the_lock_is_seen_by_the_same_thread(run: Path) -> None:
    with locked(run):
        (run / SIGNATURE).touch()
        with pytest.raises(BadInputError, match="this run is signed"):
            append_event(run, "note", {"text": "late"})


def test_an_open_folder_stays_the_one_that_was_opened_and_is_named_as_it_was_asked_for(run: Path) -> None:
    with opened(run) as folder:
        moved = run.rename(run.with_name("moved"))
        run.mkdir()
        assert read_run(folder).document["run"] == json.loads((moved / "run.json").read_text())["run"]
        (moved / "run.json").unlink()
    with pytest.raises(BadInputError) as caught, opened(moved) as folder:
        read_run(folder)
    assert str(caught.value).startswith(f"{moved}/run.json: ")
    assert caught.value.problems[0].startswith(f"{moved}/run.json: ")


@pytest.mark.parametrize("name", ["signoff-x.json", "signoff.manifest.json", SIGNATURE, "signoff.x.statement.json"])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("run.json")])
def test_only_a_file_is_a_signature(name: str, make: Callable[[Path], object], run: Path) -> None:
    make(run / name)
    assert not is_signed(run)
    append_event(run, "note", {"text": "still measured"})


@pytest.mark.parametrize("name", ["suite", "gate", "baseline"])
@pytest.mark.parametrize("file", ["absolute", "above", "link"])
def test_an_input_outside_of_a_run_is_not_opened(
    name: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, points=POINTS[:1], adapters=("sym",), gate="name: lab\n")
    secret = tmp_path / "secret.yml"
    secret.write_text("root: top-secret-word\n", encoding="utf-8")
    named = {"absolute": str(secret), "above": "inputs/../../secret.yml", "link": "inputs/link.yml"}[file]
    if file == "link":
        (run / "inputs" / "link.yml").symlink_to(secret)
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    document["inputs"][name]["file"] = named
    write_json(run / "run.json", document)
    with pytest.raises(SystemExit) as ended:
        main(["judge", str(run)])
    # a link is odd wherever it lies in a run, and judged is nothing beside it
    assert ended.value.code == (2 if file == "link" else 3)
    message = capsys.readouterr().err
    assert ("inputs/link.yml" if file == "link" else f"inputs.{name}.file") in message
    assert "top-secret-word" not in message
    assert any(f"inputs.{name}.file" in problem for problem in read_run(run).verify_inputs())
    with pytest.raises(StorqualError):
        judge_run(run)


CODES = pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])


@pytest.fixture
def run_on_a_full_disk(tmp_path: Path) -> Path:
    return create_run(tmp_path / "runs", "r1", {"benches": {}}, inputs={}, batches=[])


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Every write fails when it has to reach the disk."""

    def fails(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("os.fsync", fails)


@CODES
def test_an_event_that_finds_no_space_is_told_and_happens_again_when_there_is_some(
    code: int, run_on_a_full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        fill_the_disk(full, code)
        with pytest.raises(NoSpaceError, match=r"events\.jsonl: no space left on this disk") as refused:
            append_event(run_on_a_full_disk, "note", {"text": "one"})
    assert refused.value.exit_code == 2
    # what was written and never reached the disk is cut off here, as after a power cut
    os.truncate(run_on_a_full_disk / "events.jsonl", (run_on_a_full_disk / "events.jsonl").stat().st_size - 1)
    append_event(run_on_a_full_disk, "note", {"text": "two"})
    assert [event.kind for event in iter_events(run_on_a_full_disk)] == ["planned", "note"]


@CODES
def test_a_file_that_finds_no_space_keeps_its_former_content(
    code: int, run_on_a_full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(run_on_a_full_disk / "verdict.json", {"outcome": "PASS"})
    fill_the_disk(monkeypatch, code)
    with pytest.raises(NoSpaceError, match=r"verdict\.json: no space left on this disk"):
        write_json(run_on_a_full_disk / "verdict.json", {"outcome": "FAIL"})
    assert '"PASS"' in (run_on_a_full_disk / "verdict.json").read_text(encoding="utf-8")
    assert not list(run_on_a_full_disk.glob(".verdict*"))


@CODES
def test_a_run_for_which_there_is_no_space_is_not_begun(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_the_disk(monkeypatch, code)
    with pytest.raises(BadInputError, match="there is no space for a run on this disk") as refused:
        create_run(tmp_path / "runs", "r1", {}, inputs={}, batches=[])
    assert refused.value.exit_code == 3
    assert not list((tmp_path / "runs").iterdir())


@CODES
def test_any_other_file_without_space_is_one_sentence_and_no_fault_of_the_code(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def fails(*_: object, **__: object) -> object:
        raise OSError(code, os.strerror(code), "out/report.html")

    monkeypatch.setattr("storqual.cli.storqual.main", fails)
    with pytest.raises(SystemExit) as left:
        main(["report", "runs/x"])
    message = capsys.readouterr().err
    assert left.value.code == 2
    assert message.startswith("storqual: out/report.html: no space left on this disk; ")
    assert message.count("\n") == 1
    assert not list(tmp_path.rglob("storqual-error-*"))


FIELDS_OF_OTHERS = {"end": {"disks": {}}, "outcome": "done", "sha256": "a" * 64, "provisioned": {}, "checks": {}}


@pytest.fixture(scope="module")
def run_with_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"), points=POINTS[:1], adapters=("sym",), finished=False)


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_an_event_with_its_fields_is_one_and_no_other_is(kind: str) -> None:
    assert event_problems(kind, example(kind)) == []
    passed = [mistake for mistake, fields in mistakes(kind) if not event_problems(kind, fields)]
    assert passed == []
    of_others = {name: value for name, value in FIELDS_OF_OTHERS.items() if name not in example(kind)}
    assert all(event_problems(kind, example(kind, **{name: value})) for name, value in of_others.items())


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_what_the_store_writes_is_checked_when_it_is_read(kind: str) -> None:
    line = {**stored(kind), **example(kind)}
    assert line_problems(line) == []
    for name in ("time", "kind", "previous"):
        assert line_problems({key: value for key, value in line.items() if key != name})
        assert line_problems({**line, name: 1})
        assert line_problems({**line, name: ""})
    assert line_problems([line])
    assert line_problems({**line, "kind": ["note"]})


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_a_mistake_is_refused_when_it_is_appended_and_found_when_it_is_read(kind: str, run_with_events: Path) -> None:
    before = (run_with_events / "events.jsonl").read_bytes()
    events = lines_of(run_with_events / "events.jsonl")
    try:
        # one of each place: the table was gone through above
        for mistake, fields in list(mistakes(kind))[::5]:
            with pytest.raises(BadInputError, match=f"event {kind}: "):
                append_event(run_with_events, kind, fields)
            assert (run_with_events / "events.jsonl").read_bytes() == before, mistake
            chained(run_with_events / "events.jsonl", [*events, {**stored(kind), **fields}])
            with pytest.raises(StorqualError, match=rf"events.jsonl:{len(events) + 1}: event {kind}: "):
                list(iter_events(run_with_events))
            (run_with_events / "events.jsonl").write_bytes(before)
    finally:
        (run_with_events / "events.jsonl").write_bytes(before)


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"{}",
        b"1e400",
        b"[" * 100_000,
        b'{"kind":"note"}',
        # whoever reads the first key reads another event
        b'{"time":"2026-11-21T10:00:00Z","kind":"note","kind":"closed","text":"x","previous":"PREVIOUS"}',
        b'{"kind":"note","time":"2026-11-21T10:00:00Z","text":"x","previous":"PREVIOUS"}',
        b'{"time":"2026-11-21T10:00:00Z", "kind":"note","text":"x","previous":"PREVIOUS"}',
    ],
    ids=["list", "empty", "infinite", "deep", "bare", "a key twice", "another order", "another spacing"],
)
def test_a_line_that_is_no_event_of_ours_is_found_with_its_number(line: bytes, tmp_path: Path) -> None:
    path = make_run(tmp_path, points=POINTS[:1], adapters=("sym",), finished=False)
    *_, last = iter_events(path)
    data = (path / "events.jsonl").read_bytes() + line.replace(b"PREVIOUS", last.sha256.encode()) + b"\n"
    (path / "events.jsonl").write_bytes(data)
    with pytest.raises(StorqualError, match=rf"events.jsonl:{last.number + 1}: "):
        list(iter_events(path))


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_behind_the_end_only_what_is_judged_published_noted_and_witnessed_is_written(
    kind: str, tmp_path: Path
) -> None:
    path = make_run(tmp_path, points=POINTS[:1], adapters=("sym",))
    fields = example(kind)
    fields.pop("file_sha256", None)
    taken = EVENT_KINDS[kind].stage in (Stage.ANY, Stage.OPENING)
    if taken:
        append_event(path, kind, fields)
    else:
        with pytest.raises(BadInputError, match=f"event {kind}: "):
            append_event(path, kind, fields)
    assert any(event.kind == kind and event.fields["time"] > "2026-11-22" for event in iter_events(path)) is taken
