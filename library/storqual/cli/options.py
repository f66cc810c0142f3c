# SPDX-License-Identifier: Apache-2.0
"""What several commands share: the run argument, `--json`, and how an answer is printed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from storqual.base.resources import suites_folder

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


run_argument = click.argument(
    "run", type=click.Path(path_type=Path, exists=True, file_okay=False), shell_complete=complete_run
)
as_json = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


def print_json(value: object) -> None:
    """One JSON document on standard output; NaN is refused, because other people's parsers refuse it."""
    click.echo(json.dumps(value, allow_nan=False, indent=1))
