# SPDX-License-Identifier: Apache-2.0
"""Find out what a kernel said before it died."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from storqual.base.console_log import NET, joined_dumps, panic_text
from storqual.bench.bench_action import run_on_bench
from storqual.console.console import Console
from storqual.turns.recovering_action import virtual_state
from storqual.virtual_bench.boot import mark, written_since
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual_core.kit.errors import StorqualError

_FILES = {
    "pstore": "/sys/fs/pstore/dmesg-* /var/lib/systemd/pstore/*/dmesg.txt /var/lib/systemd/pstore/*/*/dmesg.txt",
    "kdump": "/var/crash/*/dmesg* /var/crash/*/vmcore-dmesg.txt",
}
"""Where a panic leaves its trace for the next boot, by what keeps it there."""
_BETWEEN = "---- storqual: another file ----"


def _has_card(places: BenchPlaces | None) -> bool:
    """Whether a virtual bench runs with a card for netconsole."""
    try:
        power = power_state(places) if places else None
    except StorqualError:
        return False
    return power is not None and power.bench.netconsole


class ActionModule(ActionBase):
    """Return where console and recording end now and which traces lie on the bench already (`mark`).

    After such a mark as argument `since` return the panic since then (`panic`), and which of the sources had it
    (`sources`): the console, netconsole, what pstore kept over the reboot, what kdump wrote. A virtual bench has a
    log of its console, in the folder of its variables (`virtual_state` names another); else its recorder is asked.
    """

    _VALID_ARGS = frozenset({"since", "virtual_state"})
    _supports_check_mode = True
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Never fails: last words that nobody kept are an empty text."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        given = {**self._task.args, "virtual_state": virtual_state(self, variables)}
        return {**result, **self._find(given, str(variables.get("inventory_hostname", "")))}

    def _find(self, arguments: Mapping[str, Any], bench: str) -> dict[str, Any]:
        result: dict[str, Any] = {"changed": False, "panic": "", "sources": {}}
        state = str(arguments.get("virtual_state") or "")
        places = BenchPlaces.of(state) if state else None
        recorded = Console(bench, places)
        order = recorded.running()
        lying: list[str] | None = None
        try:
            lying = [line for name in _FILES for line in self._lying(name)]
        except AnsibleConnectionFailure as problem:
            result["msg"] = str(problem)
        ends = {"recording": recorded.mark(), "log": mark(places.console) if places else 0}
        result["mark"] = {**ends, "lying": lying}
        since = arguments.get("since")
        if since is None:
            return result
        panics: dict[str, str] = {}
        if places is not None:
            panics["console"] = panic_text(written_since(places.console, int(since["log"])))
        elif order is not None and set(order["way"]) != {"netconsole"}:
            panics["console"] = panic_text(recorded.text_since(int(since["recording"])))
        if order is not None and ("netconsole" in order["way"] or _has_card(places)):
            panics["netconsole"] = panic_text(recorded.text_since(int(since["recording"]), NET))
        if lying is not None and since["lying"] is not None:
            for name in _FILES:
                panics[name] = panic_text(self._dumped(name, since["lying"]))
        result["panic"] = next(filter(None, panics.values()), "")
        result["sources"] = {name: bool(text) for name, text in panics.items()}
        return result

    def _lying(self, name: str) -> list[str]:
        """Name, time and size of each file; a name alone may be used again. Raises AnsibleConnectionFailure."""
        return self._ask(f"stat -c '%n %Y %s' {_FILES[name]} 2>/dev/null").splitlines()

    def _dumped(self, name: str, before: list[str]) -> str:
        """What lies there now and did not before; empty for a bench that does not answer any more."""
        try:
            fresh = [line.rpartition(" ")[0].rpartition(" ")[0] for line in self._lying(name) if line not in before]
            show = f'for file in {_FILES[name]}; do echo "{_BETWEEN}$file"; cat "$file"; done 2>/dev/null'
            texts = self._ask(show).split(_BETWEEN) if fresh else []
        except AnsibleConnectionFailure:
            return ""
        parts = (text.partition("\n") for text in texts)
        return joined_dumps([text for file, _, text in parts if file.strip() in fresh])

    def _ask(self, command: str) -> str:
        """The output of a command on the bench; a terminal, which becoming root may ask for, ends lines in CR LF."""
        return str(run_on_bench(self, command)["stdout"])
