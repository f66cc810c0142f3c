# SPDX-License-Identifier: Apache-2.0
"""`storqual bench`: what is done with a bench itself, beside any campaign: its power, its console."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.base.text import terminal_text
from storqual.cli.bench_lease import COMMANDS
from storqual.cli.options import RUN_FOLDER, as_json, lab_option, print_json, print_pairs, wanted_seconds
from storqual_core.kit.errors import BadInputError, StorqualError

if TYPE_CHECKING:
    from storqual.console.console import Console
    from storqual.inputs.console_way import ConsoleWay
    from storqual.virtual_bench.description import BenchDescription

_ACTS = ("show", "follow", "start", "stop", "status", "break", "sysrq")
_LOOK_S = 0.5


@click.group("bench")
def bench_command() -> None:
    """Switch a bench, or watch and type at its serial console, by what its inventory says.

    \b
    Examples:
      storqual bench power -i inventories/example_lab bench01 state
      storqual bench console vbench -i inventories/virtual
      storqual bench console bench01 start -i inventories/example_lab
      storqual bench switch --folder .cache/bench/vbench state
    """


@bench_command.command("console")
@click.argument("name")
@click.argument("act", type=click.Choice(_ACTS), default="show")
@click.argument("letter", default="")
@click.option("-i", "--inventory", "inventories", multiple=True, help="Inventory that names the bench.")
@click.option("--lines", default=40, show_default=True, help="How many of the last lines are shown.")
@click.option(
    "--run",
    type=RUN_FOLDER,
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
    if described and act == "stop" and run is not None:
        _stop_or_note(name, run)
        return
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
    """A bench as a playbook knows it, templates filled in: `kind`, `console`, `queue`, `virtual_state`."""
    from storqual.inputs.console_way import ConsoleWay
    from storqual.inputs.labgrid import queue_place
    from storqual.inputs.shape import raise_all, shaped
    from storqual.inputs.yaml_file import Document

    given = json.loads(sys.stdin.read())
    way = None
    if given.get("console"):
        way, problems = shaped(ConsoleWay, Document(f"storqual_console of {name}", given["console"], {}))
        raise_all(problems)
        way = way and way.at(queue_place(given.get("queue"), name), name)
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


def _stop_or_note(name: str, run: Path) -> None:
    """Take the console into a run; one that is lost is a note there, and no reason to judge nothing."""
    from storqual.run import append_event

    try:
        print_json({"bench": name, **_stop(_described(name)[0], run)})
    except StorqualError as problem:
        text = f"the recorded console was not taken into the run: {problem}"
        append_event(run, "note", {"bench": name, "text": text})


def _show(console: Console, most: int, *, quiet: bool, follow: bool) -> list[dict[str, str]]:
    """The last lines, which are printed unless `quiet`; then those that come, until it is interrupted."""
    from storqual.base.console_log import ConsoleLine, read_recording

    def show(line: ConsoleLine) -> None:
        if not quiet:
            click.echo(f"{line.at} {line.mark} {line.text}")

    mark = console.mark()
    lines = [*read_recording(console.recording.read(0, mark))][-most:] if most > 0 else []
    for line in lines:
        show(line)
    while follow:
        wait_for_more()
        until = console.mark()
        for line in read_recording(console.recording.read(mark, until)) if until > mark else ():
            show(line)
        mark = until
    return [{"time": line.at, "mark": line.mark, "text": line.text} for line in lines]


def wait_for_more() -> None:
    # the recorder is another process, and a file tells nobody that it has grown
    time.sleep(_LOOK_S)


@bench_command.command("power")
@lab_option
@click.option("--reason", default="", help="Why, for the events of a run and the answer.")
@click.option("--run", type=RUN_FOLDER, help="Record each step as an event of this run, which is not closed.")
@click.option(
    "--boot-time",
    "boot_time",
    metavar="TIME",
    help="Usual time of a boot, such as 4m; after half as much again the next backend is tried.",
)
@as_json
@click.argument("name")
@click.argument("action", type=click.Choice(["state", "on", "off", "cycle"]))
def power_command(
    inventories: tuple[str, ...],
    reason: str,
    run: Path | None,
    boot_time: str | None,
    as_json: bool,
    name: str,
    action: str,
) -> int:
    """Read or switch the power of the bench NAME by its `storqual_power`, and believe only what the bench shows.

    A bench is on when it answers, and off when it was silent for 20 s and no backend says on. A power cycle has
    succeeded when a new boot answers. The exit code is 2 where that is not shown. A bench that answers and is held by
    a run is refused.

    \b
    Examples:
      storqual bench power -i inventories/example_lab bench01 state
      storqual bench power -i inventories/example_lab bench01 cycle --reason "hangs since 21:04"
      storqual bench power -i inventories/virtual vbench off --json
    """
    from storqual.bench.ansible_run import read_events, run_playbook, silent_benches
    from storqual.inputs import load_inventory

    bench = load_inventory([Path(source) for source in inventories], limit=_bench_name(name)).benches[name]
    if not bench.power:
        raise BadInputError([f"{name} has no `storqual_power` in the inventory; see docs/how-to/technician/power.md"])
    variables: dict[str, object] = {"power_switch": action, "power_reason": reason}
    variables |= {"power_run": str(run.absolute())} if run is not None else {}
    variables |= {"power_boot_s": wanted_seconds(boot_time, "--boot-time")} if boot_time is not None else {}
    with tempfile.TemporaryDirectory(prefix="storqual-answers-") as folder:
        events = Path(folder) / "events.jsonl"
        run_playbook(
            "power.yml",
            inventories=inventories,
            variables={**variables, "answers_folder": folder},
            options=["--limit", name],
            environment={"STORQUAL_PROGRESS_FILE": str(events)},
            quiet=True,
            lines=True,
        )
        answer = _read(Path(folder) / f"{name}.json")
        if answer is None:
            why = silent_benches(read_events(events)).get(name, "the play ended without an answer")
            raise StorqualError(f"{name}: {why}")
    code = int(answer["exit_code"])
    if "errors" in answer:
        problem = StorqualError("\n".join(answer["errors"]))
        problem.exit_code = code
        raise problem
    if as_json:
        print_json(answer)
    else:
        proven = "" if answer["proven"] else " (not proven)"
        click.echo(terminal_text(f"{name}: {answer['state']}{proven}: {answer['conclusion']}"))
    return code


def _bench_name(name: str) -> str:
    """The name of one bench. Raises BadInputError for a pattern of Ansible's."""
    from storqual_core.kit.durable import checked_name

    return checked_name(name, "bench")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return None
    return answer if isinstance(answer, dict) and "exit_code" in answer else None


@bench_command.command("switch")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="State folder of the virtual bench (its `virtual_bench_state`).",
)
@click.option("-i", "--inventory", "inventories", multiple=True, help="Inventory of the bench; needed for `on`.")
@click.option("--name", help="The bench's name in the inventory; needed where it has several.")
@as_json
@click.argument("action", type=click.Choice(["state", "on", "off"]))
def switch_command(folder: Path, inventories: tuple[str, ...], name: str | None, as_json: bool, action: str) -> None:
    """The bare power switch of a virtual bench, for what switches a real one: nothing is waited for or proven.

    `off` is a power cut. Prints the state, `on` or `off`.

    \b
    Examples:
      storqual bench switch --folder .cache/bench/vbench state
      storqual bench switch --folder .cache/bench/vbench -i inventories/virtual on
    """
    from storqual.virtual_bench.places import BenchPlaces
    from storqual.virtual_bench.power import power_off, power_state, switch_on

    places = BenchPlaces.of(folder)
    if action == "off":
        power_off(places, graceful=False, targets=False)
    elif action == "on" and power_state(places) is None:
        switch_on(places, _description(inventories, name))
    state = "off" if power_state(places) is None else "on"
    if as_json:
        print_json({"state": state})
        return
    click.echo(state)


def _description(inventories: tuple[str, ...], name: str | None) -> BenchDescription:
    from storqual.inputs import load_inventory
    from storqual.virtual_bench.description import described

    if not inventories:
        raise BadInputError(["`on` needs the inventory of the bench (-i)"])
    benches = load_inventory([Path(source) for source in inventories], limit=name).benches
    if len(benches) != 1:
        raise BadInputError([f"the inventory has the benches {', '.join(benches)}; say which one (--name)"])
    return described(next(iter(benches.values())))


for _command in COMMANDS:
    bench_command.add_command(_command)
