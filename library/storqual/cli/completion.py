# SPDX-License-Identifier: Apache-2.0
"""What a shell offers behind an option: suites of the project, drops of the inventory, runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from storqual.resources import suites_folder

__all__ = ["complete_drop", "complete_run", "complete_suite"]

_SUITE = ".suite.yml"
_LABS = Path("inventories")


def complete_suite(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of suites; a path is the shell's own."""
    del context, parameter
    return _items(
        begun, (file.name.removesuffix(_SUITE) for file in suites_folder().glob(f"*{_SUITE}")), paths="file"
    )


def complete_drop(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of drops in the inventories named so far, or in all."""
    del parameter
    sources = context.params.get("inventories") or context.params.get("sources") or ()
    labs = [Path(source) for source in sources] or list(_LABS.glob("*"))
    folders = [(lab if lab.is_dir() else lab.parent) / "drops" for lab in labs]
    return _items(begun, (file.stem for folder in folders for file in folder.glob("*.yml")), paths="file")


def complete_run(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Run directories below `runs/`, or below the folder that was begun; the newest first."""
    del context, parameter
    folder = Path(begun).parent if "/" in begun else Path("runs")
    found = sorted((str(file.parent) for file in folder.glob("*/run.json")), reverse=True)
    return _items(begun, found, paths="dir")


def _items(begun: str, words: Iterable[str], *, paths: str) -> list[CompletionItem]:
    """Words that go on from what was begun; where none does, the shell completes paths."""
    fitting = [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(begun)]
    return fitting or [CompletionItem(begun, type=paths)]
