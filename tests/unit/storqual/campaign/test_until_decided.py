# SPDX-License-Identifier: Apache-2.0
"""Campaigns that measure until decided, on simulated benches: what is measured, in which order, when it ends."""

import json
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign import Stop
from storqual.campaign.drive_limits import limits_of_batch
from storqual.judge.verdict import judge_run
from storqual.plan.make import check_resume
from storqual.run import Event, coverage, read_batch, read_run
from storqual.run.time_left import Effort, bench_seconds, effort_of
from tests.support.make_lab import lab_hosts
from tests.support.simulated_campaign import Bench, KilledError, Rates, drive, plan

pytestmark = pytest.mark.slow

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
KERNELS = {
    "baseline": {"driver": {"kernel": {"package": "linux-image-6.1.0-47-amd64"}}},
    "candidate": {"driver": {"kernel": {"package": "linux-image-6.12.0-1-amd64"}}},
}
LIMITS = {arm: {"virtual": {"iops_limit": {"all": limit}}} for arm, limit in (("baseline", 1000), ("candidate", 950))}
ONE_ADAPTER = lab_hosts({"sym": 2})


def campaign(folder: Path, rates: Rates, **options: Any) -> tuple[Path, Bench, Stop]:
    path, bench = plan(folder, **{"hosts": ONE_ADAPTER, "suite": SUITE, **options}), Bench(rates)
    return path, bench, drive(path, bench)


def launches(path: Path) -> Counter[str]:
    return Counter(sample.point.partition("bs=")[2].rstrip("]") for sample in read_run(path).samples)


def outcomes(path: Path) -> dict[str, str]:
    criteria = [one for one in judge_run(path)["criteria"] if one["id"] == "iops"]
    return {one["point"].partition("bs=")[2].rstrip("]"): one["outcome"] for one in criteria}


def test_points_that_are_decided_cost_nothing_more(tmp_path: Path) -> None:
    path, _, stop = campaign(tmp_path, Rates(noise=0.008, losses={"64k": 0.02}))
    count = launches(path)
    assert stop.complete
    assert count["4k"] < 30
    assert count["16k"] < 30
    assert count["64k"] > max(count["4k"], count["16k"])
    assert outcomes(path)["4k"] == outcomes(path)["16k"] == "PASS"
    assert coverage(read_run(path)).holes == ()


def test_a_fail_is_measured_afresh_in_a_session_of_its_own(tmp_path: Path) -> None:
    path, bench, stop = campaign(tmp_path, Rates(losses={"16k": 0.06}))
    run = read_run(path)
    (session,) = (session for session in run.sessions if session.purpose)
    assert (session.purpose, session.id) == ("confirm", "s02")
    fresh = [sample for sample in run.samples if sample.session == "s02"]
    assert {sample.point for sample in fresh} == {"rand_read[bs=16k]"}
    assert {sample.arm for sample in fresh} == {"baseline", "candidate"}
    verdict = judge_run(path)
    (failed,) = (one for one in verdict["criteria"] if one["outcome"] == "FAIL")
    assert "confirmed on fresh launches" in failed["reason"]
    assert stop.reason == "every required criterion is decided or cannot be judged"
    assert drive(path, bench) == stop
    assert [event.text("text") for event in read_run(path).events if event.kind == "note"] == [stop.reason]


def test_arms_alternate_and_launches_are_numbered_through(tmp_path: Path) -> None:
    path, _, _ = campaign(tmp_path, Rates(noise=0.008, losses={"64k": 0.02}))
    first: dict[tuple[str, int], str] = {}
    seen: Counter[tuple[str, str, int]] = Counter()
    for sample in read_run(path).samples:
        first.setdefault((sample.point, sample.n), sample.arm)
        seen[sample.point, sample.arm, sample.n] += 1
    assert max(seen.values()) == 1
    assert {number % 2: arm for (_, number), arm in first.items()} == {1: "baseline", 0: "candidate"}


def test_arms_that_the_control_node_switches_have_blocks_of_their_own(tmp_path: Path) -> None:
    path, _, stop = campaign(tmp_path, Rates(noise=0.008, losses={"64k": 0.02, "16k": 0.06}), **LIMITS)
    assert stop.complete
    assert outcomes(path) == {"4k": "PASS", "16k": "FAIL", "64k": outcomes(path)["64k"]}
    run = read_run(path)
    blocks: dict[str, list[Any]] = {}
    for sample in run.samples:
        blocks.setdefault(sample.block, []).append(sample)
    assert {len({sample.arm for sample in samples}) for samples in blocks.values()} == {1}
    assert len(blocks) > 8
    for name, samples in blocks.items():
        limits = limits_of_batch(path, "b1", name)
        assert limits is not None
        assert set(limits.values()) == {1000 if samples[0].arm == "baseline" else 950}
    place = {(sample.point, sample.arm, sample.n): list(blocks).index(sample.block) for sample in run.samples}
    apart = {abs(at - place[point, "candidate", n]) for (point, arm, n), at in place.items() if arm == "baseline"}
    assert apart == {1}


def test_sessions_are_added_in_the_order_a_b_b_a(tmp_path: Path) -> None:
    path, bench, stop = campaign(tmp_path, Rates(noise=0.002, session_noise=0.006), **KERNELS)
    run = read_run(path)
    order = [session.arm for session in run.sessions if not session.purpose]
    assert len(order) > 4
    assert order == (["baseline", "candidate", "candidate", "baseline"] * 3)[: len(order)]
    assert bench.boot == len(run.sessions)
    assert stop.complete
    assert len({sample.session for sample in run.samples}) == len(run.sessions)


def test_the_budgets_end_is_inconclusive_and_says_what_is_missing(tmp_path: Path) -> None:
    """A loss near the margin in much noise: the time it would need is in the verdict."""
    path = plan(tmp_path, hosts=ONE_ADAPTER, suite=SUITE.replace("pairs: 30", "pairs: 5"))
    stop = drive(path, Bench(Rates(noise=0.03, losses={"bs": 0.02})))
    assert "the most of the profile is measured (5)" in stop.reason
    assert "required criteria are undecided, the nearest needs about" in stop.reason
    verdict = judge_run(path)
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert all("of bench time" in one["reason"] for one in verdict["criteria"] if one["outcome"] == "INCONCLUSIVE")
    assert max(launches(path).values()) == 10


def test_what_is_left_of_a_budget_goes_to_marginal_passes(tmp_path: Path) -> None:
    """Without a budget a pass between the limits is a decision; with one, it is measured on while that lasts."""
    rates = Rates(noise=0.006, losses={"64k": 0.017})
    suite = SUITE.replace("margin: 3%", "margin: 4%, indifference: 1.5%")
    path, _, _ = campaign(tmp_path / "a", rates, suite=suite)
    assert outcomes(path)["64k"] == "MARGINAL"
    with_budget, _, stop = campaign(tmp_path / "b", rates, suite=suite, budget=36000.0)
    assert launches(with_budget)["64k"] > 2 * launches(path)["64k"]
    assert launches(with_budget)["4k"] == launches(path)["4k"]
    assert stop.reason == "every required criterion is decided or cannot be judged"


def test_a_budget_is_kept(tmp_path: Path) -> None:
    path = plan(tmp_path, hosts=ONE_ADAPTER, suite=SUITE, budget=600.0)
    document = json.loads((path / "run.json").read_text())
    document["plan"]["effort"]["b1"]["budget_s"] = 0.001
    (path / "run.json").write_text(json.dumps(document))
    stop = drive(path, Bench(Rates(noise=0.03, losses={"bs": 0.02})))
    assert stop.reason.startswith("the budget of 0 s is used up; 3 required criteria are undecided")


def test_no_time_is_counted_between_an_interruption_and_its_resumption() -> None:
    times = [
        ("planned", None, 0),
        ("session_started", "b1", 100),
        ("block_started", "b1", 160),
        ("resumed", None, 9000),
        ("block_started", "b1", 9030),
    ]
    events = [
        Event(f"2026-11-21T{10 + second // 3600}:{second // 60 % 60:02d}:{second % 60:02d}Z", kind, bench, {})
        for kind, bench, second in times
    ]
    assert bench_seconds(events, "b1") == 90.0


def test_a_session_costs_more_than_its_launches() -> None:
    costs = {"launch_s": 6.5, "block_s": 2.0, "session_s": 50.0, "longest_block_s": 600.0}
    effort = Effort(by_session=True, most=6, launches=2, **costs)
    assert effort.unit_seconds(3) == 2 * (50.0 + 2.0 + 6 * 6.5)
    assert Effort(**effort.to_json()) == effort


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("arms", [{}, LIMITS, KERNELS], ids=["interleaved", "by_block", "sessions"])
def test_interrupted_anywhere_the_decision_is_the_same(tmp_path: Path, seed: int, arms: dict[str, Any]) -> None:
    rates = Rates(noise=0.006, losses={"16k": 0.06})
    peaceful, _, _ = campaign(tmp_path / "peace", rates, **arms)
    path, bench = plan(tmp_path / "war", hosts=ONE_ADAPTER, suite=SUITE, **arms), Bench(rates)
    chance = random.Random(seed)
    stop: Stop | None = None
    while stop is None:
        try:
            stop = drive(path, bench, lambda share: chance.random() < share, chance)
        except KilledError:
            check_resume(path)
    assert stop.complete
    run = read_run(path)
    numbers = Counter((sample.point, sample.arm, sample.n) for sample in run.samples)
    assert max(numbers.values()) == 1
    finished = {
        json.loads(line)["sample"]["id"] for spool in bench.spools.values() for line in spool if '"sample"' in line
    }
    assert {sample.id for sample in run.samples} == finished
    assert outcomes(path) == outcomes(peaceful)
    for session in run.sessions:
        for name in session.batches:
            assert read_batch(path, name)["session"] == session.id


class SuspectRates(Rates):
    """Every second pair of `16k` is suspect."""

    def __call__(self, block: Any, launch: Any) -> dict[str, Any]:
        """What the launch gave, and why nobody should believe it."""
        found = super().__call__(block, launch)
        doubtful = "16k" in launch["point"] and launch["n"] % 2 == 0
        return {**found, "suspect": ["another load on the bench"] if doubtful else []}


def test_suspect_launches_are_measured_again_while_the_budget_lasts(tmp_path: Path) -> None:
    clean, _, _ = campaign(tmp_path / "a", Rates(noise=0.008), budget=36000.0)
    path, _, stop = campaign(tmp_path / "b", SuspectRates(noise=0.008), budget=36000.0)
    assert stop.complete
    assert launches(path)["16k"] > launches(clean)["16k"]
    assert launches(path)["4k"] == launches(clean)["4k"]
    assert outcomes(path)["16k"] == "PASS"


def test_without_a_budget_suspect_launches_are_among_the_most_that_a_point_may_have(tmp_path: Path) -> None:
    class AllSuspect(Rates):
        def __call__(self, block: Any, launch: Any) -> dict[str, Any]:
            return {**super().__call__(block, launch), "suspect": ["another load on the bench"]}

    for name, budget, times in (("a", None, 1), ("b", 36000.0, 2)):
        suite = SUITE.replace("pairs: 30", "pairs: 4")
        path, _, stop = campaign(tmp_path / name, AllSuspect(), suite=suite, budget=budget)
        effort = effort_of(read_run(path), "b1")
        assert stop.complete
        assert effort is not None
        assert set(launches(path).values()) == {2 * effort.most * times}
        verdict = judge_run(path)
        assert verdict["outcome"] == "INCONCLUSIVE"
        reasons = [one["reason"] for one in verdict["criteria"] if one["id"] == "iops"]
        assert all("are suspect and do not count as evidence" in reason for reason in reasons)


class Settling(Rates):
    """A bench whose launches begin a third too high for two seconds beyond their ramp, until the ramp is longer."""

    def __call__(self, block: Mapping[str, Any], launch: Mapping[str, Any]) -> dict[str, Any]:
        found = super().__call__(block, launch)
        left = round(3.0 - float(launch["request"]["fio"]["ramp_s"]))
        found["series"]["iops"] = [
            value * (1.35 if second < left else 1.0) for second, value in enumerate(found["series"]["iops"])
        ]
        return found


def ramps(path: Path) -> dict[str, list[float]]:
    """The ramp of each launch in the order of the blocks, by block size."""
    found: dict[str, list[float]] = {}
    for name in sorted(file.stem for file in (path / "blocks").glob("*.json")):
        for launch in read_batch(path, name)["turns"]:
            size = launch["point"].partition("bs=")[2].rstrip("]")
            found.setdefault(size, []).append(launch["request"]["fio"]["ramp_s"])
    return found


@pytest.mark.parametrize("drops", [{}, KERNELS], ids=["pairs", "sessions"])
def test_launches_that_still_settle_get_a_longer_ramp_in_the_rest_of_the_campaign(
    tmp_path: Path, drops: dict[str, Any]
) -> None:
    """At the point that goes on, told once by an event and in the verdict; both arms alike."""
    path, _, _ = campaign(tmp_path, Settling(noise=0.008, losses={"64k": 0.02}, session_noise=0.004), **drops)
    events = [event for event in read_run(path).events if event.kind == "ramp_lengthened"]
    assert "64k" in {event.text("point").partition("bs=")[2].rstrip("]") for event in events}
    assert len({event.text("point") for event in events}) == len(events)
    planned, *_, last = ramps(path)["64k"]
    assert planned == 1.0
    assert last in (3.0, 4.0)
    by_arm: dict[str, Counter[float]] = {}
    for name in sorted(file.stem for file in (path / "blocks").glob("*.json")):
        for launch in read_batch(path, name)["turns"]:
            by_arm.setdefault(launch["arm"], Counter())[launch["request"]["fio"]["ramp_s"]] += 1
    assert by_arm["baseline"] == by_arm["candidate"]
    (told,) = [text for text in judge_run(path)["warnings"] if "had a longer ramp" in text]
    assert told.startswith("b1: launches at ")


def test_a_workload_with_a_think_time_gets_no_ramp_however_its_launches_begin(tmp_path: Path) -> None:
    thinking = SUITE.replace("rw: ", "options: {thinktime: 100}, rw: ", 1)
    assert thinking != SUITE
    path, _, _ = campaign(tmp_path, Settling(noise=0.008, losses={"64k": 0.02}), suite=thinking)
    assert {ramp for each in ramps(path).values() for ramp in each} == {0.0}
    assert not [event for event in read_run(path).events if event.kind == "ramp_lengthened"]


def test_level_launches_keep_the_ramp_of_the_plan(tmp_path: Path) -> None:
    path, _, _ = campaign(tmp_path, Rates(noise=0.008, losses={"64k": 0.02}))
    assert {ramp for each in ramps(path).values() for ramp in each} == {1.0}
    assert not [event for event in read_run(path).events if event.kind == "ramp_lengthened"]
