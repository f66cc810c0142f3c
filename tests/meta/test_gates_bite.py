# SPDX-License-Identifier: Apache-2.0
"""For each way a gate can be wrong there is a run directory that must not pass, and it does not."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from storqual.judge.verdict import judge_run
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS, SUITE

pytestmark = pytest.mark.slow

POINT = POINTS[1]
QUIET = {"noise": 0.003}
WCE = {"drive": "0x5000", "name": "drive.WCE", "declared": 0, "before": 1, "read_back": 0, "proven": True}
FINDING = {"kind": "adapter_reset", "count": 1, "lines": ["sym0: SCSI BUS reset detected."]}


def verdict_of(tmp_path: Path, **shape: Any) -> dict[str, Any]:
    return judge_run(make_run(tmp_path, **{**QUIET, **shape}))


def test_an_unchanged_run_passes(tmp_path: Path) -> None:
    """Else every other test here would prove nothing."""
    verdict = verdict_of(tmp_path)
    assert (verdict["outcome"], verdict["exit_code"]) == ("PASS", 0)


@pytest.mark.parametrize(
    ("what", "shape", "outcome", "code"),
    [
        ("a job that fio refused", {"statuses": {POINT: "refused"}}, "ERROR", 2),
        ("a job ended by a signal", {"statuses": {POINT: "killed"}}, "ERROR", 2),
        ("a job cut short", {"statuses": {POINT: "short"}}, "ERROR", 2),
        ("a job with an I/O error", {"statuses": {POINT: "io_error"}}, "ERROR", 2),
        ("a lost sample", {"statuses": {f"sym/{POINT}": "lost"}}, "ERROR", 2),
        ("no sample of the candidate", {"missing": [f"mpt/{POINT}"]}, "ERROR", 2),
        ("an adapter reset in a block", {"findings": [FINDING]}, "ERROR", 2),
        ("a command that ended with an error", {"errors": {"ioerr_cnt": 1}}, "ERROR", 2),
        ("a command that timed out", {"errors": {"iotmo_cnt": 1}}, "ERROR", 2),
        ("errors on the link of a drive", {"errors": {"invalid_dword_count": 12}}, "ERROR", 2),
        ("a defect that grew", {"smart": ({"grown_defects": 2}, {"grown_defects": 3})}, "ERROR", 2),
        ("a sector written outside the claims", {"sectors_outside": 1}, "ERROR", 2),
        ("a candidate that is 20 % slower", {"effect": -0.2}, "FAIL", 1),
        ("one slower point among good ones", {"effect": {f"sym/{POINT}": -0.15}}, "FAIL", 1),
        (
            "a kernel panic",
            {"events": [{"kind": "kernel_panic", "bench": "vbench", "text": "Kernel panic - not syncing: VFS"}]},
            "ERROR",
            2,
        ),
        (
            "a session that could not be provisioned",
            {
                "events": [
                    {"kind": "provision_failed", "bench": "vbench", "session": "s03", "reason": "no such kernel"}
                ]
            },
            "ERROR",
            2,
        ),
        (
            "a drive that was unplugged",
            {"events": [{"kind": "unplugged", "bench": "vbench", "drive": "0x5000"}]},
            "ERROR",
            2,
        ),
        (
            "a bench that was not restored",
            {"events": [{"kind": "restore_failed", "bench": "vbench", "reason": "WCE reads 0"}]},
            "ERROR",
            2,
        ),
        (
            "a hand-written check that failed",
            {"checks": [{"id": "cable", "outcome": "FAIL", "reason": "bent"}]},
            "FAIL",
            1,
        ),
        (
            "a hand-written check that broke",
            {"checks": [{"id": "cable", "outcome": "ERROR", "reason": "x"}]},
            "ERROR",
            2,
        ),
        ("noise that drowns the margin", {"noise": 0.3}, "INCONCLUSIVE", 2),
        (
            "a point that no arm measured",
            {"missing": [f"sym/{POINT}"], "missing_in": ("baseline", "candidate")},
            "ERROR",
            2,
        ),
        ("no sample at all", {"missing": POINTS, "missing_in": ("baseline", "candidate")}, "ERROR", 2),
        ("no sample of the baseline", {"missing": [f"mpt/{POINT}"], "missing_in": ("baseline",)}, "ERROR", 2),
        ("every point left out with a reason", {"skipped": dict.fromkeys(POINTS, "reserved")}, "ERROR", 2),
        ("a setting that was read back otherwise", {"settings": {"candidate": [WCE | {"read_back": 1}]}}, "ERROR", 2),
        (
            "a setting that is not in effect",
            {"settings": {"candidate": [WCE | {"proven": False, "proof": "writes did not slow down"}]}},
            "ERROR",
            2,
        ),
        ("the same in the baseline", {"settings": {"baseline": [WCE | {"proven": False}]}}, "ERROR", 2),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else None,
)
def test_it_does_not_pass(tmp_path: Path, what: str, shape: dict[str, Any], outcome: str, code: int) -> None:
    verdict = verdict_of(tmp_path, **shape)
    assert (verdict["outcome"], verdict["exit_code"]) == (outcome, code), what


def test_error_counters_speak_of_the_points_on_their_drive(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, errors={"ioerr_cnt": 3, "iotmo_cnt": 0})
    assert {entry["adapter"] for entry in verdict["criteria"] if entry["outcome"] == "ERROR"} == {"sym"}
    assert {entry["outcome"] for entry in verdict["criteria"] if entry["adapter"] == "mpt"} == {"PASS"}
    (told,) = {line for entry in verdict["criteria"] for line in entry["evidence"]}
    assert told.endswith("commands that ended with an error: 3 (ioerr_cnt) in batch s01-b01")


def test_defects_that_were_there_before_are_no_trouble(tmp_path: Path) -> None:
    old = ({"grown_defects": 7}, {"grown_defects": 7, "read.total_uncorrected_errors": 1})
    assert verdict_of(tmp_path, smart=old)["outcome"] == "PASS"


def test_the_failing_points_are_the_ones_that_lost(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, effect={f"sym/{POINT}": -0.2})
    failed = {(entry["adapter"], entry["point"]) for entry in verdict["criteria"] if entry["outcome"] == "FAIL"}
    assert failed == {("sym", POINT)}


def test_one_session_per_arm_never_decides(tmp_path: Path) -> None:
    assert verdict_of(tmp_path, sessions=2)["outcome"] == "INCONCLUSIVE"


def test_a_setting_in_effect_is_no_trouble(tmp_path: Path) -> None:
    settings = {arm: [WCE, WCE | {"name": "drive.RCD", "proven": None}] for arm in ("baseline", "candidate")}
    verdict = verdict_of(tmp_path, settings=settings)
    assert verdict["outcome"] == "PASS"
    sessions = verdict["settings"]["declared"] // 2
    others = [{"name": "drive.RCD", "count": sessions, "said": "read back, effect not shown"}]
    assert verdict["settings"] == {"declared": 2 * sessions, "shown": sessions, "others": others}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("suite.yml", "margin: 8%", "margin: 60%"),
        ("suite.yml", "against: baseline, required: true", "against: baseline, required: false"),
        ("gate.yml", "marginal_passes: false", "marginal_passes: true"),
        ("gate.yml", "name: strict", "name: strict\ninformative: ['*']"),
        ("candidate.drop.yml", "package", "package "),
    ],
)
def test_a_threshold_that_was_changed_after_the_plan_decides_nothing(
    name: str, old: str, new: str, tmp_path: Path
) -> None:
    run = make_run(tmp_path, effect=-0.2, gate="name: strict\nmarginal_passes: false\n", **QUIET)
    file = run / "inputs" / name
    assert old in file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    verdict = judge_run(run)
    assert (verdict["outcome"], verdict["exit_code"]) == ("ERROR", 2)
    assert f"inputs/{name}: found" in verdict["reason"]


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        ("{metric: iosp, against: baseline, required: true}", "did you mean 'iops'?"),
        ("{metric: iops, against: absolute, min: 5ms, required: true}", "5ms"),
        ("{metric: latency_p99_us, against: absolute, max: 3%, required: true}", "3%"),
    ],
)
def test_a_criterion_that_no_sample_can_answer_is_bad_input(criterion: str, said: str, tmp_path: Path) -> None:
    run = make_run(tmp_path, **QUIET)
    wrong = tmp_path / "wrong.suite.yml"
    wrong.write_text(SUITE.replace("{metric: iops, against: baseline, required: true}", criterion), encoding="utf-8")
    assert criterion in wrong.read_text(encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        judge_run(run, suite=wrong)
    assert said in str(caught.value)
    assert not list(run.rglob("verdict.json"))


@pytest.mark.parametrize("primitive", ["read_ios", "runtime_ns"])
def test_a_missing_primitive_is_an_error(tmp_path: Path, primitive: str) -> None:
    run = make_run(tmp_path, **QUIET)
    lines = [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    for sample in lines:
        sample["primitives"].pop(primitive, None)
        sample["series"] = {}
    (run / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    verdict = judge_run(run)
    assert verdict["outcome"] == "ERROR"


def test_a_stale_baseline_is_an_error(tmp_path: Path) -> None:
    run = make_run(tmp_path, **QUIET)
    gate = tmp_path / "gate.yml"
    gate.write_text("name: fresh\nbaseline_max_age: 30d\n", encoding="utf-8")
    soon, late = (datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC))
    assert judge_run(run, gate=gate, as_of=soon)["exit_code"] == 0
    verdict = judge_run(run, gate=gate, as_of=late)
    assert (verdict["outcome"], verdict["exit_code"]) == ("ERROR", 2)


def test_other_limits_never_overwrite_a_verdict(tmp_path: Path) -> None:
    run = make_run(tmp_path, effect=-0.03, **QUIET)
    first = judge_run(run)
    before = (run / "verdict.json").read_bytes()
    stricter = tmp_path / "stricter.suite.yml"
    stricter.write_text(
        SUITE.replace("margin: 8%, indifference: 2%", "margin: 2%, indifference: 1%"), encoding="utf-8"
    )
    second = judge_run(run, suite=stricter)
    assert first["exit_code"] == 0
    assert second["exit_code"] == 1
    assert (run / "verdict.json").read_bytes() == before
    assert [path.name for path in (run / "judgements").glob("*/verdict.json")] == ["verdict.json"]


WAIVER = Path(__file__).with_suffix(".waiver").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("loss", "when", "code", "word"),
    [
        (25, datetime(2026, 12, 1, tzinfo=UTC), 0, "with 1 waiver"),
        (5, datetime(2026, 12, 1, tzinfo=UTC), 1, "accepts a loss of 5 %"),
        (25, datetime(2027, 1, 1, tzinfo=UTC), 1, "expired"),
    ],
)
def test_a_waiver_counts_for_its_loss_and_until_its_day(
    tmp_path: Path, loss: int, when: datetime, code: int, word: str
) -> None:
    run = make_run(tmp_path, effect={f"sym/{POINT}": -0.2}, **QUIET)
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(WAIVER.format(point=POINT, loss=loss), encoding="utf-8")
    verdict = judge_run(run, waivers=waivers, as_of=when)
    assert verdict["exit_code"] == code
    assert any(word in warning for warning in verdict["warnings"])
    failed = [entry for entry in verdict["criteria"] if entry["outcome"] == "FAIL"]
    assert [bool(entry["waiver"]) for entry in failed] == [code == 0]


@pytest.mark.parametrize(
    ("scope", "word"),
    [
        ({"adapter": "mega"}, "matches no failure"),
        ({"drop": "27.*"}, "matches no failure"),
        ({"drop": "28.00..28.05"}, "matches no failure"),
        ({"suite": "other"}, "matches no failure"),
        ({"adapter": "*"}, "is wider than what failed: it covers 8 criteria, 1 failed"),
    ],
)
def test_a_waiver_that_says_more_or_something_else_is_reported(
    scope: dict[str, str], word: str, tmp_path: Path
) -> None:
    run = make_run(tmp_path, effect={f"sym/{POINT}": -0.2}, drops={"candidate": "28.10"}, **QUIET)
    waivers = tmp_path / "waivers.yml"
    point = "*" if scope == {"adapter": "*"} else POINT
    lines = WAIVER.format(point=point, loss=25).replace("- adapter: sym", f"- {json.dumps(scope)[1:-1]}")
    waivers.write_text(lines if "adapter" in scope else lines + "    adapter: sym\n", encoding="utf-8")
    verdict = judge_run(run, waivers=waivers, as_of=datetime(2026, 12, 1, tzinfo=UTC))
    assert any(word in warning for warning in verdict["warnings"]), verdict["warnings"]
    assert verdict["exit_code"] == (0 if "wider" in word else 1)


@pytest.mark.parametrize("drop", ["28.10", "28.*", "28.9..28.11", "*"])
def test_a_waiver_names_a_drop_or_a_range_of_them(drop: str, tmp_path: Path) -> None:
    """In a range numbers count as numbers: 28.10 comes after 28.9."""
    run = make_run(tmp_path, effect={f"sym/{POINT}": -0.2}, drops={"candidate": "28.10"}, **QUIET)
    waivers = tmp_path / "waivers.yml"
    waivers.write_text(WAIVER.format(point=POINT, loss=25) + f"    drop: '{drop}'\n", encoding="utf-8")
    assert judge_run(run, waivers=waivers, as_of=datetime(2026, 12, 1, tzinfo=UTC))["exit_code"] == 0


def test_the_command_ends_with_the_verdicts_code(tmp_path: Path) -> None:
    """`storqual judge` and the verdict say the same; a missing run is wrong use."""
    from click.testing import CliRunner  # noqa: PLC0415 - only this test needs the command line

    from storqual.cli.judge import judge_command  # noqa: PLC0415

    run = make_run(tmp_path, effect=-0.2, **QUIET)
    assert CliRunner().invoke(judge_command, [str(run), "--json"], standalone_mode=False).return_value == 1
    shutil.rmtree(run)
    assert CliRunner().invoke(judge_command, [str(run)]).exit_code != 0
