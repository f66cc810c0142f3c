# SPDX-License-Identifier: Apache-2.0
"""Trials and programs of a suite: what is drawn on one bench, and every mistake at once with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from storqual.base.files import suites_folder
from storqual.campaign import Provision, RunBatch, Stop
from storqual.campaign.further import planned_pattern
from storqual.campaign.next_step import next_step
from storqual.inputs import Suite, load_suite, read_suite
from storqual.inputs.shape import raise_all
from storqual.inputs.trials import Program
from storqual.kinds.output.formats import FORMATS, STATUS
from storqual.kinds.trial_shown import show_trials
from storqual.plan import PlannedCampaign, make_plan
from storqual.plan.make import plan_run
from storqual.plan.trials import Seat, _trial, hung_task_s, plan_programs, plan_trials, usable_ways
from storqual.run import append_event, read_batch, read_run
from storqual.run.turns import turns_of
from storqual_core.data.faults import FAULTS, WAYS
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import parse_batch
from storqual_core.turns.bench_faults import ACTS
from tests.support.make_lab import KERNEL, OTHER, lab_hosts, make_lab

if TYPE_CHECKING:
    from storqual.inputs.suite import Profile
    from storqual.plan.trials import PlannedProgram, PlannedTrial

    Drawn = tuple[tuple[PlannedTrial, ...], tuple[str, ...]]

SHIPPED = suites_folder() / "robustness.suite.yml"
SEATS = [
    Seat("fusion", "mptsas", (("0x1", 1 << 30), ("0x2", 1 << 30))),
    Seat("vscsi", "virtio_scsi", (("0x3", 1 << 30),)),
]
OWN = """\
loads: {mine: {region: 2MiB}}
trials:
  - {fault: device_reset, load: mine, expect: {recovery: 5s}}
"""


SESSIONS = (("s01", "baseline"), ("s02", "candidate"), ("s03", "candidate"), ("s04", "baseline"))
ALONE = (("s01", "candidate"),)


def plan(seed: int = 1, kind: str = "virtual") -> Drawn:
    suite = load_suite(SHIPPED)
    profile = suite.profiles["quick"].model_copy(update={"repeats": 3})
    return plan_trials(suite, profile, SEATS, SESSIONS, bench="b", kind=kind, seed=seed)


def drawn(suite: Suite, profile: Profile, seats: list[Seat], kind: str = "virtual", **more: Any) -> Drawn:
    return plan_trials(suite, profile, seats, ALONE, bench="b", kind=kind, seed=1, **more)


def refusals(tmp_path: Path, text: str, profile: str | None = None) -> list[str]:
    file = tmp_path / "own.suite.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        raise_all(read_suite(file, profile=profile)[1])
    return [problem.replace(str(file), "own") for problem in refused.value.problems]


@pytest.mark.parametrize(("through", "drives"), [((), {"0x1", "0x2", "0x3"}), (("0x2", "0x3"), {"0x2", "0x3"})])
def test_power_is_cut_from_a_drive_that_takes_writes_through_its_cache_where_there_is_one(
    through: tuple[str, ...], drives: set[str]
) -> None:
    """Flushes are on its wire as well; on that of any other there is no write through the cache."""
    suite, seat = load_suite(SHIPPED), Seat("vscsi", "virtio_scsi", tuple((f"0x{n}", 1 << 30) for n in (1, 2, 3)))
    profile = suite.profiles["quick"].model_copy(update={"repeats": 30})
    trials, _ = drawn(suite, profile, [replace(seat, through=frozenset(through))])
    chosen = {
        fault: {trial.drive for trial in trials if trial.fault == fault} for fault in ("power_cut", "device_reset")
    }
    assert chosen == {"power_cut": drives, "device_reset": {"0x1", "0x2", "0x3"}}


def test_a_suite_of_ones_own_takes_four_lines(tmp_path: Path) -> None:
    file = tmp_path / "own.suite.yml"
    file.write_text(OWN, encoding="utf-8")
    suite = load_suite(file)
    assert (suite.name, suite.trials[0].expect.recovery, suite.loads["mine"].workers) == ("own", 5.0, 4)


def test_all_that_is_wrong_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    text = """\
default_profile: fast
loads: {mine: {region: 2MiB, sizes: [700], wrkers: 3}, small: {region: 64KiB}, huge: {region: 9000000TiB}}
trials:
  - {fault: device_rest, load: mine}
  - {fault: bus_reset, load: other, way: sg_reset_bus_now}
profiles:
  quick: {faults: [host_reset]}
  brief: {leave_out: {drive_removl: fusion}}
"""
    told = refusals(tmp_path, text)
    assert [problem.partition(": ")[0] for problem in told] == [
        *("own:1", "own:2", "own:2", "own:2", "own:4", "own:5", "own:5", "own:7", "own:8")
    ]
    assert "unknown profile 'fast'; expected one of quick, brief" in told[0]
    assert "(did you mean 'device_reset'?)" in told[4]
    assert "no way of bus_reset 'sg_reset_bus_now'" in " ".join(told)


def test_a_profile_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    assert "unknown profile 'slow'" in refusals(tmp_path, OWN, "slow")[0]


def test_the_shipped_suite_tests_a_dozen_faults_that_are_in_the_vocabulary() -> None:
    suite = load_suite(SHIPPED)
    assert len({trial.fault for trial in suite.trials}) >= 12


def test_every_way_of_the_bench_in_the_vocabulary_is_one_that_benches_know() -> None:
    ways = {way.name for fault in FAULTS.values() for way in fault.ways if way.where == "bench"}
    # the load itself is what the sweep does
    assert ways - {"load_sweep"} == set(ACTS)


def test_the_same_seed_draws_the_same_plan_and_another_seed_another() -> None:
    assert plan() == plan()
    assert plan(seed=2) != plan()


def test_both_arms_have_the_same_moments_and_loads_and_alternate() -> None:
    made, _ = plan()
    by_pair: dict[str, list[tuple[object, ...]]] = {}
    for trial in made:
        by_pair.setdefault(trial.pair, []).append((trial.drive, trial.seed, trial.at_s, trial.fault))
    assert all(len(pair) == 2 - (pair[0][3] == "integrity") and pair[0] == pair[-1] for pair in by_pair.values())
    assert {trial.arm for trial in made if trial.baseline_later} == {"candidate"}
    assert len({trial.id for trial in made}) == len(made)
    assert {trial.at_s for trial in made} > {made[0].at_s}


def test_a_baseline_that_would_be_tried_with_nothing_is_spared_nothing() -> None:
    suite = load_suite(SHIPPED)
    profile = suite.profiles["quick"].model_copy(update={"faults": ("integrity",)})
    made, _ = plan_trials(suite, profile, SEATS, SESSIONS, bench="b", kind="virtual", seed=1)
    assert [trial.arm for trial in made].count("baseline") == len(SEATS)
    assert not any(trial.baseline_later for trial in made)


def test_a_profile_may_have_loads_last_longer_and_faults_come_later() -> None:
    suite = load_suite(SHIPPED)
    quick, full = (suite.profiles[name] for name in ("quick", "full"))
    short, long = (drawn(suite, profile, SEATS)[0] for profile in (quick, full))
    assert {trial.load_s for trial in short} == {1.5}
    assert {trial.load_s for trial in long} == {10.0}
    assert max(trial.at_s for trial in long) > 5
    assert max(trial.at_s for trial in short) < 2


def test_trials_of_a_session_are_together_and_in_a_drawn_order() -> None:
    made, _ = plan()
    sessions = [trial.session for trial in made]
    assert sessions == sorted(sessions)
    first = [trial.fault for trial in made if trial.session == "s01"]
    assert first != [trial.fault for trial in made if trial.session == "s02"]


def test_what_no_bench_of_metal_can_do_is_told_as_left_out() -> None:
    made, left_out = plan(kind="hardware")
    assert not {"drive_unplug", "write_error"} & {trial.fault for trial in made}
    assert "drive_exchange on fusion: no way with mptsas on a hardware bench" in left_out


def test_a_fault_that_a_driver_keeps_from_the_drive_is_left_out() -> None:
    made, left_out = plan()
    assert {trial.adapter for trial in made if trial.fault == "host_reset"} == {"fusion"}
    assert "host_reset on vscsi: no way with virtio_scsi on a virtual bench" in left_out
    assert not usable_ways(FAULTS["flush_error"], "megaraid_sas", "virtual", None)
    assert usable_ways(FAULTS["flush_error"], "virtio_scsi", "virtual", None)


def test_an_error_of_a_read_is_brought_about_by_what_bench_and_drive_have() -> None:
    chosen = {
        (kind, driver): usable_ways(FAULTS["read_error"], driver, kind, None)[0].name
        for kind in ("virtual", "hardware")
        for driver in ("mpt3sas", "nvme")
    }
    assert chosen == {
        ("virtual", "mpt3sas"): "qmp_read_error",
        ("virtual", "nvme"): "qmp_read_error",
        ("hardware", "mpt3sas"): "sg_write_uncorrectable",
        ("hardware", "nvme"): "nvme_write_uncorrectable",
    }


def test_an_error_above_the_driver_is_brought_about_only_where_a_suite_names_it() -> None:
    fault = FAULTS["write_error"]
    assert usable_ways(fault, "mpt3sas", "hardware", None) == []
    assert [way.name for way in usable_ways(fault, "mpt3sas", "hardware", "dm_flakey")] == ["dm_flakey"]
    assert usable_ways(fault, "mpt3sas", "virtual", None)[0].name == "qmp_write_error"


def test_what_a_profile_spares_an_adapter_is_told_as_left_out() -> None:
    made, left_out = plan()
    assert {trial.adapter for trial in made if trial.fault == "device_reset"} == {"vscsi"}
    assert "device_reset on fusion: the profile leaves it out" in left_out


def test_a_profile_may_spare_every_adapter_a_fault() -> None:
    made, left_out = plan()
    assert "driver_reload" not in {trial.fault for trial in made}
    assert {f"driver_reload on {seat.alias}: the profile leaves it out" for seat in SEATS} <= set(left_out)
    suite = load_suite(SHIPPED)
    full, _ = drawn(suite, suite.profiles["full"], SEATS)
    assert "driver_reload" in {trial.fault for trial in full}


def test_a_drive_without_room_for_the_load_is_refused() -> None:
    suite = load_suite(SHIPPED)
    seats = [Seat("tiny", "mptsas", (("0x1", 1 << 20),))]
    with pytest.raises(BadInputError, match="room for load"):
        drawn(suite, suite.profiles["quick"], seats)


@pytest.mark.parametrize(
    ("lines", "tried"),
    [
        ((("quiet", "crashkernel=192M"), ("crashkernel=256M",)), True),
        ((("crashkernel=192M",), ("quiet",)), False),
        ((), False),
    ],
)
def test_a_dump_is_tried_where_every_drop_reserves_memory_for_a_crash_kernel(
    tmp_path: Path, lines: tuple[tuple[str, ...], ...], tried: bool
) -> None:
    file = tmp_path / "own.suite.yml"
    file.write_text(f"{OWN}  - {{fault: crash_dump, load: mine}}\n", encoding="utf-8")
    suite = load_suite(file)
    profile = suite.profiles[suite.profile_name()]
    made, left_out = drawn(suite, profile, SEATS[:1], kind="hardware", boot_lines=lines)
    assert ("crash_dump" in {trial.fault for trial in made}) is tried
    told = "crash_dump on fusion: os.cmdline of not every drop has a word crashkernel=…"
    assert left_out == (() if tried else (told,))
    # the bench goes down by it, and has lost its session's settings afterwards
    assert not tried or made[-1].fault == "crash_dump"


@pytest.mark.parametrize("fault", ["power_cut", "bench_reset", "bench_lost"])
@pytest.mark.parametrize("cuts_power", [True, False])
def test_a_real_bench_loses_its_power_where_its_inventory_can_remove_it(
    tmp_path: Path, fault: str, cuts_power: bool
) -> None:
    file = tmp_path / "own.suite.yml"
    file.write_text(f"{OWN}  - {{fault: {fault}, load: mine, away: 2s}}\n", encoding="utf-8")
    suite = load_suite(file)
    profile = suite.profiles[suite.profile_name()]
    made, left_out = drawn(suite, profile, SEATS[:1], kind="hardware", cuts_power=cuts_power)
    assert [WAYS[trial.way][1].where for trial in made if trial.fault == fault] == ["power"] * cuts_power
    assert any("`removes`" in reason for reason in left_out) is not cuts_power


def test_a_virtual_bench_goes_on_with_its_own_ways_where_it_has_them(tmp_path: Path) -> None:
    ways = [usable_ways(FAULTS[name], "mptsas", "virtual", None, cuts_power=True)[0].name for name in FALLEN]
    assert ways == ["qmp_log_writes", "qmp_reset", "power_absence"]
    named = usable_ways(FAULTS["power_cut"], "mptsas", "virtual", "power_removal", cuts_power=True)
    assert [way.name for way in named] == ["power_removal"]


FALLEN = ("power_cut", "bench_reset", "bench_lost")
RULES = {way.name for fault in FAULTS.values() for way in fault.ways if way.name.startswith("rule_")}


def test_an_adapter_without_hardware_takes_the_ways_that_name_its_driver_and_no_other() -> None:
    """It has no function of PCI to reset, and no drive that QEMU could pull, slow down or let fail."""
    usable = {way.name for fault in FAULTS.values() for way in usable_ways(fault, "scsi_debug", "virtual", None)}
    assert usable == RULES == {name for name in ACTS if name.startswith("rule_")}
    for way in ("qmp_read_error", "sg_reset_device"):
        assert not any(usable_ways(fault, "scsi_debug", "virtual", way) for fault in FAULTS.values())


@pytest.mark.parametrize("driver", ["mptsas", "virtio_scsi", "nvme", ""])
def test_no_other_adapter_takes_rules_also_where_a_suite_names_them(driver: str) -> None:
    for fault in FAULTS.values():
        assert not RULES & {way.name for way in usable_ways(fault, driver, "virtual", None)}
        assert not any(usable_ways(fault, driver, "virtual", way) for way in RULES)


def test_what_only_scsi_debug_can_fail_is_left_out_elsewhere_with_the_reason() -> None:
    suite = load_suite(suites_folder() / "recovery.suite.yml")
    profile = suite.profiles[suite.profile_name()]
    made, left_out = drawn(suite, profile, SEATS[:1])
    assert "failed_abort on fusion: no way with mptsas on a virtual bench" in left_out
    debug = Seat("debug", "scsi_debug", (("0x3", 64 << 20),))
    made, left_out = drawn(suite, profile, [debug])
    assert (len(made), left_out) == (len(suite.trials), ())
    assert {trial.way for trial in made} == RULES


PROGRAMS = suites_folder() / "conformance.suite.yml"
PROGRAM_SEATS = [
    Seat("fusion", "mptsas", (("f1", 1 << 30), ("f2", 1 << 30))),
    Seat("sym", "sym53c8xx", (("s1", 1 << 30),)),
    Seat("empty", "mptsas", ()),
]


def planned(suite: Suite, profile: str | None = None) -> list[PlannedProgram]:
    sessions = (("s01", "baseline"), ("s02", "candidate"))
    chosen = suite.profiles[suite.profile_name(profile)]
    return list(plan_programs(suite, chosen, PROGRAM_SEATS, sessions, bench="b")[0])


def test_the_shipped_suite_runs_each_program_in_both_arms_on_the_same_drive() -> None:
    suite = load_suite(PROGRAMS)
    assert {one.package for one in suite.programs.values()} == {"libiscsi-bin", "stress-ng", None}
    found = planned(suite)
    assert [(one.id, one.session, one.drive) for one in found] == [
        ("scsi.b.fusion.1.baseline", "s01", "f1"),
        ("scsi.b.sym.1.baseline", "s01", "s1"),
        ("scsi.b.fusion.1.candidate", "s02", "f1"),
        ("scsi.b.sym.1.candidate", "s02", "s1"),
    ]
    assert {one.program for one in planned(suite, "checkouts")} == {"fsx", "block"}
    assert len(planned(suite, "repeated")) == 12


def test_every_declared_format_has_a_parser() -> None:
    assert {*get_args(Program.model_fields["reads"].annotation)} == {*FORMATS, STATUS}


WRONG = Path(__file__).with_suffix(".wrong").read_text(encoding="utf-8")


def test_every_mistake_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.suite.yml"
    path.write_text(WRONG, encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        load_suite(path)
    told = [problem.removeprefix(f"{path}:") for problem in refused.value.problems]
    lines = [int(line.split(":", 1)[0]) for line in told]
    assert lines == [3, 3, 4, 5, 6, 10, 11, 12, 13, 15, 17, 17]
    for line, words in zip(
        told,
        (
            "placeholder {drvie}",
            "{checkout} without a checkout",
            *("'tapp'", "no time in programs.a.limit", "at least 1", "checkout 'blktests'"),
            *("report '../results.xml'", "unknown key 'restarts'", "key 'run' is missing in programs.c"),
            *("no program 'd'", "no fault '1e3'", "no load '0'"),
        ),
        strict=True,
    ):
        assert words in line, line
    assert "did you mean 'drive'" in told[0]


def test_a_suite_with_neither_trials_nor_programs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.suite.yml"
    path.write_text("name: x\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="this suite has nothing to run"):
        load_suite(path)


def test_a_sweep_spares_an_emulated_adapter_what_breaks_its_emulation_and_tells_it() -> None:
    """On hardware the same driver is sent all of it: what it cannot take there is a defect."""
    suite = load_suite(SHIPPED)
    seats = [Seat("mraid", "megaraid_sas", (("0x1", 1 << 30),))]
    told = {}
    for kind in ("virtual", "remote"):
        trials, _ = drawn(suite, suite.profiles["quick"], seats, kind)
        (trial,) = (one for one in trials if one.fault == "integrity")
        told[kind] = _trial(suite, trial)["load"]["sweep"]
    reads = {kind: {row[-1] for row in sweep["rows"]} for kind, sweep in told.items()}
    assert reads["remote"] - reads["virtual"] == {"verify"}
    assert (told["virtual"]["pieces"], told["remote"]["pieces"]) == (60, 0)
    lacks = {kind: {what for what, _ in sweep["lacks"]} for kind, sweep in told.items()}
    six = "READ(6) and WRITE(6) of 256 blocks"
    assert lacks["virtual"] - lacks["remote"] == {"read verify", "more than 60 pieces of memory in a command", six}
    commands = {kind: {(size, name) for size, _, name in sweep["commands"]} for kind, sweep in told.items()}
    assert commands["remote"] - commands["virtual"] == {("2^8", "read6"), ("2^8", "write6")}


def test_a_sweep_keeps_one_drive_busy_where_the_emulated_adapter_does_not_outlast_several() -> None:
    suite = load_suite(SHIPPED)
    drives = tuple((f"0x{number}", 1 << 30) for number in range(1, 5))
    seats = [Seat("sym", "sym53c8xx", drives), Seat("fusion", "mptspi", (("0x9", 1 << 30),))]
    beside = {}
    for kind in ("virtual", "remote"):
        trials, _ = drawn(suite, suite.profiles["quick"], seats, kind)
        trial = next(one for one in trials if one.fault == "integrity" and one.pair.split(".")[2] == "sym")
        sweep = _trial(suite, trial)["load"]["sweep"]
        beside[kind] = set(sweep["beside"])
        told = {what for what, _ in sweep["lacks"]}
        assert ("further drives of the adapter at the same time" in told) == (kind == "virtual")
    assert beside["virtual"] == {"0x9"}
    assert len(beside["remote"]) == 4


def test_before_a_power_cut_the_load_pauses_so_that_a_flush_comes_after_idle_time() -> None:
    suite = load_suite(SHIPPED)
    trials, _ = drawn(suite, suite.profiles["quick"], SEATS[1:])
    idles = {trial.fault: _trial(suite, trial)["load"].get("idles_s") for trial in trials}
    assert min(idles["power_cut"]) < 0.5 < max(idles["power_cut"])
    assert idles["device_reset"] == []
    # a sweep has its own
    assert idles["integrity"] is None


def test_the_kernels_own_users_are_on_top_of_the_drive_in_profile_full_and_told_as_left_out_elsewhere() -> None:
    suite = load_suite(SHIPPED)
    layers: dict[str, list[list[str]]] = {}
    for name in ("quick", "full"):
        profile = suite.profiles[name].model_copy(update={"repeats": 4, "faults": ("integrity",)})
        trials, _ = drawn(suite, profile, SEATS[1:])
        sweeps = [_trial(suite, trial)["load"]["sweep"] for trial in trials]
        layers[name] = sorted(sweep["layers"] for sweep in sweeps)
        told = [any("on top of the drive" in what for what, _ in sweep["lacks"]) for sweep in sweeps]
        assert told == [name == "quick"] * 4
    assert layers == {"quick": [[]] * 4, "full": [["btrfs"], ["crypt"], ["ext4"], ["integrity"]]}


SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
WITHOUT_WORKLOADS = (
    SUITE.partition("workloads:")[0]
    + "loads:"
    + SUITE.partition("\nloads:")[2].replace("cells: all, runtime: 2s, ramp: 500ms, ", "")
)
TWO = {**lab_hosts({"sym": 2, "mpt": 2}, bench="b1"), **lab_hosts({"sym": 2}, bench="b2")}


def plan_all_kinds(folder: Path, **changes: Any) -> PlannedCampaign:
    return make_plan(make_lab(folder, **{"hosts": TWO, "suite": SUITE, **changes}))


def refused(folder: Path, **changes: Any) -> list[str]:
    with pytest.raises(BadInputError) as told:
        plan_all_kinds(folder, **changes)
    return list(told.value.problems)


def test_each_bench_has_the_launches_trials_and_programs_of_its_own_adapters(tmp_path: Path) -> None:
    campaign = plan_all_kinds(tmp_path)
    planned = campaign.document["plan"]
    benches = {session["id"]: session["bench"] for session in planned["sessions"]}
    assert {(point["bench"], point["adapter"]) for point in planned["points"]} == {
        ("b1", "sym"), ("b1", "mpt"), ("b2", "sym"),
    }  # fmt: skip
    for kind in ("trials", "external"):
        turns = planned[kind]
        assert {(benches[turn["session"]], turn["adapter"], turn["arm"]) for turn in turns} == {
            (bench, adapter, arm)
            for bench, adapter in (("b1", "sym"), ("b1", "mpt"), ("b2", "sym"))
            for arm in ("baseline", "candidate")
        }
        assert len({turn["id"] for turn in turns}) == len(turns) == 2 * 2 * 3


def test_sessions_of_launches_come_first_and_a_batch_has_turns_of_one_mode(tmp_path: Path) -> None:
    campaign = plan_all_kinds(tmp_path, baseline=KERNEL, candidate=OTHER)
    for bench in ("b1", "b2"):
        sessions = [one for one in campaign.document["plan"]["sessions"] if one["bench"] == bench]
        assert [one.get("purpose", "") for one in sessions] == [*[""] * 4, *["trials"] * 4]
        assert [one["arm"] for one in sessions] == ["baseline", "candidate", "candidate", "baseline"] * 2
        assert [int(one["id"][-2:]) for one in sessions] == list(range(1, 9))
        batches = {batch["block"]: batch for batch in campaign.batches if batch["bench"] == bench}
        assert list(batches) == [block for one in sessions for block in one["blocks"]]
        for session in sessions:
            own = [batches[block] for block in session["blocks"]]
            kinds = {turn["kind"] for batch in own for turn in batch["turns"]}
            assert kinds == ({"trial", "program"} if session.get("purpose") else {"launch"})
            assert {batch["spool"] for batch in own} == ({"streamed"} if session.get("purpose") else {"durable"})
            for batch in own:
                attempt = {"turn": batch["turns"][0]["id"], "part": "all", "tag": "0" * 16}
                text = json.dumps({**batch, **({"attempt": attempt} if session.get("purpose") else {})})
                assert parse_batch(text).block == batch["block"]


def test_a_bench_goes_from_its_launches_to_its_trials_and_its_programs(tmp_path: Path) -> None:
    path = plan_run(make_lab(tmp_path, hosts=TWO, suite=SUITE), tmp_path / "runs").path
    assert path is not None
    run = read_run(path)
    assert {(turn.kind, turn.point) for turn in turns_of(run).planned} == {
        ("trial", "device_reset"),
        ("program", "scsi"),
    }
    assert run.suite.profile == "quick"
    done: list[str] = []
    while not isinstance(step := next_step(read_run(path), "b2"), Stop):
        if isinstance(step, Provision):
            assert step.spec["configuration"] == step.session.configuration
            append_event(path, "session_started", {"bench": "b2", "session": step.session.id, "boot_id": "x"})
        else:
            assert isinstance(step, RunBatch)
            done += [turn["kind"] for turn in read_batch(path, step.batch)["turns"]]
            named = {"bench": "b2", "session": step.session, "block": step.batch}
            append_event(path, "block_started", named)
            append_event(path, "block_finished", {**named, "outcome": "done", "samples": 0, "sha256": "0" * 64})
    assert list(dict.fromkeys(done)) == ["launch", "trial", "program"]
    assert (done.count("trial"), done.count("program")) == (4, 4)


def test_further_launches_are_made_of_launches_and_never_of_trials(tmp_path: Path) -> None:
    suite = SUITE.replace("sessions: 4", "sessions: 4, until: decided")
    path = plan_run(make_lab(tmp_path, hosts=TWO, suite=suite), tmp_path / "runs").path
    assert path is not None
    pattern = planned_pattern(read_run(path), "b1")
    assert pattern.common["spool"] == "durable"
    assert {point for (_, point), _ in pattern.launches} == {"seq_read[bs=4k]", "seq_read[bs=64k]"}


def test_trials_are_made_on_the_drops_as_they_are_whatever_a_suite_varies(tmp_path: Path) -> None:
    campaign = plan_all_kinds(tmp_path, suite=f"{SUITE}vary: {{drive.WCE: [0, 1]}}\n")
    sessions = {one["id"]: one for one in campaign.document["plan"]["sessions"]}
    specs = campaign.document["provision"]["b1"]
    assert set(specs) == {"baseline", "candidate", *(f"{a}[drive.WCE={n}]" for a in ("baseline", "candidate") for n in "01")}  # fmt: skip # noqa: E501
    assert {one["configuration"] for one in sessions.values() if one.get("purpose")} == {"baseline", "candidate"}
    assert not specs["candidate"]["drive"]
    assert all(names == ["WCE"] for names in specs["candidate"]["as_found"]["drive"].values())


def test_one_trial_is_repeated_alone_on_the_bench_that_has_it(tmp_path: Path) -> None:
    trials = plan_all_kinds(tmp_path).document["plan"]["trials"]
    wanted = next(trial for trial in trials if ".b2." in trial["id"])
    alone = plan_all_kinds(tmp_path, trial=wanted["id"], repeat=3)
    assert ([bench.bench.name for bench in alone.benches], len(alone.left_out)) == (["b2"], 1)
    assert alone.left_out[0].startswith("bench b1: nothing of suite all can be run on this bench")
    (problem,) = refused(tmp_path, trial=f"{wanted['id']}x", repeat=3)
    assert f"did you mean '{wanted['id']}'?" in problem
    document = plan_all_kinds(
        tmp_path, hosts=lab_hosts({"sym": 2}, bench="b2"), trial=wanted["id"], repeat=3
    ).document
    again = document["plan"]["trials"]
    assert [trial["id"] for trial in again] == [f"{wanted['id']}.r{number}" for number in (1, 2, 3)]
    assert [(trial["seed"], trial["at_s"]) for trial in again] == [(wanted["seed"], wanted["at_s"])] * 3
    assert (document["plan"]["points"], document["plan"]["external"]) == ([], [])
    assert document["plan"]["until_failure"]


def test_a_report_repeats_a_trial_on_its_bench_with_the_adapters_of_that(tmp_path: Path) -> None:
    path = plan_run(make_lab(tmp_path, hosts=TWO, suite=SUITE), tmp_path / "runs").path
    assert path is not None
    run = read_run(path)
    planned = [turn for turn in turns_of(run).planned if turn.kind == "trial"]
    records = [
        {"id": turn.id, "bench": turn.bench, "fault": turn.point, "adapter": turn.adapter, "arm": turn.arm}
        | {"outcome": "failed", "reasons": ["lost"], "timeline": [], "recovery_s": None}
        for turn in planned
        if turn.adapter == "sym"
    ]
    shown = show_trials(planned, records, run.document)
    commands = {folded.command for part in shown.parts for folded in part.folded}
    assert {"--adapters sym --limit b2" in command for command in commands if ".b2." in command} == {True}
    assert {"--adapters mpt,sym --limit b1" in command for command in commands if ".b1." in command} == {True}
    assert {row[1] for part in shown.parts if part.table for row in part.table.rows} == {"b1 sym", "b2 sym"}


def test_points_that_are_asked_for_are_measured_alone(tmp_path: Path) -> None:
    document = plan_all_kinds(tmp_path, points=("seq_read[bs=4k]",)).document
    assert "trials" not in document["plan"]
    assert {point["point"] for point in document["plan"]["points"]} == {"seq_read[bs=4k]"}
    told = refused(tmp_path, points=("seq_read[bs=4k]",), trial="x")
    assert told == ["--trial repeats one trial, and --point measures points alone; leave one of them out"]


def test_a_run_without_trials_and_programs_says_nothing_of_them(tmp_path: Path) -> None:
    whole = plan_all_kinds(tmp_path).document["plan"]
    suite = SUITE.partition("\nloads:")[0] + "\n" + "profiles: {quick: {cells: all, runtime: 2s}}\n"
    alone = plan_all_kinds(tmp_path, suite=suite).document["plan"]
    assert whole.keys() - alone.keys() == {"trials", "external", "left_out", "until_failure", "evidence"}


def test_time_of_trials_is_part_of_the_one_budget(tmp_path: Path) -> None:
    whole = plan_all_kinds(tmp_path)
    (bench,) = (one for one in whole.benches if one.bench.name == "b1")
    seconds = {line.what: line.seconds for line in bench.time}
    assert seconds["trials"] > sum(trial.load_s for trial in bench.turns.trials)
    assert bench.seconds == pytest.approx(sum(seconds.values()))
    (problem,) = refused(tmp_path, suite=WITHOUT_WORKLOADS, budget=20.0)
    assert "the budget of 20 s is too small: its trials alone are expected to take" in problem


def test_a_bench_of_files_measures_and_leaves_trials_out_and_is_refused_where_it_has_nothing_else(
    tmp_path: Path,
) -> None:
    local = lab_hosts({"sym": 2}, kind="local", bench="b2")
    for number, drive in enumerate(local["b2"]["storqual_adapters"]["sym"]["drives"]):
        drive.clear()
        drive.update({"file": f"/var/lib/storqual/targets/{number}", "size": "1GiB", "claim": True})
    hosts = {**lab_hosts({"sym": 2}, bench="b1"), **local}
    planned = plan_all_kinds(tmp_path, hosts=hosts).document["plan"]
    assert planned["left_out"] == ["b2: this bench has files for drives; trials and programs need adapters"]
    assert {session["bench"] for session in planned["sessions"] if session.get("purpose")} == {"b1"}
    suite = WITHOUT_WORKLOADS
    (problem,) = refused(tmp_path, hosts=hosts, suite=suite)
    assert problem.startswith("b2: nothing of suite all can be run on this bench: this bench has files for drives")


def test_requirements_of_trials_are_answered_by_their_checks(tmp_path: Path) -> None:
    suite = tmp_path / "all.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    assert load_suite(suite).requirements["REQ-1"].checks == ("trials.device_reset",)


def test_a_task_hangs_only_after_the_longest_wait_that_the_trials_make_themselves() -> None:
    trials, _ = plan()
    faults = [trial for trial in trials if trial.fault == "command_timeout"]
    assert faults
    # six sendings of thirty seconds each, from the end of the fault on
    assert hung_task_s(faults) > max(180 + trial.away_s for trial in faults)
    assert hung_task_s([trial for trial in trials if trial.fault in ("bench_reset", "integrity")]) == 120
    assert hung_task_s(()) == 120


@pytest.mark.parametrize("driver", ["fcoe", "iscsi_tcp", "nvme_tcp"])
def test_an_initiator_that_is_software_has_no_card_to_remove_and_a_card_no_fabric(driver: str) -> None:
    for fault in (
        *("adapter_removal", "driver_rebind", "function_reset", "link_reset", "drive_unplug"),
        "command_timeout",
    ):
        assert not usable_ways(FAULTS[fault], driver, "virtual", None), fault
    for fault in ("frame_delay", "frame_reorder", "frame_loss"):
        assert [way.scope for way in usable_ways(FAULTS[fault], driver, "virtual", None)] == ["bus"]
        assert not usable_ways(FAULTS[fault], "mptsas", "virtual", None)
    # the target of a virtual bench does not outlast one
    assert not usable_ways(FAULTS["loop_initialisation"], driver, "virtual", None)
    assert usable_ways(FAULTS["loop_initialisation"], "qla2xxx", "hardware", None)
