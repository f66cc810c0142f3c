# SPDX-License-Identifier: Apache-2.0
"""What a session of iSCSI or a controller of NVMe over fabrics takes only when it is made: it is made anew with it.

Its drives go and come back under other names, so nobody may use any drive behind it, and none is held meanwhile: the
guard is asked before, and again when all are back. The records of open-iscsi keep it for the next boot, the kernel's
own file for NVMe does not. Where a target does not take one of them, all that were made anew have the former again.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..host.block_stack import is_multipath
from ..host.fabric import connect_words, controller_driver, login_values, nvme_address, portal, session_ends
from ..host.reach import behind_logins, logins_to, uses_of, wait_for_drives
from ..kit.command import Runner
from ..kit.errors import GuardRefusalError, ToolError
from ..kit.machine import Machine, visible, write_attribute
from ..tools import iscsiadm, nvme
from .engine import Proof, Separate, Values

_LIMIT_S = 60.0
_FABRICS, _CONTROLLERS, _SESSIONS = "/dev/nvme-fabrics", "/sys/class/nvme", "/sys/class/iscsi_session"
_DIFFER = " and "
_ENDS = ("transport", "nqn", "hostnqn", "hostid", "traddr", "trsvcid", "host_traddr", "host_iface")
_FLAGS = {"header_digest": "hdr_digest", "data_digest": "data_digest"}
_LogIn = Callable[[Mapping[str, Any]], None]


class Sessions(Separate):
    """The parameters of the sessions and controllers that lead to a drive, which is known by its id."""

    section = owned_by = "drive"

    def __init__(self, runner: Runner, machine: Machine, state_dir: str) -> None:
        self._runner, self._machine, self._state_dir = runner, machine, state_dir

    def together(self, name: str) -> object:
        """One login takes all."""
        del name
        return "login"

    def read(self, target: str, names: Sequence[str]) -> Values:
        """What the kernel shows of them; a text with the value of each where they differ."""
        values = [
            {**login_values(self._machine, way), **(self._header_digest(way) if "header_digest" in names else {})}
            for way in logins_to(self._machine, target)
        ]
        known = {name: [each[name] for each in values if name in each] for name in names}
        return {
            name: shown[0] if len(set(shown)) == 1 else _DIFFER.join(map(str, shown))
            for name, shown in known.items()
            if shown and len(shown) == len(values)
        }

    def objections(self, target: str, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """What cannot be set. Raises GuardRefusalError while a drive behind is used, ToolError without a record."""
        problems = [
            f"no iSCSI session or NVMe controller leads to it, or not each shows {name}; {wanted[name]} is declared"
            for name in sorted(wanted.keys() - now.keys())
        ]
        if problems or all(now[name] == value for name, value in wanted.items()):
            return problems
        problems = [f"its sessions differ in {name}: {now[name]}" for name in wanted if _DIFFER in str(now[name])]
        if (commands := wanted.get("cmds_max", 1)) & (commands - 1):
            problems.append(f"cmds_max {commands} is no power of two, and the kernel would take fewer")
        online = sum(line.startswith("processor") for line in self._machine.lines("/proc/cpuinfo"))
        if (queues := wanted.get("nr_io_queues", 0)) > online:
            problems.append(f"nr_io_queues {queues} is declared, the kernel takes {online}, one for each CPU")
        ways = logins_to(self._machine, target)
        drives = behind_logins(self._machine, ways)
        holders = {name for disk in drives for name in self._machine.names(f"/sys/block/{disk.name}/holders")}
        maps = [name for name in holders if is_multipath(self._machine, name)]
        if wanted.get("nr_sessions", 1) > 1 and not maps:
            problems.append("several sessions are several paths, and it has no multipath device: start multipathd")
        problems += [
            f"{way} was connected with a secret, which storqual does not read: connect it yourself"
            for way in ways
            if self._machine.text(f"{_CONTROLLERS}/{way}/dhchap_secret") not in ("", "none")
            or self._machine.text(f"{_CONTROLLERS}/{way}/tls_key")
        ]
        for ends in self._portals(ways):
            iscsiadm.read_record(self._runner, *ends)
        used = uses_of(self._machine, drives, self._state_dir, maps=maps)
        if used and not problems:
            raise GuardRefusalError([f"{line}; its session would be made anew, so end that first" for line in used])
        return problems

    def _header_digest(self, way: str) -> Values:
        """Of an NVMe/TCP controller, as its commands show it, because the kernel does not (6.1, 6.12)."""
        if controller_driver(self._machine, way) != "nvme_tcp":
            return {}
        ends = nvme_address(self._machine.text(f"{_CONTROLLERS}/{way}/address"))
        peer = portal({"address": ends.get("traddr", ""), "port": ends.get("trsvcid", "")})
        digest = nvme.read_header_digest(self._runner, f"/dev/{way}", peer)
        return {"header_digest": digest} if digest else {}

    def _portals(self, ways: Sequence[str]) -> list[tuple[str, str]]:
        return sorted({session_ends(self._machine, way) for way in ways if not self._is_controller(way)})

    def _is_controller(self, way: str) -> bool:
        return bool(controller_driver(self._machine, way))

    def write(self, target: str, values: Mapping[str, Any]) -> list[str]:
        """Make the sessions anew, where another drive behind them did not have that done. Raises ToolError."""
        former = self.read(target, list(values))
        if former == values:
            return []
        ways = logins_to(self._machine, target)
        drives = {disk.id for disk in behind_logins(self._machine, ways)}
        timers = {self._machine.text(f"{_SESSIONS}/{way}/recovery_tmo") for way in ways} - {""}
        logins: dict[str, _LogIn] = {
            " at ".join(ends): partial(iscsiadm.log_in_with, self._runner, *ends) for ends in self._portals(ways)
        }
        for way in filter(self._is_controller, ways):
            words = {**connect_words(self._machine, way), **self._header_digest(way)}
            logins[f"{way} to {words.get('traddr')}"] = partial(self._connect, words)
        problem = _log_in(logins, values, former)
        late = _refusal(partial(wait_for_drives, self._machine, drives, _LIMIT_S))
        for way in logins_to(self._machine, target) if len(timers) == 1 else ():
            # of an iSCSI session a login has the timer of the record, about which nobody was asked
            with suppress(ToolError):
                write_attribute(self._machine.path(f"{_SESSIONS}/{way}/recovery_tmo"), next(iter(timers)))
        if problem or late:
            raise ToolError("; ".join(filter(None, (problem, late))))
        return [f"{target}: session made anew with {', '.join(f'{name} {value}' for name, value in values.items())}"]

    def _connect(self, words: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        parameters = {name: value for name, value in {**words, **values}.items() if value != "None"}
        line = ",".join(_FLAGS.get(name, f"{name}={value}") for name, value in parameters.items())
        for way in filter(self._is_controller, self._machine.names(_CONTROLLERS)):
            # by its ends: one that was made anew may have another number
            shown = connect_words(self._machine, way)
            if all(shown.get(name) == words.get(name) for name in _ENDS):
                write_attribute(self._machine.path(f"{_CONTROLLERS}/{way}/delete_controller"), 1)
        try:
            Path(self._machine.path(_FABRICS)).write_text(line, encoding="ascii")
        except (OSError, UnicodeError) as problem:
            raise ToolError(f"the kernel did not connect {visible(line)}: {problem}") from problem

    def prove(self, target: str, name: str, value: object) -> Proof:
        """The kernel keeps nothing beside what was negotiated, so what it shows is in effect."""
        ways = logins_to(self._machine, target)
        if name == "header_digest" and any(map(self._is_controller, ways)):
            length = nvme.COMMAND_BYTES.get(str(value)) if value else None
            return bool(length) or None, f"a command of {', '.join(ways)} takes {length or '?'} bytes"
        return True, f"the kernel shows it of {', '.join(ways)}"


def _log_in(logins: Mapping[str, _LogIn], values: Mapping[str, Any], former: Values) -> str:
    """Make all anew; where one is refused, it and those before it as they were, and the sentence that says so."""
    made: list[str] = []
    for way, log_in in logins.items():
        made.insert(0, way)
        if problem := _refusal(partial(log_in, values)):
            reasons = {name: _refusal(partial(logins[name], former)) for name in made}
            back = ", ".join(name for name, reason in reasons.items() if not reason)
            lost = ", ".join(f"{name} ({reason})" for name, reason in reasons.items() if reason)
            again = f"the former parameters are in force again for {back or 'none'}"
            return f"{problem}; {again}{f'; not for {lost}' if lost else ''}"
    return ""


def _refusal(step: Callable[[], None]) -> str:
    try:
        step()
    except ToolError as problem:
        return str(problem)
    return ""
