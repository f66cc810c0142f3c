# SPDX-License-Identifier: Apache-2.0
"""Blocks beyond the plan, made of the launches that the plan has: same points, same targets, further numbers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from storqual.plan.points import THINK_TIME
from storqual.run import Run, read_batch
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.settings import disturbed_by

PointKey = tuple[str, str]
"""Adapter and point."""
Turn = tuple[PointKey, str, int]
"""A launch to be: its point, its arm, and the how manieth of that arm there."""


_COMMON = ("schema", "run", "bench", "state_dir", "idle_s", "kernel_rules", "spool")


@dataclass(frozen=True)
class SessionPattern:
    """What batches of a bench are made of.

    `targets` are what a point needs in an arm: its drives, or its volumes with the drives behind them. `sessions`
    says in which planned session an arm measures a point, `switches` what sets a drive to a configuration.
    """

    common: Mapping[str, Any]
    targets: Mapping[tuple[PointKey, str], Mapping[str, Any]]
    launches: Mapping[tuple[PointKey, str], Mapping[str, Any]]
    sessions: Mapping[tuple[PointKey, str], str]
    switches: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]

    def takes_ramp(self, key: PointKey) -> bool:
        return all(
            THINK_TIME not in launch["request"]["fio"]["options"]
            for (at, _), launch in self.launches.items()
            if at == key
        )


def next_session_name(run: Run, bench: str, offset: int = 0) -> str:
    """What the session of `bench` after all those that there are is called; `offset` are others before it."""
    so_far = [session for session in run.sessions if session.bench == bench]
    return f"{so_far[0].id.rstrip('0123456789')}{len(so_far) + 1 + offset:02d}"


def planned_pattern(run: Run, bench: str) -> SessionPattern:
    common: dict[str, Any] = {}
    targets: dict[tuple[PointKey, str], Mapping[str, Any]] = {}
    launches: dict[tuple[PointKey, str], Mapping[str, Any]] = {}
    sessions: dict[tuple[PointKey, str], str] = {}
    for session in run.plan.sessions:
        # a session with a purpose of its own has trials or programs
        for name in session.batches if session.bench == bench and not session.purpose else ():
            batch = read_batch(run.path, name)
            common = {key: batch[key] for key in _COMMON if key in batch}
            for launch in batch["turns"]:
                key = ((launch["adapter"], launch["point"]), launch["arm"])
                launches[key] = launch
                targets[key] = _targets(launch, batch["targets"])
                sessions[key] = session.id
    switches = {
        configuration: {drive: [_checked(step) for step in steps] for drive, steps in drives.items()}
        for configuration, drives in ((run.document.get("switches") or {}).get(bench) or {}).items()
    }
    return SessionPattern(common, targets, launches, sessions, switches)


def _targets(launch: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The targets of a launch; the drives behind a volume are claimed with it."""
    named = list(launch["drives"])
    named += [member for name in launch["drives"] for member in (known[name].get("volume") or {}).get("members", ())]
    return {name: known[name] for name in named}


def further_batch(
    pattern: SessionPattern,
    name: str,
    session: str,
    turns: Iterable[Turn],
    longer: Mapping[Turn, float] = MappingProxyType({}),
) -> dict[str, Any]:
    """The batch `name` with these launches in this order. It takes nothing for granted of the batch before.

    `longer` are seconds by which the ramps of launches are longer than planned.
    """
    state: dict[str, str] = {}
    listed = []
    targets: dict[str, Any] = {}
    for index, (key, arm, number) in enumerate(turns):
        launch = pattern.launches[key, arm]
        configuration = launch["configuration"]
        own = pattern.switches.get(configuration) or {}
        steps: list[Mapping[str, Any]] = []
        for drive in pattern.targets[key, arm]:
            if state.get(drive) != configuration:
                steps += own.get(drive) or ()
                state[drive] = configuration
        targets.update(pattern.targets[key, arm])
        more = longer.get((key, arm, number), 0.0)
        fio = launch["request"]["fio"]
        request = {**launch["request"], "fio": {**fio, "ramp_s": fio["ramp_s"] + more}, "switch": steps}
        listed.append({**launch, "index": index, "id": f"{name}/{index}", "n": number, "request": request})
    return {
        **pattern.common,
        "targets": dict(sorted(targets.items())),
        "block": name,
        "session": session,
        "turns": listed,
    }


def rest_of(batch: Mapping[str, Any], done: Collection[str], *, name: str, session: str) -> dict[str, Any] | None:
    """What is left of a batch when the turns `done` have samples or records; None when nothing is.

    Indices count from 0 again, and the ids of launches with them. `n` stays: it is the same launch of the plan, tried
    in another session; a sample that was cut off is never joined to another. A switch that an earlier launch made
    holds no more on a bench that was booted, so every launch gets the switches that led to its state, unless the rest
    made them already.
    """
    wanted: dict[tuple[str, str], Mapping[str, Any]] = {}
    made: dict[tuple[str, str], object] = {}
    left: list[dict[str, Any]] = []
    for launch in batch["turns"]:
        steps = [_checked(step) for step in launch["request"].get("switch") or ()]
        wanted.update({(step["drive"], step["setting"]): step for step in steps})
        if launch["id"] in done:
            continue
        if launch["kind"] != "launch":
            left.append({**launch, "index": len(left)})
            continue
        own = {key: step for key, step in wanted.items() if key[0] in _targets(launch, batch["targets"])}
        changed = [key for key, step in own.items() if key not in made or made[key] != step["value"]]
        touched = {(drive, name) for drive, setting in changed for name in (setting, *disturbed_by("drive", setting))}
        steps = [step for key, step in own.items() if key in touched]
        made.update({key: own[key]["value"] for key in changed})
        numbered = {**launch, "index": len(left), "id": f"{name}/{len(left)}"}
        left.append({**numbered, "request": {**launch["request"], "switch": steps}})
    if not left:
        return None
    if len(left) < len(batch["turns"]):
        # drives are preconditioned before the first launch of all
        batch = {name: value for name, value in batch.items() if name != "precondition"}
    return {**batch, "block": name, "session": session, "turns": left}


def _checked(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """A switch of a batch file. Raises BadInputError for one without drive, setting or value."""
    if not {"drive", "setting", "value"} <= set(step):
        raise BadInputError([f"found a switch without drive, setting or value: {dict(step)}: plan the run anew"])
    return step
