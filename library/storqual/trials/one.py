# SPDX-License-Identifier: Apache-2.0
"""One trial: send it to the bench, follow its stream into the run directory, bring the fault about, judge."""

from __future__ import annotations

import json
import secrets
import shlex
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.base.text import telling_line
from storqual.bench.program import build_program
from storqual.robustness.derived import derive_trial, head_line, keep_lines, keep_packed, kept_lines
from storqual.robustness.images import Logged, logged_writes
from storqual.robustness.log_writes import read_log
from storqual.robustness.observed import Observed
from storqual.robustness.plan import PlannedTrial
from storqual.robustness.suite import SECTOR, RobustnessSuite
from storqual.run.layout import now
from storqual.trials.bench_packages import install_package
from storqual.trials.control_faults import CONTROL_WAYS, Reach
from storqual.trials.link import SILENCE_S, Link, LinkError
from storqual.virtual_bench.boot import mark, panic_text, written_since
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import reset
from storqual_core.data.faults import FAULTS, LOGGING_WAY, WAYS, Fault, Way
from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.trial.program import ENDED
from storqual_core.trial.stream import FOLDER

_FIRST_BYTE = 2 << 20
_SLACK_S = 180.0
_GRACE_S = 30.0
_LOOKS_OF_SILENCE = 20
"""After so many half seconds without a line the bench is looked at."""
_ANSWER_S = 10.0
_PANIC_LINES = 60
_UNREACHED_S = 360.0
"""How long a bench may be out of reach in one trial: a lost network is waited out, as with measured batches."""
_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class BenchHere:
    """One bench while its trials run: how it is reached, where its program lies, its virtual state if any."""

    name: str
    link: Link
    python: str
    state_dir: str
    claims: Mapping[str, Mapping[str, Mapping[str, Any]]]
    adapters: Mapping[str, str]
    program: str
    virtual: BenchPlaces | None
    boot_id: str


def send_program(link: Link, python: str, state_dir: str) -> str:
    """Put the bench program there once; the folder that it was unpacked into.

    Unpacked, Python keeps what it compiled: each trial starts the program anew, and on an emulated processor that
    would cost more than the shortest load. Its files are on the disk before the folder has its name: a bench that is
    reset in the next trial would else keep a folder of empty files. Raises LinkError.
    """
    program = build_program()
    folder = f"{state_dir}/bin/{program.stem}"
    if link.run(f"test -d {shlex.quote(folder)} && echo there || true").strip() != "there":
        packed = f"{state_dir}/bin/{program.name}"
        link.put(program.read_bytes(), packed)
        unpack = " ".join(map(shlex.quote, (python, "-m", "zipfile", "-e", packed, f"{folder}.part")))
        part = f"{shlex.quote(folder)}.part"
        link.run(f"{unpack} && rm {shlex.quote(packed)} && sync -f {part} && mv {part} {shlex.quote(folder)}")
    return folder


class TrialLostError(StorqualError):
    """A trial was cut short by what is none of its faults, and says nothing: it is made again.

    `rebooted` is True when the bench is on another boot, False when it could not be reached.
    """

    def __init__(self, message: str, *, rebooted: bool) -> None:
        self.rebooted = rebooted
        super().__init__(message)


class LiveTrial:
    """A trial under way; every line that the bench tells is kept before anything is made of it.

    `again` is whether it may be made again when it is cut short; what is cut short too often is judged as it is.
    """

    def __init__(
        self,
        bench: BenchHere,
        suite: RobustnessSuite,
        planned: PlannedTrial,
        folder: Path,
        run: str,
        *,
        again: bool = True,
    ) -> None:
        self._bench, self._suite, self._planned, self._run = bench, suite, planned, run
        self._again = again
        self._boot = bench.boot_id
        self._silent = 0
        self._told = False
        self._unreached = 0.0
        self._cut_off = ""
        self._console = 0 if bench.virtual is None else mark(bench.virtual.console)
        self._fault: Fault = FAULTS[planned.fault]
        self._way: Way = WAYS[planned.way][1]
        self._seen = Observed()
        self._lock = threading.Lock()
        self._clock = 0
        self._reached = threading.Event()
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = folder / f"{planned.id}.stream.jsonl"
        self._log = folder / f"{planned.id}.writes"
        for left in (self._kept, self._log):
            # of an attempt that was cut short
            left.unlink(missing_ok=True)
        self._tag = secrets.token_hex(8)

    def run(self) -> dict[str, Any]:
        """The record of the trial. Raises TrialLostError when it was cut short and may be made again.

        Raises LinkError when the bench does not answer when asked to begin, and it may not.
        """
        with self._kept.open("ab") as self._file:
            head = head_line(self._run, self._planned, bench=self._bench.name, tag=self._tag, start=now())
            self._take({"at": 0, **head})
            try:
                self._make()
            except LinkError as problem:
                if not self._again:
                    raise
                raise TrialLostError(str(problem), rebooted=False) from None
        if self._cut_off and self._again:
            raise TrialLostError(self._cut_off, rebooted=False)
        stream = keep_packed(self._kept.with_name(f"{self._kept.name}.gz"), self._kept.read_bytes())
        self._kept.unlink()
        named = dict(zip(("stream", "stream_sha256"), stream, strict=True))
        log = self._logged()
        if log is not None:
            path = self._kept.with_name(f"{self._planned.id}.write_log.jsonl.gz")
            written = keep_lines(path, (entry.to_json() for entry in log))
            named |= dict(zip(("write_log", "write_log_sha256"), written, strict=True))
        expect = self._suite.trials[self._planned.number].expect
        # of what was kept, and not of what was seen: whoever has the run can do the same
        lines = kept_lines(self._kept.parent, {"id": self._planned.id, **named}, "stream")
        record = derive_trial(lines, self._planned, expect, run=self._run, log=log)
        if log is not None and not (record["power_cuts"] or {}).get("missing"):
            self._log.unlink()
        return {**record, **named}

    def _make(self) -> None:
        """Load and fault, then what is left where the bench itself goes down by it. Raises LinkError."""
        virtual = self._bench.virtual
        try:
            for package in self._way.packages:
                install_package(self._bench.link, package, self._bench.state_dir, virtual=virtual is not None)
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
                self._bench.link.cut()
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

    def _file_of(self, parts: str, stream: str) -> bytes:
        planned, load = self._planned, self._suite.loads[self._planned.load]
        expect = self._suite.trials[planned.number].expect
        on_bench = self._way.where == "bench"
        body = {
            "run": self._run,
            "state_dir": self._bench.state_dir,
            "drive": planned.drive,
            "adapter": self._bench.adapters[planned.adapter],
            # how far the fault reaches is found on the bench, and may be behind other adapters
            "claims": {
                name: {"claim": claim} for claims in self._bench.claims.values() for name, claim in claims.items()
            },
            "claimed": [name for claims in self._bench.claims.values() for name in claims],
            "tag": self._tag,
            "load": {
                "first": _FIRST_BYTE // SECTOR,
                "sectors": load.region // SECTOR,
                "workers": load.workers,
                "sizes": [size // SECTOR for size in load.sizes],
                "read_share": load.reads,
                "through_share": load.write_through,
                "flush_every": load.flush_every,
                "seed": planned.seed,
            },
            "way": planned.way if on_bench else "",
            "scope": self._way.scope,
            "at_s": planned.at_s,
            "away_s": planned.away_s,
            # the load goes on for its whole time after the thing is back
            "load_s": planned.load_s + planned.away_s,
            "recover_s": expect.recovery,
            "parts": parts,
            "stream": stream,
        }
        return json.dumps(body).encode()

    def _follow(self, parts: str) -> None:
        """Start the program for these parts and take its stream to the end."""
        bench, planned = self._bench, self._planned
        # the stream of an earlier attempt may still be written to
        base = f"{FOLDER}/{planned.id}.{self._tag}.{parts}"
        bench.link.put(self._file_of(parts, f"{base}.jsonl"), f"{base}.json")
        code = (
            f"import sys; sys.path.insert(0, {bench.program!r}); "
            "from storqual_core.trial.program import main; sys.exit(main(sys.argv[1:]))"
        )
        words = " ".join(shlex.quote(word) for word in (bench.python, "-I", "-S", "-c", code, f"{base}.json"))
        bench.link.run(f": > {base}.jsonl; setsid {words} </dev/null >{base}.out 2>&1 &")
        if self._way.downs_bench:
            self._boot = bench.link.run(_BOOT_ID).strip()
        limit = planned.load_s + planned.away_s + self._suite.trials[planned.number].expect.recovery + _SLACK_S
        fault: threading.Thread | None = None
        may_go_down = self._way.downs_bench and parts == "all"
        try:
            for line in self._lines(f"{base}.jsonl", limit, later=parts == "verify"):
                if line is not None and line["kind"] == "loading" and self._way.where != "bench" and parts == "all":
                    fault = threading.Thread(target=self._bring_about, args=(f"{base}.jsonl{ENDED}",), daemon=True)
                    fault.start()
                if may_go_down and (self._reached.is_set() or (line is None and self._is_on_other_boot())):
                    break
                if line is None and not may_go_down and (self._is_down() or self._never_ran(base)):
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
        self._told = False
        for line in self._bench.link.lines(path, limit_s=limit + _UNREACHED_S):
            if line is not None:
                self._told = True
                if not later:
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
        asked = time.monotonic()
        try:
            boot = self._bench.link.run(_BOOT_ID, limit_s=_ANSWER_S).strip()
        except LinkError:
            # the connection to a kernel that is no more would be waited for
            self._bench.link.cut()
            self._unreached += _LOOKS_OF_SILENCE * SILENCE_S + time.monotonic() - asked
            return False
        if boot == self._boot:
            return False
        self._take(
            {"kind": "seen", "seen": "other_boot", "text": f"the bench is on boot {boot}, was on {self._boot}"}
        )
        self._take({"kind": "fault", "phase": "end", "text": self._planned.way})
        self._reached.set()
        return True

    def _is_down(self) -> bool:
        """Whether a bench that is silent went down by itself: by its console, else by the boot it answers from.

        Raises TrialLostError when it is on another boot and may have been reset by somebody.
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
        asked = time.monotonic()
        try:
            boot = self._bench.link.run(_BOOT_ID, limit_s=_ANSWER_S).strip()
        except LinkError:
            self._unreached += _LOOKS_OF_SILENCE * SILENCE_S + time.monotonic() - asked
            return False
        if boot != self._boot and self._again:
            raise TrialLostError(f"the bench is on boot {boot}, the trial began on {self._boot}", rebooted=True)
        if boot != self._boot:
            self._take({"kind": "down", "text": f"bench down: it went down by itself and is on boot {boot} now"})
        return boot != self._boot

    def _never_ran(self, base: str) -> bool:
        """Whether the program ended before its first line, by what Python wrote beside the stream."""
        if self._told or self._silent % _LOOKS_OF_SILENCE:
            return False
        try:
            said = self._bench.link.run(f"cat {base}.out", limit_s=_ANSWER_S).strip()
        except LinkError:
            return False
        if said:
            self._take({"kind": "end", "code": 2, "message": said.splitlines()[-1], "ios": 0})
        return bool(said)

    def _take(self, line: Mapping[str, Any]) -> None:
        """Keep a line, then read it; a line of the control node gets the time of the bench's clock."""
        with self._lock:
            body = {"at": time.monotonic_ns() + self._clock, **line}
            self._file.write(json.dumps(body, separators=(",", ":")).encode() + b"\n")
            self._file.flush()
            self._seen.take(body)

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
                    self._bench.link,
                    planned.drive,
                    self._bench.adapters[planned.adapter],
                    planned.away_s,
                    self._log,
                    lambda seen, text: self._take({"kind": "seen", "seen": seen, "text": text}),
                    planned.adapter,
                )
            )
        except (StorqualError, OSError) as problem:
            if isinstance(problem, LinkError):
                self._cut_off = str(problem)
            self._take({"kind": "fault", "phase": "failed", "text": str(problem)})
        else:
            self._take({"kind": "fault", "phase": "end", "text": planned.way})
        if not self._way.downs_bench:
            # without it the bench waits no longer than for a recovery
            with suppress(LinkError):
                self._bench.link.run(f": > {ended}")
        self._reached.set()
