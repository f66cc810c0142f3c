# SPDX-License-Identifier: Apache-2.0
"""Faults that the control node brings about on a virtual bench: through QEMU's monitor, its power, the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from storqual.robustness.faults import LOGGING_WAY
from storqual.robustness.log_writes import read_log
from storqual.trials.link import Link
from storqual.virtual_bench.limits import Limit, plug, read_limits, unplug
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import PowerState, power_state, reset
from storqual.virtual_bench.qmp import Monitor, converse
from storqual_core.kit.errors import StorqualError, ToolError

_EVENT_S = 20.0
_LEAST_IOPS = 1
_EIO = 5
_SHORT_TIMEOUT_S = 2
"""The timeout of commands while a drive hangs: far below the 30 s of a bench, or a trial would take minutes."""


@dataclass(frozen=True)
class Reach:
    """What a fault of the control node works with; `tell` takes what was seen and a sentence about it.

    `log` is where a log of the drive's writes is kept, for the way that makes one.
    """

    places: BenchPlaces
    link: Link
    drive: str
    adapter: str
    away_s: float
    log: Path
    tell: Callable[[str, str], None]

    @property
    def power(self) -> PowerState:
        """The bench as it runs. Raises StorqualError when it is off."""
        state = power_state(self.places)
        if state is None:
            raise StorqualError("the virtual bench is off")
        return state

    def talk(self, words: Callable[[Monitor], Awaitable[None]]) -> None:
        """One conversation with QEMU."""
        converse(Path(self.power.monitor), words)


def _unplug(reach: Reach) -> None:
    bench = reach.power.bench

    async def pull_and_put_back(monitor: Monitor) -> None:
        limit = (await read_limits(monitor, bench)).get(reach.drive, Limit())
        if await unplug(monitor, bench, reach.drive):
            reach.tell("event:DEVICE_DELETED", f"QEMU pulled {reach.drive}")
        await asyncio.sleep(reach.away_s)
        if await plug(monitor, bench, reach.drive, limit):
            reach.tell("plugged", f"QEMU put {reach.drive} back")

    reach.talk(pull_and_put_back)
    # a bus that tells nobody of a new device is scanned, as a technician would
    hosts = f"/sys/bus/pci/devices/{reach.adapter}/host*/scsi_host/host*/scan"
    virtio = f"/sys/bus/pci/devices/{reach.adapter}/virtio*/host*/scsi_host/host*/scan"
    reach.link.run(f"for file in {hosts} {virtio}; do [ -e $file ] && echo '- - -' > $file; done; true")


def _errors(iotype: str) -> Callable[[Reach], None]:
    """Every I/O of that kind fails beneath the drive while it lasts."""

    def way(reach: Reach) -> None:
        device = reach.power.bench.drive(reach.drive).device
        faulty, path = f"{device}-faulty", f"/machine/peripheral/{device}"

        async def fail(monitor: Monitor) -> None:
            rule = {"event": "none", "iotype": iotype, "errno": _EIO, "once": False}
            node = {"driver": "blkdebug", "node-name": faulty, "image": f"{device}-file", "inject-error": [rule]}
            await monitor.ask("blockdev-add", node)
            try:
                change = {"path": path, "property": "drive", "value": faulty}
                reach.tell("inserted", f"{iotype}s of {reach.drive} fail from now on")
                named = {"node-name": faulty}
                if await monitor.ask_and_await("qom-set", change, "BLOCK_IO_ERROR", _EVENT_S, **named):
                    reach.tell("event:BLOCK_IO_ERROR", f"QEMU failed a {iotype} of {reach.drive}")
                await asyncio.sleep(reach.away_s)
            finally:
                await monitor.ask("qom-set", {"path": path, "property": "drive", "value": f"{device}-file"})
                await monitor.ask("blockdev-del", {"node-name": faulty})
            reach.tell("removed", f"{iotype}s of {reach.drive} are served again")

        reach.talk(fail)

    return way


def _log_writes(reach: Reach) -> None:
    """All that reaches the drive is logged beneath the bench while it lasts."""
    device = reach.power.bench.drive(reach.drive).device
    logging, path = f"{device}-logging", f"/machine/peripheral/{device}"
    reach.log.touch()

    async def log(monitor: Monitor) -> None:
        node = {
            "driver": "blklogwrites",
            "node-name": logging,
            "file": f"{device}-file",
            "log": {"driver": "file", "filename": str(reach.log)},
        }
        await monitor.ask("blockdev-add", node)
        try:
            await monitor.ask("qom-set", {"path": path, "property": "drive", "value": logging})
            reach.tell("inserted", f"what reaches {reach.drive} is logged from now on")
            await asyncio.sleep(reach.away_s)
        finally:
            await monitor.ask("qom-set", {"path": path, "property": "drive", "value": f"{device}-file"})
            await monitor.ask("blockdev-del", {"node-name": logging})
        reach.tell("removed", f"what reaches {reach.drive} is no longer logged")

    reach.talk(log)
    entries = read_log(reach.log).entries
    if entries:
        reach.tell("logged", f"{len(entries)} writes and flushes of {reach.drive} are in the log")


def _throttle(reach: Reach) -> None:
    bench = reach.power.bench
    device = bench.drive(reach.drive).device

    async def slow(monitor: Monitor) -> None:
        before = (await read_limits(monitor, bench))[reach.drive]
        try:
            await _limit(monitor, device, Limit(_LEAST_IOPS, before.bandwidth))
            if (await read_limits(monitor, bench))[reach.drive].iops == _LEAST_IOPS:
                reach.tell("throttled", f"{reach.drive} serves one request a second")
            await asyncio.sleep(reach.away_s)
        finally:
            await _limit(monitor, device, before)
        if (await read_limits(monitor, bench))[reach.drive] == before:
            reach.tell("released", f"{reach.drive} is as fast as before")

    reach.talk(slow)


def _hang(reach: Reach) -> None:
    """Commands take longer than their timeout, which is short while it lasts."""
    place = _find_drive(reach.link, reach.drive)
    before = reach.link.run(f"cat {place}/timeout").strip()
    timed_out = int(reach.link.run(f"cat {place}/iotmo_cnt"), 0)
    try:
        reach.link.run(f"echo {_SHORT_TIMEOUT_S} > {place}/timeout")
        _throttle(reach)
    finally:
        reach.link.run(f"echo {before} > {place}/timeout")
    now = int(reach.link.run(f"cat {place}/iotmo_cnt"), 0)
    if now > timed_out:
        reach.tell("timed_out", f"{now - timed_out} commands of {reach.drive} took longer than {_SHORT_TIMEOUT_S} s")


def _find_drive(link: Link, drive: str) -> str:
    """The folder of the drive's SCSI device in sysfs. Raises LinkError when it is not there."""
    name = drive.removeprefix("0x")
    return link.run(f"dirname $(grep -l {name} /sys/block/sd*/device/wwid)").strip()


async def _limit(monitor: Monitor, device: str, limit: Limit) -> None:
    parts = {"bps_rd": 0, "bps_wr": 0, "iops_rd": 0, "iops_wr": 0}
    await monitor.ask("block_set_io_throttle", {"id": device, "bps": limit.bandwidth, "iops": limit.iops, **parts})


def _reset(reach: Reach) -> None:
    before = reach.power.boot_id
    after = reset(reach.places)
    reach.tell("event:RESET", "QEMU pressed the reset button")
    if after.boot_id and after.boot_id != before:
        reach.tell("other_boot", f"the bench is on boot {after.boot_id}, it was on {before}")


def _cut_connection(reach: Reach) -> None:
    reach.link.cut()
    reach.tell("cut", "the connection was ended")
    if reach.link.run("echo here").strip() != "here":
        raise ToolError("the bench answers with something else than it was asked")
    reach.tell("connected", "the bench answers again")


CONTROL_WAYS: Mapping[str, Callable[[Reach], None]] = {
    "qmp_unplug": _unplug,
    "qmp_write_error": _errors("write"),
    "qmp_read_error": _errors("read"),
    "qmp_flush_error": _errors("flush"),
    "qmp_throttle": _throttle,
    "qmp_hang": _hang,
    LOGGING_WAY: _log_writes,
    "qmp_reset": _reset,
    "ssh_cut": _cut_connection,
}
