# SPDX-License-Identifier: Apache-2.0
"""What a bench does next: the plan in its order, and the same again after any interruption."""

import json
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.campaign import Further, Provision, RunBatch, Stop
from storqual.campaign.further import rest_of
from storqual.campaign.next_step import next_command
from storqual.cli.playbook.record import bench_look, parse_fields, record, session_failure
from storqual.plan.make import check_resume
from storqual.run import append_event, collect, coverage, finish_run, read_batch, read_run
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import KERNEL, OTHER, SMALL_SUITE
from tests.support.simulated_campaign import Bench, KilledError, drive
from tests.support.simulated_campaign import plan as plan_run_of

pytestmark = pytest.mark.slow

SUITE = SMALL_SUITE.replace("cells: 8", "cells: 4, block: 9s")
HUNG = {"ended_by": "its watchdog", "seconds": 9.0}


def plan(folder: Path, **options: Any) -> Path:
    """A planned run of one bench, b1, whose arms differ by a kernel."""
    return plan_run_of(folder, **{"baseline": KERNEL, "candidate": OTHER, "suite": SUITE, **options})


def launched(path: Path) -> Counter[tuple[str, str, str, int]]:
    return Counter((s.adapter, s.point, s.arm, s.n) for s in read_run(path).samples)


def wanted(path: Path) -> Counter[tuple[str, str, str, int]]:
    run = read_run(path)
    blocks = [read_batch(path, block) for session in run.plan.sessions for block in session.batches]
    return Counter((x["adapter"], x["point"], x["arm"], x["n"]) for block in blocks for x in block["turns"])


def test_a_campaign_goes_through_its_sessions_and_stops(tmp_path: Path) -> None:
    path, bench = plan(tmp_path), Bench()
    assert drive(path, bench) == Stop("everything that was planned has been measured", complete=True)
    assert launched(path) == wanted(path)
    assert bench.boot == 4
    run = finish_run(path)
    assert coverage(run).holes == ()
    assert [entry["boot_id"] for entry in run.document["provisioned"]] == ["boot-1", "boot-2", "boot-3", "boot-4"]


def test_asking_changes_nothing(tmp_path: Path) -> None:
    path = plan(tmp_path)
    steps = [next_command(path, "b1") for _ in range(2)]
    assert steps[0] == steps[1]
    assert isinstance(steps[0], Provision)
    assert (steps[0].number, steps[0].of, steps[0].spec["boot"]) == (1, 4, "if_needed")
    assert steps[0].spec["driver"] == KERNEL["driver"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6))
def test_interrupted_anywhere_no_sample_is_lost_or_repeated(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path, bench, chance = plan(tmp_path_factory.mktemp("run")), Bench(), random.Random(seed)
    stop: Stop | None = None
    while stop is None:
        try:
            stop = drive(path, bench, lambda share: chance.random() < share, chance)
        except KilledError:
            check_resume(path)
    if stop.complete:
        assert launched(path) == wanted(path)
    else:
        # the bench was reset under one session again and again
        assert "was lost 3 times" in stop.reason
        assert set(launched(path)) <= set(wanted(path))
    assert max(launched(path).values(), default=1) == 1
    assert all(len(boots) == 1 for boots in bench.ran_in.values())


def test_a_started_block_is_given_again(tmp_path: Path) -> None:
    path = plan(tmp_path)
    record(path, "session_started", {"bench": "b1", "session": "s01", "boot_id": "x"})
    first = next_command(path, "b1")
    assert first == RunBatch("s01", "s01-b01", resume=False, boot_id="x", number=1, of=4)
    append_event(path, "block_started", {"bench": "b1", "session": "s01", "block": "s01-b01"})
    assert next_command(path, "b1", boot_id="other") == replace(first, resume=True)


def test_a_boot_between_two_blocks_is_a_new_session(tmp_path: Path) -> None:
    path, bench = plan(tmp_path), Bench()
    record(path, "session_started", {"bench": "b1", "session": "s01", "boot_id": bench.boot_id})
    append_event(path, "block_started", {"bench": "b1", "session": "s01", "block": "s01-b01"})
    bench.run(read_batch(path, "s01-b01"))
    collect(path, "s01-b01", "".join(bench.spools["s01-b01"]))
    bench.reset()
    step = next_command(path, "b1", boot_id=bench.boot_id)
    assert isinstance(step, Provision)
    assert (step.session.id, step.session.boot) == ("s01.2", "if_needed")
    rest = read_batch(path, step.session.batches[0])
    assert [x["point"] for x in rest["turns"]] == [x["point"] for x in read_batch(path, "s01-b02")["turns"]]
    assert (rest["session"], rest["block"]) == ("s01.2", "s01.2-b01")


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    json.loads(Path(__file__).with_name("reasons.json").read_text(encoding="utf-8")),
    ids=["provision", "stopped", "refused"],
)
def test_what_cannot_go_on_stops_until_somebody_resumes(
    tmp_path: Path, kind: str, fields: dict[str, str], reason: str
) -> None:
    path = plan(tmp_path)
    if kind == "block_finished":
        record(path, "session_started", {"bench": "b1", "session": "s01", "boot_id": "x"})
        append_event(path, "block_started", {"bench": "b1", "session": "s01", "block": "s01-b01"})
    append_event(
        path, kind, {"bench": "b1", **({"samples": 0, "sha256": "0" * 64} if "block" in fields else {}), **fields}
    )
    stop = next_command(path, "b1")
    assert isinstance(stop, Stop)
    assert not stop.complete
    assert reason in stop.reason
    check_resume(path)
    again = next_command(path, "b1")
    assert isinstance(again, Provision)
    assert again.session.id == ("s01" if kind == "provision_failed" else "s01.2")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("inputs/gate.yml", "required", "informative"),
        ("run.json", "B1SYM0000", "B1SYM0009"),
        ("blocks/s01-b01.json", '"serial": "', '"serial": "X'),
        ("blocks/s01.2-b01.json", '"serial": "', '"serial": "X'),
        ("blocks/s01.2-b01.json", '"rw": "', '"rw": "trim'),
        ("blocks/s01.2-b01.json", '"drives": [', '"drives": ["/dev/sda", '),
        ("blocks/s01.2-b01.json", "{", "["),
    ],
)
def test_what_is_not_as_it_was_planned_is_not_resumed(tmp_path: Path, name: str, old: str, new: str) -> None:
    path = plan(tmp_path)
    text = (path / name.replace("s01.2", "s01")).read_text(encoding="utf-8")
    assert old in text
    (path / name).write_text(text, encoding="utf-8")
    check_resume(path)
    (path / name).write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(BadInputError, match=re.escape(name)):
        check_resume(path)


def test_a_session_beyond_the_plan_is_recorded_and_run(tmp_path: Path) -> None:
    path, bench = plan(tmp_path), Bench()

    def once_more(run: Any, _bench: str) -> Further | Stop:
        if any(event.kind == "session_planned" for event in run.events):
            return Stop("enough", complete=True)
        first = run.plan.sessions[0]
        session = replace(first, id="x01", boot="always", batches=("x01-b01",))
        block = rest_of(read_batch(path, first.batches[0]), (), name="x01-b01", session="x01")
        assert block is not None
        return Further("one point is undecided", (block,), (session,))

    drive(path, bench)
    append_event(path, "resumed", {})
    step = next_command(path, "b1", beyond=once_more)
    assert isinstance(step, Provision)
    assert step.session.id == "x01"
    drive(path, bench)
    assert {s.session for s in read_run(path).samples} == {"s01", "s02", "s03", "s04", "x01"}


def test_a_bench_of_another_run_is_refused(tmp_path: Path) -> None:
    path = plan(tmp_path)
    for ask in (lambda: next_command(path, "b2"), lambda: record(path, "restored", {"bench": "b2"})):
        with pytest.raises(BadInputError, match="this run has no bench 'b2'; its benches: b1"):
            ask()


@pytest.mark.parametrize(
    ("failed", "booted", "panic", "kinds"),
    [
        ({"msg": "x"}, {}, "", ["provision_failed"]),
        ({"msg": "x", "ended_by": "a bench that says no seconds"}, {}, "", ["provision_failed"]),
        ({"msg": "x", **HUNG}, {}, "", ["bench_hung", "provision_failed"]),
        ({"msg": "x", "evidence": {}}, HUNG, "", ["bench_hung", "provision_failed"]),
        # of the boot of a session before
        ({"msg": "x"}, HUNG, "", ["provision_failed"]),
        ({"reason": "x"}, {}, "Oops", ["provision_failed", "kernel_panic"]),
    ],
)
def test_a_session_that_failed_is_recorded_with_what_its_bench_hung_in_and_its_last_words(
    tmp_path: Path, failed: dict[str, Any], booted: dict[str, Any], panic: str, kinds: list[str]
) -> None:
    path, words = plan(tmp_path), {"panic": panic, "sources": {"console": True}}
    asked = {"session": "s01", "arm": "baseline", "task": "t", "failed": failed, "booted": booted}
    for kind, fields in session_failure({**asked, "last_words": words}):
        record(path, kind, {"bench": "b1", **fields})
    events = {event.kind: event.fields for event in read_run(path).events if event.fields.get("session")}
    assert list(events) == kinds
    assert events["provision_failed"].items() >= {"reason": "x", "task": "t", "arm": "baseline"}.items()


@pytest.mark.parametrize("more", [{}, {"conditions": []}, {"conditions": ["a", "b"], "stamped": ["0x5"]}])
def test_a_look_at_a_bench_is_its_state_and_a_note_of_what_is_not_well(tmp_path: Path, more: dict[str, Any]) -> None:
    path, read = plan(tmp_path), {"environment": {"k": {}}, "smart": {}, "logs": {"0x5": {}}, "facts": {"disks": {}}}
    for kind, fields in bench_look({"when": "before", "look": {"changed": False, **read, **more}}):
        record(path, kind, {"bench": "b1", **fields})
    *notes, state = read_run(path).events[1:]
    assert [note.text("text") for note in notes] == (["a; b"] if more.get("conditions") else [])
    assert state.fields.items() >= {"when": "before", "facts": {"k": {}}, "disks": {}, "logs": {"0x5": {}}}.items()
    assert state.fields.get("stamped") == more.get("stamped")


def test_fields_are_words() -> None:
    assert parse_fields(["a=1", "b=c=d"]) == {"a": "1", "b": "c=d"}
    with pytest.raises(BadInputError, match="found 'a', expected name=value"):
        parse_fields(["a", "b=1"])


def test_a_point_by_which_the_bench_hung_is_not_tried_again_in_its_session_and_the_others_are(tmp_path: Path) -> None:
    path, bench = plan(tmp_path), Bench()
    step = next_command(path, "b1", boot_id=bench.boot_id)
    assert isinstance(step, Provision)
    append_event(path, "session_started", {"bench": "b1", "session": step.session.id, "boot_id": bench.boot_id})
    step = next_command(path, "b1", boot_id=bench.boot_id)
    assert isinstance(step, RunBatch)
    batch = read_batch(path, step.batch)
    append_event(path, "block_started", {"bench": "b1", "session": step.session, "block": step.batch})
    hung = batch["turns"][0]
    where = {"bench": "b1", "session": step.session, "arm": hung["arm"], "block": step.batch, "turn": hung["id"]}
    append_event(
        path, "bench_hung", {**where, "ended_by": "watchdog", "seconds": 90.0, "text": "it stopped answering"}
    )
    collect(path, step.batch, "", lost="the bench hung")
    bench.reset()
    again = next_command(path, "b1", boot_id=bench.boot_id)
    assert isinstance(again, Provision)
    names = ("adapter", "point", "arm")
    left = {tuple(turn[name] for name in names) for one in again.batches for turn in one["turns"]}
    session = next(one for one in read_run(path).plan.sessions if one.id == step.session)
    whole = {tuple(turn[n] for n in names) for b in session.batches for turn in read_batch(path, b)["turns"]}
    assert left == whole - {tuple(hung[name] for name in names)}


def test_a_bench_that_hangs_before_every_batch_is_not_provisioned_for_ever(tmp_path: Path) -> None:
    path, bench, provisioned = plan(tmp_path), Bench(), 0
    while isinstance(step := next_command(path, "b1", boot_id=bench.boot_id), Provision):
        where, provisioned = {"bench": "b1", "session": step.session.id}, provisioned + 1
        append_event(path, "session_started", {**where, "boot_id": bench.boot_id})
        bench.reset()
        hung = {"arm": step.session.arm, "ended_by": "watchdog", "seconds": 90.0, "text": "it does not answer"}
        append_event(path, "bench_hung", {**where, **hung})
        assert provisioned < 10
    assert isinstance(step, Stop)
    assert "was lost 3 times" in step.reason
