# SPDX-License-Identifier: Apache-2.0
"""Reboot a bench and wait for its next boot, knocking twice a second."""

from __future__ import annotations

import shlex
import subprocess
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.base import child
from storqual.base.text import terminal_text
from storqual.bench.bench_action import lease_of_task
from storqual.bench.follow import ConnectionLostError, UnreachableError
from storqual.bench.lease import LOST, Keeper, fence, lost, put_out
from storqual.bench.reboot import (
    BOOTSTATUS,
    QUESTION,
    Boot,
    SshAddress,
    parse_boot,
    parse_ssh_address,
    ssh_answers,
    wait_for_boot,
    watchdog_fired,
)
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LeaseLostError, OutOfServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from storqual.bench.ladder import LadderStep

display = Display()

# systemd takes the order and answers; where it is not there, the shell ignores the hang-up of the session that ends
_REBOOT = "systemctl --no-block reboot || { trap '' HUP; setsid reboot </dev/null >/dev/null 2>&1 & }"
# what a boot still does after sshd answers would be measured; a failed unit of the bench is not this task's business
_SETTLE = "udevadm settle --timeout=60; timeout {seconds:g} systemctl is-system-running --wait 2>/dev/null || true"
_TELL_S = 15.0
_POLL_S = 0.5
_KNOCK_S = 2.0
# in a boot that is still busy a login takes a multiple of its later time; given up early, it would begin anew
_LOGIN_S = 20.0


class ActionModule(ActionBase):
    """Reboot, wait for another boot id, then for the end of the boot.

    Arguments: `limit_s` (300: seconds until a bench that does not answer is given up), `connect_s` (5: seconds one
    attempt to connect may take where the way leads through another host; a bench that is reached directly is knocked
    at first, and a login is begun only when its SSH server says its name), `settle_s` (90: seconds to wait for the
    end of the boot), `virtual_state` (a virtual bench's state folder on the control node), `recovery_limit_s` (900:
    for how long a bench that was given up is brought back). Returns `boot_id`, `previous_boot_id`, `kernel`,
    `seconds` (until it answered), `ended_by` (what ended a hang of the boot before; empty where nothing had to) and
    `system` (running, degraded or starting).

    `ansible.builtin.reboot` does the same with pauses that double; on a bench that is up in twenty seconds these
    pauses are a third of the time.
    """

    _VALID_ARGS = frozenset({"connect_s", "limit_s", "recovery_limit_s", "settle_s", "virtual_state"})
    _supports_check_mode = True
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "changed": True, "msg": "the bench would be rebooted"}
        arguments = self._task.args
        variables = task_vars or {}
        bench = str(variables.get("inventory_hostname", ""))
        ended_by = ""
        try:
            before = self._ask()
            with suppress(UnreachableError):
                # the connection may be gone before the answer
                self._shell(_REBOOT)
            address = self._ssh_address()
            with self._impatient(float(arguments.get("connect_s", 5)) if address is None else _LOGIN_S):
                try:
                    boot, seconds = wait_for_boot(
                        partial(self._ask_anew, address),
                        before,
                        limit_s=float(arguments.get("limit_s", 300)),
                        poll_s=_POLL_S,
                        show=self._teller(bench),
                        clock=time.monotonic,
                        sleep=time.sleep,
                    )
                except LeaseLostError:
                    raise
                except StorqualError as problem:
                    boot, seconds, ended_by = self._bring_back(bench, variables, before, str(problem))
            ended_by = ended_by or ("its watchdog" if watchdog_fired(self._shell(BOOTSTATUS)) else "")
            system = self._shell(_SETTLE.format(seconds=float(arguments.get("settle_s", 90)))).split()
        except (StorqualError, UnreachableError) as problem:
            told = {"msg": str(problem), "storqual_exit_code": problem.exit_code}
            return {**result, "failed": True, "changed": True, **told}
        return {
            **result,
            "changed": True,
            "boot_id": boot.boot_id,
            "previous_boot_id": before.boot_id,
            "kernel": boot.kernel,
            "seconds": round(seconds, 1),
            "ended_by": ended_by,
            "system": system[-1] if system else "",
        }

    def _bring_back(
        self, bench: str, variables: Mapping[str, Any], before: Boot, reason: str
    ) -> tuple[Boot, float, str]:
        """The boot of a bench that did not come back, the seconds that took, what ended it. Raises StorqualError."""
        from storqual.bench.ladder import SilentBench, climb  # noqa: PLC0415 - what a boot needs not is not imported
        from storqual.console.console import console_of  # noqa: PLC0415 - as above
        from storqual.power.inventory_entry import power_of_bench  # noqa: PLC0415 - as above
        from storqual.turns.bring_back import means_of  # noqa: PLC0415 - as above
        from storqual.virtual_bench.places import BenchPlaces  # noqa: PLC0415 - as above

        arguments = self._task.args
        state = str(arguments.get("virtual_state") or "")
        places = BenchPlaces.of(state) if state else None
        address = str(self._play_context.remote_addr)
        power = None
        if places is None:
            power = power_of_bench(bench, variables, self._templar, self._connection, address)
        keeper = Keeper(lease_of_task(self), bench)
        limit_s = float(arguments.get("recovery_limit_s", 900))
        means = means_of(places, limit_s, power, ensure=keeper.ensure)
        means.ensure()
        console = console_of(bench, places)

        def say(line: str) -> None:
            display.display(terminal_text(line))

        cycle_power, cycle_longer = means.cycles(before.boot_id, run=None, say=say)

        def ask(_limit_s: float) -> str:
            # a bench whose power was cycled may have another address
            with suppress(UnreachableError):
                return self._ask_anew(self._ssh_address()).boot_id
            return ""

        def trigger(letters: str) -> str:
            keys = "; ".join(f"echo {letter} > /proc/sysrq-trigger" for letter in letters)
            try:
                return self._shell(f"{keys}; dmesg | tail -n 400")
            except UnreachableError as problem:
                raise ConnectionLostError(str(problem)) from problem

        silent = SilentBench(
            boot_id=before.boot_id,
            ask=ask,
            trigger=None if self._connection.transport == "local" else trigger,
            console=console,
            console_mark=console.mark() if console else 0,
            cycle_power=cycle_power,
            cycle_longer=cycle_longer,
        )

        def tell(step: LadderStep) -> None:
            means.ensure()
            say("\n".join(filter(None, (f"{bench}: {step.name}: {step.text}", step.evidence))))

        recovery = climb(
            silent,
            reason,
            limit_s=means.limit_s,
            tell=tell,
            clock=time.monotonic,
            sleep=time.sleep,
        )
        if not recovery.boot_id:
            why = f"{reason}; nothing brought it back within {recovery.seconds:.0f} s more"
            put_out(bench, why, f"{state}/lease" if state else "")
            raise OutOfServiceError(f"{bench} is out of service: {why}")
        display.warning(f"{bench}: {reason}; ended by {recovery.ended_by or 'itself'}")
        return self._ask(), recovery.seconds, recovery.ended_by

    def _shell(self, command: str) -> str:
        lease = lease_of_task(self)
        try:
            ended = self._low_level_execute_command(fence(lease) + command, sudoable=True)
        except AnsibleConnectionFailure as problem:
            raise UnreachableError(str(problem).splitlines()[0]) from problem
        if lease and int(ended["rc"]) == LOST:
            raise lost(lease, str(ended["stderr"]) or str(ended["stdout"]))
        return str(ended["stdout"])

    def _ask(self) -> Boot:
        return parse_boot(self._shell(QUESTION))

    def _ssh_address(self) -> SshAddress | None:
        """Where this connection's SSH would knock; None when it is not OpenSSH or goes through another host."""
        options: dict[str, Any] = {}
        for name in ("ssh_executable", "host", "port", "ssh_args", "ssh_common_args", "ssh_extra_args"):
            try:
                options[name] = self._connection.get_option(name)
            except KeyError:
                return None
        argv = [str(options["ssh_executable"])]
        for name in ("ssh_args", "ssh_common_args", "ssh_extra_args"):
            argv += shlex.split(str(options[name] or ""))
        argv += ["-p", str(options["port"])] if options["port"] else []
        try:
            told = child.run([*argv, "-G", str(options["host"])], capture_output=True, text=True, timeout=_LOGIN_S)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return parse_ssh_address(told.stdout) if told.returncode == 0 else None

    def _ask_anew(self, address: SshAddress | None) -> Boot:
        """Ask over a connection of its own: one that outlived the reboot would wait for a bench that is gone."""
        if address is not None and not ssh_answers(address, _KNOCK_S):
            raise UnreachableError(f"no SSH server says its name at {address.host} port {address.port}")
        with suppress(AnsibleConnectionFailure):
            self._connection.reset()
        try:
            return self._ask()
        except LeaseLostError:
            raise
        except StorqualError as problem:
            # a bench that is going down answers with half a line or none
            raise UnreachableError(str(problem)) from problem

    @contextmanager
    def _impatient(self, connect_s: float) -> Iterator[None]:
        wanted = {"timeout": int(connect_s), "reconnection_retries": 0}
        former: dict[str, Any] = {}
        for name, value in wanted.items():
            with suppress(KeyError):
                former[name] = self._connection.get_option(name)
                self._connection.set_option(name, value)
        try:
            yield
        finally:
            for name, value in former.items():
                self._connection.set_option(name, value)
            with suppress(AnsibleConnectionFailure):
                self._connection.reset()

    @staticmethod
    def _teller(bench: str) -> Any:
        told = [0.0]

        def tell(seconds: float, answering: bool) -> None:
            if seconds - told[0] >= _TELL_S:
                told[0] = seconds
                display.display(f"{bench}: {'going down' if answering else 'booting'}, {seconds:.0f} s")

        return tell
