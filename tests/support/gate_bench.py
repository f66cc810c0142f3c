# SPDX-License-Identifier: Apache-2.0
"""The gate bench: a small virtual bench on which the real main job meets drops whose effect is known."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.live_bench import BIN, REPOSITORY, over_ssh, play, powered_on

if TYPE_CHECKING:
    from collections.abc import Iterator


GATE = REPOSITORY / "tests" / "virtual" / "gate"
STATE = REPOSITORY / ".cache" / "bench" / "gatebench"
SUITE = GATE / "gate.suite.yml"
ASKED = os.environ.get("STORQUAL_LIVE_CAMPAIGNS")
CAMPAIGNS = range(int(ASKED or "3"))
"""How many campaigns of a kind go through the whole pipeline; the seed is the number."""


@dataclass(frozen=True)
class Finished:
    """One run of the main job: its exit code, what it printed, its run directory."""

    code: int
    output: str
    run: Path | None

    @property
    def verdict(self) -> dict[str, Any]:
        """verdict.json."""
        assert self.run is not None, self.output
        return dict(json.loads((self.run / "verdict.json").read_text(encoding="utf-8")))

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The run's events of one kind."""
        assert self.run is not None, self.output
        lines = (self.run / "events.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]


def playbook(name: str, *words: str) -> int:
    """Run a playbook on the gate bench."""
    return play(STATE.parent / "gate-playbook.log", GATE, name, *words)[0]


def command(runs: Path, *words: str) -> list[str]:
    """The main job's command line."""
    return [str(BIN / "storqual"), "qualify", "-i", str(GATE), "--runs", str(runs), *words]


def drops(baseline: str, candidate: str, *, suite: Path = SUITE, seed: int = 1) -> list[str]:
    """Arguments for two drops of the gate bench."""
    return ["--baseline", baseline, "--candidate", candidate, "--suite", str(suite), "--seed", str(seed)]


def qualify(runs: Path, *words: str) -> Finished:
    """Run the main job to its end."""
    runs.mkdir(parents=True, exist_ok=True)
    log = runs / "output.log"
    with log.open("wb") as stream:
        code = subprocess.run(
            command(runs, *words), stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, check=False
        ).returncode
    return finished(code, runs)


def finished(code: int, runs: Path) -> Finished:
    """The newest run in `runs`."""
    made = sorted(path.parent for path in runs.glob("*/run.json"))
    return Finished(
        code, (runs / "output.log").read_text(encoding="utf-8", errors="replace"), made[-1] if made else None
    )


def on_bench(line: str) -> str:
    """What a command line prints on the gate bench."""
    return over_ssh(STATE, "gatebench", line, limit_s=60).strip()


@contextmanager
def powered() -> Iterator[None]:
    """The gate bench, powered on, and off again in the end; a run that finds it on leaves it on."""
    STATE.mkdir(parents=True, exist_ok=True)
    with powered_on(STATE.parent / "gate-playbook.log", GATE):
        yield
