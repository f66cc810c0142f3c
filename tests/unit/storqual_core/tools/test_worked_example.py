# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md shows how a vendor tool is added; followed word by word, it passes what every tool must."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[4]
REGISTRY = "library/module_utils/storqual_core/tools/__init__.py"
_BLOCK = re.compile(r"^```(?:python|text) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COPIED = (
    "library/module_utils/storqual_core",
    "tests/unit/storqual_core/tools",
    "tests/__init__.py",
    "tests/conftest.py",
    "tests/support/mangle.py",
    "tests/support/replay.py",
    "tests/support/tool_fixtures.py",
    "pyproject.toml",
)


def blocks() -> dict[str, str]:
    """The example's code by the file it belongs to."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Adding a vendor tool")[1].split("\n## ")[0]
    return dict(_BLOCK.findall(section))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The parts of the project that the example touches, with the example's files; not yet registered."""
    for part in _COPIED:
        place = tmp_path / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if (REPOSITORY / part).is_dir():
            shutil.copytree(REPOSITORY / part, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(REPOSITORY / part, place)
    for name, text in blocks().items():
        if name != REGISTRY:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment in the copy."""
    path = os.pathsep.join([str(folder), str(folder / "library" / "module_utils"), str(REPOSITORY / "library")])
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        # no plugins but the one that the configuration names: they take longer to load than the tests to run
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def conformance(folder: Path) -> subprocess.CompletedProcess[str]:
    """What every tool must pass, for the example's tool."""
    tests = [f"tests/unit/storqual_core/tools/test_{name}.py" for name in ("conformance", "capabilities")]
    return run(folder, "pytest", "-q", "-p", "pytest_timeout", "-k", "acmecli or shipped or belong", *tests)


def test_the_example_is_one_file_one_folder_and_one_line() -> None:
    names = set(blocks())
    folders = {str(Path(name).parent) for name in names if "fixtures" in name}
    assert folders == {"tests/unit/storqual_core/tools/fixtures/acmecli"}
    assert {name for name in names if "fixtures" not in name} == {
        "library/module_utils/storqual_core/tools/acmecli.py",
        REGISTRY,
    }
    assert blocks()[REGISTRY].strip() == "acmecli,"


def test_the_example_passes_once_it_is_registered(copy: Path) -> None:
    forgotten = conformance(copy)
    assert forgotten.returncode == 1, forgotten.stdout + forgotten.stderr
    assert "test_every_tool_is_shipped_to_the_bench" in forgotten.stdout
    registry = copy / REGISTRY
    text = registry.read_text(encoding="utf-8")
    opening = re.search(r"^    from \. import \(.*\n", text, re.MULTILINE)
    assert opening is not None
    registry.write_text(text[: opening.end()] + blocks()[REGISTRY] + text[opening.end() :], encoding="utf-8")
    passed = conformance(copy)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert " passed" in passed.stdout
    linted = run(copy, "ruff", "check", "--no-cache", "library/module_utils/storqual_core/tools")
    assert linted.returncode == 0, linted.stdout


def test_the_example_says_what_is_there(copy: Path) -> None:
    program = (
        "from storqual_core.tools import TOOLS; from pathlib import Path; "
        "said = TOOLS['acmecli']().parse_show(Path("
        "'tests/unit/storqual_core/tools/fixtures/acmecli/show_one_adapter.txt').read_text()); "
        "(a,) = said.adapters; print(a.serial, a.pci, a.firmware['firmware'], a.drives[0].position, said.notes)"
    )
    path = str(copy / "library" / "module_utils")
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "AC0001 0000:3b:00.0 4.20 1:4 ('Beeper is on',)\n", ended.stderr
