# SPDX-License-Identifier: Apache-2.0
"""Try what a bench is watched and brought back by: power, console, watchdog, pstore, kdump."""

from __future__ import annotations

import secrets
import shlex
import time
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleConnectionFailure
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from storqual.base.console_log import joined_dumps, panic_text
from storqual.base.text import terminal_text, visible_text
from storqual.bench.follow import UnreachableError
from storqual.bench.health import (
    FIRE,
    LOOK,
    PANIC,
    PartHealth,
    broken,
    console_health,
    fired_health,
    panic_health,
    parse_look,
    power_health,
    standing_health,
)
from storqual.bench.reached import lasting_connection, refuse_held
from storqual.bench.reboot import Boot, wait_for_boot
from storqual.console.console import Console, console_of
from storqual.turns.recovering_action import LOGIN_S, RecoveringAction
from storqual_core.host.watchdog import FIRED, has_fired
from storqual_core.kit.errors import StorqualError

if TYPE_CHECKING:
    from collections.abc import Mapping

display = Display()

_HEARD_S = 5.0
_POLL_S = 1.0
_TAKEN = "command-taken"
_DUMPS = {"pstore": "/sys/fs/pstore/dmesg-* /var/lib/systemd/pstore/*/dmesg.txt", "kdump": "/var/crash/*/*dmesg*"}
_KNOWN = "find /sys/fs/pstore /var/lib/systemd/pstore /var/crash -type f 2>/dev/null"


class ActionModule(RecoveringAction):
    """Return `health`: of each part whether it works, and what was seen. Nothing is changed without `prove`.

    Arguments: `prove` (false: with it the watchdog is let fire once, and the kernel is made to panic once; both start
    the bench again), `boot_limit_s` (600: seconds until the bench answers after either), `state_dir` (on the bench,
    which is not started again where a run holds it). Fails where a part is there and does not work.
    """

    _VALID_ARGS = frozenset({"boot_limit_s", "prove", "state_dir"})
    _supports_check_mode = True
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        bench = str(variables.get("inventory_hostname", ""))
        if variables.get("storqual_kind") == "local":
            why = "a local bench is this machine: nobody watches it"
            return {**result, "changed": False, "health": [], "msg": why}
        proves = boolean(self._task.args.get("prove", False)) and not self._task.check_mode
        try:
            rows = self._standing(bench, variables)
            if proves:
                self._refuse_restart()
                rows = self._proven(bench, variables, rows)
        except (StorqualError, AnsibleConnectionFailure) as problem:
            return {**result, "failed": True, "msg": visible_text(str(problem)), "storqual_exit_code": 2}
        for row in rows:
            display.display(terminal_text(f"{bench}: {row.part}: {row.works}: {row.text}"))
        wrong = broken(rows)
        failed = {"failed": True, "storqual_exit_code": 1} if wrong else {}
        summary = (
            "; ".join(wrong) or f"{sum(row.works == 'works' for row in rows)} of {len(rows)} parts were seen to work"
        )
        return {**result, **failed, "changed": proves, "msg": summary, "health": [row.to_json() for row in rows]}

    def _refuse_restart(self) -> None:
        """Raise StorqualError for a bench that must not be started again now."""
        connection = lasting_connection(self._connection, str(self._play_context.remote_addr))
        if not connection.remote:
            raise StorqualError("a bench that is this machine is not started again from here")
        refuse_held(connection, str(self._task.args.get("state_dir", "/var/lib/storqual")))

    def _standing(self, bench: str, variables: Mapping[str, Any]) -> list[PartHealth]:
        look = parse_look(self._shell(LOOK))
        return [self._power(bench, variables), self._console(bench, variables), *standing_health(look)]

    def _power(self, bench: str, variables: Mapping[str, Any]) -> PartHealth:
        """What each backend says of a bench that answers; nothing is switched."""
        from storqual.power.inventory_entry import power_of_bench  # noqa: PLC0415 - what a module need not is not imported
        from storqual.power.switch import PowerBackendError  # noqa: PLC0415 - as above

        address = str(self._play_context.remote_addr)
        power = power_of_bench(bench, variables, self._templar, self._connection, address)
        states: dict[str, str] = {}
        for backend in power.backends if power else ():
            try:
                states[backend.name] = str(backend.state())
            except PowerBackendError as problem:
                states[backend.name] = str(problem)
        return power_health(None if power is None else states)

    def _console(self, bench: str, variables: Mapping[str, Any]) -> PartHealth:
        """Whether the kernel's log comes out of a console that is recorded now."""
        console = console_of(bench, self._places(variables))
        if console is None:
            return console_health("", None)
        token, mark = f"storqual-health-{secrets.token_hex(4)}", console.mark()
        # an urgent line goes to the console whatever its log level is
        self._shell(f"echo {shlex.quote('<1>' + token)} > /dev/kmsg")
        end = time.monotonic() + _HEARD_S
        while token not in console.text_since(mark) and time.monotonic() < end:
            time.sleep(_POLL_S)
        return console_health(token, console.text_since(mark))

    def _proven(self, bench: str, variables: Mapping[str, Any], rows: list[PartHealth]) -> list[PartHealth]:
        """The watchdog is let fire, then the kernel panics; what is not there is not tried."""
        by_part = {row.part: row for row in rows}
        if by_part["watchdog"].works == "not tried":
            _, seconds, ended_by = self._die(bench, variables, FIRE)
            fired = has_fired(self._shell(FIRED))
            by_part["watchdog"] = fired_health(by_part["watchdog"], ended_by=ended_by, fired=fired, seconds=seconds)
        if all(by_part[part].works == "absent" for part in ("console", *_DUMPS)):
            return list(by_part.values())
        places = self._places(variables)
        console = console_of(bench, places)
        mark, lying = console.mark() if console else 0, set(self._shell(_KNOWN).split())
        with Console(bench, places).expecting("the health check of a bench", self._limit_s()):
            self._die(bench, variables, PANIC)
        sources = {"console": console is not None and bool(panic_text(console.text_since(mark)))}
        for part, files in _DUMPS.items():
            fresh = [name for name in self._shell(f"ls -d {files} 2>/dev/null").split() if name not in lying]
            texts = [self._shell(f"cat {shlex.quote(name)}") for name in fresh]
            sources[part] = bool(panic_text(joined_dumps(texts)))
        for part in sources:
            by_part[part] = panic_health(by_part[part], sources)
        return list(by_part.values())

    def _die(self, bench: str, variables: Mapping[str, Any], command: str) -> tuple[Boot, float, str]:
        """The boot after one that this command ends, the seconds that took, and what had to help."""
        before, address = self._before(bench, variables), self._ssh_address()
        if _TAKEN not in self._shell(f"{command} && echo {_TAKEN}"):
            raise StorqualError(f"{bench} did not take the command: {command}")
        with self._impatient(LOGIN_S):
            try:
                boot, seconds = wait_for_boot(
                    lambda: self._ask_anew(address),
                    before.boot,
                    limit_s=self._limit_s(),
                    poll_s=_POLL_S,
                    clock=time.monotonic,
                    sleep=time.sleep,
                )
            except UnreachableError:
                raise
            except StorqualError as problem:
                return self._bring_back(bench, variables, before, str(problem), hangs=True)
        return boot, seconds, ""

    def _limit_s(self) -> float:
        return float(self._task.args.get("boot_limit_s", 600))
