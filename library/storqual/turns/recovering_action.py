# SPDX-License-Identifier: Apache-2.0
"""Actions of Ansible under which a bench may hang: one that stops answering is brought back, and the play goes on."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.base import child
from storqual.base.text import terminal_text
from storqual.bench.bench_action import lease_of_task, run_on_bench
from storqual.bench.follow import ConnectionLostError, UnreachableError
from storqual.bench.lease import LOST, Keeper, fence, lost, put_out
from storqual.bench.reboot import QUESTION, Boot, SshAddress, parse_boot, parse_ssh_address, ssh_answers
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LeaseLostError, OutOfServiceError

if TYPE_CHECKING:
    from storqual.virtual_bench.places import BenchPlaces

LOGIN_S = 20.0
"""In a boot that is still busy a login takes a multiple of its later time; given up early, it would begin anew."""
_KNOCK_S = 2.0
_RECOVERY_S = 900.0

display = Display()


def virtual_state(action: Any, variables: Mapping[str, Any]) -> str:  # noqa: ANN401 - Ansible publishes no types
    """The state folder of a virtual bench on the control node; empty for any other."""
    virtual = variables.get("storqual_kind") == "virtual" and variables.get("virtual_bench_state")
    return str(action._task.args.get("virtual_state") or action._templar.template(virtual or ""))  # noqa: SLF001 - as `bench_action`


class RecoveringAction(ActionBase):
    """Brings a bench back that stops answering under a module of this action, where a campaign has reserved it.

    A module whose bench goes on in the same boot is called once more, as after any lost connection; with
    `calls_again` also in another boot. Else the result has failed, with `ended_by` and `seconds` of the hang.
    """

    calls_again = False

    def _execute_module(self, *given: Any, **named: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever Ansible's takes
        if not self._may_bring_back():
            return dict(super()._execute_module(*given, **named))
        variables: Mapping[str, Any] = named.get("task_vars") or {}
        bench = str(variables.get("inventory_hostname", ""))
        before, reason = Boot("", ""), ""
        try:
            before = self._ask()
        except UnreachableError as problem:
            reason = self._loss(problem)
        except LeaseLostError as problem:
            return {"failed": True, "msg": str(problem), "storqual_exit_code": problem.exit_code}
        try:
            if not reason:
                with self._once():
                    return dict(super()._execute_module(*given, **named))
        except AnsibleConnectionFailure as problem:
            reason = self._loss(problem)
        try:
            after, seconds, ended_by = self._bring_back(bench, variables, before, reason, hangs=False)
            if self.calls_again or not before.boot_id or after.boot_id == before.boot_id:
                return dict(super()._execute_module(*given, **named))
        except (StorqualError, AnsibleConnectionFailure) as problem:
            code = problem.exit_code if isinstance(problem, StorqualError) else 2
            return {"failed": True, "msg": str(problem), "storqual_exit_code": code}
        now = f"it is on boot {after.boot_id} now, ended by {ended_by or 'itself'}"
        hang = {"ended_by": ended_by, "seconds": round(seconds, 1), "storqual_exit_code": 2}
        return {"failed": True, "changed": True, "msg": f"{bench}: {reason}; {now}", **hang}

    def _may_bring_back(self) -> bool:
        """Whether the bench is this play's to restart: `--check` only looks at it, and a stranger cuts no power."""
        return self._connection.transport != "local" and not self._task.check_mode and bool(lease_of_task(self))

    def _loss(self, problem: Exception) -> str:
        first = (str(problem).splitlines() or [type(problem).__name__])[0]
        return f"it stopped answering under the task {self._task.get_name()!r} ({first})"

    @contextmanager
    def _once(self) -> Iterator[None]:
        """Without Ansible's own second try: it would run a module on whatever boot answers then."""
        former = self._connection.get_option("reconnection_retries")
        self._connection.set_option("reconnection_retries", 0)
        try:
            yield
        finally:
            self._connection.set_option("reconnection_retries", former)

    def _bring_back(
        self, bench: str, variables: Mapping[str, Any], before: Boot, reason: str, *, hangs: bool
    ) -> tuple[Boot, float, str]:
        """The boot of a bench that did not come back, the seconds that took, what ended it. Raises StorqualError."""
        from storqual.bench.ladder import LadderStep, SilentBench, climb  # noqa: PLC0415 - what a boot needs not is not imported
        from storqual.console.console import console_of  # noqa: PLC0415 - as above
        from storqual.power.inventory_entry import power_of_bench  # noqa: PLC0415 - as above
        from storqual.turns.bring_back import SPARE_S, means_of  # noqa: PLC0415 - as above

        places = self._places(variables)
        address = str(self._play_context.remote_addr)
        power = power_of_bench(bench, variables, self._templar, self._connection, address)
        limit_s = variables.get("campaign_recovery_limit_s", _RECOVERY_S)
        limit_s = float(self._task.args.get("recovery_limit_s") or self._templar.template(limit_s))
        means = means_of(places, limit_s, power, ensure=Keeper(lease_of_task(self), bench).ensure)
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
            hangs=hangs,
            trigger=None if self._connection.transport == "local" else trigger,
            console=console,
            console_mark=console.mark() if console else 0,
            cycle_power=cycle_power,
            cycle_longer=cycle_longer,
            nmi=means.nmi,
            spare_s=0.0 if hangs else SPARE_S,
        )

        def tell(step: LadderStep) -> None:
            means.ensure()
            say("\n".join(filter(None, (f"{bench}: {step.name}: {step.text}", step.evidence))))

        recovery = climb(silent, reason, limit_s=means.limit_s, tell=tell, clock=time.monotonic, sleep=time.sleep)
        if not recovery.boot_id:
            why = f"{reason}; nothing brought it back within {recovery.seconds:.0f} s more"
            put_out(bench, why, f"{places.state}/lease" if places else "")
            raise OutOfServiceError(f"{bench} is out of service: {why}")
        display.warning(f"{bench}: {reason}; ended by {recovery.ended_by or 'itself'}")
        return self._ask(), recovery.seconds, recovery.ended_by

    def _places(self, variables: Mapping[str, Any]) -> BenchPlaces | None:
        """Where a virtual bench has its console and switch; None for any other."""
        from storqual.virtual_bench.places import BenchPlaces  # noqa: PLC0415 - as above

        state = virtual_state(self, variables)
        return BenchPlaces.of(state) if state else None

    def _shell(self, command: str) -> str:
        lease = lease_of_task(self)
        try:
            ended = run_on_bench(self, fence(lease) + command)
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
            answer = child.run([*argv, "-G", str(options["host"])], capture_output=True, text=True, timeout=LOGIN_S)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return parse_ssh_address(answer.stdout) if answer.returncode == 0 else None

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
