# SPDX-License-Identifier: Apache-2.0
"""How a vendor tool, a metric and a fault are added: what `storqual new` writes passes the tests and the lint.

The names here are not those of the examples in CONTRIBUTING.md, which somebody may follow in this checkout.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storqual.cli import main

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[4]
TOOLS = "library/module_utils/storqual_core/tools"
REGISTRY = f"{TOOLS}/__init__.py"
_BLOCK = re.compile(r"^```(?:python|text) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COPIED = (
    "library",
    "tests/unit/storqual_core/tools",
    "tests/unit/storqual_core/turns/test_bench_faults.py",
    *("tests/unit/storqual/metrics", "tests/__init__.py", "tests/conftest.py", "tests/support"),
    "pyproject.toml",
)
NAME = "zq_example"
KINDS = ("tool", "metric", "fault")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for part in _COPIED:
        target = tmp_path / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (REPOSITORY / part).is_dir():
            shutil.copytree(REPOSITORY / part, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(REPOSITORY / part, target)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(kind: str, name: str) -> int:
    """The exit code of `storqual new`."""
    with pytest.raises(SystemExit) as ended:
        main(["new", kind, name, "--json"])
    return int(str(ended.value.code))


def made(capsys: pytest.CaptureFixture[str], kind: str, name: str = NAME) -> dict[str, Any]:
    """The answer of `storqual new`."""
    assert new(kind, name) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(folder / "library" / "module_utils"), str(folder / "library")])
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


def pytest_of(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "pytest", "-q", "-p", "pytest_timeout", *words)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_passes_the_tests_that_it_names(
    kind: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = made(capsys, kind)
    test_file = next(path for path in answer["files"] if Path(path).name == f"test_{NAME}.py")
    assert (
        f"{len(Path(test_file).read_text(encoding='utf-8').split('def test_')) - 1} passed"
        in pytest_of(checkout, test_file).stdout
    )
    section = answer["next"][1].removeprefix("read CONTRIBUTING.md, ")
    assert f"\n## {section}\n" in (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    words = shlex.split(answer["next"][0])
    assert words[:3] == ["python", "-m", "pytest"]
    passed = pytest_of(checkout, *words[3:])
    assert passed.returncode == 0, passed.stdout + passed.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_part_goes_beside_the_first(kind: str, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(capsys, kind)
    made(capsys, kind, "zq_second")
    tests = [str(path) for path in Path("tests").rglob("test_zq_*.py")]
    passed = pytest_of(checkout, *tests)
    assert (len(tests), passed.returncode) == (2, 0), passed.stdout + passed.stderr


@pytest.mark.parametrize("name", ["aaa", "zzz", "a_name_of_24_characters_"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_part_is_clean_whatever_its_name(
    kind: str, name: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = made(capsys, kind, name)
    python = [path for path in (*answer["files"], *answer["changed"]) if path.endswith(".py")]
    for check in (["check"], ["format", "--check"]):
        linted = run(checkout, "ruff", *check, "--no-cache", *python)
        assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(
    ("kind", "name"),
    [("tool", "mdadm"), ("tool", "capabilities"), ("metric", "iops"), ("metric", "latency"), ("fault", "busy")],
)
def test_a_part_that_is_there_is_refused_and_stays_as_it_is(
    kind: str, name: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in sorted(checkout.rglob("*")) if path.is_file()}
    assert new(kind, name) == 3
    assert json.loads(capsys.readouterr().out)["errors"]
    assert {path: path.read_bytes() for path in sorted(checkout.rglob("*")) if path.is_file()} == before


def test_a_tool_that_is_not_registered_is_found(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forgotten = (checkout / REGISTRY).read_text(encoding="utf-8")
    made(capsys, "tool")
    (checkout / REGISTRY).write_text(forgotten, encoding="utf-8")
    missing = pytest_of(checkout, "tests/unit/storqual_core/tools/test_conformance.py", "-k", "shipped")
    assert missing.returncode == 1, missing.stdout + missing.stderr
    assert "test_every_tool_is_shipped_to_the_bench" in missing.stdout


def test_the_command_writes_the_example_of_the_page_word_by_word(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Adding a vendor tool")[1]
    blocks = dict(_BLOCK.findall(section.split("\n## ")[0]))
    shown = {path.replace("acmecli", NAME): text.replace("acmecli", NAME) for path, text in blocks.items()}
    before = (checkout / REGISTRY).read_text(encoding="utf-8").splitlines(keepends=True)
    answer = made(capsys, "tool")
    assert answer["changed"] == [REGISTRY]
    line = shown.pop(REGISTRY)
    assert {name: (checkout / name).read_text(encoding="utf-8") for name in shown} == shown
    after = (checkout / REGISTRY).read_text(encoding="utf-8").splitlines(keepends=True)
    assert [added for added in after if added not in before] == [line]
    assert [kept for kept in after if kept != line] == before
