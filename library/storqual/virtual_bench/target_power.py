# SPDX-License-Identifier: Apache-2.0
"""Faults of a bench whose FC targets are in a guest of their own: that guest loses its power, and gets it back.

The kernel's FC target hangs when a session ends while it stays up (tcm_fc on 6.1 and 6.12), so a link that was lost
is back only with a target that was started anew.
"""

import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path

from storqual.bench.follow import Connection
from storqual.virtual_bench.places import BenchPlaces, locked
from storqual.virtual_bench.power import PowerState, end_targets, power_state, start_targets
from storqual.virtual_bench.qemu import channel_id
from storqual.virtual_bench.qmp import converse
from storqual_core.kit.errors import ToolError
from storqual_core.kit.waiting import await_seen

_NOTICED_S, _BOOT_S = 120.0, 300.0
_GIVEN_UP = ("", "Not Present")
"""States of a remote port after its dev_loss_tmo: the kernel keeps the name of one that was a target."""
_PLACE = re.compile(r"/net/fc(\d)/ctlr_\d+/host\d+/(rport-[0-9:-]+)/")
_PORT = """\
place=$(readlink -f $(grep -ls {drive} /sys/block/sd*/device/wwid | sed 's,/wwid,,;q'))
echo "$place/"
rport=$(echo "$place" | grep -o 'rport-[0-9:-]*')
cat "/sys/class/fc_remote_ports/$rport/port_name" "/sys/class/fc_remote_ports/$rport/dev_loss_tmo"
"""
_STATES = """\
state() { for file in $(grep -ls "$1" $2); do cat "${file%/*}/$3"; break; done; }
echo "$(state PORT '/sys/class/fc_remote_ports/*/port_name' port_state),\
$(state DRIVE '/sys/block/sd*/device/wwid' state)"
"""


def set_link(state: PowerState, card: str, *, up: bool) -> None:
    converse(Path(state.monitor), lambda monitor: monitor.ask("set_link", {"name": card, "up": up}))


def lose_targets(
    places: BenchPlaces,
    connection: Connection,
    drive: str,
    away_s: float,
    tell: Callable[[str, str], None],
    *,
    past_timer: bool = False,
    link: bool = False,
) -> None:
    """Have the targets of a drive lose their power, with the link of its initiator's port if `link`, and come back.

    `past_timer` waits until the initiator gave the port up, after its dev_loss_tmo. Without it a port that is given
    up is an error: the fault was another one.
    """
    bench = power_state(places)
    if bench is None or bench.bench.targets is None:
        raise ToolError(f"the targets of {drive} are not in a guest of their own")
    name = shlex.quote(drive.removeprefix("0x"))
    place, wwpn, timer = connection.run(_PORT.format(drive=name)).split()
    at = _PLACE.search(place)
    if at is None:
        raise ToolError(f"{drive} is behind no FC port of this bench: {place}")
    (adapter,) = (each for each in bench.bench.adapters if each.end)
    states = _STATES.replace("PORT", wwpn).replace("DRIVE", name)

    def look() -> tuple[str, str]:
        """The states of port and drive."""
        port, _, state = connection.run(states).strip().partition(",")
        if not past_timer and port in _GIVEN_UP:
            raise ToolError(f"{at[2]} was given up after its dev_loss_tmo of {timer} s, before its target was back")
        return port, state

    card = channel_id(adapter, int(at[1]))
    try:
        if link:
            set_link(bench, card, up=False)
            tell("link_down", f"QEMU took the link of fc{at[1]} down")
        with locked(places.lock):
            end_targets(places)
        tell("target_off", f"the targets of {drive} have no power")
        if past_timer:
            gone = f"{at[2]} was not given up, and its dev_loss_tmo is {timer} s"
            await_seen(lambda: look() in [(port, "") for port in _GIVEN_UP], float(timer) + _NOTICED_S, gone)
            tell("gone", f"{at[2]} and {drive} are gone, dev_loss_tmo is {timer} s")
        else:
            await_seen(lambda: look()[0] == "Blocked", _NOTICED_S, f"{at[2]} was not Blocked")
            tell("blocked", f"{at[2]} is Blocked, and {drive} waits")
        time.sleep(away_s)
    finally:
        with locked(places.lock):
            start_targets(places, bench.bench)
        if link:
            set_link(bench, card, up=True)
    tell("target_on", f"the targets of {drive} have power")
    if link:
        tell("link_up", f"QEMU took the link of fc{at[1]} up")
    await_seen(lambda: look()[0] == "Online", _BOOT_S, f"{at[2]} was not Online again")
    blocked = f"{at[2]} is Online again, and {drive} behind it was not running"
    await_seen(lambda: look() == ("Online", "running"), _NOTICED_S, blocked)
    tell("back", f"{at[2]} is Online and {drive} is running")
