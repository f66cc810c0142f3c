# SPDX-License-Identifier: Apache-2.0
"""The project's Robot suites as they are run: outcomes become checks, logs stay in the run, secrets stay nowhere."""

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from storqual.checks.robot_run import check_of
from storqual.cli import storqual
from storqual.judge.verdict import judge_run
from storqual.report import build_report
from storqual.robot_library import Target, publish_suites, run_suites, suite_files
from storqual.run import read_run
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.robot_benches import fingerprint, odd

pytestmark = pytest.mark.slow

CANARY = "correct-horse-battery-staple"


def test_every_suite_over_a_sound_run_becomes_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOT_OPTIONS", "--include nothing-at-all")
    run = make_run(tmp_path, finished=False, environment=fingerprint(), noise=0.002)
    assert publish_suites(run) == len(read_run(run).checks)
    checks = read_run(run).checks
    skipped = {check.id.partition("::")[2]: check.reason for check in checks if check.outcome == "SKIPPED"}
    assert skipped == {
        "Drive Firmware Is That Of The Inventory": "the inventory names the revision of no drive",
        "Every Declared Setting Was Read Back And None Shown Without Effect": (
            "the drops of the plan declare no setting of this bench"
        ),
    }
    passed = [check for check in checks if check.outcome == "PASS"]
    assert len(passed) == len(checks) - len(skipped)
    assert all(re.search(r"[0-9]|runs|digests of", check.reason) for check in passed), "each says what it looked at"
    assert {check.id.partition("::")[0] for check in checks} == {
        "bench_acceptance.robot",
        "driver_drop.robot",
        "sign_off.robot",
    }
    assert {(check.source, check.bench) for check in checks} == {("robot", "vbench")}
    for name in ("log.html", "report.html", "output.xml"):
        assert (run / "robot" / "vbench" / name).is_file()
    tests = ElementTree.parse(run / "robot" / "vbench" / "xunit.xml").getroot().findall(".//testcase")  # noqa: S314 - ours
    assert len(tests) == len(checks)
    (planned,) = [event for event in read_run(run).events if event.kind == "checks_planned"]
    assert planned.fields["checks"] == Counter(check.id for check in checks)
    assert planned.text("source") == "robot"
    assert planned.time <= min(check.fields["time"] for check in checks)
    verdict = judge_run(run)
    judged = [row for row in verdict["criteria"] if row["against"] == "check"]
    assert [row["id"] for row in judged] == [check.id for check in checks]
    assert 'href="robot/vbench/log.html"' in build_report(run).read_text(encoding="utf-8")


def test_a_miscabled_bench_fails_its_run_and_a_hole_is_an_error(tmp_path: Path) -> None:
    run = make_run(tmp_path, finished=False, environment=odd("mpt", 2, adapter="0000:00:05.0"), missing=["sym"])
    publish_suites(run)
    by_name = {check.id.partition("::")[2]: check for check in read_run(run).checks}
    assert by_name["Every Drive Is On Its Adapter And Port"].outcome == "FAIL"
    assert (
        "is on the adapter at 0000:00:05.0, not at 0000:00:06.0"
        in by_name["Every Drive Is On Its Adapter And Port"].reason
    )
    assert by_name["Nothing Planned Is Untested"].outcome == "ERROR"
    assert "no finished launch of the candidate" in by_name["Nothing Planned Is Untested"].reason


def test_a_target_is_asked_only_what_it_can_answer(tmp_path: Path) -> None:
    assert Target("b", "hardware", run=tmp_path).beside_the_point == ("live",)
    assert Target("b", "local", run=tmp_path).beside_the_point == ("live", "needs-adapters")
    assert Target("b", "virtual", inventories=("lab",)).beside_the_point == ("needs-run",)


def test_the_command_tells_each_check_and_its_exit_code(tmp_path: Path) -> None:
    run = make_run(tmp_path, finished=False, environment=fingerprint(), effect=-0.3, noise=0.002, sessions=8)
    argv = ["robot", "driver_drop", "sign_off", "--run", str(run), "--json"]
    answer = CliRunner().invoke(storqual, argv, standalone_mode=False)
    lines = {line["id"]: line for line in json.loads(answer.stdout)["checks"]["vbench"]}
    slower = lines["driver_drop.robot::No Workload Is Slower"]
    assert (answer.return_value, slower["outcome"]) == (1, "FAIL")
    assert "sign_off.robot::The Verdict Permits Signing" not in lines
    assert len(read_run(run).checks) == len(lines)
    judge_run(run)
    refused = CliRunner().invoke(storqual, argv, standalone_mode=False)
    assert isinstance(refused.exception, BadInputError)
    assert "--output" in str(refused.exception)
    again = CliRunner().invoke(storqual, [*argv, "--output", str(tmp_path / "logs")], standalone_mode=False)
    ids = [line["id"] for line in json.loads(again.stdout)["checks"]["vbench"]]
    assert "sign_off.robot::The Verdict Permits Signing" in ids
    assert len(read_run(run).checks) == len(lines), "a judged run is closed"


def test_a_suite_that_is_none_is_named_with_those_that_are() -> None:
    with pytest.raises(BadInputError) as refused:
        suite_files(["bench_acceptence", "nowhere.robot"])
    assert len(refused.value.problems) == 2
    assert "bench_acceptance, driver_drop, sign_off" in refused.value.problems[0]


def test_the_keyword_page_documents_every_keyword(tmp_path: Path) -> None:
    page = tmp_path / "keywords.json"
    CliRunner().invoke(storqual, ["keywords", str(page)], standalone_mode=False, catch_exceptions=False)
    keywords = {entry["name"]: entry for entry in json.loads(page.read_text())["keywords"]}
    assert {
        *("Adapter Should Run Driver", "Drive Write Cache Should Be"),
        *("Execution Throttle Should Be In Effect", "Workload Should Be No Worse Than Baseline"),
        "Kernel Log Should Be Clean",
    } <= set(keywords)
    assert all(entry["doc"].strip() for entry in keywords.values())
    untyped = [
        (name, argument["name"])
        for name, entry in keywords.items()
        for argument in entry["args"]
        if argument["type"] is None
    ]
    assert untyped == []


@pytest.mark.parametrize(
    ("status", "message", "outcome"),
    [
        ("PASS", "", "PASS"),
        ("SKIP", "no link is shown", "SKIPPED"),
        ("FAIL", "drive 0x1 is offline", "FAIL"),
        ("FAIL", "1 != 2", "FAIL"),
        ("FAIL", "NotJudgedError: nothing is on record", "ERROR"),
        ("FAIL", "UndecidedError: sym rand_read: undecided after 2 pairs", "INCONCLUSIVE"),
        ("FAIL", "ValueError: Argument 'margin' got value '3' that cannot be converted", "ERROR"),
        ("FAIL", "Setup failed:\nNotJudgedError: no bench answered", "ERROR"),
        ("FAIL", "Parent suite setup failed:\nno bench answered", "ERROR"),
        ("FAIL", "No keyword with name 'Adaptr Should Run' found.", "ERROR"),
        ("FAIL", "Variable '${BENCH}' not found.", "ERROR"),
    ],
)
def test_what_broke_is_an_error_and_what_was_found_wrong_a_fail(status: str, message: str, outcome: str) -> None:
    test = SimpleNamespace(
        status=status, message=message, source=Path("own.robot"), name="A Check", doc="", tags=["adapter:sym"]
    )
    check = check_of(test)
    assert (check.id, check.outcome, check.adapter) == ("own.robot::A Check", outcome, "sym")
    assert not check.reason.startswith(("NotJudgedError", "UndecidedError"))
    assert check.to_json("vbench").get("required", True) is (outcome != "SKIPPED")


def test_a_reason_stays_readable() -> None:
    message = "\n".join(f"drive {number} is offline" for number in range(12))
    check = check_of(
        SimpleNamespace(status="FAIL", message=message, source=Path("a.robot"), name="A", doc="", tags=[])
    )
    assert check.reason == ("drive 0 is offline; drive 1 is offline; drive 2 is offline; and 9 more in Robot's log")


SUITE = Path(__file__).with_name("test_suites.robot.txt").read_text(encoding="utf-8")

REDFISH = {
    "/redfish/v1/Systems": {"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]},
    "/redfish/v1/Systems/1": {"Id": "1", "Status": {"HealthRollup": "OK"}},
    "/redfish/v1/UpdateService/FirmwareInventory": {
        "Members": [{"@odata.id": "/redfish/v1/UpdateService/FirmwareInventory/BMC"}]
    },
    "/redfish/v1/UpdateService/FirmwareInventory/BMC": {"Id": "BMC", "Version": "2.10"},
}


@pytest.fixture
def bmc() -> Iterator[tuple[str, list[str]]]:
    """A management controller on this machine: its address, and the authorizations it was sent."""
    sent: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(str(self.headers.get("Authorization")))
            answer = REDFISH.get(self.path)
            self.send_response(200 if answer else 302)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(json.dumps(answer or {}).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", sent
    server.shutdown()
    server.server_close()


def test_a_password_reaches_the_controller_and_nothing_else(
    tmp_path: Path, bmc: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORQUAL_BMC_PASSWORD", CANARY)
    monkeypatch.setenv("NO_PROXY", "*")
    address, sent = bmc
    suite = tmp_path / "bmc.robot"
    suite.write_text(SUITE.replace("ADDRESS", address))
    checks = run_suites(Target("vbench"), [suite], tmp_path / "logs")
    assert [check.outcome for check in checks] == ["ERROR", "ERROR", "ERROR"]
    assert "has no 'RAID.1', only BMC" in checks[0].reason
    assert "302" in checks[1].reason
    assert "over https only" in checks[2].reason
    assert all(header.startswith("Basic ") for header in sent)
    for file in (tmp_path / "logs").iterdir():
        text = file.read_bytes()
        assert CANARY.encode() not in text, file
        assert all(header.removeprefix("Basic ").encode() not in text for header in sent), file
    assert os.environ["STORQUAL_BMC_PASSWORD"] == CANARY
