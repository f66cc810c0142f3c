# SPDX-License-Identifier: Apache-2.0
"""A bench, its power and lying backends, on a clock of their own: what is claimed can be compared with what is so."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from storqual.bench.reboot import Boot
from storqual.power.switch import Clock, PowerBackendError, SwitchState

BOOT_S = 60.0
BOOT_LIMIT_S = 1.5 * BOOT_S


@dataclass
class SimulatedBench:
    """A bench behind outlets and a management controller. `hung`: it runs, and shows nothing until its next boot.

    It runs when one of its outlets is on and so is its soft power; when power returns, `automatic` switches it on.
    """

    outlets: list[bool] = field(default_factory=lambda: [True])
    soft: bool = True
    hung: bool = False
    automatic: bool = True
    console: bool = False
    now: float = 1000.0
    boots: int = 1
    booted_at: float = 0.0
    last_sign: float = -math.inf
    cuts_of_a_healthy_bench: int = 0
    waiting: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        return self.soft and any(self.outlets)

    @property
    def answers(self) -> bool:
        return self.runs and not self.hung and self.now >= self.booted_at + BOOT_S

    @property
    def clock(self) -> Clock:
        began = datetime(2026, 1, 1, tzinfo=UTC)
        return Clock(lambda: self.now, self.passes, lambda: began + timedelta(seconds=self.now))

    def passes(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [entry for entry in self.waiting if entry[0] <= end]:
            first = min(due, key=lambda entry: entry[0])
            self.waiting.remove(first)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = end

    def change(self, act: Callable[[], None]) -> None:
        """Power changes; a bench that begins to run boots."""
        ran, healthy, powered = self.runs, self.answers, any(self.outlets)
        act()
        if not powered and any(self.outlets):
            self.soft = self.automatic
        if ran and not self.runs and healthy:
            self.cuts_of_a_healthy_bench += 1
        if not ran and self.runs:
            self.hung, self.boots, self.booted_at = False, self.boots + 1, self.now

    def set_soft(self, *, on: bool) -> None:
        def act() -> None:
            # without power a controller switches nothing
            self.soft = on if any(self.outlets) else self.soft

        self.change(act)

    def set_outlets(self, chosen: list[int], *, on: bool) -> None:
        def act() -> None:
            for number in chosen:
                self.outlets[number] = on

        self.change(act)

    # BenchEvidence

    def boot(self) -> Boot | None:
        if self.answers or (self.console and self.runs and not self.hung):
            self.last_sign = self.now
        return Boot(f"{self.boots:036d}", "6.1") if self.answers else None

    def last_sign_s(self) -> float:
        return self.now - self.last_sign

    def uptime_s(self) -> float | None:
        return self.now - self.booted_at if self.answers else None


@dataclass
class LyingBackend:
    """A management controller (`outlets` empty), or outlets; every fault of theirs is a field.

    A `mute` one obeys and never answers; of the orders to switch on, the first `lost` ones are lost.
    """

    bench: SimulatedBench
    name: str = "ipmi"
    outlets: tuple[int, ...] = ()
    silent_until: float = -math.inf
    dead: bool = False
    off_does_nothing: bool = False
    on_does_nothing: bool = False
    says: SwitchState | None = None
    delay_s: float = 0.0
    on_cycles: bool = False
    fails_after: bool = False
    mute: bool = False
    lost: int = 0
    dead_outlets: tuple[int, ...] = ()
    off_for_s: float = 10.0
    answers_within_s: float = 90.0
    removes: str = ""
    powers: tuple[str, ...] = ("bench",)
    asked: list[str] = field(default_factory=list)

    def _answers(self) -> None:
        powerless = not self.outlets and not any(self.bench.outlets)
        if self.dead or powerless or self.bench.now < self.silent_until:
            self.bench.passes(20.0)
            raise PowerBackendError(f"{self.name} did not answer within 20 s")
        self.bench.passes(0.5)

    def state(self) -> SwitchState:
        if self.outlets:
            return SwitchState.UNKNOWN
        self._answers()
        if self.mute:
            raise PowerBackendError(f"{self.name} did not answer within 20 s")
        return self.says or (SwitchState.ON if self.bench.soft else SwitchState.OFF)

    def _switch(self, *, on: bool) -> None:
        self.asked.append("on" if on else "off")
        self._answers()

        def act() -> None:
            if self.outlets:
                self.bench.set_outlets([each for each in self.outlets if each not in self.dead_outlets], on=on)
                return
            if on and self.on_cycles and self.bench.soft:
                self.bench.set_soft(on=False)
            self.bench.set_soft(on=on)

        if on and self.lost:
            self.lost -= 1
        elif not (self.on_does_nothing if on else self.off_does_nothing):
            if self.delay_s:
                self.bench.waiting.append((self.bench.now + self.delay_s, act))
            else:
                act()
        if self.fails_after or self.dead_outlets or self.mute:
            raise PowerBackendError(f"{self.name} reports an error")

    def on(self) -> None:
        self._switch(on=True)

    def off(self) -> None:
        self._switch(on=False)
