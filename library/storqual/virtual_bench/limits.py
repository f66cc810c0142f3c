# SPDX-License-Identifier: Apache-2.0
"""Limits of emulated drives, IOPS and bytes per second, set and read back through QEMU's monitor; and hot unplug."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storqual.virtual_bench.description import DEVICES, BenchDescription, EmulatedAdapter, EmulatedDrive
from storqual.virtual_bench.qemu import device_arguments
from storqual.virtual_bench.qmp import Monitor
from storqual_core.kit.errors import BadInputError, ToolError

ALL = "all"
_UNPLUG_LIMIT_S = 20.0


@dataclass(frozen=True)
class Limit:
    """At most `iops` requests and `bandwidth` bytes per second; 0 is no limit."""

    iops: int = 0
    bandwidth: int = 0


Limits = dict[str, Limit]
"""Of each drive by its identity."""


def declared_limits(description: BenchDescription) -> Limits:
    return {drive.identity: Limit(drive.iops, drive.bandwidth) for drive in description.drives}


def wanted_limits(
    description: BenchDescription, iops: Mapping[str, int], bandwidth: Mapping[str, int]
) -> dict[str, Limit]:
    """The inventory's limits with some replaced: keys are drives (WWN or serial) or `all`; a drive's own entry wins.

    Raises BadInputError for a drive that this bench does not have.
    """
    problems = []
    chosen: list[dict[str, int]] = []
    for given in (iops, bandwidth):
        named: dict[str, int] = {}
        for key, value in given.items():
            if value < 0:
                problems.append(f"{description.name}: a limit of {value} for {key} makes no sense")
            if key == ALL:
                continue
            try:
                named[description.drive(key).identity] = value
            except BadInputError as problem:
                problems += problem.problems
        chosen.append(named)
    if problems:
        raise BadInputError(problems)
    return {
        identity: Limit(
            chosen[0].get(identity, iops.get(ALL, limit.iops)),
            chosen[1].get(identity, bandwidth.get(ALL, limit.bandwidth)),
        )
        for identity, limit in declared_limits(description).items()
    }


async def _inserted(monitor: Monitor) -> dict[str, Any]:
    """What QEMU says of each device with a medium, by its id."""
    devices = {}
    for batch in await monitor.ask("query-block"):
        # a drive with an id is named by it, one without by its place in QEMU's object tree
        devices[str(batch.get("qdev", "")).rsplit("/", 1)[-1]] = batch.get("inserted") or {}
    return devices


async def read_limits(monitor: Monitor, description: BenchDescription) -> dict[str, Limit]:
    """The limits in force, by identity; a drive that is unplugged is missing."""
    inserted, limits = await _inserted(monitor), {}
    for drive in description.drives:
        state = inserted.get(drive.device)
        if state:
            limits[drive.identity] = Limit(int(state.get("iops", 0)), int(state.get("bps", 0)))
    return limits


async def limit_device(monitor: Monitor, device: str, limit: Limit) -> None:
    parts = {"bps_rd": 0, "bps_wr": 0, "iops_rd": 0, "iops_wr": 0}
    await monitor.ask("block_set_io_throttle", {"id": device, "bps": limit.bandwidth, "iops": limit.iops, **parts})


async def set_limits(
    monitor: Monitor, description: BenchDescription, wanted: Mapping[str, Limit]
) -> tuple[Limits, Limits]:
    """Put `wanted` into force where it differs; the limits before and after, both as QEMU reports them.

    Unplugged drives are left alone. Raises ToolError when a limit was taken but is not in force.
    """
    before = await read_limits(monitor, description)
    for identity, limit in wanted.items():
        if identity in before and before[identity] != limit:
            await limit_device(monitor, description.drive(identity).device, limit)
    after = await read_limits(monitor, description)
    wrong = [identity for identity in after if identity in wanted and after[identity] != wanted[identity]]
    if wrong:
        raise ToolError(f"QEMU took the limits of {', '.join(wrong)} but reports others")
    return before, after


def _placed(description: BenchDescription, identity: str, alias: str) -> tuple[EmulatedAdapter, EmulatedDrive]:
    """A drive where it stands, or its path on the adapter `alias`. Raises BadInputError when there is none."""
    wanted = description.drive(identity).identity
    for adapter in description.adapters:
        for drive in adapter.drives:
            if drive.identity == wanted and (alias == adapter.alias if alias else not drive.first):
                return adapter, drive
    raise BadInputError([f"{description.name}: {alias} has no path to {identity}"])


async def unplug(monitor: Monitor, description: BenchDescription, identity: str, alias: str = "") -> bool:
    """Pull a drive, or its path on an adapter, while the bench runs, unasked; whether it was there."""
    adapter, drive = _placed(description, identity, alias)
    if DEVICES[adapter.device].namespaces:
        raise BadInputError([f"{identity}: an NVMe namespace cannot be unplugged by itself"])
    if not (await _inserted(monitor)).get(drive.device):
        return False
    gone = await monitor.ask_and_await(
        "device_del", {"id": drive.device}, "DEVICE_DELETED", _UNPLUG_LIMIT_S, device=drive.device
    )
    if not gone:
        raise ToolError(f"{identity} was not unplugged within {_UNPLUG_LIMIT_S:g} s")
    return True


async def plug(monitor: Monitor, description: BenchDescription, identity: str, limit: Limit, alias: str = "") -> bool:
    """Plug a drive, or its path on an adapter, back with the limit it had; whether it was missing.

    The guest has to scan its bus for it.
    """
    adapter, drive = _placed(description, identity, alias)
    if (await _inserted(monitor)).get(drive.device):
        return False
    await monitor.ask("device_add", device_arguments(adapter, drive))
    await limit_device(monitor, drive.device, limit)
    return True
