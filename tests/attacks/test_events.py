# SPDX-License-Identifier: Apache-2.0
"""Events that somebody appends behind the end of a run, or puts into the middle of its chain, decide nothing.

The chain is kept each time: by hand, as whoever can write to a run can do, and by `storqual record`. The runs ended
PASS, FAIL, INCONCLUSIVE, and ERROR of every kind that an event could undo.
"""

import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual.cli.playbook.record import record
from storqual.judge.verdict import judge_run, verdict_of
from storqual.run import EVENT_KINDS, append_event, is_signed, iter_events, read_run
from storqual.run.closing import close_run, collected
from storqual.run.event_kinds import Stage
from storqual.run.evidence import record_published
from storqual.signoff.findings import published_findings
from storqual.signoff.verify import verify_run
from storqual.witness import check_witness
from storqual.witness.milestones import milestones_of
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.attacks.finished_run import copy_of, put
from tests.support.event_examples import example
from tests.support.judged_run import suite_with
from tests.support.make_run import make_run
from tests.support.sealed_run import chained, lines_of
from tests.support.signing import make_person, sign, write_keys
from tests.support.synthetic_shape import POINTS, drive_id

pytestmark = pytest.mark.slow

HERE = {"bench": "vbench"}
DRAWN = 3
"""Places in the middle of a chain that are drawn for each event."""
PASSING = ("PASS", "MARGINAL")
OUTSIDE = {"*": "0x5000c500ffff0001"}
CHECK = {"id": "cabling", "source": "robot", "reason": "a drive is at another port"}
PLANNED = {"kind": "checks_planned", "source": "pytest", "checks": {"test_own.py::test_it": 1}}
FAILED = {**HERE, "kind": "failed", "message": "the bench was reset"}
SMART = ({"defects": 1}, {"defects": 9})
RUNS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    # name: how it ended, and what was the matter
    "whole": ("PASS", {}),
    "slower": ("FAIL", {"effect": -0.3}),
    "noisy": ("INCONCLUSIVE", {"noise": 0.2}),
    "written outside": ("ERROR", {"sectors_outside": 8}),
    "failed": ("ERROR", {"events": [FAILED]}),
    "not provisioned": ("ERROR", {"events": [{**HERE, "kind": "provision_failed", "session": "s04", "reason": "x"}]}),
    "not restored": ("ERROR", {"events": [{**HERE, "kind": "restore_failed", "reason": "x"}]}),
    "panicked": ("ERROR", {"events": [{**HERE, "kind": "kernel_panic", "text": "Kernel panic - not syncing"}]}),
    "a check is missing": ("ERROR", {"events": [PLANNED]}),
    "a check failed": ("FAIL", {"checks": [{**CHECK, "outcome": "FAIL"}]}),
    "a check was undecided": ("INCONCLUSIVE", {"checks": [{**CHECK, "outcome": "INCONCLUSIVE"}]}),
    "a drive grew defects": ("ERROR", {"smart": SMART}),
}
NOT_PASSING = [name for name, (outcome, _) in RUNS.items() if outcome not in PASSING]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for number, (name, (_, shape)) in enumerate(RUNS.items()):
        folder = tmp_path_factory.mktemp(f"run{number}")
        options = {"noise": 0.003, "points": POINTS[:2], "adapters": ("sym",), "suite": suite_with(CRITERION)}
        path = make_run(folder, **{**options, **shape})
        judge_run(path)
        record_published(path)
        made[name] = path
    return made


CRITERION = "{metric: iops, against: baseline}"


def outcome_of(run: Path) -> str:
    """What the run is judged, or ERROR where it cannot be read."""
    try:
        return str(verdict_of(run)["outcome"])
    except StorqualError:
        return "ERROR"


def released(run: Path) -> bool:
    """Whether the run passes, and what was published of it agrees with it."""
    return outcome_of(run) in PASSING and not list(published_findings(read_run(run)))


def helpful(kind: str, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events of a kind as somebody would write them who wants the run to pass; one is of each kind that fits."""
    names = {"bench": "vbench", "session": "s04", "block": "s04-b01", "drive": drive_id("sym", 0), "adapter": "sym"}
    made = example(kind)
    made |= {name: value for name, value in names.items() if name in made}
    made |= {"file_sha256": events[-1]["previous"]} if "file_sha256" in made else {}
    disk = {"wwn": OUTSIDE["*"], "claimed": True, "system": "", "write_sectors_before": 0, "write_sectors_after": 0}
    if "end" in made:
        made["end"] = {"disks": {"sdc": disk}}
    better = {
        "environment": {"when": "after", "smart": {drive_id("sym", 0): {"defects": 1}}, "logs": {}},
        "checks_planned": {"checks": {"test_other.py::test_it": 1}},
        "judged": {"outcome": "PASS", "exit_code": 0, "path": "verdict.json"},
        "session_planned": {"plan": {**_SESSION, "purpose": "confirm"}},
        "noted": {"files": []},
    }.get(kind, {})
    found = [{"kind": kind, "time": "2026-11-21T12:00:00.000Z", **made, **better}]
    found += [dict(event) for event in events if event["kind"] == kind][-1:]
    if kind == "environment":
        found.append({**found[0], "when": "before", "smart": {drive_id("sym", 0): {"defects": 99}}})
    if kind == "session_planned":
        found.append({**found[0], "session": "s09", "plan": {**_SESSION, "id": "s09"}})
    return found


_SESSION = {
    "id": "s04",
    "bench": "vbench",
    "arm": "baseline",
    "configuration": "baseline",
    "change": "reboot",
    "boot": "always",
    "arms": ["baseline"],
    "blocks": ["s04-b01"],
}


def closed_again(run: Path) -> dict[str, Any]:
    return {"kind": "closed", "time": "2026-11-21T13:00:00.000Z", **collected(run)}


RESUMED = {"kind": "resumed", "time": "2026-11-21T11:30:00.000Z"}


def behind(run: Path, event: Mapping[str, Any]) -> None:
    chained(run / "events.jsonl", [*lines_of(run / "events.jsonl"), event])


def behind_and_opened_again(run: Path, event: Mapping[str, Any]) -> None:
    events = [*lines_of(run / "events.jsonl"), RESUMED, event]
    chained(run / "events.jsonl", [*events, closed_again(run)])


def behind_and_closed_again(run: Path, event: Mapping[str, Any]) -> None:
    chained(run / "events.jsonl", [*lines_of(run / "events.jsonl"), event, closed_again(run)])


def in_the_middle(run: Path, event: Mapping[str, Any], source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    last = next(at for at, one in enumerate(events) if one["kind"] == "closed")
    events.insert(source.randint(1, last), dict(event))
    chained(run / "events.jsonl", events)


WAYS: Sequence[Callable[[Path, Mapping[str, Any]], None]] = (behind, behind_and_opened_again, behind_and_closed_again)


def log_of(run: Path, folder: Path) -> Path:
    """What a witness that keeps lines was told of a run, all in its time."""
    path = folder / f"{run.parent.name}.log"
    path.write_text("".join(f"Nov 22 10:00:00 lab storqual {one.line()}\n" for one in milestones_of(run).values()))
    return path


def test_the_runs_are_what_they_are_taken_for(runs: dict[str, Path]) -> None:
    assert {name: outcome_of(run) for name, run in runs.items()} == {name: one for name, (one, _) in RUNS.items()}
    assert [name for name, run in runs.items() if released(run)] == ["whole"]


@pytest.mark.parametrize("name", NOT_PASSING)
def test_no_event_behind_the_end_or_in_the_middle_makes_a_run_pass(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    """By hand, whatever its kind: made up, or copied from the run; with and without the run being opened again."""
    events = lines_of(runs[name] / "events.jsonl")
    source = random.Random(name)
    passed = []
    for kind in EVENT_KINDS:
        for event in helpful(kind, events):
            ways = [*WAYS, *[lambda run, one: in_the_middle(run, one, source)] * DRAWN]
            for number, way in enumerate(ways):
                run = copy_of(runs[name], tmp_path)
                way(run, event)
                if outcome_of(run) in PASSING:
                    passed.append((kind, number))
    assert passed == []


@pytest.mark.parametrize("name", RUNS)
def test_no_event_that_is_recorded_behind_the_end_changes_how_a_run_ended(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    """By the product's own command: a note is taken, and says nothing."""
    taken = []
    run = copy_of(runs[name], tmp_path)
    put(run / "events.jsonl", (run / "events.jsonl").read_bytes())
    events = lines_of(run / "events.jsonl")
    for kind in EVENT_KINDS:
        for event in helpful(kind, events):
            fields = {key: value for key, value in event.items() if key not in ("kind", "time", "previous")}
            try:
                record(run, kind, fields)
                taken.append(kind)
            except BadInputError:
                continue
    assert set(taken) == {"note"}
    assert outcome_of(run) == RUNS[name][0]


def test_what_counts_is_not_ignored_behind_the_end_of_a_run_that_passed(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    """What a campaign does cannot stand there; what people and commands do afterwards can, and changes nothing."""
    events = lines_of(runs["whole"] / "events.jsonl")
    for kind, one in EVENT_KINDS.items():
        run = copy_of(runs["whole"], tmp_path)
        behind(run, helpful(kind, events)[0])
        assert (outcome_of(run) in PASSING) is (one.stage is Stage.ANY), kind


@pytest.mark.parametrize("kind", ["failed", "provision_failed", "restore_failed", "kernel_panic", "unplugged"])
def test_what_failed_counts_wherever_it_stands(kind: str, runs: dict[str, Path], tmp_path: Path) -> None:
    """It is an error, or told as what the campaign recovered from: what was measured later proves that."""
    events = lines_of(runs["whole"] / "events.jsonl")
    (event, *_) = helpful(kind, events)
    last = next(at for at, one in enumerate(events) if one["kind"] == "closed")
    for at in range(1, last + 1):
        run = copy_of(runs["whole"], tmp_path)
        chained(run / "events.jsonl", [*events[:at], event, *events[at:]])
        verdict = verdict_of(run)
        assert verdict["outcome"] == "ERROR" or any("later" in one for one in verdict["warnings"])


def a_note_claims_the_disk_that_was_written(run: Path) -> None:
    disk = {"wwn": OUTSIDE["*"], "claimed": True, "system": "", "write_sectors_before": 0, "write_sectors_after": 0}
    behind(run, {**RESUMED, "kind": "note", **HERE, "text": "as agreed", "end": {"disks": {"sdc": disk}}})


def a_note_claims_it_and_is_closed_over(run: Path) -> None:
    a_note_claims_the_disk_that_was_written(run)
    behind(run, closed_again(run))


def resumed_is_the_word_for_what_failed(run: Path) -> None:
    behind(run, RESUMED)


def resumed_and_closed_again(run: Path) -> None:
    resumed_is_the_word_for_what_failed(run)
    behind(run, closed_again(run))


def no_checks_were_planned(run: Path) -> None:
    behind_and_opened_again(run, {**PLANNED, "time": RESUMED["time"], "checks": {}})


def other_checks_were_planned(run: Path) -> None:
    behind_and_opened_again(run, {**PLANNED, "time": RESUMED["time"], "checks": {"test_own.py::test_other": 1}})


def a_check_passes_later(run: Path, **more: Any) -> None:
    checks = lines_of(run / "checks.jsonl") if (run / "checks.jsonl").is_file() else []
    late = {"time": "2026-11-21T11:40:00.000Z", **CHECK, "outcome": "PASS", **more}
    own = {**late, "id": "test_own.py::test_it", "source": "pytest"}
    put(run / "checks.jsonl", "".join(json.dumps(one) + "\n" for one in [*checks, late, own]))


def a_check_passes_behind_a_harmless_event(run: Path) -> None:
    a_check_passes_later(run)
    lengthened = {"every_s": 1.0, "first_s": 1.0, "adapter": "sym", "point": "p", **HERE}
    behind_and_closed_again(run, {**RESUMED, "kind": "ramp_lengthened", **lengthened})


def a_check_passes_behind_a_harmless_event_of_a_run_that_was_opened_again(run: Path) -> None:
    a_check_passes_later(run)
    lengthened = {"every_s": 1.0, "first_s": 1.0, "adapter": "sym", "point": "p", **HERE}
    behind_and_opened_again(run, {**RESUMED, "kind": "ramp_lengthened", **lengthened})


def a_check_is_not_required_any_more(run: Path) -> None:
    a_check_passes_later(run, outcome="FAIL", required=False)
    behind_and_opened_again(run, {**RESUMED, "kind": "powered_on", **HERE})


def a_batch_ends_that_was_measured_before(run: Path) -> None:
    events = lines_of(run / "events.jsonl")
    ended = next(event for event in reversed(events) if event["kind"] == "block_finished")
    behind_and_opened_again(run, ended)


def the_outcome_of_trials_that_there_are_not(run: Path) -> None:
    a_check_passes_later(run, source="trials")
    behind_and_opened_again(run, {**RESUMED, "kind": "powered_on", **HERE})


ATTACKS = (
    a_note_claims_the_disk_that_was_written,
    a_note_claims_it_and_is_closed_over,
    resumed_is_the_word_for_what_failed,
    resumed_and_closed_again,
    no_checks_were_planned,
    other_checks_were_planned,
    a_check_passes_behind_a_harmless_event,
    a_check_passes_behind_a_harmless_event_of_a_run_that_was_opened_again,
    a_check_is_not_required_any_more,
    a_batch_ends_that_was_measured_before,
    the_outcome_of_trials_that_there_are_not,
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_on_the_end_of_a_run_makes_none_pass(
    attack: Callable[[Path], None], runs: dict[str, Path], tmp_path: Path
) -> None:
    """Without a witness none passes; with one it is found that the run went on, where it is another end."""
    for name in NOT_PASSING:
        kept = log_of(runs[name], tmp_path)
        run = copy_of(runs[name], tmp_path)
        attack(run)
        assert outcome_of(run) not in PASSING, name
        ended = [event["kind"] for event in lines_of(run / "events.jsonl")].count("closed")
        assert bool(check_witness(run, f"syslog:{kept}")) or ended == 1, name


def test_a_run_that_was_opened_again_says_so_everywhere(runs: dict[str, Path], tmp_path: Path) -> None:
    """Also one that passes and is signed: when, by which event, and that nothing was measured."""
    run = Path(shutil.copytree(runs["whole"], tmp_path / "runs" / runs["whole"].name))
    kept = log_of(run, tmp_path)
    opened = append_event(run, "resumed", {})
    close_run(run)
    verdict = judge_run(run, publish=True)
    record_published(run)
    assert verdict["outcome"] == "PASS"
    (told,) = (one for one in verdict["warnings"] if "opened again" in one)
    line = f"(resumed, line {opened.number} of events.jsonl): nothing was measured"
    assert f"opened again at {opened.time} {line}" in told
    person = make_person(tmp_path, "Rene", "release-manager")
    keys = write_keys(tmp_path, person)
    sign(run, person, keys)
    found = verify_run(run, keys, witness=f"syslog:{kept}")
    assert told in found.evidence
    assert any("events/closed-2: the witness has no record of it" in one for one in found.problems)


def test_what_was_published_without_telling_the_witness_is_found(runs: dict[str, Path], tmp_path: Path) -> None:
    run = copy_of(runs["whole"], tmp_path)
    kept = log_of(run, tmp_path)
    assert check_witness(run, f"syslog:{kept}") == []
    behind(run, {**RESUMED, "kind": "published", "files": {"verdict.json": "0" * 64}})
    (told,) = check_witness(run, f"syslog:{kept}")
    assert told == "publication events/published-2: the witness has no record of it"


def test_a_chain_that_was_cut_back_to_an_earlier_end_is_found_by_the_witness(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    run = copy_of(runs["whole"], tmp_path)
    put(run / "events.jsonl", (run / "events.jsonl").read_bytes())
    before = (run / "events.jsonl").read_bytes()
    append_event(run, "resumed", {})
    append_event(run, "failed", {**HERE, "message": "the bench was reset"})
    close_run(run)
    kept = log_of(run, tmp_path)
    assert not is_signed(run)
    assert check_witness(run, f"syslog:{kept}") == []
    put(run / "events.jsonl", before)
    assert list(iter_events(run))
    assert check_witness(run, f"syslog:{kept}") == [
        "event events/closed-2: the witness has a record of it, but the run does not have it"
    ]
