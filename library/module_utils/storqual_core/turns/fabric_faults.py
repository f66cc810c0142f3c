# SPDX-License-Identifier: Apache-2.0
"""Faults of a fabric: loop initialisation, frames that are late or lost, connections that are cut, LUNs that go.

What is done to frames is done by the network interface of the initiator to what it sends (netem). What a target does
can be brought about only where it runs in the same kernel, as on a virtual bench, through its configfs.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, Mapping, Sequence

from ..host.sysfs import read_drives
from ..kit.errors import ToolError
from ..kit.machine import write_attribute
from ..kit.waiting import await_seen
from ..tools import tc
from .drive_faults import Aim, Tell

_COMMAND_S = 30.0
_INTERFACE = re.compile(r"/net/([^/]+)/ctlr_\d+/")
_SESSION = re.compile(r"/session(\d+)/")
_CONTROLLER = re.compile(r"nvme\d+\Z")
_COUNTERS = ("link_failure_count", "lip_count", "loss_of_sync_count")
_NOT_COUNTED = 2**64 - 1
_TARGET = "/sys/kernel/config/target"
_NETWORK = "target"
"""The network namespace in which the targets of a virtual bench are."""


def _is_running(aim: Aim) -> bool:
    return any(drive.id == aim.drive.id and drive.state in ("running", "live") for drive in read_drives(aim.machine))


def events_of_link(aim: Aim) -> int:
    """How many link events the FC port of a drive has counted."""
    place = f"/sys/class/fc_host/{aim.drive.host}/statistics"
    numbers = [int(text, 0) for name in _COUNTERS if (text := aim.machine.text(f"{place}/{name}"))]
    return sum(number for number in numbers if number != _NOT_COUNTED)


def _lip(aim: Aim, tell: Tell) -> None:
    """The loop is initialised anew; every LUN behind the port waits, and is there again."""
    host = aim.drive.host
    before = events_of_link(aim)
    write_attribute(aim.machine.path(f"/sys/class/fc_host/{host}/issue_lip"), 1)
    tell("command", f"the driver took a LIP of {host}")
    await_seen(lambda: events_of_link(aim) > before, aim.limit_s, f"{host} counted no link event")
    tell("counted", f"{host} had counted {before} link events, now {events_of_link(aim)}")
    await_seen(lambda: _is_running(aim), aim.limit_s, f"drive {aim.drive.id} was not running again")
    tell("back", f"drive {aim.drive.id} is running")


def target_address(aim: Aim) -> str:
    """The IP address of the target behind which a drive is. Raises ToolError where there is none."""
    machine, name = aim.machine, aim.drive.name
    session = _SESSION.search(machine.link(f"/sys/block/{name}"))
    if session:
        address = machine.text(f"/sys/class/iscsi_connection/connection{session.group(1)}:0/address")
    else:
        device = f"/sys/block/{name}/device"
        below = [f"{device}/{entry}" for entry in machine.names(device) if _CONTROLLER.match(entry)]
        words = machine.text(f"{(below or [device])[0]}/address").split(",")
        address = next((word.partition("=")[2] for word in words if word.startswith("traddr=")), "")
    if not address:
        raise ToolError(f"drive {aim.drive.id} is behind no target with an IP address")
    return address


def interface_of(aim: Aim) -> str:
    """The network interface through which a drive is reached. Raises ToolError where there is none."""
    below = _INTERFACE.search(aim.machine.link(f"/sys/block/{aim.drive.name}"))
    if below:
        return below.group(1)
    done = aim.runner(["ip", "-j", "route", "get", target_address(aim)], timeout=_COMMAND_S).expect()
    try:
        return str(json.loads(done.stdout)[0]["dev"])
    except (ValueError, LookupError, TypeError):
        raise ToolError(f"`{done.line}` names no interface: {done.stdout[:100]!r}") from None


def shaped(*words: str, drops: bool = False, wrong: bool = False) -> Callable[[Aim, Tell], None]:
    """The way that has the initiator's port treat what it sends as `words` say.

    With `drops` frames must be lost, with `wrong` the target must have counted wrong checksums.
    """

    def way(aim: Aim, tell: Tell) -> None:
        interface = interface_of(aim)
        before = _wrong_checksums(aim) if wrong else 0
        tc.shape(aim.runner, interface, words)
        try:
            shaping = tc.read_shaping(aim.runner, interface)
            if shaping is None:
                raise ToolError(f"{interface} took `netem {' '.join(words)}` and has none")
            tell("read_back", f"{interface} has a netem with {', '.join(shaping.options)}")
            time.sleep(aim.away_s)
            await_seen(lambda: _did(aim, interface, drops), aim.limit_s, f"{interface} did it to no frame")
            if wrong:
                counted = "the target counted no wrong checksum"
                await_seen(lambda: _wrong_checksums(aim) > before, aim.limit_s, counted)
                tell("counted", f"the target counted {_wrong_checksums(aim) - before} wrong checksums")
            after = tc.read_shaping(aim.runner, interface)
            if after is not None:
                tell("shaped", f"{interface} sent {after.sent} frames that way and dropped {after.dropped}")
        finally:
            tc.unshape(aim.runner, interface)
        if tc.read_shaping(aim.runner, interface) is None:
            tell("put_back", f"{interface} has no netem any more")

    return way


def _did(aim: Aim, interface: str, drops: bool) -> bool:
    shaping = tc.read_shaping(aim.runner, interface)
    return shaping is not None and (shaping.dropped if drops else shaping.sent) > 0


def _wrong_checksums(aim: Aim) -> int:
    """How many segments with a wrong checksum the targets' network received. Raises ToolError."""
    done = aim.runner(["ip", "netns", "exec", _NETWORK, "cat", "/proc/net/snmp"], timeout=_COMMAND_S).expect()
    names, *numbers = (line.split() for line in done.stdout.splitlines() if line.startswith("Tcp:"))
    try:
        return int(numbers[0][names.index("InCsumErrors")])
    except (ValueError, LookupError):
        raise ToolError(f"`{done.line}` names no wrong checksums: {done.stdout[:100]!r}") from None


def _cut(aim: Aim, tell: Tell) -> None:
    """The kernel ends the TCP connections to the target; the initiator has to notice, and to log in again."""
    address = target_address(aim)
    done = aim.runner(["ss", "-H", "-t", "-K", "dst", address], timeout=_COMMAND_S).expect()
    ended = [line for line in done.stdout.splitlines() if line.strip()]
    if not ended:
        raise ToolError(f"`{done.line}` found no connection")
    tell("cut", f"{len(ended)} connections to {address} were ended")
    await_seen(lambda: _is_connected(aim), aim.limit_s, f"the initiator did not connect to {address} again")
    tell("back", f"the initiator is connected to {address} again")


def _is_connected(aim: Aim) -> bool:
    machine = aim.machine
    session = _SESSION.search(machine.link(f"/sys/block/{aim.drive.name}"))
    if session:
        return machine.text(f"/sys/class/iscsi_session/session{session.group(1)}/state") == "LOGGED_IN"
    device = f"/sys/block/{aim.drive.name}/device"
    states = [machine.text(f"{device}/{entry}/state") for entry in machine.names(device) if _CONTROLLER.match(entry)]
    return bool(states) and set(states) == {"live"}


def target_link(aim: Aim, tell: Tell) -> Callable[[str], None]:
    """What turns the link of the target's port behind which a drive is `up` or `down`. Raises ToolError."""
    address = target_address(aim)
    done = aim.runner(["ip", "-n", _NETWORK, "-j", "address"], timeout=_COMMAND_S).expect()
    try:
        ports = [str(link["ifname"]) for link in json.loads(done.stdout) if _has(link["addr_info"], address)]
    except (ValueError, LookupError, TypeError):
        ports = []
    if len(ports) != 1:
        raise ToolError(f"`{done.line}` names no interface with {address}: {done.stdout[:100]!r}")

    def turn(state: str) -> None:
        aim.runner(["ip", "-n", _NETWORK, "link", "set", "dev", ports[0], state], timeout=_COMMAND_S).expect()
        tell(f"link_{state}", f"link {ports[0]} of the target is {state}")

    return turn


def _has(entries: Sequence[Mapping[str, object]], address: str) -> bool:
    return any(entry["local"] == address for entry in entries)


def link_lost(times: int = 1) -> Callable[[Aim, Tell], None]:
    """The way that has the link of the target's port go down so many times, in the time that it is to be away."""

    def way(aim: Aim, tell: Tell) -> None:
        turn = target_link(aim, tell)
        pause = aim.away_s / (2 * times - 1)
        for number in range(times):
            if number:
                time.sleep(pause)
            try:
                turn("down")
                time.sleep(pause)
            finally:
                turn("up")
        await_seen(lambda: _is_connected(aim), aim.limit_s, f"the initiator of {aim.drive.id} did not connect again")
        tell("back", f"the initiator of {aim.drive.id} is connected")

    return way


def _log_out(aim: Aim, tell: Tell) -> None:
    """The target ends all sessions of the drive's portal group and takes none, until it is enabled again."""
    groups = {lun.parents[1] for lun in served_luns(aim)}
    if not groups:
        raise ToolError(f"no target of this bench serves drive {aim.drive.id}")
    try:
        for group in groups:
            write_attribute(group / "enable", 0)
        await_seen(lambda: not _is_connected(aim), aim.limit_s, f"the initiator of {aim.drive.id} kept its session")
        tell("logged_out", f"the target of {aim.drive.id} ended its sessions")
        time.sleep(aim.away_s)
    finally:
        for group in groups:
            write_attribute(group / "enable", 1)
    tell("serves", f"the target of {aim.drive.id} takes sessions again")
    await_seen(lambda: _is_connected(aim), aim.limit_s, f"the initiator of {aim.drive.id} did not log in again")
    tell("back", f"the initiator of {aim.drive.id} is logged in again")


def served_luns(aim: Aim) -> Mapping[Path, Path]:
    """Where targets of this kernel have the drive as a LUN, in configfs, each with what it rests on."""
    root, serial = Path(aim.machine.path(_TARGET)), aim.drive.identity.serial
    stores = {
        place.parent.parent.resolve()
        for place in root.glob("core/*/*/wwn/vpd_unit_serial")
        if place.read_text(encoding="latin-1").rpartition(":")[2].strip() == serial
    }
    return {
        link.parent.resolve(): link.resolve()
        for link in root.glob("*/*/tpgt_*/lun/lun_*/*")
        if link.is_symlink() and link.resolve() in stores
    }


def _mappings(aim: Aim) -> list[Path]:
    """Where a target of this kernel maps the drive for an initiator, in configfs. Raises ToolError without any."""
    root, luns = Path(aim.machine.path(_TARGET)), served_luns(aim)
    mapped = [link for link in root.glob("*/*/tpgt_*/acls/*/lun_*/*") if link.is_symlink() and link.resolve() in luns]
    if not mapped:
        raise ToolError(f"no target of this bench maps drive {aim.drive.id} for an initiator")
    return mapped


def _unmap(aim: Aim, tell: Tell) -> None:
    """The target takes the LUN away from its initiator, and gives it back after a while."""
    mapped = {link: link.resolve() for link in _mappings(aim)}
    try:
        for link in mapped:
            link.unlink()
            link.parent.rmdir()
        tell("unmapped", f"the target maps {aim.drive.id} for nobody")
        time.sleep(aim.away_s)
    finally:
        for link, lun in mapped.items():
            with suppress(FileExistsError):
                link.parent.mkdir()
            with suppress(FileExistsError):
                link.symlink_to(lun)
    tell("mapped", f"the target maps {aim.drive.id} again")
    await_seen(lambda: _is_running(aim), aim.limit_s, f"drive {aim.drive.id} was not running again")
    tell("back", f"drive {aim.drive.id} is running")


FABRIC_ACTS: Mapping[str, Callable[[Aim, Tell], None]] = {
    "fc_lip": _lip,
    "netem_delay": shaped("delay", "40ms", "20ms"),
    "netem_reorder": shaped("delay", "20ms", "reorder", "25%", "50%"),
    "netem_loss": shaped("loss", "2%", drops=True),
    "netem_silence": shaped("loss", "100%", drops=True),
    "netem_corrupt": shaped("corrupt", "2%", wrong=True),
    "socket_kill": _cut,
    "lun_unmap": _unmap,
    "target_link": link_lost(),
    "target_link_flap": link_lost(times=5),
    "tpg_disable": _log_out,
}
