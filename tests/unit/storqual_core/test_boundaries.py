# SPDX-License-Identifier: Apache-2.0
"""The core runs on a bench: standard library only, and the oldest Python that ansible-core's targets allow."""

import ast
import sys
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[3] / "library"
CORE = sorted((LIBRARY / "module_utils" / "storqual_core").rglob("*.py"))
MODULES = sorted((LIBRARY / "modules").glob("*.py"))
CONTROL_NODE_MODULES = {"virtual_bench.py"}


def imported_roots(tree: ast.AST) -> set[str]:
    """The first names of all absolute imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", CORE, ids=lambda path: "-".join(path.relative_to(LIBRARY).parts))
def test_the_core_imports_only_the_standard_library_and_itself(path: Path) -> None:
    """Anything else would be missing on a bench."""
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    assert imported_roots(tree) <= sys.stdlib_module_names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_import_the_core_by_the_name_that_is_shipped(path: Path) -> None:
    allowed = sys.stdlib_module_names | {"ansible"}
    if path.name in CONTROL_NODE_MODULES or "kernel_package" in path.name:
        allowed |= {"storqual", "storqual_core"}
    assert imported_roots(ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))) <= allowed
