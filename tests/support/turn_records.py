# SPDX-License-Identifier: Apache-2.0
"""Records of trials and programs that were never made, put into a run as the bench's batches would leave them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from storqual.base.files import project_root
from storqual.bench.follow import Connection
from storqual.campaign import Provision, Stop
from storqual.campaign.next_step import next_command
from storqual.kinds.kind import PlannedTurn
from storqual.plan import PlanRequest
from storqual.plan.make import plan_run
from storqual.run import Run, append_event, iter_events, planned_session, read_batch, read_run
from storqual.run.collect import finish_streamed
from storqual.run.turns import keep_record, turns_of
from storqual.turns.batch import run_streamed
from storqual.turns.bring_back import BenchHere
from storqual.turns.live_trial import LiveTrial
from storqual.virtual_bench.places import BenchPlaces


def batch_of(run: Path, turn: str) -> dict[str, Any]:
    names = (path.stem for path in sorted((run / "blocks").glob("*.json")))
    return next(batch for batch in (read_batch(run, name) for name in names) if batch["turns"][0]["id"] == turn)


def turns_planned(run: Path | Run, kind: str = "trial") -> list[PlannedTurn]:
    opened = read_run(run) if isinstance(run, Path) else run
    return [turn for turn in turns_of(opened).planned if turn.kind == kind]


def record_by_hand(run: Path | Run, number: int, **fields: Any) -> dict[str, Any]:
    """The record of a trial that passed, which no raw file gives."""
    turn = turns_planned(run)[number]
    asked = {name: value for name, value in turn.request.items() if name not in ("load", "expect", "pci")}
    made = {"outcome": "passed", "reasons": [], "violations": [], "recovery_s": 1.0}
    made |= {"timeline": [[1.0, "fault", "begin"]], "disks": {}, "boot_id": "b", "raw": []}
    return {**turn.head(), **asked, **made, **fields}


GATE = """\
informative:
  - bench_acceptance.robot::*
  - driver_drop.robot::*
  - sign_off.robot::Nothing Was Written Outside Claims
  - sign_off.robot::The Evidence Is Whole
"""
"""A record by hand rests on no raw file, and a bench that there is not has no adapters to look at."""


def gate_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    gate = folder / "gate.yml"
    gate.write_text(GATE, encoding="utf-8")
    return gate


def finish_by_hand(run: Path, **failures: dict[str, Any]) -> Path:
    """Make every trial of a planned run; `failures` change records by `<fault>_<arm>`."""
    for session in read_run(run).plan.sessions:
        told = {"bench": session.bench, "session": session.id, "arm": session.arm, "boot_id": "b", "kernel": "6.1"}
        append_event(run, "session_started", told)
    for number, turn in enumerate(turns_planned(run)):
        keep_turn(run, record_by_hand(run, number, **failures.get(f"{turn.point}_{turn.arm}", {})))
    for bench in read_run(run).benches:
        append_event(run, "restored", {"bench": bench})
    return run


def keep_turn(run: Path, record: Mapping[str, Any]) -> None:
    batch = batch_of(run, record["id"])
    append_event(run, "block_started", {name: batch[name] for name in ("bench", "session", "block")})
    keep_record(run, batch, record, ends_session=False)
    finish_streamed(run, batch, "done", "")


class Faked:
    """What stand-ins for a connection have in common: the program always starts, the boot is what `run` says.

    `take` gets the batch file that it is started with.
    """

    host = "vbench"

    def run(self, command: str, *, limit_s: float = 0.0) -> str:
        raise NotImplementedError

    def call(self, _command: str, *, data: bytes = b"", limit_s: float = 0.0) -> tuple[int, str]:
        assert limit_s
        self.take(data)
        return 0, ""

    def take(self, data: bytes) -> None:
        pass

    def boot_id(self, *, limit_s: float = 60.0) -> str:
        return self.run("cat /proc/sys/kernel/random/boot_id", limit_s=limit_s).splitlines()[0]


def live_trial(
    run: Run, planned: PlannedTurn, connection: object, *, console: Path | None, again: bool = False
) -> LiveTrial:
    """A trial of a run on a bench that is such a connection; it is on boot `boot-1` when its turn begins.

    `console` is the log of a virtual bench; without it the bench is another one.
    """
    places = console and SimpleNamespace(console=console, recording=console.with_name("recording"))
    virtual = cast("BenchPlaces | None", places)
    state = "/var/lib/storqual"
    here = BenchHere("vbench", cast("Connection", connection), "python3", state, f"{state}/core.pyz", virtual)
    batch = batch_of(run.path, planned.id)
    return LiveTrial(run.path, here, batch, batch["turns"][0], boot="boot-1", again=again)


def run_session(path: Path, session: str, connection: object, *, virtual: object = None) -> tuple[bool, list[str]]:
    """Run the batches of a session as the campaign would; whether all of them were run, and how each ended.

    A turn after which the bench must be set up again ends it.
    """
    state = "/var/lib/storqual"
    places = cast("BenchPlaces | None", SimpleNamespace(console=path / "console.log") if virtual else None)
    here = BenchHere("vbench", cast("Connection", connection), "python3", state, f"{state}/core.pyz", places)
    ended: list[str] = []
    blocks = next(one.batches for one in read_run(path).plan.sessions if one.id == session)
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
    path: Path, here: BenchHere, *, sessions: Collection[str] = (), provision: Callable[[], None] = lambda: None
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
            told = {"bench": here.name, "session": name, "arm": step.session.arm, "boot_id": boot}
            append_event(path, "session_started", told)
            begun.append(name)
        else:
            run_streamed(path, step.batch, here, say=print)


INVENTORY = project_root() / "inventories" / "virtual"
REQUEST = PlanRequest(
    inventories=(INVENTORY,),
    candidate="stable",
    baseline="stable",
    suite="robustness",
    profile="quick",
    adapters=("fusion", "vscsi"),
    seed=5,
)


def plan_campaign(request: PlanRequest, folder: Path) -> Path:
    path = plan_run(request, folder).path
    assert path is not None
    return path


def finished(folder: Path, request: PlanRequest = REQUEST, **failures: dict[str, Any]) -> Path:
    """A campaign in which every trial was made; `failures` change records by the id's first word and the arm."""
    return finish_by_hand(plan_campaign(replace(request, gate=gate_in(folder)), folder), **failures)
