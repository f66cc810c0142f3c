# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from typing import Any

import pytest

from storqual.kinds.kind import PlannedTurn
from storqual.kinds.trial_checks import LEAK_BYTES, trial_checks
from storqual.kinds.trial_shown import matrix_of, planned_faults, repeat_command, show_trials

ARMS = ("baseline", "candidate")
EXPECT = {"recovery": 60, "stall": 60, "errors": "none"}
LATER = {"baseline_later": True, "load": {"sweep": {"rows": [], "commands": []}}, "expect": EXPECT}


def planned(count: int, arms: tuple[str, ...] = ARMS) -> list[PlannedTurn]:
    return [
        PlannedTurn(
            run="r",
            bench="b",
            session="s01",
            kind="trial",
            id=f"bus_reset.sym.1.{number}.{arm}",
            adapter="sym",
            arm=arm,
            point="bus_reset",
            n=0,
            drive="0x5",
            request={"pair": f"bus_reset.sym.1.{number}", "fault": "bus_reset"},
        )
        for number in range(count)
        for arm in arms
    ]


def made(trials: list[PlannedTurn], **outcomes: list[str]) -> list[dict[str, Any]]:
    """Records with the outcomes of each arm; what is left unsaid passed."""
    left = {arm: iter(ends) for arm, ends in outcomes.items()}
    records = []
    for trial in trials:
        outcome = next(left.get(trial.arm, iter(())), "passed")
        reasons = [] if outcome == "passed" else [f"because of {trial.id}"]
        record = {**trial.head(), **trial.request, "outcome": outcome, "reasons": reasons}
        records.append({**record, "violations": [], "recovery_s": 2.0})
    return records


def only(trials: list[PlannedTurn], records: list[dict[str, Any]], *, until_failure: bool = False) -> tuple[str, str]:
    (check,) = trial_checks(trials, records, {"plan": {"until_failure": until_failure}})
    identity = tuple(check[name] for name in ("id", "bench", "adapter", "source"))
    assert identity == ("trials.bus_reset", "b", "sym", "trials")
    return check["outcome"], check["reason"]


def test_each_kind_of_damage_is_told_once() -> None:
    trials = planned(1)
    records = made(trials, candidate=["failed"])
    for record in records:
        if record["outcome"] == "failed":
            record["reasons"] = ["lost: a", "lost: b", "misdirected: c", "recovery took too long", "lost: d"]
    trial = next(record["id"] for record in records if record["outcome"] == "failed")
    assert only(trials, records) == ("FAIL", f"data: lost: a; misdirected: c (trial {trial})")


REFUSED = "the bench's program ended refused: drive 0x5: it holds data of an unknown kind in its first 8 MiB"


def stamps_after(*turns: tuple[str, str]) -> list[str]:
    """The outcomes of checks of stamps after trials on one drive: arm and outcome of each, in their order."""
    trials = planned(len(turns))
    records = [
        {
            **next(trial for trial in trials if trial.arm == arm).head(),
            "id": f"{at}.{arm}",
            "start": f"{at}",
            "fault": "bus_reset",
            "pair": f"{at}",
            "violations": [],
            "outcome": outcome,
            "reasons": [REFUSED] if outcome == "void" else [],
            "recovery_s": 2.0,
        }
        for at, (arm, outcome) in enumerate(turns)
    ]
    return [check["outcome"] for check in trial_checks(trials, records, {"plan": {}}) if check["id"] == "stamps"]


def test_a_drive_that_only_the_candidate_is_refused_shows_that_it_reads_or_wrote_other_data() -> None:
    assert stamps_after(("baseline", "passed"), ("candidate", "void"), ("baseline", "passed")) == ["FAIL"]
    assert stamps_after(("candidate", "passed"), ("candidate", "void")) == ["FAIL"]


def test_a_refusal_that_another_may_have_caused_accuses_nobody() -> None:
    assert stamps_after(("candidate", "void"), ("baseline", "passed")) == []
    assert stamps_after(("baseline", "passed"), ("candidate", "void"), ("baseline", "void")) == []
    assert stamps_after(("candidate", "passed"), ("baseline", "void")) == []


def test_no_failure_passes_with_its_count_and_its_bound() -> None:
    trials = planned(60)
    assert only(trials, made(trials)) == ("PASS", "0 of 60 failed: less than 4.9 % at 95 %")


def test_a_candidate_that_alone_fails_is_a_regression_once_it_is_shown() -> None:
    trials = planned(10)
    outcome, reason = only(trials, made(trials, candidate=["failed"] * 8))
    assert outcome == "FAIL"
    assert reason.startswith("regression: 8 of 10 failed")
    assert "because of bus_reset.sym.1.0.candidate" in reason
    assert only(trials, made(trials, candidate=["failed"]))[0] == "INCONCLUSIVE"


def test_a_failure_that_the_baseline_shows_as_often_is_known() -> None:
    trials = planned(10)
    outcome, reason = only(trials, made(trials, candidate=["failed"] * 8, baseline=["failed"] * 7))
    assert outcome == "PASS"
    assert reason.startswith("known, the baseline fails too")


def test_failures_of_the_baseline_alone_are_no_failure_of_the_candidate() -> None:
    trials = planned(10)
    assert only(trials, made(trials, baseline=["failed"] * 9))[0] == "PASS"


def test_damaged_data_fails_at_the_first_occurrence_even_when_the_baseline_damages_too() -> None:
    trials = planned(10)
    records = made(trials, candidate=["failed"], baseline=["failed"])
    for word in ("lost", "stale", "corrupted", "dropped flush"):
        for record in records[:2]:
            record["reasons"] = [f"{word}: 1 sectors at 4096"]
        outcome, reason = only(trials, records)
        assert (outcome, reason.split(":")[0]) == ("FAIL", "data")


def test_without_a_baseline_any_failure_fails() -> None:
    trials = planned(10, ("candidate",))
    assert only(trials, made(trials, candidate=["failed"]))[0] == "FAIL"


def test_power_cuts_are_told_with_how_many_images_were_looked_at() -> None:
    trials = planned(2)
    records = made(trials)
    for record in records:
        record["power_cuts"] = {"points": 300, "images": 3000, "missing": 0}
    outcome, reason = only(trials, records)
    assert (outcome, reason.partition("; ")[2]) == ("PASS", "6000 images of 600 power cuts")


def test_void_trials_prove_nothing_and_are_counted() -> None:
    trials = planned(2)
    outcome, reason = only(trials, made(trials, candidate=["void", "void"]))
    assert outcome == "ERROR"
    assert reason.startswith("no trial proved its fault; 2 void: because of")
    outcome, reason = only(trials, made(trials, candidate=["void"]))
    assert outcome == "PASS"
    assert "0 of 1 failed" in reason
    assert "1 void" in reason


def test_trials_that_were_not_made_leave_it_undecided_but_where_a_failure_ends_them() -> None:
    trials = planned(3, ("candidate",))
    records = made(trials, candidate=["passed", "failed"])[:2]
    assert only(trials, records)[0] == "INCONCLUSIVE"
    assert only(trials, records, until_failure=True)[0] == "FAIL"
    # whoever left the failure out has not ended at it
    assert only(trials, records[:1], until_failure=True)[0] == "INCONCLUSIVE"


def test_the_matrix_counts_valid_trials_and_has_their_recovery() -> None:
    trials = planned(4)
    records = made(trials, candidate=["failed", "void"])
    for number, record in enumerate(records):
        record["recovery_s"] = None if record["outcome"] == "failed" else float(number)
    baseline, candidate = matrix_of(records)
    assert (baseline.trials, baseline.failures, baseline.recovery_p50, baseline.recovery_worst) == (4, 0, 3.0, 6.0)
    assert (candidate.trials, candidate.failures, candidate.void) == (3, 1, 1)
    assert (candidate.recovery_p50, candidate.recovery_worst) == (6.0, 7.0)
    assert 0.8 < candidate.bound < 0.9


def test_what_the_baseline_was_spared_is_planned_and_shown_as_such() -> None:
    trials = [replace(turn, request={**turn.request, **LATER}) for turn in planned(1) if turn.arm == "candidate"]
    document = {"plan": {}}
    shown = show_trials(trials, made(trials), document).parts[-1]
    tried, not_tried = planned_faults(trials, document)
    assert tried.table is not None
    assert [row[0] for row in tried.table.rows] == ["bus reset"]
    assert "bus_reset with the baseline" in shown.sentences[0]
    assert "bus_reset with the baseline" in not_tried.sentences[0]


def test_the_command_to_repeat_names_all_that_the_plan_was_drawn_from() -> None:
    run = {
        "inventories": ["my lab"],
        "arms": {"baseline": {"drop": "old"}, "candidate": {"drop": "new"}},
        "suite": {"name": "robustness", "profile": "quick"},
        "inputs": {
            "suite": {"source": "suites/robustness.suite.yml"},
            "baseline": {"source": "my lab/drops/old.yml"},
            "candidate": {"source": "new.yml"},
        },
        "benches": {"b1": {}},
        "plan": {"seed": 7},
    }
    command = repeat_command(run, "b1", ["sym", "sym"], "bus_reset.sym.1.1.candidate.r3")
    assert command == (
        "storqual qualify -i 'my lab' --baseline 'my lab/drops/old.yml' --candidate new.yml "
        "--suite suites/robustness.suite.yml --profile quick --adapters sym --limit b1 --seed 7 "
        "--trial bus_reset.sym.1.1.candidate --repeat 20"
    )


SHORT = {"asked": 252, "given": 8}
RIGHT, WRONG = {**SHORT, "received": 8}, {**SHORT, "received": 252}


def records(arm: str, growths: list[int], residual: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [
        {
            "bench": "b",
            "fault": "device_reset",
            "adapter": "sym",
            "arm": arm,
            "drive": "0x5",
            "outcome": "passed",
            "reasons": [],
            "slab_bytes": {"before": 1 << 24, "after": (1 << 24) + growth},
            "residual": {"before": residual, "after": residual} if residual else {},
        }
        for growth in growths
    ]


def memory(*made_records: dict[str, Any]) -> tuple[str, str] | None:
    by_id = {check["id"]: check for check in trial_checks((), made_records, {"plan": {}})}
    check = by_id.get("memory.device_reset")
    return check and (check["outcome"], check["reason"])


def residual(*made_records: dict[str, Any]) -> tuple[str, str] | None:
    by_id = {check["id"]: check for check in trial_checks((), made_records, {"plan": {}})}
    check = by_id.get("residual")
    return check and (check["outcome"], check["reason"])


GROWN = [LEAK_BYTES + 1] * 5


def test_memory_that_grows_in_every_one_of_five_trials_is_a_leak() -> None:
    assert memory(*records("candidate", GROWN), *records("baseline", [0] * 5)) == (
        "FAIL",
        "memory leak: after 5 of 5 trials slabs had grown by more than 256 KiB, by 256 KiB in the median",
    )
    assert memory(*records("candidate", GROWN)) is not None


@pytest.mark.parametrize(
    "growths", [[LEAK_BYTES] * 5, [*GROWN[:4], 0], [-LEAK_BYTES * 9] * 5], ids=["at the limit", "once not", "less"]
)
def test_memory_that_need_not_grow_in_most_trials_is_none(growths: list[int]) -> None:
    outcome = memory(*records("candidate", growths))
    assert outcome is not None
    assert outcome[0] == "PASS"


def test_a_single_trial_without_growth_among_many_hides_no_leak() -> None:
    outcome = memory(*records("candidate", [*GROWN, *GROWN, 0]))
    assert outcome is not None
    assert outcome[0] == "FAIL"


def test_memory_that_grows_with_the_baseline_too_is_known() -> None:
    outcome = memory(*records("candidate", GROWN), *records("baseline", GROWN))
    assert outcome is not None
    assert (outcome[0], outcome[1].partition(",")[0]) == ("PASS", "known")


def test_four_trials_say_nothing_of_memory_and_void_ones_do_not_count() -> None:
    trials_made = records("candidate", GROWN)
    assert memory(*trials_made[:4]) is None
    trials_made[0]["outcome"] = "void"
    assert memory(*trials_made) is None


def test_a_driver_that_tells_more_than_was_read_has_wrong_residuals() -> None:
    outcome = residual(*records("candidate", [0], WRONG), *records("baseline", [0], RIGHT))
    assert outcome is not None
    assert outcome[0] == "FAIL"
    assert outcome[1].startswith("wrong residual: after 2 of 2 commands the driver told other lengths than")
    assert outcome[1].endswith("252 bytes were asked for, the drive gave 8, the driver told 252")
    assert residual(*records("candidate", [0], WRONG)) == outcome


def test_a_driver_that_tells_what_was_read_passes_with_its_count() -> None:
    assert residual(*records("candidate", [0, 0], RIGHT), *records("baseline", [0], WRONG)) == (
        "PASS",
        "4 of 4 commands that ended short were told with what they read",
    )


def test_residuals_that_are_wrong_in_both_arms_are_known() -> None:
    outcome = residual(*records("candidate", [0], WRONG), *records("baseline", [0], WRONG))
    assert outcome is not None
    assert (outcome[0], outcome[1].partition(",")[0]) == ("PASS", "known")


def test_what_the_baseline_alone_shows_accuses_nobody() -> None:
    assert residual(*records("baseline", [0], WRONG)) is None
    assert memory(*records("baseline", GROWN)) is None


def test_a_command_that_was_not_answered_and_a_drive_without_them_say_nothing_of_residuals() -> None:
    assert residual(*records("candidate", [0], {"problem": "no such device"})) is None
    assert residual(*records("candidate", [0])) is None


def test_benches_are_judged_one_by_one() -> None:
    here = planned(10)
    there = [replace(turn, bench="c", id=f"{turn.id}.c") for turn in here]
    trials_made = [*made(here, candidate=["failed"] * 8), *made(there)]
    checks = list(trial_checks([*here, *there], trials_made, {"plan": {}}))
    assert [(check["bench"], check["outcome"]) for check in checks] == [("b", "FAIL"), ("c", "PASS")]


def test_the_first_screen_counts_failures_among_proven_trials() -> None:
    trials = planned(2)
    trials_made = made(trials, candidate=["failed", "void"])
    for record in trials_made:
        record["timeline"] = [[1.0, "fault", "begin"]]
    document = {"plan": {"seed": 1, "left_out": ["host_reset on sym: no way"]}, "inventories": [], "arms": {}}
    document |= {"suite": {"profile": "quick"}, "inputs": {"suite": {"source": "s"}}, "benches": {"b": {}}}
    shown = show_trials(trials, trials_made, document)
    assert [(name, value) for name, value, _ in shown.figures] == [
        ("Failed trials", "1 of 3"),
        ("Faults", "1"),
        ("Worst recovery", "2.0 s"),
    ]
    assert "(fault not proven): 1" in shown.figures[0][2]
    matrix, failed, left_out = shown.parts
    assert (len(matrix.table.rows) if matrix.table else 0, len(failed.folded)) == (2, 2)
    assert "--trial bus_reset.sym.1.0.candidate" in failed.folded[0].command
    assert left_out.sentences == ("host_reset on sym: no way",)
