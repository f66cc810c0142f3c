# SPDX-License-Identifier: Apache-2.0
"""What a report says of signatures: none of a run that nobody signed, those that there are of one that was."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.report import build_report
from storqual.report.render import with_signatures
from storqual.signoff.signature import signatures_told


def test_a_report_of_an_unsigned_run_does_not_say_that_it_is_signed(run: Path) -> None:
    page = build_report(run).read_text(encoding="utf-8")
    assert "Signed off" not in page
    assert "Not signed. For signatures on paper" in page
    assert "only the run itself vouches for" in page
    assert with_signatures(page, signatures_told(run)) == page


def test_a_report_of_a_signed_run_carries_its_signatures(signed: Path, run: Path) -> None:
    lines = signatures_told(signed)
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
    assert signatures_told(signed)[0] == "signoff.release-manager.json cannot be read"
