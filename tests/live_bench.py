# SPDX-License-Identifier: Apache-2.0
"""A virtual bench of a test's own: play the project's playbooks on it, and ask it itself what it is like."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Bench", "Played", "powered_bench"]

REPOSITORY = Path(__file__).resolve().parents[1]
INVENTORY = REPOSITORY / "inventories" / "virtual"
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Played:
    """One run of a playbook."""

    code: int
    output: str

    @property
    def changed(self) -> int:
        """How many tasks changed the bench."""
        found = re.search(r"^vbench .*changed=(\d+)", self.output, re.MULTILINE)
        assert found, self.output
        return int(found.group(1))


@dataclass(frozen=True)
class Bench:
    """One bench: where its disks and keys are, and a folder for drops and logs."""

    state: Path
    drops: Path

    def play(self, name: str, *words: str) -> Played:
        """Run a playbook on it, its output to a file: an SSH master that stays behind would hold a pipe."""
        log = self.drops / "play.log"
        with log.open("wb") as stream:
            ended = subprocess.run(
                [
                    *(BIN / "ansible-playbook", "-i", INVENTORY, REPOSITORY / "playbooks" / name),
                    *("-e", f"virtual_bench_state={self.state}", *words),
                ],
                env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                timeout=1800,
                check=False,
            )
        return Played(ended.returncode, log.read_text(encoding="utf-8", errors="replace"))

    def provision(self, drop: str, *words: str) -> Played:
        """Make the bench what a drop says."""
        file = self.drops / "drop.yml"
        file.write_text(f"name: t\ndescription: of a test\n{drop}", encoding="utf-8")
        return self.play("provision.yml", "-e", f"drop={file}", "-e", "prove_s=0", *words)

    def play_module(self, module: str, arguments: dict[str, Any]) -> Played:
        """Call one module on it, with the adapters of its inventory."""
        task = {module: {"adapters": "{{ storqual_adapters }}", **arguments}, "register": "called"}
        tell = {"ansible.builtin.debug": {"var": "called.steps"}}
        plays = [
            {"name": "Call", "hosts": "benches", "gather_facts": False, "tasks": [{"name": "Call", **task}, tell]}
        ]
        file = self.drops / "call.yml"
        file.write_text(json.dumps(plays), encoding="utf-8")
        return self.play(str(file))

    def ask(self, command: str) -> str:
        """Run a command on the bench."""
        words = ["ssh", "-F", str(self.state / "ssh_config"), "vbench", command]
        ended = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@contextmanager
def powered_bench(name: str, drops: Path) -> Iterator[Bench]:
    """A bench of the name, powered on, and off again in the end."""
    found = Bench(REPOSITORY / ".cache" / "bench" / name, drops)
    up = found.play("bench_up.yml")
    assert up.code == 0, up.output
    try:
        yield found
    finally:
        down = found.play("bench_down.yml")
    assert down.code == 0, down.output
