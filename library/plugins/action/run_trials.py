# SPDX-License-Identifier: Apache-2.0
"""Make the trials of one session on a bench, or run its foreign programs."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.trials.external import run_external_session
from storqual.trials.link import Link
from storqual.trials.session import run_session
from storqual_core.kit.errors import StorqualError

display = Display()


class ActionModule(ActionBase):
    """Make every trial of a session that has no record yet, or run every foreign program of it (`programs`).

    Arguments: `run` (run directory), `session`, `programs` (false by default), `host` and `ssh` (where the bench is,
    and ssh's words to reach it), `python` (the bench's interpreter), `virtual_state` (a virtual bench's state folder
    on the control node). The result's `done` is false when the bench must be provisioned again before the rest.
    """

    _VALID_ARGS = frozenset({"host", "programs", "python", "run", "session", "ssh", "virtual_state"})
    _supports_check_mode = True
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Fail when the bench does not answer, a package cannot be installed, or the run directory is damaged."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "changed": False, "skipped": True, "msg": "nothing is run in check mode"}
        arguments = self._task.args
        run_what = run_external_session if boolean(arguments.get("programs", False)) else run_session
        with tempfile.TemporaryDirectory(prefix="storqual-") as folder:
            link = Link(str(arguments["host"]), shlex.split(str(arguments.get("ssh") or "")), Path(folder) / "ssh")
            try:
                done = run_what(
                    Path(str(arguments["run"])),
                    str((task_vars or {}).get("inventory_hostname", "")),
                    str(arguments["session"]),
                    link,
                    python=str(arguments["python"]),
                    virtual=str(arguments.get("virtual_state") or ""),
                    say=display.display,
                )
            except StorqualError as problem:
                return {"failed": True, "msg": str(problem), "storqual_exit_code": problem.exit_code}
            finally:
                link.close()
        return {**result, "changed": True, "done": done}
