# SPDX-License-Identifier: Apache-2.0
"""What a session of iSCSI or a controller of NVMe over fabrics takes only when it is made: it is made anew with it.

Its drives go and come back under other names, so nobody may use any drive behind it, and none is held meanwhile: the
guard is asked before, and again when all are back. The records of open-iscsi keep it for the next boot, the kernel's
own file for NVMe does not. A session that its target does not take has its former parameters again; those that were
made anew before it keep the new ones until they are restored.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..host.block_stack import is_multipath
from ..host.fabric import connect_words, controller_driver, login_values, session_ends
from ..host.reach import behind_logins, logins_to, uses_of, wait_for_drives
from ..kit.command import Runner
from ..kit.errors import GuardRefusalError, ToolError
from ..kit.machine import Machine, visible, write_attribute
from ..tools import iscsiadm
from .engine import Proof, Separate, Values

_LIMIT_S = 60.0
_FABRICS, _CONTROLLERS, _SESSIONS = "/dev/nvme-fabrics", "/sys/class/nvme", "/sys/class/iscsi_session"
_DIFFER = " and "


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
        values = [login_values(self._machine, way) for way in logins_to(self._machine, target)]
        known = {name: [each[name] for each in values if name in each] for name in names}
        return {
            name: shown[0] if len(set(shown)) == 1 else _DIFFER.join(map(str, shown))
            for name, shown in known.items()
            if shown
        }

    def objections(self, target: str, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """What cannot be set. Raises GuardRefusalError while a drive behind is used, ToolError without a record."""
        problems = [
            f"no iSCSI session or NVMe controller of a fabric leads to it with {name}, {wanted[name]} is declared"
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
            or self._machine.exists(f"{_CONTROLLERS}/{way}/tls_key")
        ]
        for target_name, portal in self._portals(ways):
            iscsiadm.read_record(self._runner, target_name, portal)
        used = uses_of(self._machine, drives, self._state_dir, maps=maps)
        if used and not problems:
            raise GuardRefusalError([f"{line}; its session would be made anew, so end that first" for line in used])
        return problems

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
        logins: list[Callable[[Mapping[str, Any]], None]] = [
            *(partial(iscsiadm.log_in_with, self._runner, *ends) for ends in self._portals(ways)),
            *(
                partial(self._connect, connect_words(self._machine, way), way)
                for way in ways
                if self._is_controller(way)
            ),
        ]
        for log_in in logins:
            self._log_in(log_in, values, former)
        wait_for_drives(self._machine, drives, _LIMIT_S)
        for way in logins_to(self._machine, target) if len(timers) == 1 else ():
            # of an iSCSI session a login has the timer of the record, about which nobody was asked
            with suppress(ToolError):
                write_attribute(self._machine.path(f"{_SESSIONS}/{way}/recovery_tmo"), next(iter(timers)))
        return [f"{target}: session made anew with {', '.join(f'{name} {value}' for name, value in values.items())}"]

    @staticmethod
    def _log_in(log_in: Callable[[Mapping[str, Any]], None], values: Mapping[str, Any], former: Values) -> None:
        try:
            log_in(values)
        except ToolError as problem:
            try:
                log_in(former)
            except ToolError as again:
                raise ToolError(f"{problem}; nor is it back with its former parameters: {again}") from problem
            raise ToolError(f"{problem}; it has its former parameters again") from problem

    def _connect(self, words: Mapping[str, Any], way: str, values: Mapping[str, Any]) -> None:
        line = ",".join(f"{name}={value}" for name, value in {**words, **values}.items())
        if self._is_controller(way):
            write_attribute(self._machine.path(f"{_CONTROLLERS}/{way}/delete_controller"), 1)
        try:
            Path(self._machine.path(_FABRICS)).write_text(line, encoding="ascii")
        except (OSError, UnicodeError) as problem:
            raise ToolError(f"the kernel did not connect {visible(line)}: {problem}") from problem

    def prove(self, target: str, name: str, value: object) -> Proof:
        """The kernel keeps nothing beside what was negotiated, so what it shows is in effect."""
        del name, value
        return True, f"the kernel shows it of {', '.join(logins_to(self._machine, target))}"
