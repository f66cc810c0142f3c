# SPDX-License-Identifier: Apache-2.0
"""What pages and docstrings name is there: files, modules, commands. A name of nothing misleads a reader."""

import ast
import importlib
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from storqual.cli import storqual

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARY = REPOSITORY / "library"
ROOTS = (
    REPOSITORY,
    LIBRARY,
    LIBRARY / "module_utils",
    LIBRARY / "module_utils" / "storqual_core",
    LIBRARY / "storqual",
)
"""Where a path in a text may begin, besides its own folder."""

FILE = re.compile(r"(?<![\w./<>*{-])((?:\.?[\w-]+/)*[\w-]+\.(?:py|md|j2|robot|css))(?![\w*/-]|\.\w)")
PLACE = re.compile(r"`((?![/.]*/)[\w.*-]+/[\w.*/-]*)`")
MODULE = re.compile(r"(?<![\w./-])(storqual(?:_core)?(?:\.[A-Za-z_]\w*)+)(?![\w/=])")
NAME = re.compile(r"`((?:\w+\.)*[a-z]+(?:_[a-z0-9]+)+)(?:\(\))?`")
COMMAND = re.compile(r"(?:^ {4,}(?:\.venv/bin/)?|`)storqual ([a-z_]+)", re.MULTILINE)
ELSEWHERE = re.compile(
    r"\bdesign(?:\.md|,? section \d)|field-notes|(?<!RFC 4251, )\bsection \d(?!\.\d\))", re.IGNORECASE
)
"""Documents that are no part of the project."""

_OF_A_LAB = ("lab", "runs", "drops", "robot")
_OF_A_RUN = ("raw", "inputs", "blocks", "judgements", "annex", "signoff", "notes", "external")
_OF_A_BENCH = ("accepted", "spool", "firmware")
MADE = (*_OF_A_LAB, *_OF_A_RUN, *_OF_A_BENCH)
"""Folders that a lab, a run or the state folder of a bench has: a page tells of them without one being here."""

OF_A_READER = re.compile(r"storqual\.\w+/\d+|inventories/(?:room7|racks)\b.*|.*\bNAME\b.*")
"""Numbers of formats, the labs that pages have their readers make, and names that stand for any."""

EXAMPLES = frozenset({"acmecli", "my_checks", "example"})
"""Names of things that a reader is to make."""


@cache
def files() -> frozenset[str]:
    """Every file of the project, as git knows it or would."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    return frozenset(name for name in listed if (REPOSITORY / name).is_file())


def pages() -> list[str]:
    """Every page in Markdown; the change log tells of what was."""
    return sorted(name for name in files() if name.endswith(".md") and name != "CHANGELOG.md")


def modules() -> list[str]:
    """Every file of Python code that is no test."""
    return sorted(name for name in files() if name.endswith(".py") and name.startswith(("library/", "suites/")))


@cache
def docstrings(name: str) -> str:
    """The docstrings of a file, and the texts under its names, one after another."""
    tree = ast.parse((REPOSITORY / name).read_text(encoding="utf-8"))
    return "\n".join(
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


TITLE = re.compile(r'^ *```\w+ title="([^"]+)"$', re.MULTILINE)


def text_of(name: str) -> str:
    """What a reader reads: a page as it is, of code its docstrings."""
    return (REPOSITORY / name).read_text(encoding="utf-8") if name.endswith(".md") else docstrings(name)


@cache
def made_for_the_site() -> frozenset[str]:
    """Pages of the documentation site: some are made when it is built, which fails when one is not there."""
    return frozenset(Path(one).name for one in FILE.findall((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")))


def missing_files(name: str) -> Iterator[str]:
    """Paths of a text that no file has; a bare name is one of any folder."""
    known = {Path(one).name for one in files()}
    # what a page has its reader write
    shown = {end for title in TITLE.findall(text_of(name)) for end in (title, Path(title).name)}
    for path in FILE.findall(text_of(name)):
        if path in shown or any(word in path for word in EXAMPLES):
            continue
        if name.startswith(("docs/", "ci/docs/")) and Path(path).name in made_for_the_site():
            continue
        places = [root / path for root in (*ROOTS, (REPOSITORY / name).parent)]
        if not (any(place.is_file() for place in places) or ("/" not in path and path in known)):
            yield path


def missing_places(name: str) -> Iterator[str]:
    """Folders and patterns in backticks that nothing here is."""
    for place in PLACE.findall(text_of(name)):
        if OF_A_READER.fullmatch(place):
            continue
        roots = (*ROOTS, (REPOSITORY / name).parent)
        if place.split("/")[0] not in MADE and not any(any(root.glob(place.rstrip("/"))) for root in roots):
            yield place


def missing_modules(name: str) -> Iterator[str]:
    for dotted in MODULE.findall(text_of(name)):
        if not (_is_in_collection(dotted) or _is_there(dotted)):
            yield dotted


@cache
def _is_there(dotted: str) -> bool:
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[end:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def _is_in_collection(dotted: str) -> bool:
    """Whether it is something of the Ansible collection, whose name is that of a folder of ours."""
    place = dotted.removeprefix("storqual.bench.")
    folders = ("library/modules/{}.py", "library/plugins/callback/{}.py", "roles/{}", "playbooks/{}.yml")
    return any((REPOSITORY / folder.format(place)).exists() for folder in folders)


@cache
def words() -> frozenset[str]:
    """What code and data are made of: every word of the project's files outside of docstrings, comments and pages."""
    found = {Path(name).stem for name in files()}
    for name in files():
        if not name.endswith(".md") and not name.startswith("tests/golden/"):
            found.update(re.findall(r"\w+", _without_docstrings(name)))
    return frozenset(found)


def _without_docstrings(name: str) -> str:
    text = (REPOSITORY / name).read_text(encoding="utf-8", errors="replace")
    if not name.endswith(".py"):
        return text
    lines = [line.partition("#")[0] for line in text.splitlines()]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (1 + (node.end_lineno or 0) - node.lineno)
    return "\n".join(lines)


def missing_names(name: str) -> Iterator[str]:
    """Names in backticks, written as code writes them, that no code has."""
    for named in NAME.findall(text_of(name)):
        yield from (word for word in named.split(".") if "_" in word and word not in words())


@pytest.mark.parametrize("name", pages())
def test_a_page_names_what_is_there(name: str) -> None:
    wrong = [*missing_files(name), *missing_places(name), *missing_modules(name), *missing_names(name)]
    assert not wrong


def test_docstrings_name_what_is_there() -> None:
    wrong = {name: [*missing_files(name), *missing_modules(name), *missing_names(name)] for name in modules()}
    assert not {name: found for name, found in wrong.items() if found}


@pytest.mark.parametrize("name", pages())
def test_a_page_names_commands_that_there_are(name: str) -> None:
    known = storqual.list_commands(click.Context(storqual))
    assert set(COMMAND.findall(text_of(name))) <= {*known}


def test_nothing_is_explained_by_a_document_that_is_not_here() -> None:
    wrong = {name: found.group() for name in [*pages(), *modules()] if (found := ELSEWHERE.search(text_of(name)))}
    assert not wrong


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the metrics are in `library/storqual/metrics.py`", ["library/storqual/metrics.py"]),
        ("one line in `settingz.py`, nowhere else", ["settingz.py"]),
        ("one line in `storqual_core/kit/settings.py`", []),
        ("`suites/test_*.py` and runs/<run-id>/page.md", []),
    ],
)
def test_a_file_that_is_not_there_is_found(text: str, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.text_of", lambda _: text)
    assert list(missing_files("README.md")) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a folder `storqual/model/`, a pattern `suites/*.robot`", ["storqual/model/", "suites/*.robot"]),
        ("a folder `storqual/judge/`, a pattern `suites/robot/*.robot`, `runs/`", []),
    ],
)
def test_a_folder_that_is_not_there_is_found(text: str, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.text_of", lambda _: text)
    assert list(missing_places("README.md")) == found


def test_a_name_that_no_code_has_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.text_of", lambda _: "`point_name` and `disk_write_" + "ledger`")
    assert list(missing_names("README.md")) == ["disk_write_" + "ledger"]


@pytest.mark.parametrize(
    ("dotted", "there"),
    [
        ("storqual.metrics.METRICS", True),
        ("storqual.run.Run", True),
        ("storqual_core.kit.command.run", True),
        ("storqual.model.drop", False),
        ("storqual_core.kit.command.walk", False),
    ],
)
def test_a_module_that_is_not_there_is_found(dotted: str, there: bool) -> None:
    assert _is_there(dotted) == there
