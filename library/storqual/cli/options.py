# SPDX-License-Identifier: Apache-2.0
"""What several commands share: the run argument, `--json`, and how an answer is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from storqual.base.resources import suites_folder
from storqual_core.kit.errors import BadInputError

_SUITE = ".suite.yml"
_LABS = Path("inventories")


def complete_suite(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of suites; a path is the shell's own."""
    del context, parameter
    folders = (Path("suites"), suites_folder())
    names = (file.name.removesuffix(_SUITE) for folder in folders for file in sorted(folder.glob(f"*{_SUITE}")))
    return _items(begun, names, paths="file")


def complete_profile(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Profiles of the suite that was named; without one, nothing is known."""
    del parameter
    from storqual.inputs import find_suite

    asked = str(context.params.get("suite") or "")
    with suppress(BadInputError, OSError):
        return _items(begun, _keys(find_suite(asked), "profiles"), paths="plain") if asked else []
    return []


def complete_adapters(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Adapters of the inventories named so far, also behind a comma; as they are written, Ansible is not asked."""
    del parameter
    sources = context.params.get("inventories") or context.params.get("sources") or ()
    files = [
        file for source in map(Path, sources) for file in ([source] if source.is_file() else source.glob("*.yml"))
    ]
    before, comma, last = begun.rpartition(",")
    chosen = before.split(",")
    aliases = (alias for file in files for alias in _keys(file, "storqual_adapters") if alias not in chosen)
    return [CompletionItem(f"{before}{comma}{alias}") for alias in dict.fromkeys(aliases) if alias.startswith(last)]


def _keys(file: Path, name: str) -> list[str]:
    """The keys below every key `name` of a YAML file; none of a file that cannot be read."""
    import yaml

    try:
        waiting: list[object] = [yaml.safe_load(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, yaml.YAMLError):
        return []
    found: list[str] = []
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, dict):
            below = one.get(name)
            found += map(str, below) if isinstance(below, dict) else []
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found


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


class Moment(click.DateTime):
    """A day, or a time of a day."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time; a day begins at midnight. Fails with an example of both."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a date such as 2027-03-31, or with a time 2027-03-31T14:00:00", param, ctx)


run_argument = click.argument(
    "run", type=click.Path(path_type=Path, exists=True, file_okay=False), shell_complete=complete_run
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


_CAMPAIGN = (
    click.option(
        "-i", "--inventory", "inventories", multiple=True, help="Inventory of the lab (a folder or a file)."
    ),
    click.option(
        "--candidate",
        shell_complete=complete_drop,
        help="The drop to qualify: a name in <inventory>/drops, or a path.",
    ),
    click.option(
        "--baseline",
        shell_complete=complete_drop,
        help="The drop to compare with; leave it out to characterise one drop.",
    ),
    click.option(
        "--suite", shell_complete=complete_suite, help="Workloads and criteria: a name in suites/, or a path."
    ),
    click.option(
        "--profile",
        shell_complete=complete_profile,
        help="A profile of the suite, such as quick or full (default: the suite's own).",
    ),
    click.option(
        "--gate",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help=(
            "Gate policy (default: gate.yml beside the inventory, else the criteria that the suite marks "
            "as required)."
        ),
    ),
    click.option(
        "--runs",
        type=click.Path(path_type=Path),
        default=Path("runs"),
        show_default=True,
        help="Folder of the run directories.",
    ),
    click.option(
        "--adapters",
        shell_complete=complete_adapters,
        help="Only these adapters, separated by commas (default: all).",
    ),
    click.option(
        "--point",
        "points",
        multiple=True,
        help="Only this point, as the report names it; can be repeated.",
    ),
    click.option("--seed", type=int, help="Seed of the order in which points are measured; recorded in the run."),
    click.option("--limit", help="Only these benches (an Ansible pattern)."),
    click.option(
        "--history",
        type=click.Path(path_type=Path, exists=True),
        help="Noise of earlier runs: their folder, or an extract (`storqual history --extract`).",
    ),
    click.option(
        "--facts",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Output of `storqual facts --deep --json`; only settings that the drives allow to change are varied.",
    ),
    click.option(
        "--budget", help="Bench time, such as 2h: measure until every criterion is decided or the time is used up."
    ),
    click.option(
        "--consent",
        help=(
            "Last characters of the WWNs of drives for which you allow what a claim does not cover "
            "(firmware, format, deleting a volume), separated by commas."
        ),
    ),
    click.option(
        "--checks",
        multiple=True,
        type=click.Path(path_type=Path),
        help=(
            "Your own checks: a test_*.py, a *.robot, or a folder of them; those in suites/ run anyway. "
            "Can be repeated."
        ),
    ),
)


def campaign_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What says which campaign is meant, to plan it or to run it."""
    for option in reversed(_CAMPAIGN):
        command = option(command)
    return command


def names_of(listed: str | None) -> tuple[str, ...] | None:
    """Names separated by commas, blanks around them left out; None where nothing was given."""
    return None if listed is None else tuple(name.strip() for name in listed.split(",") if name.strip())


def print_json(value: object) -> None:
    """One JSON document on standard output; NaN is refused, because other people's parsers refuse it."""
    click.echo(json.dumps(value, allow_nan=False, indent=1))
