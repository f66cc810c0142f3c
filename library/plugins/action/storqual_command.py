# SPDX-License-Identifier: Apache-2.0
"""Ask the storqual command on the control node and take its JSON answer."""

from __future__ import annotations

import json
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.base import child
from storqual.base.text import terminal_text, visible_text
from storqual.bench.live_line import displaced

display = Display()
_LIMIT_S = 1800


class ActionModule(ActionBase):
    """Run `storqual ARGV` here, whatever host the task is for; a failure carries its exit code and its own lines.

    Arguments: `argv` (list of words), `send` (any value, given as JSON on standard input), `changes` (bool: whether
    the command writes, as `record` does; it is then skipped in check mode), `answers` (exit codes that are answers,
    0 by default). The answer is in `data`, its exit code in `code`; its entry `told` is shown.
    """

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset({"answers", "argv", "changes", "send"})
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the command; `changed` says whether it was one that writes."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        words = [str(word) for word in self._task.args["argv"]]
        writes = bool(self._task.args.get("changes", words[0] == "record"))
        if writes and self._task.check_mode:
            return {**result, "changed": False, "skipped": True, "msg": "not run in check mode"}
        send = self._task.args.get("send")
        ended = child.run(
            child.storqual(*words),
            input="" if send is None else json.dumps(send),
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
        )
        # what could not do its work may end with a code of the answers, too, but says nothing on its output
        answered = ended.returncode in self._task.args.get("answers", [0])
        data = json.loads(ended.stdout) if ended.stdout.strip() and answered else {}
        answered = answered and (ended.returncode == 0 or (bool(data) and not _is_error(data)))
        result["changed"] = writes and answered
        if not answered:
            nothing = f"storqual {words[0]} ended with {ended.returncode}"
            reason = ended.stderr.strip() or ended.stdout.strip() or nothing
            return {**result, "failed": True, "msg": visible_text(reason), "storqual_exit_code": ended.returncode}
        message = data.get("told") if isinstance(data, dict) else None
        if message:
            # what a person who waits is told; the rest of an answer is for tasks
            displaced()
            display.display(terminal_text(str(message)))
        result["code"] = ended.returncode
        result["data"] = data
        return result


def _is_error(data: object) -> bool:
    """Whether the answer is what a command with --json says when it could not do its work."""
    return isinstance(data, dict) and set(data) == {"errors", "exit_code"}
