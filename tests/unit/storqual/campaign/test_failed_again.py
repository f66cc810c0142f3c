# SPDX-License-Identifier: Apache-2.0
"""A trial that fails in the candidate alone is made again until its number decides; nothing else is."""

from dataclasses import replace
from pathlib import Path

import pytest

from storqual.campaign import Provision, RunBatch, Stop
from storqual.campaign.next_step import next_command
from storqual.run import append_event, read_batch, read_run
from storqual.run.turns import turns_of
from tests.support.turn_records import REQUEST, batch_of, keep_turn, plan_campaign, record_by_hand, turns_planned

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("records_by_hand")]

SLOW = {"outcome": "failed", "reasons": ["slow recovery: it took 80.0 s, 60 s are allowed"]}
HUNG = {"session": "s02", "block": "s02-b001", "ended_by": "power", "seconds": 60.0, "text": "silent"}
LOST = {"outcome": "failed", "reasons": ["lost: 2 sectors"]}


def planned(folder: Path, candidate: str = "stable") -> Path:
    return plan_campaign(replace(REQUEST, adapters=("vscsi",), candidate=candidate), folder)


def go_on(path: Path, failing: tuple[str, ...], fields: dict[str, object], fault: str = "device_reset") -> list[str]:
    """Make what is next, as a bench would, until nothing is; those arms of that fault fail. The sessions begun."""
    sessions = []
    while not isinstance(step := next_command(path, "vbench"), Stop):
        if isinstance(step, Provision):
            told = {"bench": "vbench", "session": step.session.id, "arm": step.session.arm, "boot_id": "b"}
            append_event(path, "session_started", {**told, "kernel": "6.1"})
            sessions.append(f"{step.session.id} {step.session.arm}")
            continue
        assert isinstance(step, RunBatch)
        name = read_batch(path, step.batch)["turns"][0]["id"]
        number = [turn.id for turn in turns_planned(path)].index(name)
        fails = name.startswith(fault) and name.rpartition(".")[2] in failing
        keep_turn(path, record_by_hand(path, number, **(fields if fails else {})))
    return sessions


def outcome(path: Path, fault: str = "device_reset") -> tuple[str, str]:
    checks = {
        (check.bench, check.fields["id"], check.fields["adapter"]): check
        for check in turns_of(read_run(path)).checks()
    }
    fields = checks["vbench", f"trials.{fault}", "vscsi"].fields
    return fields["outcome"], fields["reason"]


def test_what_fails_in_the_candidate_alone_is_made_again_and_fails(tmp_path: Path) -> None:
    path = planned(tmp_path)
    assert go_on(path, ("candidate",), SLOW) == ["s01 baseline", "s02 candidate", "s03 baseline", "s04 candidate"]
    found, reason = outcome(path)
    assert found == "FAIL"
    assert reason.startswith("regression: 5 of 5 failed")
    added = [turn for turn in turns_planned(path) if turn.session in ("s03", "s04")]
    assert {turn.point for turn in added} == {"device_reset"}
    # the same load with the same faults, as other turns
    first = batch_of(path, "device_reset.vbench.vscsi.2.1.candidate")["turns"][0]["request"]
    again = batch_of(path, "device_reset.vbench.vscsi.2.5.candidate")["turns"][0]["request"]
    assert again == {**first, "pair": "device_reset.vbench.vscsi.2.5"}


def test_sessions_that_are_added_boot_anew_where_the_arms_have_kernels_of_their_own(tmp_path: Path) -> None:
    """The first of a plan finds its boot; two that share one would be one session, and the run not valid."""
    path = planned(tmp_path, candidate="backport")
    go_on(path, ("candidate",), SLOW)
    boots = [(session.boot, session.change) for session in read_run(path).sessions]
    assert boots[1:] == [("always", "reboot")] * 3


@pytest.mark.parametrize(
    ("failing", "fields", "expected"),
    [
        ((), SLOW, "PASS"),
        (("baseline", "candidate"), SLOW, "PASS"),
        (("baseline",), SLOW, "PASS"),
        (("candidate",), LOST, "FAIL"),
    ],
    ids=["nothing failed", "both failed", "the baseline failed", "data were lost"],
)
def test_what_is_decided_is_not_made_again(
    tmp_path: Path, failing: tuple[str, ...], fields: dict[str, object], expected: str
) -> None:
    path = planned(tmp_path)
    assert go_on(path, failing, fields) == ["s01 baseline", "s02 candidate"]
    assert outcome(path)[0] == expected


def test_it_is_made_again_once(tmp_path: Path) -> None:
    """Void trials decide nothing, and are no reason for more."""
    path = planned(tmp_path)
    while (name := next_turn(path)) is not None:
        number = [turn.id for turn in turns_planned(path)].index(name)
        fails = name == "device_reset.vbench.vscsi.2.1.candidate"
        void = name.startswith("device_reset") and not name.endswith(".1.candidate")
        fields = SLOW if fails else {"outcome": "void", "reasons": ["its fault was not seen"]} if void else {}
        keep_turn(path, record_by_hand(path, number, **fields))
    assert len({session.id for session in read_run(path).sessions}) == 4
    assert outcome(path)[0] == "INCONCLUSIVE"


def arms_of(path: Path, fault: str) -> list[str]:
    return sorted(turn.arm for turn in turns_planned(path) if turn.point == fault)


@pytest.mark.parametrize(
    ("failing", "fields", "expected"),
    [
        (("candidate",), SLOW, "FAIL"),
        (("baseline", "candidate"), SLOW, "PASS"),
        (("candidate",), LOST, "FAIL"),
        ((), {}, "PASS"),
    ],
    ids=["the candidate alone failed", "both failed", "data were lost", "nothing failed"],
)
def test_what_the_baseline_was_spared_it_makes_where_that_decides(
    tmp_path: Path, failing: tuple[str, ...], fields: dict[str, object], expected: str
) -> None:
    path = planned(tmp_path)
    assert arms_of(path, "integrity") == ["candidate"]
    go_on(path, failing, fields, "integrity")
    compared = 5 if fields == SLOW else 0
    assert arms_of(path, "integrity") == ["baseline"] * compared + ["candidate"] * (compared or 1)
    assert outcome(path, "integrity")[0] == expected


@pytest.mark.parametrize(("arm", "spared"), [("candidate", 0), ("baseline", 1)])
def test_after_a_hang_of_the_candidate_the_baseline_makes_as_much(tmp_path: Path, arm: str, spared: int) -> None:
    path = planned(tmp_path)
    append_event(path, "bench_hung", {**HUNG, "bench": "vbench", "arm": arm})
    assert len(go_on(path, (), {})) == 3 - spared
    turns = [turn.arm for turn in turns_planned(path)]
    assert turns.count("candidate") - turns.count("baseline") == spared


def next_turn(path: Path) -> str | None:
    while isinstance(step := next_command(path, "vbench"), Provision):
        told = {"bench": "vbench", "session": step.session.id, "arm": step.session.arm, "boot_id": "b"}
        append_event(path, "session_started", {**told, "kernel": "6.1"})
    return None if isinstance(step, Stop) else str(read_batch(path, step.batch)["turns"][0]["id"])
