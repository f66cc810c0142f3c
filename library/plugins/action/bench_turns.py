# SPDX-License-Identifier: Apache-2.0
"""Have a bench run batches of turns, follow them with live progress, and put right what faults left."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleConnectionFailure
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from storqual.base.text import terminal_text, visible_text
from storqual.bench.bench_action import BenchAction
from storqual.bench.follow import BatchProgress, Collector, Stopped, UnreachableError, describe, follow
from storqual.bench.lease import Keeper, put_out, queue_folder
from storqual.bench.live_line import progress_line
from storqual.campaign import RunBatch
from storqual.campaign.next_step import session_boot
from storqual.campaign.pipeline import next_step, turns
from storqual.console.console import console_of
from storqual.power.inventory_entry import power_of_bench
from storqual.run import read_batch, read_run
from storqual.turns.batch import run_streamed
from storqual.turns.bring_back import BenchHere, Hung, bring_back, means_of, still_limit_s
from storqual.turns.recovering_action import virtual_state
from storqual.turns.settle import leaves_something, settle
from storqual.virtual_bench.places import BenchPlaces
from storqual.witness import notify_witness
from storqual_core.kit.errors import StorqualError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

display = Display()
_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


def _say(text: str) -> None:
    display.display(terminal_text(text))


def _failed(problem: StorqualError) -> dict[str, Any]:
    return {"failed": True, "msg": visible_text(str(problem)), "storqual_exit_code": problem.exit_code}


class ActionModule(BenchAction):
    """Upload the bench program and the batch file, start or attach, collect, and say how the batch ended.

    While the campaign's next step is one more batch of the same session on the same boot, that one is run too: a
    campaign that is asked after every few turns would spend its time in tasks.

    Arguments: `run` (run directory), `block` (the first), `state_dir` (on the bench), `poll_s`, `disturb` (what the
    drop of a virtual bench asks to happen meanwhile). From the bench's variables where they are not given: `python`
    (its interpreter), `virtual_state` (a virtual bench's state folder on the control node), `recovery_limit_s` (for
    how long a bench that hangs is brought back). With `settle` no batch is run: the end of what runs is waited for,
    and what faults left on the bench is put right, where the run has batches that could leave something.
    """

    _VALID_ARGS = frozenset(
        ("block", "disturb", "poll_s", "python", "recovery_limit_s", "run", "settle", "state_dir", "virtual_state")
    )
    _supports_check_mode = True
    _benches = 1
    _variables: Mapping[str, Any] = MappingProxyType({})
    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail when the batch was refused; one that died with its bench is closed as lost, and the plan goes on."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "changed": False, "skipped": True, "msg": "nothing is run in check mode"}
        arguments = self._task.args
        run = Path(str(arguments["run"]))
        self._variables = task_vars or {}
        if boolean(arguments.get("settle", False)):
            return {**result, **self._settle(run)}
        batch: str | None = str(arguments["block"])
        bench = str(self._variables.get("inventory_hostname", ""))
        disturb = self._disturbance(run, bench, arguments.get("disturb"), virtual_state(self, self._variables))
        self._benches = len(self._variables.get("ansible_play_hosts_all") or ()) or 1
        console = console_of(bench, self._places())
        result |= {"blocks": [], "console": console.mark() if console else 0}
        while batch is not None:
            try:
                program = self._send(run, batch)
            except (UnreachableError, AnsibleConnectionFailure) as problem:
                # the batch has not begun: the next task brings the bench back, and the campaign goes on there
                return {**result, "changed": True, "outcome": "lost", "msg": visible_text(str(problem))}
            except StorqualError as problem:
                return {**result, **_failed(problem)}
            result["blocks"].append(batch)
            durable = partial(self._measure, run, bench, batch, program, disturb)
            result.update(turns(run, batch, durable, partial(self._run_streamed, run, bench, batch, program)))
            # from here on what a panic writes is why the bench does not answer
            result["console"] = console.mark() if console else 0
            for wrong in notify_witness(run, {str(self._variables.get("storqual_witness"))}, bench):
                display.warning(terminal_text(f"{bench}: {wrong}"))
            going_on = result.get("outcome") == "done" and not result.get("failed")
            batch = self._following(run, bench, batch) if going_on else None
        return result

    def cleanup(self, force: bool = False) -> None:
        """What ran counts where the bench went away after it: the next task brings it back."""
        with suppress(AnsibleConnectionFailure):
            super().cleanup(force)

    def _send(self, run: Path, batch: str) -> str:
        """Have the program on the bench, and the file of a batch that it runs by itself; the program's name there."""
        state_dir = str(self._task.args["state_dir"])
        program = self._send_program(state_dir, run.name)
        if read_batch(run, batch)["spool"] != "streamed":
            self._put(run / "blocks" / f"{batch}.json", f"{state_dir}/spool/{run.name}/{batch}.json")
        return program

    def _measure(
        self, run: Path, bench: str, batch: str, program: str, disturb: Callable[[], None]
    ) -> dict[str, Any]:
        arguments = self._task.args
        collector = Collector(run, bench, batch)
        line = progress_line(lambda text, end: display.display(text, newline=end == "\n"), bench, self._benches)

        def show(progress: BatchProgress | None, trouble: str) -> None:
            if trouble:
                line.show(f"{bench}: {trouble}")
            elif progress is not None:
                line.show(describe(bench, collector.arm_of(progress), progress, collector.left(progress)))

        try:
            if state := virtual_state(self, self._variables):
                from storqual.campaign.drive_limits import limit_drives  # noqa: PLC0415 - needs the virtual bench's library

                # where arms alternate batch by batch, drives are granted what the batch's arm says
                limit_drives(run, bench, batch, state)
            end = follow(
                self._shell,
                collector.paths(str(arguments["state_dir"]), program, self._python(self._variables)),
                collect=collector.take,
                show=show,
                poll_s=float(arguments.get("poll_s", 2.0)),
                tick=disturb,
                bring_back=self._way_back(run, bench, collector),
                still_s=still_limit_s(read_run(run), bench),
            )
        except StorqualError as problem:
            return _failed(problem)
        finally:
            line.close()
        result = {"changed": True, "outcome": end.outcome, "samples": end.samples, "msg": end.message}
        if end.outcome == "died":
            collector.lose(end.message)
        if end.outcome == "refused":
            result["failed"] = True
            if not collector.measured:
                # later on it is the rig that changed, such as a drive that was pulled: the verdict says so
                result["storqual_exit_code"] = 4
        return result

    def _here(self, bench: str) -> BenchHere:
        """How the bench is reached for what outlasts a command. Raises StorqualError, see `_lasting`."""
        arguments, virtual = self._task.args, self._places()
        address = str(self._play_context.remote_addr)
        power = power_of_bench(bench, self._variables, self._templar, self._connection, address)
        limit_s = self._variables.get("campaign_recovery_limit_s", 900.0)
        limit_s, lease = float(arguments.get("recovery_limit_s") or self._templar.template(limit_s)), self._lease()
        out = partial(put_out, bench, folder=queue_folder(bench, self._filled(self._variables)))
        means = replace(means_of(virtual, limit_s, power, ensure=Keeper(lease, bench).ensure), put_out=out)
        return BenchHere(
            bench, self._lasting(), self._python(self._variables), str(arguments["state_dir"]), "", virtual, means
        )

    def _way_back(self, run: Path, bench: str, collector: Collector) -> Callable[..., None] | None:
        """How a bench that stops answering under a batch is brought back; None where it cannot be."""
        try:
            here = self._here(bench)
        except (StorqualError, KeyError):
            # it asks for passwords, or is reached by something else than OpenSSH
            return None
        if not here.connection.remote:
            return None
        console = here.console_mark()

        def way_back(progress: BatchProgress | None, stopped: Stopped) -> None:
            hung = Hung.of(collector.planned, collector.turn_of(progress))
            boot = session_boot(read_run(run), bench, hung.session)
            bring_back(
                run,
                here,
                hung,
                boot=boot,
                hangs=stopped.answers,
                reason=stopped.reason,
                silent_s=stopped.seconds,
                console_mark=console,
                say=_say,
            )
            self._connection.reset()

        return way_back

    def _run_streamed(self, run: Path, bench: str, batch: str, program: str) -> dict[str, Any]:
        """One batch of trials or programs, whose acts of the control node happen here."""
        try:
            here = replace(self._here(bench), program=f"{self._task.args['state_dir']}/{program}")
            outcome, message = run_streamed(run, batch, here, say=_say)
        except StorqualError as problem:
            return _failed(problem)
        return {"changed": True, "outcome": outcome, "msg": message}

    def _settle(self, run: Path) -> dict[str, Any]:
        lines: list[str] = []

        def say(text: str) -> None:
            lines.append(text)
            _say(text)

        try:
            if leaves_something(run):
                settle(self._lasting(), str(self._task.args["state_dir"]), self._places(), say=say)
        except StorqualError as problem:
            return _failed(problem)
        return {"changed": bool(lines), "told": lines}

    def _places(self) -> BenchPlaces | None:
        """Where a virtual bench has its console and monitor; None for any other."""
        state = virtual_state(self, self._variables)
        return BenchPlaces.of(state) if state else None

    def _following(self, run: Path, bench: str, batch: str) -> str | None:
        """The batch that this session goes on with; None when the campaign wants something else, or cannot say."""
        try:
            rc, boot_id, _ = self._shell(_BOOT_ID)
            step = next_step(run, bench, boot_id=boot_id.strip()) if rc == 0 else None
        except StorqualError:
            # the task that asks what is next meets the same trouble, and tells it
            return None
        if not isinstance(step, RunBatch) or step.resume:
            return None
        return step.batch if step.session == read_batch(run, batch)["session"] else None

    @staticmethod
    def _disturbance(run: Path, bench: str, disturb: Any, state: str) -> Any:
        """What to call on every turn: on a virtual bench a drop may ask for a drive to vanish after some seconds."""
        if not disturb:
            return lambda: None
        from storqual.campaign.drive_limits import unplug_later  # noqa: PLC0415 - needs the virtual bench's library

        return unplug_later(run, bench, disturb, state, time.monotonic)
