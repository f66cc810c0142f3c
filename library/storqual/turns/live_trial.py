# SPDX-License-Identifier: Apache-2.0
"""One trial: its stream is followed into the run directory, its fault brought about, and its record derived."""

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from storqual.base.console_log import panic_text
from storqual.base.text import telling_line
from storqual.bench.follow import SILENCE_S, ConnectionLostError
from storqual.bench.ladder import Recovery
from storqual.inputs.power import BENCH_ITSELF
from storqual.kinds.images import logged_writes, read_log
from storqual.kinds.record import Observed
from storqual.kinds.trial import WRITES, head_line
from storqual.run.collect import keep_raw
from storqual.run.layout import TURNS, now
from storqual.turns.acts import CONTROL_WAYS, POWER_WAYS, PowerReach, Reach, longest_cycle_s
from storqual.turns.bring_back import BenchHere
from storqual.turns.live_turn import LiveTurn, TurnLostError
from storqual.turns.needed_packages import install_package
from storqual.virtual_bench.power import reset
from storqual_core.data.faults import LOGGING_WAY, POWER, WAYS, Way
from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.turns.load_levels import LAYER_S
from storqual_core.turns.requests import SILENCE_S as TURN_SILENCE_S
from storqual_core.turns.trial import ENDED

_SLACK_S = 180.0
_GRACE_S = 30.0
_LOOKS_OF_SILENCE = 20
"""After so many half seconds without a line the bench is looked at."""
_PATIENCE = 4
"""So many times the silence of its bench a program may be silent on a bench that answers."""
_ANSWER_S = 10.0
_PANIC_LINES = 60
_UNREACHED_S = 360.0
"""How long a bench may be out of reach in one trial: a lost network is waited out, as with measured batches."""


class LiveTrial(LiveTurn):
    """A trial under way.

    `again` is whether it may be made again when it is cut short; what is cut short too often is judged as it is.
    """

    def __init__(
        self,
        run: Path,
        bench: BenchHere,
        batch: Mapping[str, Any],
        turn: Mapping[str, Any],
        *,
        boot: str,
        again: bool = True,
    ) -> None:
        self._seen = Observed()
        super().__init__(run, bench, batch, turn, self._seen.take, boot=boot)
        self._again = again
        self._unreached = 0.0
        self._cut_off = ""
        self._way: Way = WAYS[self._request["way"]][1]
        self._reached = threading.Event()
        self._began = 0.0
        self._log = run / TURNS / f"{self._planned.id}.writes"
        self._log.unlink(missing_ok=True)

    def _head(self) -> dict[str, Any]:
        return head_line(self._planned, tag=self._tag, start=now())

    def run(self) -> dict[str, Any]:
        """The record. Raises TurnLostError when it was cut short and may be made again.

        Raises ConnectionLostError when the bench does not answer when asked to begin, and it may not.
        """
        record = super().run()
        if len(record["raw"]) > 1 and not (record["power_cuts"] or {}).get("missing"):
            # a log in which nothing is missing says no more than what was made of it
            self._log.unlink()
        return record

    def _make(self) -> None:
        try:
            self._load_and_fault()
        except ConnectionLostError as problem:
            if not self._again:
                raise
            raise TurnLostError(str(problem), rebooted=False) from None
        if self._cut_off and self._again:
            raise TurnLostError(self._cut_off, rebooted=False)

    def _load_and_fault(self) -> None:
        """Load and fault, then what is left where the bench itself goes down by it. Raises ConnectionLostError."""
        bench, virtual = self._bench, self._bench.virtual
        try:
            for package in self._way.packages:
                install_package(bench.connection, package, bench.state_dir, virtual=virtual is not None)
        except ToolError as problem:
            self._take({"kind": "cannot", "reason": f"{self._way.name}: {problem}"})
            return
        if self._way.downs_bench:
            # whoever reads the console later must know which panic was asked for
            with bench.recorder.expecting(f"{self._way.name} of trial {self._planned.id}", self._limit_s()):
                self._follow("all")
        else:
            self._follow("all")
        if self._way.where == POWER and self._seen.end is not None:
            self._take({"kind": "cannot", "reason": "the load had ended before the power went"})
            return
        if not self._way.downs_bench or (self._way.where == "bench" and self._seen.end is not None):
            # a bench that told of the end of its program did not go down
            return
        if virtual is not None and self._way.where == "bench" and not self._reached.is_set():
            # a crash kernel that never ends would keep the bench for ever
            reset(virtual)
            bench.connection.cut()
        # what the console told so far was the fault itself
        self._console = bench.console_mark()
        self._follow("verify")

    def _beside(self) -> list[dict[str, str]]:
        """What the log of the drive's writes says; nothing where there is none that can be read."""
        if self._way.name != LOGGING_WAY or not self._log.is_file():
            return []
        try:
            log = logged_writes(read_log(self._log), bytes.fromhex(self._tag))
        except ToolError:
            return []
        lines = (json.dumps(entry.to_json(), separators=(",", ":")).encode() + b"\n" for entry in log)
        return [keep_raw(self._run, b"".join(lines), f"{WRITES}.jsonl.gz")]

    def _start(self, part: str) -> str:
        path = super()._start(part)
        self._began = time.monotonic()
        if path and self._way.downs_bench:
            self._boot_id = self._bench.connection.boot_id()
        return path

    def _limit_s(self) -> float:
        """What the load, the fault and the recovery may take in all, in seconds."""
        request = self._request
        sweep = request["load"].get("sweep") or {"limit_s": 0.0, "idles_s": (), "layers": ()}
        swept = sweep["limit_s"] + sum(sweep["idles_s"]) + LAYER_S * len(sweep["layers"])
        power = self._bench.means.power
        cycled = 0.0
        if self._way.where == POWER and power is not None:
            cycled = longest_cycle_s(power, request["away_s"])
        return float(
            swept + request["load_s"] + request["away_s"] + request["expect"]["recovery"] + _SLACK_S + cycled
        )

    def _follow(self, part: str) -> None:
        """Start the program for this part and take its stream to the end, or until time is up.

        Time out of reach is not counted. Lines of a later boot get the time that it is by the clock of the boot that
        went down.
        """
        later, limit = part == "verify", self._limit_s()
        fault: threading.Thread | None = None
        may_go_down = self._way.downs_bench and not later
        try:
            for line in self._lines(part, limit + _UNREACHED_S):
                if line is not None:
                    if not later and "at" in line:
                        self._clock = int(line["at"]) - time.monotonic_ns()
                    self._take({**line, "at": time.monotonic_ns() + self._clock} if later else line)
                    if line["kind"] == "loading" and self._way.where != "bench" and not later:
                        fault = threading.Thread(
                            target=self._bring_about, args=(f"{self._spool}{ENDED}",), daemon=True
                        )
                        fault.start()
                if may_go_down and (self._reached.is_set() or (line is None and self._is_on_other_boot())):
                    return
                if line is None and not may_go_down and self._is_down():
                    return
                if time.monotonic() > self._began + limit + self._unreached:
                    break
            if self._seen.end is None:
                self._take({"kind": "hung", "text": f"the bench's program did not end within {limit:g} s"})
        finally:
            if fault is not None:
                fault.join(max(_SLACK_S + _GRACE_S, limit))

    def _is_on_other_boot(self) -> bool:
        """Whether a bench that brings its own end about is back from it."""
        if self._way.where != "bench" or self._seen.fault_begin is None or self._silent % _LOOKS_OF_SILENCE:
            return False
        boot = self._look_for_boot()
        if not boot:
            # the connection to a kernel that is no more would be waited for
            self._bench.connection.cut()
        if boot in ("", self._boot_id):
            return False
        self._take(
            {"kind": "seen", "seen": "other_boot", "text": f"the bench is on boot {boot}, was on {self._boot_id}"}
        )
        self._take({"kind": "fault", "phase": "end", "text": self._way.name})
        self._reached.set()
        return True

    def _is_down(self) -> bool:
        """Whether a bench that is silent went down by itself: by its console, else by the boot it answers from.

        Raises TurnLostError when it is on another boot and may have been reset by somebody, or tells nothing.
        """
        if self._silent % _LOOKS_OF_SILENCE:
            return False
        panic = panic_text(self._bench.console.text_since(self._console))
        if panic:
            self._take({"kind": "kernel", "lines": panic.splitlines()[:_PANIC_LINES]})
            self._take({"kind": "down", "text": f"panic: {telling_line(panic)}"})
            return True
        boot = self._look_for_boot()
        silence_s = self._request.get("silence_s", TURN_SILENCE_S)
        if not boot and self._silent * SILENCE_S >= silence_s:
            recovery = self._await_return()
            if recovery.ended_by:
                self._take({"kind": "down", "text": f"hung: it stopped answering, ended by {recovery.ended_by}"})
                return True
            # what it told meanwhile is on its way
            boot, self._silent = recovery.boot_id, 0
        if boot == self._boot_id and self._silent * SILENCE_S >= _PATIENCE * silence_s:
            text = f"the bench's program told nothing for {_PATIENCE * silence_s:g} s"
            if self._again:
                raise TurnLostError(text, rebooted=False)
            self._take({"kind": "down", "text": f"hung: {text}"})
            return True
        if boot in ("", self._boot_id):
            return False
        if self._again:
            text = f"the bench is on boot {boot}, the trial began on {self._boot_id}"
            raise TurnLostError(text, rebooted=True)
        self._take({"kind": "down", "text": f"bench down: it went down by itself and is on boot {boot} now"})
        return True

    def _await_return(self) -> Recovery:
        """The way back of a bench that does not answer. Raises OutOfServiceError when there is none."""
        began = time.monotonic()
        try:
            return self._bring_back("it stopped answering", hangs=False, silent_s=self._silent * SILENCE_S)
        finally:
            self._unreached += time.monotonic() - began

    def _look_for_boot(self) -> str:
        """The bench's boot; the time for which it does not answer is not counted."""
        start = time.monotonic()
        boot = self._boot(_ANSWER_S)
        if not boot:
            self._unreached += _LOOKS_OF_SILENCE * SILENCE_S + time.monotonic() - start
        return boot

    def _act(self) -> None:
        bench, away_s = self._bench, self._request["away_s"]

        def tell(seen: str, text: str) -> None:
            self._take({"kind": "seen", "seen": seen, "text": text})

        if self._way.where == POWER:
            emulated, shelf = bench.virtual is not None, str(self._request.get("powered_by", BENCH_ITSELF))
            POWER_WAYS[self._way.name](
                PowerReach(self._run, bench.means.power, bench.connection, shelf, away_s, emulated, tell)
            )
            return
        assert bench.virtual is not None  # noqa: S101 - the plan has ways of a virtual bench for no other
        pci = str(self._request["pci"])
        CONTROL_WAYS[self._way.name](
            Reach(
                bench.virtual,
                bench.connection,
                self._planned.drive,
                pci,
                away_s,
                self._log,
                tell,
                self._planned.adapter,
            )
        )

    def _bring_about(self, ended: str) -> None:
        """The fault of a control node, at its moment; a file of the name `ended` tells the bench that it is over."""
        request = self._request
        time.sleep(request["at_s"])
        try:
            self._take({"kind": "fault", "phase": "begin", "text": self._way.name})
            self._act()
        except (StorqualError, OSError) as problem:
            if isinstance(problem, ConnectionLostError):
                self._cut_off = str(problem)
            self._take({"kind": "fault", "phase": "failed", "text": str(problem)})
        else:
            self._take({"kind": "fault", "phase": "end", "text": self._way.name})
        if not self._way.downs_bench:
            # without it the bench waits no longer than for a recovery
            with suppress(ConnectionLostError):
                self._bench.connection.run(f": > {ended}")
        self._reached.set()
