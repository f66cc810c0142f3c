# SPDX-License-Identifier: Apache-2.0
"""Tampering before signing: events, the plan, inputs, checks, and what was published."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from storqual.run import EVENT_KINDS, sha256_of
from storqual.run.closing import plan_digest
from storqual.run.event_kinds import Stage
from tests.attacks.before.samples import a_sample_says_a_former_schema
from tests.attacks.before.tampering import chained, document, edited, kind, lines_of
from tests.attacks.finished_run import put
from tests.support.event_examples import example, mistakes, stored


@kind
def an_event_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "events.jsonl") as events:
        source.choice(events[:-3])["time"] = "2026-11-21T00:00:00.000Z"


@kind
def the_beginning_of_the_chain_is_taken_out(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    chained(run / "events.jsonl", events[source.randint(1, 6) :])


@kind
def the_end_of_the_chain_is_taken_out(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    closed = next(number for number, event in enumerate(events) if event["kind"] == "closed")
    chained(run / "events.jsonl", events[: source.randint(1, closed)])


@kind
def the_start_of_a_batch_is_taken_out_of_the_chain(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    events.remove(source.choice([event for event in events if event["kind"] == "block_started"]))
    chained(run / "events.jsonl", events)


@kind
def the_chain_is_closed_over_less(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    closed = next(event for event in events if event["kind"] == "closed")
    closed[source.choice(("samples", "checks", "raw", "blocks"))]["count"] -= source.randint(1, 3)
    chained(run / "events.jsonl", events)


@kind
def a_skip_is_put_into_the_plan(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        source.choice(plan["plan"]["points"])["skipped"] = "the port was busy"


@kind
def a_point_of_the_plan_is_taken_out(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        plan["plan"]["points"].pop(source.randrange(len(plan["plan"]["points"])))


@kind
def a_point_is_put_into_the_plan(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        points = plan["plan"]["points"]
        points.append({**source.choice(points), "adapter": "other", "skipped": "not there"})


@kind
def the_drops_of_the_arms_change_places(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        arms = plan["arms"]
        if source.random() < 0.5:
            arms["baseline"], arms["candidate"] = arms["candidate"], arms["baseline"]
        else:
            arms["candidate"]["drop"] = "another"


@kind
def a_part_of_the_plan_is_changed(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        name = source.choice(("seed", "design", "margin", "launches", "runtime_s", "looks"))
        plan["plan"][name] = {"design": "single", "looks": "every"}.get(name, 3)


@kind
def a_part_of_run_json_is_changed(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        name = source.choice(("kind", "run", "created", "profile", "coverage", "guard", "overhead", "versions"))
        if name == "kind":
            plan["benches"]["b1"]["kind"] = "hardware"
        elif name == "profile":
            plan["suite"]["profile"] = "full"
        else:
            plan[name] = {"run": "another", "created": "2026-01-01T00:00:00.000Z"}.get(name, {})


@kind
def run_json_says_a_former_schema(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        plan["schema"] = "storqual.run/1"
    if source.random() < 0.5:
        a_sample_says_a_former_schema(run, source)


@kind
def the_plan_and_its_digest_are_changed_together(run: Path, source: random.Random) -> None:
    """The chain is made anew over it; what the run was closed over is another run.json."""
    a_skip_is_put_into_the_plan(run, source)
    events = lines_of(run / "events.jsonl")
    events[0]["plan_sha256"] = plan_digest(json.loads((run / "run.json").read_bytes()))
    chained(run / "events.jsonl", events)


@kind
def an_input_is_changed(run: Path, source: random.Random) -> None:
    path = source.choice(sorted((run / "inputs").iterdir()))
    put(path, path.read_bytes() + b"# \n")


@kind
def an_input_and_its_digest_are_changed(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        entry = plan["inputs"][source.choice(("suite", "gate", "baseline", "candidate"))]
        data = (run / entry["file"]).read_bytes() + b"\n"
        put(run / entry["file"], data)
        entry["sha256"] = sha256_of(data)


@kind
def a_check_gets_another_outcome(run: Path, source: random.Random) -> None:
    with edited(run / "checks.jsonl") as checks:
        check = source.choice(checks)
        check["outcome"] = source.choice([one for one in ("PASS", "SKIPPED", "MARGINAL") if one != check["outcome"]])


@kind
def a_check_gets_an_outcome_that_there_is_not(run: Path, source: random.Random) -> None:
    with edited(run / "checks.jsonl") as checks:
        source.choice(checks)["outcome"] = source.choice(("PASSED", "ok", "", "pass"))


@kind
def a_check_is_appended(run: Path, source: random.Random) -> None:
    with edited(run / "checks.jsonl") as checks:
        checks.append({**source.choice(checks), "outcome": "PASS", "reason": "tried again"})


@kind
def a_check_is_no_requirement_any_more(run: Path, source: random.Random) -> None:
    with edited(run / "checks.jsonl") as checks:
        source.choice(checks)["required"] = False


@kind
def a_published_file_is_changed(run: Path, source: random.Random) -> None:
    path = run / source.choice(("verdict.json", "report.html", "junit.xml", "ocp.jsonl", "pytest.html"))
    put(path, path.read_bytes().replace(b"PASS", b"FAIL") + b" ")


@kind
def a_published_file_is_deleted(run: Path, source: random.Random) -> None:
    (run / source.choice(("verdict.json", "report.html", "junit.xml", "ocp.jsonl"))).unlink()


@kind
def the_verdict_is_better(run: Path, _source: random.Random) -> None:
    with document(run / "verdict.json") as verdict:
        verdict.update(outcome="PASS", exit_code=0, reason="")
        for criterion in verdict["criteria"]:
            criterion["outcome"] = "PASS"


@kind
def a_criterion_is_taken_out_of_the_verdict(run: Path, source: random.Random) -> None:
    with document(run / "verdict.json") as verdict:
        verdict["criteria"].pop(source.randrange(len(verdict["criteria"])))


def _event(kind_of_event: str, run: Path) -> dict[str, Any]:
    """An event that fits its kind, of the bench of the run."""
    (bench,) = json.loads((run / "run.json").read_bytes())["benches"]
    own = example(kind_of_event)
    return {**stored(kind_of_event), **own, **({"bench": bench} if "bench" in own else {})}


def _drawn_event(run: Path, source: random.Random, stages: tuple[Stage, ...]) -> dict[str, Any]:
    return _event(source.choice([name for name, one in EVENT_KINDS.items() if one.stage in stages]), run)


@kind
def an_event_of_a_campaign_stands_behind_the_end(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    event = _drawn_event(run, source, (Stage.CAMPAIGN, Stage.CLOSING, Stage.PLANNING))
    closed = next(number for number, event in enumerate(events) if event["kind"] == "closed")
    events.insert(source.randint(closed + 1, len(events)), event)
    chained(run / "events.jsonl", events)


@kind
def the_run_is_opened_again_and_not_closed(run: Path, source: random.Random) -> None:
    events = [*lines_of(run / "events.jsonl"), stored("resumed")]
    more = [_drawn_event(run, source, (Stage.ANY,)) for _ in range(source.randrange(3))]
    chained(run / "events.jsonl", [*events, *more])


@kind
def an_event_has_a_field_of_another_kind(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    of_others = {"end": {"disks": {}}, "provisioned": {}, "checks": {}, "smart": {}, "findings": []}
    event = source.choice(events)
    name = source.choice([name for name in of_others if name not in EVENT_KINDS[event["kind"]].fields])
    while f"{name}?" in EVENT_KINDS[event["kind"]].fields:
        event = source.choice(events)
    event[name] = of_others[name]
    chained(run / "events.jsonl", events)


@kind
def an_event_of_a_kind_that_has_a_mistake_is_put_in(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    name = source.choice(list(EVENT_KINDS))
    _, fields = source.choice(list(mistakes(name))) if EVENT_KINDS[name].fields else ("", {"more": 1})
    events.insert(source.randint(1, len(events)), {**stored(name), **fields})
    chained(run / "events.jsonl", events)


@kind
def an_event_lacks_a_field(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    required = [(event, key) for event in events for key in EVENT_KINDS[event["kind"]].fields if key in event]
    event, key = source.choice(required)
    del event[key]
    chained(run / "events.jsonl", events)


@kind
def a_batch_ends_a_second_time(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    at = source.choice([at for at, event in enumerate(events) if event["kind"] == "block_finished"])
    events.insert(at + 1, dict(events[at]))
    chained(run / "events.jsonl", events)


@kind
def fewer_checks_are_planned_later(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    at = next(at for at, event in enumerate(events) if event["kind"] == "checks_planned")
    fewer = dict(events[at]["checks"])
    fewer.pop(source.choice(list(fewer)))
    events.insert(at + 1, {**events[at], "checks": fewer or {"test_other.py::test_it": 1}})
    chained(run / "events.jsonl", events)


@kind
def a_session_of_the_plan_is_planned_anew(run: Path, source: random.Random) -> None:
    events = lines_of(run / "events.jsonl")
    plan = json.loads((run / "run.json").read_bytes())["plan"]
    session = {**source.choice(plan["sessions"]), "purpose": "confirm"}
    fields = {"bench": session["bench"], "session": session["id"], "plan": session}
    events.insert(source.randint(1, 4), {**stored("session_planned"), **fields})
    chained(run / "events.jsonl", events)
