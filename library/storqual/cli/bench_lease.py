# SPDX-License-Identifier: Apache-2.0
"""`storqual bench take|release|out|back|status`: who has a bench, and whether it is in service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.base.table import print_table
from storqual.base.text import terminal_text
from storqual.cli.options import NEW_FILE, as_json, lab_option, limit_option, print_json, runs_option, wanted_seconds
from storqual_core.kit.durable import checked_name
from storqual_core.kit.errors import StorqualError

if TYPE_CHECKING:
    from storqual.bench.lease import Ask
    from storqual.bench.reached import ReachedBench

_reason = click.option("--reason", required=True, help="Why, for whoever wants the bench meanwhile.")


def _reached(inventories: tuple[str, ...], name: str) -> ReachedBench:
    """Raises BadInputError for a name of no bench, StorqualError for one that cannot be reached by a key."""
    from storqual.bench.reached import reach
    from storqual.inputs.lab import bench_names

    (name,) = bench_names([Path(source) for source in inventories], checked_name(name, "bench"))
    (bench,) = reach(inventories, [name])
    if isinstance(bench, StorqualError):
        raise bench
    return bench


def _books(bench: ReachedBench) -> list[Ask]:
    """Where its reservations are kept, the bench itself last. Raises StorqualError for a bench that does not answer.

    A virtual bench may be off: what is kept for it here is all then.
    """
    from storqual.bench.lease import folder_book

    here = [folder_book(Path(bench.queue))] if bench.queue else []
    try:
        return [*here, bench.book()]
    except StorqualError:
        if bench.variables.get("storqual_kind") == "virtual":
            return here
        raise


@click.command("take")
@lab_option
@_reason
@click.option("--for", "time", metavar="TIME", default="8h", show_default=True, help="For how long.")
@as_json
@click.argument("name")
def take_command(inventories: tuple[str, ...], reason: str, time: str, as_json: bool, name: str) -> None:
    """Reserve the bench NAME for yourself, also where somebody else has it.

    What runs there for whoever had it is ended, and his next command is refused and says who has the bench. Your own
    campaigns may use it meanwhile; other playbooks with `-e lease=`, as it is printed.

    \b
    Examples:
      storqual bench take -i inventories/example_lab bench01 --reason "new cables" --for 2h
    """
    from storqual.bench.labgrid import PlaceBook
    from storqual.bench.lease import Waiting, new_owner, reserve

    bench = _reached(inventories, name)
    owner = new_owner(reason, wanted_seconds(time, "--for"))
    waiting, answers = Waiting(0.0, click.echo), []
    for ask in _books(bench):
        answers.append(reserve(ask, name, owner, waiting, take=True))
        if bench.place is not None and len(answers) == 1:
            book = PlaceBook(bench.place, Path(bench.queue), int(answers[0]["lease"]["number"]))
            reserve(book, name, owner, waiting, take=True)
    lease, ended = answers[-1]["lease"], [line for answer in answers for line in answer["ended"]]
    token = f"{lease['number']}@{bench.state_dir}"
    if as_json:
        print_json({"bench": name, "lease": token, "until": owner.until, "former": lease["former"], "ended": ended})
        return
    taken = f", taken from {lease['former']}" if lease["former"] else ""
    for line in (f"{name} is yours until {owner.until}{taken}", *ended, f"for playbooks: -e lease={token}"):
        click.echo(terminal_text(line))


@click.command("release")
@lab_option
@as_json
@click.argument("name")
def release_command(inventories: tuple[str, ...], as_json: bool, name: str) -> None:
    """Give back the bench NAME that you have taken.

    \b
    Examples:
      storqual bench release -i inventories/example_lab bench01
    """
    from storqual.bench.labgrid import release_place
    from storqual.bench.lease import answered, new_owner

    me, bench = new_owner("", 0.0), _reached(inventories, name)
    for ask in _books(bench):
        lease = answered(ask({"act": "read"}))["lease"]
        owner = lease["owner"]
        if owner is not None and (owner["who"], owner["where"], owner["run"]) != (me.who, me.where, ""):
            whose = f"campaign {owner['run']}" if owner["run"] else f"{owner['who']} on {owner['where']}"
            raise StorqualError(f"{name} is not yours to give back: {whose} has it; see `storqual bench take`")
        if bench.queue:
            release_place(Path(bench.queue), lease["number"])
        answered(ask({"act": "release", "number": lease["number"]}))
    _tell(name, "was given back", as_json=as_json)


@click.command("out")
@lab_option
@_reason
@click.option("--until", help="Until when, as an ISO time, or for how long, such as 72h.")
@as_json
@click.argument("name")
def out_command(inventories: tuple[str, ...], reason: str, until: str | None, as_json: bool, name: str) -> None:
    """Put the bench NAME out of service: no campaign begins on it, and each says why.

    It is noted on the bench, where that answers, and on this control node (or where `storqual_queue` says).

    \b
    Examples:
      storqual bench out -i inventories/example_lab bench01 --reason "drive 3 clicks" --until 2026-12-01T08:00+01:00
    """
    from dataclasses import asdict

    from storqual.bench.lease import answered, put_out

    bench = _reached(inventories, name)
    out = put_out(name, reason, bench.queue, until=_moment(until))
    note = ""
    try:
        answered(bench.book()({"act": "out", "out": asdict(out)}))
    except StorqualError:
        note = "; the bench itself does not answer, so other control nodes do not know"
    _tell(name, f"is {out.describe()}{note}", as_json=as_json)


@click.command("back")
@lab_option
@as_json
@click.argument("name")
def back_command(inventories: tuple[str, ...], as_json: bool, name: str) -> int:
    """Put the bench NAME back in service, when it is what its inventory says: the preflight of a campaign runs first.

    \b
    Examples:
      storqual bench back -i inventories/example_lab bench01
    """
    from storqual.bench.ansible_run import run_playbook
    from storqual.bench.lease import answered, folder_book, kept_here

    bench = _reached(inventories, name)
    status = run_playbook(
        "preflight.yml", inventories=inventories, variables={}, options=["--limit", name], quiet=True, lines=True
    )
    if status:
        raise StorqualError(f"{name} stays out of service: its preflight ended with {status}")
    books = [folder_book(kept_here(name, bench.queue)), bench.book()]
    was = [state for ask in books if (state := answered(ask({"act": "back"}))["was"])]
    _tell(name, f"is back in service; it was {was[0]}" if was else "was in service", as_json=as_json)
    return 0


@click.command("status")
@lab_option
@limit_option
@runs_option
@click.option("--html", type=NEW_FILE, help="Write the table as a page, too.")
@as_json
def status_command(
    inventories: tuple[str, ...], limit: str | None, runs: Path, html: Path | None, as_json: bool
) -> None:
    """Show every bench: power, console, SSH, who has it, who waits, what runs, last verdict, drift, what is left.

    Drift is what `storqual playbook setup --check` showed last, and how far the golden reference was from its usual
    value in the newest campaign that `storqual history` knows.

    Takes less than ten seconds; a bench that hangs costs its own row only.

    \b
    Examples:
      storqual bench status -i inventories/example_lab
      storqual bench status -i inventories/example_lab --json
    """
    from dataclasses import asdict

    from storqual.bench.drift import last_drift
    from storqual.bench.reached import reach
    from storqual.history.index import reference_shifts
    from storqual.history.past_runs import last_results
    from storqual.inputs.lab import bench_names
    from storqual.power.bench_status import read_status, status_table

    names = bench_names([Path(source) for source in inventories], limit)
    benches = dict(zip(names, reach(inventories, names), strict=True))
    shifts = reference_shifts(runs)
    drift = {name: "; ".join(filter(None, (last_drift(name, inventories), shifts.get(name)))) for name in names}
    rows = read_status(benches, last_results(runs) if runs.is_dir() else {}, drift)
    if html is not None:
        from storqual.bench.lease import stamp
        from storqual.report.documents import DocumentSection, ReleaseDocument, write_document

        part = DocumentSection("benches", "Benches", table=status_table(rows))
        write_document(
            ReleaseDocument("Lab", "Status of benches", (stamp(),), (part,), "storqual bench status"), html
        )
    if as_json:
        print_json({"benches": [asdict(row) for row in rows]})
        return
    print_table(status_table(rows))


def _moment(until: str | None) -> str:
    """A time as ISO, UTC; empty for none. Raises BadInputError."""
    from datetime import UTC, datetime

    from storqual.bench.lease import stamp

    if until is None:
        return ""
    try:
        return datetime.fromisoformat(until).astimezone(UTC).isoformat(timespec="seconds")
    except ValueError:
        return stamp(wanted_seconds(until, "--until"))


def _tell(name: str, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"bench": name, "text": sentence})
    else:
        click.echo(terminal_text(f"{name} {sentence}"))


COMMANDS: tuple[Any, ...] = (take_command, release_command, out_command, back_command, status_command)
