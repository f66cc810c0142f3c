# SPDX-License-Identifier: Apache-2.0
"""Switch a bench off and on: what backends answer is shown, what the bench shows is believed.

A management controller may answer success and do nothing, say on of a bench that is off, and off of one that is on.
So a bench is on when a boot answers over SSH or its console shows life; it is off when it is silent for twenty
seconds and no backend says on. A power cycle has succeeded when a boot answers that did not answer before it.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from storqual.bench.reboot import Boot
from storqual_core.kit.errors import StorqualError

SILENCE_S = 20.0
"""How long a bench must be silent to be off; one that answers at all answers within a few seconds."""
OFF_LIMIT_S = 60.0
"""From the answer to `off` until the bench counts as not switched off; slow controllers take 11 s to obey."""
ANSWER_LIMIT_S = 90.0
"""How long a backend may be silent before a step is given up."""
_SAME_BOOT_S = 30.0
"""After `on`: a bench that still answers with its old boot was not switched off."""
_AUTOMATIC_S = 30.0
"""A bench whose outlet is switched on needs so long to switch itself on, where its BIOS says so."""
_LOOK_S = 2.0
_FRESH_S = 2 * _LOOK_S
"""A sign of life so old is one of now."""
_ASK_S = 5.0


class SwitchState(StrEnum):
    """What a backend says, or what is known of a bench."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class PowerBackendError(StorqualError):
    """A backend did not do what it was asked to, or did not answer; one sentence."""


class PowerBackend(Protocol):
    """One way to switch a bench. Each call has its own time limit, and raises PowerBackendError.

    `state` returns unknown where the backend has no means to tell, and raises where it does not answer. `off_for_s`
    is how long a power cycle leaves the bench off, `answers_within_s` how long silence is borne with. `removes` is
    the power that its off takes away (`ac`, `dc`, empty where nobody said so), of the bench and shelves in `powers`.
    """

    @property
    def name(self) -> str: ...
    @property
    def off_for_s(self) -> float: ...
    @property
    def answers_within_s(self) -> float: ...
    @property
    def removes(self) -> str: ...
    @property
    def powers(self) -> Sequence[str]: ...
    def state(self) -> SwitchState: ...
    def on(self) -> None: ...
    def off(self) -> None: ...


class BenchEvidence(Protocol):
    """What the bench itself shows."""

    def boot(self) -> Boot | None:
        """The boot that answers now; None when nothing answers."""

    def last_sign_s(self) -> float:
        """Seconds since SSH or console last showed life; infinite when neither has."""

    def uptime_s(self) -> float | None:
        """How long the bench has been up; None when it does not say."""


@dataclass(frozen=True)
class PowerStep:
    """One question or order: what the backend answered, and what the bench showed then.

    A step without a backend is a conclusion.
    """

    time: datetime
    backend: str
    action: str
    answer: str
    evidence: str


@dataclass(frozen=True)
class PowerOutcome:
    """What is known of the bench at the end; `proven` by evidence, `boot` where one answers.

    After a power cycle `boot` is the new one, and None when none came; `off_by` are the backends after whose off it
    was proven to be off.
    """

    boot: Boot | None
    steps: tuple[PowerStep, ...]
    state: SwitchState = SwitchState.UNKNOWN
    proven: bool = False
    conclusion: str = ""
    off_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clock:
    """Time: monotonic seconds, a pause, and the time of day."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


REAL_CLOCK = Clock()


def read_power(
    backends: Sequence[PowerBackend],
    evidence: BenchEvidence,
    *,
    tell: Callable[[PowerStep], None],
    clock: Clock = REAL_CLOCK,
) -> PowerOutcome:
    """Whether a bench is on or off; nothing is switched. A bench that is silent is watched for twenty seconds.

    A bench that hangs in silence behind a backend that says off is off as far as this can tell.
    """
    return _Operation(backends, evidence, tell, clock).reading()


def switch_on(
    backends: Sequence[PowerBackend],
    evidence: BenchEvidence,
    *,
    boot_limit_s: float,
    tell: Callable[[PowerStep], None],
    clock: Clock = REAL_CLOCK,
) -> PowerOutcome:
    """Have a bench run that is off. Nothing is sent to one that shows life, or of which a backend says that it is on.

    `boot_limit_s`: how long a boot may take until it answers.
    """
    operation = _Operation(backends, evidence, tell, clock)
    reading = operation.reading()
    if reading.boot is not None:
        return operation.end(reading.boot, SwitchState.ON, proven=True, conclusion=f"it was on; {reading.conclusion}")
    boot = None
    if operation.shows_life() or SwitchState.ON in operation.ask_all().values():
        # it may be starting
        boot = operation.await_boot(None, boot_limit_s)
    else:
        for backend in backends:
            if not operation.shows_life() and operation.order(backend, SwitchState.ON, unless_on=True):
                boot = operation.await_boot(None, boot_limit_s)
            if operation.seen is not None:
                break
    if boot is not None:
        return operation.end(boot, SwitchState.ON, proven=True, conclusion=f"boot {boot.boot_id} answers")
    return operation.reading()


def switch_off(
    backends: Sequence[PowerBackend],
    evidence: BenchEvidence,
    *,
    tell: Callable[[PowerStep], None],
    clock: Clock = REAL_CLOCK,
) -> PowerOutcome:
    """Take the power of a bench, by the next backend where one cannot do it, and leave it off."""
    operation = _Operation(backends, evidence, tell, clock)
    reading = operation.reading()
    was_off = reading.state == SwitchState.OFF
    for backend in backends:
        if operation.order_off(backend, reading.boot).proven:
            return operation.end(None, SwitchState.OFF, proven=True, conclusion=operation.silence())
        if was_off:
            # told once more all the same: a bench that hangs may be behind a controller that says off
            break
    return operation.reading(by_word=was_off)


def cycle(
    backends: Sequence[PowerBackend],
    evidence: BenchEvidence,
    *,
    off_for_s: float | None,
    boot_limit_s: float,
    tell: Callable[[PowerStep], None],
    before: Boot | None = None,
    clock: Clock = REAL_CLOCK,
) -> PowerOutcome:
    """Off, proven, a pause, on, by one backend after the other until a new boot answers.

    `off_for_s` takes the place of what each backend says; `before` is the last boot that is known, for a bench that
    does not answer now. The outcome's `boot` is None where no new boot came; the bench then was told to switch on by
    every backend.
    """
    operation = _Operation(backends, evidence, tell, clock)
    before = operation.look() or before
    off_by: list[str] = []
    operation.step("", "cycle", f"by {', then by '.join(backend.name for backend in backends)}")
    for number, backend in enumerate(backends):
        off = operation.order_off(backend, before)
        reached = off.reached
        off_by += [backend.name] if off.proven else []
        if operation.is_new(before):
            # it was reset instead; to switch on what is on would break that boot off
            break
        operation.watch(backend.off_for_s if off_for_s is None else off_for_s)
        # once where the backend was silent at `off`; at the end it is tried for as long as it may be silent
        reached |= operation.order(backend, SwitchState.ON, insist=reached)
        if not reached:
            continue
        if operation.await_boot(before, boot_limit_s, earlier=backends[:number], cycled=True) is not None:
            break
    else:
        if not operation.shows_life():
            for backend in backends:
                operation.order(backend, SwitchState.ON)
            operation.await_boot(before, boot_limit_s, cycled=True)
    boot = operation.seen if operation.is_new(before) else None
    if boot is not None:
        outcome = operation.end(boot, SwitchState.ON, proven=True, conclusion=f"new boot {boot.boot_id} answers")
        return replace(outcome, off_by=tuple(off_by))
    reading = operation.reading(by_word=False)
    conclusion = f"no new boot came; {reading.conclusion}"
    return replace(reading, boot=None, conclusion=conclusion, off_by=tuple(off_by))


@dataclass(frozen=True)
class _Off:
    """Whether a backend took an order to switch off, and whether the bench then was off by evidence."""

    reached: bool
    proven: bool


class _Operation:
    """One operation under way: what was seen and said since it began."""

    def __init__(
        self,
        backends: Sequence[PowerBackend],
        evidence: BenchEvidence,
        tell: Callable[[PowerStep], None],
        clock: Clock,
    ) -> None:
        self._backends = backends
        self._evidence = evidence
        self._tell = tell
        self._clock = clock
        self._began = clock.monotonic()
        self._off_sent: float | None = None
        self._steps: list[PowerStep] = []
        self._last_told: dict[str, tuple[str, bool, bool]] = {}
        self.seen: Boot | None = None
        """The boot that answered at the last look."""

    # what the bench shows

    def look(self) -> Boot | None:
        self.seen = self._evidence.boot()
        return self.seen

    def _silent_s(self) -> float:
        return min(self._evidence.last_sign_s(), self._clock.monotonic() - self._began)

    def shows_life(self) -> bool:
        """Whether something was seen of the bench within the last twenty seconds."""
        return self._evidence.last_sign_s() < SILENCE_S

    def silence(self) -> str:
        silent = self._evidence.last_sign_s()
        if math.isinf(silent):
            return f"nothing has answered since the watch began {self._clock.monotonic() - self._began:.0f} s ago"
        return f"nothing has answered for {silent:.0f} s"

    def _shown(self) -> str:
        if self.seen is not None:
            return f"boot {self.seen.boot_id} answers"
        silent = self._evidence.last_sign_s()
        return f"it showed life {silent:.0f} s ago, and no boot answers" if silent < SILENCE_S else self.silence()

    def is_new(self, before: Boot | None) -> bool:
        """Whether the boot that answered last began in this operation."""
        if self.seen is None:
            return False
        if before is not None:
            return self.seen.boot_id != before.boot_id
        # nobody knows what ran before: it is new if it began after the power was taken
        uptime = self._evidence.uptime_s()
        return self._off_sent is not None and uptime is not None and uptime < self._clock.monotonic() - self._off_sent

    def watch(self, seconds: float) -> None:
        """Wait, looking all the while."""
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0:
            self._clock.sleep(min(left, _LOOK_S))
            self.look()

    # what backends say

    def step(self, backend: str, action: str, answer: str) -> None:
        made = PowerStep(self._clock.now(), backend, action, answer, self._shown())
        self._steps.append(made)
        self._tell(made)

    def ask(self, backend: PowerBackend, *, repeated: bool = False) -> SwitchState | None:
        """What a backend says now, None without an answer; `repeated` ones are told where something changed."""
        try:
            state: SwitchState | None = backend.state()
            answer = str(state)
        except PowerBackendError as problem:
            state, answer = None, str(problem)
        self.look()
        # also where the bench changed and the answer did not: that is where they differ
        report = (answer, self.seen is not None, self.shows_life())
        if not repeated or self._last_told.get(backend.name) != report:
            self.step(backend.name, "state", answer)
        self._last_told[backend.name] = report
        return state

    def ask_all(self) -> dict[str, SwitchState | None]:
        return {backend.name: self.ask(backend, repeated=True) for backend in self._backends}

    def order(
        self, backend: PowerBackend, wanted: SwitchState, *, insist: bool = True, unless_on: bool = False
    ) -> bool:
        """Read the state, then have it switched; what comes of it is seen later. Whether the backend took the order.

        With `insist` a backend that does not answer is asked again, for as long as it may be silent; with `unless_on`
        nothing is sent to one that says on.
        """
        end = self._clock.monotonic() + backend.answers_within_s
        tries = 0
        if self.ask(backend) == SwitchState.ON and unless_on:
            return False
        while True:
            try:
                (backend.on if wanted == SwitchState.ON else backend.off)()
            except PowerBackendError as problem:
                answer, taken = str(problem), False
            else:
                answer, taken = "accepted", True
            self.look()
            self.step(backend.name, str(wanted), answer)
            tries += 1
            if taken or not insist or self._clock.monotonic() >= end:
                return taken
            self.watch(_ASK_S)
            state = self.ask(backend)
            # it may have worked all the same; one that answers and fails twice will not do it
            if state == wanted or (state is not None and tries > 1):
                return True
            if wanted == SwitchState.ON and self.seen is not None:
                return True

    def order_off(self, backend: PowerBackend, before: Boot | None) -> _Off:
        """Take the power by one backend, and wait until the bench is off by evidence, or will not be."""
        alive = self.look() is not None or self._lives()
        earlier = self.ask_all()
        sent = self._clock.monotonic()
        if self._off_sent is None:
            self._off_sent = sent
        reached = self.order(backend, SwitchState.OFF)
        sent = self._clock.monotonic() if reached else sent
        end = self._clock.monotonic() + (OFF_LIMIT_S if reached else SILENCE_S)
        while self._clock.monotonic() < end:
            self.watch(_ASK_S)
            if self.is_new(before):
                break
            if min(self._silent_s(), self._clock.monotonic() - sent) < SILENCE_S:
                continue
            states = self.ask_all()
            if SwitchState.ON in states.values() or self.shows_life():
                continue
            changed = any(
                earlier[name] == SwitchState.ON and state == SwitchState.OFF for name, state in states.items()
            )
            if alive or changed:
                self.step("", "off", "proven: it fell silent, and no backend says on")
                return _Off(reached, proven=True)
            self.step("", "off", "not proven: it was silent before, and no backend changed from on to off")
            return _Off(reached, proven=False)
        self.step("", "off", "not proven")
        return _Off(reached, proven=False)

    def await_boot(
        self, before: Boot | None, limit_s: float, *, earlier: Iterable[PowerBackend] = (), cycled: bool = False
    ) -> Boot | None:
        """The boot that comes within `limit_s` seconds; of a cycled bench one that is not `before`.

        `earlier` backends took the power before this one did: where they do not say on, they are told to switch on.
        """
        began = self._clock.monotonic()
        end, waiting = began + limit_s, list(earlier)
        while self._clock.monotonic() < end:
            self.look()
            if self.seen is not None and (not cycled or self.is_new(before)):
                self.step("", "on", "proven: a new boot answers" if cycled else "proven: a boot answers")
                return self.seen
            since = self._clock.monotonic() - began
            if self.seen is not None and since >= _SAME_BOOT_S:
                self.step("", "on", "the boot from before the power cycle still answers: its power was not taken")
                return None
            if waiting and since >= _AUTOMATIC_S and not self.shows_life():
                other = waiting.pop(0)
                state = self.ask(other)
                if state is None:
                    # a controller whose outlet was off starts for a minute
                    waiting.append(other)
                elif state != SwitchState.ON:
                    self.order(other, SwitchState.ON)
                    end = self._clock.monotonic() + limit_s
            self._clock.sleep(_LOOK_S)
        self.step("", "on", f"not proven: no new boot within {limit_s:g} s")
        return None

    # what is known at the end

    def reading(self, *, by_word: bool = True) -> PowerOutcome:
        """What is known now: a silent bench is watched for twenty seconds; `by_word`: a backend's off is enough."""
        while True:
            self.look()
            if self._lives():
                states = self.ask_all()
                if self._lives():
                    conclusion = self._shown() + self._differing(states)
                    return self.end(self.seen, SwitchState.ON, proven=True, conclusion=conclusion)
            elif self._silent_s() >= SILENCE_S:
                states = self.ask_all()
                if not self.shows_life():
                    break
            self._clock.sleep(_LOOK_S)
        words = "".join(f"{name} says {state or 'nothing'}; " for name, state in states.items())
        conclusion = f"{words}{self.silence()}"
        if SwitchState.ON in states.values():
            return self.end(None, SwitchState.UNKNOWN, proven=False, conclusion=conclusion)
        off = SwitchState.OFF in states.values()
        state = SwitchState.OFF if off else SwitchState.UNKNOWN
        return self.end(None, state, proven=off and by_word, conclusion=conclusion)

    def _lives(self) -> bool:
        """Whether it showed life at this look."""
        return self.seen is not None or self._evidence.last_sign_s() < _FRESH_S

    @staticmethod
    def _differing(states: dict[str, SwitchState | None]) -> str:
        return "".join(f"; {name} says {state}" for name, state in states.items() if state == SwitchState.OFF)

    def end(self, boot: Boot | None, state: SwitchState, *, proven: bool, conclusion: str) -> PowerOutcome:
        return PowerOutcome(boot, tuple(self._steps), state, proven, conclusion)
