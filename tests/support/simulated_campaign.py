# SPDX-License-Identifier: Apache-2.0
"""A campaign on a bench that only exists here: its blocks run, its boots change, its control node may be killed."""

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storqual.campaign import Provision, Stop
from storqual.campaign.next_step import next_command
from storqual.cli.playbook.record import record
from storqual.plan.make import plan_run
from storqual.run import append_event, collect, read_batch
from storqual.run.closing import close_run
from tests.support.make_lab import make_lab
from tests.support.streamed_turns import run_streamed
from tests.support.synthetic_shape import primitives, spooled_launch

Measure = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
"""From a block and a launch of it to what the sample has besides its names: series and primitives."""


class KilledError(Exception):
    """The control node's process is gone."""


def counted(_block: Mapping[str, Any], _launch: Mapping[str, Any]) -> dict[str, Any]:
    """One I/O: for campaigns in which nobody asks how fast it was."""
    return {"series": {}, "primitives": {"read_ios": 1}}


@dataclass(frozen=True)
class Rates:
    """Launches of 1000 IOPS with a spread, less `losses` of the candidate at points that hold a text.

    A launch measured again would give the same again: its rate follows from its names alone.
    """

    noise: float = 0.005
    losses: Mapping[str, float] = field(default_factory=dict)
    session_noise: float = 0.0
    seed: int = 1

    def __call__(self, block: Mapping[str, Any], launch: Mapping[str, Any]) -> dict[str, Any]:
        names = f"{self.seed}/{launch['point']}/{launch['adapter']}/{launch['arm']}/{launch['n']}"
        source = random.Random(names)
        boot = random.Random(f"{self.seed}/{block['session'].partition('.')[0]}").gauss(0.0, self.session_noise)
        rate = 1000.0 * math.exp(source.gauss(0.0, self.noise) + boot)
        if launch["arm"] == "candidate":
            rate *= 1 - sum(loss for text, loss in self.losses.items() if text in launch["point"])
        fio = launch["request"]["fio"]
        seconds = float(fio["runtime_s"])
        workload = "write" if "write" in fio["rw"] else "read"
        counts = primitives(workload, rate, seconds, asked=seconds, size=fio["bs"], outstanding=fio["iodepth"])
        return {"series": {"iops": [rate] * int(seconds)}, "primitives": {**counts, "fio_errors": 0}}


@dataclass
class Bench:
    """What a bench keeps: its boot, and the spools on its disk. Nobody tells it anything twice."""

    measure: Measure = counted
    boot: int = 1
    spools: dict[str, list[str]] = field(default_factory=dict)
    ran_in: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boot}"

    def run(self, block: dict[str, Any], launches: int | None = None) -> None:
        """Run a block, or only so many launches of it before the bench is reset."""
        assert block["block"] not in self.spools, "a second program beside the first"
        self.ran_in[block["session"]].add(self.boot)
        lines: list[dict[str, Any]] = [{"kind": "start", "boot_id": self.boot_id, "kernel": "x"}]
        lines += [self._spooled(block, launch) for launch in block["turns"][:launches]]
        if launches is None:
            lines.append({"kind": "end", "outcome": "done", "message": "", "disks": {}})
        self.spools[block["block"]] = [json.dumps(line) + "\n" for line in lines]

    def reset(self) -> None:
        """A new boot; the disk is as it was."""
        self.boot += 1

    def _spooled(self, block: dict[str, Any], launch: dict[str, Any]) -> dict[str, Any]:
        """A finished record, with evidence where somebody may judge it; launches follow each other by a second."""
        second = sum(len(lines) for lines in self.spools.values()) + launch["index"]
        start = f"2026-11-21T{10 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"
        measured = self.measure(block, launch)
        if self.measure is not counted:
            series = measured["series"].get("iops") or []
            suspect = measured.get("suspect", ())
            wrong_tail = bool(measured.get("wrong_tail"))
            return spooled_launch(
                block, launch["index"], start, series, measured["primitives"], suspect, wrong_tail=wrong_tail
            )
        sample = {
            "id": f"{block['block']}/{launch['index']}",
            **{name: block[name] for name in ("bench", "session", "block")},
            **{name: launch[name] for name in ("adapter", "arm", "configuration", "point", "n")},
            "start": start,
            "runtime_s": 2.0,
            "status": "ok",
            "suspect": [],
            "raw": [],
            **measured,
        }
        return {"kind": "sample", "sample": sample}


def plan(folder: Path, **options: Any) -> Path:
    """A planned run of one bench, b1."""
    path = plan_run(make_lab(folder, **options), folder / "runs").path
    assert path is not None
    return path


def steady(_chance: float) -> bool:
    return False


def drive(  # noqa: PLR0912 - each thing that may go wrong is a branch
    path: Path, bench: Bench, happens: Callable[[float], bool] = steady, source: Any = None, *, close: bool = True
) -> Stop:
    """Control the bench until it stops; `happens(share)` says whether something goes wrong at this moment."""

    def perhaps_killed() -> None:
        if happens(0.08):
            raise KilledError

    while True:
        step = next_command(path, "b1", boot_id=bench.boot_id)
        perhaps_killed()
        if isinstance(step, Stop):
            if close:
                close_run(path)
            return step
        if isinstance(step, Provision):
            if step.session.boot == "always":
                bench.reset()
            perhaps_killed()
            session = {"session": step.session.id, "arm": step.session.arm, "boot_id": bench.boot_id}
            record(path, "session_started", {"bench": "b1", **session})
            continue
        if not step.resume:
            append_event(path, "block_started", {"bench": "b1", "session": step.session, "block": step.batch})
            perhaps_killed()
        if run_streamed(path, step.batch):
            continue
        lost = None
        if step.batch not in bench.spools:
            if bench.boot_id != step.boot_id:
                lost = "the bench was booted before the block began"
            else:
                block = read_batch(path, step.batch)
                fails = happens(0.15)
                bench.run(block, source.randrange(len(block["turns"]) + 1) if fails else None)
                if fails:
                    bench.reset()
                perhaps_killed()
        text = "".join(bench.spools.get(step.batch, []))
        if '"kind": "end"' not in text and lost is None:
            lost = "the bench was reset"
        collect(path, step.batch, text, lost=lost)
        if happens(0.05):
            bench.reset()
