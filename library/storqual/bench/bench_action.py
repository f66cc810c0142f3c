# SPDX-License-Identifier: Apache-2.0
"""What action plugins share that run storqual's own program on a bench, under the reservation of their play."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from storqual.bench.follow import Connection, UnreachableError
from storqual.bench.lease import LOST, fence, lost
from storqual.bench.program import build_program
from storqual.bench.reached import lasting_connection
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import VARIABLE

_BEGINS = "storqual-begins"


def lease_of_task(action: Any) -> str:  # noqa: ANN401 - Ansible publishes no types
    """`<number>@<state folder>` of the reservation under which a task runs; empty without one.

    It is in the environment of the play, where modules find it.
    """
    given = action._task.environment or []  # noqa: SLF001 - what Ansible's own `ActionBase` reads
    filled = [action._templar.template(entry) or {} for entry in (given if isinstance(given, list) else [given])]  # noqa: SLF001
    return next((str(variables[VARIABLE]) for variables in reversed(filled) if variables.get(VARIABLE)), "")


def run_on_bench(action: Any, command: str) -> dict[str, Any]:  # noqa: ANN401 - as above
    """One command line by the connection that is open anyway; `rc`, `stdout` as the command wrote it, `stderr`."""
    # with privilege escalation in play Ansible asks for a terminal: what sudo warns of stands in the output, before
    # what the command says, and lines end with CR LF
    ended = action._low_level_execute_command(f"echo {_BEGINS}; {command}", sudoable=True)  # noqa: SLF001 - as above
    output = str(ended["stdout"]).replace("\r\n", "\n")
    _, begins, rest = output.partition(f"{_BEGINS}\n")
    return {**ended, "stdout": rest if begins else output}


class BenchAction(ActionBase):
    """An action that talks to its bench by short shell commands."""

    TRANSFERS_FILES = True

    def _lease(self) -> str:
        return lease_of_task(self)

    def _filled(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """What `queue_folder` reads of the bench's variables, templates filled in."""
        names = ("storqual_kind", "storqual_queue", "virtual_bench_state")
        return {name: self._templar.template(variables[name]) for name in names if name in variables}

    def _python(self, variables: Mapping[str, Any]) -> str:
        """The interpreter of the bench: the argument, else what its inventory names by its path."""
        if given := self._task.args.get("python"):
            return str(given)
        named = str(self._templar.template(variables.get("ansible_python_interpreter") or ""))
        return named if named.startswith("/") else "/usr/bin/python3"

    def _lasting(self) -> Connection:
        """Ansible's connection for what outlasts a command. Raises StorqualError for one that asks for passwords."""
        return lasting_connection(self._connection, self._play_context.remote_addr, lease=self._lease())

    def _shell(self, command: str) -> tuple[int, str, str]:
        """Run one command line on the bench over the connection that is open anyway.

        Raises UnreachableError, and LeaseLostError for a reservation that counts no longer.
        """
        lease = self._lease()
        try:
            ended = run_on_bench(self, fence(lease) + command)
        except AnsibleConnectionFailure as problem:
            self._connection.reset()
            raise UnreachableError(str(problem).splitlines()[0]) from problem
        if lease and int(ended["rc"]) == LOST:
            raise lost(lease, str(ended["stderr"]) or str(ended["stdout"]))
        return int(ended["rc"]), str(ended["stdout"]), str(ended["stderr"])

    def _send_program(self, state_dir: str, run: str = "") -> str:
        """Put the program on the bench, beside the folder of a run's batches; its name carries its digest."""
        program = build_program()
        remote = shlex.quote(f"{state_dir}/{program.name}")
        spool = shlex.quote(f"{state_dir}/spool/{run}")
        if "absent" in self._quick(f"mkdir -p {spool} && {{ test -s {remote} || echo absent; }}"):
            self._put(program, f"{state_dir}/{program.name}.part")
            # a name that outlived a power cut without its content would be taken for the program
            self._quick(f"sync {remote}.part && mv {remote}.part {remote}")
        return program.name

    def _put(self, source: Path, target: str) -> None:
        """Copy a file to the bench. Who becomes root there may himself write to Ansible's temporary folder only."""
        if not self._connection.become:
            self._transfer_file(str(source), target)
            return
        folder = self._make_tmp_path()
        try:
            copied = f"{folder.rstrip('/')}/{source.name}"
            self._transfer_file(str(source), copied)
            self._quick(f"cat {shlex.quote(copied)} > {shlex.quote(target)}")
        finally:
            self._remove_tmp_path(folder)

    def _quick(self, command: str) -> str:
        rc, out, err = self._shell(command)
        if rc != 0:
            raise StorqualError(f"`{command}` on the bench ended with {rc}: {(err or out).strip()}")
        return str(out)
