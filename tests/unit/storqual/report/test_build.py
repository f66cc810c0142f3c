# SPDX-License-Identifier: Apache-2.0
"""Reports of runs made for one question: what makes no report, and what stands out in one."""

import json
import re
from pathlib import Path

import pytest

from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual_core.kit.errors import BadInputError, StorqualError
from tests.support.judged_reports import PANIC, QUICK, judged, points_of
from tests.support.make_run import make_run
from tests.support.report_pages import read_page

pytestmark = pytest.mark.slow


def test_a_run_without_verdict_is_refused_with_the_remedy(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1])
    (run / "verdict.json").unlink()
    with pytest.raises(BadInputError, match="storqual judge"):
        build_report(run)


@pytest.mark.parametrize(
    "content", ['{"schema": "storqual.verdict/9"}', '{"schema": "storqual.verdict/1", "run": "x"}']
)
def test_a_verdict_of_another_run_or_version_is_refused(content: str, tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1])
    (run / "verdict.json").write_text(content)
    with pytest.raises(BadInputError, match="expected"):
        build_report(run)


def test_a_verdict_that_is_no_json_is_damage(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1])
    (run / "verdict.json").write_text("{")
    with pytest.raises(StorqualError, match="not JSON"):
        build_report(run)


def test_two_arms_of_one_build_are_said_to_be_that(tmp_path: Path) -> None:
    """Two kernels need not mean two drivers."""
    run = judged(tmp_path, points=QUICK[:1])
    document = json.loads((run / "run.json").read_text())
    for entry in document["provisioned"]:
        for driver in entry["drivers"].values():
            driver["srcversion"] = "46A8D31AF7A9CE4E0A6DDCA"
    (run / "run.json").write_text(json.dumps(document))
    assert "Both arms are the same build" in read_page(build_report(run)).header


def test_a_setting_that_was_not_read_back_as_declared_stands_out(tmp_path: Path) -> None:
    wrong = {"drive": "0x5", "name": "drive.WCE", "declared": 0, "before": 1, "read_back": 1, "proven": False}
    run = judged(tmp_path, points=QUICK[:1], settings={"candidate": [wrong]})
    rows = read_page(build_report(run)).section("arms").all("table", "settings")[0].all("tbody")[0].all("tr")
    assert "✕ not as declared" in rows[0].text()
    assert "NOT in effect" in rows[0].text()


def test_a_hole_is_named_as_one(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:2], missing=[f"sym/{QUICK[0]}"])
    page = read_page(build_report(run))
    assert f"sym {QUICK[0]} no reason was recorded" in page.section("coverage").text()
    assert page.section("figures").all("div", "bad")


def test_a_whole_matrix_is_drawn_as_curves_over_block_size(tmp_path: Path) -> None:
    run = judged(tmp_path, adapters=("sym",), points=points_of(workloads=("rand_read",), sizes=(4096, 16384, 65536)))
    section = read_page(build_report(run)).section("curves")
    captions = [node.text() for node in section.all("figcaption")]
    assert captions[:4] == [
        f"rand_read, {drives}, {depth}" for drives in ("1 drive", "4 drives") for depth in ("QD 1", "QD 16")
    ]
    assert {"4k", "64k", "block size"} <= {node.text() for node in section.all("figure")[0].all("text")}
    assert section.all("path", "s-candidate")


def test_a_session_that_holds_both_arms_provisions_both(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:2], design="interleaved", launches=2)
    text = read_page(build_report(run)).section("subject").text()
    assert "not provisioned" not in text


def test_a_crash_is_told_once_for_all_metrics_of_an_adapter(tmp_path: Path) -> None:
    run = judged(tmp_path, adapters=("sym",), points=QUICK[:3], missing=QUICK, required=("iops", "cpu_us_per_io"))
    entries = read_page(build_report(run)).section("problems").all("ol")[0].children
    assert len(entries) == 1
    assert "ERROR sym, IOPS and CPU time per I/O: 3 of 3 points" in entries[0].text()


def test_an_interval_without_bounds_keeps_the_table_readable(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1])
    verdict = json.loads((run / "verdict.json").read_text())
    verdict["criteria"][0]["ci95_percent"] = [-595935145525.5, 100.0]
    (run / "verdict.json").write_text(json.dumps(verdict))
    shown = read_page(build_report(run)).find("c0").text()
    assert "interval interval too wide" in shown
    assert "5.96e+11" not in shown


def test_an_arm_that_was_never_provisioned_differs_in_nothing(tmp_path: Path) -> None:
    setting = {"drive": "0x5", "name": "drive.WCE", "declared": 0, "before": 1, "read_back": 0, "proven": None}
    run = judged(tmp_path, points=QUICK[:1], settings={"baseline": [setting]})
    document = json.loads((run / "run.json").read_text())
    document["provisioned"] = [entry for entry in document["provisioned"] if entry["arm"] == "baseline"]
    (run / "run.json").write_text(json.dumps(document))
    page = read_page(build_report(run))
    assert "Kernel 6.1.0-47-amd64; the candidate was not provisioned" in page.header
    tables = {table.all("caption")[0].text(): table for table in page.section("arms").all("table")}
    for caption in ("Settings of both arms; differences first", "What the arms ran on"):
        assert "differs" not in tables[caption].all("tbody")[0].text()


def test_a_section_of_a_drop_that_is_a_list_of_one_has_a_plain_name(tmp_path: Path) -> None:
    """`driver.kernel.package`, not `driver.0.kernel.package`."""
    manifests = {
        arm: {"driver": [{"kernel": {"package": f"linux-image-{arm}"}}], "firmware": [{"file": "a"}, {"file": arm}]}
        for arm in ("baseline", "candidate")
    }
    run = judged(tmp_path, points=QUICK[:1], manifests=manifests)
    text = read_page(build_report(run)).section("subject").text()
    assert "driver.kernel.package linux-image-baseline" in text
    assert "firmware.1.file baseline" in text


def test_warnings_do_not_say_again_what_stands_above_them(tmp_path: Path) -> None:
    panicked = (
        "vbench: the kernel of the candidate panicked: [    4.519914] Kernel panic - not syncing: Fatal exception"
    )
    lost = {"kind": "kernel_panic", "bench": "vbench", "session": "s02", "arm": "candidate", "text": PANIC}
    run = judged(
        tmp_path,
        points=QUICK[:1],
        missing=QUICK[:1],
        events=[lost],
        warnings=[f"{panicked} in interrupt", "the fan of bay 3 is slow"],
    )
    warnings = read_page(build_report(run)).section("warnings").text()
    assert "the fan of bay 3 is slow" in warnings
    assert "Kernel panic" not in warnings


def test_a_hang_is_shown_with_what_ended_it_and_what_the_bench_showed_before(tmp_path: Path) -> None:
    where = {"bench": "vbench", "session": "s02", "arm": "candidate", "block": "s02-b01"}
    shown = "\n".join(["early", *(f"filler {number}" for number in range(60)), "task fio:12 blocked"])
    step = {"kind": "recovery_step", **where, "step": "look", "seconds": 40.0, "text": "sysrq w", "evidence": shown}
    hung = {"kind": "bench_hung", **where, "ended_by": "watchdog iTCO_wdt", "seconds": 95.0, "text": "no answer"}
    page = read_page(build_report(judged(tmp_path, points=QUICK[:1], events=[step, hung])))
    assert "ended after 95 s by watchdog iTCO_wdt" in page.section("problems").text()
    story = page.section("time").text()
    assert "task fio:12 blocked" in story
    assert "early" not in story


def test_checks_that_did_not_pass_stand_before_those_that_did(tmp_path: Path) -> None:
    checks = [
        {"id": f"{word.lower()}_check", "outcome": word, "reason": word} for word in ("PASS", "SKIPPED", "FAIL")
    ]
    page = read_page(build_report(judged(tmp_path, points=QUICK[:1], checks=checks)))
    rows = page.section("criteria").all("table", "checks")[0].all("tbody")[0].all("tr")
    assert [row.children[0].text() for row in rows] == ["fail_check", "pass_check", "skipped_check"]


def test_a_characterisation_counts_its_one_arm_and_speaks_of_no_candidate(tmp_path: Path) -> None:
    run = judged(tmp_path, points=QUICK[:1])
    document = json.loads((run / "run.json").read_text())
    del document["arms"]["baseline"]
    (run / "run.json").write_text(json.dumps(document))
    verdict = json.loads((run / "verdict.json").read_text())
    for row in verdict["criteria"]:
        row.update(against="absolute", outcome="PASS", reason="as asked", samples={"baseline": 0, "candidate": 2})
        row.update(shift_percent=None, ci95_percent=None, margin_percent=None)
    (run / "verdict.json").write_text(json.dumps(verdict))
    criteria = read_page(build_report(run)).section("criteria")
    assert "The dot is the" not in criteria.text()
    heads = [head.text() for head in criteria.all("table", "criteria")[0].all("th")]
    assert "Measured" in heads
    assert "Candidate" not in heads
    assert not re.search(r"\b0 \+", criteria.text())


def test_a_pass_says_what_was_compared_and_what_else_holds(tmp_path: Path) -> None:
    checks = [{"id": f"check_{number}", "outcome": "PASS", "reason": "well"} for number in range(3)]
    page = read_page(build_report(judged(tmp_path, points=QUICK[:2], noise=0.002, checks=checks)))
    assert page.root.all("p", "sentence")[0].text() == (
        "The candidate is shown to lose less than 3 % at all 4 required measurements; 3 checks passed."
    )


def test_one_criterion_is_not_spoken_of_as_several(tmp_path: Path) -> None:
    page = read_page(build_report(judged(tmp_path, points=QUICK[:1], adapters=("mpt",), noise=0.002)))
    assert page.root.all("p", "sentence")[0].text() == (
        "The candidate is shown to lose less than 3 % at the 1 required measurement."
    )


LOST = {"kind": "session_lost", "bench": "vbench", "session": "s01", "reason": "the bench was booted in between"}


@pytest.mark.parametrize("missing", [(), QUICK[1:2]], ids=["measured later", "never measured"])
def test_what_the_campaign_got_over_is_no_trouble_of_the_outcome(tmp_path: Path, missing: tuple[str, ...]) -> None:
    holes = {"missing": missing, "missing_in": ("baseline", "candidate")}
    page = read_page(build_report(judged(tmp_path, points=QUICK[:2], noise=0.002, events=[LOST], **holes)))
    happened = page.section("time").text()
    assert LOST["reason"] in happened
    assert ("Recovered: its launches were measured later." in happened) is (not missing)
    troubles = " ".join(problems.text() for problems in page.root.all("ol", "problems"))
    assert (LOST["reason"] in troubles) is bool(missing)


def test_the_share_of_settings_that_were_shown_in_effect_is_told(tmp_path: Path) -> None:
    entry = {"drive": "0x5", "declared": 1, "before": 1, "read_back": 1}
    sentences = [
        {**entry, "name": "drive.WCE", "proven": True, "proof": "a flush was sent"},
        {**entry, "name": "drive.NCS", "proven": None, "proof": "read back, effect not shown"},
        {**entry, "name": "drive.RCD", "declared": None, "proven": None, "proof": ""},
    ]
    run = make_run(tmp_path, settings=dict.fromkeys(("baseline", "candidate"), sentences), sessions=2)
    judge_run(run)
    text = read_page(build_report(run)).section("arms").text()
    assert "2 of 4 declared settings (50 %) were shown in effect" in text
    assert "drive.NCS (2): read back, effect not shown." in text
    assert "in effect: a flush was sent" in text
