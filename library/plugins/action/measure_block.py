# SPDX-License-Identifier: Apache-2.0
"""Have a bench run one block, and follow it with live progress."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.bench_program import build_program
from storqual.collector import Collector
from storqual.follow import BlockPaths, Progress, UnreachableError, follow
from storqual.live_line import LiveLine, describe
from storqual_core.errors import StorqualError

display = Display()


class ActionModule(ActionBase):
    """Upload the bench program and the block file, start or attach, collect, and say how the block ended.

    Arguments: `run` (run directory), `block` (its name), `state_dir` (on the bench), `poll_s`, `python` (the bench's
    interpreter), `disturb` (what the drop of a virtual bench asks to happen meanwhile), `virtual_state` (that bench's
    state folder on the control node).
    """

    _VALID_ARGS = frozenset({"block", "disturb", "poll_s", "python", "run", "state_dir", "virtual_state"})
    _supports_check_mode = True
    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail when the block was refused; one that died with its bench is closed as lost, and the plan goes on."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "changed": False, "skipped": True, "msg": "nothing is measured in check mode"}
        arguments = self._task.args
        run = Path(str(arguments["run"]))
        block = str(arguments["block"])
        bench = str((task_vars or {}).get("inventory_hostname", ""))
        collector = Collector(run, bench, block)
        line = LiveLine(
            lambda text, end: display.display(text, newline=end == "\n"),
            live=os.environ.get("STORQUAL_LIVE") == "1",
        )
        disturb = self._disturbance(run, bench, arguments.get("disturb"), str(arguments.get("virtual_state", "")))

        def show(progress: Progress | None, trouble: str) -> None:
            if trouble:
                line.show(f"{bench}: {trouble}")
            elif progress is not None:
                line.show(describe(bench, collector.arm_of(progress), progress, collector.seconds_left(progress)))

        try:
            state_dir, python = str(arguments["state_dir"]), str(arguments["python"])
            paths = self._upload(run / "blocks" / f"{block}.json", collector, state_dir, python)
            end = follow(
                self._shell,
                paths,
                collect=collector.take,
                show=show,
                poll_s=float(arguments.get("poll_s", 2.0)),
                tick=disturb,
            )
        except StorqualError as problem:
            return {**result, "failed": True, "msg": str(problem), "storqual_exit_code": problem.exit_code}
        finally:
            line.close()
        result.update(changed=True, outcome=end.outcome, samples=end.samples, msg=end.message)
        if end.outcome == "died":
            collector.lose(end.message)
        if end.outcome == "refused":
            result["failed"] = True
            if not collector.measured:
                # later on it is the rig that changed, such as a drive that was pulled: the verdict says so
                result["storqual_exit_code"] = 4
        return result

    def _shell(self, command: str) -> tuple[int, str, str]:
        """Run one command line on the bench over the connection that is open anyway."""
        try:
            ended = self._low_level_execute_command(command, sudoable=True)
        except AnsibleConnectionFailure as problem:
            self._connection.reset()
            raise UnreachableError(str(problem).splitlines()[0]) from problem
        # with privilege escalation in play Ansible asks for a terminal, and a terminal ends lines with CR LF
        return int(ended["rc"]), str(ended["stdout"]).replace("\r\n", "\n"), str(ended["stderr"])

    def _upload(self, block_file: Path, collector: Collector, state_dir: str, python: str) -> BlockPaths:
        """Put program and block file on the bench; the program's name carries its digest, so it is sent once."""
        program = build_program()
        remote = collector.paths(state_dir, program.name, python)
        folders = sorted({str(Path(path).parent) for path in (remote.program, remote.block_file, remote.lock)})
        self._quick("mkdir -p " + " ".join(shlex.quote(folder) for folder in folders))
        present, _, _ = self._shell(f"test -s {shlex.quote(remote.program)}")
        if present != 0:
            self._transfer_file(str(program), remote.program + ".part")
            self._quick(f"mv {shlex.quote(remote.program)}.part {shlex.quote(remote.program)}")
        self._transfer_file(str(block_file), remote.block_file)
        return remote

    def _quick(self, command: str) -> None:
        rc, out, err = self._shell(command)
        if rc != 0:
            raise StorqualError(f"`{command}` on the bench ended with {rc}: {(err or out).strip()}")

    @staticmethod
    def _disturbance(run: Path, bench: str, disturb: Any, virtual_state: str) -> Any:
        """What to call on every turn: on a virtual bench a drop may ask for a drive to vanish after some seconds."""
        if not disturb:
            return lambda: None
        from storqual.disturbance import unplug_later  # noqa: PLC0415 - needs the virtual bench's library

        return unplug_later(run, bench, disturb, virtual_state, time.monotonic)
