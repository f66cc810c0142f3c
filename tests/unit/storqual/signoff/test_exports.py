# SPDX-License-Identifier: Apache-2.0
"""junit.xml and ocp.jsonl of a run against its verdict, by content."""

import shutil
from pathlib import Path

import pytest

from storqual.report import build_report
from storqual.report.export import write_ocp
from storqual.report.render import with_signatures
from storqual.run import read_run
from storqual.run.evidence import record_published
from storqual.signoff.findings import export_findings, run_findings
from storqual.signoff.signature import signature_lines
from storqual_core.kit.errors import BadInputError
from tests.attacks.finished_run import copy_of, finished_run, put
from tests.support.signing import Person, sign


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that fails: its exports are those that a campaign wrote."""
    return finished_run(tmp_path_factory.mktemp("runs") / "failed", 0.3)


def test_a_run_agrees_with_itself(failed: Path) -> None:
    assert b"<failure" in (failed / "junit.xml").read_bytes()
    assert list(export_findings(read_run(failed))) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "difference"),
    [
        ("junit.xml", b'name="outcome" value="FAIL"', b'name="outcome" value="PASS"', "the verdict says"),
        ("junit.xml", b"<failure ", b"<note ", "the verdict says"),
        ("junit.xml", b'name="iops@', b'name="other@', "the verdict says"),
        ("junit.xml", b' failures="', b' failures="1', "counts failures as"),
        ("junit.xml", b"<testsuites", b"<!DOCTYPE x><testsuites", "document type"),
        ("ocp.jsonl", b'"type":"FAIL"', b'"type":"PASS"', "the verdict"),
        ("ocp.jsonl", b'-fail"', b'-pass"', "the verdict"),
        ("ocp.jsonl", b'"result":"FAIL"', b'"result":"PASS"', "the verdict is FAIL"),
        ("ocp.jsonl", b"{", b"[", "cannot be compared"),
    ],
)
def test_an_export_that_was_edited_is_found_though_the_chain_has_its_digest(
    failed: Path, tmp_path: Path, name: str, old: bytes, new: bytes, difference: str
) -> None:
    run = copy_of(failed, tmp_path)
    data = (run / name).read_bytes()
    changed = data.replace(old, new, 1)
    if new == b"<note ":
        changed = changed.replace(b"</failure>", b"</note>", 1)
    assert changed != data
    put(run / name, changed)
    # shared with the run that it is a copy of
    put(run / "events.jsonl", (run / "events.jsonl").read_bytes())
    record_published(run)
    assert run_findings(run) == []
    (finding,) = export_findings(read_run(run))
    assert finding.startswith(f"{name}: ")
    assert difference in finding


def test_a_run_without_exports_has_none_that_differ(failed: Path, tmp_path: Path) -> None:
    run = tmp_path / failed.name
    shutil.copytree(failed, run)
    (run / "junit.xml").unlink()
    (run / "ocp.jsonl").unlink()
    assert list(export_findings(read_run(run))) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ocp.jsonl", b'"result":"PASS"', b'"result":"FAIL"'),
        ("ocp.jsonl", b'"type":"PASS"', b'"type":"FAIL"'),
        ("junit.xml", b"", b"<testsuites/>"),
    ],
)
def test_a_run_whose_exports_say_otherwise_is_not_signed(
    run: Path, people: tuple[Person, Person], keys: Path, name: str, old: bytes, new: bytes
) -> None:
    write_ocp(run)
    data = (run / name).read_bytes() if old else b""
    assert old in data
    (run / name).write_bytes(data.replace(old, new, 1))
    with pytest.raises(BadInputError, match=rf"(?s){name}: .*the verdict.*storqual publish"):
        sign(run, people[0], keys)
    assert not list(run.glob("signoff*"))


def test_a_run_with_its_own_exports_is_signed(run: Path, people: tuple[Person, Person], keys: Path) -> None:
    write_ocp(run)
    sign(run, people[0], keys)
    assert list(run.glob("signoff*"))


def test_a_report_of_an_unsigned_run_does_not_say_that_it_is_signed(run: Path) -> None:
    page = build_report(run).read_text(encoding="utf-8")
    assert "Signed off" not in page
    assert "Not signed. For signatures on paper" in page
    assert "only the run itself vouches for" in page
    assert with_signatures(page, signature_lines(run)) == page


def test_a_report_of_a_signed_run_carries_its_signatures(signed: Path, run: Path) -> None:
    lines = signature_lines(signed)
    assert [line.partition(",")[0] for line in lines] == ["Rene as release-manager", "Pat as technician"]
    page = with_signatures(build_report(run).read_text(encoding="utf-8"), lines)
    assert "Not signed" not in page
    assert all(line.partition(", key")[0] in page for line in lines)


def test_a_page_without_a_place_for_signatures_carries_them_at_its_end() -> None:
    page = with_signatures("<html><main><p>FAIL</p></main></html>", ["Pat <b> as technician"])
    assert page.startswith("<html><main><p>FAIL</p><section")
    assert "Pat &lt;b&gt; as technician" in page


@pytest.mark.parametrize("text", ["", "{}", "\x00", "[" * 9999])
def test_a_signature_that_cannot_be_read_is_named(text: str, signed: Path) -> None:
    (signed / "signoff.release-manager.json").write_text(text)
    assert signature_lines(signed)[0] == "signoff.release-manager.json cannot be read"
