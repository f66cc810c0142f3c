# SPDX-License-Identifier: Apache-2.0
"""The exit code and the event stream of a playbook run."""

from __future__ import annotations

DOCUMENTATION = r"""
name: storqual_events
type: notification
short_description: Exit code by verdict, and progress as JSON lines
description:
  - Ends C(ansible-playbook) with storqual's exit code (0 pass, 1 fail, 2 could not judge, 3 wrong usage or bad input,
    4 refused by the guard or because somebody else has the bench, 5 a bench is out of service,
    70 unexpected error) when a play of storqual ran. A code of 0 needs a verdict written by
    this very run.
  - In check mode ends with a table of what differs from a drop, bench by bench, those that could not be looked at
    included.
  - Appends task starts and failures to the file named by E(STORQUAL_PROGRESS_FILE), one JSON object a line.
requirements:
  - listed in C(callbacks_enabled)
options: {}
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.plugins.callback import CallbackBase
from ansible.utils.vars import load_extra_vars

_LINES = "storqual_lines"
_BENCH_LOST = 5
_FROM_TASK = "storqual_exit_code"
_REPORT = "provision_report"
_RUN = "plan_run"
_JUDGING = ("qualify.yml", "publish.yml")
_COMPARING = ("provision.yml", "setup.yml")


class CallbackModule(CallbackBase):
    """Watch the results for exit codes and the verdict; speak once, at the end."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "storqual_events"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._began = time.time()
        self._play: Any = None
        self._lost: list[str] = []
        self._codes: list[int] = []
        self._drift: dict[str, list[str]] = {}
        self._unseen: dict[str, str] = {}
        self._run: Path | None = None
        self._published = False
        self._judging = False
        self._compares = False
        # workers have no terminal of their own, so what the live lines need to know is learned here; not imported at
        # the top: without the package this callback would not load, and the exit code would be Ansible's
        from storqual.bench.live_line import describe_terminal  # noqa: PLC0415

        describe_terminal(os.get_terminal_size() if sys.stdout.isatty() else None)

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Remember whether this playbook ends with a verdict; refuse variables that nobody knows."""
        path = Path(str(playbook._file_name)).resolve()  # noqa: SLF001 - no public name for it
        self._judging = path.name in _JUDGING
        self._compares = path.name in _COMPARING
        # not at the top: as above
        from storqual.base.files import project_root  # noqa: PLC0415
        from storqual.bench.ansible_run import unknown_variables  # noqa: PLC0415

        roles = path.parent.parent / "roles"
        if path.parent == project_root() / "playbooks":
            given = load_extra_vars(playbook.get_loader())
            problems = unknown_variables(path, roles, (str(name) for name in given))
            for problem in problems:
                self._display.error(problem, wrap_text=False)
            if problems:
                sys.exit(3)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._play = play

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        del is_conditional
        _displaced()
        self._emit(kind="task", name=str(task.get_name()))

    def v2_runner_on_ok(self, result: Any) -> None:
        _displaced(result.host.get_name())
        self._note(result)
        report = result.result.get("ansible_facts", {}).get(_REPORT)
        if isinstance(report, dict):
            self._drift[result.host.get_name()] = [str(line) for line in report.get("drift") or ()]

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        from storqual.bench.program import failure_message  # noqa: PLC0415 - as above

        _displaced(result.host.get_name())
        body = result.result
        where = {"host": result.host.get_name(), "task": str(result.task.get_name())}
        self._emit(kind="failed", message=failure_message(body), **where)
        if not ignore_errors:
            if body.get(_FROM_TASK) == _BENCH_LOST:
                self._lost.append(where["host"])
            self._note(result)
            self._unseen[result.host.get_name()] = failure_message(body)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """An unreachable bench cannot be judged."""
        self._emit(kind="unreachable", host=result.host.get_name(), message=result.result.get("msg"))
        self._codes.append(2)
        self._unseen[result.host.get_name()] = "unreachable"

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Leave with the code: the worst refusal first, then the verdict's, then 2 for a judging run without one."""
        # EXIT_UNEXPECTED, also where nothing of storqual can be imported
        code: int | None = 70
        try:
            from storqual.bench.live_line import remove_board  # noqa: PLC0415 - as above

            remove_board()
            self._show_drift()
            self._emit(kind="end")
            code = self._exit_code(stats)
            if self._judging:
                self._tell(code, sorted(stats.processed))
        except Exception as problem:  # noqa: BLE001 - Ansible would warn, and end with 0 beside a verdict that is FAIL
            self._display.error(f"storqual_events: {type(problem).__name__}: {problem}", wrap_text=False)
        if code is not None:
            sys.exit(code)

    def _exit_code(self, stats: Any) -> int | None:
        """None where Ansible's own counts."""
        refused = [code for code in self._codes if code in (3, 4)]
        if refused:
            return max(refused)
        if _BENCH_LOST in self._codes:
            if self._judging and self._run is not None:
                # what was measured before is judged and shown all the same
                self._verdict_code()
            return _BENCH_LOST
        if self._judging:
            return self._verdict_code()
        hosts = [stats.summarize(host) for host in stats.processed]
        failed = any(host["failures"] or host["unreachable"] for host in hosts)
        return max(self._codes) if self._codes and (failed or 1 in self._codes) else None

    def _tell(self, code: int | None, benches: list[str]) -> None:
        """Send the one message of the campaign; who could not be told is a warning and changes no verdict."""
        from ansible.template import Templar  # noqa: PLC0415 - where nobody is told it is not needed

        from storqual.campaign.message import campaign_message, read_notify, send_message  # noqa: PLC0415 - as above

        if self._play is None or not benches or code is None:
            return
        manager, loader = self._play.get_variable_manager(), self._play.get_loader()
        for bench in benches:
            host = manager._inventory.get_host(bench)  # noqa: SLF001 - no public name for it
            variables = manager.get_vars(play=self._play, host=host)
            if not variables.get("storqual_notify"):
                continue
            notify = read_notify(Templar(loader=loader, variables=variables).template(variables["storqual_notify"]))
            message = campaign_message(self._run, code, benches, self._lost)
            problem = "" if notify is None else send_message(notify, message)
            if problem:
                self._display.warning(f"the message at the end of the campaign was not sent: {problem}")
            return

    def _show_drift(self) -> None:
        """The drift report, when benches were compared with a drop: those that could not be are told too."""
        from storqual.bench.drift import drift_table, keep_drift  # noqa: PLC0415 - as above

        compared = bool(context.CLIARGS.get("check"))
        if self._compares:
            keep_drift(self._drift, context.CLIARGS.get("inventory") or (), compared=compared)
        if not compared or not (self._drift or (self._compares and self._unseen)):
            return
        if any(self._drift.values()) and not self._judging:
            self._codes.append(1)
        unseen = {bench: why for bench, why in self._unseen.items() if bench not in self._drift}
        if unseen:
            self._codes.append(2)
        self._emit(kind="drift", benches=self._drift, unseen=unseen)
        for line in drift_table(self._drift, unseen):
            self._display.display(line)

    def _verdict_code(self) -> int:
        """The exit code in the verdict that this run wrote; 2 when there is none, or only an old one.

        A bench that went out of reach takes its play with it, the publishing task included: the run is published
        from here then, because a verdict is a function of files. 2, too, when that ends otherwise than the verdict: a
        report that its own data contradict is none. 70 when there is no verdict because of an unexpected error.
        """
        # not at the top: as above
        from storqual.base import child  # noqa: PLC0415
        from storqual_core.kit.errors import EXIT_UNEXPECTED  # noqa: PLC0415

        if self._run is None:
            return EXIT_UNEXPECTED if EXIT_UNEXPECTED in self._codes else 2
        verdict = self._run / "verdict.json"
        ended = None
        if not self._published:
            ended = child.run(child.storqual("publish", str(self._run)), stdout=child.DEVNULL).returncode
            if ended == EXIT_UNEXPECTED:
                return ended
        # published by this play, a verdict is today's; an earlier one of the same files is not written again
        if not verdict.is_file() or not (self._published or verdict.stat().st_mtime >= self._began - 1):
            return 2
        code = json.loads(verdict.read_text(encoding="utf-8")).get("exit_code")
        return code if isinstance(code, int) and ended in (None, code) else 2

    def _note(self, result: Any) -> None:
        body, action = result.result, str(result.task.action).rpartition(".")[2]
        code = body.get(_FROM_TASK)
        if isinstance(code, int) and code:
            self._codes.append(code)
        # a bench may answer anything: which run it is, and that there is a verdict, is known here alone
        facts = body.get("ansible_facts", {}) if action == "set_fact" else {}
        # what `storqual publish` answers
        answer = body.get("data") if action == "storqual_command" else None
        verdict = answer.get("verdict") if isinstance(answer, dict) else None
        self._published = self._published or bool(verdict)
        if verdict and self._run is None:
            self._run = Path(str(verdict)).parent
        if facts.get(_RUN) and self._run is None:
            self._run = Path(str(facts[_RUN]))
            note = os.environ.get("STORQUAL_LAST_RUN")
            if note:
                # the command that started this play learns which run it made
                Path(note).write_text(f"{self._run}\n", encoding="utf-8")

    def _emit(self, **event: Any) -> None:
        path = os.environ.get("STORQUAL_PROGRESS_FILE")
        if path:
            with Path(path).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"time": round(time.time(), 3), **event}) + "\n")


def _displaced(host: str | None = None) -> None:
    if constants.DEFAULT_STDOUT_CALLBACK == _LINES:
        # it prints nothing of tasks, and puts the board anew where it prints something else
        return
    from storqual.bench.live_line import displaced  # noqa: PLC0415 - as above

    displaced(host)
