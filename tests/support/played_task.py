# SPDX-License-Identifier: Apache-2.0
"""One task in a play over a stand-in for ssh: a bench that is a script."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parents[2]
OLD, NEW = "0c7f4a0e-0f5c-4a39-9d0c-2c7a4a3d8a11", "1d8e5b1f-1a6d-4b4a-8e1d-3d8b5b4e9b22"
"""Boots of the bench."""


def write_ssh(folder: Path, script: str, **values: object) -> None:
    """The stand-in: a Python program with its folder and these values in it."""
    ssh = folder / "ssh"
    ssh.write_text(script.format(python=sys.executable, folder=str(folder), **values), encoding="utf-8")
    ssh.chmod(0o755)


def play_task(
    folder: Path, task: dict[str, Any], *options: str, under: dict[str, str] | None = None, **variables: object
) -> tuple[int, dict[str, Any]]:
    """The exit code of a play with this task, and what the task returned; `variables` are the bench's."""
    left = folder / "left.json"
    keep = {"content": "{{ done | to_json }}", "dest": str(left), "mode": "0644"}
    tasks = [
        {"name": "Try it", **task, "register": "done", "ignore_errors": True},
        {"name": "Keep it", "ansible.builtin.copy": keep, "delegate_to": "localhost", "check_mode": False},
    ]
    play = {"name": "Play", "hosts": "bench", "gather_facts": False, "environment": under or {}, "tasks": tasks}
    (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    bench = {"ansible_connection": "ssh", "ansible_ssh_executable": str(folder / "ssh"), **variables}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {"all": {"hosts": {"bench": bench, "localhost": local}}}
    (folder / "hosts.yml").write_text(json.dumps(hosts), encoding="utf-8")
    program = Path(sys.executable).parent / "ansible-playbook"
    environment = {"ANSIBLE_CONFIG": str(_REPOSITORY / "ansible.cfg"), "XDG_STATE_HOME": str(folder / "state")}
    ended = subprocess.run(
        [program, *options, "-i", folder / "hosts.yml", folder / "play.yml"],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert left.exists(), ended.stdout + ended.stderr
    return ended.returncode, json.loads(left.read_text(encoding="utf-8"))
