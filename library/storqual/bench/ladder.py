# SPDX-License-Identifier: Apache-2.0
"""A bench that has stopped answering is brought back, one step after the other, until another boot answers.

What each step showed is told before the next one is made: what hung is seen in it, and the next step destroys it.
Nothing is done to a bench whose watchdog is still due to fire.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from storqual.base.text import telling_line
from storqual.bench.follow import ConnectionLostError
from storqual.bench.reboot import Boot
from storqual_core.host.watchdog import Watch
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import LeaseLostError

LIMIT_S = 900.0
"""How long the whole ladder may take."""
_ANSWER_S = 20.0
_POLL_S = 3.0
_SHOWN_S = 5.0
"""How long the kernel may take to print what a key of sysrq asks for."""
_LATE_S = 10.0
"""By how much a watchdog may be late."""
_SIGN_S = 20.0
"""After so long a machine that boots has written to its console."""
_ASKED_S = 60.0
"""After so long the console of a bench without a watchdog is asked whether its kernel lives."""
_BLIND_S = 120.0
"""A lost network is waited for so long where neither a watchdog ends a hang nor a console tells one from it.

An SSH server that says no word is waited for as long: a busy bench may take a minute for it.
"""
_SEEN = ("w", "l", "m")
"""Keys of sysrq that show: tasks that wait, what each processor does, memory."""
_HELP, _LOUD, _CRASH, _RESTART = "h", "7", "c", "b"
"""List the keys, print more to the console, panic, start again."""
_MOST_LINES = 200
_PANIC = "Kernel panic"


class ConsoleTyping(Protocol):
    """A console that keeps what it shows, and into which can be typed. All raise StorqualError."""

    def sysrq(self, letter: str) -> None:
        """Type BREAK and this letter."""

    def mark(self) -> int:
        """Where its text ends now."""

    def text_since(self, mark: int) -> str: ...


class PowerResult(Protocol):
    """How a power cycle ended; `boot` is None where nothing answered after it."""

    @property
    def boot(self) -> Boot | None: ...


PowerCycle = Callable[[str], PowerResult]
"""Takes the reason. Raises StorqualError."""


@dataclass(frozen=True)
class SilentBench:
    """A bench that stopped answering in boot `boot_id`, and what can be done to it.

    `hangs`: what it does hangs, though it may answer; else it is back as soon as it answers. `ask` gives the boot
    that answers within so many seconds, empty where none does. `trigger` writes keys to /proc/sysrq-trigger over SSH
    and gives the end of the kernel's log. `console_mark` is where the console was when the bench answered last.
    `fired` is whether the watchdog says that it made the boot that answers, `listens` whether the bench takes
    connections for its SSH server, so that its network is not what is lost. Nothing that ends what the bench does is
    done before it has been silent for `spare_s` seconds: a network that was lost may come back. Where no watchdog of
    the hardware would end a hang meanwhile, it is spared only while its kernel answers at the console, or for two
    minutes. `nmi` sends an NMI. `boot_s` is how long it may take to boot.
    """

    boot_id: str
    ask: Callable[[float], str]
    hangs: bool = True
    trigger: Callable[[str], str] | None = None
    console: ConsoleTyping | None = None
    console_mark: int = 0
    watch: Watch = field(default_factory=Watch)
    fired: Callable[[], bool] | None = None
    listens: Callable[[], bool] = lambda: False
    kdump: bool = False
    nmi: Callable[[], None] | None = None
    cycle_power: PowerCycle | None = None
    cycle_longer: PowerCycle | None = None
    spare_s: float = 0.0
    boot_s: float = 300.0


@dataclass(frozen=True)
class LadderStep:
    """One step: seconds since the bench fell silent, what was done and came of it, what the bench showed."""

    name: str
    seconds: float
    text: str
    evidence: str = ""


@dataclass(frozen=True)
class Recovery:
    """How it ended: by what, on which boot. Without a boot the bench is out of service.

    `ended_by` is empty for a bench that was reset by nobody knows whom, or whose connection came back.
    """

    ended_by: str
    boot_id: str
    seconds: float


def climb(
    bench: SilentBench,
    reason: str,
    *,
    silent_s: float = 0.0,
    limit_s: float = LIMIT_S,
    tell: Callable[[LadderStep], None],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Recovery:
    """Bring the bench back; `silent_s` is for how long it has been silent, `reason` why this is called.

    `tell` gets each step when it is over. Raises nothing that a step raises.
    """
    return _Ladder(bench, reason, tell, clock, sleep, clock() - silent_s, clock() + limit_s).climb()


@dataclass
class _Ladder:
    _bench: SilentBench
    _reason: str
    _tell: Callable[[LadderStep], None]
    _clock: Callable[[], float]
    _sleep: Callable[[float], None]
    _fell_silent: float
    _end: float

    def __post_init__(self) -> None:
        self._mark = self._bench.console_mark

    @property
    def _seconds(self) -> float:
        return self._clock() - self._fell_silent

    def climb(self) -> Recovery:
        for name, step in self._steps():
            if self._clock() >= self._end:
                break
            boot = self._make(name, step)
            if boot:
                return Recovery(self._ended_by(name, boot), boot, self._seconds)
        self._report("out of service", f"the bench did not come back within {self._seconds:.0f} s")
        return Recovery("", "", self._seconds)

    def _steps(self) -> Iterator[tuple[str, Callable[[], tuple[str, str]]]]:
        """The steps in their order; each gives the boot that answers after it, and a sentence."""
        bench = self._bench
        yield "ask", self._ask
        if bench.hangs and not self._panicked:
            yield "look", self._look
        if bench.watch.timeout_s or bench.spare_s or self._panicked:
            yield "watchdog", self._await_watchdog
        if not bench.hangs and self._kernel_lives is not False and not self._panicked:
            # a bench that may only be out of reach goes on with what it does, and is not disturbed before
            yield "look", self._look
        if (bench.console or bench.trigger) and self._kernel_lives is not False:
            yield "restart by the kernel", partial(self._key, _CRASH if bench.kdump else _RESTART)
        if bench.nmi:
            yield "NMI", partial(self._interrupt, bench.nmi)
        if bench.cycle_power:
            yield "power cycle", partial(self._cycle, bench.cycle_power)
        if bench.cycle_longer:
            yield "power cycle, longer off", partial(self._cycle, bench.cycle_longer)
        yield "wait", self._wait

    def _make(self, name: str, step: Callable[[], tuple[str, str]]) -> str:
        try:
            boot, text = step()
        except LeaseLostError:
            # somebody else has the bench: nothing more is done to it
            raise
        except StorqualError as problem:
            boot, text = "", str(problem)
        self._report(name, text)
        return boot

    def _report(self, name: str, text: str) -> None:
        evidence, self._evidence = self._evidence, ""
        if self._bench.console is not None:
            try:
                evidence = self._bench.console.text_since(self._mark) or evidence
                self._mark = self._bench.console.mark()
            except StorqualError as problem:
                text = f"{text}; {problem}"
        lines = evidence.splitlines()[-_MOST_LINES:]
        self._panic = self._panic or next((line for line in lines if _PANIC in line), "")
        self._tell(LadderStep(name, round(self._seconds, 1), text, "\n".join(lines)))

    _evidence = ""
    _panic = ""

    def _ended_by(self, step: str, boot: str) -> str:
        """By what the hang was ended, where it was not the step itself."""
        if boot == self._bench.boot_id:
            return ""
        if step not in ("ask", "look", "watchdog", "wait"):
            return step
        if self._bench.boot_id and self._bench.fired is not None and self._bench.fired():
            return f"watchdog {self._bench.watch.identity}".strip()
        return f"detector of the kernel: {telling_line(self._panic)}" if self._panic else ""

    def _other_boot(self, limit_s: float = _ANSWER_S) -> tuple[str, bool]:
        """The boot that the bench is back in, and whether any answers."""
        boot = self._bench.ask(max(1.0, min(limit_s, self._end - self._clock())))
        return ("" if boot == self._bench.boot_id and self._bench.hangs else boot), bool(boot)

    def _await(self, seconds: float, *, shown: bool = False) -> str:
        """Another boot within so many seconds; empty where none answers.

        With `shown` no longer than its console is without a word: a machine that starts again says something there.
        """
        began = self._clock()
        end = min(began + seconds, self._end)
        while self._clock() < end and not (shown and self._clock() > began + _SIGN_S and self._is_mute()):
            boot, _ = self._other_boot()
            if boot:
                return boot
            self._sleep(min(_POLL_S, max(0.0, end - self._clock())))
        return ""

    def _ask(self) -> tuple[str, str]:
        boot, answers = self._other_boot()
        self._answers = answers
        if boot:
            return boot, f"it answers from boot {boot}"
        return "", "it answers over SSH" if answers else "it does not answer over SSH"

    _answers = False

    def _look(self) -> tuple[str, str]:
        """Have the kernel show what it does. A kernel that answers nothing has told all that it will."""
        bench = self._bench
        if bench.console is not None:
            bench.console.sysrq(_LOUD)
            for letter in _SEEN:
                bench.console.sysrq(letter)
                self._sleep(_SHOWN_S)
            return "", f"sysrq {', '.join(_SEEN)} by the console"
        if bench.trigger is None or not self._answers:
            return "", "there is no console, and no SSH to ask by"
        self._evidence = bench.trigger("".join(_SEEN))
        return "", f"sysrq {', '.join(_SEEN)} over SSH"

    def _await_watchdog(self) -> tuple[str, str]:
        """Wait for what ends a hang by itself, and for a network that was lost."""
        watch = self._bench.watch
        while self._seconds < max(self._due_s(), self._spared_s()) and self._clock() < self._end:
            boot, answers = self._other_boot()
            if boot:
                return boot, f"it answers from boot {boot}"
            if answers:
                self._answers = True
                return "", "it answers in the same boot, so its watchdog is fed"
            self._sleep(_POLL_S)
        dead = "; its kernel answers no key at the console" if self._kernel_lives is False else ""
        return "", f"{watch.identity or 'no watchdog'} did not end it within {self._seconds:.0f} s{dead}"

    _kernel_lives: bool | None = None
    """Whether the kernel answered at the console; None where it was not asked."""

    def _spared_s(self) -> float:
        """For how long nothing that ends what it does is done to a bench that may only be out of reach."""
        bench, watch = self._bench, self._bench.watch
        if self._panicked:
            # no network that was lost explains that
            return 0.0
        if bench.spare_s and self._seconds >= _BLIND_S and bench.listens():
            return 0.0
        if not bench.spare_s or watch.is_hardware:
            # what hangs is ended by its watchdog: what measures on is not disturbed by keys
            return bench.spare_s
        if self._kernel_lives is None and bench.console is not None and self._seconds >= _ASKED_S:
            with suppress(StorqualError):
                before = bench.console.mark()
                bench.console.sysrq(_HELP)
                self._sleep(_SHOWN_S)
                self._kernel_lives = bool(bench.console.text_since(before).strip())
        if self._kernel_lives is not None:
            return bench.spare_s if self._kernel_lives else 0.0
        return min(bench.spare_s, _BLIND_S)

    def _due_s(self) -> float:
        """Until when watchdog or `panic=` may have fired and the bench may boot; a mute console shows no boot."""
        watch, bench = self._bench.watch, self._bench
        fires_s = watch.timeout_s + _LATE_S if watch.is_hardware or (watch.timeout_s and not self._panicked) else 0.0
        if self._panicked and watch.panic_s:
            fires_s = max(fires_s, watch.panic_s + _LATE_S)
        if self._seconds > fires_s + _SIGN_S and self._is_mute():
            return fires_s
        return fires_s + bench.boot_s if fires_s else 0.0

    def _key(self, letter: str) -> tuple[str, str]:
        bench = self._bench
        how = "by the console"
        if bench.console is not None:
            bench.console.sysrq(letter)
        elif bench.trigger is not None and self._answers:
            how = "over SSH"
            with suppress(ConnectionLostError):
                # a kernel that restarts at once does not answer
                bench.trigger(letter)
        else:
            return "", "there is no console, and no SSH to restart it by"
        return self._awaited(f"sysrq {letter} {how}")

    def _interrupt(self, nmi: Callable[[], None]) -> tuple[str, str]:
        nmi()
        return self._awaited("an NMI was sent")

    def _cycle(self, cycle: PowerCycle) -> tuple[str, str]:
        outcome = cycle(self._reason)
        if outcome.boot is not None and outcome.boot.boot_id != self._bench.boot_id:
            return outcome.boot.boot_id, f"its power was cycled; it is on boot {outcome.boot.boot_id}"
        boot, _ = self._other_boot()
        return boot, "its power was cycled" if boot else "its power was cycled, and nothing answers"

    def _wait(self) -> tuple[str, str]:
        """What is left of the time: somebody may have been called to it."""
        boot = self._await(self._end - self._clock())
        return boot, f"it answers from boot {boot}" if boot else "nothing else can be done from here"

    def _said(self) -> str | None:
        """What the console has said in this step; None where there is none."""
        with suppress(StorqualError):
            return self._bench.console.text_since(self._mark) if self._bench.console else None
        return None

    def _is_mute(self) -> bool:
        text = self._said()
        return text is not None and not text.strip()

    @property
    def _panicked(self) -> bool:
        """Whether the console has shown a panic: to ask on over SSH, or by keys, shows no more."""
        return bool(self._panic) or _PANIC in (self._said() or "")

    def _awaited(self, done: str) -> tuple[str, str]:
        boot = self._await(self._bench.boot_s, shown=True)
        return boot, f"{done}; it answers from boot {boot}" if boot else f"{done}; no other boot answers"
