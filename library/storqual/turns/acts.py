# SPDX-License-Identifier: Apache-2.0
"""Faults of the control node: a virtual bench's by QEMU and the connection, any bench's power by its inventory."""

import asyncio
import errno
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from storqual.base.console_log import panic_text
from storqual.base.text import telling_line
from storqual.bench.follow import Connection, ConnectionLostError
from storqual.bench.reboot import Boot
from storqual.inputs.power import BENCH_ITSELF
from storqual.kinds.images import read_log
from storqual.kinds.record import DRIVE_KEPT_POWER, DRIVE_LOST_POWER
from storqual.power.cycling import BenchPower, cycle_bench
from storqual.turns.paths import active_paths, await_paths
from storqual.virtual_bench.boot import mark, written_since
from storqual.virtual_bench.description import BenchDescription
from storqual.virtual_bench.limits import Limit, declared_limits, limit_device, plug, read_limits, unplug
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import PowerState, guests, reset
from storqual.virtual_bench.qemu import device_arguments
from storqual.virtual_bench.qmp import Monitor, converse
from storqual.virtual_bench.target_power import lose_targets
from storqual_core.data.faults import LOGGING_WAY
from storqual_core.kit.errors import StorqualError, ToolError

_KINDS: Mapping[str, str] = {"ac": "AC", "dc": "DC"}


@dataclass(frozen=True)
class PowerReach:
    """What a fault of the power works with. `powered_by` is the shelf of the drive, `away_s` how long power is off.

    `emulated`: the drives are files of a host whose power stays.
    """

    run: Path
    power: BenchPower | None
    connection: Connection
    powered_by: str
    away_s: float
    emulated: bool
    tell: Callable[[str, str], None]


def _cycle(reach: PowerReach, *, stays_off: bool) -> None:
    """Off, proven, on, until a new boot answers. Raises ToolError where no power was taken, or nothing came back."""
    cutting = [backend for backend in reach.power.backends if backend.removes] if reach.power else []
    if reach.power is None or not cutting:
        raise ToolError("no backend of `storqual_power` says that it removes AC or DC")
    others = [backend for backend in reach.power.backends if not backend.removes]
    off_for_s = max(reach.away_s, *(backend.off_for_s for backend in cutting)) if stays_off else None
    before = reach.connection.boot_id()
    outcome = cycle_bench(
        # a controller that cannot take the drives' power may still switch the bench on again
        replace(reach.power, backends=[*cutting, *others]),
        "a trial takes the power",
        run=reach.run,
        off_for_s=off_for_s,
        before=Boot(before, ""),
    )
    reach.connection.cut()
    by = [backend for backend in cutting if backend.name in outcome.off_by]
    if by:
        named = ", ".join(f"{backend.name} ({_KINDS[backend.removes]})" for backend in by)
        reach.tell("power_off", f"the bench was proven off by {named}")
        lost = not reach.emulated and any(reach.powered_by in backend.powers for backend in by)
        whose = "the bench" if reach.powered_by == BENCH_ITSELF else f"shelf {reach.powered_by}"
        if reach.emulated:
            reach.tell(DRIVE_KEPT_POWER, "the drive is emulated: its host kept what it had answered")
        elif lost:
            reach.tell(DRIVE_LOST_POWER, f"the drive is powered by {whose}, which {named} powers")
        else:
            reach.tell(DRIVE_KEPT_POWER, f"the drive is powered by {whose}, which kept its power")
    if outcome.boot is None:
        raise ToolError(outcome.conclusion)
    reach.tell("other_boot", f"the bench is on boot {outcome.boot.boot_id}, it was on {before}")
    if not by:
        raise ToolError("no backend that removes AC or DC was proven to have switched the bench off")


POWER_WAYS: Mapping[str, Callable[[PowerReach], None]] = {
    "power_removal": partial(_cycle, stays_off=False),
    "power_cycle": partial(_cycle, stays_off=False),
    "power_absence": partial(_cycle, stays_off=True),
}


def longest_cycle_s(power: BenchPower, away_s: float) -> float:
    """How long the power may be cycled: each backend in turn may switch it off, wait, and await a boot."""
    each = [
        max(away_s, backend.off_for_s) + 2 * backend.answers_within_s + power.boot_limit_s
        for backend in power.backends
    ]
    return sum(each) + power.boot_limit_s


_EVENT_S = 20.0
_BOOT_S = 300.0
_LOOK_S = 1.0
_ANSWER_S = 10.0
_LEAST_IOPS = 1
_LEAST_PATHS = 2
_SECTOR, _GROWTH = 512, 64 << 20
_FAULTY, _LOGGING, _OTHER = "-faulty", "-logging", "-other"
"""What the name of a node ends with that is put beneath a drive, or in its place."""
_OTHER_SERIAL, _OTHER_WWN = "STORQUAL-OTHER", 0x5000C5000BADD155
_APPEARS_S = 20.0
"""How long the bench may take to find another drive in the slot."""
_SHORT_TIMEOUT_S = 2
"""The timeout of commands while a drive hangs: far below the 30 s of a bench, or a trial would take minutes."""


@dataclass(frozen=True)
class Reach:
    """What a fault of the control node works with; `tell` takes what was seen and a sentence about it.

    `alias` is the adapter's name in the inventory, `adapter` its PCI function; `log` is where a log of the drive's
    writes is kept, for the way that makes one.
    """

    places: BenchPlaces
    connection: Connection
    drive: str
    adapter: str
    away_s: float
    log: Path
    tell: Callable[[str, str], None]
    alias: str = ""

    @property
    def power(self) -> PowerState:
        """The guest that has the drive, as it runs. Raises StorqualError when there is none."""
        running = guests(self.places)
        having = [state for state in running if any(drive.identity == self.drive for drive in state.bench.drives)]
        if not running:
            raise StorqualError("the virtual bench is off")
        return (having or running)[0]

    def talk(self, words: Callable[[Monitor], Awaitable[None]]) -> None:
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
    _scan(reach)


def _scan(reach: Reach) -> None:
    """A bus that tells nobody of a new device is scanned, as a technician would."""
    hosts = f"/sys/bus/pci/devices/{reach.adapter}/host*/scsi_host/host*/scan"
    virtio = f"/sys/bus/pci/devices/{reach.adapter}/virtio*/host*/scsi_host/host*/scan"
    reach.connection.run(f"for file in {hosts} {virtio}; do [ -e $file ] && echo '- - -' > $file; done; true")


def _unplug_path(reach: Reach) -> None:
    """The drive goes on one adapter; that the bench no longer uses that path, and does again, is what it says."""
    bench, before = reach.power.bench, active_paths(reach.connection, reach.drive)
    path = f"the path of {reach.drive} through {reach.alias}"
    if before < _LEAST_PATHS:
        raise ToolError(f"{before} paths of {reach.drive} are active: without one there would be none")

    async def pull(monitor: Monitor) -> None:
        if await unplug(monitor, bench, reach.drive, reach.alias):
            reach.tell("event:DEVICE_DELETED", f"QEMU pulled {path}")

    async def put_back(monitor: Monitor) -> None:
        if await plug(monitor, bench, reach.drive, Limit(), reach.alias):
            reach.tell("plugged", f"QEMU put {path} back")

    try:
        reach.talk(pull)
        await_paths(reach.connection, reach.drive, before - 1)
        reach.tell("path_lost", f"{before - 1} of {before} paths are active")
        time.sleep(reach.away_s)
    finally:
        reach.talk(put_back)
        _scan(reach)
    await_paths(reach.connection, reach.drive, before)
    reach.tell("path_back", f"{before} paths are active again")


def _exchange(reach: Reach) -> None:
    """The drive is pulled, and another one of its size answers in its slot until it is put back.

    Raises ToolError when the other drive was written to: what was meant for one drive must not reach another.
    """
    bench = reach.power.bench
    drive = bench.drive(reach.drive)
    other = f"{drive.device}{_OTHER}"
    adapter = next(adapter for adapter in bench.adapters if drive in adapter.drives)
    limits: dict[str, Limit] = {}
    written: list[int] = []

    async def exchange(monitor: Monitor) -> None:
        limits.update(await read_limits(monitor, bench))
        if await unplug(monitor, bench, reach.drive):
            reach.tell("event:DEVICE_DELETED", f"QEMU pulled {reach.drive}")
        node = {"driver": "null-co", "node-name": other, "size": drive.size, "read-zeroes": True}
        await monitor.ask("blockdev-add", node)
        named = {"id": other, "drive": other, "serial": _OTHER_SERIAL, "wwn": _OTHER_WWN}
        await monitor.ask("device_add", {**device_arguments(adapter, drive), **named})

    async def put_back(monitor: Monitor) -> None:
        devices = [device for device in await monitor.ask("query-blockstats") if device.get("node-name") == other]
        written.extend(int(device["stats"]["wr_operations"]) for device in devices)
        await _remove_other(monitor, other)
        if await plug(monitor, bench, reach.drive, limits.get(reach.drive, Limit())):
            reach.tell("plugged", f"QEMU put {reach.drive} back")

    try:
        reach.talk(exchange)
        _scan(reach)
        if _appears(reach.connection, f"{_OTHER_WWN:x}"):
            reach.tell("exchanged", f"the bench found another drive, 0x{_OTHER_WWN:x}, in the slot of {reach.drive}")
        time.sleep(reach.away_s)
    finally:
        reach.talk(put_back)
        _scan(reach)
    if len(written) != 1:
        raise ToolError(f"QEMU does not tell the writes of the other drive in the slot of {reach.drive}")
    if written[0]:
        raise ToolError(f"misdirected: {written[0]} writes reached another drive in the slot of {reach.drive}")
    reach.tell("untouched", "no write reached the other drive")


async def _remove_other(monitor: Monitor, other: str) -> None:
    """Take another drive out of a slot, if it came that far. Raises ToolError when it stays."""
    there = {str(item["name"]) for item in await monitor.ask("qom-list", {"path": "/machine/peripheral"})}
    gone = ("device_del", {"id": other}, "DEVICE_DELETED", _EVENT_S)
    if other in there and not await monitor.ask_and_await(*gone, device=other):
        raise ToolError(f"{other} was not unplugged within {_EVENT_S:g} s")
    await monitor.ask("blockdev-del", {"node-name": other})


def _appears(connection: Connection, wwn: str) -> bool:
    """Whether a drive of this WWN is found on the bench in time."""
    end = time.monotonic() + _APPEARS_S
    while not connection.run(f"grep -l {wwn} /sys/block/sd*/device/wwid 2>/dev/null || true").strip():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_S)
    return True


def _errors(iotype: str, number: int = errno.ENOMEM) -> Callable[[Reach], None]:
    """Every I/O of that kind fails beneath the drive while it lasts, with an error `number` of the C library.

    QEMU's SCSI disks answer EDOM with the status TASK SET FULL, and ENOMEM with a failure of the target, after which
    the kernel does not send a command again.
    """

    def way(reach: Reach) -> None:
        device = reach.power.bench.drive(reach.drive).device
        faulty, path = f"{device}{_FAULTY}", f"/machine/peripheral/{device}"

        async def fail(monitor: Monitor) -> None:
            rule = {"event": "none", "iotype": iotype, "errno": number, "once": False}
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
    logging, path = f"{device}{_LOGGING}", f"/machine/peripheral/{device}"
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
            await limit_device(monitor, device, Limit(_LEAST_IOPS, before.bandwidth))
            if (await read_limits(monitor, bench))[reach.drive].iops == _LEAST_IOPS:
                reach.tell("throttled", f"{reach.drive} serves one request a second")
            await asyncio.sleep(reach.away_s)
        finally:
            await limit_device(monitor, device, before)
        if (await read_limits(monitor, bench))[reach.drive] == before:
            reach.tell("released", f"{reach.drive} is as fast as before")

    reach.talk(slow)


_SIZE = """\
for file in $(grep -ils {name} /sys/block/*/wwid /sys/block/*/device/wwid); do
    disk=${{file%/wwid}} disk=${{disk%/device}}
    for ask in $disk/device/rescan /sys/kernel/config/nvmet/subsystems/*/namespaces/*/revalidate_size; do
        [ ! -e $ask ] || echo 1 > $ask
    done
    cat $disk/size
    break
done"""


def _resize(reach: Reach) -> None:
    """What a LUN rests on grows, and shrinks again; the initiator looks at it again, as somebody has it do."""
    drive = reach.power.bench.drive(reach.drive)

    def become(size: int) -> None:
        async def resize(monitor: Monitor) -> None:
            await monitor.ask("block_resize", {"node-name": f"{drive.device}-file", "size": size})

        reach.talk(resize)
        end, line = time.monotonic() + _EVENT_S, _SIZE.format(name=shlex.quote(reach.drive.removeprefix("0x")))
        while (count := reach.connection.run(line).strip()) != str(size // _SECTOR):
            if time.monotonic() > end:
                raise ToolError(f"{reach.drive} has {count or 'no'} sectors for its initiator, not {size // _SECTOR}")
            time.sleep(_LOOK_S)

    try:
        become(drive.size + _GROWTH)
        reach.tell("resized", f"{reach.drive} grew by {_GROWTH >> 20} MiB for its initiator")
        time.sleep(reach.away_s)
    finally:
        become(drive.size)
    reach.tell("size_back", f"{reach.drive} has its size again")


async def mend(monitor: Monitor, bench: BenchDescription) -> list[str]:
    """Take back what a fault left whose campaign was ended in the middle; a sentence for each thing put right."""
    listed = await monitor.ask("query-named-block-nodes", {"flat": True})
    nodes = {str(node["node-name"]): node.get("image", {}).get("virtual-size") for node in listed}
    limits, declared, sentences = await read_limits(monitor, bench), declared_limits(bench), []
    for drive in bench.drives:
        left = [name for name in (f"{drive.device}{end}" for end in (_FAULTY, _LOGGING)) if name in nodes]
        for name in left:
            path = f"/machine/peripheral/{drive.device}"
            await monitor.ask("qom-set", {"path": path, "property": "drive", "value": f"{drive.device}-file"})
            await monitor.ask("blockdev-del", {"node-name": name})
            sentences.append(f"{name} was left beneath {drive.identity}, and was taken out")
        other = f"{drive.device}{_OTHER}"
        if other in nodes:
            await _remove_other(monitor, other)
            sentences.append(f"another drive was left in the slot of {drive.identity}, and was taken out")
        node = f"{drive.device}-file"
        if nodes.get(node) == drive.size + _GROWTH:
            await monitor.ask("block_resize", {"node-name": node, "size": drive.size})
            sentences.append(f"{drive.identity} was left larger, and has its size again")
        limit = limits.get(drive.identity)
        if limit is None and await plug(monitor, bench, drive.identity, declared[drive.identity]):
            sentences.append(f"{drive.identity} was left unplugged, and was put back")
        elif limit is not None and limit.iops == _LEAST_IOPS != declared[drive.identity].iops:
            await limit_device(monitor, drive.device, declared[drive.identity])
            sentences.append(f"{drive.identity} was left slow, and is as fast as declared")
    for alias, drive in ((adapter.alias, drive) for adapter in bench.adapters for drive in adapter.drives):
        if drive.first and await plug(monitor, bench, drive.identity, Limit(), alias):
            sentences.append(f"the path of {drive.identity} through {alias} was left unplugged, and was put back")
    return sentences


def _hang(reach: Reach) -> None:
    """Commands take longer than their timeout, which is short while it lasts."""
    place = _find_drive(reach.connection, reach.drive)
    before = reach.connection.run(f"cat {place}/timeout").strip()
    timed_out = int(reach.connection.run(f"cat {place}/iotmo_cnt"), 0)
    try:
        reach.connection.run(f"echo {_SHORT_TIMEOUT_S} > {place}/timeout")
        _throttle(reach)
    finally:
        reach.connection.run(f"echo {before} > {place}/timeout")
    now = int(reach.connection.run(f"cat {place}/iotmo_cnt"), 0)
    if now > timed_out:
        reach.tell("timed_out", f"{now - timed_out} commands of {reach.drive} took longer than {_SHORT_TIMEOUT_S} s")


def _find_drive(connection: Connection, drive: str) -> str:
    """The folder of the drive's SCSI device in sysfs. Raises ConnectionLostError when it is not there."""
    name = drive.removeprefix("0x")
    return connection.run(f"dirname $(grep -l {name} /sys/block/sd*/device/wwid)").strip()


def _reset(reach: Reach) -> None:
    before = reach.connection.boot_id()
    after = reset(reach.places)
    reach.tell("event:RESET", "QEMU pressed the reset button")
    if after.boot_id and after.boot_id != before:
        reach.tell("other_boot", f"the bench is on boot {after.boot_id}, it was on {before}")


def _panic(reach: Reach) -> None:
    """The kernel is told to panic; its console says so, and the bench starts again by itself."""
    console, before = reach.places.console, reach.connection.boot_id()
    since, end = mark(console), time.monotonic() + _BOOT_S
    reach.connection.run(
        "echo 1 > /proc/sys/kernel/sysrq; (sleep 0.2; echo c > /proc/sysrq-trigger) </dev/null >/dev/null 2>&1 &"
    )
    while not (panic := panic_text(written_since(console, since))):
        if time.monotonic() > end:
            raise ToolError(f"the kernel did not panic within {_BOOT_S:g} s")
        time.sleep(_LOOK_S)
    reach.tell("panicked", telling_line(panic))
    reach.connection.cut()
    while True:
        try:
            after = reach.connection.boot_id(limit_s=_ANSWER_S)
        except ConnectionLostError:
            after = ""
        if after and after != before:
            break
        if time.monotonic() > end:
            raise ToolError(f"the bench did not start again within {_BOOT_S:g} s of a panic")
        time.sleep(_LOOK_S)
    reach.tell("other_boot", f"the bench is on boot {after}, it was on {before}")


def _lose_targets(**how: bool) -> Callable[[Reach], None]:
    return lambda reach: lose_targets(reach.places, reach.connection, reach.drive, reach.away_s, reach.tell, **how)


def _cut_connection(reach: Reach) -> None:
    reach.connection.cut()
    reach.tell("cut", "the connection was ended")
    if reach.connection.run("echo here").strip() != "here":
        raise ToolError("the bench answers with something else than it was asked")
    reach.tell("connected", "the bench answers again")


CONTROL_WAYS: Mapping[str, Callable[[Reach], None]] = {
    "qmp_unplug": _unplug,
    "qmp_path_unplug": _unplug_path,
    "qmp_exchange": _exchange,
    "qmp_write_error": _errors("write"),
    "qmp_read_error": _errors("read"),
    "qmp_flush_error": _errors("flush"),
    "qmp_task_set_full": _errors("write", errno.EDOM),
    "qmp_throttle": _throttle,
    "qmp_resize": _resize,
    "qmp_hang": _hang,
    LOGGING_WAY: _log_writes,
    "qmp_reset": _reset,
    "target_power": _lose_targets(),
    "target_power_past_timer": _lose_targets(past_timer=True),
    "qmp_link_down": _lose_targets(link=True),
    "sysrq_panic": _panic,
    "ssh_cut": _cut_connection,
}
