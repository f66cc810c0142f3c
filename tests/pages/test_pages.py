# SPDX-License-Identifier: Apache-2.0
"""Reports in Chromium: axe-core finds nothing in any outcome, scheme, width or print; scripts change nothing."""

import json
import re
from pathlib import Path

import pytest

from tests.pages.browser import Browser

pytestmark = pytest.mark.pages

PAGES = ["pass", "fail", "waived", "inconclusive", "error", "local", "trend", "studies", "large", "detail", "sheet"]
PAGES += ["requirements", "summary", "test plan", "compatibility", "annex", "noted"]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
PAPERS = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}
SHOWN = "document.documentElement.innerText + document.querySelectorAll('*').length"


def violations(chromium: Browser, axe: str) -> list[str]:
    """What axe-core has against the page that is shown: rule and first place of each."""
    chromium.evaluate(axe + "; true")
    found = chromium.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(r.violations))"
    )
    return [
        f"{one['id']}: {one['help']} ({len(one['nodes'])}x, first {one['nodes'][0]['html'][:160]})"
        for one in json.loads(found)
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES.values(), ids=list(SIZES))
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(
    name: str, size: tuple[int, int], dark: bool, files: dict[str, Path], chromium: Browser, axe: str
) -> None:
    """With every point unfolded, so that nothing is hidden from it."""
    chromium.show(files[name], width=size[0], height=size[1], dark=dark)
    chromium.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true }); true")
    assert violations(chromium, axe) == []


def test_axe_bites(chromium: Browser, axe: str, tmp_path: Path) -> None:
    page = tmp_path / "wrong.html"
    page.write_text(
        '<!doctype html><html><body><img src="x.png"><p style="color: #ccc">Hardly seen</p></body></html>'
    )
    chromium.show(page, width=1280, height=900)
    rules = {one.partition(":")[0] for one in violations(chromium, axe)}
    assert {"image-alt", "color-contrast", "html-has-lang"} <= rules


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_in_what_is_printed(name: str, files: dict[str, Path], chromium: Browser, axe: str) -> None:
    """The print style sheet, on the width of an A4 page."""
    chromium.show(files[name], width=700, height=1000, media="print")
    assert violations(chromium, axe) == []


@pytest.mark.parametrize("paper", PAPERS.values(), ids=list(PAPERS))
@pytest.mark.parametrize("name", PAGES)
def test_a_printed_page_loses_nothing_at_its_edge(
    name: str, paper: tuple[float, float], files: dict[str, Path], chromium: Browser
) -> None:
    """Nothing is wider than the paper between its margins (13 mm each), and it does print."""
    inner = round((paper[0] - 2 * 13 / 25.4) * 96)
    chromium.show(files[name], width=inner, height=1000, media="print")
    wide = chromium.evaluate(
        "Array.from(document.querySelectorAll('main *, header *')).filter(one => one.getClientRects().length"
        " && one.getBoundingClientRect().right > document.documentElement.clientWidth + 1"
        " && !one.closest('.unseen')).slice(0, 3).map(one => one.outerHTML.slice(0, 120))"
    )
    assert wide == []
    assert chromium.print(*paper).startswith(b"%PDF-")


def test_the_sheet_of_a_full_shelf_is_one_page(files: dict[str, Path], chromium: Browser) -> None:
    """Two dozen drives on either paper, so that it can hang on the rack."""
    for paper in PAPERS.values():
        chromium.show(files["full sheet"], width=1280, height=900, media="print")
        assert len(re.findall(rb"/Type\s*/Page\b(?!s)", chromium.print(*paper))) == 1


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_scrolls_down_only(name: str, files: dict[str, Path], chromium: Browser) -> None:
    width, height = SIZES["phone"]
    chromium.show(files[name], width=width, height=height)
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["pass", "fail", "waived", "inconclusive"])
def test_the_criteria_are_seen_whole_on_a_desktop(name: str, files: dict[str, Path], chromium: Browser) -> None:
    """The last column, how many launches a verdict rests on, is not behind the edge."""
    width, height = SIZES["desktop"]
    chromium.show(files[name], width=width, height=height)
    tables = "[...document.querySelectorAll('.criteria')].map(one => one.parentElement)"
    assert chromium.evaluate(f"{tables}.length") > 0
    assert chromium.evaluate(f"{tables}.filter(one => one.scrollWidth > one.clientWidth).length") == 0


@pytest.mark.parametrize("name", PAGES)
def test_with_scripts_disabled_nothing_changes(name: str, files: dict[str, Path], chromium: Browser) -> None:
    width, height = SIZES["desktop"]
    seen = []
    for disabled in (False, True):
        chromium.call("Emulation.setScriptExecutionDisabled", value=disabled)
        chromium.show(files[name], width=width, height=height)
        seen.append((chromium.evaluate(SHOWN), chromium.picture()))
    chromium.call("Emulation.setScriptExecutionDisabled", value=False)
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] == seen[1][1]


@pytest.mark.parametrize("name", PAGES)
def test_every_control_is_reached_by_keyboard(name: str, files: dict[str, Path], chromium: Browser) -> None:
    chromium.show(files[name], width=1280, height=900)
    lost = chromium.evaluate(
        "Array.from(document.querySelectorAll('a[href], summary, [tabindex]')).filter(one => one.tabIndex > 0"
        " || (one.tabIndex < 0 && one.id !== 'content')).map(one => one.outerHTML.slice(0, 120))"
    )
    assert lost == []
    first = chromium.evaluate("document.querySelector('a').getAttribute('href')")
    assert first == "#content"
