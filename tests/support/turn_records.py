# SPDX-License-Identifier: Apache-2.0
"""Records of trials and programs that were never made, put into a run as the bench's batches would leave them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from storqual.campaign import Provision, Stop
from storqual.campaign.next_step import next_command
from storqual.robustness.derived import FOLDERS
from storqual.robustness.store import keep_record, read_trials
from storqual.run import append_event, iter_events, planned_session, read_block, read_run
from storqual.run.collect import finish_streamed
from storqual.turns.batch import run_streamed
from storqual.turns.live_trial import LiveTrial
from storqual.turns.live_turn import BenchHere

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from storqual.robustness.plan import PlannedTrial
    from storqual.run import Run
    from storqual.turns.connection import Connection
    from storqual.virtual_bench.places import BenchPlaces


def batch_of(run: Path, turn: str) -> dict[str, Any]:
    """The batch file that has a turn."""
    names = (path.stem for path in sorted((run / "blocks").glob("*.json")))
    return next(batch for batch in (read_block(run, name) for name in names) if batch["turns"][0]["id"] == turn)


def keep_turn(run: Path, record: Mapping[str, Any], kind: str = "trial") -> None:
    """Keep the record of a turn, with the events of its batch."""
    batch = batch_of(run, record["id"])
    append_event(run, "block_started", {name: batch[name] for name in ("bench", "session", "block")})
    keep_record(run, FOLDERS[kind], record, batch, kind=kind, ends_session=False)
    finish_streamed(run, batch, "done", "")


class Faked:
    """What stand-ins for a connection have in common: the program always starts, the boot is what `run` says."""

    host = "vbench"

    def run(self, command: str, *, limit_s: float = 0.0) -> str:
        """What a command prints."""
        raise NotImplementedError

    def call(self, _command: str, *, limit_s: float = 0.0) -> tuple[int, str]:
        """The start of the bench's program."""
        assert limit_s
        return 0, ""

    def boot_id(self, *, limit_s: float = 60.0) -> str:
        """The bench's boot."""
        return self.run("cat /proc/sys/kernel/random/boot_id", limit_s=limit_s).splitlines()[0]


def live_trial(
    run: Run, planned: PlannedTrial, connection: object, folder: Path, *, console: Path, again: bool = False
) -> LiveTrial:
    """A trial of a run on a bench that is such a connection; it is on boot `boot-1` when its turn begins."""
    virtual = cast("BenchPlaces", SimpleNamespace(console=console))
    state = "/var/lib/storqual"
    here = BenchHere("vbench", cast("Connection", connection), "python3", state, f"{state}/core.pyz", virtual)
    batch = batch_of(run.path, planned.id)
    expect = read_trials(run).suite.trials[planned.number].expect
    turn = batch["turns"][0]
    return LiveTrial(here, batch, turn, planned, folder, expect=expect, boot="boot-1", again=again)


def run_session(path: Path, session: str, connection: object, *, virtual: object = None) -> tuple[bool, list[str]]:
    """Run the batches of a session as the campaign would; whether all of them were run, and how each ended.

    A turn after which the bench must be set up again ends it.
    """
    state = "/var/lib/storqual"
    places = cast("BenchPlaces | None", virtual)
    here = BenchHere("vbench", cast("Connection", connection), "python3", state, f"{state}/core.pyz", places)
    ended: list[str] = []
    blocks = next(one.blocks for one in read_run(path).plan.sessions if one.id == session)
    for block in blocks:
        if any(event.kind == "block_finished" and event.text("block") == block for event in iter_events(path)):
            continue
        outcome, _ = run_streamed(path, block, here, say=lambda _text: None)
        ended.append(outcome)
        last = [event for event in iter_events(path) if event.kind == "turn_finished"][-1:]
        again = outcome != "done" or (last and last[0].text("block") == block and last[0].fields["ends_session"])
        if again:
            return block == blocks[-1] and outcome == "done", ended
    return True, ended


def drive(
    path: Path,
    here: BenchHere,
    *,
    sessions: Collection[str] = (),
    provision: Callable[[], None] = lambda: None,
) -> list[str]:
    """Run what is next until nothing is, as the play does; the sessions that were begun.

    `sessions` are those of the plan that are run, all of them where none is named; `provision` is called for each.
    """
    begun: list[str] = []
    while True:
        boot = here.connection.boot_id()
        step = next_command(path, here.name, boot_id=boot)
        if isinstance(step, Stop):
            return begun
        name = step.session.id if isinstance(step, Provision) else step.session
        if sessions and planned_session(name) not in sessions:
            return begun
        if isinstance(step, Provision):
            provision()
            boot = here.connection.boot_id()
            append_event(path, "session_started", {"bench": here.name, "session": name, "boot_id": boot})
            begun.append(name)
        else:
            run_streamed(path, step.batch, here, say=print)
