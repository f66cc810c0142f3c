# SPDX-License-Identifier: Apache-2.0
"""What holds for every tool: it is shipped, it has outputs to be tested with, its parsers take any text or refuse it.

A parser is a public function `parse_…` with one argument that has no default: the text.
"""

import ast
import inspect
import math
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core import tools
from storqual_core.kit.errors import ToolError
from storqual_core.tools.capabilities import offers
from tests.support.mangle import ODD_NUMBERS, mangled, with_odd_number
from tests.support.tool_fixtures import fixture_texts

FOLDER = Path(tools.__file__).parent
FIXTURES = Path(__file__).parent / "fixtures"
WITH_OUTPUTS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())


def parsers(tool: ModuleType) -> list[Callable[[str], Any]]:
    named = [
        member
        for name, member in sorted(vars(tool).items())
        if name.startswith("parse_") and member.__module__.startswith(f"{tools.__name__}.")
    ]
    return [each for each in named if len(_needed(each)) == 1]


def _needed(function: Callable[..., Any]) -> list[str]:
    listed = inspect.signature(function).parameters.values()
    return [each.name for each in listed if each.default is inspect.Parameter.empty]


def test_every_tool_is_shipped_to_the_bench() -> None:
    """Ansible ships what is imported by name; a file that is not would be missing on the bench only."""
    tree = ast.parse((FOLDER / "__init__.py").read_text(encoding="utf-8"))
    (imported,) = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1]
    assert [alias.name for alias in imported.names] == sorted(tools.TOOLS)
    shared = {"__init__", "capabilities"}
    assert sorted(tools.TOOLS) == sorted({path.stem for path in FOLDER.glob("*.py")} - shared)


def test_tools_are_found_in_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "core.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in FOLDER.parent.rglob("*.py"):
            packed.write(path, path.relative_to(FOLDER.parents[1]))
    program = "from storqual_core.tools import TOOLS; print(*sorted(TOOLS)); print(TOOLS['nvme']().__file__)"
    ended = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=True,
    )
    names, file = ended.stdout.splitlines()
    assert names.split() == sorted(tools.TOOLS)
    assert file.startswith(str(archive))


def test_outputs_belong_to_tools() -> None:
    assert set(WITH_OUTPUTS) <= set(tools.TOOLS)


@pytest.mark.parametrize("name", sorted(tools.TOOLS))
def test_a_tool_with_facts_has_outputs_and_a_parser(name: str) -> None:
    """A vendor tool cannot be run here, so its outputs are all there is to test with."""
    tool = tools.TOOLS[name]()
    if "facts" in offers(tool):
        assert name in WITH_OUTPUTS
        assert parsers(tool)


@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_outputs_are_read_or_refused_with_a_sentence(name: str) -> None:
    read = 0
    for text in fixture_texts(name):
        for parse in parsers(tools.TOOLS[name]()):
            try:
                parse(text)
            except ToolError as problem:
                assert len(str(problem).split()) > 3, f"{parse.__name__}: {problem}"  # noqa: PT017 - one of many
            else:
                read += 1
    assert read


def _finite(value: object) -> bool:
    """Whether every number in what a parser gives can be written as JSON by anybody."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < 10**50
    if is_dataclass(value) and not isinstance(value, type):
        return all(_finite(getattr(value, each.name)) for each in fields(value))
    if isinstance(value, Mapping):
        return all(_finite(each) for pair in value.items() for each in pair)
    return not isinstance(value, list | tuple | set | frozenset) or all(map(_finite, value))


@pytest.mark.parametrize("name", WITH_OUTPUTS)
@pytest.mark.parametrize("odd", ODD_NUMBERS, ids=lambda odd: f"{odd[:8]} of {len(odd)}")
def test_a_number_that_is_none_is_read_kept_or_refused(name: str, odd: str) -> None:
    """Each number of each output, and all of them."""
    for text in fixture_texts(name):
        for changed in with_odd_number(text, odd):
            for parse in parsers(tools.TOOLS[name]()):
                try:
                    given = parse(changed)
                except ToolError:
                    continue
                assert _finite(given)


@pytest.mark.parametrize("name", WITH_OUTPUTS)
def test_any_text_is_read_or_refused(name: str) -> None:
    known = parsers(tools.TOOLS[name]())

    @settings(max_examples=40, deadline=None)
    @given(mangled(fixture_texts(name)) | st.text(max_size=80))
    def check(text: str) -> None:
        for parse in known:
            try:
                parse(text)
            except ToolError:
                continue

    check()
