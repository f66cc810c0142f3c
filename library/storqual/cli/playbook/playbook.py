# SPDX-License-Identifier: Apache-2.0
"""`storqual playbook`: run one phase of a campaign, set benches up or put them back, from any folder."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from storqual.base.files import project_root
from storqual.bench.ansible_run import read_events, run_playbook
from storqual.cli.options import as_json, print_json
from storqual.inputs.lab import bench_names, missing_inventories
from storqual.inputs.shape import raise_all
from storqual_core.kit.errors import EXIT_UNEXPECTED, BadInputError, StorqualError

_OF_COMMANDS = frozenset({"facts", "power", "redfish_power"})
"""Playbooks that other commands run, with variables that people do not have."""
_ON_FILES = frozenset({"publish"})
"""These contact no bench."""
_PLANNING = frozenset({"plan", "qualify"})
"""These make a run directory."""
_OF_STORQUAL = (0, 1, 2, 3, 4, EXIT_UNEXPECTED)
_NOT_JUDGED = 2
_WRONG_USE = 3
_ANSIBLE_REFUSED = (1, 2, 3, 4, 5)
"""How ansible-playbook ends before any play: a mistake in its options, in the inventory, or in a variable."""
_NEEDED = {
    "provision": ("drop=NAME",),
    "setup": ("drop=NAME", "prepare=true", "health=true", "prove=true"),
    "measure": ("run=NAME",),
    "publish": ("run=NAME",),
}
"""Variables of which a playbook needs one; a file or a mapping of variables is Ansible's to read."""
_INVENTORY = ("--inventory-file", "--inventory", "-i")
_LIMIT = ("--limit", "-l")
_NO_PLAY = ("--help", "-h", "--version")


def playbook_names() -> list[str]:
    """The playbooks that people run, in the order of the alphabet."""
    names = {path.stem for path in (project_root() / "playbooks").glob("*.yml")}
    return sorted(names - _OF_COMMANDS)


def _complete_name(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    del context, parameter
    return [CompletionItem(name) for name in playbook_names() if name.startswith(begun)]


@click.command("playbook", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@as_json
@click.argument("name", shell_complete=_complete_name)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[ANSIBLE-PLAYBOOK OPTIONS]...")
def playbook_command(as_json: bool, name: str, options: tuple[str, ...]) -> int:
    """Run one of the playbooks that come with storqual, with any options of ansible-playbook.

    This works wherever storqual is installed; in a checkout `ansible-playbook playbooks/NAME.yml` does the same. The
    exit codes are those of all commands. With --json before NAME, the exit code is printed as JSON, and what Ansible
    prints goes to standard error.

    \b
    Examples:
      storqual playbook preflight -i inventories/local
      storqual playbook setup -i inventories/example_lab -e health=true
      storqual playbook setup -i inventories/example_lab -e drop=driver_in_field --check --diff
      storqual playbook restore -i inventories/example_lab --limit bench01
    """
    chosen = name.removesuffix(".yml")
    names = playbook_names()
    if chosen not in names:
        raise BadInputError([f"unknown playbook {name!r}; expected one of {', '.join(names)}"])
    inventories = list(_values(options, _INVENTORY))
    if not inventories and chosen not in _ON_FILES and not set(options) & set(_NO_PLAY):
        raise BadInputError([f"-i/--inventory is needed: storqual playbook {chosen} -i inventories/<lab>"])
    files = [Path(source) for source in inventories if "," not in source]
    raise_all(missing_inventories(files))
    limits = list(_values(options, _LIMIT))
    if limits and chosen not in _ON_FILES and files and len(files) == len(inventories):
        bench_names(files, limits[-1])
    needed = _NEEDED.get(chosen, ())
    known = [f"{each.partition('=')[0]}=" for each in needed]
    # a mapping may hold any of them
    given = any(option[:1] in "@{" or any(name in option for name in known) for option in options)
    if needed and not given and not set(options) & set(_NO_PLAY):
        ways = " or ".join(f"-e {each}" for each in needed)
        raise BadInputError([f"{known[0][:-1]} is needed: add {ways} to storqual playbook {chosen}"])
    code = _run(chosen, options, quiet=as_json)
    if as_json:
        print_json({"playbook": chosen, "exit_code": code})
    return code


def _values(options: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """What an option is given, in any way of writing it: `-i lab`, `-ilab`, `--inventory=lab`."""
    for number, option in enumerate(options):
        name = next((name for name in names if option.startswith(name)), None)
        if name is None:
            continue
        rest = option.removeprefix(name).removeprefix("=")
        yield rest or (options[number + 1] if number + 1 < len(options) else "")


def _run(name: str, options: Sequence[str], *, quiet: bool) -> int:
    """The exit code in storqual's own table: Ansible's 1 would mean that a drop was shown to be worse."""
    with tempfile.TemporaryDirectory(prefix="storqual-playbook-") as folder:
        events = Path(folder) / "events.jsonl"
        status = run_playbook(
            f"{name}.yml",
            inventories=(),
            # beside the playbooks there is no place for runs where storqual is installed as a package
            variables={"runs": str(Path("runs").resolve())} if name in _PLANNING else {},
            options=options,
            environment={"STORQUAL_PROGRESS_FILE": str(events)},
            quiet=quiet,
        )
        kinds = {event.get("kind") for event in read_events(events)}
    if "end" not in kinds and status in _ANSIBLE_REFUSED:
        return _WRONG_USE
    if "end" in kinds and "task" not in kinds:
        raise StorqualError("no bench matched; nothing was done")
    return status if status in _OF_STORQUAL else _NOT_JUDGED
