# SPDX-License-Identifier: Apache-2.0
"""A bench that stopped answering under a turn or a batch, brought back without hands; each step is in the run."""

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from storqual.base.text import terminal_text
from storqual.bench.follow import Connection, ConnectionLostError
from storqual.bench.ladder import LIMIT_S, ConsoleTyping, LadderStep, PowerCycle, Recovery, SilentBench, Watch, climb
from storqual.bench.reboot import BOOTSTATUS, Boot, watchdog_fired
from storqual.console.console import Console, VirtualConsole, console_of
from storqual.power.cycling import BenchPower, cycle_bench
from storqual.run import Run, append_event, read_run
from storqual.run.records import Event
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_cycle, power_state, reset
from storqual_core.kit.lease import OutOfServiceError

WATCHDOG = "boot.watchdog"
"""The setting of a session that says which watchdog was armed in its boot, and for how many seconds."""
SPARE_S = 360.0
"""A network that was lost is waited for so long before anything is done to a bench."""
_SHOWN_LINES = 400
_TRIGGER_S = 30.0
_ANSWER_S = 20.0
_LOADED = "loaded"
_TRIES_S = 120.0
"""Beyond the limit of hung tasks: a kernel sends a command six times, for 30 s each, before it gives up."""


@dataclass(frozen=True)
class Hung:
    """What hung where: the session and arm, its batch, and the turn where it is known."""

    session: str
    arm: str
    block: str
    turn: str = ""

    @classmethod
    def of(cls, batch: Mapping[str, Any], turn: Mapping[str, Any]) -> "Hung":
        return cls(str(batch["session"]), str(turn["arm"]), str(batch["block"]), str(turn["id"]))

    def fields(self) -> dict[str, str]:
        named = {"session": self.session, "arm": self.arm, "block": self.block}
        return {**named, "turn": self.turn} if self.turn else named


_LONGER_OFF_S = 60.0
"""For a bench that did not come back after the usual pause without power."""


@dataclass(frozen=True)
class Means:
    """What a bench can be brought back by; None where there is no such thing.

    `power` is what its inventory says (`storqual_power`); a virtual bench has its button and its plug before it.
    """

    cycle_power: PowerCycle | None = None
    cycle_longer: PowerCycle | None = None
    limit_s: float = LIMIT_S
    power: BenchPower | None = None
    put_out: Callable[[str], object] = lambda _why: None
    """Tells other campaigns of a bench that nothing brought back."""
    ensure: Callable[[], None] = lambda: None
    """Raises LeaseLostError where somebody else may have the bench; asked before each step."""

    @property
    def nmi(self) -> Callable[[], None] | None:
        return None if self.power is None else self.power.nmi

    def cycles(
        self, boot: str, *, run: Path | None, say: Callable[[str], None]
    ) -> tuple[PowerCycle | None, PowerCycle | None]:
        """What cycles the power of a bench that hangs in `boot`, and what does it with a longer pause."""
        if self.cycle_power is not None or self.power is None:
            return self.cycle_power, self.cycle_longer
        before = Boot(boot, "") if boot else None
        cycle = partial(cycle_bench, self.power, run=run, before=before, say=say)
        return cycle, partial(cycle, off_for_s=_LONGER_OFF_S)


@dataclass(frozen=True)
class _Outcome:
    boot: Boot | None


@dataclass(frozen=True)
class BenchHere:
    """One bench while its turns run: how it is reached, where its program lies, its virtual state if any."""

    name: str
    connection: Connection
    python: str
    state_dir: str
    program: str
    virtual: BenchPlaces | None
    means: Means = Means()

    @property
    def recorder(self) -> Console:
        """What its console is recorded by; one that nobody records says nothing."""
        return Console(self.name, self.virtual)

    @property
    def console(self) -> ConsoleTyping:
        return self.recorder if self.virtual is None else VirtualConsole(self.virtual)

    def console_mark(self) -> int:
        """Where its console is now; 0 without one."""
        return self.console.mark()


def means_of(
    places: BenchPlaces | None,
    limit_s: float = LIMIT_S,
    power: BenchPower | None = None,
    *,
    ensure: Callable[[], None] = lambda: None,
) -> Means:
    """Of a virtual bench its reset button, then its plug; of any other what its inventory has."""
    if places is None:
        return Means(limit_s=limit_s, power=power, ensure=ensure)

    def press(_reason: str) -> _Outcome:
        state = reset(places)
        return _Outcome(Boot(state.boot_id, state.kernel))

    def pull(_reason: str) -> _Outcome:
        state = power_state(places)
        if state is None:
            return _Outcome(None)
        after = power_cycle(places, state.bench, graceful=False, say=lambda _line: None)
        return _Outcome(Boot(after.boot_id, after.kernel))

    return Means(press, pull, limit_s, power, ensure=ensure)


def still_limit_s(run: Run, bench: str) -> float:
    """For how long launches of a bench may make no I/O: longer than a kernel tries a command, or the plan waits."""
    specs = ((run.document.get("provision") or {}).get(bench) or {}).values()
    return _TRIES_S + max((float(spec.get("hung_task_s") or 0.0) for spec in specs), default=0.0)


def _started(run: Run, bench: str, session: str) -> Event | None:
    kind = "session_started"
    return next((e for e in run.events if (e.kind, e.bench, e.text("session")) == (kind, bench, session)), None)


def armed_watch(run: Run, bench: str, session: str) -> Watch:
    """The watchdog that was armed when the session was started."""
    event = _started(run, bench, session)
    for setting in () if event is None else (event.fields.get("provisioned") or {}).get("settings") or ():
        identity, _, seconds = str(setting.get("read_back") or "").rpartition(", ")
        number = seconds.partition(" ")[0]
        if setting.get("name") == WATCHDOG and number.isascii() and number.isdecimal():
            return Watch(identity, float(number))
    return Watch()


def ensure_answer(path: Path, bench: BenchHere, hung: Hung, *, console_mark: int, say: Callable[[str], None]) -> None:
    """Bring the bench back where it does not answer after its turns began. Raises OutOfServiceError."""
    try:
        bench.connection.run("true", limit_s=_ANSWER_S)
    except ConnectionLostError as problem:
        event = _started(read_run(path), bench.name, hung.session)
        boot = "" if event is None else event.text("boot_id")
        why = str(problem)
        bring_back(path, bench, hung, boot=boot, hangs=False, reason=why, console_mark=console_mark, say=say)


def _has_crash_kernel(run: Run, bench: str) -> bool:
    facts = [event.fields["facts"] for event in run.events if event.kind == "environment" and event.bench == bench]
    return bool(facts) and (facts[0].get("kind") or {}).get("kdump") == _LOADED


def bring_back(
    path: Path,
    bench: BenchHere,
    hung: Hung,
    *,
    boot: str,
    hangs: bool,
    reason: str,
    silent_s: float = 0.0,
    console_mark: int,
    say: Callable[[str], None] = lambda _line: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Recovery:
    """Bring the bench back from what hung in `boot`; see `climb` and `SilentBench`.

    Every step becomes an event of the run, and a hang that something had to end another one. Raises
    OutOfServiceError when the bench stays away.
    """
    run, connection = read_run(path), bench.connection
    bench.means.ensure()

    def ask(limit_s: float) -> str:
        try:
            return connection.boot_id(limit_s=limit_s)
        except ConnectionLostError:
            # the next question must not wait behind the one that was not answered
            connection.cut()
            return ""

    def trigger(letters: str) -> str:
        keys = "; ".join(f"echo {shlex.quote(letter)} > /proc/sysrq-trigger" for letter in letters)
        return connection.run(f"{keys}; dmesg | tail -n {_SHOWN_LINES}", limit_s=_TRIGGER_S)

    def fired() -> bool:
        try:
            return watchdog_fired(connection.run(BOOTSTATUS, limit_s=_ANSWER_S))
        except ConnectionLostError:
            return False

    def tell(step: LadderStep) -> None:
        bench.means.ensure()
        fields: dict[str, Any] = {"bench": bench.name, **hung.fields(), "step": step.name}
        fields |= {"seconds": step.seconds, "text": step.text}
        append_event(path, "recovery_step", {**fields, **({"evidence": step.evidence} if step.evidence else {})})
        say(terminal_text(f"{bench.name}: {step.name} after {step.seconds:.0f} s: {step.text}"))

    cycle_power, cycle_longer = bench.means.cycles(boot, run=path, say=lambda line: say(terminal_text(line)))
    silent = SilentBench(
        boot_id=boot,
        ask=ask,
        hangs=hangs,
        # a bench that is the control node itself is not restarted from here
        trigger=trigger if connection.remote else None,
        console=console_of(bench.name, bench.virtual),
        console_mark=console_mark,
        watch=armed_watch(run, bench.name, hung.session),
        fired=fired,
        kdump=_has_crash_kernel(run, bench.name),
        nmi=bench.means.nmi,
        cycle_power=cycle_power,
        cycle_longer=cycle_longer,
        spare_s=0.0 if hangs else SPARE_S,
    )
    limit_s = bench.means.limit_s
    recovery = climb(silent, reason, silent_s=silent_s, limit_s=limit_s, tell=tell, clock=clock, sleep=sleep)
    if recovery.ended_by or not recovery.boot_id:
        ended = {"ended_by": recovery.ended_by, "seconds": round(recovery.seconds, 1), "text": reason}
        append_event(path, "bench_hung", {"bench": bench.name, **hung.fields(), **ended})
    connection.cut()
    if not recovery.boot_id:
        why = f"{reason}, and nothing brought it back within {recovery.seconds:.0f} s"
        bench.means.put_out(why)
        raise OutOfServiceError(f"{bench.name} is out of service: {why}")
    return recovery
