# SPDX-License-Identifier: Apache-2.0
"""Run a role on this machine with modules that only answer: what it asks for, in which order, and what it decides."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
_PLUGINS = ("known_variables", "storqual_command")

# One file under many names: it knows its own name, gives its answers in order, and writes down what it was asked.
# WANT_JSON has Ansible hand it a file of arguments and pack no library with it, which costs more than all the rest.
_STUB = Path(__file__).with_suffix(".module").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Played:
    """How a play ended: its status, what it printed, the calls of modules, the facts that the role left."""

    code: int
    output: str
    calls: list[tuple[str, dict[str, Any], bool]]
    facts: dict[str, Any]

    def asked(self, module: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments, _ in self.calls if name == module]

    @property
    def order(self) -> list[str]:
        """The modules in the order of their calls, with the state that was asked for."""
        return [f"{name}:{arguments['state']}" if "state" in arguments else name for name, arguments, _ in self.calls]


def play(
    folder: Path,
    role: str,
    variables: dict[str, Any],
    answers: dict[str, list[dict[str, Any]]],
    *,
    check: bool = False,
    report: str = "",
    plugins: Sequence[str] = (),
    tags: str = "",
    tasks_from: str = "main",
) -> Played:
    """Play `role` with `variables`; the modules named in `answers` give those, in order, the last one for ever.

    `plugins`: action plugins of the project beside those that every role uses. `tags`: options of the play that
    choose tasks.
    """
    library, actions = folder / "library", folder / "plugins"
    library.mkdir(parents=True, exist_ok=True)
    actions.mkdir(exist_ok=True)
    # a task that is skipped still needs its module
    ours = [*(REPOSITORY / "library/modules").glob("*.py"), *(REPOSITORY / "library/plugins/action").glob("*.py")]
    for name in {*answers, *(path.stem for path in ours)}:
        collection, _, module = name.rpartition(".")
        place = library
        if collection:
            place = (
                folder / "collections" / "ansible_collections" / collection.replace(".", "/") / "plugins" / "modules"
            )
            place.mkdir(parents=True, exist_ok=True)
        (place / f"{module}.py").write_text(_STUB.format(name=name, folder=str(folder)), encoding="utf-8")
    for name in (*_PLUGINS, *plugins):
        (actions / f"{name}.py").write_bytes((REPOSITORY / f"library/plugins/action/{name}.py").read_bytes())
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    (folder / "calls.jsonl").write_text("", encoding="utf-8")
    facts = folder / "facts.json"
    facts.unlink(missing_ok=True)
    tasks: list[dict[str, Any]] = [
        {
            "name": "Play the role",
            "ansible.builtin.include_role": {"name": role, "tasks_from": tasks_from},
            "vars": variables,
            "tags": ["always"],
        }
    ]
    if report:
        content = "{{ " + report + " | to_json }}"
        copy = {"content": content, "dest": str(facts), "mode": "0644"}
        tasks.append(
            {
                "name": "Keep the report",
                "ansible.builtin.copy": copy,
                "check_mode": False,
                "changed_when": False,
                "tags": ["always"],
            }
        )
    playbook = [{"name": "Play", "hosts": "all", "gather_facts": False, "tasks": tasks}]
    (folder / "play.yml").write_text(json.dumps(playbook), encoding="utf-8")
    ended = subprocess.run(
        [
            Path(sys.executable).parent / "ansible-playbook",
            *(["--check"] if check else []),
            *tags.split(),
            *("-i", "bench,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}"),
            str(folder / "play.yml"),
        ],
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
            "ANSIBLE_LIBRARY": str(library),
            "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
            "ANSIBLE_ACTION_PLUGINS": str(actions),
            "ANSIBLE_ROLES_PATH": str(REPOSITORY / "roles"),
            "ANSIBLE_INVENTORY_ENABLED": "host_list",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    calls = [tuple(json.loads(line)) for line in (folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
    left = json.loads(facts.read_text(encoding="utf-8")) if facts.exists() else {}
    return Played(ended.returncode, ended.stdout + ended.stderr, calls, left)
