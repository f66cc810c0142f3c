# SPDX-License-Identifier: Apache-2.0
"""A bench whose controllers are flashed: the fake card, image files, a clock that only its own sleep moves."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import GuardRefusalError
from storqual_core.kit.lock import read_saved
from storqual_core.provision.firmware import flash as provisioning
from storqual_core.provision.firmware.flash import Step, provision_firmware
from storqual_core.provision.firmware.flash_plan import FirmwareRequest, read_journal
from storqual_core.provision.firmware.subject import FlashImage, FlashSubject
from storqual_core.tools.capabilities import VolumeFacts
from tests.support.fake_flash import Card, make_tool
from tests.support.replay import Replay

WELL = VolumeFacts("0", name="scratch", state="Optimal", healthy=True)


@dataclass
class Owners:
    """One adapter without a guard that looks at the machine; `refusal` is what the guard says to a write."""

    card: Card
    refusal: str = ""
    holds: list[bool] = field(default_factory=list)

    def memory(self, owner: str) -> dict[str, Any]:
        return {"kind": "adapter", "adapter": {"pci": self.card.pci}, "consent": ["e00001"]}

    @contextmanager
    def hold(self, _tool: Any, *, write: bool) -> Iterator[None]:
        self.holds.append(write)
        if write and self.refusal:
            raise GuardRefusalError([self.refusal])
        yield

    def subjects(self, tool: Any, boards: Any) -> list[FlashSubject]:
        return [FlashSubject("sas0", tool, "0", Replay([]), pci=self.card.pci)]


@dataclass
class Bench:
    """A bench with one card, images of three versions, and a clock that only its own sleep moves."""

    folder: Path
    card: Card = field(default_factory=Card)
    refusal: str = ""
    now: float = 0.0

    def image(self, version: str, **more: str) -> FlashImage:
        path = self.folder / f"fw-{version}.bin"
        path.write_bytes(version.encode() * 10)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return FlashImage(str(path), digest, version, **more)

    def request(self, version: str = "2.0", **more: Any) -> FirmwareRequest:
        """Version 2.0 with a way back to 1.0."""
        given: dict[str, Any] = {"rollback": (self.image("1.0"),), "activation": "reset", "tool": "storcli", **more}
        return FirmwareRequest(self.image(version), **given)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def rebind(self, _pci: str) -> None:
        self.card.effect("rebind")
        self.card.start()

    def step(self, **more: Any) -> Step:
        return Step(
            str(self.folder / "state"),
            "r1",
            boot=lambda: self.card.boot,
            rebind=self.rebind,
            clock=lambda: self.now,
            sleep=self.sleep,
            **more,
        )

    def flash(self, request: FirmwareRequest | None = None, **more: Any) -> dict[str, Any]:
        return provision_firmware(request or self.request(), Owners(self.card, self.refusal), self.step(**more))

    @property
    def untouched(self) -> bool:
        """Nothing was written, to the card or to the bench."""
        return not self.card.effects and not self.notes and self.saved is None

    @property
    def notes(self) -> dict[str, Any]:
        return read_journal(self.folder / "state")

    @property
    def saved(self) -> Any:
        return read_saved(self.folder / "state")


def make_bench(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(folder)
    monkeypatch.setattr(provisioning, "tool_for", lambda _name, **_kind: make_tool(made.card))
    return made


def run_to_the_end(bench: Bench, kind: str) -> dict[str, Any]:
    """Flash, and restart when that is needed, as the role does."""
    request = bench.request(activation=kind)
    result = bench.flash(request)
    if result["pending"]:
        bench.card.restart()
        result = bench.flash(request, proof=True)
    return result
