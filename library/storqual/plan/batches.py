# SPDX-License-Identifier: Apache-2.0
"""Launches of a session in their order, cut into batch files that a bench runs without the control node."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.inputs.inventory import Bench, Drive
from storqual.inputs.suite import Profile
from storqual.plan.arms import switch_steps
from storqual.plan.file_systems import ask_of, to_batch
from storqual.plan.points import READS_LOOKED_AT, Placed, drives_for, team
from storqual.plan.sessions import Configuration, SessionPlan, Varied, configuration_name
from storqual.plan.volumes import ON_VOLUME, Layout, TargetVolume, volumes_of
from storqual_core.turns.batch_file import FILE_SYSTEMS, SCHEMA


@dataclass(frozen=True)
class PlannedLaunch:
    """One fio process to be: a point on an adapter under a configuration; `n` counts its arm's launches there."""

    placed: Placed
    arm: str
    configuration: str
    n: int
    group: int
    """Launches of one group (a pair) stay in one batch."""

    @property
    def point(self) -> str:
        return self.placed.point.name

    def seconds(self, profile: Profile, launch_cost: float = 0.0) -> float:
        return self.placed.point.pattern.launch_seconds(profile, launch_cost)


def order_launches(
    session: SessionPlan,
    placed: Sequence[Placed],
    profile: Profile,
    *,
    seed: int,
    done: Mapping[str, int],
    quick: Sequence[Varied],
    by_batch: bool = False,
) -> list[PlannedLaunch]:
    """All launches of a session. The order of the points is drawn from `seed` and the session's id.

    One arm: each round goes once over all points in a new order. Two arms: each round runs a pair A B at every point,
    the next round B A: a pair cancels what drifts slowly, the order what drifts steadily. Points on one file system
    stay together, in an order of file systems that is drawn, too: making one takes longer than a launch. `by_batch`:
    a round has all of A, then all of B, in the same order. `done` counts earlier launches of an arm, per arm.
    """
    source = random.Random(f"{seed}/{session.id}")  # noqa: S311 - an order, not a secret
    both = len(session.arms) > 1
    rounds = profile.pairs if both else profile.launches
    launches: list[PlannedLaunch] = []
    for number in range(rounds):
        first = len(launches)
        arms = session.arms if number % 2 == 0 else tuple(reversed(session.arms))
        combinations = list(quick)
        source.shuffle(combinations)
        for combination in combinations:
            wanted = dict(combination) | dict(session.slow)
            here = [point for point in placed if dict(point.point.varied) == wanted]
            source.shuffle(here)
            # drawn by the shuffle above; what is no file system is one kind
            kinds = list(dict.fromkeys(_file_system(point) for point in here))
            for point in sorted(here, key=lambda point: kinds.index(_file_system(point))):
                group = len(launches)
                launches += [
                    PlannedLaunch(point, arm, configuration_name(arm, wanted), done.get(arm, 0) + number + 1, group)
                    for arm in arms
                ]
        if by_batch:
            launches[first:] = sorted(launches[first:], key=lambda launch: arms.index(launch.arm))
    return launches


def _file_system(placed: Placed) -> str:
    """The file system that a point needs on its drives; empty for none."""
    target = str(placed.point.pattern.values.get("target"))
    return target if target.removesuffix(ON_VOLUME) in FILE_SYSTEMS else ""


def cut(
    launches: Sequence[PlannedLaunch], profile: Profile, launch_cost: float, *, by_batch: bool = False
) -> Iterator[list[PlannedLaunch]]:
    """Blocks of at most `profile.block` seconds; a pair is never cut. At least one launch each.

    `by_batch`: each batch has one arm, and there a pair is always two batches' matter.
    """
    batch: list[PlannedLaunch] = []
    for launch in launches:
        full = seconds_of([*batch, launch], profile, launch_cost) > profile.block
        if by_batch:
            ends = batch and (full or launch.arm != batch[-1].arm)
        else:
            ends = batch and full and launch.group != batch[-1].group
        if ends:
            yield batch
            batch = []
        batch.append(launch)
    if batch:
        yield batch


def seconds_of(batch: Iterable[PlannedLaunch], profile: Profile, launch_cost: float) -> float:
    """Expected seconds of a batch, its idle windows and start included."""
    return sum(launch.seconds(profile, launch_cost) for launch in batch) + 2 * profile.idle + 1.0


def batch_file(
    run: str,
    batch: str,
    session: str,
    bench: Bench,
    launches: Sequence[PlannedLaunch],
    profile: Profile,
    *,
    peers: Sequence[str],
    configurations: Mapping[str, Configuration],
    layouts: Mapping[str, Layout],
) -> dict[str, Any]:
    """The batch file: claims of every target, every launch, and the switches between configurations.

    A batch takes nothing for granted of the batch before: the first launch on a drive sets everything in which the
    configurations of its session, `peers`, differ, later ones what the drive's last launch left otherwise.
    """
    state: dict[str, str] = {}
    targets: dict[str, dict[str, Any]] = {}
    listed = []
    for index, launch in enumerate(launches):
        volumes = _volumes(launch, configurations)
        drives = _drives(launch, bench, volumes, layouts)
        targets |= {drive.id: {"claim": claim(drive)} for drive in drives}
        targets |= {volume.id: {"volume": volume.claim()} for volume in volumes}
        steps: dict[tuple[str, str], dict[str, Any]] = {}
        for drive in drives:
            for was in [state[drive.id]] if drive.id in state else peers:
                switches = switch_steps(
                    configurations[was].resolved, configurations[launch.configuration].resolved, [drive.id]
                )
                steps |= {(step["drive"], step["setting"]): step for step in switches}
            state[drive.id] = launch.configuration
        listed.append(
            {
                "kind": "launch",
                "index": index,
                "id": f"{batch}/{index}",
                "adapter": launch.placed.adapter,
                "arm": launch.arm,
                "configuration": launch.configuration,
                "point": launch.point,
                "n": launch.n,
                "drives": [target.id for target in volumes or drives],
                "request": {
                    "fio": _fio(launch, profile, bench.kind, drives),
                    **_paced(launch, drives),
                    **_load(launch),
                    **to_batch(ask_of(launch.placed.point.pattern, profile)),
                    "switch": list(steps.values()),
                    **_readback(launch, profile),
                },
            }
        )
    return {
        **batch_of(run, batch, session, bench, dict(sorted(targets.items())), listed, spool="durable"),
        "idle_s": profile.idle,
    }


def batch_of(
    run: str,
    batch: str,
    session: str,
    bench: Bench,
    targets: Mapping[str, Mapping[str, Any]],
    turns: Sequence[Mapping[str, Any]],
    *,
    spool: str,
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": run,
        "block": batch,
        "bench": bench.name,
        "session": session,
        "state_dir": bench.state_dir,
        "targets": targets,
        "spool": spool,
        "turns": turns,
        **({"kernel_rules": [rule.model_dump() for rule in bench.kernel_rules]} if bench.kernel_rules else {}),
    }


def _volumes(launch: PlannedLaunch, configurations: Mapping[str, Configuration]) -> tuple[TargetVolume, ...]:
    """The volumes that a launch is pointed at; none when it is pointed at drives."""
    pattern = launch.placed.point.pattern
    if not pattern.on_volumes:
        return ()
    return volumes_of(configurations[launch.configuration].resolved, launch.placed.adapter)[: pattern.drives]


def _drives(
    launch: PlannedLaunch, bench: Bench, volumes: Sequence[TargetVolume], layouts: Mapping[str, Layout]
) -> tuple[Drive, ...]:
    if volumes:
        behind = {drive for volume in volumes for drive in volume.drives}
        return tuple(d for adapter in bench.adapters.values() for d in adapter.claimed if d.id in behind)
    alias, pattern = launch.placed.adapter, launch.placed.point.pattern
    return drives_for(team(bench, alias, pattern), pattern, layouts[alias])


def claim(drive: Drive) -> dict[str, Any]:
    """What must be true of the drive before anything is written to it."""
    names = ("file", "size") if drive.file is not None else ("wwn", "serial", "vendor", "model", "size")
    return {name: getattr(drive, name) for name in names}


LOCAL_FALLBACK = [{"ioengine": "libaio", "direct": 0}, {"ioengine": "psync", "direct": 0}]
"""Files may lie where O_DIRECT or asynchronous I/O is not possible; a drive never gets a fallback."""


def _load(launch: PlannedLaunch) -> dict[str, Any]:
    """The search of a launch that goes to a latency cap, from its pattern's own load on."""
    pattern = launch.placed.point.pattern
    if pattern.load is None:
        return {}
    return {"load": pattern.load.to_batch(int(pattern.values[pattern.load.parameter]))}


def _readback(launch: PlannedLaunch, profile: Profile) -> dict[str, Any]:
    pattern = launch.placed.point.pattern
    if pattern.reads_only and launch.n % READS_LOOKED_AT != 1:
        return {}
    return {"readback_s": pattern.readback_s(profile)}


_ONE_WAY = ("read", "randread", "write", "randwrite")
"""Patterns whose rate is one: of a mixture fio keeps each way to the rate by itself."""


def _paced(launch: PlannedLaunch, drives: Sequence[Drive]) -> dict[str, int]:
    """The pace of all files of a launch together; nothing where the workload has a rate of its own."""
    values = launch.placed.point.pattern.values
    if values["rate_iops"] is not None or values["rw"] not in _ONE_WAY or not all(drive.paced for drive in drives):
        return {}
    return {"paced_iops": len(drives) * values["numjobs"] * min(_rates(drives, values))} if drives else {}


def _rates(drives: Sequence[Drive], values: Mapping[str, Any]) -> list[int]:
    return [drive.paced.rate(values["bs"]) // values["numjobs"] or 1 for drive in drives if drive.paced is not None]


def _fio(launch: PlannedLaunch, profile: Profile, kind: str, drives: Sequence[Drive]) -> dict[str, Any]:
    values = launch.placed.point.pattern.values
    options = dict(launch.placed.point.pattern.options)
    rates = _rates(drives, values)
    if values["rate_iops"] is not None:
        rates.append(values["rate_iops"])
    if rates:
        # per job, that is per drive and job
        options["rate_iops"] = min(rates)
    return {
        "rw": values["rw"],
        "bs": values["bs"],
        "iodepth": values["iodepth"],
        "numjobs": values["numjobs"],
        "ioengine": values["engine"],
        "direct": int(bool(values["direct"])),
        "runtime_s": profile.runtime,
        "ramp_s": launch.placed.point.pattern.ramp(profile),
        "rwmixread": values["rwmixread"],
        "zones": bool(values["zones"]),
        "options": options,
        **({"fallback": LOCAL_FALLBACK} if kind == "local" else {}),
    }
