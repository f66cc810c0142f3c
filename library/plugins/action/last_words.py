# SPDX-License-Identifier: Apache-2.0
"""Find out what a kernel said before it died."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from storqual.virtual_bench.boot import mark, panic_text, written_since

_PSTORE = "cat /sys/fs/pstore/dmesg-* /var/lib/systemd/pstore/*/dmesg.txt 2>/dev/null"


class ActionModule(ActionBase):
    """Return where the console log ends now (`offset`), and the panic it holds after argument `since` (`panic`).

    Arguments: `console` (the serial console log on the control node; empty where there is none), `since` (bytes).
    Without a console log, what pstore kept over the reboot is read from the bench itself.
    """

    _VALID_ARGS = frozenset({"console", "since"})
    _supports_check_mode = True
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Never fails: last words that nobody kept are an empty text."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        result["changed"] = False
        console = str(self._task.args.get("console") or "")
        start = self._task.args.get("since")
        if console:
            log = Path(console)
            return {**result, "offset": mark(log), "panic": panic_text(written_since(log, int(start or 0)))}
        if start is None:
            return {**result, "offset": 0, "panic": ""}
        try:
            kept = self._low_level_execute_command(_PSTORE, sudoable=True)
        except AnsibleConnectionFailure as problem:
            return {**result, "offset": 0, "panic": "", "msg": str(problem)}
        return {**result, "offset": 0, "panic": panic_text(str(kept["stdout"]))}
