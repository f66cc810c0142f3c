# SPDX-License-Identifier: Apache-2.0
"""The house: rooms that can be seen whole, one sentence each, and imports that point downwards only."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARY = REPOSITORY / "library"
CORE = LIBRARY / "module_utils" / "storqual_core"
CONTROL = LIBRARY / "storqual"
CONTRACTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]

MOST_MODULES_OF_A_ROOM = 22
MOST_LINES_OF_A_MODULE = 400
MOST = {CORE: (170, 33_817), CONTROL: (313, 47_810)}
"""Modules and lines of each package: a room that grows says here how far, and why is asked in review."""


def modules(folder: Path) -> list[Path]:
    """The Python files of a folder and of those below it."""
    return sorted(folder.rglob("*.py"))


def lines(path: Path) -> int:
    """The lines of a file, as `wc -l` counts them."""
    return path.read_bytes().count(b"\n")


def sentence(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def test_a_room_can_be_seen_whole() -> None:
    """Only the room for tools is longer: one foreign program a file."""
    counted = {folder: len(list(folder.glob("*.py"))) for folder in {path.parent for path in modules(LIBRARY)}}
    del counted[CORE / "tools"]
    assert not {str(folder): found for folder, found in counted.items() if found > MOST_MODULES_OF_A_ROOM}


def test_a_module_can_be_read_at_one_sitting() -> None:
    counted = {str(path.relative_to(LIBRARY)): lines(path) for path in modules(LIBRARY)}
    assert not {name: found for name, found in counted.items() if found > MOST_LINES_OF_A_MODULE}


@pytest.mark.parametrize("package", MOST, ids=lambda package: package.name)
def test_a_package_stays_small(package: Path) -> None:
    found = modules(package)
    most_modules, most_lines = MOST[package]
    assert len(found) <= most_modules
    assert sum(map(lines, found)) <= most_lines


def rooms(package: Path) -> Iterator[tuple[str, str]]:
    """Every room of a package with its sentence, in the order of imports, and the rooms in it behind each."""
    (layers,) = (one["layers"] for one in CONTRACTS if one.get("containers") == [package.name])
    for name in (part for layer in layers for part in layer.split(" : ")):
        if (package / f"{name}.py").is_file():
            yield f"{name}.py", sentence(package / f"{name}.py")
            continue
        for face in sorted((package / name).rglob("__init__.py")):
            yield f"{face.parent.relative_to(package)}/", sentence(face)


@pytest.mark.parametrize(
    ("package", "heading"), [(CORE, "The packages of the core"), (CONTROL, "The packages of the control node")]
)
def test_the_map_says_of_each_room_what_the_room_says_of_itself(package: Path, heading: str) -> None:
    page = (LIBRARY / "README.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `([^`]+)` \| (.*) \|$", section, re.MULTILINE)
    assert told == list(rooms(package))
    faces = {f"{face.parent.relative_to(package)}/" for face in package.rglob("__init__.py")} - {"./"}
    assert faces == {name for name, _ in told if name.endswith("/")}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code and of the contracts."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(LIBRARY, folder / "library", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """`lint-imports` over a copy, as `make lint` calls it."""
    path = os.pathsep.join([str(folder / "library"), str(folder / "library" / "module_utils")])
    return subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_point_downwards(copied: Path) -> None:
    done = lint(copied)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        (
            "module_utils/storqual_core/kit/errors.py",
            "from ..host import sysfs",
            "storqual_core: rooms import downwards only",
        ),
        ("storqual/base/text.py", "from storqual.judge import decide", "storqual: rooms import downwards only"),
        (
            "module_utils/storqual_core/kit/errors.py",
            "from . import command",
            "storqual_core: no circle between files or folders",
        ),
        (
            "module_utils/storqual_core/host/sysfs.py",
            "from storqual.base import text",
            "the bench's code knows nothing of the control node",
        ),
    ],
    ids=["core", "control node", "circle", "from the bench"],
)
def test_an_import_on_purpose_that_points_upwards_is_refused(file: str, line: str, broken: str, copied: Path) -> None:
    path = copied / "library" / file
    kept = path.read_text(encoding="utf-8")
    try:
        path.write_text(f"{kept}\n{line}\n", encoding="utf-8")
        done = lint(copied)
    finally:
        path.write_text(kept, encoding="utf-8")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{broken} BROKEN" in done.stdout
