# SPDX-License-Identifier: Apache-2.0
"""A small run of trials and of a foreign program, whose records follow from what was told."""

from pathlib import Path

from storqual.campaign.pipeline import publish
from storqual.plan import PlanRequest
from storqual.run import append_event, read_run
from storqual.run.turns import turns_of
from tests.attacks.finished_run import GATE
from tests.support.streamed_turns import made_record
from tests.support.turn_records import keep_turn, plan_campaign

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
INVENTORY = Path(__file__).resolve().parents[2] / "inventories" / "virtual"


def trial_run(folder: Path, *, damaged: bool = False) -> Path:
    """A published run on two adapters in two arms; with `damaged` the candidate lost a write in every trial."""
    folder.mkdir(parents=True)
    suite = folder / "kept.suite.yml"
    suite.write_text(SUITE, encoding="utf-8")
    gate = folder / "gate.yml"
    gate.write_text(GATE, encoding="utf-8")
    request = PlanRequest(
        inventories=(INVENTORY,),
        candidate="stable",
        baseline="stable",
        suite=str(suite),
        gate=gate,
        adapters=("fusion", "vscsi"),
        seed=5,
    )
    path = plan_campaign(request, folder)
    make_turns(path, damaged=damaged)
    append_event(path, "restored", {"bench": "vbench"})
    publish(path)
    return path


def make_turns(path: Path, *, damaged: bool = False) -> None:
    run = read_run(path)
    turns = turns_of(run).planned
    for session in run.plan.sessions:
        if session.id in {turn.session for turn in turns}:
            told = {
                "bench": session.bench,
                "session": session.id,
                "arm": session.arm,
                "boot_id": "b",
                "kernel": "6.1",
            }
            append_event(path, "session_started", told)
    for turn in turns:
        keep_turn(path, made_record(path, turn, lost=damaged and turn.arm == "candidate"))
