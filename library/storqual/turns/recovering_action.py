# SPDX-License-Identifier: Apache-2.0
"""Actions of Ansible under which a bench may hang: one that stops answering is brought back, and the play goes on."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.base import child
from storqual.base.text import terminal_text, visible_text
from storqual.bench.bench_action import lease_of_task, run_on_bench
from storqual.bench.follow import UnreachableError
from storqual.bench.lease import LOST, Keeper, fence, lost, put_out
from storqual.bench.reboot import QUESTION, Boot, SshAddress, parse_boot, parse_ssh_address, ssh_answers
from storqual_core.host.watchdog import ARMED, Watch, parse_armed
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LeaseLostError

if TYPE_CHECKING:
    from storqual.bench.follow import Connection
    from storqual.turns.bring_back import Hung
    from storqual.virtual_bench.places import BenchPlaces

LOGIN_S = 20.0
"""In a boot that is still busy a login takes a multiple of its later time; given up early, it would begin anew."""
_KNOCK_S = 2.0
_RECOVERY_S = 900.0
_UNKNOWN = Boot("", "")

display = Display()


@dataclass(frozen=True)
class Before:
    """A bench before something by which it may hang: its boot, what ends a hang there, where its console was."""

    boot: Boot
    watch: Watch = field(default_factory=Watch)
    mark: int = 0


class _AnsibleLine:
    """Ansible's connection as a bench is asked by it that is brought back: a new one each time."""

    def __init__(self, action: RecoveringAction) -> None:
        self._action, self.remote = action, action._connection.transport != "local"  # noqa: SLF001 - of this file

    def boot_id(self, *, limit_s: float) -> str:  # noqa: ARG002 - Ansible's own limits count
        # a bench whose power was cycled may have another address
        return self._action._ask_anew(self._action._ssh_address()).boot_id  # noqa: SLF001 - as above

    def run(self, command: str, *, limit_s: float) -> str:  # noqa: ARG002 - as above
        return self._action._shell(command)  # noqa: SLF001 - as above

    def cut(self) -> None:
        with suppress(AnsibleConnectionFailure):
            self._action._connection.reset()  # noqa: SLF001 - as above


def virtual_state(action: Any, variables: Mapping[str, Any]) -> str:  # noqa: ANN401 - Ansible publishes no types
    """The state folder of a virtual bench on the control node; empty for any other, and where that is given."""
    virtual = variables.get("storqual_kind") == "virtual" and variables.get("virtual_bench_state")
    given = action._task.args.get("virtual_state")  # noqa: SLF001 - as `bench_action`
    return str(given if given is not None else action._templar.template(virtual or ""))  # noqa: SLF001 - as above


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
        before, reason = Before(_UNKNOWN, mark=self._mark(bench, variables)), ""
        try:
            before = self._before(bench, variables)
        except UnreachableError as problem:
            reason = self._loss(problem)
        except LeaseLostError as problem:
            return {"failed": True, "msg": visible_text(str(problem)), "storqual_exit_code": problem.exit_code}
        try:
            if not reason:
                with self._once():
                    return dict(super()._execute_module(*given, **named))
        except AnsibleConnectionFailure as problem:
            reason = self._loss(problem)
        try:
            after, seconds, ended_by = self._bring_back(bench, variables, before, reason, hangs=False)
            if self.calls_again or after.boot_id == before.boot.boot_id or not before.boot.boot_id:
                return dict(super()._execute_module(*given, **named))
        except (StorqualError, AnsibleConnectionFailure) as problem:
            code = problem.exit_code if isinstance(problem, StorqualError) else 2
            return {"failed": True, "msg": visible_text(str(problem)), "storqual_exit_code": code}
        now = f"it is on boot {after.boot_id} now, ended by {ended_by or 'itself'}"
        hang = {"ended_by": ended_by, "seconds": round(seconds, 1), "storqual_exit_code": 2}
        return {"failed": True, "changed": True, "msg": visible_text(f"{bench}: {reason}; {now}"), **hang}

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
        self,
        bench: str,
        variables: Mapping[str, Any],
        before: Before,
        reason: str,
        *,
        hangs: bool,
        silent_s: float = 0.0,
        run: Path | None = None,
        hung: Hung | None = None,
    ) -> tuple[Boot, float, str]:
        """The boot of a bench that did not come back, the seconds that took, what ended it. Raises StorqualError."""
        from storqual.power.inventory_entry import power_of_bench  # noqa: PLC0415 - what a boot needs not is not imported
        from storqual.turns.bring_back import BenchHere, bring_back, means_of  # noqa: PLC0415 - as above

        places = self._places(variables)
        address = str(self._play_context.remote_addr)
        power = power_of_bench(bench, variables, self._templar, self._connection, address)
        limit_s = variables.get("campaign_recovery_limit_s", _RECOVERY_S)
        limit_s = float(self._task.args.get("recovery_limit_s") or self._templar.template(limit_s))
        means = means_of(places, limit_s, power, ensure=Keeper(lease_of_task(self), bench).ensure)
        folder = f"{places.state}/lease" if places else ""
        here = BenchHere(
            *(bench, cast("Connection", _AnsibleLine(self)), "", "", "", places),
            replace(means, put_out=partial(put_out, bench, folder=folder)),
        )
        recovery = bring_back(
            run,
            here,
            hung,
            boot=before.boot.boot_id,
            hangs=hangs,
            reason=reason,
            silent_s=silent_s,
            console_mark=before.mark,
            watch=before.watch,
            say=display.display,
        )
        display.warning(terminal_text(f"{bench}: {reason}; ended by {recovery.ended_by or 'itself'}"))
        return self._ask(), recovery.seconds, recovery.ended_by

    def _bring_back_idle(self, bench: str, variables: Mapping[str, Any], reason: str) -> tuple[Boot, float, str]:
        """Likewise, of a bench that stopped answering while nothing was done to it: what it did last may be why."""
        from storqual.run import read_run  # noqa: PLC0415 - as above
        from storqual.turns.bring_back import armed_watch, hung_between  # noqa: PLC0415 - as above

        path = self._task.args.get("run")
        run = read_run(Path(str(path))) if path else None
        last = hung_between(run, bench) if run else None
        mark = int(self._task.args.get("console") or self._mark(bench, variables))
        if run is None or last is None:
            return self._bring_back(bench, variables, Before(_UNKNOWN, mark=mark), reason, hangs=False)
        hung, boot = last
        before = Before(Boot(boot, ""), armed_watch(run, bench, hung.session), mark)
        return self._bring_back(bench, variables, before, reason, hangs=False, run=run.path, hung=hung)

    def _before(self, bench: str, variables: Mapping[str, Any]) -> Before:
        """Raises UnreachableError, StorqualError."""
        lines = self._shell(f"{QUESTION} && {ARMED}").splitlines()
        armed = parse_armed(" ".join(lines[2:]))
        return Before(parse_boot("\n".join(lines[:2])), armed, self._mark(bench, variables))

    def _mark(self, bench: str, variables: Mapping[str, Any]) -> int:
        """Where the console of the bench ends now; 0 where none is kept."""
        from storqual.console.console import console_of  # noqa: PLC0415 - as above

        console = console_of(bench, self._places(variables))
        return console.mark() if console else 0

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
        words = ("ssh_args", "ssh_common_args", "ssh_extra_args")
        try:
            options = {name: self._connection.get_option(name) for name in ("ssh_executable", "host", "port", *words)}
        except KeyError:
            return None
        argv = [str(options["ssh_executable"])]
        argv += (word for name in words for word in shlex.split(str(options[name] or "")))
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
