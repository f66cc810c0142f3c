# SPDX-License-Identifier: Apache-2.0
"""From a run directory to verdict.json: nothing that is missing passes, nothing that is decided moves."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storqual.judge.verdict import judge_run
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.judged_run import QUIET, judged, suite_with
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS, SUITE

pytestmark = pytest.mark.slow

KEYS = {
    *("id", "bench", "adapter", "point", "metric", "unit", "better", "against", "reference", "outcome"),
    *("reason", "candidate", "shift_percent", "ci95_percent", "margin_percent", "detectable_percent"),
    *("samples", "sessions", "waiver"),
}
POINT = POINTS[1]


def test_a_verdict_has_the_keys_that_others_rely_on(tmp_path: Path) -> None:
    verdict = judged(tmp_path)
    assert verdict["schema"] == "storqual.verdict/1"
    assert {"run", "outcome", "exit_code", "as_of", "inputs", "criteria", "coverage", "warnings"} <= set(verdict)
    assert verdict["sectors_written_outside_claims"] == 0
    assert all(set(entry) >= KEYS for entry in verdict["criteria"])
    written = json.loads(next(tmp_path.glob("*/verdict.json")).read_text(encoding="utf-8"))
    assert written == verdict


def test_a_pass_without_waivers_says_nothing_of_waivers(tmp_path: Path) -> None:
    verdict = judged(tmp_path, sessions=8)
    assert verdict["outcome"] == "PASS"
    assert not any("waive" in warning for warning in verdict["warnings"])


def test_an_odd_launch_is_left_out_and_named_with_its_longest_io(tmp_path: Path) -> None:
    """One launch of four stalled for 209 ms and lost 7 %: the pass stands, and says what it does not rest on."""
    path = make_run(tmp_path, design="interleaved", launches=4, noise=0.002)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    point = (lines[0]["adapter"], lines[0]["point"])
    odd = [
        sample for sample in lines if (sample["adapter"], sample["point"]) == point and sample["arm"] == "candidate"
    ][2]
    odd["primitives"].update(read_ios=int(0.93 * odd["primitives"]["read_ios"]), read_lat_max_ns=209_000_000)
    odd["series"]["iops"] = [0.93 * value for value in odd["series"]["iops"]]
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    entries = [entry for entry in judge_run(path)["criteria"] if entry["id"] == "iops"]
    odd_entry = next(entry for entry in entries if (entry["adapter"], entry["point"]) == point)
    assert (odd_entry["outcome"], odd_entry["samples"]["candidate"]) == ("PASS", 4)
    named = odd_entry["odd_launch"]
    assert (named["arm"], named["number"], named["sample"], named["longest_io_ms"]) == (
        "candidate",
        3,
        odd["id"],
        209,
    )
    assert 92 < named["of_others_percent"] < 94
    assert re.fullmatch(r"launch 3 of the candidate: 9[23]\.\d % of the others, longest I/O 209 ms", named["text"])
    assert named["text"] in odd_entry["reason"]
    assert all(entry["odd_launch"] is None for entry in entries if entry is not odd_entry)


def test_a_pass_says_what_it_excludes_on_its_own_side(tmp_path: Path) -> None:
    """The one-sided bound that the pass rests on, above the unacceptable loss and inside the interval's reach."""
    for entry in judged(tmp_path, design="interleaved", launches=6, noise=0.004)["criteria"]:
        if entry["outcome"] == "PASS" and entry["against"] == "baseline":
            assert -entry["margin_percent"] < entry["bound_percent"] < entry["shift_percent"]
            assert entry["ci95_percent"][0] < entry["bound_percent"]
            assert "is excluded: " in entry["reason"]


def test_points_with_few_pairs_lend_each_other_their_noise(tmp_path: Path) -> None:

    def width(folder: str, count: int) -> float:
        names = tuple(f"rand_read[bs=4k,drives=1,iodepth={number}]" for number in range(1, count + 1))
        shape = {"design": "interleaved", "launches": 2, "noise": 0.01, "points": names}
        entries = judged(tmp_path / folder, suite=suite_with("{metric: iops}"), **shape)["criteria"]
        return sum(entry["ci95_percent"][1] - entry["ci95_percent"][0] for entry in entries) / len(entries)

    assert width("many", 60) < 0.6 * width("few", 2)


def test_numbers_are_percent_and_negative_is_worse(tmp_path: Path) -> None:
    verdict = judged(tmp_path, effect=-0.05, cpu_effect=0.10)
    by_metric = {
        metric: [entry for entry in verdict["criteria"] if entry["metric"] == metric]
        for metric in ("iops", "cpu_us_per_io")
    }
    for entry in by_metric["iops"]:
        assert -7 < entry["shift_percent"] < -3
        assert entry["ci95_percent"][0] < entry["shift_percent"] < entry["ci95_percent"][1]
        assert entry["candidate"] < entry["reference"]
    for entry in by_metric["cpu_us_per_io"]:
        assert -12 < entry["shift_percent"] < -3
        assert entry["candidate"] > entry["reference"]
        assert entry["source"] == "cpuidle residency"


def test_the_unit_is_the_session_where_an_arm_has_its_own(tmp_path: Path) -> None:
    sessions = judged(tmp_path / "a", launches=2)["criteria"][0]
    assert sessions["unit_of_inference"] == "session"
    assert sessions["sessions"] == {"candidate": 2, "baseline": 2}
    assert sessions["samples"] == {"candidate": 4, "baseline": 4}
    pairs = judged(tmp_path / "b", design="interleaved", launches=3)["criteria"][0]
    assert pairs["unit_of_inference"] == "pair"
    assert pairs["outcome"] == "PASS"


@pytest.mark.parametrize("design", ["sessions", "interleaved"])
def test_a_campaign_that_stops_when_it_sees_enough_is_judged_by_the_sequential_rule(
    tmp_path: Path, design: str
) -> None:
    """Its looks cost error, so its intervals are wider than those of one planned look."""
    path = make_run(tmp_path, design=design, launches=4, sessions=8, **QUIET)
    once = judge_run(path)
    document = json.loads((path / "run.json").read_text(encoding="utf-8"))
    document["plan"]["looks"] = "every"
    (path / "run.json").write_text(json.dumps(document), encoding="utf-8")
    often = judge_run(path)

    def width(verdict: dict[str, Any]) -> float:
        return sum(entry["ci95_percent"][1] - entry["ci95_percent"][0] for entry in verdict["criteria"])

    assert {entry["outcome"] for entry in often["criteria"]} == {"PASS"}
    assert width(often) > width(once)


BROKEN = st.fixed_dictionaries(
    {},
    optional={
        "statuses": st.dictionaries(
            st.sampled_from(POINTS), st.sampled_from(["refused", "killed", "short", "io_error"])
        ),
        "missing": st.lists(st.sampled_from(POINTS), max_size=4),
        "sectors_outside": st.integers(0, 3),
        "findings": st.lists(st.just({"kind": "timeout", "lines": ["sd 0:0:0:0: timing out command"]}), max_size=1),
        "events": st.lists(
            st.sampled_from(
                [
                    {"kind": "kernel_panic", "bench": "vbench", "text": "Kernel panic - not syncing"},
                    {"kind": "unplugged", "bench": "vbench", "drive": "0x5000c50000000001"},
                    {"kind": "restore_failed", "bench": "vbench", "reason": "WCE reads 0"},
                ]
            ),
            max_size=2,
        ),
        "sessions": st.sampled_from([2, 4]),
        "effect": st.sampled_from([0.0, -0.2]),
    },
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shape=BROKEN)
def test_no_set_of_troubles_ever_passes(tmp_path_factory: pytest.TempPathFactory, shape: dict[str, Any]) -> None:
    verdict = judged(tmp_path_factory.mktemp("run"), **shape)
    broken = any(bool(value) for name, value in shape.items() if name != "sessions") or shape.get("sessions") == 2
    assert (verdict["exit_code"] == 0) == (not broken)
    for entry in verdict["criteria"]:
        assert entry["reason"]
        hurt = entry["point"] in (*shape.get("statuses", {}), *shape.get("missing", ()))
        assert not hurt or entry["outcome"] == "ERROR"


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
@pytest.mark.parametrize("primitive", ["read_bytes", "runtime_ns"])
def test_one_sample_without_a_primitive_is_an_error_at_its_point(tmp_path: Path, arm: str, primitive: str) -> None:
    path = make_run(tmp_path, suite=suite_with("{metric: throughput_mb_s}"), **QUIET)
    lines = [json.loads(line) for line in (path / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    hurt = next(line for line in lines if line["arm"] == arm and line["point"] == POINT)
    hurt["primitives"].pop(primitive)
    (path / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    verdict = judge_run(path)
    wrong = [entry for entry in verdict["criteria"] if entry["outcome"] == "ERROR"]
    assert [(entry["adapter"], entry["point"]) for entry in wrong] == [(hurt["adapter"], POINT)]
    assert hurt["id"] in wrong[0]["reason"] or primitive in wrong[0]["reason"]
    assert verdict["exit_code"] == 2


HERE = {"bench": "vbench"}
NO_SESSION = {**HERE, "kind": "provision_failed", "session": "s04", "reason": "the bench was reset"}
STARTED = {**HERE, "kind": "session_started", "session": "s04", "boot_id": "boot-9"}
UNTIDY = {**HERE, "kind": "restore_failed", "reason": "the bench was reset"}
BROKE = {**HERE, "kind": "failed", "message": "the bench was reset", "task": "Look before anything is touched"}
RESUMED = {"kind": "resumed"}


@pytest.mark.parametrize(
    ("trouble", "remedy"),
    [(NO_SESSION, STARTED), (UNTIDY, {**HERE, "kind": "restored"}), (BROKE, RESUMED)],
    ids=lambda event: event["kind"],
)
def test_what_a_resumed_campaign_got_over_is_a_warning(
    tmp_path: Path, trouble: dict[str, Any], remedy: dict[str, Any]
) -> None:
    """The last session is measured after it; what is only said to be over, by the same words, is an error."""
    over = judged(tmp_path / "over", before_last=[trouble, RESUMED])
    assert (over["outcome"], over["exit_code"]) == ("PASS", 0)
    assert any("the bench was reset" in warning for warning in over["warnings"])
    for name, events in (("said", [trouble, remedy]), ("not", [trouble])):
        assert judged(tmp_path / name, events=events)["outcome"] == "ERROR"
    again = judged(tmp_path / "again", before_last=[trouble, RESUMED], events=[trouble, remedy])
    assert again["outcome"] == "ERROR"


def test_the_panic_text_is_quoted_and_the_drive_named(tmp_path: Path) -> None:
    panic = {"kind": "kernel_panic", "bench": "vbench", "text": "[1.0] x\nKernel panic - not syncing: VFS: no root"}
    assert "Kernel panic - not syncing: VFS: no root" in judged(tmp_path / "a", events=[panic])["reason"]
    pulled = {"kind": "unplugged", "bench": "vbench", "drive": "0x5000c50015ea71a0"}
    assert "0x5000c50015ea71a0" in judged(tmp_path / "b", events=[pulled])["reason"]


def test_a_finding_that_names_its_launch_spoils_that_point_only(tmp_path: Path) -> None:
    finding = {"kind": "adapter_reset", "lines": ["sym0: SCSI BUS reset"], "launch": 0}
    verdict = judged(tmp_path, findings=[finding])
    wrong = {(entry["adapter"], entry["point"]) for entry in verdict["criteria"] if entry["outcome"] == "ERROR"}
    assert len(wrong) == 1
    assert verdict["exit_code"] == 2


def test_a_warning_of_the_log_counts_only_where_the_gate_requires_its_kind(tmp_path: Path) -> None:
    line = "mpi3mr0: unexpected reply of queue 7"
    finding = {"kind": "unclassified", "severity": "warning", "line": line, "lines": [line], "count": 2}
    path = make_run(tmp_path / "run", **QUIET, findings=[finding])
    assert judge_run(path)["outcome"] == "PASS"
    gate = tmp_path / "gate.yml"
    gate.write_text("name: strict\nrequired_log_findings: [timeout]\n", encoding="utf-8")
    assert judge_run(path, gate=gate)["outcome"] == "PASS"
    gate.write_text("name: strict\nrequired_log_findings: unclassified\n", encoding="utf-8")
    verdict = judge_run(path, gate=gate)
    assert verdict["outcome"] == "ERROR"
    assert line in verdict["reason"]
    gate.write_text("name: strict\nrequired_log_findings: [unclasified]\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="required_log_findings"):
        judge_run(path, gate=gate)


def test_an_unknown_metric_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    path = make_run(tmp_path, **QUIET)
    suite = path / "inputs" / "suite.yml"
    suite.write_text(SUITE.replace("metric: iops", "metric: latency_p99.9999_us"), encoding="utf-8")
    verdict = judge_run(path)
    entries = [entry for entry in verdict["criteria"] if entry["metric"] == "latency_p99.9999_us"]
    assert {entry["outcome"] for entry in entries} == {"ERROR"}
    assert "10 are needed" in entries[0]["reason"]


def test_an_informative_metric_that_is_not_there_decides_nothing(tmp_path: Path) -> None:
    criteria = ("{metric: iops}", "{metric: latency_p99.99_us, required: false, margin: 20%}")
    verdict = judged(tmp_path, suite=suite_with(*criteria))
    skipped = [entry for entry in verdict["criteria"] if entry["outcome"] == "SKIPPED"]
    assert {entry["metric"] for entry in skipped} == {"latency_p99.99_us"}
    assert verdict["exit_code"] == 0


def test_a_percentile_is_found_in_a_sessions_launches_together(tmp_path: Path) -> None:
    """Each launch of 2 s is too short for p99, four of them are not."""
    criteria = ("{metric: iops}", "{metric: latency_p99_us, margin: 30%, indifference: 5%}")
    verdict = judged(tmp_path, suite=suite_with(*criteria), launches=4, points=(POINTS[0],))
    entry = next(entry for entry in verdict["criteria"] if entry["metric"] == "latency_p99_us")
    assert entry["source"] == "launches of a session merged"
    assert entry["outcome"] == "PASS"
    counted = r"[1-9][0-9]*,[0-9]{3} I/Os of [0-9]+ launches, merged into [0-9]+ values"
    assert re.search(rf"; based on {counted} \(baseline: {counted}\)$", entry["reason"])


@pytest.mark.parametrize("against", ["absolute, max: 1s", "peers, margin: 90%"])
def test_a_percentile_against_anything_names_the_ios_and_launches_that_it_rests_on(
    tmp_path: Path, against: str
) -> None:
    verdict = judged(tmp_path, suite=suite_with("{metric: latency_p50_us, against: " + against + "}"))
    reasons = {entry["reason"] for entry in verdict["criteria"] if entry["metric"] == "latency_p50_us"}
    assert reasons
    assert all(re.search(r"; based on [0-9,]+ I/Os of [0-9]+ launches$", reason) for reason in reasons), reasons


def test_limits_are_held_or_broken_by_the_interval(tmp_path: Path) -> None:
    levels = {
        entry["point"]: entry["candidate"] for entry in judged(tmp_path / "a")["criteria"] if entry["id"] == "iops"
    }
    level = levels[POINTS[0]]

    def outcome(limit: str, **shape: Any) -> str:
        at = "workloads: [rand_read], at: {bs: [4k], drives: [1], iodepth: [1]}"
        suite = suite_with("{metric: iops}", f"{{id: limit, metric: iops, against: absolute, {limit}, {at}}}")
        folder = tmp_path / str(abs(hash((limit, str(shape)))))
        entries_of_limit = [
            entry for entry in judged(folder, suite=suite, **shape)["criteria"] if entry["id"] == "limit"
        ]
        assert entries_of_limit[0]["reference"] is not None
        return str(entries_of_limit[0]["outcome"])

    assert outcome(f"min: {0.9 * level:.0f} IOPS") == "PASS"
    assert outcome(f"max: {0.9 * level:.0f} IOPS") == "FAIL"
    assert outcome(f"min: {level:.0f} IOPS", noise=0.05) == "INCONCLUSIVE"
    assert outcome(f"min: {0.97 * level:.0f} IOPS, marginal: 10%") == "MARGINAL"


def test_counts_have_their_own_rule(tmp_path: Path) -> None:
    suite = suite_with("{metric: iops}", "{metric: io_errors_per_tb, margin: 10%}")
    verdict = judged(tmp_path, suite=suite)
    entries = [entry for entry in verdict["criteria"] if entry["metric"] == "io_errors_per_tb"]
    assert {entry["outcome"] for entry in entries} == {"PASS"}
    sentence = "none was seen in 2 launches of the candidate (in less than 77.6 % of launches at 95 %), in 0 of 2"
    assert sentence in entries[0]["reason"]


def test_a_candidate_that_stalls_fails_and_says_in_how_many_launches(tmp_path: Path) -> None:
    """Every launch of the candidate at one point stands still for a second."""
    suite = suite_with("{metric: iops, required: false}", "{metric: longest_stall_s, margin: 20%}")
    run = make_run(tmp_path, suite=suite, points=POINTS[:2], design="interleaved", launches=9, runtime_s=5.0, **QUIET)
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["arm"] == "candidate" and line["point"] == POINTS[0]:
            line["series"]["iops"][2] = 0.0
    (run / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    by_point = {entry["point"]: entry for entry in judge_run(run)["criteria"] if entry["metric"] == "longest_stall_s"}
    assert {point: entry["outcome"] for point, entry in by_point.items()} == {POINTS[0]: "FAIL", POINTS[1]: "PASS"}
    seen = "seen in 9 of 9 launches of the candidate and 0 of 9 of the baseline, 1.000 s against 0 s"
    assert seen in by_point[POINTS[0]]["reason"]


def test_a_loss_everywhere_is_a_finding_beside_the_verdicts(tmp_path: Path) -> None:
    verdict = judged(tmp_path, effect=-0.02)
    assert verdict["exit_code"] == 0
    shifts = [finding for finding in verdict["overall"] if finding["metric"] == "iops"]
    assert {finding["adapter"] for finding in shifts} == {"sym", "mpt"}
    assert all(finding["ci95_percent"][1] < 0 for finding in shifts)


@pytest.mark.parametrize("points", [60])
def test_one_bad_point_in_a_large_matrix_is_found_and_no_other_blamed(tmp_path: Path, points: int) -> None:
    """Holm does not hide a loss of 12 % among many unchanged points."""
    names = tuple(f"rand_read[bs=4k,drives=1,iodepth={number}]" for number in range(1, points + 1))
    verdict = judged(tmp_path, points=names, effect={f"sym/{names[7]}": -0.12}, noise=0.005)
    failed = [(entry["adapter"], entry["point"]) for entry in verdict["criteria"] if entry["outcome"] == "FAIL"]
    assert failed == [("sym", names[7])]
    assert verdict["exit_code"] == 1


def test_a_damaged_sample_stops_the_judge(tmp_path: Path) -> None:
    path = make_run(tmp_path, **QUIET)
    data = (path / "samples.jsonl").read_bytes()
    (path / "samples.jsonl").write_bytes(b'{"schema": "storqual.sample/1"}\n' + data)
    with pytest.raises(StorqualError, match=r"samples\.jsonl:1"):
        judge_run(path)


def test_a_sample_seen_twice_stops_the_judge(tmp_path: Path) -> None:
    path = make_run(tmp_path, **QUIET)
    data = (path / "samples.jsonl").read_bytes()
    (path / "samples.jsonl").write_bytes(data + data.splitlines(keepends=True)[0])
    with pytest.raises(StorqualError, match="twice"):
        judge_run(path)


def test_no_run_directory_is_bad_input(tmp_path: Path) -> None:
    """Exit code 3, not a traceback."""
    with pytest.raises(BadInputError):
        judge_run(tmp_path)


def test_what_an_emulation_cannot_answer_is_skipped_with_the_reason(tmp_path: Path) -> None:
    criterion = (
        "  - {id: port, metric: iops, against: absolute, min: 1, required: false, hardware_only: no real port}\n"
    )
    suite = SUITE.replace("profiles:", criterion + "profiles:")
    outcomes = {}
    for kind in ("virtual", "hardware"):
        run = make_run(tmp_path / kind, suite=suite, kind=kind)
        rows = [row for row in judge_run(run)["criteria"] if row["id"] == "port"]
        outcomes[kind] = {(row["outcome"], row["reason"].startswith("needs hardware: no real port")) for row in rows}
    assert outcomes["virtual"] == {("SKIPPED", True)}
    assert {outcome for outcome, _ in outcomes["hardware"]} <= {"PASS", "MARGINAL"}


def test_what_is_required_on_hardware_is_told_and_decides_nothing_on_an_emulation(tmp_path: Path) -> None:
    criterion = "  - {id: port, metric: iops, against: absolute, min: 9000000, required: hardware}\n"
    suite = SUITE.replace("profiles:", criterion + "profiles:")
    outcomes = {}
    for kind in ("virtual", "hardware"):
        verdict = judge_run(make_run(tmp_path / kind, suite=suite, kind=kind))
        (row, *_) = [row for row in verdict["criteria"] if row["id"] == "port"]
        outcomes[kind] = (row["outcome"], row["required"], verdict["outcome"] == "FAIL")
    assert outcomes == {"virtual": ("FAIL", False, False), "hardware": ("FAIL", True, True)}


def test_that_both_drops_declare_the_same_is_in_the_verdict(tmp_path: Path) -> None:
    def warned(*, identical: bool) -> bool:
        run = make_run(tmp_path / str(identical))
        document = json.loads((run / "run.json").read_text(encoding="utf-8"))
        document["plan"]["designs"] = {bench: {"identical": identical} for bench in document["benches"]}
        (run / "run.json").write_text(json.dumps(document), encoding="utf-8")
        sentence = "both drops declare the same: this run compares the bench with itself"
        return any(sentence in warning for warning in judge_run(run)["warnings"])

    assert [warned(identical=True), warned(identical=False)] == [True, False]
