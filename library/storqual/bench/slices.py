# SPDX-License-Identifier: Apache-2.0
"""A module that waits for volumes, called in slices: in one call that takes hours it would be silent for hours."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from storqual.base.text import terminal_text
from storqual.bench.live_line import progress_line
from storqual_core.data import read_table

SLICE_S = 20.0
"""How long the module stays on the bench before it says how far it is."""

Call = Callable[[float, Mapping[str, Any]], dict[str, Any]]
"""One call of the module: the seconds it may wait, and the results so far (empty at first)."""


class SlicedAction(ActionBase):
    """The action of a module that waits for volumes; `wait_s` is the time for all slices together."""

    _supports_check_mode = True

    def arguments(self) -> dict[str, Any]:
        return dict(self._task.args)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of all slices, with a line on the terminal while they last."""
        super().run(tmp, task_vars)
        arguments, known = self.arguments(), task_vars or {}
        bench = str(known.get("inventory_hostname", ""))
        benches = len(known.get("ansible_play_hosts_all") or ()) or 1
        line = progress_line(lambda text, end: Display().display(text, newline=end == "\n"), bench, benches)

        def call(wait_s: float, before: Mapping[str, Any]) -> dict[str, Any]:
            # the rest of what was declared is applied already
            resume = {"resume": before["resume"]} if before.get("resume") else {}
            # by the name of the task: in a collection the module has a longer one
            result: dict[str, Any] = self._execute_module(
                module_args={**arguments, **resume, "wait_s": wait_s}, task_vars=task_vars
            )
            return result

        try:
            return in_slices(call, float(arguments.get("wait_s", 0.0)), lambda words: line.show(f"{bench}: {words}"))
        finally:
            line.close()


def in_slices(call: Call, allowed: float, show: Callable[[str], None]) -> dict[str, Any]:
    """The result of all slices together; a failure when the time is over and something is still under way."""
    deadline = time.monotonic() + allowed
    joined: dict[str, Any] = {}
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        result = call(min(left, SLICE_S), joined)
        joined = _joined(joined, result)
        under_way = result.get("progress") or {}
        if result.get("failed") or not under_way:
            return joined
        show(_words(under_way))
        if time.monotonic() >= deadline:
            return joined if allowed == 0 else {**joined, **_too_late(under_way, allowed)}


def _joined(first: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The first result with what a later slice read of the same settings, and did beside."""
    if not first:
        return now
    later = {_key(entry): entry for entry in now.get("settings", [])}
    settings = []
    for entry in first.get("settings", []):
        read = later.get(_key(entry), entry)
        settings.append({**read, "before": entry["before"], "changed": entry["before"] != read["read_back"]})
    kept: dict[str, Any] = {name: first[name] for name in ("drift", "diff", "driver") if name in first}
    return {
        **now,
        **kept,
        "changed": bool(first.get("changed") or now.get("changed")),
        "steps": [*first.get("steps", []), *now.get("steps", [])],
        "settings": settings,
    }


def _key(entry: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(entry.get(name) for name in ("name", "adapter", "drive"))


def _words(under_way: Mapping[str, Mapping[str, float]]) -> str:
    """`fusion/r5 initialise 12.5 %`."""
    listed = [(volume, *task) for volume, tasks in under_way.items() for task in tasks.items()]
    return terminal_text(", ".join(f"{volume} {task} {percent:g} %" for volume, task, percent in listed))


def _too_late(under_way: Mapping[str, Mapping[str, float]], allowed: float) -> dict[str, Any]:
    return {
        "failed": True,
        "msg": f"after {allowed:g} s there is still under way: {_words(under_way)}; it goes on, run this again later",
        "storqual_exit_code": 2,
    }


class FlashAction(ActionBase):
    """Passes `log_rules`; everything else is the module's."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = {"log_rules": read_table("kernel_log")["rules"], **self._task.args}
        # by the name of the task: in a collection the module has a longer one
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        return result
