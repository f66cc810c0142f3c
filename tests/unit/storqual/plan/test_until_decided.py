# SPDX-License-Identifier: Apache-2.0
"""Plans that measure until decided, within a budget, with what history knows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.plan import make_plan
from storqual.plan.make import PlannedCampaign
from storqual.plan.points import READBACK_SHARE, READS_LOOKED_AT
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import parse_batch
from tests.support.make_lab import KERNEL, OTHER, lab_hosts, make_lab

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
KERNELS: dict[str, Any] = {"baseline": KERNEL, "candidate": OTHER}


def campaign(folder: Path, *, name_of_baseline: str = "baseline", **options: Any) -> PlannedCampaign:
    hosts = lab_hosts({"sym": 2}, kind="hardware")
    request = make_lab(folder, **{"hosts": hosts, "suite": SUITE, **options})
    return make_plan(replace(request, baseline=name_of_baseline))


def launches(found: PlannedCampaign) -> int:
    return sum(len(block["turns"]) for block in found.batches)


def test_only_what_comes_before_the_first_look_is_planned(tmp_path: Path) -> None:
    """Three pairs, or two sessions of each arm; the rest follows from what is seen."""
    interleaved = campaign(tmp_path / "a", profile="full")
    assert launches(interleaved) == 8 * 3 * 2
    assert interleaved.document["plan"]["looks"] == "every"
    assert interleaved.document["plan"]["effort"]["b1"]["most"] == 40
    sessions = campaign(tmp_path / "b", profile="full", **KERNELS)
    assert [session["arm"] for session in sessions.document["plan"]["sessions"]] == [
        *("baseline", "candidate", "candidate", "baseline")
    ]
    assert sessions.document["plan"]["effort"]["b1"]["most"] == 6


def test_the_expected_time_is_that_of_deciding(tmp_path: Path) -> None:
    """More pairs than the first part, fewer than the most; without `until` it is the time of the plan."""
    decided = campaign(tmp_path / "a", profile="full")
    assert 4 < decided.document["plan"]["expected_units"] < 40
    one_pair = 2 * decided.document["plan"]["effort"]["b1"]["launch_s"]
    wanted = 8 * one_pair * decided.document["plan"]["expected_units"]
    (measuring,) = (line for line in decided.document["plan"]["bench_time"]["b1"] if line["what"] == "launches")
    assert measuring["seconds"] == pytest.approx(wanted, rel=0.05)
    planned = campaign(tmp_path / "b", profile="quick")
    assert (planned.document["plan"]["looks"], planned.document["plan"]["expected_units"]) == ("last", 3)


def test_a_budget_keeps_required_criteria_and_names_what_is_left_out(tmp_path: Path) -> None:
    whole = campaign(tmp_path / "a", profile="full")
    budget = 0.8 * whole.document["plan"]["expected_seconds"]
    found = campaign(tmp_path / "b", profile="full", budget=budget)
    points = found.document["plan"]["points"]
    kept = [point["workload"] for point in points if not point["skipped"]]
    assert kept.count("rand_read") == 4
    assert 0 < len(kept) - 4 < 4
    assert {point["skipped"] for point in points} >= {""}
    assert all("outside the budget" in point["skipped"] for point in points if point["skipped"])
    assert any("of 8 points are outside the budget" in warning for warning in found.warnings)
    assert found.document["plan"]["expected_seconds"] <= budget


def test_a_budget_makes_any_profile_measure_until_decided(tmp_path: Path) -> None:
    found = campaign(tmp_path, profile="quick", budget=36000.0)
    assert found.document["plan"]["looks"] == "every"
    effort = found.document["plan"]["effort"]["b1"]
    assert (effort["most"], effort["budget_s"]) == (48, 36000.0)


def test_a_budget_of_a_characterisation_only_says_how_many_points(tmp_path: Path) -> None:
    suite = SUITE.replace("against: baseline", "against: absolute, min: 1")
    whole = campaign(tmp_path / "a", suite=suite, name_of_baseline="")
    part = campaign(tmp_path / "b", suite=suite, name_of_baseline="", budget=0.6 * whole.benches[0].seconds)
    assert (whole.document["plan"]["looks"], part.document["plan"]["looks"]) == ("last", "last")
    assert len(part.document["plan"]["sessions"]) == len(whole.document["plan"]["sessions"])
    kept = [point for point in part.document["plan"]["points"] if not point["skipped"]]
    assert 0 < len(kept) < len(whole.document["plan"]["points"])


def test_a_budget_too_small_for_anything_is_refused(tmp_path: Path) -> None:
    """With what one point would take."""
    with pytest.raises(
        BadInputError, match=r"the budget of 10 s is too small: one point alone is expected to take 2 min"
    ):
        campaign(tmp_path, profile="full", budget=10.0)


@pytest.mark.parametrize(("ramp", "runtime"), [("0s", 2.0), ("1s", 2.0), ("5s", 8.0), ("60s", 60.0)])
def test_launches_are_as_long_as_their_cost_makes_worth(tmp_path: Path, ramp: str, runtime: float) -> None:
    suite = SUITE.replace("runtime: 5s, ramp: 1s, until", f"ramp: {ramp}, until")
    found = campaign(tmp_path, suite=suite, profile="full")
    assert found.document["plan"]["runtime_s"] == runtime
    requests = [launch["request"] for block in found.batches for launch in block["turns"]]
    assert {request["fio"]["runtime_s"] for request in requests} == {runtime}


def test_noise_that_history_knows_sizes_the_plan(tmp_path: Path) -> None:
    extract = tmp_path / "noise.json"
    entry = {"bench": "b1", "adapter": "sym", "point": "rand_read[bs=4k]", "metric": "iops", "df_pair": 20.0}
    found = []
    for number, sd in enumerate((0.01, 0.2)):
        extract.write_text(json.dumps({"schema": "storqual.history/1", "noise": [{**entry, "sd_pair": sd}]}))
        found.append(campaign(tmp_path / str(number), profile="full", history=extract))
    quiet, noisy = (one.document["plan"] for one in found)
    assert quiet["expected_units"] < noisy["expected_units"] == 40
    assert quiet["detectable"] < 0.03 < noisy["detectable"]
    assert any("this plan detects losses of" in warning for warning in found[1].warnings)
    assert found[0].inputs["history"].data == (tmp_path / "noise.json").read_bytes().replace(b"0.2", b"0.01")


def test_a_folder_that_holds_no_history_is_told(tmp_path: Path) -> None:
    extract = tmp_path / "noise.json"
    extract.write_text("{}", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"noise\.json"):
        campaign(tmp_path, profile="full", history=extract)


def test_the_golden_reference_is_first_and_last_in_each_session(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 2}, kind="hardware")
    drive = hosts["b1"]["storqual_adapters"]["sym"]["drives"][1]["wwn"]
    hosts["b1"]["storqual_reference"] = drive
    found = campaign(tmp_path, hosts=hosts, **KERNELS)
    for session in found.document["plan"]["sessions"]:
        blocks = [parse_batch(json.dumps(block)) for block in found.batches if block["session"] == session["id"]]
        ends = (blocks[0].launches[0], blocks[-1].launches[-1])
        assert {launch.point for launch in ends} == {"golden_reference"}
        assert {launch.drives for launch in ends} == {(drive,)}
    numbers = [x["n"] for block in found.batches for x in block["turns"] if x["point"] == "golden_reference"]
    assert numbers == list(range(1, 9))
    hosts["b1"]["storqual_reference"] = "0x5000c500deadbeef"
    with pytest.raises(BadInputError, match="name a claimed drive"):
        campaign(tmp_path / "wrong", hosts=hosts)


def test_drives_are_preconditioned_once_before_the_first_launch(tmp_path: Path) -> None:
    plain = campaign(tmp_path / "a")
    suite = SUITE.replace("pairs: 3,", "pairs: 3, precondition: {purge: discard, steady: {rw: randwrite}},")
    found = campaign(tmp_path / "b", suite=suite, consent=("ec0000",))
    with_it = [block for block in found.batches if "precondition" in block]
    assert with_it == [found.batches[0]]
    read = parse_batch(json.dumps(found.batches[0]))
    assert read.precondition is not None
    assert (read.precondition.purge, read.precondition.consent) == ("discard", ("ec0000",))
    assert read.precondition.fill is not None
    assert read.precondition.steady is not None
    assert read.precondition.steady.rounds == 240
    seconds = found.document["plan"]["expected_seconds"] - plain.document["plan"]["expected_seconds"]
    assert seconds == pytest.approx(600 + 3 * 2**30 / 200e6, rel=0.01)


def test_a_format_brings_the_claims_on_all_other_drives_of_the_bench(tmp_path: Path) -> None:
    """It may reach them: which, is found on the bench."""
    suite = SUITE.replace("pairs: 3,", "pairs: 3, precondition: {purge: format},")
    found = campaign(tmp_path, suite=suite, consent=("ec0000",))
    read = parse_batch(json.dumps(found.batches[0]))
    assert read.precondition is not None
    claimed = {
        drive["wwn"]
        for adapter in found.document["benches"]["b1"]["adapters"].values()
        for drive in adapter["drives"]
        if drive.get("claim")
    }
    assert claimed
    assert {*read.targets, *read.precondition.beside} == claimed
    assert read.precondition.beside
    assert not set(read.targets) & set(read.precondition.beside)


def test_a_load_to_a_cap_becomes_a_search_from_the_workloads_own_load_on(tmp_path: Path) -> None:
    load = "rw: randread, iodepth: 2, load: {to: 100ms, of: p99, by: iodepth, most: 512}"
    suite = SUITE.replace("rand_read: {rw: randread", f"rand_read: {{{load}")
    found = campaign(tmp_path, suite=suite)
    searches = [launch for block in found.batches for launch in block["turns"] if "load" in launch["request"]]
    assert {launch["point"].partition("[")[0] for launch in searches} == {"rand_read"}
    (read,) = {launch.load for block in found.batches for launch in parse_batch(json.dumps(block)).launches} - {None}
    assert (read.cap_ns, read.share_ppm, read.by, read.least, read.most) == (10**8, 990_000, "iodepth", 2, 512)
    plain = campaign(tmp_path / "plain")
    ratio = found.document["plan"]["measuring_seconds"] / plain.document["plan"]["measuring_seconds"]
    # at p99 the I/Os of one response time may be a thousandth of a launch
    look = READBACK_SHARE * (1 + 5) / READS_LOOKED_AT
    # seconds of a plan are rounded
    assert ratio == pytest.approx(((10 * (1 + (5 + 100) / 2) + look) / (1 + 5 + look) + 1) / 2, rel=1e-3)


def test_open_loop_arrivals_reach_fio(tmp_path: Path) -> None:
    suite = SUITE.replace("rw: randread", "rw: randread, rate_iops: 500, arrivals: poisson")
    found = campaign(tmp_path, suite=suite)
    asks = [launch.fio for block in found.batches for launch in parse_batch(json.dumps(block)).launches]
    assert {ask.options.get("rate_process") for ask in asks if ask.rw == "randread"} == {"poisson"}
    assert {ask.options.get("rate_process") for ask in asks if ask.rw == "read"} == {None}


@pytest.mark.parametrize(
    ("old", "new", "told"), json.loads(Path(__file__).with_name("load_mistakes.json").read_text(encoding="utf-8"))
)
def test_what_makes_no_sense_is_told_with_its_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    suite = SUITE.replace(old, new, 1)
    assert suite != SUITE
    with pytest.raises(BadInputError) as problem:
        campaign(tmp_path, suite=suite)
    assert any(told in line and "small.suite.yml:" in line for line in problem.value.problems), problem.value.problems
