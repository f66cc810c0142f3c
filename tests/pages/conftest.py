# SPDX-License-Identifier: Apache-2.0
"""The pages that are looked at, and the browser that looks at them; without them tests are skipped and say why."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storqual.report import build_report, documents
from storqual.report.material import read_material
from storqual.report.sheet import make_sheet, render_sheet
from storqual.report.trend import build_trend
from storqual.run import read_run
from storqual.run.notes import Attachment, Note, add_note
from tests.golden.sheet import FACTS, LAST, bench_of
from tests.pages.browser import Browser, browser, find_chromium
from tests.support.judged_reports import QUICK, judged
from tests.support.synthetic_shape import SUITE
from tests.support.trend_labs import make_year
from tests.unit.storqual.report.conftest import runs  # noqa: F401 - the reports that both folders test
from tests.unit.storqual.report.parts.test_studies import STUDIES, run_of
from tests.unit.storqual.report.test_documents import run_of as run_of_release

AXE = Path(__file__).resolve().parents[2] / ".cache" / "axe-core" / "axe.min.js"

NOTES = [
    Note(
        "2026-11-23T10:00:00Z",
        "Mia",
        "Also seen at a customer, whose drives had the firmware before.",
        (f"https://tracker.example.com/{'browse/' * 12}LAB-9",),
        (Attachment("annex/notes/0001-scope.png", 7, "0" * 64),),
    )
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine; `make test-pages` installs it")
    with browser(program) as running:
        yield running


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.is_file():
        pytest.skip(f"{AXE} is not here; `make test-pages` fetches it")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def files(
    runs: dict[str, Path],  # noqa: F811 - a fixture is asked for by its name
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    made = {name: build_report(path) for name, path in runs.items()}
    year = make_year(tmp_path_factory.mktemp("year"))
    made["trend"] = build_trend([year], year / "trend.html", as_of=datetime(2027, 3, 20, tzinfo=UTC))
    made["studies"] = build_report(run_of(tmp_path_factory.mktemp("studies"), SUITE + STUDIES, launches=3))
    with pytest.MonkeyPatch.context() as patch:
        # a campaign of more points than fit a page is told on pages of its own
        patch.setattr("storqual.report.view.MOST_POINTS", 4)
        large = judged(tmp_path_factory.mktemp("large"), points=QUICK, effect={"sym": -0.1}, noise=0.002)
        made["large"] = build_report(large)
        made["detail"] = sorted((large / "report").iterdir())[0]
    folder = tmp_path_factory.mktemp("sheet")
    drives = [
        {**FACTS["drives"][0], "wwn": f"0x5000c500000001{place:02x}", "position": f"252:{place}"}
        for place in range(22)
    ]
    for name, facts in (("sheet", FACTS), ("full sheet", {**FACTS, "hidden_drives": [], "drives": drives})):
        made[name] = folder / f"{name}.html"
        made[name].write_text(render_sheet(make_sheet(bench_of(), facts, made="today", last=LAST)), encoding="utf-8")
    release = run_of_release(tmp_path_factory.mktemp("release"), effect={"sym": -0.1})
    material = read_material(release)
    pages = {
        "requirements": documents.traceability(material),
        "summary": documents.customer_summary(material),
        "test plan": documents.planned_tests(release),
        "compatibility": documents.compatibility([*runs.values(), release], as_of=datetime(2027, 3, 20, tzinfo=UTC)),
    }
    pages["annex"] = documents.annex_page(read_run(release), NOTES)
    noted = judged(tmp_path_factory.mktemp("noted"), points=QUICK, noise=0.002)
    add_note(
        noted,
        "Fan tray replaced before session 2",
        "Mia",
        ["https://tracker.example.com/LAB-7"],
        [release / "verdict.json"],
    )
    made["noted"] = build_report(noted)
    for name, page in pages.items():
        made[name] = documents.write_document(page, folder / f"{name}.html")
    return made
