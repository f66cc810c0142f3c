# SPDX-License-Identifier: Apache-2.0
"""One trial: its stream is followed into the run directory, its fault brought about, and its record derived."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from storqual.base.text import telling_line
from storqual.inputs.trials import Expectation
from storqual.robustness.derived import derive_trial, head_line, keep_lines, kept_lines
from storqual.robustness.images import Logged, logged_writes
from storqual.robustness.log_writes import read_log
from storqual.robustness.observed import Observed
from storqual.robustness.plan import PlannedTrial
from storqual.run.layout import now
from storqual.turns.acts import CONTROL_WAYS, Reach
from storqual.turns.connection import SILENCE_S, ConnectionLostError
from storqual.turns.live_turn import BenchHere, LiveTurn, TurnLostError
from storqual.turns.packages import install_package
from storqual.virtual_bench.boot import mark, panic_text, written_since
from storqual.virtual_bench.power import reset
from storqual_core.data.faults import LOGGING_WAY, WAYS, Way
from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.turns.trial import ENDED

_SLACK_S = 180.0
_GRACE_S = 30.0
_LOOKS_OF_SILENCE = 20
"""After so many half seconds without a line the bench is looked at."""
_ANSWER_S = 10.0
_PANIC_LINES = 60
_UNREACHED_S = 360.0
"""How long a bench may be out of reach in one trial: a lost network is waited out, as with measured batches."""


class LiveTrial(LiveTurn):
    """A trial under way; `boot` is what the bench runs.

    `again` is whether it may be made again when it is cut short; what is cut short too often is judged as it is.
    """

    def __init__(
        self,
        bench: BenchHere,
        batch: Mapping[str, Any],
        turn: Mapping[str, Any],
        planned: PlannedTrial,
        folder: Path,
        *,
        expect: Expectation,
        boot: str,
        again: bool = True,
    ) -> None:
        self._seen = Observed()
        super().__init__(bench, batch, turn, folder, self._seen.take)
        self._planned, self._expect, self._again, self._boot_id = planned, expect, again, boot
        self._silent = 0
        self._unreached = 0.0
        self._cut_off = ""
        self._console = 0 if bench.virtual is None else mark(bench.virtual.console)
        self._way: Way = WAYS[planned.way][1]
        self._reached = threading.Event()
        self._log = folder / f"{planned.id}.writes"
        self._log.unlink(missing_ok=True)

    def run(self) -> dict[str, Any]:
        """The record of the trial. Raises TurnLostError when it was cut short and may be made again.

        Raises ConnectionLostError when the bench does not answer when asked to begin, and it may not.
        """
        planned, run = self._planned, str(self._batch["run"])
        head = head_line(run, planned, bench=self._bench.name, tag=self._tag, start=now())
        self._take({"at": 0, **head})
        try:
            self._make()
        except ConnectionLostError as problem:
            if not self._again:
                raise
            raise TurnLostError(str(problem), rebooted=False) from None
        if self._cut_off and self._again:
            raise TurnLostError(self._cut_off, rebooted=False)
        named = self._keep()
        log = self._logged()
        if log is not None:
            path = self._folder / f"{planned.id}.write_log.jsonl.gz"
            written = keep_lines(path, (entry.to_json() for entry in log))
            named |= dict(zip(("write_log", "write_log_sha256"), written, strict=True))
        # of what was kept, and not of what was seen: whoever has the run can do the same
        lines = kept_lines(self._folder, {"id": planned.id, **named}, "stream")
        record = derive_trial(lines, planned, self._expect, run=run, log=log)
        if log is not None and not (record["power_cuts"] or {}).get("missing"):
            self._log.unlink()
        return {**record, **named}

    def _make(self) -> None:
        """Load and fault, then what is left where the bench itself goes down by it. Raises ConnectionLostError."""
        bench, virtual = self._bench, self._bench.virtual
        try:
            for package in self._way.packages:
                install_package(bench.connection, package, bench.state_dir, virtual=virtual is not None)
        except ToolError as problem:
            self._take({"kind": "cannot", "reason": f"{self._planned.way}: {problem}"})
            return
        self._follow("all")
        if not self._way.downs_bench or (self._way.where == "bench" and self._seen.end is not None):
            # a bench that told of the end of its program did not go down
            return
        if virtual is not None:
            if self._way.where == "bench" and not self._reached.is_set():
                # a crash kernel that never ends would keep the bench for ever
                reset(virtual)
                bench.connection.cut()
            # what the console told so far was the fault itself
            self._console = mark(virtual.console)
        self._follow("verify")

    def _logged(self) -> tuple[Logged, ...] | None:
        """What the log of the drive's writes says; None where there is none that can be read."""
        if self._way.name != LOGGING_WAY or not self._log.is_file():
            return None
        try:
            return logged_writes(read_log(self._log), bytes.fromhex(self._tag))
        except ToolError:
            return None

    def _follow(self, part: str) -> None:
        """Start the program for this part and take its stream to the end."""
        stream = self._start(part)
        if not stream:
            return
        if self._way.downs_bench:
            self._boot_id = self._bench.connection.boot_id()
        planned = self._planned
        limit = planned.load_s + planned.away_s + self._expect.recovery + _SLACK_S
        fault: threading.Thread | None = None
        may_go_down = self._way.downs_bench and part == "all"
        try:
            for line in self._lines(stream, limit, later=part == "verify"):
                if line is not None and line["kind"] == "loading" and self._way.where != "bench" and part == "all":
                    fault = threading.Thread(target=self._bring_about, args=(f"{stream}{ENDED}",), daemon=True)
                    fault.start()
                if may_go_down and (self._reached.is_set() or (line is None and self._is_on_other_boot())):
                    break
                if line is None and not may_go_down and self._is_down():
                    break
            else:
                if self._seen.end is None:
                    self._take({"kind": "hung", "text": f"the bench's program did not end within {limit:g} s"})
        finally:
            if fault is not None:
                fault.join(_SLACK_S + _GRACE_S)

    def _lines(self, path: str, limit: float, *, later: bool) -> Iterator[Mapping[str, Any] | None]:
        """The stream, up to its end or `limit` seconds, in which time out of reach is not counted.

        Lines of a `later` boot get the time that it is by the clock of the boot that went down.
        """
        end = time.monotonic() + limit
        for line in self._bench.connection.lines(path, limit_s=limit + _UNREACHED_S):
            if line is not None:
                if not later and "at" in line:
                    self._clock = int(line["at"]) - time.monotonic_ns()
                self._take({**line, "at": time.monotonic_ns() + self._clock} if later else line)
                self._silent = 0
            yield line
            if time.monotonic() > end + self._unreached:
                return

    def _is_on_other_boot(self) -> bool:
        """Whether a bench that brings its own end about is back from it."""
        self._silent += 1
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
        self._take({"kind": "fault", "phase": "end", "text": self._planned.way})
        self._reached.set()
        return True

    def _is_down(self) -> bool:
        """Whether a bench that is silent went down by itself: by its console, else by the boot it answers from.

        Raises TurnLostError when it is on another boot and may have been reset by somebody.
        """
        self._silent += 1
        if self._silent % _LOOKS_OF_SILENCE:
            return False
        virtual = self._bench.virtual
        panic = panic_text(written_since(virtual.console, self._console)) if virtual else ""
        if panic:
            self._take({"kind": "kernel", "lines": panic.splitlines()[:_PANIC_LINES]})
            self._take({"kind": "down", "text": f"panic: {telling_line(panic)}"})
            return True
        boot = self._look_for_boot()
        if boot in ("", self._boot_id):
            return False
        if self._again:
            text = f"the bench is on boot {boot}, the trial began on {self._boot_id}"
            raise TurnLostError(text, rebooted=True)
        self._take({"kind": "down", "text": f"bench down: it went down by itself and is on boot {boot} now"})
        return True

    def _look_for_boot(self) -> str:
        """The bench's boot; the time for which it does not answer is not counted."""
        asked = time.monotonic()
        boot = self._boot(_ANSWER_S)
        if not boot:
            self._unreached += _LOOKS_OF_SILENCE * SILENCE_S + time.monotonic() - asked
        return boot

    def _bring_about(self, ended: str) -> None:
        """The fault of a control node, at its moment; a file of the name `ended` tells the bench that it is over."""
        planned = self._planned
        assert self._bench.virtual is not None  # noqa: S101 - the plan has ways of a virtual bench for no other
        time.sleep(planned.at_s)
        try:
            self._take({"kind": "fault", "phase": "begin", "text": planned.way})
            CONTROL_WAYS[planned.way](
                Reach(
                    self._bench.virtual,
                    self._bench.connection,
                    planned.drive,
                    str(self._request["pci"]),
                    planned.away_s,
                    self._log,
                    lambda seen, text: self._take({"kind": "seen", "seen": seen, "text": text}),
                    planned.adapter,
                )
            )
        except (StorqualError, OSError) as problem:
            if isinstance(problem, ConnectionLostError):
                self._cut_off = str(problem)
            self._take({"kind": "fault", "phase": "failed", "text": str(problem)})
        else:
            self._take({"kind": "fault", "phase": "end", "text": planned.way})
        if not self._way.downs_bench:
            # without it the bench waits no longer than for a recovery
            with suppress(ConnectionLostError):
                self._bench.connection.run(f": > {ended}")
        self._reached.set()
