# SPDX-License-Identifier: Apache-2.0
"""One sign for minus: a true one in what people read, the hyphen of the keyboard in files for programs."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest

from storqual.base.text import MINUS, page_with_minus, with_minus
from storqual.cli import options
from storqual.report.render import render_template
from tests.golden import NAMES

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = REPOSITORY / "tests" / "golden"
_HYPHEN = re.compile(r"(?<![^\s(\[])-\d")
_QUOTED = re.compile(r"<(style|svg|pre|code|script)\b.*?</\1>|<[^>]*>", re.DOTALL)
_IN_A_PAGE = re.compile(r"^```.*?^```|`[^`]*`", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_report_and_terminal_have_the_true_sign_and_no_other(name: str) -> None:
    page = (GOLDEN / f"{name}.report.html").read_text(encoding="utf-8")
    assert not _HYPHEN.findall(_QUOTED.sub(" ", page))
    assert MINUS in page
    assert not _HYPHEN.findall((GOLDEN / f"{name}.summary.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_files_for_programs_have_the_sign_that_programs_read(name: str) -> None:
    for path in (GOLDEN / name).iterdir():
        assert MINUS not in path.read_text(encoding="utf-8"), path.name


def test_documents_have_the_true_sign() -> None:
    for path in (*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *REPOSITORY.glob("suites/*.md")):
        assert not _HYPHEN.findall(_IN_A_PAGE.sub(" ", path.read_text(encoding="utf-8"))), path


def test_no_module_has_a_sign_of_its_own() -> None:
    found = {
        str(path.relative_to(REPOSITORY))
        for path in (REPOSITORY / "library").rglob("*.py")
        if MINUS in (text := path.read_text(encoding="utf-8")) or "u2212" in text
    }
    assert found == {"library/storqual/base/text.py", "library/storqual/audit/run_figures.py"}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("-3 % (-4 to -2 %)", f"{MINUS}3 % ({MINUS}4 to {MINUS}2 %)"),
        ("drop-1 of 2026-11-23, hba-0 [-3, 4]", f"drop-1 of 2026-11-23, hba-0 [{MINUS}3, 4]"),
        ("no number, -i or -2+3 or -1x", "no number, -i or -2+3 or -1x"),
    ],
)
def test_a_hyphen_is_a_minus_before_a_number_only(written: str, read: str) -> None:
    assert with_minus(written) == read


def test_what_a_page_quotes_stays_as_it_was_written() -> None:
    page = '<p style="margin: -3px">-3 <code>returned -5</code> <pre>\n-5: gone</pre> -4</p>'
    told = f'<p style="margin: -3px">{MINUS}3 <code>returned -5</code> <pre>\n-5: gone</pre> {MINUS}4</p>'
    assert page_with_minus(page) == told


def test_every_page_is_made_with_the_true_sign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "one.html.j2").write_text("<p>{{ text }}</p>", encoding="utf-8")
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(tmp_path), autoescape=True)
    monkeypatch.setattr("storqual.report.render._environment", lambda: environment)
    monkeypatch.setattr("storqual.report.render.style_sheet", lambda _name: "")
    assert render_template("one.html.j2", "one.css", text="lost -3 %") == f"<p>lost {MINUS}3 %</p>"


@pytest.mark.parametrize(("person", "sign"), [(True, MINUS), (False, "-")])
def test_a_table_has_the_true_sign_on_a_terminal_alone(
    person: bool, sign: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "on_terminal", lambda: person)
    options.print_rows(["change"], [["-3 %"]])
    assert f"{sign}3 %" in capsys.readouterr().out
