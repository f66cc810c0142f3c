# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit command: one line per wrong claim in a pipe, nothing that acts on a terminal, exact JSON."""

from __future__ import annotations

import io
import json

from storqual.audit import Claim, Status, audit_document
from storqual.audit.output import audit_files, print_claims
from storqual.base.resources import suites_folder

WRONG = Claim("paper.a", "A paper", 3, "an \x1b[31mincrease", 51, 98.44, "%", Status.INCONSISTENT, "Not 51.")
RIGHT = Claim("paper.b", "A paper", None, "two", "linear", None, "-", Status.NOT_CHECKABLE, "No data.")


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def test_a_pipe_gets_one_line_per_wrong_claim_and_the_count() -> None:
    out = io.StringIO()
    print_claims([WRONG, RIGHT], file=out)
    lines = out.getvalue().splitlines()
    assert lines[0].split("\t")[:3] == ["inconsistent", "paper.a", "3"]
    assert lines[1:] == ["2 assertions: 0 consistent, 0 rounding, 1 inconsistent, 1 not checkable"]


def test_everything_is_shown_on_request() -> None:
    out = io.StringIO()
    print_claims([WRONG, RIGHT], everything=True, file=out)
    assert len(out.getvalue().splitlines()) == 3


def test_a_terminal_gets_a_table_and_no_sequence_of_the_report() -> None:
    out = Terminal()
    print_claims([WRONG, RIGHT], everything=True, file=out)
    assert "paper.a" in out.getvalue()
    assert "\x1b[31mincrease" not in out.getvalue()
    assert "\\x1b[31mincrease" in out.getvalue()


def test_the_json_has_exactly_the_keys_that_scripts_rely_on() -> None:
    """Design, section 4."""
    document = json.loads(json.dumps(audit_document([WRONG, RIGHT]), allow_nan=False))
    keys = ["id", "source", "page", "text", "stated", "computed", "unit", "status", "explanation"]
    assert list(document) == ["claims"]
    assert [list(claim) for claim in document["claims"]] == [keys, keys]
    assert [claim["status"] for claim in document["claims"]] == ["inconsistent", "not_checkable"]


def test_all_published_reports_are_audited_together() -> None:
    claims = audit_files(sorted((suites_folder() / "published").glob("*.yml")))
    assert len({claim.id for claim in claims}) == len(claims) > 200
    assert {claim.status for claim in claims} == set(Status)
