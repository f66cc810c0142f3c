# SPDX-License-Identifier: Apache-2.0
"""Tampering before signing: whole files and folders, and lines of a file whatever is in them."""

import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any

from storqual.run import EVENT_KINDS, sha256_of
from storqual.run.closing import plan_digest
from storqual.run.event_kinds import Stage
from tests.attacks.before.tampering import chained, document, edited, kind, lines_of, made_anew
from tests.attacks.finished_run import put
from tests.support.event_examples import example, mistakes, stored

FILES = ("samples.jsonl", "checks.jsonl", "events.jsonl")


@kind
def a_file_is_deleted(run: Path, source: random.Random) -> None:
    (run / source.choice(FILES)).unlink()


@kind
def a_file_is_emptied(run: Path, source: random.Random) -> None:
    put(run / source.choice(FILES), b"")


@kind
def a_folder_is_deleted(run: Path, source: random.Random) -> None:
    shutil.rmtree(run / source.choice(("raw", "blocks", "inputs")))


@kind
def all_evidence_is_deleted(run: Path, _source: random.Random) -> None:
    shutil.rmtree(run / "raw")
    shutil.rmtree(run / "blocks")
    (run / "events.jsonl").unlink()
    (run / "checks.jsonl").unlink()


@kind
def a_file_is_cut_at_the_end_of_a_line(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    # what stands behind the closing event adds nothing that is judged
    most = len(lines) - (3 if path.name == "events.jsonl" else 1)
    put(path, b"".join(lines[: source.randint(1, most)]))


@kind
def a_file_is_cut_anywhere(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES[:2])
    data = path.read_bytes()
    put(path, data[: source.randrange(len(data) - 1)])


@kind
def a_line_is_taken_out(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[source.randrange(len(lines) - 3)]
    put(path, b"".join(lines))


@kind
def a_line_stands_twice(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    put(path, b"".join([*lines, source.choice(lines)]))


@kind
def two_lines_change_places(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    one, other = source.sample(range(len(lines) - 3), 2)
    lines[one], lines[other] = lines[other], lines[one]
    put(path, b"".join(lines))


@kind
def two_lines_stand_in_one(run: Path, source: random.Random) -> None:
    path = run / source.choice(FILES)
    lines = path.read_bytes().splitlines(keepends=True)
    number = source.randrange(len(lines) - 3)
    lines[number] = lines[number][:-1]
    put(path, b"".join(lines))


def raw_file(run: Path, source: random.Random) -> Path:
    return source.choice(sorted((run / "raw").iterdir()))


@kind
def a_raw_file_is_deleted(run: Path, source: random.Random) -> None:
    raw_file(run, source).unlink()


@kind
def a_raw_file_is_emptied(run: Path, source: random.Random) -> None:
    put(raw_file(run, source), b"")


@kind
def a_raw_file_is_cut(run: Path, source: random.Random) -> None:
    path = raw_file(run, source)
    data = path.read_bytes()
    put(path, data[: source.randrange(len(data))])


@kind
def a_bit_of_a_raw_file_is_turned(run: Path, source: random.Random) -> None:
    path = raw_file(run, source)
    data = bytearray(path.read_bytes())
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    put(path, bytes(data))


@kind
def a_raw_file_is_another_one(run: Path, source: random.Random) -> None:
    path, other = source.sample(sorted((run / "raw").iterdir()), 2)
    put(path, other.read_bytes())


@kind
def a_raw_file_is_a_link(run: Path, source: random.Random) -> None:
    path, other = source.sample(sorted((run / "raw").iterdir()), 2)
    path.unlink()
    path.symlink_to(other)


@kind
def a_raw_file_is_added(run: Path, source: random.Random) -> None:
    put(run / "raw" / f"{source.getrandbits(256):064x}.json.gz", gzip.compress(b"{}"))


@kind
def raw_files_and_their_digests_are_changed_together(run: Path, source: random.Random) -> None:
    """The figures, the raw file that they follow from and its name agree; the batch was collected as another one."""
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        for file in sample["raw"]:
            if file["path"].endswith(".json.gz"):
                path = run / file["path"]
                text = gzip.decompress(path.read_bytes()).replace(b'"ctx": ', b'"ctx": 1')
                data = gzip.compress(text, mtime=0)
                file["sha256"] = sha256_of(data)
                file["path"] = f"raw/{file['sha256']}.json.gz"
                put(run / file["path"], data)
                sample["primitives"]["fio_context_switches"] = json.loads(text)["jobs"][0]["ctx"]


@kind
def a_batch_is_deleted(run: Path, source: random.Random) -> None:
    source.choice(sorted((run / "blocks").iterdir())).unlink()


@kind
def a_batch_is_emptied(run: Path, source: random.Random) -> None:
    put(source.choice(sorted((run / "blocks").iterdir())), source.choice((b"", b"{}", b"[]")))


@kind
def a_batch_is_added(run: Path, source: random.Random) -> None:
    path = source.choice(sorted((run / "blocks").iterdir()))
    put(path.with_name(f"s{source.randrange(20, 90)}-b01.json"), path.read_bytes())


@kind
def a_launch_of_a_batch_is_changed(run: Path, source: random.Random) -> None:
    with document(source.choice(sorted((run / "blocks").iterdir()))) as block:
        launch = source.choice(block["turns"])
        name = source.choice(("arm", "configuration", "point", "n", "request", "drives"))
        longer = {"fio": {**launch["request"]["fio"], "runtime_s": 1.5}}
        launch[name] = {"arm": "baseline", "n": 77, "drives": [], "request": longer}.get(name, "other")
        block["idle_s"] = source.random()


@kind
def a_launch_of_a_batch_is_taken_out(run: Path, source: random.Random) -> None:
    with document(source.choice(sorted((run / "blocks").iterdir()))) as block:
        block["turns"].pop(source.randrange(len(block["turns"])))


@kind
def a_primitive_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        counts = source.choice(samples)["primitives"]
        name = source.choice([name for name, value in counts.items() if isinstance(value, int)])
        counts[name] = max(round(counts[name] * source.choice((0, 0.5, 0.99, 1.01, 2))), 0) + source.choice((1, 7))


@kind
def a_primitive_is_taken_out(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        counts = source.choice(samples)["primitives"]
        del counts[source.choice(list(counts))]


@kind
def a_primitive_is_put_in(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        source.choice(samples)["primitives"][source.choice(("open_loop", "member_read_ios", "trim_ios"))] = 1


@kind
def what_was_read_back_is_forged(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        looked = {"of": "write", "sectors": 4096, "compared": 16, "unwritten": 0, "wrong": 0, "took_ns": 7}
        if "sectors" in sample["data"]:
            looked = source.choice(({"reason": "not planned for this launch"}, {**sample["data"], "sectors": 4096}))
        sample["data"] = looked


@kind
def a_second_of_the_series_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        series = source.choice(samples)["series"]["iops"]
        series[source.randrange(len(series))] *= source.choice((0.5, 1.001, 1.5))


@kind
def a_series_is_shorter(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        source.choice(samples)["series"]["iops"].pop()


@kind
def the_baselines_figures_are_copied_over_the_candidates(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples if source.random() < 0.5 else samples[:4]:
            own = (one for one in samples if one["arm"] == "baseline" and one["point"] == sample["point"])
            if sample["arm"] == "candidate":
                better = next(own)
                sample.update(primitives=better["primitives"], series=better["series"])


@kind
def the_baselines_figures_and_raw_files_are_copied(run: Path, _source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples:
            own = (one for one in samples if one["arm"] == "baseline" and one["point"] == sample["point"])
            if sample["arm"] == "candidate":
                better = next(own)
                sample.update({name: better[name] for name in ("primitives", "series", "raw")})


@kind
def a_name_of_a_sample_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample, other = source.sample(samples, 2)
        name = source.choice(("bench", "adapter", "arm", "configuration", "session", "block", "point"))
        sample[name] = other[name] if other[name] != sample[name] else f"{sample[name]}x"


@kind
def a_number_of_a_sample_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        name = source.choice(("n", "runtime_s", "seed"))
        sample[name] += source.choice((1, 2))


@kind
def the_arms_change_places(run: Path, _source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples:
            sample["arm"] = {"baseline": "candidate", "candidate": "baseline"}[sample["arm"]]


@kind
def the_arms_change_places_in_the_batches_too(run: Path, source: random.Random) -> None:
    the_arms_change_places(run, source)
    for path in (run / "blocks").iterdir():
        with document(path) as block:
            for launch in block["turns"]:
                launch["arm"] = {"baseline": "candidate", "candidate": "baseline"}[launch["arm"]]


@kind
def a_sample_is_renamed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        sample["id"] = f"{sample['block']}/{source.choice((7, 99, 'x'))}"


@kind
def a_start_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        source.choice(samples)["start"] = f"2026-11-20T10:00:{source.randrange(60):02d}Z"


@kind
def a_status_is_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        source.choice(samples)["status"] = source.choice(("lost", "short", "killed", "refused", "fine"))


@kind
def words_of_a_sample_are_changed(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        sample = source.choice(samples)
        sample[source.choice(("suspect", "notes"))] = ["nothing to see"]


@kind
def a_sample_is_made_lost(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        asked = {"asked_runtime_ns": 5_000_000_000}
        source.choice(samples).update(status="lost", raw=[], series={"iops": []}, primitives=asked)


@kind
def a_sample_is_invented(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        one = source.choice(samples)
        samples.append({**one, "id": f"{one['block']}/{len(samples) + 7}", "n": one["n"] + 10})


@kind
def a_sample_names_no_raw_files(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples if source.random() < 0.3 else [source.choice(samples)]:
            sample["raw"] = []


@kind
def a_sample_names_the_raw_files_of_another(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        one, other = source.sample(samples, 2)
        one["raw"] = other["raw"]


@kind
def a_sample_says_a_former_schema(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for sample in samples if source.random() < 0.5 else [source.choice(samples)]:
            sample["schema"] = "storqual.sample/1"


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
def a_session_was_not_started_or_in_the_other_arm(run: Path, source: random.Random) -> None:
    with edited(run / "events.jsonl") as events:
        started = source.choice([event for event in events if event["kind"] == "session_started"])
        if source.random() < 0.3:
            events.remove(started)
        elif source.random() < 0.3:
            del started["arm"]
        else:
            sessions = json.loads((run / "run.json").read_bytes())["plan"]["sessions"]
            arms = {session["id"]: session["arm"] for session in sessions}
            started["arm"] = "baseline" if arms[started["session"]] == "candidate" else "candidate"
    made_anew(run)


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
def what_was_measured_is_skipped_by_the_plan_or_not_in_it(run: Path, source: random.Random) -> None:
    """Batches, samples and raw files are as they were, and the chain agrees with the plan."""
    with document(run / "run.json") as plan:
        points = plan["plan"]["points"]
        if source.random() < 0.5:
            source.choice(points)["skipped"] = "the port was busy"
        else:
            points.pop(source.randrange(len(points)))
    made_anew(run)


@kind
def launches_of_batches_that_ended_are_left_out(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        for _ in range(source.randint(1, 3)):
            samples.pop(source.randrange(len(samples)))
    made_anew(run)


@kind
def a_launch_before_another_is_left_out_of_a_batch_that_was_lost(run: Path, source: random.Random) -> None:
    with edited(run / "samples.jsonl") as samples:
        gone = source.choice([sample for sample in samples if sample["id"].endswith("/0")])
        samples.remove(gone)
    events = lines_of(run / "events.jsonl")
    for event in events:
        if event["kind"] == "block_finished" and event["block"] == gone["block"]:
            event["outcome"] = "lost"
    chained(run / "events.jsonl", events)
    made_anew(run)


@kind
def run_json_says_otherwise_than_its_inputs(run: Path, source: random.Random) -> None:
    """By these names a lab accepts failures, a policy says who signs, and a statement says what is released."""
    with document(run / "run.json") as plan:
        candidate, image = plan["arms"]["candidate"], {"file": "image.bin", "sha256": "1" * 64}
        where, other = source.choice(
            (
                (candidate, {"drop": "another"}),
                (candidate, {"sha256": "0" * 64}),
                (candidate, {"manifest": {**candidate["manifest"], "firmware": [image]}}),
                (plan["suite"], {"name": "another"}),
            )
        )
        where |= other
    made_anew(run)


@kind
def a_point_is_said_to_be_of_another_workload_or_level(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        point = source.choice(plan["plan"]["points"])
        point |= source.choice(({"workload": "another"}, {"factors": {"bs": 512}}, {"varied": {"drive.WCE": 1}}))
    made_anew(run)


@kind
def a_session_lacks_a_batch_that_was_measured(run: Path, source: random.Random) -> None:
    with document(run / "run.json") as plan:
        sessions = plan["plan"]["sessions"]
        source.choice((sessions[-1]["blocks"].clear, sessions.pop))()
    made_anew(run)


@kind
def a_virtual_bench_is_called_hardware(run: Path, _source: random.Random) -> None:
    with document(run / "run.json") as plan:
        (bench,) = plan["benches"].values()
        bench["kind"] = "hardware"
    made_anew(run)


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
