# SPDX-License-Identifier: Apache-2.0
"""Batch files for tests: launches written flat become turns with a request."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from storqual_core.turns.batch_file import SCHEMA

_OF_REQUEST = ("fio", "load", "file_system", "switch", "readback_s")


def launch_turn(batch: str, launch: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in launch.items() if name not in _OF_REQUEST}
    request = {name: launch[name] for name in _OF_REQUEST if name in launch}
    return {"kind": "launch", "id": f"{batch}/{launch['index']}", **flat, "request": request}


def launch_batch(launches: Iterable[Mapping[str, Any]], **fields: Any) -> dict[str, Any]:
    """A batch file of launches; `fields` are its other keys, its name (`block`) among them."""
    turns = [launch_turn(fields["block"], launch) for launch in launches]
    return {"schema": SCHEMA, "spool": "durable", **fields, "turns": turns}


DRIVE, OTHER = "0x5000c50000000001", "0x5000c50000000002"
PCI = "0000:00:05.0"
TAG = "00" * 8
_TRIAL = json.loads(Path(__file__).with_name("trial.json").read_text(encoding="utf-8"))
_PROGRAM = {
    "program": "acme",
    "number": 1,
    "words": ["true"],
    "reads": "tap",
    "report": None,
    "package": None,
    "checkout": None,
    "limit_s": 20.0,
}


def drive_batch(
    kind: str,
    state_dir: object,
    *,
    claims: Mapping[str, Mapping[str, Any]] | None = None,
    part: str = "all",
    **request: Any,
) -> dict[str, Any]:
    """A streamed batch of one trial or program on the first of the claimed drives, whose turn is run."""
    fields = {"serial": "S1", "model": "M", "size": 1 << 30}
    known = claims or {name: {"wwn": name, **fields} for name in (DRIVE, OTHER)}
    drive = next(iter(known))
    turn = {
        "kind": kind,
        "index": 0,
        "id": f"{kind}1",
        "adapter": "sym",
        "arm": "candidate",
        "configuration": "candidate",
        "point": "",
        "n": 1,
        "drives": [drive],
        "request": {"pci": PCI, **(_TRIAL if kind == "trial" else _PROGRAM), **request},
    }
    return {
        "schema": SCHEMA,
        "run": "r",
        "block": "s01-b01",
        "bench": "bench",
        "session": "s01",
        "state_dir": str(state_dir),
        "targets": {name: {"claim": claim} for name, claim in known.items()},
        "spool": "streamed",
        "turns": [turn],
        "attempt": {"turn": f"{kind}1", "part": part, "tag": TAG},
    }
