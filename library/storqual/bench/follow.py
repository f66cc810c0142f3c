# SPDX-License-Identifier: Apache-2.0
"""Follow what a bench runs by itself, by the lines that it writes: the one follower, with two modes.

A durable batch is polled by short shell commands. A slow bench (an emulated one above all) must not spend its
processor on answering questions while it measures, and a Python start-up a second would be just that. What streamed
turns tell is fetched as it happens, because a power cut may take the bench's disk.
"""

import posixpath
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from storqual.base import child
from storqual.base.files import parse_json
from storqual.base.text import terminal_text
from storqual.bench.lease import LOST, fence, lost
from storqual.run import append_event, collect, iter_events, read_batch
from storqual.run.files import LIMITS
from storqual.run.layout import EVENTS
from storqual.run.time_left import Left, TimeLeft
from storqual_core.kit.errors import StorqualError

_MARK = "--storqual--"
_REFUSED = 4


class Tail:
    """A file of lines that grows on a bench, from where it was read before: a lost connection loses none of them."""

    def __init__(self, path: str) -> None:
        self._path = shlex.quote(path)
        self._offset, self._rest = 0, bytearray()

    def command(self, *, follow: bool = False) -> str:
        """What prints the rest of the file, and with `follow` what is added to it."""
        return f"tail -c +{self._offset + 1}{' -f' if follow else ''} {self._path}"

    def take(self, data: bytes) -> list[bytes]:
        """The lines that are whole with this. Raises StorqualError for one that does not end."""
        self._offset += len(data)
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > LIMITS[EVENTS].line:
            raise StorqualError(f"the bench tells a line of more than {LIMITS[EVENTS].line} bytes")
        return [line + b"\n" for line in lines]


SILENCE_S = 0.5
"""After so long without a line a stream says that it is silent."""
_AGAIN_S = 1.0


def stream(connection: "Connection", path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
    """The JSON lines of a growing file as they come, None in every half second of silence.

    A connection that is lost is made again, and goes on behind the last byte. Ends with a line of kind `end`, with
    `limit_s` seconds, or when the caller stops asking.
    """
    tail, end = Tail(path), time.monotonic() + limit_s
    while time.monotonic() < end:
        with connection.lasting(tail.command(follow=True)) as process:
            for data in _output(process, connection.greeting.encode(), end):
                lines = [spool_line(line) for line in tail.take(data)] if data else [None]
                for line in lines:
                    yield line
                    if line is not None and line.get("kind") == "end":
                        return
        yield None
        time.sleep(_AGAIN_S)


def _output(process: subprocess.Popen[bytes], greeting: bytes, end: float) -> Iterator[bytes]:
    """What a process prints behind its greeting, nothing in every half second of silence; ends when it does."""
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    begin, greets = b"", bool(greeting)
    while time.monotonic() < end:
        ready, _, _ = select.select([process.stdout], [], [], SILENCE_S)
        data: bytes = process.stdout.read1(1 << 16) if ready else b""  # type: ignore[attr-defined]
        if ready and not data:
            return
        if greets and data:
            begin += data
            first, newline, rest = begin.partition(b"\n")
            if not newline:
                continue
            data, greets = rest if first.startswith(greeting) else begin, False
        yield data


class ConnectionLostError(StorqualError):
    """The bench did not answer, or a command on it failed."""


class UnreachableError(ConnectionLostError):
    """The bench does not answer right now; what it measures goes on."""


class Shell(Protocol):
    """One way to run a command on the bench."""

    def __call__(self, command: str) -> tuple[int, str, str]:
        """Return exit status, stdout, stderr. Raises UnreachableError when the connection is lost."""


@dataclass(frozen=True)
class BatchPaths:
    """Where a batch lives on its bench."""

    program: str
    batch_file: str
    spool: str
    progress: str
    lock: str
    python: str = "python3"


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is, as its bench last said."""

    batch: str
    index: int
    of: int
    point: str
    iops_now: float | None
    eta_s: float | None


@dataclass(frozen=True)
class BatchEnd:
    """How a batch ended: `outcome` is done, refused, stopped or died."""

    outcome: str
    message: str
    samples: int


@dataclass(frozen=True)
class Stopped:
    """A bench under which a batch does not go on: a sentence, for how long, and whether it answers."""

    reason: str
    seconds: float
    answers: bool


ANSWER_SILENCE_S = 30.0
"""For so long a bench may not answer before it is brought back."""


class _Stillness:
    """For how long launches have made no I/O; a launch that is prepared or read back says nothing of its rate."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._since, self._index = clock, clock(), -1

    def look(self, progress: BatchProgress | None, *, progressed: bool) -> float:
        if progressed or progress is None or progress.iops_now != 0 or progress.index != self._index:
            self._since, self._index = self._clock(), -1 if progress is None else progress.index
        return self._clock() - self._since


def spool_line(line: bytes) -> dict[str, Any]:
    """A line that a bench tells. Raises StorqualError for one that is no JSON object."""
    value = parse_json(line, LIMITS[EVENTS].values)
    if not isinstance(value, dict):
        raise StorqualError(f"the bench told {line[:80]!r}, expected a JSON object")
    return value


def _parse_progress(text: str) -> BatchProgress | None:
    """The bench's progress file; None while there is none, it is being replaced, or it says what none does."""
    try:
        body: Mapping[str, object] = spool_line(text.encode())
        index, of = (max(0, int(str(body.get(name, 0)))) for name in ("index", "of"))
    except (StorqualError, ValueError):
        return None
    now = (body.get(name) for name in ("iops_now", "eta_s"))
    iops, eta = (float(value) if isinstance(value, (int, float)) else None for value in now)
    return BatchProgress(str(body.get("block", "")), index, of, str(body.get("point", "")), iops, eta)


def follow(
    shell: Shell,
    paths: BatchPaths,
    *,
    collect: Callable[[str], int],
    show: Callable[[BatchProgress | None, str], None],
    poll_s: float = 2.0,
    patience_s: float = 900.0,
    tick: Callable[[], None] = lambda: None,
    bring_back: Callable[[BatchProgress | None, Stopped], None] | None = None,
    still_s: float = 600.0,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> BatchEnd:
    """Start or attach to the batch, collect its spool line by line, and return how it ended.

    `collect` takes complete spool lines and returns how many samples were new; `show` is told about progress and
    connection trouble; `tick` is called on every turn. A bench that does not answer for ANSWER_SILENCE_S seconds, or
    whose launch makes no I/O for `still_s`, is given to `bring_back` with how far it was; without that, one that is
    silent for `patience_s` seconds raises UnreachableError. Starting a batch that runs already attaches to it; one
    that is finished is only collected.
    """
    started = False
    why = "the bench program ended without finishing its batch"
    samples = 0
    tail = Tail(paths.spool)
    silent_since: float | None = None
    progress: BatchProgress | None = None
    stillness = _Stillness(clock)
    command = " ".join(shlex.quote(word) for word in (paths.python, paths.program, "start", paths.batch_file))
    progress_file, lock = shlex.quote(paths.progress), shlex.quote(paths.lock)
    while True:
        try:
            if not started:
                rc, out, err = shell(command)
                if rc == _REFUSED:
                    return BatchEnd("refused", (err or out).strip(), samples)
                if rc != 0:
                    # what an earlier boot spooled is collected all the same
                    why = (err or out).strip()
                started = True
            # the lock is asked first: a batch that ends between the two questions has then written its last line
            # the bench waits for the end itself: nobody sleeps while a batch is over, and no processor time is spent
            rc, out, err = shell(
                f"flock -w {poll_s:g} {lock} true && echo free || echo held; cat {progress_file} 2>/dev/null; "
                f"echo {_MARK}; {tail.command()} 2>/dev/null"
            )
            silent_since = None
        except UnreachableError as problem:
            silent_since = silent_since if silent_since is not None else clock()
            silent_s = clock() - silent_since
            if bring_back is not None and silent_s >= ANSWER_SILENCE_S:
                bring_back(progress, Stopped("it stopped answering", silent_s, answers=False))
                silent_since, stillness = None, _Stillness(clock)
                continue
            if silent_s > patience_s:
                raise
            show(None, f"bench does not answer ({problem}); it finishes the batch on its own, trying again")
            wait(poll_s)
            continue
        head, _, added = out.partition(_MARK + "\n")
        held, _, answer = head.partition("\n")
        lines = tail.take(added.encode())
        if lines:
            samples += collect(b"".join(lines).decode())
            last = spool_line(lines[-1])
            if last.get("kind") == "end":
                return BatchEnd(str(last.get("outcome", "done")), str(last.get("message") or ""), samples)
        progress = _parse_progress(answer)
        show(progress, "")
        tick()
        still = stillness.look(progress, progressed=bool(lines))
        if bring_back is not None and held != "free" and still >= still_s:
            bring_back(progress, Stopped(f"a launch made no I/O for {still:.0f} s", still, answers=True))
            stillness = _Stillness(clock)
        if held == "free":
            return BatchEnd("died", why, samples)


def describe(bench: str, arm: str, progress: BatchProgress, left: Left) -> str:
    """Which bench, arm, batch, launch k of n of the batch, IOPS now, time left of the campaign."""
    # before the first launch, `point` says what is done
    launch = "" if progress.eta_s is None else f"launch {progress.index + 1} of {progress.of}: "
    parts = [f"{bench} {arm}", f"batch {progress.batch}", f"{launch}{progress.point}"]
    if progress.iops_now is not None:
        parts.append(f"{progress.iops_now:,.0f} IOPS now")
    return terminal_text(" | ".join([*parts, str(left)]))


class Collector:
    """One batch of one run; it is started in the run's record once, however often it is followed."""

    def __init__(self, run: Path, bench: str, batch: str) -> None:
        self._run = run
        self._batch = batch
        self._planned = read_batch(run, batch)
        self._bench = bench
        self._kept: list[str] = []
        self._left = TimeLeft(run, bench, batch)
        fields = {"bench": bench, "session": self._planned["session"], "block": batch}
        if not any(e.kind == "block_started" and e.fields.get("block") == batch for e in iter_events(run)):
            append_event(run, "block_started", fields)

    @property
    def measured(self) -> bool:
        """Whether the run holds any sample yet."""
        path = self._run / "samples.jsonl"
        return path.is_file() and path.stat().st_size > 0

    def take(self, text: str) -> int:
        """Store the samples in complete spool lines; returns how many were new.

        Everything but samples is kept and given again, because the event that ends a batch needs its start and all
        of its kernel log.
        """
        lines = text.splitlines(keepends=True)
        kinds = [spool_line(line.encode()).get("kind") for line in lines]
        self._kept += [line for line, kind in zip(lines, kinds, strict=True) if kind != "sample"]
        samples = [line for line, kind in zip(lines, kinds, strict=True) if kind == "sample"]
        return collect(self._run, self._batch, "".join([*self._kept[:1], *samples, *self._kept[1:]])).new

    def lose(self, reason: str) -> None:
        """Close the batch: its program ended without a last line, and why."""
        collect(self._run, self._batch, "".join(self._kept), lost=reason)

    def arm_of(self, progress: BatchProgress) -> str:
        return str(self.turn_of(progress)["arm"])

    def turn_of(self, progress: BatchProgress | None) -> Mapping[str, Any]:
        turns: Sequence[Mapping[str, Any]] = self._planned["turns"]
        return turns[min(progress.index if progress else 0, len(turns) - 1)]

    @property
    def planned(self) -> Mapping[str, Any]:
        return self._planned

    def left(self, progress: BatchProgress) -> Left:
        """Until the bench is restored and the run published."""
        return self._left.left(progress.eta_s)

    def paths(self, state_dir: str, program: str, python: str) -> BatchPaths:
        """Where this batch lives under the bench's state folder."""
        spool = f"{state_dir}/spool/{self._planned['run']}"
        return BatchPaths(
            program=f"{state_dir}/{program}",
            batch_file=f"{spool}/{self._batch}.json",
            spool=f"{spool}/{self._batch}.jsonl",
            progress=f"{spool}/progress.json",
            lock=f"{state_dir}/lock",
            python=python,
        )


_COMMAND_S = 60.0
_OF_SSH = 255
"""The exit status of ssh itself."""


def putting(path: str) -> str:
    """The shell command that makes a file of its input; the name has all of it, also after a power cut."""
    quoted, folder = shlex.quote(path), shlex.quote(posixpath.dirname(path))
    return f"mkdir -p {folder} && cat > {quoted}.part && sync {quoted}.part && mv {quoted}.part {quoted}"


@dataclass
class Connection:
    """One bench; safe from several threads. `words` makes of a shell command what is run here to have it run there.

    `parting` is what ends the connection without a word to what runs on the bench. A line that begins with `greeting`
    comes before the output of every command (of sudo, by Ansible, another one each time). `remote` is False where it
    leads to this machine. With a `lease` every command is given under that reservation, and raises LeaseLostError
    when it counts no longer.
    """

    host: str
    words: Callable[[str], Sequence[str]]
    parting: Sequence[str]
    greeting: str = ""
    remote: bool = True
    lease: str = ""
    _lasting: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def call(self, command: str, *, data: bytes = b"", limit_s: float = _COMMAND_S) -> tuple[int, str]:
        """Exit status of a shell command on the bench, and what it printed, or its complaint where it failed.

        Raises ConnectionLostError when it does not end in time, or the connection is lost.
        """
        try:
            ended = child.run(self._fenced(command), input=data, capture_output=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise ConnectionLostError(f"{self.host} did not end `{command[:80]}` within {limit_s:g} s") from None
        complaint = ended.stderr.decode("utf-8", "replace").strip()
        if self.lease and ended.returncode == LOST:
            raise lost(self.lease, complaint)
        if ended.returncode == _OF_SSH:
            last = complaint.splitlines() or ["no message"]
            raise ConnectionLostError(f"`{command[:80]}` on {self.host} ended with {_OF_SSH}: {last[-1]}")
        output = ended.stdout.decode("utf-8", "replace")
        if self.greeting and output.startswith(self.greeting):
            output = output.partition("\n")[2]
        return ended.returncode, complaint or output if ended.returncode else output

    def _fenced(self, command: str) -> list[str]:
        return list(self.words(fence(self.lease) + command))

    def run(self, command: str, *, data: bytes = b"", limit_s: float = _COMMAND_S) -> str:
        """What a shell command on the bench prints. Raises ConnectionLostError, also when it fails."""
        status, output = self.call(command, data=data, limit_s=limit_s)
        if status:
            last = output.splitlines() or ["no message"]
            raise ConnectionLostError(f"`{command[:80]}` on {self.host} ended with {status}: {last[-1]}")
        return output

    def put(self, data: bytes, path: str) -> None:
        """Write a file on the bench; its name has all of it, also after a power cut. Raises ConnectionLostError."""
        self.run(putting(path), data=data)

    def boot_id(self, *, limit_s: float = _COMMAND_S) -> str:
        """Which boot the bench runs. Raises ConnectionLostError."""
        return self.run("cat /proc/sys/kernel/random/boot_id", limit_s=limit_s).strip()

    def cut(self) -> None:
        """End the connection as a lost one ends: without a word to what runs on the bench."""
        child.run(list(self.parting), capture_output=True, timeout=_COMMAND_S)
        if self._lasting is not None:
            self._lasting.kill()

    @contextmanager
    def lasting(self, command: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that runs there until it is left, or the connection is cut; its output comes by a pipe."""
        self._lasting = child.start(
            self._fenced(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            yield self._lasting
        finally:
            self._lasting.kill()
            self._lasting.wait()
