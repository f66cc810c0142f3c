# SPDX-License-Identifier: Apache-2.0
"""A bench that stopped answering under a turn or a batch, brought back without hands; each step is in the run."""

import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.text import terminal_text
from storqual.bench.follow import Connection, ConnectionLostError
from storqual.bench.ladder import LIMIT_S, ConsoleTyping, LadderStep, PowerCycle, Recovery, SilentBench, climb
from storqual.bench.reboot import Boot, parse_ssh_address, ssh_answers
from storqual.console.console import Console, VirtualConsole, console_of
from storqual.power.cycling import BenchPower, cycle_bench
from storqual.run import Run, append_event, read_batch, read_run
from storqual.run.records import Event
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_cycle, power_state, reset
from storqual.virtual_bench.qmp import converse
from storqual_core.host.watchdog import FIRED, Watch, has_fired
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import OutOfServiceError

WATCHDOG = "boot.watchdog"
"""The setting of a session that says which watchdog was armed in its boot, and for how many seconds."""
SPARE_S = 360.0
"""A network that was lost is waited for so long before anything is done to a bench."""
_SHOWN_LINES = 400
_TRIGGER_S = 30.0
_ANSWER_S, _SHAKE_S = 20.0, 2.0
_LOADED = "loaded"
_TRIES_S = 80.0
"""Beyond the limit of hung tasks, 120 s or more: a kernel sends a command six times, for 30 s each."""


@dataclass(frozen=True)
class Hung:
    """What hung where: the session and arm, its batch if any, and the turn where it is known."""

    session: str
    arm: str
    block: str
    turn: str = ""

    @classmethod
    def of(cls, batch: Mapping[str, Any], turn: Mapping[str, Any]) -> "Hung":
        return cls(str(batch["session"]), str(turn["arm"]), str(batch["block"]), str(turn["id"]))

    def fields(self) -> dict[str, str]:
        named = {"session": self.session, "arm": self.arm, "block": self.block, "turn": self.turn}
        return {name: value for name, value in named.items() if value}


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


def _started(run: Run, bench: str, session: str = "") -> Event | None:
    """The start of a session; without one, of the last one."""
    starts = (event for event in reversed(run.events) if (event.kind, event.bench) == ("session_started", bench))
    return next((event for event in starts if session in ("", event.text("session"))), None)


def hung_between(run: Run, bench: str) -> tuple[Hung, str] | None:
    """Where a bench belongs that hangs while no turn is under way, and the boot it was in: to what it did last.

    That is the last batch of its last session, or the start of that. None before the first one.
    """
    start = _started(run, bench)
    if start is None:
        return None
    session, boot = start.text("session"), start.text("boot_id")
    ends = (e.text("block") for e in reversed(run.events) if e.kind == "block_finished" and e.bench == bench)
    batch = next((read_batch(run.path, block) for block in ends), None)
    if batch and batch["session"] == session:
        return Hung(session, str(batch["turns"][-1]["arm"]), str(batch["block"])), boot
    return Hung(session, start.text("arm"), ""), boot


def armed_watch(run: Run, bench: str, session: str) -> Watch:
    """The watchdog that was armed when the session was started."""
    event = _started(run, bench, session)
    settings = () if event is None else (event.fields.get("provisioned") or {}).get("settings") or ()
    armed = (str(setting.get("read_back") or "") for setting in settings if setting.get("name") == WATCHDOG)
    return Watch.of_setting(next(armed, ""))


def ensure_answer(path: Path, bench: BenchHere, *, console_mark: int, say: Callable[[str], None]) -> None:
    """Bring the bench back where it does not answer after its turns. Raises OutOfServiceError."""
    try:
        bench.connection.run("true", limit_s=_ANSWER_S)
    except ConnectionLostError as problem:
        hung, boot = hung_between(read_run(path), bench.name) or (None, "")
        why = str(problem)
        bring_back(path, bench, hung, boot=boot, hangs=False, reason=why, console_mark=console_mark, say=say)


def _listens(bench: BenchHere) -> bool:
    """Whether the bench's kernel takes connections, though SSH does not answer: QEMU takes those of a virtual one."""
    with suppress(OSError, subprocess.TimeoutExpired, StorqualError):
        if bench.virtual is None:
            ssh, *words = bench.connection.words("true")
            shown = child.run([ssh, "-G", *words], capture_output=True, text=True, timeout=_ANSWER_S)
            address = parse_ssh_address(shown.stdout)
            return address is not None and ssh_answers(address, _SHAKE_S, greets=False)
        state = power_state(bench.virtual)
        if state is not None:
            ask = {"command-line": "info usernet"}
            with socket.create_connection(("127.0.0.1", state.port), timeout=_SHAKE_S):
                time.sleep(_SHAKE_S)
                shown = converse(Path(state.monitor), lambda monitor: monitor.ask("human-monitor-command", ask))
            return "SYN_SENT" not in str(shown)
    return False


def _has_crash_kernel(run: Run, bench: str) -> bool:
    facts = [event.fields["facts"] for event in run.events if event.kind == "environment" and event.bench == bench]
    return bool(facts) and (facts[0].get("kind") or {}).get("kdump") == _LOADED


def bring_back(
    path: Path | None,
    bench: BenchHere,
    hung: Hung | None,
    *,
    boot: str,
    hangs: bool,
    reason: str,
    silent_s: float = 0.0,
    console_mark: int,
    watch: Watch | None = None,
    say: Callable[[str], None] = lambda _line: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Recovery:
    """Bring the bench back from what hung in `boot`; see `climb` and `SilentBench`.

    Every step becomes an event of the run, if any, and a hang that something had to end another one. `watch` is what
    was armed, where the session in `hung` does not say it. Raises OutOfServiceError when the bench stays away.
    """
    run, connection = read_run(path) if path and hung else None, bench.connection
    where = {"bench": bench.name, **(hung.fields() if hung else {})}
    watch = watch or (armed_watch(run, bench.name, hung.session) if run and hung else Watch())
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
        with suppress(ConnectionLostError):
            return has_fired(connection.run(FIRED, limit_s=_ANSWER_S))
        return False

    def tell(step: LadderStep) -> None:
        bench.means.ensure()
        fields: dict[str, Any] = {**where, "step": step.name, "seconds": step.seconds, "text": step.text}
        shown = {"evidence": step.evidence} if step.evidence else {}
        if run:
            append_event(run.path, "recovery_step", {**fields, **shown})
        lines = () if run else step.evidence.splitlines()
        for line in (f"{bench.name}: {step.name} after {step.seconds:.0f} s: {step.text}", *lines):
            say(terminal_text(line))

    cycle_power, cycle_longer = bench.means.cycles(boot, run=path, say=lambda line: say(terminal_text(line)))
    silent = SilentBench(
        boot_id=boot,
        ask=ask,
        hangs=hangs,
        # a bench that is the control node itself is not restarted from here
        trigger=trigger if connection.remote else None,
        console=console_of(bench.name, bench.virtual),
        console_mark=console_mark,
        watch=watch,
        fired=fired,
        listens=partial(_listens, bench) if bench.virtual or isinstance(connection, Connection) else lambda: False,
        kdump=run is not None and _has_crash_kernel(run, bench.name),
        nmi=bench.means.nmi,
        cycle_power=cycle_power,
        cycle_longer=cycle_longer,
        spare_s=0.0 if hangs else SPARE_S,
    )
    limit_s = bench.means.limit_s
    recovery = climb(silent, reason, silent_s=silent_s, limit_s=limit_s, tell=tell, clock=clock, sleep=sleep)
    if run and (recovery.ended_by or not recovery.boot_id):
        ended = {"ended_by": recovery.ended_by, "seconds": round(recovery.seconds, 1), "text": reason}
        append_event(run.path, "bench_hung", {**where, **ended})
    connection.cut()
    if recovery.boot_id:
        return recovery
    why = f"{reason}, and nothing brought it back within {recovery.seconds:.0f} s"
    bench.means.put_out(why)
    raise OutOfServiceError(f"{bench.name} is out of service: {why}")
