# SPDX-License-Identifier: Apache-2.0
"""`storqual bench`: what is done with a bench itself, beside any campaign."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.cli.options import as_json, print_json, print_pairs
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from storqual.console.console import Console
    from storqual.inputs.console_way import ConsoleWay

_ACTS = ("show", "follow", "start", "stop", "status", "break", "sysrq")
_LOOK_S = 0.5


@click.group("bench")
def bench_command() -> None:
    """Watch and type at the serial console of a bench.

    \b
    Examples:
      storqual bench console vbench -i inventories/virtual
      storqual bench console bench01 start -i inventories/example_lab
    """


@bench_command.command("console")
@click.argument("name")
@click.argument("act", type=click.Choice(_ACTS), default="show")
@click.argument("letter", default="")
@click.option("-i", "--inventory", "inventories", multiple=True, help="Inventory that names the bench.")
@click.option("--lines", default=40, show_default=True, help="How many of the last lines are shown.")
@click.option(
    "--run",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Run directory for which the recorder is started, and into which its part is taken when it is stopped.",
)
@click.option(
    "--described", is_flag=True, help="For playbooks: read from standard input what the inventory says of the bench."
)
@as_json
def console_command(
    name: str,
    act: str,
    letter: str,
    inventories: tuple[str, ...],
    *,
    lines: int,
    run: Path | None,
    described: bool,
    as_json: bool,
) -> None:
    """Record the serial console of bench NAME, show what was recorded, or type at it.

    show (default), follow: the last lines with their times, and what comes next. start, stop, status: the recorder, a
    process of its own that outlives this command and any campaign. break: send a BREAK. sysrq LETTER: a BREAK and the
    letter, which the kernel of the bench takes for a command where its kernel.sysrq allows that.

    \b
    Examples:
      storqual bench console vbench start -i inventories/virtual
      storqual bench console vbench follow -i inventories/virtual
      storqual bench console bench01 sysrq w -i inventories/example_lab
      storqual bench console bench01 status -i inventories/example_lab --json
    """
    console, way = _described(name) if described else _of_inventory(name, inventories)
    answer: dict[str, Any] = {"bench": name}
    if act == "start":
        answer["started"] = _start(console, way, run)
    elif act == "stop":
        answer.update(_stop(console, run))
    elif act in ("show", "follow"):
        answer["lines"] = _show(console, lines, quiet=as_json, follow=act == "follow")
    elif act == "break":
        console.send_break()
    elif act == "sysrq":
        console.sysrq(letter)
    else:
        answer = {**console.status(), **({} if way is None else {"console": way.words})}
        if not as_json:
            print_pairs([(key, value) for key, value in answer.items() if value != ""])
    if as_json:
        print_json(answer)


def _of_inventory(name: str, inventories: tuple[str, ...]) -> tuple[Console, ConsoleWay | None]:
    from storqual.inputs.inventory import bench_path
    from storqual.inputs.lab import host_variables, load_inventory

    if not inventories:
        raise click.UsageError("-i INVENTORY is needed")
    sources = [Path(source) for source in inventories]
    bench = load_inventory(sources, limit=name).benches.get(name)
    if bench is None:
        raise BadInputError([f"{name} is no name of one bench"])
    state = str(host_variables(sources, name).get("virtual_bench_state") or "") if bench.kind == "virtual" else ""
    folder = next(source if source.is_dir() else source.parent for source in sources).resolve()
    return _console(name, bench_path(state, name, folder) if state else ""), bench.console_way


def _described(name: str) -> tuple[Console, ConsoleWay | None]:
    """A bench as a playbook knows it, which has filled every template: `kind`, `console`, `virtual_state`."""
    from storqual.inputs.console_way import ConsoleWay
    from storqual.inputs.shape import raise_all, shaped
    from storqual.inputs.yaml_file import Document

    given = json.loads(sys.stdin.read())
    way = None
    if given.get("console"):
        way, problems = shaped(ConsoleWay, Document(f"storqual_console of {name}", given["console"], {}))
        raise_all(problems)
    elif given.get("kind") == "virtual":
        way = ConsoleWay(virtual=True)
    return _console(name, str(given.get("virtual_state") or "")), way


def _console(name: str, state: str) -> Console:
    from storqual.console.console import Console
    from storqual.virtual_bench.places import BenchPlaces

    return Console(name, BenchPlaces.of(state) if state else None)


def _start(console: Console, way: ConsoleWay | None, run: Path | None) -> bool:
    from storqual.console.kept import begin

    if way is None:
        raise BadInputError([f"{console.bench} has no console in the inventory; give it `storqual_console`"])
    return console.start(way) if run is None else begin(run, console, way)


def _stop(console: Console, run: Path | None) -> dict[str, Any]:
    from storqual.console.kept import keep

    return {"stopped": console.stop()} if run is None else keep(run, console)


def _show(console: Console, most: int, *, quiet: bool, follow: bool) -> list[dict[str, str]]:
    """The last lines, which are printed unless `quiet`; then those that come, until it is interrupted."""
    from storqual.base.console_log import ConsoleLine, read_recording

    def told(line: ConsoleLine) -> None:
        if not quiet:
            click.echo(f"{line.at} {line.mark} {line.text}")

    mark = console.mark()
    found = [*read_recording(console.recording.read(0, mark))][-most:] if most > 0 else []
    for line in found:
        told(line)
    while follow:
        wait_for_more()
        until = console.mark()
        for line in read_recording(console.recording.read(mark, until)) if until > mark else ():
            told(line)
        mark = until
    return [{"time": line.at, "mark": line.mark, "text": line.text} for line in found]


def wait_for_more() -> None:
    # the recorder is another process, and a file tells nobody that it has grown
    time.sleep(_LOOK_S)
