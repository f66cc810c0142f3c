# SPDX-License-Identifier: Apache-2.0
"""A flash tool made of nothing: one controller in memory, and a hand that cuts the power at any of its effects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from storqual_core.kit.errors import ToolError
from storqual_core.tools.capabilities import AdapterFacts, FirmwareImage, PortFacts, ToolFacts, VolumeFacts


class PowerCut(BaseException):
    """The process is gone; nothing may catch it."""


@dataclass
class Card:
    """A controller: the running version, the image that waits, how it starts one, and what is set."""

    version: str = "1.0"
    waiting: str = ""
    half_written: bool = False
    starts: str = "reset"
    forgets: bool = False
    dead: bool = False
    takes: bool = True
    boot: str = "boot-1"
    settings: dict[str, Any] = field(default_factory=lambda: {"execution_throttle": 32})
    policies: dict[str, Any] = field(default_factory=lambda: {"write_policy": "wb"})
    volumes: list[VolumeFacts] = field(default_factory=list)
    link: str = "up"
    pci: str = "0000:3b:00.0"
    serial: str = "CSN0001"
    health: str = "Optimal"
    effects: list[str] = field(default_factory=list)
    cut_at: int | None = None

    def effect(self, name: str) -> None:
        """Something outside of the process is about to change; the power may go right before it."""
        if self.cut_at is not None and len(self.effects) >= self.cut_at:
            raise PowerCut(name)
        self.effects.append(name)

    def start(self) -> None:
        """What waits runs now; an old image that forgets sets its settings back."""
        if self.waiting and not self.half_written:
            self.version, self.waiting = self.waiting, ""
            if self.forgets:
                self.settings["execution_throttle"] = 16

    def restart(self) -> None:
        self.boot = f"boot-{int(self.boot.rsplit('-', 1)[1]) + 1}"
        self.start()

    def facts(self) -> AdapterFacts:
        volumes = tuple(self.volumes) or (
            VolumeFacts("0", name="scratch", state="Optimal", policies=dict(self.policies), healthy=True),
        )
        return AdapterFacts(
            "0",
            pci=self.pci,
            serial=self.serial,
            health=self.health,
            firmware={"firmware": self.version},
            volumes=volumes,
            ports=(PortFacts("0", link=self.link),),
        )


def make_tool(card: Card, *, activates: bool = True) -> ModuleType:
    tool = ModuleType("fake_flash_tool")

    def answer() -> None:
        if card.dead:
            raise ToolError("the controller does not answer")

    def read_versions(_runner: Any, _index: str) -> Mapping[str, str]:
        answer()
        found = {"firmware": card.version}
        if card.waiting:
            found["firmware.pending"] = card.waiting
        return found

    def download(_runner: Any, _index: str, image: FirmwareImage) -> tuple[str, ...]:
        answer()
        card.effect("half")
        card.half_written = True
        card.waiting = image.version
        card.effect("whole")
        if not card.takes:
            raise ToolError("the controller refused the image")
        card.half_written = False
        if card.starts == "none":
            card.start()
        return ("seen",)

    def activation(_runner: Any, _index: str, image: FirmwareImage) -> str:
        return "none" if card.version == image.version else card.starts

    def activate(_runner: Any, _index: str, _image: FirmwareImage) -> None:
        card.effect("start")
        card.start()

    def write_setting(_runner: Any, _index: str, name: str, value: Any) -> None:
        card.effect("setting")
        card.settings[name] = value

    def set_policy(_runner: Any, _index: str, _volume: VolumeFacts, name: str, value: Any) -> None:
        card.effect("policy")
        card.policies[name] = value

    functions: dict[str, Callable[..., Any]] = {
        "read_versions": read_versions,
        "download": download,
        "activation": activation,
        "read_facts": lambda _runner: ToolFacts((card.facts(),)),
        "read_settings": lambda _runner, _index: dict(card.settings),
        "write_setting": write_setting,
        "read_volumes": lambda _runner, _index: card.facts().volumes,
        "set_policy": set_policy,
    }
    if activates:
        functions["activate"] = activate
    vars(tool).update(functions, SETTINGS={}, PROGRAMS=("fake",))
    return tool
