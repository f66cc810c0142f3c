# SPDX-License-Identifier: Apache-2.0
"""Tasks that are given a secret say nothing of it, and no command line ever has one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = [path for folder in ("roles", "playbooks") for path in sorted((ROOT / folder).rglob("*.yml"))]
SECRET = re.compile(r"password|passphrase|secret|token|api_key", re.IGNORECASE)
GIVEN = re.compile(rf"'\w*(?:{SECRET.pattern})\w*'\s*:|\.(?:{SECRET.pattern})", re.IGNORECASE)
COMMANDS = {"command", "shell", "raw", "script", "expect"}
WORDS_OF_A_TASK = {"name", "when", "register", "vars", "tags", "loop", "until", "no_log", "environment"}


def tasks(entries: object) -> Iterator[dict[str, Any]]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield entry
            for inside in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
                yield from tasks(entry.get(inside))


def of_secrets() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for path in FILES:
        if path.parts[-2] == "meta":
            continue
        for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            given = {key: value for key, value in task.items() if key not in WORDS_OF_A_TASK | {"block", "rescue"}}
            if GIVEN.search(str(given)):
                found.append((f"{path.relative_to(ROOT)}: {task.get('name')}", task))
    return found


def test_there_are_tasks_with_secrets() -> None:
    """Else the tests below would prove nothing."""
    assert len(of_secrets()) >= 6


@pytest.mark.parametrize(("where", "task"), of_secrets(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_task_with_a_secret_is_not_logged_and_runs_no_command(where: str, task: dict[str, Any]) -> None:
    assert task.get("no_log") is True, where
    assert not {key.rsplit(".", 1)[-1] for key in task} & COMMANDS, where


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_command_line_of_a_role_has_a_secret(path: Path) -> None:
    for task in tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
        for key, value in task.items():
            if key.rsplit(".", 1)[-1] in COMMANDS:
                assert not SECRET.search(str(value)), (path, task.get("name"))


def test_what_runs_on_a_bench_is_given_no_secret() -> None:
    """Management controllers are asked by Ansible's own modules; ours get the answer, never the credentials."""
    for folder in ("library/modules", "library/module_utils"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not re.search(r"password|passphrase|api_key", path.read_text(encoding="utf-8"), re.I), path


def test_secrets_are_declared_as_such() -> None:
    """A role's argument that is a secret is not shown when its arguments are wrong."""

    def walk(options: object) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, option in (options if isinstance(options, dict) else {}).items():
            yield name, option
            yield from walk(option.get("options"))

    seen = 0
    for path in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            for name, option in walk(entry.get("options")):
                if SECRET.search(name):
                    seen += 1
                    assert option.get("no_log") is True, (path, name)
    assert seen >= 2


LIBRARY = Path(__file__).resolve().parents[2] / "library"
STARTERS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {
        *("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp"),
        *(f"exec{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
        *(f"spawn{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    },
    "pty": {"fork", "spawn"},
    "pytest": {"main"},
    "robot": {"run", "run_cli", "rebot"},
    "runpy": {"run_path", "run_module"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
}
WHOLLY = {"multiprocessing", "concurrent.futures.process", "_posixsubprocess"}
POOLS = {"ProcessPoolExecutor"}
ALLOWED = {"storqual/base/child.py": "the one place of the control node"}


def started_by(source: str) -> set[str]:
    """Everything in a file that starts a process or executes a file, by its dotted name, however it was imported."""
    tree, names, found = ast.parse(source), {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                if alias.name in WHOLLY:
                    found.add(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                names[alias.asname or alias.name] = whole
                if str(node.module).partition(".")[0] in WHOLLY or node.module in WHOLLY or alias.name in POOLS:
                    found.add(whole)
                if alias.name in STARTERS.get(str(node.module), ()):
                    found.add(whole)
    annotations = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    types = {id(inner) for annotation in annotations if annotation is not None for inner in ast.walk(annotation)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and id(node) not in types:
            module = names.get(node.value.id, "")
            if node.attr in STARTERS.get(module, ()) or (node.attr in POOLS and module.startswith("concurrent")):
                found.add(f"{module}.{node.attr}")
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess as s\ns.run([])",
        "from subprocess import Popen as P",
        "import multiprocessing",
        "from concurrent.futures import ProcessPoolExecutor",
        "import os\nos.execv('x', [])",
        "import pytest\npytest.main()",
        "from robot import run",
        "from os import posix_spawn",
    ],
)
def test_each_way_is_seen(source: str) -> None:
    assert started_by(source)


def test_only_one_file_of_the_control_node_starts_processes() -> None:
    files = [*(LIBRARY / "storqual").rglob("*.py"), *(LIBRARY / "plugins").rglob("*.py")]
    assert len(files) > 200
    names = {str(path.relative_to(LIBRARY)): started_by(path.read_text(encoding="utf-8")) for path in files}
    others = {name: found for name, found in names.items() if found and name not in ALLOWED and "recipe/" not in name}
    assert not others
    assert "subprocess.Popen" in names["storqual/base/child.py"]
