# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a campaign: its phases, a line of each bench, and what failed."""

from __future__ import annotations

DOCUMENTATION = r"""
name: storqual_lines
type: stdout
short_description: The phases of a playbook, progress of each bench, and what failed
description:
  - Prints the name of each role that a playbook of storqual begins, and each failure in the words of its task.
  - C(storqual qualify) uses it; with C(-v) it uses Ansible's own default output.
requirements:
  - set as stdout callback in configuration
options: {}
"""

from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    """Nothing of what single tasks do: `bench_turns` shows the progress, `storqual_events` ends the job."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "storqual_lines"

    def v2_playbook_on_include(self, included_file: Any) -> None:
        """A role that the playbook itself begins is a phase of the job."""
        task = included_file._task  # noqa: SLF001 - Ansible has no public name for it
        if "/playbooks/" in str(task.get_path()):
            self._show(str(task.get_name()))

    def v2_runner_on_ok(self, result: Any) -> None:
        """Warnings of a task that did its work."""
        for warning in result.result.get("warnings") or ():
            self._show(f"[WARNING]: {warning}", color="bright purple", stderr=True)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Where and why, in the words of the task's own message."""
        if not ignore_errors:
            self._failed(result, "failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A bench that does not answer."""
        self._failed(result, "unreachable")

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """A pattern that means no bench."""
        self._show("no hosts matched")

    def _failed(self, result: Any, how: str) -> None:
        # not at the top: without the package this output would not load
        from storqual.bench.program import failure_message  # noqa: PLC0415

        message = failure_message(result.result).strip()
        self._show(f"{result.host.get_name()} | {how}: {result.task.get_name()} | {message}", color="red")

    def _show(self, text: str, color: str | None = None, *, stderr: bool = False) -> None:
        # not at the top: as above
        from storqual.base.text import terminal_text  # noqa: PLC0415
        from storqual.bench.live_line import displaced  # noqa: PLC0415 - as above

        displaced()
        for line in text.splitlines():
            self._display.display(terminal_text(line), color=color, stderr=stderr)
