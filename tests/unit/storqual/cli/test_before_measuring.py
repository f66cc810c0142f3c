# SPDX-License-Identifier: Apache-2.0
"""What `plan` and `qualify` tell before anything is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storqual.cli import main
from tests.support.make_lab import make_lab
from tests.support.signing import REQUIRED, TRUSTED

if TYPE_CHECKING:
    from pathlib import Path


def words(folder: Path) -> list[str]:
    """The options of a campaign in a lab whose keys require more signatures than its gate asks for."""
    request = make_lab(folder)
    (folder / "keys.yml").write_text(TRUSTED + REQUIRED, encoding="utf-8")
    inventory, suite = folder / "hosts.json", request.suite
    named = ["-i", str(inventory), "--baseline", "baseline", "--candidate", "candidate", "--suite", suite]
    return [*named, "--runs", str(folder / "runs")]


def test_the_plan_tells_that_nobody_could_sign_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", *words(tmp_path), "--dry-run"])
    assert ended.value.code == 0
    assert "nobody could sign this run" in " ".join(capsys.readouterr().out.split())


def test_the_main_job_tells_it_before_a_playbook_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def play(*_: Any, **__: Any) -> int:
        told.append(capsys.readouterr().err)
        return 2

    monkeypatch.setattr("storqual.cli.qualify.run_playbook", play)
    with pytest.raises(SystemExit):
        main(["qualify", *words(tmp_path)])
    assert told[0].startswith("storqual: warning: nobody could sign this run: ")
    assert told[0].count("\n") == 1
