# SPDX-License-Identifier: Apache-2.0
"""Foreign programs on a bench: one on one drive (sent, followed, read), and those of a session one after the other.

A bench that hangs by one is reset.
"""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from storqual.robustness.derived import keep_packed, kept_lines
from storqual.robustness.external_runs import FOLDER as KEPT
from storqual.robustness.external_runs import (
    PlannedExternal,
    Told,
    derive_program,
    keep_external,
    read_external,
    run_line,
)
from storqual.robustness.external_suite import External
from storqual.run import append_event, read_run
from storqual.run.layout import now
from storqual.trials.bench_packages import install_package
from storqual.trials.link import Link, LinkError
from storqual.trials.one import BenchHere
from storqual.trials.session import bench_here
from storqual.virtual_bench.power import reset
from storqual.witness import notify_witness
from storqual_core.trial.stream import FOLDER

_SLACK_S = 240.0
"""What a run may take beside its program: guard, the end of what hangs, a scan, the look at all disks."""
_BACK_S = 900.0
_AGAIN_S = 5.0
_SILENT = 60
"""After how many half seconds of silence the bench is asked whether it is still the same boot."""
_ANSWER_S = 20.0


class LiveExternal:
    """One run of a program under way; every line that the bench tells is kept before anything is made of it."""

    def __init__(self, bench: BenchHere, program: External, planned: PlannedExternal, folder: Path, run: str) -> None:
        self._bench, self._program, self._planned, self._run = bench, program, planned, run
        self._seen = Told()
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = folder / f"{planned.id}.stream.jsonl"
        self.was_reset = False

    def run(self) -> dict[str, Any]:
        """The record. Raises LinkError when the bench does not answer when asked, or never again after a reset."""
        start, began = now(), time.monotonic()
        before = self._bench.link.run("cat /proc/sys/kernel/random/boot_id").strip()
        with self._kept.open("wb") as self._file_kept:
            self._take(run_line(self._run, self._planned, bench=self._bench.name, boot=before, start=start))
            for line in self._follow(self._program.run, self._program.limit, "run", before):
                self._take(line)
            silent = self._seen.end is None
            if silent or self._seen.stuck:
                self._take({"kind": "recovered", "text": self._reset(before, silent=silent)})
                self.was_reset = True
            self._take({"kind": "spent", "seconds": round(time.monotonic() - began, 1)})
        stream = keep_packed(self._kept.with_name(f"{self._kept.name}.gz"), self._kept.read_bytes())
        self._kept.unlink()
        named = dict(zip(("stream", "stream_sha256"), stream, strict=True))
        # of what was kept, and not of what was seen: whoever has the run can do the same
        lines = kept_lines(self._kept.parent, {"id": self._planned.id, **named}, "stream")
        return {**derive_program(lines, self._planned, self._program, run=self._run), **named}

    def _take(self, line: Mapping[str, Any]) -> None:
        """Keep a line, then read it."""
        self._file_kept.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self._file_kept.flush()
        self._seen.take(line)

    def _file(self, words: tuple[str, ...], limit_s: float, stream: str) -> bytes:
        bench, planned = self._bench, self._planned
        body = {
            "run": self._run,
            "state_dir": bench.state_dir,
            "drive": planned.drive,
            "adapter": bench.adapters[planned.adapter],
            "claims": {name: {"claim": claim} for name, claim in bench.claims[planned.adapter].items()},
            "claimed": [name for claims in bench.claims.values() for name in claims],
            "words": words,
            "checkout": self._program.checkout or "",
            "report": self._program.report or "",
            "limit_s": limit_s,
            "stream": stream,
        }
        return json.dumps(body).encode()

    def _follow(
        self, program: tuple[str, ...], limit_s: float, part: str, boot: str = ""
    ) -> Iterator[Mapping[str, Any]]:
        """Start the bench's program and give its lines as they come, until the bench has another boot than `boot`."""
        bench, base = self._bench, f"{FOLDER}/{self._planned.id}.{part}"
        bench.link.put(self._file(program, limit_s, f"{base}.jsonl"), f"{base}.json")
        code = (
            f"import sys; sys.path.insert(0, {bench.program!r}); "
            "from storqual_core.trial.external import main; sys.exit(main(sys.argv[1:]))"
        )
        words = " ".join(shlex.quote(word) for word in (bench.python, "-I", "-S", "-c", code, f"{base}.json"))
        bench.link.run(f": > {base}.jsonl; setsid {words} </dev/null >{base}.out 2>&1 &")
        silent = 0
        for line in bench.link.lines(f"{base}.jsonl", limit_s=limit_s + _SLACK_S):
            if line is not None:
                silent = 0
                yield line
                continue
            silent += 1
            if boot and silent % _SILENT == 0 and self._boot() not in ("", boot):
                return

    def _boot(self) -> str:
        """The bench's boot, empty while it does not answer."""
        try:
            return self._bench.link.run("cat /proc/sys/kernel/random/boot_id", limit_s=_ANSWER_S).strip()
        except LinkError:
            return ""

    def _reset(self, before: str, *, silent: bool) -> str:
        """Reset the bench and take the drive back; a sentence about it. Raises LinkError, StorqualError."""
        why = "the bench fell silent" if silent else self._seen.stuck.partition(":")[0]
        if silent and self._boot() not in ("", before):
            how = "it had restarted by itself"
        elif self._bench.virtual is not None:
            reset(self._bench.virtual)
            self._bench.link.cut()
            how = "its reset button was pressed"
        else:
            self._restart(before)
            how = "its kernel was told to reset it"
        taken = None
        for line in self._follow((), _SLACK_S, "reclaim"):
            taken = line if line["kind"] == "end" else taken
        if taken is None or taken["code"]:
            told = "no answer" if taken is None else taken["message"]
            raise LinkError(f"drive {self._planned.drive} cannot be taken back after a reset: {told}")
        return f"{why}; {how}, and the drive was stamped again"

    def _restart(self, before: str) -> None:
        """Have a bench without a reset button restart at once, and wait until it answers from another boot."""
        link = self._bench.link
        try:
            link.run(
                "sync & echo 1 > /proc/sys/kernel/sysrq; (sleep 1; echo b > /proc/sysrq-trigger) >/dev/null 2>&1 &"
            )
        except LinkError as problem:
            raise LinkError(f"the bench hangs and takes no reset from here: {problem}") from None
        end = time.monotonic() + _BACK_S
        while time.monotonic() < end:
            time.sleep(_AGAIN_S)
            link.cut()
            if self._boot() not in ("", before):
                return
        raise LinkError(f"the bench did not come back within {_BACK_S:g} s after a reset")


def run_external_session(
    path: Path, bench: str, session: str, link: Link, *, python: str, virtual: str, say: Callable[[str], None]
) -> bool:
    """Run what is left of a session; True when it is done, False when the bench must be provisioned again first.

    Raises LinkError when the bench does not answer, ToolError when a package cannot be installed.
    """
    run = read_run(path)
    files = read_external(run)
    made = {record["id"] for record in files.records}
    left = [one for one in files.planned if one.session == session and one.id not in made]
    if not left:
        return True
    here: BenchHere = bench_here(run, bench, link, python=python, virtual=virtual)
    arm = dict(files.sessions)[session]
    programs = {one.program: files.suite.external[one.program] for one in left}
    for package in dict.fromkeys(program.package for program in programs.values()):
        version = package and install_package(link, package, here.state_dir, virtual=here.virtual is not None)
        if version:
            append_event(path, "note", {"bench": bench, "text": f"installed {package} {version} on {bench}"})
    for number, planned in enumerate(left):
        append_event(path, "external_started", {"bench": bench, "session": session, "program": planned.id})
        live = LiveExternal(here, programs[planned.program], planned, path / KEPT, run.name)
        record = live.run()
        keep_external(path, record)
        for wrong in notify_witness(path, bench):
            say(f"{bench} | {wrong}")
        counted = Counter(outcome for _, outcome, _ in record["tests"])
        told = ", ".join(f"{outcome} {count}" for outcome, count in sorted(counted.items()))
        why = "; ".join(filter(None, (told, *record["reasons"], *record["problems"][:1], record["recovered"])))
        say(f"{bench} {arm} | program {number + 1} of {len(left)}: {planned.id} | {record['outcome']}: {why}")
        if live.was_reset and number + 1 < len(left):
            return False
    return True
