# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from storqual.robustness.plan import Seat, plan_trials
from storqual.robustness.suite import load_robustness
from storqual.trials.one import BenchHere, LiveTrial, send_program

if TYPE_CHECKING:
    from storqual.trials.link import Link


class LinkToHere:
    """A bench that is this machine."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def run(self, command: str) -> str:
        return subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
        ).stdout

    def put(self, data: bytes, path: str) -> None:
        self.sent.append(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(data)


def test_the_program_is_sent_once_and_python_keeps_what_it_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    link, state = LinkToHere(), str(tmp_path / "state of a bench")
    folder = send_program(cast("Link", link), sys.executable, state)
    assert send_program(cast("Link", link), sys.executable, state) == folder
    assert len(link.sent) == 1
    code = f"import sys; sys.path.insert(0, {folder!r}); import storqual_core.trial.program"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, stdin=subprocess.DEVNULL)
    assert [path for path in Path(folder).rglob("program.*.pyc") if path.parts[-3] == "trial"]


@pytest.mark.parametrize(("fault", "claimed"), [("driver_reload", {"0x1", "0x2"}), ("driver_rebind", {"0x1"})])
def test_a_fault_of_the_driver_is_guarded_by_the_claims_of_all_adapters(
    tmp_path: Path, fault: str, claimed: set[str]
) -> None:
    claims = {alias: {drive: {"wwn": drive}} for alias, drive in (("sym", "0x1"), ("other", "0x2"))}
    bench = BenchHere(
        "b", cast("Link", None), "python3", "/state", claims, {"sym": "0000:00:05.0"}, "/bin", None, "boot-1"
    )
    file = tmp_path / "own.suite.yml"
    file.write_text(
        f"kind: robustness\nloads: {{mine: {{}}}}\ntrials:\n  - {{fault: {fault}, load: mine}}\n", encoding="utf-8"
    )
    suite = load_robustness(file)
    seats = [Seat("sym", "0000:00:05.0", "sym53c8xx", (("0x1", 1 << 30),))]
    plan = plan_trials(suite, suite.profile(None)[1], seats, arms=["candidate"], kind="hardware", seed=1)
    trial = LiveTrial(bench, suite, plan.trials[0], tmp_path, "run")
    assert set(json.loads(trial._file_of("all", "/stream"))["claims"]) == claimed
