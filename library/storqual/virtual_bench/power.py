# SPDX-License-Identifier: Apache-2.0
"""The power switch of a virtual bench: on, off, cycle, reset, and what state it is in."""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.virtual_bench import boot, limits
from storqual.virtual_bench.boot import Booted, BootFailedError, logs_in, wait_for_boot
from storqual.virtual_bench.description import BenchDescription, from_plain
from storqual.virtual_bench.disks import make_keys, prepare_drives, prepare_overlay, ssh_config_text
from storqual.virtual_bench.fabric_setup import setup
from storqual.virtual_bench.image import BenchImage, ensure_image
from storqual.virtual_bench.places import BenchPlaces, locked, make_private, socket_folder
from storqual.virtual_bench.qemu import EmulatedMachine, choose_acceleration, machine_argv
from storqual.virtual_bench.qmp import Monitor, converse
from storqual_core.kit.command import run
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import BadInputError, StorqualError, ToolError
from storqual_core.kit.quantities import parse_size

_OFF_LIMIT_S = 60.0
_ANSWER_LIMIT_S = 30.0
"""For a login; an emulated guest of a busy machine takes ten seconds."""
_LOOK_S = 1.0
_HUNG_S = 30.0
"""How long a guest that does not answer may show no life; one that boots writes to its console or computes."""
_COMPUTES = 0.2
"""Share of a processor; an idle guest takes some percent."""
_QUIT_LIMIT_S = 10.0
_RESET_LIMIT_S = 10.0
BOOT_LIMIT_S = 300.0
_FORWARD = re.compile(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s")


@dataclass(frozen=True)
class PowerState:
    """A bench that is powered on. Times are seconds from power-on (or the last reset) of the host's own clock."""

    pid: int
    start_ticks: int
    port: int
    monitor: str
    acceleration: str
    reason: str
    image: str
    since: str
    attempts: int
    description: dict[str, Any]
    ssh_s: float = 0.0
    ready_s: float = 0.0
    boot_id: str = ""
    kernel: str = ""
    drives_seen: int = 0

    @property
    def bench(self) -> BenchDescription:
        return from_plain(self.description)


def power_state(places: BenchPlaces) -> PowerState | None:
    """The bench of that state folder as it runs now, or None when it is off."""
    try:
        state = PowerState(**json.loads(places.power.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as problem:
        raise StorqualError(f"{places.power} is not readable as a power state: {problem}") from problem
    return state if child.is_running(state.pid, state.start_ticks) else None


def _keep(places: BenchPlaces, state: PowerState) -> PowerState:
    replace_file(places.power, json.dumps(asdict(state), indent=1) + "\n")
    return state


def guests(places: BenchPlaces) -> list[PowerState]:
    """The guests of a bench that run: its own, then the one with its targets where they are apart."""
    return [state for state in (power_state(places), power_state(places.targets)) if state is not None]


def start_targets(places: BenchPlaces, bench: BenchDescription) -> None:
    """Start the guest with the targets of a bench anew, if it has one; nobody waits for it.

    A target that stays up while its initiator goes away hangs (tcm_fc). What it serves is in files of this machine.
    """
    targets = bench.targets
    if targets is None:
        return
    end_targets(places)
    _spawn(places.targets, targets, _prepare(places.targets, targets), 1, socket_folder(places.state))


def end_targets(places: BenchPlaces) -> bool:
    """Pull the plug of the guest with the targets of a bench; whether it was on."""
    state = power_state(places.targets)
    if state is not None:
        _end(state.pid, state.start_ticks)
    _clear(places.targets)
    return state is not None


def _prepare(
    places: BenchPlaces, description: BenchDescription, say: Callable[[str], None] = lambda _line: None
) -> BenchImage:
    """What a guest starts from: the image, its own layer over it, and the files of its drives."""
    places.state.mkdir(parents=True, exist_ok=True)
    image = ensure_image(say, description.flavour)
    prepare_overlay(places, image, say)
    prepare_drives(places, description)
    return image


def _spawn(
    places: BenchPlaces, description: BenchDescription, image: BenchImage, attempt: int, network: Path | None = None
) -> tuple[PowerState, float]:
    """Start QEMU in the background with limits in force and the clock running; the monotonic time of power-on."""
    start_targets(places, description)
    acceleration = choose_acceleration(image, description.counts_instructions)
    keys = make_keys(places, description.name)
    sockets = socket_folder(places.state)
    for folder in (sockets, network or sockets):
        make_private(folder)
    host_name = places.keys / "hostname"
    replace_file(host_name, f"{description.name}\n")
    texts = {
        "scsi_debug": f"{description.debug.parameters}\n" if description.debug else "",
        "fabrics": setup(description),
    }
    handed = {name: places.keys / name for name, text in texts.items() if text}
    for name, file in handed.items():
        replace_file(file, texts[name])
    machine = EmulatedMachine(
        image=image,
        overlay=places.overlay,
        variables=places.variables,
        drives=places.drive("x").parent,
        console=places.console,
        serial=places.serial,
        netconsole=places.netconsole,
        pstore=places.pstore,
        monitor=sockets / "monitor",
        pidfile=sockets / "pid",
        host_key=keys.host,
        authorized_keys=keys.client_public,
        host_name=host_name,
        handed=handed,
        network=network or sockets,
    )
    for file in (machine.monitor, machine.serial, machine.pidfile):
        file.unlink(missing_ok=True)
    run(machine_argv(description, machine, acceleration)).expect()
    pid = int(machine.pidfile.read_text(encoding="ascii"))
    ticks = child.ticks_of_start(pid)
    if ticks is None:
        raise ToolError("QEMU ended as soon as it was started")

    async def start(monitor: Monitor) -> tuple[int, float]:
        await limits.set_limits(monitor, description, limits.declared_limits(description))
        forwards = await monitor.ask("human-monitor-command", {"command-line": "info usernet"})
        match = _FORWARD.search(str(forwards))
        if match is None:
            raise ToolError(f"QEMU does not say which port it forwards to {description.name}")
        await monitor.ask("cont")
        return int(match[1]), time.monotonic()

    try:
        port, began = converse(machine.monitor, start)
    except BaseException:
        _end(pid, ticks)
        raise
    replace_file(places.ssh_config, ssh_config_text(description.name, keys, port))
    state = PowerState(
        pid=pid,
        start_ticks=ticks,
        port=port,
        monitor=str(machine.monitor),
        acceleration=acceleration.name,
        reason=acceleration.reason,
        image=image.digest,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        attempts=attempt,
        description=description.plain(),
    )
    return _keep(places, state), began


def _boot(places: BenchPlaces, state: PowerState, began: float, since: int, limit_s: float) -> PowerState:
    booted: Booted = wait_for_boot(
        state.bench.name,
        ssh_config=places.ssh_config,
        port=state.port,
        log=places.console,
        since=since,
        began=began,
        drives=state.bench.devices,
        limit_s=limit_s,
        running=lambda: child.is_running(state.pid, state.start_ticks),
    )
    return _keep(places, replace(state, **asdict(booted)))


def power_on(
    places: BenchPlaces, description: BenchDescription, *, say: Callable[[str], None] = lambda _line: None
) -> tuple[PowerState, bool]:
    """Power a bench on and wait until it answers; whether it was started.

    A guest that does not come up is started once more (emulation itself fails now and then); that is said, and it is
    the only thing that is ever tried twice. One that is on and hangs is powered off first. Raises BadInputError when
    another bench runs in that state folder.
    """
    places.state.mkdir(parents=True, exist_ok=True)
    with locked(places.lock):
        state = power_state(places)
        if state is not None:
            if state.bench != description:
                raise StorqualError(
                    f"{description.name} runs with other adapters, drives or limits than the inventory now says;"
                    " power it off first (make bench-down)"
                )
            answering = _answering(places, state)
            if answering is not None:
                return answering, False
            say(f"{description.name} was on and did not answer, so its plug was pulled")
            _end(state.pid, state.start_ticks)
            _clear(places)
        image = _prepare(places, description, say)
        for attempt in (1, 2):
            since = boot.mark(places.console)
            state, began = _spawn(places, description, image, attempt)
            if attempt == 1:
                say(f"{description.name}: {state.acceleration}: {state.reason}")
            try:
                return _boot(places, state, began, since, BOOT_LIMIT_S), True
            except BootFailedError as problem:
                _end(state.pid, state.start_ticks)
                if attempt == 2:
                    _clear(places)
                    end_targets(places)
                    raise
                say(f"{description.name}: starting it once more, because {problem}")
    raise AssertionError("two attempts end in a return or an error")


def switch_on(places: BenchPlaces, description: BenchDescription) -> bool:
    """Start the machine of a bench that is off, as a power switch does; nobody waits for it. Whether it was off."""
    places.state.mkdir(parents=True, exist_ok=True)
    with locked(places.lock):
        if power_state(places) is not None:
            return False
        _spawn(places, description, _prepare(places, description), 1)
        return True


def _answering(places: BenchPlaces, state: PowerState) -> PowerState | None:
    """The state of a guest that answers, now or when it has started; None for one that hangs while QEMU runs."""
    if not state.boot_id:
        # an earlier power-on was interrupted while the guest was starting
        try:
            return _boot(places, state, time.monotonic(), boot.mark(places.console), BOOT_LIMIT_S)
        except BootFailedError:
            return None
    looked = alive = time.monotonic()
    deadline, written, computed = looked + BOOT_LIMIT_S, boot.mark(places.console), _cpu_seconds(state.pid)
    while looked < min(deadline, alive + _HUNG_S) and child.is_running(state.pid, state.start_ticks):
        if logs_in(state.bench.name, places.ssh_config, _ANSWER_LIMIT_S):
            return state
        time.sleep(_LOOK_S)
        before, looked = looked, time.monotonic()
        now, used = boot.mark(places.console), _cpu_seconds(state.pid)
        if now != written or used - computed > _COMPUTES * (looked - before):
            # it boots by itself, after a panic or for a trial
            alive = looked
        written, computed = now, used
    return None


def _cpu_seconds(pid: int) -> float:
    """Processor time of a process so far; 0 for one that ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _end(pid: int, start_ticks: int) -> None:
    """End QEMU itself: at once, the guest is not asked."""
    if child.is_running(pid, start_ticks):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    if not child.await_end(pid, start_ticks, _QUIT_LIMIT_S):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        child.await_end(pid, start_ticks, _QUIT_LIMIT_S)


def _clear(places: BenchPlaces) -> None:
    """Remove what only a running bench has."""
    places.power.unlink(missing_ok=True)
    sockets = socket_folder(places.state)
    for file in sockets.glob("*"):
        # the end of who listens outlives the bench
        if file != places.netconsole:
            file.unlink(missing_ok=True)
    for folder in (sockets, sockets.parent):
        with suppress(OSError):
            folder.rmdir()


def power_off(places: BenchPlaces, *, graceful: bool = True, targets: bool = True) -> tuple[bool, str]:
    """Power a bench off: ask a guest that answers, pull the plug of one that does not, or after a minute.

    Without `targets` the guest that has them stays on, as an array does. Whether it was on, and how it went.
    """
    if not places.state.is_dir():
        return False, "it was off"
    with locked(places.lock):
        state = power_state(places)
        if state is None:
            _clear(places)
            if targets and end_targets(places):
                return True, "it was off, and the plug of its targets was pulled"
            return False, "it was off"
        how = "the plug was pulled"
        if graceful and state.boot_id and not logs_in(state.bench.name, places.ssh_config, _ANSWER_LIMIT_S):
            how = "the guest did not answer, so the plug was pulled"
        elif graceful and state.boot_id:
            with suppress(ToolError):
                converse(Path(state.monitor), lambda monitor: monitor.ask("system_powerdown"))
            if child.await_end(state.pid, state.start_ticks, _OFF_LIMIT_S):
                how = "the guest shut down"
            else:
                how = f"the guest did not shut down within {_OFF_LIMIT_S:g} s, so the plug was pulled"
        _end(state.pid, state.start_ticks)
        _clear(places)
        if targets:
            end_targets(places)
        return True, how


def reset(places: BenchPlaces, *, limit_s: float = BOOT_LIMIT_S) -> PowerState:
    """Press the reset button of a running bench and wait until it answers again; limits stay in force."""
    with locked(places.lock):
        state = power_state(places)
        if state is None:
            raise StorqualError("the bench is off; a reset needs a running bench")
        since = boot.mark(places.console)
        start_targets(places, state.bench)

        async def press(monitor: Monitor) -> float:
            if not await monitor.ask_and_await("system_reset", {}, "RESET", _RESET_LIMIT_S):
                raise ToolError("QEMU accepted the reset and did not carry it out")
            return time.monotonic()

        began = converse(Path(state.monitor), press)
        return _boot(places, replace(state, attempts=1), began, since, limit_s)


def power_cycle(
    places: BenchPlaces, description: BenchDescription, *, graceful: bool = True, say: Callable[[str], None] = print
) -> PowerState:
    power_off(places, graceful=graceful)
    return power_on(places, description, say=say)[0]


def change_drives(
    places: BenchPlaces,
    state: str,
    *,
    iops: Mapping[str, object],
    bandwidth: Mapping[str, object],
    drive: str = "",
    check: bool = False,
) -> dict[str, Any]:
    """Limit the drives of a running bench (`state` limited), or have one of them `unplugged` or `plugged`.

    Limits are as people write them (950, 24MiB); a drive without one has what the inventory declares. Returns what
    the module does: `changed`, `limits` by drive, drives that are `unplugged`, `diff`. Raises StorqualError.
    """
    with locked(places.lock):
        bench = power_state(places)
        if bench is None:
            raise StorqualError("the bench is off; its drives can be limited only while it runs")
        description = bench.bench.whole
        wanted = limits.wanted_limits(description, _numbers(iops, "iops"), _numbers(bandwidth, "bandwidth"))
        target = description.drive(drive).identity if state != "limited" else ""

        async def talk(monitor: Monitor, description: BenchDescription) -> tuple[limits.Limits, limits.Limits]:
            before = await limits.read_limits(monitor, description)
            if target and not any(drive.identity == target for drive in description.drives):
                return before, before
            if state == "limited":
                foreseen = {identity: wanted[identity] for identity in before}
                return (before, foreseen) if check else await limits.set_limits(monitor, description, wanted)
            if check:
                others = {identity: limit for identity, limit in before.items() if identity != target}
                kept = {target: before.get(target, wanted[target])} if state == "plugged" else {}
                return before, {**others, **kept}
            if state == "unplugged":
                await limits.unplug(monitor, description, target)
            else:
                await limits.plug(monitor, description, target, wanted[target])
            return before, await limits.read_limits(monitor, description)

        before, after = limits.Limits(), limits.Limits()
        for guest in guests(places):
            was, now = converse(Path(guest.monitor), partial(talk, description=guest.bench))
            before |= was
            after |= now
    return {
        "changed": before != after,
        "limits": {identity: asdict(limit) for identity, limit in after.items()},
        "unplugged": [each.identity for each in description.drives if each.identity not in after],
        "diff": {
            name: {identity: asdict(limit) for identity, limit in by_drive.items()}
            for name, by_drive in (("before", before), ("after", after))
        },
    }


def _numbers(given: Mapping[str, object], name: str) -> dict[str, int]:
    """Limits as numbers. Raises BadInputError naming every one that is none."""
    numbers: dict[str, int] = {}
    problems = []
    for drive, value in given.items():
        try:
            numbers[drive] = parse_size(str(value))
        except ValueError:
            problems.append(f"{name} of {drive}: {value!r} is no limit")
    if problems:
        raise BadInputError(problems)
    return numbers
