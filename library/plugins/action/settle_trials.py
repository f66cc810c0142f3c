# SPDX-License-Identifier: Apache-2.0
"""Wait until no trial is under way on a bench, and put right what one left behind."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.trials.link import Link
from storqual.trials.settle import settle
from storqual.virtual_bench.places import BenchPlaces
from storqual_core.kit.errors import StorqualError

display = Display()


class ActionModule(ActionBase):
    """Wait for a bench to answer and for an earlier trial to end; on a virtual bench, take back what faults left.

    Arguments: `host` and `ssh` (where the bench is, and ssh's words to reach it), `state_dir` (on the bench),
    `virtual_state` (a virtual bench's state folder on the control node).
    """

    _VALID_ARGS = frozenset({"host", "ssh", "state_dir", "virtual_state"})
    _supports_check_mode = True
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail when the bench does not answer, or what runs there does not end."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "changed": False, "skipped": True, "msg": "nothing is waited for in check mode"}
        arguments, told = self._task.args, list[str]()

        def say(text: str) -> None:
            told.append(text)
            display.display(text)

        with tempfile.TemporaryDirectory(prefix="storqual-") as folder:
            link = Link(str(arguments["host"]), shlex.split(str(arguments.get("ssh") or "")), Path(folder) / "ssh")
            virtual = str(arguments.get("virtual_state") or "")
            try:
                settle(link, str(arguments["state_dir"]), BenchPlaces.of(virtual) if virtual else None, say=say)
            except StorqualError as problem:
                return {"failed": True, "msg": str(problem), "storqual_exit_code": problem.exit_code}
            finally:
                link.close()
        return {**result, "changed": bool(told), "told": told}
