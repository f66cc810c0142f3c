# SPDX-License-Identifier: Apache-2.0
"""The technician's sheet: what is claimed, what is there, what nobody looked at."""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from storqual.base.table import Table
from storqual.bench.ansible_run import Answers
from storqual.bench.drift import Drift
from storqual.cli.sheet import sheet_command
from storqual.history.past_runs import last_results
from storqual.inputs.inventory import Bench
from storqual.report.sheet import make_sheet, render_sheet
from storqual_core.facts.bench_facts import read_facts
from storqual_core.kit.errors import BadInputError
from tests.golden import FOLDER
from tests.golden.sheet import FACTS, bench_of
from tests.support.bench_tree import STATE
from tests.support.fabric_tree import INITIATOR, LUN, TARGET, fc_bench
from tests.support.replay import Tools

MADE = "2026-11-21 12:00 UTC"


def column(table: Table, head: str) -> list[str]:
    return [str(row[table.heads.index(head)]) for row in table.rows]


def test_only_what_is_claimed_may_be_destroyed() -> None:
    sheet = make_sheet(bench_of(), FACTS, made=MADE)
    (card,) = sheet.adapters
    assert ["DESTROY" in text for text in column(card.drives, "tests may")] == [True, False, True]
    assert column(sheet.undeclared, "WWN") == ["0x5000c50000000004"]
    assert column(sheet.undeclared, "tests may") == ["not write"]
    assert sheet.claimed == 2


def test_what_is_there_is_told_beside_what_is_declared() -> None:
    sheet = make_sheet(bench_of(), FACTS, made=MADE)
    (card,) = sheet.adapters
    assert column(card.drives, "state") == [
        "running, 1234 h; reference drive",
        "running, reports that it is FAILING, 65592 h",
        "MISSING",
    ]
    first = dict(zip(card.drives.heads, map(str, card.drives.rows[0]), strict=True))
    assert first["place"] == "shelf 1, bay 0"
    assert first["settings"] == "write back, depth 32, scheduler none"
    assert first["size"] == "73.4 GB"
    assert dict(card.facts)["link"] == "5.0 GT/s x4, possible 8.0 GT/s x8"
    assert dict(card.facts)["firmware"] == "bios 8.37, firmware 16.00.01.00"
    assert sheet.differences is not None
    assert any("0x5000c50000000003" in line for line in sheet.differences)


def test_what_nobody_looked_at_is_said_to_be_so() -> None:
    sheet = make_sheet(bench_of(), None, made=MADE, drop="d")
    assert (sheet.differences, sheet.drift, sheet.last) == (None, None, None)
    assert all(state.startswith("not read") for state in column(sheet.adapters[0].drives, "state"))
    page = render_sheet(sheet)
    assert "Not looked at: the bench did not answer." in page
    assert "Not compared: the bench could not be looked at." in page
    assert "No judged run of this bench was found." in page
    assert "as declared" not in page


def ticked(facts: dict[str, Any] | None) -> list[str]:
    """What facts tick on the checklist of a bench of hardware."""
    hardware = bench_of().model_copy(update={"kind": "hardware"})
    return [check.seen for check in make_sheet(hardware, facts, made=MADE).checklist if check.seen]


def test_what_only_a_person_can_do_is_ticked_by_facts_alone() -> None:
    assert not ticked(None)
    dog = {"name": "watchdog0", "identity": "iTCO_wdt", "hardware": True, "timeout_s": 60, "armed": True}
    seen = {
        **FACTS,
        "watchdogs": [dog],
        "kernel": {**FACTS["kernel"], "cmdline": "quiet console=tty0 console=ttyS0,115200n8"},
        "kind": {**FACTS["kind"], "kdump": {**FACTS["kind"]["kdump"], "value": "loaded"}},
    }
    told = "; ".join(ticked(seen))
    assert all(word in told for word in ("iTCO_wdt", "ttyS0", "crash kernel"))
    # softdog is no switch of the board's, and the screen is no serial port
    blind = {
        **seen,
        "watchdogs": [{**dog, "hardware": False}],
        "kernel": {**FACTS["kernel"], "cmdline": "console=tty0"},
    }
    assert not any(word in "; ".join(ticked(blind)) for word in ("iTCO_wdt", "tty"))
    # the bench has drives missing, so nobody says that its cables are right
    assert "adapters and drives" not in told


def test_a_virtual_bench_has_no_work_for_a_person() -> None:
    assert not make_sheet(bench_of().model_copy(update={"kind": "virtual"}), FACTS, made=MADE).checklist


def test_a_full_shelf_gets_small_type() -> None:
    assert 'class="dense"' not in render_sheet(make_sheet(bench_of(), FACTS, made=MADE))
    many = [{**FACTS["drives"][2], "wwn": f"0x5000c500000001{number:02x}"} for number in range(24)]
    assert 'class="dense"' in render_sheet(make_sheet(bench_of(), {**FACTS, "drives": many}, made=MADE))


class _Nodes(HTMLParser):
    """The elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [tag, *(name for name, _ in attrs if name.startswith("on"))]


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "{{ 7*7 }}", "\x1b[2J", "\u202e"]
)
def test_text_of_devices_is_only_text(text: str) -> None:
    drives = [{**drive, "model": text, "vendor": text, "position": text} for drive in FACTS["drives"]]
    facts = {**FACTS, "drives": drives, "machine": dict.fromkeys(FACTS["machine"], text)}
    page = render_sheet(make_sheet(bench_of(), facts, made=MADE, drop=text, drift=(text,)))
    nodes = _Nodes()
    nodes.feed(page)
    assert not {"script", "img", "onerror"} & set(nodes.found)
    assert "49" not in page.split("</style>")[1]
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_the_last_judged_run_of_a_bench_is_found(tmp_path: Path) -> None:
    for name, created in (
        ("r1", "2026-11-20T00:00:00Z"),
        ("r2", "2026-11-21T00:00:00Z"),
        ("r3", "2026-11-22T00:00:00Z"),
    ):
        shutil.copytree(FOLDER / ("fail" if name == "r2" else "pass"), tmp_path / name)
        path = tmp_path / name / "run.json"
        body = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**body, "run": name, "created": created}), encoding="utf-8")
    (tmp_path / "r3" / "verdict.json").unlink()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{", encoding="utf-8")
    last = last_results(tmp_path)["vbench"]
    assert (last.run, last.outcome, last.candidate) == ("r2", "FAIL", "candidate")
    assert dict(last.outcomes)["FAIL"] >= 1
    assert last_results(tmp_path / "nowhere") == {}


def test_criteria_on_the_reference_drive_are_told(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "pass", tmp_path / "r1")
    path = tmp_path / "r1" / "run.json"
    body = json.loads(path.read_text(encoding="utf-8"))
    body["benches"]["vbench"]["reference"] = body["plan"]["points"][0]["drives"][0]
    path.write_text(json.dumps(body), encoding="utf-8")
    reference = last_results(tmp_path)["vbench"].reference
    assert reference
    assert all("rand_read" in criterion for criterion, _, _ in reference)


def lab(folder: Path) -> dict[str, Any]:
    """An inventory with the bench, and its facts as `storqual facts --json` prints them."""
    bench = bench_of().model_dump(mode="json", exclude_none=True, by_alias=True)
    bench.pop("name")
    (folder / "hosts.yml").write_text(json.dumps({"benches": {"hosts": {"bench01": bench}}}), encoding="utf-8")
    (folder / "facts.json").write_text(json.dumps({"bench01": FACTS}), encoding="utf-8")
    return bench


def test_the_command_writes_a_page_per_bench(tmp_path: Path) -> None:
    lab(tmp_path)
    words = ["-i", str(tmp_path / "hosts.yml"), "--facts", str(tmp_path / "facts.json"), "-o", str(tmp_path / "out")]
    ended = CliRunner().invoke(sheet_command, [*words, "--runs", str(tmp_path / "runs"), "--json"])
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.output) == {
        "sheets": {"bench01": str(tmp_path / "out" / "bench01.html")},
        "not looked at": [],
    }
    assert "2 drives may be destroyed" in (tmp_path / "out" / "bench01.html").read_text(encoding="utf-8")


def test_a_file_that_holds_no_facts_is_refused(tmp_path: Path) -> None:
    lab(tmp_path)
    for text in ("{", '{"bench01": {}}'):
        (tmp_path / "facts.json").write_text(text, encoding="utf-8")
        ended = CliRunner().invoke(
            sheet_command, ["-i", str(tmp_path / "hosts.yml"), "--facts", str(tmp_path / "facts.json")]
        )
        assert "--facts takes the output of `storqual facts --json`" in str(ended.exception)


def test_a_drop_with_a_mistake_is_refused_before_any_bench_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab(tmp_path)
    (tmp_path / "drops").mkdir()
    (tmp_path / "drops" / "next.yml").write_text("name: next\ndrivr: {}\n", encoding="utf-8")
    monkeypatch.setattr("storqual.bench.ansible_run.run_playbook", lambda *_, **__: pytest.fail("a bench was asked"))
    for drop, message in (("next", "drivr"), ("typo", "unknown drop 'typo'")):
        ended = CliRunner().invoke(sheet_command, ["-i", str(tmp_path / "hosts.yml"), "--drop", drop])
        assert isinstance(ended.exception, BadInputError)
        assert message in str(ended.exception)


def test_each_step_that_asks_benches_is_told_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vendor tool or a busy control node may take minutes: a silent terminal would look as if it hung."""
    lab(tmp_path)
    (tmp_path / "drops").mkdir()
    (tmp_path / "drops" / "next.yml").write_text("name: next\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "storqual.bench.ansible_run.ask_every_bench", lambda *_, **__: Answers({"bench01": FACTS}, {})
    )
    monkeypatch.setattr("storqual.bench.drift.look_for_drift", lambda *_, **__: Drift({"bench01": []}, {}))
    ended = CliRunner().invoke(sheet_command, ["-i", "hosts.yml", "--drop", "next"])
    assert ended.exit_code == 0, ended.output
    assert ended.stderr.splitlines() == [
        "storqual: reading the facts of the benches ...",
        "storqual: comparing the benches with next ...",
    ]
    assert ended.stdout.splitlines() == ["sheets/bench01.html"]


def test_ports_and_paths_of_a_fabric_are_on_the_sheet(tmp_path: Path) -> None:
    facts = read_facts(fc_bench(tmp_path).machine, state_dir=STATE, runner=Tools({}))
    adapters = {"fc0": {"model": "QLE2672", "driver": "qla2xxx", "pci": "0000:00:05.0", "drives": [{"wwn": LUN}]}}
    bench = Bench.model_validate({"name": "b", "storqual_kind": "hardware", "storqual_adapters": adapters})
    page = render_sheet(make_sheet(bench, facts, made=MADE))
    assert f"{INITIATOR} Online, 16 Gbit" in page
    assert f"{INITIATOR} to {TARGET}, LUN 0, active/optimized" in page
