# SPDX-License-Identifier: Apache-2.0
"""Have a bench run one batch, and follow it with live progress."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.bench.follow import BatchPaths, Collector, Progress, UnreachableError, describe, follow
from storqual.bench.live_line import progress_line
from storqual.bench.program import build_program
from storqual.campaign import RunBatch
from storqual.campaign.next_step import next_command
from storqual.run import read_block
from storqual.witness import notify_witness
from storqual_core.kit.errors import StorqualError

if TYPE_CHECKING:
    from collections.abc import Callable

display = Display()


class ActionModule(ActionBase):
    """Upload the bench program and the batch file, start or attach, collect, and say how the batch ended.

    While the campaign's next step is one more batch of the same session on the same boot, that one is measured too:
    a campaign that is asked after every few launches would spend its time in tasks.

    Arguments: `run` (run directory), `block` (the first), `state_dir` (on the bench), `poll_s`, `python` (the bench's
    interpreter), `disturb` (what the drop of a virtual bench asks to happen meanwhile), `virtual_state` (that bench's
    state folder on the control node).
    """

    _VALID_ARGS = frozenset({"block", "disturb", "poll_s", "python", "run", "state_dir", "virtual_state"})
    _supports_check_mode = True
    _benches = 1
    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail when the batch was refused; one that died with its bench is closed as lost, and the plan goes on."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "changed": False, "skipped": True, "msg": "nothing is measured in check mode"}
        arguments = self._task.args
        run = Path(str(arguments["run"]))
        batch: str | None = str(arguments["block"])
        bench = str((task_vars or {}).get("inventory_hostname", ""))
        disturb = self._disturbance(run, bench, arguments.get("disturb"), str(arguments.get("virtual_state", "")))
        self._benches = len((task_vars or {}).get("ansible_play_hosts_all") or ()) or 1
        result["blocks"] = []
        while batch is not None:
            result["blocks"].append(batch)
            result.update(self._measure(run, bench, batch, disturb))
            going_on = result.get("outcome") == "done" and not result.get("failed")
            batch = self._following(run, bench, batch) if going_on else None
        return result

    def _measure(self, run: Path, bench: str, batch: str, disturb: Callable[[], None]) -> dict[str, Any]:
        """One batch, from its upload to its end."""
        arguments = self._task.args
        collector = Collector(run, bench, batch)
        line = progress_line(lambda text, end: display.display(text, newline=end == "\n"), bench, self._benches)

        def show(progress: Progress | None, trouble: str) -> None:
            if trouble:
                line.show(f"{bench}: {trouble}")
            elif progress is not None:
                line.show(describe(bench, collector.arm_of(progress), progress, collector.seconds_left(progress)))

        try:
            self._limit(run, bench, batch, str(arguments.get("virtual_state", "")))
            state_dir, python = str(arguments["state_dir"]), str(arguments["python"])
            paths = self._upload(run / "blocks" / f"{batch}.json", collector, state_dir, python)
            end = follow(
                self._shell,
                paths,
                collect=collector.take,
                show=show,
                poll_s=float(arguments.get("poll_s", 2.0)),
                tick=disturb,
            )
        except StorqualError as problem:
            return {"failed": True, "msg": str(problem), "storqual_exit_code": problem.exit_code}
        finally:
            line.close()
        result = {"changed": True, "outcome": end.outcome, "samples": end.samples, "msg": end.message}
        if end.outcome == "died":
            collector.lose(end.message)
        for wrong in notify_witness(run, bench):
            display.warning(f"{bench}: {wrong}")
        if end.outcome == "refused":
            result["failed"] = True
            if not collector.measured:
                # later on it is the rig that changed, such as a drive that was pulled: the verdict says so
                result["storqual_exit_code"] = 4
        return result

    def _following(self, run: Path, bench: str, batch: str) -> str | None:
        """The batch that this session goes on with; None when the campaign wants something else, or cannot say."""
        try:
            rc, boot_id, _ = self._shell("cat /proc/sys/kernel/random/boot_id")
            step = next_command(run, bench, boot_id=boot_id.strip()) if rc == 0 else None
        except StorqualError:
            # the task that asks what is next meets the same trouble, and tells it
            return None
        if not isinstance(step, RunBatch) or step.resume:
            return None
        return step.batch if step.session == read_block(run, batch)["session"] else None

    def _shell(self, command: str) -> tuple[int, str, str]:
        """Run one command line on the bench over the connection that is open anyway."""
        try:
            ended = self._low_level_execute_command(command, sudoable=True)
        except AnsibleConnectionFailure as problem:
            self._connection.reset()
            raise UnreachableError(str(problem).splitlines()[0]) from problem
        # with privilege escalation in play Ansible asks for a terminal, and a terminal ends lines with CR LF
        return int(ended["rc"]), str(ended["stdout"]).replace("\r\n", "\n"), str(ended["stderr"])

    def _upload(self, batch_file: Path, collector: Collector, state_dir: str, python: str) -> BatchPaths:
        """Put program and batch file on the bench; the program's name carries its digest, so it is sent once."""
        program = build_program()
        remote = collector.paths(state_dir, program.name, python)
        folders = sorted({str(Path(path).parent) for path in (remote.program, remote.batch_file, remote.lock)})
        self._quick("mkdir -p " + " ".join(shlex.quote(folder) for folder in folders))
        present, _, _ = self._shell(f"test -s {shlex.quote(remote.program)}")
        if present != 0:
            self._transfer_file(str(program), remote.program + ".part")
            # a name that outlived a power cut without its content would be taken for the program
            program_file = shlex.quote(remote.program)
            self._quick(f"sync {program_file}.part && mv {program_file}.part {program_file}")
        self._transfer_file(str(batch_file), remote.batch_file)
        return remote

    def _quick(self, command: str) -> None:
        rc, out, err = self._shell(command)
        if rc != 0:
            raise StorqualError(f"`{command}` on the bench ended with {rc}: {(err or out).strip()}")

    @staticmethod
    def _limit(run: Path, bench: str, batch: str, virtual_state: str) -> None:
        """On a virtual bench, grant the drives what the batch's arm says, where arms alternate batch by batch."""
        if not virtual_state:
            return
        from storqual.virtual_bench.campaign_limits import limit_drives  # noqa: PLC0415 - needs the virtual bench's library

        limit_drives(run, bench, batch, virtual_state)

    @staticmethod
    def _disturbance(run: Path, bench: str, disturb: Any, virtual_state: str) -> Any:
        """What to call on every turn: on a virtual bench a drop may ask for a drive to vanish after some seconds."""
        if not disturb:
            return lambda: None
        from storqual.virtual_bench.campaign_limits import unplug_later  # noqa: PLC0415 - needs the virtual bench's library

        return unplug_later(run, bench, disturb, virtual_state, time.monotonic)
