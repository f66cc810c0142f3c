# SPDX-License-Identifier: Apache-2.0
"""The report as PDF: drawn from the page alone, with the digest of the evidence on each sheet."""

import json
import re
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from storqual.cli import storqual
from storqual.report import build_report
from storqual.report.render import write_pdf
from storqual.run import sha256_of
from storqual.signoff.manifest import dump_manifest, list_files
from storqual_core.kit.errors import StorqualError
from tests.support.hostile_payloads import PAYLOADS, infect
from tests.support.judged_reports import QUICK, judged

pytestmark = pytest.mark.pages


@pytest.fixture(autouse=True)
def weasyprint() -> None:
    pytest.importorskip("weasyprint", reason="WeasyPrint is not installed; `make test-pages` installs it")


def test_a_report_becomes_a_tagged_pdf_that_names_its_evidence(runs: dict[str, Path], tmp_path: Path) -> None:
    run = runs["pass"]
    CliRunner().invoke(storqual, ["report", str(run)], standalone_mode=False, catch_exceptions=False)
    before = list_files(run)
    target = tmp_path / "report.pdf"
    words = ["report", str(run), "--pdf", str(target), "--json"]
    answer = CliRunner().invoke(storqual, words, standalone_mode=False, catch_exceptions=False)
    assert json.loads(answer.stdout)["pdf"] == str(target)
    assert list_files(run) == before
    data = target.read_bytes()
    assert data.startswith(b"%PDF-1.7")
    inside = data + b"".join(_inflated(data))
    assert b"/StructTreeRoot" in inside
    assert len(re.findall(rb"/Type\s*/Page\b", inside)) >= 2
    assert sha256_of(dump_manifest(run.name, before)).encode() in inside


def test_a_pdf_does_not_lie_in_the_run_it_vouches_for(runs: dict[str, Path]) -> None:
    """Its files are evidence: one more would be another run."""
    words = ["report", str(runs["pass"]), "--pdf", str(runs["pass"] / "report.pdf")]
    answer = CliRunner().invoke(storqual, words, standalone_mode=False)
    assert "outside" in str(answer.exception)


def test_only_a_digest_is_printed(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(StorqualError, match="no SHA-256"):
        write_pdf(files["pass"], 'x"} body { display: none', tmp_path / "report.pdf")


def _inflated(data: bytes) -> list[bytes]:
    found = []
    for part in re.findall(rb"stream\r?\n(.*?)endstream", data, re.DOTALL):
        try:
            found.append(zlib.decompress(part))
        except zlib.error:
            continue
    return found


def test_a_pdf_of_hostile_strings_does_nothing(tmp_path: Path) -> None:
    run = judged(tmp_path / "runs", points=QUICK[:1], noise=0.002, effect={"sym": -0.1})
    infect(run, [payload for payload in PAYLOADS if payload.startswith(("<a", "<s", "<o", "javascript:", "data:"))])
    page = build_report(run)
    target = tmp_path / "report.pdf"
    write_pdf(page, "0" * 64, target)
    data = target.read_bytes()
    inside = data + b"".join(_inflated(data))
    acts = rb"/(?:JavaScript|JS|Launch|SubmitForm|ImportData|EmbeddedFile|RichMedia|AA|URI|GoToR|OpenAction)\b"
    assert re.findall(acts, inside) == []
    assert b"alert" in inside or "alert".encode("utf-16-be") in inside
