# SPDX-License-Identifier: Apache-2.0
"""Tests that a report is audited before it is published: one that contradicts its data is put aside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from storqual import report
from storqual.cli.playbook.publish import publish
from storqual.report import build_report
from storqual_core.kit.errors import StorqualError
from tests.support.make_run import make_run


def test_a_report_that_agrees_with_its_data_is_published(tmp_path: Path) -> None:
    done = publish(make_run(tmp_path, finished=False))
    claims = json.loads((done.run / "audit.json").read_text())["claims"]
    assert done.report.is_file()
    assert {claim["status"] for claim in claims} <= {"consistent", "rounding"}
    assert len(claims) > 50


def test_a_report_that_contradicts_its_data_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def falsified(run: Path, *words: Any) -> Path:
        report = build_report(run, *words)
        text = report.read_text(encoding="utf-8")
        changed = re.sub(r"Exit code \d", "Exit code 9", text)
        assert changed != text
        report.write_text(changed, encoding="utf-8")
        return report

    monkeypatch.setattr(report, "build_report", falsified)
    run = make_run(tmp_path, finished=False, noise=0.001)
    with pytest.raises(StorqualError, match=r"not published, 1 statements .*\n.*page.exit_code"):
        publish(run)
    assert (run / "report.refused.html").is_file()
    assert not (run / "report.html").exists()
    assert (run / "verdict.json").is_file()
