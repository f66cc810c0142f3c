# SPDX-License-Identifier: Apache-2.0
"""Tests that hostile texts are only text in every page, export and sheet."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from storqual.base.text import terminal_text, visible_text, xml_text
from storqual.pytest_plugin import publish_log
from storqual.report import build_report
from storqual.report.export import criteria_csv, github_annotations, gitlab_code_quality, open_metrics, write_ocp
from storqual.report.material import read_material
from storqual.report.summary import print_summary
from storqual.report.trend import build_trend
from storqual.report.view import details_of
from tests.support.hostile_payloads import PAYLOADS, chunks, infect
from tests.support.judged_reports import PANIC, QUICK, judged
from tests.support.report_pages import Page, read_page
from tests.support.terminal import Terminal
from tests.unit.storqual.report.conftest import FINDING, SETTINGS

pytestmark = pytest.mark.slow

PARTS = 8
ELEMENTS = set(
    re.findall(
        r"\S+",
        "a b body br caption circle code dd desc details div dl dt figcaption figure footer g h1 h2 h3 h4 head "
        "header html li link main meta nav ol p path pre rect section span strong style summary svg table tbody td "
        "text th thead title tr ul wbr",
    )
)
ATTRIBUTES = set(
    re.findall(
        r"\S+",
        "aria-hidden aria-label aria-labelledby charset class colspan content cx cy d fill fill-opacity font-size "
        "font-weight height href http-equiv id lang name open r rel role rowspan scope stroke stroke-dasharray "
        "stroke-width tabindex text-anchor viewbox width x y",
    )
)


@pytest.fixture(scope="module", params=range(PARTS))
def infected(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, tuple[str, ...]]:
    payloads = chunks(PARTS)[request.param]
    run = judged(
        tmp_path_factory.mktemp("hostile"),
        adapters=("sym", "mpt"),
        points=QUICK[:2],
        noise=0.002,
        effect={"sym": -0.1},
        waived=[f"iops@sym/{QUICK[0]}"],
        settings=SETTINGS,
        findings=[FINDING],
        skipped={f"mpt/{QUICK[1]}": "reserved"},
        warnings=["a warning"],
        checks=[{"id": "link_rate", "outcome": "FAIL", "reason": "3 Gb/s", "adapter": "mpt"}],
        manifests={"candidate": {"name": "candidate", "virtual": {"iops_limit": {"all": "900"}}}},
        suspect={QUICK[0]: "the clock jumped"},
        events=[{"kind": "kernel_panic", "bench": "vbench", "session": "s02", "text": PANIC}],
    )
    infect(run, payloads)
    build_report(run)
    return run, payloads


def assert_inert(page: Page) -> None:
    """Only the elements and attributes of the templates and charts, nothing that runs, loads or leads out."""
    for node in page.root.walk():
        assert node.name in ELEMENTS | {""}, node.name
        assert set(node.attributes) <= ATTRIBUTES, (node.name, set(node.attributes) - ATTRIBUTES)
        for name, value in node.attributes.items():
            if name == "href":
                assert re.fullmatch(
                    r"#[a-z0-9-]+|data:,|(?:\.\./)?report(?:/[a-z0-9_-]+)?\.html(?:#[a-z0-9]+)?", value
                ), value
            if name in ("id", "class"):
                assert re.fullmatch(r"[A-Za-z0-9 _-]*", value), value
    assert not page.comments
    assert page.declarations == ["doctype html"]


def test_there_are_some_five_hundred_payloads() -> None:
    assert len(PAYLOADS) >= 450
    assert len(set(PAYLOADS)) == len(PAYLOADS)


def test_a_page_of_hostile_strings_is_inert(infected: tuple[Path, tuple[str, ...]]) -> None:
    run, _ = infected
    assert_inert(read_page(run / "report.html"))


def test_every_payload_is_shown_as_what_it_is(infected: tuple[Path, tuple[str, ...]]) -> None:
    run, payloads = infected
    page = read_page(run / "report.html")
    expected = " ".join(visible_text("".join(payloads)).split())
    for section in ("problems", "subject", "criteria", "time", "arms", "coverage", "points"):
        assert expected in page.section(section).text().replace("\u00ad", ""), section
    assert expected in page.root.all("h1")[0].text()
    source = (run / "report.html").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", source)
    assert not re.search(r"&#x?0*(?:[0-8]|1[0-9a-f]|1b|127);", source, re.IGNORECASE)


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_terminal_gets_no_sequence_of_a_device(
    stream: type[io.StringIO], infected: tuple[Path, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm-256color")
    run, _ = infected
    out = stream()
    print_summary(*(json.loads((run / name).read_text()) for name in ("verdict.json", "run.json")), run, file=out)
    sent = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()) if stream is Terminal else out.getvalue()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", sent)
    if stream is Terminal:
        assert "\x1b[31mred" not in out.getvalue()


def test_a_hostile_adapter_names_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storqual.report.view.MOST_POINTS", 1)
    run = judged(tmp_path, adapters=("../../etc/x", "<b>", "…"), points=QUICK[:2])
    files = [detail.file for detail in details_of(read_material(run))]
    assert files
    assert all(re.fullmatch(r"report/\d{3}-[a-z0-9_-]*\.html", file) for file in files), files
    build_report(run)
    for file in files:
        assert_inert(read_page(run / file))
    assert_inert(read_page(run / "report.html"))


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def together(text: str) -> str:
    """As a page shows it: white space put together."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a criterion for each payload, which is its name and its reason; the payload is also its waiver's."""
    run = judged(tmp_path_factory.mktemp("alone"), points=QUICK[:1], noise=0.002, effect={"sym": -0.1})
    verdict = json.loads((run / "verdict.json").read_text())
    first = next(row for row in verdict["criteria"] if row["outcome"] == "FAIL")
    verdict["criteria"] = [
        {
            **first,
            "id": payload,
            "reason": payload,
            "waiver": {"owner": payload, "reason": payload, "reference": payload, "expiry": "2027-03-31"}
            if number % 2
            else None,
        }
        for number, payload in enumerate(PAYLOADS)
    ]
    (run / "verdict.json").write_text(json.dumps(verdict))
    return run


def test_in_the_report(run: Path) -> None:
    page = read_page(build_report(run))
    assert_inert(page)
    reasons = {together(cell.all("p")[0].text()) for cell in page.section("criteria").all("td", "why")}
    for number, payload in enumerate(PAYLOADS):
        shown = together(visible_text(payload))
        expected = together(f"{shown} waived by {visible_text(payload)} until 2027-03-31") if number % 2 else shown
        assert expected in reasons, payload
    owners = {
        together(row.children[1].text()) for row in page.section("coverage").all("tr") if len(row.children) == 5
    }
    assert {together(visible_text(payload)) for payload in PAYLOADS[1::2]} <= owners


def test_in_a_spreadsheet(run: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(criteria_csv(read_material(run)), newline="")))
    assert len(rows) == len(PAYLOADS)
    for row, payload in zip(rows, PAYLOADS, strict=True):
        for cell in (row["id"], row["reason"]):
            assert cell.replace("'", "") == terminal_text(payload).replace("'", ""), payload
            assert not [part for part in cell.split(";") if re.match(r"\s*[=+@|%\t\r]|-\D", part)], cell
            assert not CONTROL.search(cell)


def test_in_lines_for_machines(run: Path) -> None:
    lines = [json.loads(line) for line in write_ocp(run).read_text(encoding="utf-8").splitlines()]
    diagnoses = [line["testStepArtifact"]["diagnosis"] for line in lines if "diagnosis" in str(line)]
    assert [diagnosis["message"].partition(" (waived by ")[0] for diagnosis in diagnoses] == list(
        map(visible_text, PAYLOADS)
    )
    text = open_metrics(read_material(run))
    for payload in PAYLOADS:
        label = visible_text(payload).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        assert f'criterion="{label}"' in text, payload
    notes = json.loads(gitlab_code_quality(read_material(run), Path.cwd()))
    assert len(notes) >= len(PAYLOADS)
    descriptions = "\n".join(note["description"] for note in notes)
    assert not [payload for payload in PAYLOADS if terminal_text(payload) not in descriptions]
    commands = github_annotations(read_material(run), Path.cwd()).splitlines()
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in commands)


def test_in_the_log_of_the_engineers(run: Path) -> None:
    publish_log(run)
    source = (run / "junit.xml").read_text(encoding="utf-8")
    assert not CONTROL.search(source)
    log_text = together(" ".join(text for node in ET.fromstring(source).iter() for text in _texts(node)))  # noqa: S314
    assert not [payload for payload in PAYLOADS if together(xml_text(payload)) not in log_text]


def _texts(node: ET.Element) -> list[str]:
    return [node.text or "", *node.attrib.values()]


@pytest.mark.parametrize("payloads", chunks(8))
def test_in_the_trend_of_a_lab(payloads: tuple[str, ...], tmp_path: Path) -> None:
    run = judged(tmp_path / "lab", points=QUICK[:1], effect={"sym": -0.1}, waived=[f"iops@sym/{QUICK[0]}"])
    infect(run, payloads)
    page = read_page(build_trend([tmp_path / "lab"], tmp_path / "trend.html"))
    assert not CONTROL.search((tmp_path / "trend.html").read_text(encoding="utf-8"))
    expected = together(visible_text("".join(payloads)))
    for section in ("campaigns", "waivers", "drops"):
        assert expected in page.section(section).text(), section
    active = {"script", "img", "iframe", "object", "embed", "form", "base", "math"}
    assert not active & {node.name for node in page.root.walk()}
    assert not [name for node in page.root.walk() for name in node.attributes if name.startswith("on")]
    hrefs = {node.attributes.get("href", "#") for node in page.root.walk()}
    assert all(re.fullmatch(r"#[a-z0-9-]*|data:,|lab/[0-9TZa-z-]+/report\.html", href) for href in hrefs), hrefs
