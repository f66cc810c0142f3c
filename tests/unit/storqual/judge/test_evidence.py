# SPDX-License-Identifier: Apache-2.0
"""What speaks against a number that would pass: shared boots, drives that still changed, an old baseline."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.judge import evidence
from storqual.judge.entry import stale_baseline
from storqual.judge.question import Judged
from storqual.judge.verdict import judge_run
from storqual.run import append_event, read_run
from storqual.run.layout import dump_line
from storqual.run.records import read_launches
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS, SUITE


def run_with(*boots: tuple[str, str], change: str = "reboot") -> Any:
    """A run whose sessions began on these boots, as (session, boot id)."""
    events = [
        SimpleNamespace(kind="session_started", bench="b1", text={"session": session, "boot_id": boot}.__getitem__)
        for session, boot in boots
    ]
    sessions = [SimpleNamespace(bench="b1", id=session, change=change) for session, _ in boots]
    return SimpleNamespace(sessions=sessions, events=events)


def test_two_sessions_on_one_boot_are_told_where_a_drop_costs_one() -> None:
    sentences = evidence._shared_boots(run_with(("s01", "x"), ("s02", "x"), ("s03", "y")))
    assert sentences == ["b1: sessions s01, s02 ran in one boot, so they are one session"]
    assert evidence._shared_boots(run_with(("s01", "x"), ("s02", "y"))) == []
    assert evidence._shared_boots(run_with(("s01", "x"), ("s02", "x"), change="none")) == []


@pytest.mark.parametrize(("kernel", "build", "told"), [("6", "A", 0), ("7", "A", 1), ("6", "B", 1), ("", None, 0)])
def test_an_arm_whose_files_were_exchanged_is_no_drop(tmp_path: Path, kernel: str, build: str, told: int) -> None:
    path = make_run(tmp_path, finished=False)
    for each, driver in (("6", "A"), (kernel, build)):
        fields = {"kernel": each, "provisioned": {"drivers": {"hba": {"srcversion": driver}}}}
        append_event(
            path, "session_started", {"session": "s09", "boot_id": "x", "bench": "b1", "arm": "third", **fields}
        )
    assert len([text for text in evidence.rig_problems(read_run(path)) if text.startswith("b1: ")]) == told


@pytest.mark.parametrize("outcome", ["PASS", "MARGINAL"])
def test_a_pass_on_drives_that_still_changed_decides_nothing(outcome: str) -> None:
    question: Any = SimpleNamespace(
        point=SimpleNamespace(bench="b1"), criterion=SimpleNamespace(against="absolute"), by_session=False
    )
    judged = evidence.with_steadiness(question, Judged(outcome, "as asked"), {"b1": "the drives still changed"})
    assert (judged.outcome, judged.reason) == ("INCONCLUSIVE", "the drives still changed; as asked")
    alternated: Any = SimpleNamespace(
        point=question.point, criterion=SimpleNamespace(against="baseline"), by_session=False
    )
    assert evidence.with_steadiness(alternated, Judged(outcome, ""), {"b1": "x"}).outcome == outcome
    assert evidence.with_steadiness(question, Judged("FAIL", ""), {"b1": "x"}).outcome == "FAIL"


def test_a_baseline_is_as_old_as_its_oldest_launch() -> None:
    launches = cast("Any", [SimpleNamespace(start=f"2026-10-{day:02}T10:00:00+00:00") for day in (20, 1, 25)])
    moment = datetime(2026, 10, 26, 10, tzinfo=UTC)
    sentence = stale_baseline(launches, moment, 20)
    assert sentence == "the baseline was measured on 2026-10-01; the gate accepts a baseline of at most 20 days"
    assert stale_baseline(launches, moment, 25) == ""
    assert stale_baseline(launches, moment, None) == ""


LOAD = "another load on the bench"
Change = Callable[[dict[str, Any]], bool]


def run_with_suspects(
    folder: Path, chosen: Change, *, factor: float = 1.0, doubts: str = "suspect", **shape: Any
) -> Path:
    """A run in which the chosen launches are suspect and gave `factor` of their I/Os; `doubts` is what says so."""
    shape = {
        "noise": 0.003,
        "points": POINTS[:1],
        "adapters": ("sym",),
        "design": "interleaved",
        "launches": 8,
        **shape,
    }
    run = make_run(folder, **shape)
    lines = []
    for text in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines():
        sample = json.loads(text)
        if chosen(sample):
            sample[doubts] = [LOAD]
            for name, value in sample["primitives"].items():
                if name.endswith("_ios"):
                    sample["primitives"][name] = int(value * factor)
            sample["series"]["iops"] = [value * factor for value in sample["series"]["iops"]]
        lines.append(dump_line(sample))
    (run / "samples.jsonl").write_bytes(b"".join(lines))
    return run


def criterion(verdict: dict[str, Any]) -> dict[str, Any]:
    (entry,) = [candidate for candidate in verdict["criteria"] if candidate["id"] == "iops"]
    return entry


def test_a_run_of_suspect_launches_alone_is_no_pass(tmp_path: Path) -> None:
    verdict = judge_run(run_with_suspects(tmp_path, lambda line: line["n"] > 0))
    entry = criterion(verdict)
    assert (entry["outcome"], verdict["exit_code"]) == ("INCONCLUSIVE", 2)
    assert "no launch of the candidate is left as evidence" in entry["reason"]
    assert f"16 of 16 launches are suspect and do not count as evidence ({LOAD})" in entry["reason"]
    assert entry["suspect"] == {"candidate": 8, "baseline": 8}


def test_the_partner_of_a_suspect_launch_is_left_out_with_it(tmp_path: Path) -> None:
    entry = criterion(
        judge_run(run_with_suspects(tmp_path, lambda line: line["arm"] == "candidate" and line["n"] in {1, 5}))
    )
    assert entry["outcome"] == "PASS"
    assert entry["samples"] == {"candidate": 6, "baseline": 6}
    assert entry["suspect"] == {"candidate": 2, "baseline": 0}
    assert LOAD in entry["evidence"]


def test_suspect_launches_do_not_make_a_fail(tmp_path: Path) -> None:
    """Another load took a fifth of half of the candidate's launches: what is left is a pass that nobody believes."""
    slow = run_with_suspects(
        tmp_path, lambda line: line["arm"] == "candidate" and line["n"] % 2 == 0, factor=0.5, launches=12
    )
    entry = criterion(judge_run(slow))
    assert entry["outcome"] in ("PASS", "INCONCLUSIVE")
    assert entry["shift_percent"] > -3


def test_a_pass_of_clean_launches_that_suspect_ones_would_make_a_fail_decides_nothing(tmp_path: Path) -> None:
    """Whatever made them suspect may be the candidate's doing."""
    slow = run_with_suspects(
        tmp_path, lambda line: line["arm"] == "candidate" and line["n"] > 4, factor=0.8, launches=24
    )
    entry = criterion(judge_run(slow))
    assert entry["outcome"] == "INCONCLUSIVE"
    assert "with the suspect launches included it fails" in entry["reason"]


def test_a_fail_of_clean_launches_stays_one(tmp_path: Path) -> None:
    run = run_with_suspects(tmp_path, lambda line: line["n"] == 2, factor=2.0, effect={"sym": -0.2})
    assert criterion(judge_run(run))["outcome"] == "FAIL"


def test_a_launch_that_did_not_run_spoils_its_point_though_its_partner_is_suspect(tmp_path: Path) -> None:
    run = run_with_suspects(tmp_path, lambda sample: sample["n"] == 3)
    text = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [json.loads(line) for line in text]
    (killed,) = [sample for sample in lines if sample["n"] == 3 and sample["arm"] == "candidate"]
    killed["status"] = "killed"
    (run / "samples.jsonl").write_bytes(b"".join(map(dump_line, lines)))
    entry = criterion(judge_run(run))
    assert (entry["outcome"], "was killed" in entry["reason"]) == ("ERROR", True)


def test_too_few_clean_launches_are_told_with_the_reason(tmp_path: Path) -> None:
    entry = criterion(judge_run(run_with_suspects(tmp_path, lambda line: line["n"] > 1)))
    assert entry["outcome"] == "INCONCLUSIVE"
    assert f"14 of 16 launches are suspect and do not count as evidence ({LOAD})" in entry["reason"]


def test_a_limit_is_judged_by_every_clean_launch_whatever_its_partner_is(tmp_path: Path) -> None:
    suite = SUITE.replace("criteria:\n", "criteria:\n  - {metric: iops, id: floor, against: absolute, min: 1}\n", 1)
    run = run_with_suspects(tmp_path, lambda line: line["arm"] == "baseline", suite=suite)
    by_id = {line["id"]: line for line in judge_run(run)["criteria"]}
    assert (by_id["floor"]["outcome"], by_id["floor"]["samples"]["candidate"]) == ("PASS", 8)
    assert by_id["iops"]["outcome"] == "INCONCLUSIVE"


ALL_BUT_RATES = """\
  - {metric: dips_per_min, id: dips, against: absolute, max: 1000 1/min}
  - {metric: latency_p99_us, id: latency, against: absolute, max: 1s}
  - {metric: latency_mean_us, id: mean, against: baseline}
  - {metric: cpu_us_per_io, id: processor, against: absolute, max: 100000 us/IO}
"""


def test_a_pace_that_was_kept_beside_another_load_is_evidence_for_rates_alone(tmp_path: Path) -> None:
    """Latencies and processor time of the same launches may well be those of the other load."""
    suite = SUITE.replace("criteria:\n", f"criteria:\n{ALL_BUT_RATES}", 1)
    run = run_with_suspects(tmp_path, lambda line: line["n"] % 2 == 0, doubts="suspect_but_rates", suite=suite)
    by_id = {line["id"]: line for line in judge_run(run)["criteria"]}
    for name in ("iops", "dips"):
        assert (by_id[name]["outcome"], by_id[name]["suspect"]["candidate"]) == ("PASS", 0), by_id[name]["reason"]
        assert by_id[name]["samples"]["candidate"] == 8
    for name in ("latency", "mean", "processor"):
        assert (by_id[name]["suspect"]["candidate"], by_id[name]["samples"]["candidate"]) == (4, 4)
        assert LOAD in by_id[name]["evidence"]


def test_a_run_that_was_disturbed_throughout_passes_no_latency_because_it_kept_its_pace(tmp_path: Path) -> None:
    suite = SUITE.replace("criteria:\n", f"criteria:\n{ALL_BUT_RATES}", 1)
    run = run_with_suspects(tmp_path, lambda line: line["n"] > 0, doubts="suspect_but_rates", suite=suite)
    verdict = judge_run(run)
    outcomes = {line["id"]: line["outcome"] for line in verdict["criteria"]}
    assert (outcomes["iops"], outcomes["latency"], outcomes["mean"], outcomes["processor"]) == (
        "PASS",
        *["INCONCLUSIVE"] * 3,
    )
    assert verdict["exit_code"] == 2
    assert all(line.suspect_but_rates == (LOAD,) and not line.suspect for line in read_launches(run))
