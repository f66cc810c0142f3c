# SPDX-License-Identifier: Apache-2.0
"""Tables hold together on a terminal of 80 columns."""

import json
import re
from pathlib import Path

import pytest

from storqual.cli import main
from storqual.judge.verdict import judge_run
from storqual.report.summary import print_summary
from tests.support.make_run import make_run
from tests.support.terminal import Terminal

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
LAB = Path(__file__).resolve().parents[4] / "inventories" / "virtual"
WIDTH = 80
_STYLE = re.compile("\x1b\\[[0-9;]*m")


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")


def wide(text: str) -> list[str]:
    return [line for line in _STYLE.sub("", text).splitlines() if len(line) > WIDTH]


@pytest.mark.parametrize("name", ["pass", "fail", "error"])
def test_the_summary_of_a_run_has_criterion_ids_and_no_wide_row(name: str) -> None:
    run = GOLDEN / name
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    verdict["criteria"][0]["id"] = "named_by_the_suite"
    verdict["warnings"] = []
    out = Terminal()
    print_summary(verdict, json.loads((run / "run.json").read_text(encoding="utf-8")), file=out)
    text = _STYLE.sub("", out.getvalue())
    # the sentences below the table are broken by the terminal
    table, outcome, _ = text.partition(f"\n{verdict['outcome']}: ")
    assert outcome
    assert not wide(table.partition("not listed")[0])


@pytest.mark.parametrize(
    "words",
    [["history", "runs"], ["judge", "runs"], ["events", "runs/one"], ["inventory", "-i", str(LAB)]],
    ids=lambda words: words[0],
)
def test_the_tables_of_a_command_have_no_wide_row(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").mkdir()
    judge_run(make_run(tmp_path / "made").rename(tmp_path / "runs" / "one"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(SystemExit):
        main(words)
    printed = capsys.readouterr()
    assert "─" in printed.out, printed
    assert not wide(printed.out)
