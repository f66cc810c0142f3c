# SPDX-License-Identifier: Apache-2.0
"""What several commands share: completion, the run argument, `--json`, and how an answer is printed.

Rows are a table on a terminal, and aligned words that `grep` and `awk` can read in a pipe.
"""

import json
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from storqual.base.files import suites_folder
from storqual.base.table import NUMBER, Table, print_table
from storqual.base.text import terminal_text
from storqual_core.kit.errors import BadInputError

_SUITE = ".suite.yml"
_LABS = Path("inventories")


def complete_suite(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of suites, and suite files of the current folder or of the one that was begun."""
    del context, parameter
    folder, _, _ = begun.rpartition("/")
    files = [
        f"{folder}/{file.name}" if folder else file.name for file in sorted(Path(folder or ".").glob(f"*{_SUITE}"))
    ]
    folders = (Path("suites"), suites_folder())
    names = (file.name.removesuffix(_SUITE) for each in folders for file in sorted(each.glob(f"*{_SUITE}")))
    return _items(begun, [*files, *names], paths="file")


def complete_profile(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Profiles of the suite that was named; without one, nothing is known."""
    del parameter
    from storqual.inputs import find_suite

    suite = str(context.params.get("suite") or "")
    with suppress(BadInputError, OSError):
        return _items(begun, _keys(find_suite(suite), "profiles"), paths="plain") if suite else []
    return []


def complete_adapters(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Adapters of the inventories named so far, also behind a comma; as they are written, Ansible is not asked."""
    del parameter
    sources = context.params.get("inventories") or ()
    files = [
        file for source in map(Path, sources) for file in ([source] if source.is_file() else source.glob("*.yml"))
    ]
    before, comma, last = begun.rpartition(",")
    chosen = before.split(",")
    aliases = (alias for file in files for alias in _keys(file, "storqual_adapters") if alias not in chosen)
    return [CompletionItem(f"{before}{comma}{alias}") for alias in dict.fromkeys(aliases) if alias.startswith(last)]


def _keys(file: Path, name: str) -> list[str]:
    """The keys below every key `name` of a YAML file; none of a file that cannot be read."""
    from storqual.inputs.yaml_file import read_yaml

    try:
        waiting: list[object] = [read_yaml(file, foreign_tags=True).data]
    except BadInputError:
        return []
    keys: list[str] = []
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, dict):
            below = node.get(name)
            keys += map(str, below) if isinstance(below, dict) else []
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return keys


def complete_drop(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of drops in the inventories named so far, or in all."""
    del parameter
    sources = context.params.get("inventories") or ()
    labs = [Path(source) for source in sources] or list(_LABS.glob("*"))
    folders = [(lab if lab.is_dir() else lab.parent) / "drops" for lab in labs]
    return _items(begun, (file.stem for folder in folders for file in folder.glob("*.yml")), paths="file")


def complete_run(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Run directories below `runs/`, or below the folder that was begun; the newest first."""
    del context, parameter
    folder = Path(begun).parent if "/" in begun else Path("runs")
    runs = sorted((str(file.parent) for file in folder.glob("*/run.json")), reverse=True)
    return _items(begun, runs, paths="dir")


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


EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
NEW_FILE = click.Path(path_type=Path, dir_okay=False)
RUN_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)

run_argument = click.argument("run", type=RUN_FOLDER, shell_complete=complete_run)
runs_argument = click.argument("runs", nargs=-1, required=True, type=RUN_FOLDER)
runs_option = click.option(
    "--runs", type=click.Path(path_type=Path), default=Path("runs"), help="Folder of the run directories."
)
lab_option = click.option(
    "-i",
    "--inventory",
    "inventories",
    multiple=True,
    required=True,
    help="Inventory of the lab (a folder or a file).",
)
adapters_option = click.option(
    "--adapters", shell_complete=complete_adapters, help="Only these adapters, separated by commas (default: all)."
)
limit_option = click.option("--limit", help="Only these benches (an Ansible pattern).")
as_json = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


def wanted_seconds(text: str, option: str) -> float:
    """The seconds of a time such as 90s or 4m. Raises BadInputError that names the option."""
    from storqual_core.kit.quantities import parse_duration

    try:
        seconds = float(parse_duration(text))
    except (ValueError, TypeError):
        seconds = 0.0
    if seconds <= 0:
        raise BadInputError([f"{option} {text}: expected a time such as 90s or 4m"])
    return seconds


def json_text(value: object) -> str:
    """One JSON document; NaN is refused, because other people's parsers refuse it."""
    return json.dumps(value, allow_nan=False, indent=1) + "\n"


def print_json(value: object) -> None:
    click.echo(json_text(value), nl=False)


def on_terminal() -> bool:
    return sys.stdout.isatty()


def print_rows(
    heads: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "", numbers: Collection[str] = ()
) -> None:
    """Print `rows`; `title`, `heads` and true minus signs are for a terminal, columns in `numbers` end at the right.

    Texts of devices are made safe and never read as markup; a cell that is an outcome has the outcome's colour.
    """
    print_table(Table(title, tuple(heads), tuple(map(tuple, rows)), dict.fromkeys(numbers, NUMBER)))


def print_pairs(pairs: Sequence[tuple[str, object]]) -> None:
    """Print names with their values, one a line; the same on a terminal and in a pipe."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(f"{terminal_text(name).ljust(width)}  {terminal_text(str(value))}".rstrip())
