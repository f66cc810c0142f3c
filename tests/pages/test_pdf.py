# SPDX-License-Identifier: Apache-2.0
"""The report as PDF: drawn from the page alone, with the digest of the evidence on each sheet."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.cli import storqual
from storqual.report import build_report
from storqual.report.pdf import write_pdf
from storqual.signoff.manifest import list_files
from storqual_core.errors import StorqualError

pytestmark = pytest.mark.pages
DIGEST = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def weasyprint() -> None:
    """The extra is here."""
    pytest.importorskip("weasyprint", reason="WeasyPrint is not installed; `make test-pages` installs it")


@pytest.mark.parametrize("name", ["pass", "error"])
def test_a_report_becomes_a_tagged_pdf(name: str, files: dict[str, Path], tmp_path: Path) -> None:
    """Some pages, with a title and a structure that a screen reader follows."""
    data = write_pdf(files[name], DIGEST, tmp_path / "report.pdf").read_bytes()
    assert data.startswith(b"%PDF-1.7")
    inside = data + b"".join(_inflated(data))
    assert b"/StructTreeRoot" in inside
    assert len(re.findall(rb"/Type\s*/Page\b", inside)) >= 2


def test_the_same_report_gives_the_same_pages(files: dict[str, Path], tmp_path: Path) -> None:
    """A PDF is as long for the same page; only its identifier and time differ."""
    sizes = {len(write_pdf(files["pass"], DIGEST, tmp_path / f"{at}.pdf").read_bytes()) for at in range(2)}
    assert max(sizes) - min(sizes) < 64


def test_only_a_digest_is_printed(files: dict[str, Path], tmp_path: Path) -> None:
    """What stands on each sheet reaches a style sheet: nothing but hexadecimal does."""
    with pytest.raises(StorqualError, match="no SHA-256"):
        write_pdf(files["pass"], 'x"} body { display: none', tmp_path / "report.pdf")


def test_the_command_prints_the_digest_that_signatures_name(runs: dict[str, Path], tmp_path: Path) -> None:
    """The PDF lies outside the run, which stays as it was."""
    run = runs["pass"]
    build_report(run)
    before = list_files(run)
    words = ["report", str(run), "--pdf", str(tmp_path / "report.pdf"), "--json"]
    answer = CliRunner().invoke(storqual, words, standalone_mode=False, catch_exceptions=False)
    assert Path(json.loads(answer.stdout)["pdf"]).read_bytes().startswith(b"%PDF-")
    assert list_files(run) == before
    inside = CliRunner().invoke(storqual, [*words[:3], str(run / "report.pdf")], standalone_mode=False)
    assert "outside" in str(inside.exception)


def _inflated(data: bytes) -> list[bytes]:
    found = []
    for part in re.findall(rb"stream\r?\n(.*?)endstream", data, re.DOTALL):
        try:
            found.append(zlib.decompress(part))
        except zlib.error:
            continue
    return found
