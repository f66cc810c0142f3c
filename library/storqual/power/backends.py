# SPDX-License-Identifier: Apache-2.0
"""The backends of a bench's power: thin callers of programs and services that exist, each call with a time limit.

A password reaches a program by its environment alone: arguments are everybody's to read in `/proc`.
"""

import json
import re
import tempfile
import urllib.parse
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.base.text import telling_line
from storqual.base.web import web_answer
from storqual.bench.ansible_run import run_playbook
from storqual.inputs.bmc import ipmitool_environment
from storqual.inputs.labgrid import LabgridPlace
from storqual.inputs.power import BENCH_ITSELF, IpmiPower, Outlet, PowerEntry, RedfishPower
from storqual.power.switch import ANSWER_LIMIT_S, PowerBackend, PowerBackendError, SwitchState
from storqual.virtual_bench.description import BenchDescription
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_off, power_state, switch_on
from storqual_core.kit.command import Completed, run
from storqual_core.kit.errors import MissingToolError, StorqualError, ToolError

_CALL_S = 30.0
"""For one call; ipmitool gives up by itself after some twenty seconds."""
_SWITCH_ON_S = 120.0
"""For a program that switches on; a virtual bench is prepared before it runs."""
_REDFISH_S = 60.0
_OFF_FOR_S = 10.0
_OUTLET_OFF_FOR_S = 30.0
"""A power supply keeps a server's controller running for some seconds without its outlet."""
_STATES: Mapping[str, SwitchState] = {"on": SwitchState.ON, "off": SwitchState.OFF}


@dataclass(frozen=True, kw_only=True)
class _Backend(ABC):
    name: str
    off_for_s: float
    answers_within_s: float
    removes: str = ""
    powers: Sequence[str] = (BENCH_ITSELF,)

    def on(self) -> None:
        self._switch("on")

    def off(self) -> None:
        self._switch("off")

    @abstractmethod
    def _switch(self, wanted: str) -> None: ...


def _called(
    argv: Sequence[str], remedy: str, *, env: Mapping[str, str] | None = None, limit_s: float = _CALL_S
) -> Completed:
    """A program that ended well. Raises PowerBackendError, with the remedy where it is not installed."""
    try:
        ended = run(argv, timeout=limit_s, env=env)
    except MissingToolError:
        raise PowerBackendError(f"`{argv[0]}` is not installed on the control node; {remedy}") from None
    except (ToolError, OSError) as problem:
        raise PowerBackendError(str(problem)) from None
    if ended.rc:
        raise PowerBackendError(f"`{argv[0]}` ended with status {ended.rc}: {ended.last_words()}")
    return ended


@dataclass(frozen=True, kw_only=True)
class IpmiBackend(_Backend):
    """ipmitool over lanplus."""

    entry: IpmiPower

    def state(self) -> SwitchState:
        return parse_chassis_power(self._power("status"))

    def _switch(self, wanted: str) -> None:
        self._power(wanted)

    def interrupt(self) -> None:
        """Send an NMI: a kernel that is told to panics by it."""
        self._power("diag")

    def _power(self, word: str) -> str:
        argv, env = self.entry.argv, ipmitool_environment(self.entry.password)
        return _called([*argv, "chassis", "power", word], "install the package ipmitool", env=env).stdout


def parse_chassis_power(text: str) -> SwitchState:
    """`Chassis Power is on`; unknown for anything else, and for both."""
    states = set(re.findall(r"^Chassis Power is (on|off)\s*$", text, re.MULTILINE))
    return _STATES[states.pop()] if len(states) == 1 else SwitchState.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class CommandBackend(_Backend):
    """Programs of the lab's own, without a shell; without one for the state it is unknown."""

    commands: Mapping[str, Sequence[str]]
    remedy: str = "`storqual_power` of the bench names it"

    def state(self) -> SwitchState:
        if not self.commands.get("state"):
            return SwitchState.UNKNOWN
        words = _called(self.commands["state"], self.remedy).stdout.split()
        return _STATES.get(words[-1].lower() if words else "", SwitchState.UNKNOWN)

    def _switch(self, wanted: str) -> None:
        _called(self.commands[wanted], self.remedy, limit_s=_SWITCH_ON_S)


def _labgrid_commands(place: LabgridPlace) -> dict[str, Sequence[str]]:
    """labgrid-client ends with `power for place bench07 is on`; whoever switches a place has acquired it before."""
    words = {"on": "on", "off": "off", "state": "get"}
    return {ours: [*place.argv, "power", theirs] for ours, theirs in words.items()}


@dataclass(frozen=True, kw_only=True)
class PdudaemonBackend(_Backend):
    """All outlets of a bench at once. pdudaemon answers success also where it failed, and knows no states."""

    url: str
    outlets: Sequence[Outlet]

    def state(self) -> SwitchState:
        return SwitchState.UNKNOWN

    def _switch(self, wanted: str) -> None:
        """Every outlet, also behind one that failed; then raise for those."""
        direct, problems = urllib.request.ProxyHandler({}), []
        for outlet in self.outlets:
            query = urllib.parse.urlencode({"hostname": outlet.pdu, "port": outlet.port})
            address = f"{self.url.rstrip('/')}/power/control/{wanted}?{query}"
            try:
                web_answer(urllib.request.Request(address), limit_s=_CALL_S, handlers=[direct])  # noqa: S310 - http and https only, by its shape
            except (OSError, ValueError) as problem:
                problems.append(f"{outlet.pdu} port {outlet.port}: {telling_line(str(problem))}")
        if problems:
            raise PowerBackendError(f"pdudaemon at {self.url}: {'; '.join(problems)}")


@dataclass(frozen=True, kw_only=True)
class RedfishBackend(_Backend):
    """Ansible's modules for Redfish, in a play of their own on the control node."""

    entry: RedfishPower

    def state(self) -> SwitchState:
        return parse_systems(self._play("state"), self.entry.system)

    def _switch(self, wanted: str) -> None:
        if not self._play(wanted).get("changed"):
            raise PowerBackendError(f"the controller says that it is {wanted}, so community.general sent nothing")

    def _play(self, action: str) -> Mapping[str, Any]:
        bmc = self.entry
        with tempfile.TemporaryDirectory(prefix="storqual-redfish-") as folder:
            answer, log = Path(folder) / "answer.json", Path(folder) / "log"
            hosts = Path(folder) / "hosts.yml"
            hosts.write_text('{"all": {"hosts": {"localhost": {}}}}\n', encoding="utf-8")
            variables = {
                "redfish_baseuri": bmc.url.removeprefix("https://").rstrip("/"),
                "redfish_user": bmc.user,
                "redfish_system": bmc.system or "",
                "redfish_authority": bmc.authority or "",
                "redfish_action": action,
                "redfish_answer": str(answer),
                "redfish_limit_s": int(_REDFISH_S),
            }
            run_playbook(
                "redfish_power.yml",
                inventories=[str(hosts)],
                variables=variables,
                environment={"STORQUAL_REDFISH_PASSWORD": bmc.password.get_secret_value()},
                output=log,
            )
            try:
                result = json.loads(answer.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise PowerBackendError(_no_answer(log)) from None
        if not isinstance(result, dict) or result.get("failed"):
            problem = result.get("message") if isinstance(result, dict) else result
            raise PowerBackendError(f"redfish at {bmc.url}: {telling_line(str(problem))}")
        return result


def _no_answer(log: Path) -> str:
    """Why the play came to no answer; its tasks say nothing of their arguments."""
    text = log.read_text(encoding="utf-8", errors="replace")
    if "couldn't resolve module/action" in text:
        remedy = "`ansible-galaxy collection install -r requirements.yml`"
        return f"the collection community.general is not installed on the control node; {remedy}"
    if "Timed out" in text or "timed out" in text:
        return f"redfish did not answer within {_REDFISH_S:g} s"
    errors = [line for line in text.splitlines() if "ERROR" in line]
    return f"the play for redfish ended without an answer: {telling_line(chr(10).join(errors) or text)}"


def parse_systems(answer: Mapping[str, Any], chosen: str | None) -> SwitchState:
    """The state of the `chosen` system, or of the only one; unknown where several differ, or for other words."""
    systems = answer.get("systems")
    states = {
        str(system["PowerState"]).lower()
        for system in (systems if isinstance(systems, list) else ())
        if isinstance(system, dict) and system.get("PowerState") and chosen in (None, system.get("Id"))
    }
    return _STATES.get(states.pop(), SwitchState.UNKNOWN) if len(states) == 1 else SwitchState.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class VirtualBackend(_Backend):
    """The switch of a virtual bench: QEMU is started, and ended as a power cut ends a server."""

    places: BenchPlaces
    description: Callable[[], BenchDescription]

    def state(self) -> SwitchState:
        try:
            return SwitchState.OFF if power_state(self.places) is None else SwitchState.ON
        except StorqualError as problem:
            raise PowerBackendError(str(problem)) from problem

    def _switch(self, wanted: str) -> None:
        try:
            if wanted == "on":
                switch_on(self.places, self.description())
            else:
                power_off(self.places, graceful=False, targets=False)
        except StorqualError as problem:
            raise PowerBackendError(str(problem)) from problem


def bench_backends(
    entries: Sequence[PowerEntry],
    *,
    places: BenchPlaces | None = None,
    description: Callable[[], BenchDescription] | None = None,
) -> tuple[PowerBackend, ...]:
    """The backends of a bench, in the order of its inventory; `places` and `description` are a virtual bench's."""
    kinds = [entry.backend for entry in entries]
    made = []
    for number, entry in enumerate(entries):
        kind = kinds[number]
        # two controllers are told apart by their place in the inventory
        name = kind if kinds.count(kind) == 1 else f"{kind} {kinds[: number + 1].count(kind)}"
        made.append(_backend(name, entry, places, description))
    return tuple(made)


def _backend(
    name: str, entry: PowerEntry, places: BenchPlaces | None, description: Callable[[], BenchDescription] | None
) -> PowerBackend:
    off_for = _OUTLET_OFF_FOR_S if entry.pdudaemon is not None or entry.labgrid is not None else _OFF_FOR_S
    common: dict[str, Any] = {
        "name": name,
        "off_for_s": off_for if entry.off_for is None else entry.off_for,
        "answers_within_s": entry.answers_within or ANSWER_LIMIT_S,
        "removes": entry.removed,
        "powers": entry.powers,
    }
    if entry.ipmi is not None:
        return IpmiBackend(entry=entry.ipmi, **common)
    if entry.redfish is not None:
        return RedfishBackend(entry=entry.redfish, **common)
    if entry.pdudaemon is not None:
        return PdudaemonBackend(url=entry.pdudaemon.url, outlets=entry.pdudaemon.outlets, **common)
    if entry.labgrid is not None:
        commands, remedy = _labgrid_commands(entry.labgrid), "install labgrid (`pipx install labgrid`)"
        return CommandBackend(commands=commands, remedy=remedy, **common)
    if entry.command is not None:
        own = {"on": entry.command.on, "off": entry.command.off, "state": entry.command.state or ()}
        return CommandBackend(commands=own, **common)
    if places is None or description is None:
        raise StorqualError("`virtual: true` needs the state folder of a virtual bench (virtual_bench_state)")
    return VirtualBackend(places=places, description=description, **common)
