# SPDX-License-Identifier: Apache-2.0
"""Reboot a bench and wait for its next boot, knocking twice a second."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from storqual.bench.follow import UnreachableError
from storqual.bench.reboot import wait_for_boot
from storqual.turns.recovering_action import LOGIN_S, Before, RecoveringAction
from storqual_core.host.watchdog import FIRED, has_fired
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LeaseLostError

if TYPE_CHECKING:
    from collections.abc import Mapping

display = Display()

# systemd takes the order and answers; where it is not there, the shell ignores the hang-up of the session that ends
_REBOOT = "systemctl --no-block reboot || { trap '' HUP; setsid reboot </dev/null >/dev/null 2>&1 & }"
# what a boot still does after sshd answers would be measured; a failed unit of the bench is not this task's business
_SETTLE = "udevadm settle --timeout=60; timeout {seconds:g} systemctl is-system-running --wait 2>/dev/null || true"
_TELL_S = 15.0
_POLL_S = 0.5


class ActionModule(RecoveringAction):
    """Reboot, wait for another boot id, then for the end of the boot.

    Arguments: `limit_s` (300: seconds until a bench that does not answer is given up), `connect_s` (5: seconds one
    attempt to connect may take where the way leads through another host; a bench that is reached directly is knocked
    at first, and a login is begun only when its SSH server says its name), `settle_s` (90: seconds to wait for the
    end of the boot), `virtual_state` (a virtual bench's state folder on the control node), `recovery_limit_s` (900:
    for how long a bench that was given up is brought back), `reboot` (true; with false it is only asked for its boot,
    and brought back where it does not answer, which is an event of `run`; `console` is where its console was after
    the last batch). Returns `boot_id`, `previous_boot_id`, `kernel`,
    `seconds` (until it answered), `ended_by` (what ended a hang of the boot before; empty where nothing had to) and
    `system` (running, degraded or starting).

    `ansible.builtin.reboot` does the same with pauses that double; on a bench that is up in twenty seconds these
    pauses are a third of the time.
    """

    _VALID_ARGS = frozenset(
        {"connect_s", "console", "limit_s", "reboot", "recovery_limit_s", "run", "settle_s", "virtual_state"}
    )
    _supports_check_mode = True
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        variables = task_vars or {}
        bench = str(variables.get("inventory_hostname", ""))
        reboots, limit_s = boolean(arguments.get("reboot", True)), float(arguments.get("limit_s", 300))
        if self._task.check_mode and reboots:
            return {**result, "changed": True, "msg": "the bench would be rebooted"}
        ended_by = ""
        try:
            before, seconds, ended_by = self._boot_now(bench, variables)
            if not reboots:
                now = {"boot_id": before.boot.boot_id, "seconds": seconds, "ended_by": ended_by}
                return {**result, "changed": False, **now}
            with suppress(UnreachableError):
                # the connection may be gone before the answer
                self._shell(_REBOOT)
            address = self._ssh_address()
            with self._impatient(float(arguments.get("connect_s", 5)) if address is None else LOGIN_S):
                try:
                    boot, seconds = wait_for_boot(
                        partial(self._ask_anew, address),
                        before.boot,
                        limit_s=limit_s,
                        poll_s=_POLL_S,
                        show=self._teller(bench),
                        clock=time.monotonic,
                        sleep=time.sleep,
                    )
                except LeaseLostError:
                    raise
                except StorqualError as problem:
                    hang = (bench, variables, before, str(problem))
                    boot, seconds, ended_by = self._bring_back(*hang, hangs=True, silent_s=limit_s)
            ended_by = ended_by or ("its watchdog" if has_fired(self._shell(FIRED)) else "")
            system = self._shell(_SETTLE.format(seconds=float(arguments.get("settle_s", 90)))).split()
        except (StorqualError, UnreachableError) as problem:
            failure = {"msg": str(problem), "storqual_exit_code": problem.exit_code}
            return {**result, "failed": True, "changed": True, **failure}
        return {
            **result,
            "changed": True,
            "boot_id": boot.boot_id,
            "previous_boot_id": before.boot.boot_id,
            "kernel": boot.kernel,
            "seconds": round(seconds, 1),
            "ended_by": ended_by,
            "system": system[-1] if system else "",
        }

    def _boot_now(self, bench: str, variables: Mapping[str, Any]) -> tuple[Before, float, str]:
        """What answers, of a bench that is brought back where nothing does. Raises StorqualError."""
        try:
            return self._before(bench, variables), 0.0, ""
        except UnreachableError as problem:
            if not self._may_bring_back():
                raise
            _, seconds, ended_by = self._bring_back_idle(bench, variables, str(problem))
            return self._before(bench, variables), seconds, ended_by

    @staticmethod
    def _teller(bench: str) -> Any:
        last = [0.0]

        def tell(seconds: float, answering: bool) -> None:
            if seconds - last[0] >= _TELL_S:
                last[0] = seconds
                display.display(f"{bench}: {'going down' if answering else 'booting'}, {seconds:.0f} s")

        return tell
