# SPDX-License-Identifier: Apache-2.0
"""Make volumes, and show how far they are while they are initialised."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.base.text import terminal_text
from storqual.bench.live_line import progress_line

display = Display()

_SLICE_S = 20.0
"""How long the module stays on the bench before it says how far it is."""


class ActionModule(ActionBase):
    """The module `raid_layout` in slices: a module that waits for hours would be silent for hours.

    The arguments are the module's; `wait_s` is the time for all slices together.
    """

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Steps of all slices together; a failure when the time is over and something is still under way."""
        super().run(tmp, task_vars)
        bench = str((task_vars or {}).get("inventory_hostname", ""))
        allowed = float(self._task.args.get("wait_s", 0.0))
        deadline = time.monotonic() + allowed
        benches = len((task_vars or {}).get("ansible_play_hosts_all") or ()) or 1
        line = progress_line(lambda text, end: display.display(text, newline=end == "\n"), bench, benches)
        first: dict[str, Any] | None = None
        try:
            while True:
                left = max(deadline - time.monotonic(), 0.0)
                arguments = {**self._task.args, "wait_s": min(left, _SLICE_S)}
                # by the name of the task: in a collection the module has a longer one
                result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
                joined = _joined(first, result)
                first = first or result
                under_way = result.get("progress") or {}
                if result.get("failed") or not under_way:
                    return joined
                line.show(f"{bench}: {_words(under_way)}")
                if time.monotonic() >= deadline:
                    return joined if allowed == 0 else {**joined, **_too_late(under_way, allowed)}
        finally:
            line.close()


def _joined(first: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """The result of the last slice with what the first one did and what it found."""
    if first is None:
        return now
    was = {(entry["name"], entry.get("adapter")): entry["before"] for entry in first.get("settings", [])}
    settings = [
        {**entry, "before": before, "changed": before != entry["read_back"]}
        for entry in now.get("settings", [])
        for before in [was.get((entry["name"], entry.get("adapter")), entry["before"])]
    ]
    kept: dict[str, Any] = {name: first[name] for name in ("drift", "diff") if name in first}
    return {
        **now,
        **kept,
        "changed": bool(first.get("changed") or now.get("changed")),
        "steps": [*first.get("steps", []), *now.get("steps", [])],
        "settings": settings,
    }


def _words(under_way: dict[str, dict[str, float]]) -> str:
    """`fusion/r5 initialise 12.5 %`."""
    listed = [(volume, *task) for volume, tasks in under_way.items() for task in tasks.items()]
    return terminal_text(", ".join(f"{volume} {task} {percent:g} %" for volume, task, percent in listed))


def _too_late(under_way: dict[str, dict[str, float]], allowed: float) -> dict[str, Any]:
    return {
        "failed": True,
        "msg": f"after {allowed:g} s there is still under way: {_words(under_way)}; it goes on, run this again later",
        "storqual_exit_code": 2,
    }
