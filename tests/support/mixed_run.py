# SPDX-License-Identifier: Apache-2.0
"""One run with launches, trials and a foreign program, as a bench that only exists here leaves it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storqual.campaign.pipeline import publish
from storqual.cli.playbook.record import record
from storqual.run import InputFile, create_run
from tests.attacks.finished_run import GATE, SUITE
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, drive, plan

_LOAD = {"first": 4096, "sectors": 4096, "workers": 4, "sizes": [1], "read_share": 0.2, "through_share": 0.0}
_LOAD |= {"flush_every": 1, "seed": 7}
_TRIAL = {"pci": "0000:00:05.0", "seed": 7, "at_s": 0.5, "away_s": 1.0, "load_s": 1.0, "number": 0, "load": _LOAD}
_TRIAL |= {"expect": {"recovery": 60.0, "stall": 60.0, "errors": None}}
_PROGRAM = {"pci": "0000:00:05.0", "program": "conformance", "number": 1, "words": ["a-test", "{sg}"], "reads": "tap"}
_PROGRAM |= {"report": None, "package": None, "checkout": None, "limit_s": 60.0}
_FAULTS = {"device_reset": "sg_reset_device", "power_cut": "qmp_log_writes"}


def mixed_run(folder: Path, *, loss: float = 0.0) -> Path:
    """A published run whose candidate loses that share of its IOPS; its trials and its program pass."""
    gate = folder / "gate.yml"
    folder.mkdir(parents=True)
    gate.write_text(GATE, encoding="utf-8")
    hosts = lab_hosts({"sym": 2})
    measured = plan(folder, hosts=hosts, suite=SUITE, baseline=KERNEL, candidate=OTHER, gate=gate)
    path = _with_others(measured, folder / "mixed")
    drive(path, Bench(Rates(noise=0.003, losses={"bs": loss})), close=False)
    record(path, "restored", {"bench": "b1"})
    publish(path)
    return path


def _with_others(measured: Path, runs: Path) -> Path:
    """The same campaign with a session of each arm for two trials and a program."""
    document = json.loads((measured / "run.json").read_bytes())
    blocks = [json.loads(file.read_bytes()) for file in sorted((measured / "blocks").iterdir())]
    inputs = {
        name: InputFile(Path(entry["file"]).name, entry["source"], (measured / entry["file"]).read_bytes())
        for name, entry in document.pop("inputs").items()
    }
    name = document.pop("run").replace("small", "mixed")
    for key in ("schema", "created", "finished"):
        del document[key]
    sessions = document["plan"]["sessions"]
    for number, arm in enumerate(("baseline", "candidate"), start=len(sessions) + 1):
        like = next(session for session in sessions if session["arm"] == arm)
        session = f"s{number:02d}"
        batches = [_batch(blocks[0], session, arm, place, turn) for place, turn in enumerate(_turns(arm), start=1)]
        sessions.append({**like, "id": session, "boot": "always", "blocks": [batch["block"] for batch in batches]})
        blocks += batches
    return create_run(runs, name, document, inputs=inputs, blocks=[{**block, "run": name} for block in blocks])


def _turns(arm: str) -> list[dict[str, Any]]:
    """The trials and the program of an arm."""
    found = [
        {
            "kind": "trial",
            "id": f"{fault}.sym.1.1.{arm}",
            "point": fault,
            "n": 0,
            "request": {**_TRIAL, "pair": f"{fault}.sym.1.1", "fault": fault, "way": way},
        }
        for fault, way in _FAULTS.items()
    ]
    program = {"kind": "program", "id": f"conformance.sym.1.{arm}", "point": "conformance", "n": 1}
    return [*found, {**program, "request": _PROGRAM}]


def _batch(like: Mapping[str, Any], session: str, arm: str, place: int, turn: Mapping[str, Any]) -> dict[str, Any]:
    drive_id = next(iter(like["targets"]))
    whole = {**turn, "index": 0, "adapter": "sym", "arm": arm, "configuration": arm, "drives": [drive_id]}
    names = {"block": f"{session}-b{place:03d}", "session": session, "spool": "streamed"}
    return {**{key: like[key] for key in ("schema", "bench", "state_dir", "targets")}, **names, "turns": [whole]}
