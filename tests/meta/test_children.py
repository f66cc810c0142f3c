# SPDX-License-Identifier: Apache-2.0
"""Other processes are started in one place: `storqual/base/child.py`, and `kit/command.py` for tools."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

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
ALLOWED = {
    "storqual/base/child.py": "the one place of the control node",
}


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
