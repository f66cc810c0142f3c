# SPDX-License-Identifier: Apache-2.0
"""Keywords over run directories: thresholds of a suite's own, and what a release manager wants to be true."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.checks.campaign_keywords import Percent, builds_phrase
from storqual.checks.seen import NotJudgedError, UndecidedError
from storqual.robot_library import StorqualLibrary
from storqual.run import Event
from tests.support.make_run import make_run
from tests.support.synthetic_shape import POINTS

QUIET: dict[str, Any] = {"noise": 0.002, "sessions": 8}


def about(tmp_path: Path, **options: Any) -> StorqualLibrary:
    return StorqualLibrary(run=str(make_run(tmp_path, **{**QUIET, **options})))


def test_an_equal_candidate_is_no_worse_and_a_slower_one_fails(tmp_path: Path) -> None:
    same = about(tmp_path / "same")
    same.workload_should_be_no_worse_than_baseline("*", margin=Percent.parse("5%"))
    same.workload_should_be_no_worse_than_baseline(POINTS[0])
    slower = about(tmp_path / "slower", adapters=("*HTML*<b>", "mpt"), effect={"*HTML*<b>": -0.1})
    with pytest.raises(AssertionError) as failed:
        slower.workload_should_be_no_worse_than_baseline("rand_*", margin=Percent.parse("5%"))
    assert str(failed.value).startswith(" *HTML*<b> rand_read["), "Robot Framework would take it for a page"
    slower.workload_should_be_no_worse_than_baseline("*", adapter="mpt")


def test_what_is_undecided_or_missing_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(UndecidedError, match="undecided"):
        about(tmp_path / "noise", noise=0.3, sessions=4).workload_should_be_no_worse_than_baseline("*")
    with pytest.raises(NotJudgedError, match="sym rand_read"):
        about(tmp_path / "hole", missing=[f"sym/{POINTS[0]}"]).workload_should_be_no_worse_than_baseline("*")
    plain = about(tmp_path / "plain")
    with pytest.raises(NotJudgedError, match="there is no metric 'iosp'"):
        plain.workload_should_be_no_worse_than_baseline("*", metric="iosp")
    with pytest.raises(NotJudgedError, match="no planned point"):
        plain.workload_should_be_no_worse_than_baseline("rand_raed")


def test_limits_have_units(tmp_path: Path) -> None:
    library = about(tmp_path)
    library.workload_should_reach("rand_read*", "iops", "100 IOPS")
    library.workload_should_not_exceed("*", "cpu_us_per_io", "1000 ms/IO".replace("ms", "us"))
    with pytest.raises(AssertionError, match="rand_read"):
        library.workload_should_reach("*", "iops", "1000 kIOPS")
    with pytest.raises(ValueError, match="a limit in"):
        library.workload_should_reach("*", "iops", "5 ms")


def test_a_percentage_is_written_with_its_sign() -> None:
    """`3` could be three hundred percent."""
    assert Percent.parse("3%") == pytest.approx(0.03)
    with pytest.raises(ValueError, match="%"):
        Percent.parse("3")


SIGN_OFF: dict[str, Callable[[StorqualLibrary], None]] = {
    "provisioned": StorqualLibrary.no_session_should_have_failed_to_be_provisioned,
    "builds": StorqualLibrary.each_drop_should_have_run_one_build,
    "settings": StorqualLibrary.every_setting_should_be_read_back_and_none_shown_without_effect,
    "measured": StorqualLibrary.every_planned_point_should_be_measured,
    "writes": StorqualLibrary.nothing_should_be_written_outside_claims,
    "restored": StorqualLibrary.what_was_provisioned_should_be_put_back,
    "inputs": StorqualLibrary.inputs_should_be_as_planned,
    "evidence": StorqualLibrary.evidence_should_be_complete,
}


@pytest.mark.parametrize("keyword", SIGN_OFF.values(), ids=list(SIGN_OFF))
def test_a_sound_campaign_passes(keyword: Callable[[StorqualLibrary], None], tmp_path: Path) -> None:
    keyword(about(tmp_path, sessions=4, settings={"candidate": [{**WRONG, "read_back": 0}]}))


HERE = {"bench": "vbench", "session": "s02"}
LOST = {**HERE, "kind": "session_lost", "reason": "the bench was booted"}
REFUSED = {**HERE, "kind": "provision_failed", "reason": "the bench did not boot"}
STARTED = {**HERE, "kind": "session_started", "boot_id": "boot-9"}


def test_what_a_resumed_campaign_got_over_is_no_trouble(tmp_path: Path) -> None:
    """A session whose launches were measured; one that started and measured something after it was refused."""
    about(tmp_path / "a", sessions=4, events=[LOST]).no_session_should_have_failed_to_be_provisioned()
    refused = {**REFUSED, "session": "s04"}
    about(tmp_path / "b", sessions=4, before_last=[refused]).no_session_should_have_failed_to_be_provisioned()


def test_a_session_that_is_only_said_to_have_started_is_trouble(tmp_path: Path) -> None:
    library = about(tmp_path, sessions=4, events=[REFUSED, STARTED])
    with pytest.raises(NotJudgedError, match=r"provision failed \(s02\): the bench did not boot"):
        library.no_session_should_have_failed_to_be_provisioned()


def test_a_lost_session_that_was_not_measured_is_trouble(tmp_path: Path) -> None:
    library = about(tmp_path, sessions=4, events=[LOST], missing=[POINTS[0]], missing_in=("baseline", "candidate"))
    with pytest.raises(NotJudgedError, match=r"session lost \(s02\): the bench was booted"):
        library.no_session_should_have_failed_to_be_provisioned()


WRONG = {"name": "drive.WCE", "drive": "0x1", "declared": 0, "before": 1, "read_back": 1}


@pytest.mark.parametrize(
    ("keyword", "options", "error", "message"),
    [
        (
            "provisioned",
            {"events": [{"kind": "provision_failed", "bench": "vbench", "session": "s02", "reason": "did not boot"}]},
            NotJudgedError,
            "provision failed (s02): did not boot",
        ),
        ("settings", {"settings": {"candidate": [WRONG]}}, AssertionError, "drive.WCE of 0x1 is 1, 0 is declared"),
        (
            "settings",
            {"settings": {"candidate": [{**WRONG, "read_back": 0, "proven": False, "proof": "no slower"}]}},
            AssertionError,
            "not in effect: no slower",
        ),
        ("measured", {"missing": [POINTS[0]]}, NotJudgedError, "no finished launch of the candidate"),
        ("writes", {"sectors_outside": 8}, NotJudgedError, "8 sectors"),
    ],
)
def test_one_thing_wrong_is_told(
    keyword: str, options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as failed:
        SIGN_OFF[keyword](about(tmp_path, sessions=4, **options))
    assert message in str(failed.value)


def test_changed_files_are_told(tmp_path: Path) -> None:
    run = make_run(tmp_path, sessions=4)
    suite, *_ = (run / "inputs").glob("suite.yml")
    suite.write_text(suite.read_text() + "# edited\n")
    first, second, *_ = sorted((run / "raw").iterdir())
    first.write_bytes(first.read_bytes()[:-1] + b"x")
    second.unlink()
    library = StorqualLibrary(run=str(run))
    with pytest.raises(NotJudgedError, match="the suite as planned"):
        library.inputs_should_be_as_planned()
    with pytest.raises(NotJudgedError) as failed:
        library.evidence_should_be_complete()
    assert f"raw/{first.name} has digest" in str(failed.value)
    assert f"raw/{second.name} is missing" in str(failed.value)


def changed(library: StorqualLibrary, change: Callable[[Event], Event | None]) -> StorqualLibrary:
    """The library with other events in its run; None leaves one out."""
    run = library.subject.run  # type: ignore[union-attr]
    run.__dict__["events"] = tuple(event for former in run.events if (event := change(former)) is not None)
    return library


def test_two_builds_under_one_name_are_two_drops(tmp_path: Path) -> None:
    """A kernel that changed between the sessions of an arm."""

    def other_kernel(event: Event) -> Event:
        if event.kind != "session_started" or event.text("session") != "s04":
            return event
        return replace(event, fields={**event.fields, "kernel": "6.1.0-48-amd64"})

    library = changed(about(tmp_path, sessions=4), other_kernel)
    with pytest.raises(NotJudgedError, match="its sessions ran several kernels"):
        library.each_drop_should_have_run_one_build()


def test_a_session_that_tells_no_build_of_a_driver_under_test_is_not_judged(tmp_path: Path) -> None:

    def silent(event: Event) -> Event:
        if event.kind != "session_started" or event.text("session") != "s03":
            return event
        builds = dict(event.fields["provisioned"]["drivers"])
        builds.pop("sym53c8xx")
        return replace(event, fields={**event.fields, "provisioned": {"drivers": builds}})

    library = changed(about(tmp_path, sessions=4), silent)
    with pytest.raises(NotJudgedError, match="no build of sym53c8xx is recorded in session s03"):
        library.each_drop_should_have_run_one_build()


def test_a_driver_without_a_version_is_said_to_be_compared_by_its_kernel_alone() -> None:
    built_in = {"srcversion": "", "version": ""}
    builds = {"sym53c8xx": {"srcversion": "A1", "version": ""}, "virtio_scsi": built_in}
    started = [Event("", "session_started", "b", {"provisioned": {"drivers": builds}})]
    message = builds_phrase(started, ["sym53c8xx", "virtio_scsi"])
    assert message == " and builds of sym53c8xx (virtio_scsi: no version is shown, only the kernel was compared)"
    assert builds_phrase(started, ["sym53c8xx"]) == " and builds of sym53c8xx"
    assert builds_phrase(started, []) == ""


def test_a_bench_that_was_not_restored_is_told(tmp_path: Path) -> None:

    def failed(event: Event) -> Event:
        fields = {**event.fields, "reason": "WCE is 0"}
        return replace(event, kind="restore_failed", fields=fields) if event.kind == "restored" else event

    with pytest.raises(NotJudgedError, match="not restored to its state before the run: WCE is 0"):
        changed(about(tmp_path / "failed", sessions=4), failed).what_was_provisioned_should_be_put_back()
    silent = changed(
        about(tmp_path / "silent", sessions=4), lambda event: None if event.kind == "restored" else event
    )
    with pytest.raises(NotJudgedError, match="no record says"):
        silent.what_was_provisioned_should_be_put_back()


@pytest.mark.parametrize(
    ("settings", "words"),
    [([{"name": "drive.WCE"}], ": 1 value read back"), ([], ": nothing had been changed"), (None, "")],
    ids=["one", "none", "not told"],
)
def test_how_many_values_were_put_back_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[dict[str, str]] | None, words: str
) -> None:
    messages: list[str] = []
    monkeypatch.setattr("storqual.checks.campaign_keywords.looked_at", messages.append)
    fields = {} if settings is None else {"settings": settings}
    changed(
        about(tmp_path, sessions=4),
        lambda event: replace(event, fields={**event.fields, **fields}) if event.kind == "restored" else event,
    ).what_was_provisioned_should_be_put_back()
    (text,) = messages
    assert text.startswith("the last restore succeeded (")
    assert text.endswith(f"){words}")


def test_only_a_pass_without_holes_may_be_signed(tmp_path: Path) -> None:
    run = make_run(tmp_path, sessions=4)
    library = StorqualLibrary(run=str(run))
    with pytest.raises(NotJudgedError, match="not judged yet"):
        library.verdict_should_permit_signing()
    fields = {"run": run.name, "as_of": "2026-11-21T10:00:00Z", "inputs": {}, "criteria": []}
    passed = {**fields, "exit_code": 0, "outcome": "PASS", "coverage": {"skipped": []}}
    hole = {"skipped": [{"adapter": "sym", "point": "p", "reason": ""}]}
    for changes, message in (
        ({"exit_code": 1, "outcome": "FAIL", "reason": "slower"}, "the outcome is FAIL: slower"),
        ({"coverage": hole}, "sym p was not measured"),
    ):
        (run / "verdict.json").write_text(json.dumps({**passed, **changes}))
        with pytest.raises(AssertionError, match=message):
            library.verdict_should_permit_signing()
    (run / "verdict.json").write_text(json.dumps(passed))
    library.verdict_should_permit_signing()
