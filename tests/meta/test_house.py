# SPDX-License-Identifier: Apache-2.0
"""The house: lines by package, one sentence for each room, and imports that point downwards only."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
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

LINES = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["storqual"]["lines"]


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def lines(path: Path) -> int:
    """The lines of a file, as `wc -l` counts them."""
    return path.read_bytes().count(b"\n")


def sentence(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def packages() -> dict[str, int]:
    """The lines of each package of the library, of the tests, and of the YAML of roles and playbooks."""
    counted: Counter[str] = Counter()
    for path in modules(LIBRARY):
        room = path.relative_to(LIBRARY).parent.parts
        depth = 3 if room[0] == "module_utils" else 2
        counted["/".join(room[:depth])] += lines(path)
    counted["tests"] = sum(map(lines, modules(REPOSITORY / "tests")))
    played = [path for name in ("roles", "playbooks") for path in (REPOSITORY / name).rglob("*.y*ml")]
    return {**counted, "roles and playbooks": sum(map(lines, played))}


def test_growth_is_paid_for() -> None:
    """The table may be lowered by anybody; a row that is raised says in its commit what was deleted instead."""
    counted = packages()
    assert set(counted) == set(LINES)
    assert not {name: found for name, found in counted.items() if found > LINES[name]}


def test_no_file_name_stands_three_times() -> None:
    """A name that stands often says nothing in a list of open files."""
    counted = Counter(path.name for path in modules(LIBRARY) if path.name != "__init__.py")
    assert not {name for name, times in counted.items() if times > 2}


def test_no_class_name_stands_for_two_things() -> None:
    counted = Counter(
        node.name
        for path in modules(LIBRARY)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        # Ansible finds each action and callback plugin by this name
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and node.name not in ("ActionModule", "CallbackModule")
    )
    assert not {name for name, times in counted.items() if times > 1}


def test_no_heading_is_the_name_of_a_class() -> None:
    """A class that gets another name by search and replace takes headings of tables with it."""
    classes, texts = set[str](), set[str]()
    for path in modules(CONTROL / "report"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                classes |= {alias.name for alias in node.names if re.match("(?:[A-Z][a-z]+){2}", alias.name)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    assert not classes & texts


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
        (
            "storqual/judge/verdict.py",
            "from storqual.kinds.trial import TRIAL",
            "what comes after the bench knows records and values, and no kind of turn",
        ),
        (
            "storqual/report/build.py",
            "from storqual.kinds.oracle import Oracle",
            "what comes after the bench knows records and values, and no kind of turn",
        ),
    ],
    ids=["core", "control node", "circle", "from the bench", "a kind in the judge", "a plan in the report"],
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


# words that the glossary forbids, and the packages in which they would mean what it says
EVERYWHERE = ("wish", "wishes", "dearest", "mended", "coordinate", "coordinates")
OF_POINTS_AND_BATCHES = ("block", "blocks", "place", "places")
POINTS_AND_BATCHES = [CONTROL / name for name in ("campaign", "judge", "report", "run", "study", "history")]
# options of Jinja's environment; keys of files on disk, which are fields of what is read from them
FOREIGN = {"trim_blocks", "lstrip_blocks", "block", "block_s", "longest_block_s"}


def identifiers(path: Path) -> set[str]:
    """Every name that a file gives or takes; keys of files are text and no names."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = (getattr(node, field, None) for node in nodes for field in ("id", "arg", "attr", "name"))
    return {name for name in names if isinstance(name, str)} - FOREIGN


@pytest.mark.parametrize(
    ("words", "folders"),
    [(EVERYWHERE, [LIBRARY]), (OF_POINTS_AND_BATCHES, POINTS_AND_BATCHES)],
    ids=["any", "points"],
)
def test_no_identifier_has_a_word_that_the_glossary_forbids(words: tuple[str, ...], folders: list[Path]) -> None:
    paths = [path for folder in folders for path in modules(folder)]
    used = {(path.name, name) for path in paths for name in identifiers(path)}
    assert not {(file, name) for file, name in used if {*re.findall(r"[a-z]+", name.lower())} & {*words}}
    assert used


def test_no_variable_has_a_name_that_says_nothing_of_what_it_holds() -> None:
    """Fields of classes are outside of this: `found` is what a bench was like before a run's first write."""
    trees = [(path.name, node) for path in modules(LIBRARY) for node in ast.walk(ast.parse(path.read_bytes()))]
    bodies = [node.body for _, node in trees if isinstance(node, ast.ClassDef)]
    fields = {line.target for body in bodies for line in body if isinstance(line, ast.AnnAssign)}
    names = [(file, node) for file, node in trees if isinstance(node, ast.Name) and node not in fields]
    bound = {(file, node.id) for file, node in names if isinstance(node.ctx, ast.Store)}
    bound |= {(file, node.arg) for file, node in trees if isinstance(node, ast.arg)}
    assert not {(file, name) for file, name in bound if name in ("one", "found", "told", "asked", "said")}
    assert bound
