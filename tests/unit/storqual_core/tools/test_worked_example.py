# SPDX-License-Identifier: Apache-2.0
"""How a vendor tool is added: CONTRIBUTING.md shows it, `storqual new tool` writes it, and every test passes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storqual.cli import main

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[4]
TOOLS = "library/module_utils/storqual_core/tools"
TESTS = "tests/unit/storqual_core/tools"
REGISTRY = f"{TOOLS}/__init__.py"
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
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parts of the project that a new tool touches, as the current folder."""
    for part in _COPIED:
        place = tmp_path / part
        place.parent.mkdir(parents=True, exist_ok=True)
        if (REPOSITORY / part).is_dir():
            shutil.copytree(REPOSITORY / part, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(REPOSITORY / part, place)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new_tool(name: str) -> int:
    """The exit code of `storqual new tool`."""
    with pytest.raises(SystemExit) as ended:
        main(["new", "tool", name, "--json"])
    return int(str(ended.value.code))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment in the copy."""
    path = os.pathsep.join([str(folder), str(folder / "library" / "module_utils"), str(REPOSITORY / "library")])
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        # no plugins but the one that the configuration names: they take longer to load than the tests to run
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def conformance(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """What every tool must pass, for the example's tool."""
    tests = [f"{TESTS}/test_{name}.py" for name in ("conformance", "capabilities")]
    words = ["-m", "pytest", "-q", "-p", "pytest_timeout", "-k", "acmecli or shipped or belong"]
    return run(folder, *words, *tests, *more)


def test_the_command_writes_the_example_word_by_word_and_a_test(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (copy / REGISTRY).read_text(encoding="utf-8").splitlines(keepends=True)
    shown = blocks()
    assert new_tool("acmecli") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["changed"] == [REGISTRY]
    assert {*answer["files"], REGISTRY} == {*shown, f"{TESTS}/test_acmecli.py"}
    line = shown.pop(REGISTRY)
    assert {name: (copy / name).read_text(encoding="utf-8") for name in shown} == shown
    after = (copy / REGISTRY).read_text(encoding="utf-8").splitlines(keepends=True)
    assert [one for one in after if one not in before] == [line]
    assert [one for one in after if one != line] == before


def test_the_example_passes_once_it_is_registered(copy: Path) -> None:
    forgotten = (copy / REGISTRY).read_text(encoding="utf-8")
    assert new_tool("acmecli") == 0
    passed = conformance(copy, f"{TESTS}/test_acmecli.py")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert " passed" in passed.stdout
    (copy / REGISTRY).write_text(forgotten, encoding="utf-8")
    missing = conformance(copy)
    assert missing.returncode == 1, missing.stdout + missing.stderr
    assert "test_every_tool_is_shipped_to_the_bench" in missing.stdout


@pytest.mark.parametrize("name", ["acmecli", "zzz", "a_name_of_24_characters_"])
def test_a_new_tool_is_clean_whatever_its_name(name: str, copy: Path) -> None:
    assert new_tool(name) == 0
    places = [f"{TOOLS}/{name}.py", f"{TOOLS}/__init__.py", f"{TESTS}/test_{name}.py"]
    for check in (["check"], ["format", "--check"]):
        linted = run(copy, "-m", "ruff", *check, "--no-cache", *places)
        assert linted.returncode == 0, linted.stdout + linted.stderr


def test_a_tool_that_is_there_is_refused_and_stays_as_it_is(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in sorted(copy.rglob("*")) if path.is_file()}
    assert [new_tool(name) for name in ("mdadm", "capabilities")] == [3, 3]
    assert capsys.readouterr().err.count("\n") == 3
    assert {path: path.read_bytes() for path in sorted(copy.rglob("*")) if path.is_file()} == before


def test_the_example_says_what_is_there(copy: Path) -> None:
    program = (
        "from storqual_core.tools import TOOLS; from pathlib import Path; "
        "said = TOOLS['acmecli']().parse_show(Path("
        "'tests/unit/storqual_core/tools/fixtures/acmecli/show_one_adapter.txt').read_text()); "
        "(a,) = said.adapters; print(a.serial, a.pci, a.firmware['firmware'], a.drives[0].position, said.notes)"
    )
    assert new_tool("acmecli") == 0
    ended = run(copy, "-c", program)
    assert ended.stdout == "AC0001 0000:3b:00.0 4.20 1:4 ('Beeper is on',)\n", ended.stderr
