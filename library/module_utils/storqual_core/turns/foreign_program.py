# SPDX-License-Identifier: Apache-2.0
"""A foreign program on one claimed drive; its output goes to the stream.

The guard holds the drive while the program runs. The drive is lent: the program may write anywhere on it, and
afterwards it is stamped again. A drive that answers no more after a program that hung is removed and scanned for.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..host.kernel_log import KernelLog
from ..kit import command
from ..kit.errors import BadInputError, GuardRefusalError, MissingToolError, StorqualError, ToolError
from .bench_faults import ACTS
from .drive_faults import Aim
from .requests import ProgramRequest
from .subject import TurnSubject

MOST_OUTPUT = 16 << 20
"""Bytes of output that are told of one program; more is counted and dropped, and said."""
_LOOK_S = 0.5
_TERM_S = 10.0
_KILL_S = 30.0
_REST_S = 2.0
_CHUNK = 1 << 16


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended: exit status (negative for a signal, None where it cannot be killed), seconds.

    `hung` says that it was killed at its limit, `stuck` that the kernel could not end it even then, `cut` how many
    bytes of its output were not told.
    """

    status: int | None
    hung: bool
    stuck: bool
    seconds: float
    cut: int


def run_foreign(
    words: Sequence[str],
    *,
    limit_s: float,
    folder: str | None = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> ProgramEnd:
    """Run `words` in `folder` in a session of its own; `tell` takes pieces of both outputs together.

    Whoever the program leaves behind in its process group is killed too. Raises MissingToolError when it is not
    installed, ToolError when it cannot be started.
    """
    began = time.monotonic()
    try:
        child = subprocess.Popen(
            list(words),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C", "LANG": "C"},
        )
    except FileNotFoundError as problem:
        raise MissingToolError(f"`{problem.filename or words[0]}` is not there on this machine") from problem
    except OSError as problem:
        raise ToolError(f"`{words[0]}` cannot be started: {problem.strerror}") from problem
    output = _Output(child, tell)
    while child.poll() is None and time.monotonic() - began < limit_s:
        output.take(min(_LOOK_S, max(0.0, began + limit_s - time.monotonic())))
    hung = child.poll() is None
    if hung:
        _signal(child.pid, signal.SIGTERM)
        _await_end(child, output, _TERM_S)
    # what it left behind in its group would go on writing to the drive
    _signal(child.pid, signal.SIGKILL)
    stuck = not _await_end(child, output, _KILL_S)
    output.end()
    return ProgramEnd(child.poll(), hung, stuck, time.monotonic() - began, output.cut)


def _signal(group: int, which: signal.Signals) -> bool:
    """Signal a group; False when nobody is left in it."""
    try:
        os.killpg(group, which)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _await_end(child: subprocess.Popen[bytes], output: _Output, limit_s: float) -> bool:
    """Whether program and group have ended within `limit_s` seconds."""
    end = time.monotonic() + limit_s
    while child.poll() is None or _alive(child.pid):
        if time.monotonic() > end:
            return False
        output.take(0.05)
    return True


def _alive(group: int) -> bool:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, 0)
        return True
    return False


class _Output:
    """What a program prints, told in pieces."""

    def __init__(self, child: subprocess.Popen[bytes], tell: Callable[[str], None]) -> None:
        assert child.stdout is not None  # noqa: S101 - it was started with a pipe
        self._pipe = child.stdout
        os.set_blocking(self._pipe.fileno(), False)
        self._tell = tell
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._told = self.cut = 0
        self._open = True

    def take(self, wait_s: float) -> bool:
        """Wait that long for output and tell it; False when there was none."""
        if not self._open:
            time.sleep(min(wait_s, 0.05))
            return False
        if not select.select([self._pipe], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        self._open = bool(data)
        kept = data[: max(0, MOST_OUTPUT - self._told)]
        self._told += len(kept)
        self.cut += len(data) - len(kept)
        text = self._decode(kept)
        if text:
            self._tell(text)
        return bool(data)

    def end(self) -> None:
        """Tell what is left in the pipe; who holds it open after that is not waited for."""
        end = time.monotonic() + _REST_S
        while self._open and time.monotonic() < end and self.take(0):
            pass
        rest = self._decode(b"", final=True)
        if rest:
            self._tell(rest)
        self._pipe.close()


PLACEHOLDERS = ("drive", "sg", "out", "checkout")
"""What stands in braces in the words of a program: the drive's node, its SCSI generic node, an empty folder of its
own, the checkout that the suite names."""
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_ANSWER_S = 30.0
_BACK_S = 60.0
_AWAY_S = 1.0
_MOST_KERNEL = 200


def filled(words: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """The words with every placeholder replaced. Raises BadInputError for one without a value here."""
    missing = sorted({name for word in words for name in _PLACEHOLDER.findall(word) if not values.get(name)})
    if missing:
        raise BadInputError([f"{{{name}}}: found none on this bench, expected one" for name in missing])
    return [_PLACEHOLDER.sub(lambda match: values[match.group(1)], word) for word in words]


class ProgramRun:
    """One program under way."""

    def __init__(self, subject: TurnSubject, program: ProgramRequest) -> None:
        self._subject, self._asked = subject, program
        self._stream, self._machine = subject.stream, subject.machine

    def run(self) -> None:
        """Refuse what may not be, run the program, recover the drive. Raises StorqualError."""
        subject, stream = self._subject, self._stream
        subject.refuse_beyond("drive")
        subject.tell_state("before")
        log = KernelLog()
        usable, stuck = self._held_run()
        if not usable and not stuck:
            stuck = not self._scanned()
        if stuck:
            stream.line("stuck", text=f"drive {subject.id} does not answer: the bench needs a reset")
        lines = [record.line() for record in log.read() if record.from_kernel]
        log.close()
        stream.line("kernel", lines=lines[-_MOST_KERNEL:], left_out=max(0, len(lines) - _MOST_KERNEL))
        subject.tell_state("after")

    def _held_run(self) -> tuple[bool, bool]:
        """Run the program on the held drive; whether the drive answers afterwards, whether the bench is stuck."""
        subject = self._subject
        with subject.hold() as held:
            held.lend(subject.id)
            node = self._machine.path(held[subject.id])
            # after a reset of the bench the drive is only taken back
            ended = self._program(node) if subject.part == "all" else None
            if ended is not None and ended.stuck:
                return False, True
            usable = _answers(node)
            if usable:
                held.reclaim(subject.id)
                if ended is not None and ended.hung:
                    text = f"drive {subject.id} answers: nothing had to be brought back"
                    self._stream.line("recovered", how="killed", text=text)
        return usable, False

    def _program(self, node: str) -> ProgramEnd:
        request, stream = self._asked, self._stream
        drive = self._subject.drive()
        if drive is None:
            raise GuardRefusalError([f"drive {self._subject.id}: it went away before the program began"])
        out = self._subject.batch.spool.with_suffix(".out.d")
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(mode=0o700, parents=True)
        words = filled(request.words, {"drive": node, "sg": drive.sg, "out": str(out), "checkout": request.checkout})
        stream.line("program", words=words)
        ended = run_foreign(
            words,
            limit_s=request.limit_s,
            folder=request.checkout or str(out),
            tell=lambda text: stream.line("output", text=text),
        )
        if request.report and not ended.stuck:
            stream.line("report", **_report(out / request.report))
        stream.line("ended", **ended.__dict__)
        shutil.rmtree(out, ignore_errors=True)
        return ended

    def _scanned(self) -> bool:
        """Whether the drive answers after it was removed and found again by a scan; then it is taken back."""
        subject, stream = self._subject, self._stream
        drive = subject.drive()
        if drive is None:
            return False
        aim = Aim(self._machine, command.run, drive, _AWAY_S, _BACK_S)
        try:
            ACTS["sysfs_delete"](aim, subject.report)
            with subject.hold() as held:
                if not _answers(self._machine.path(held[subject.id])):
                    return False
                held.reclaim(subject.id)
        except (StorqualError, OSError) as problem:
            subject.report("failed", str(problem))
            return False
        text = f"drive {subject.id} did not answer, was removed, and answers after a scan"
        stream.line("recovered", how="scanned", text=text)
        return True


def _report(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_OUTPUT + 1)
    except OSError as problem:
        return {"text": "", "problem": f"{path.name}: {problem.strerror}"}
    too_long = f"{path.name}: more than {MOST_OUTPUT} bytes" if len(data) > MOST_OUTPUT else ""
    return {"text": data[:MOST_OUTPUT].decode("utf-8", "replace"), "problem": too_long}


def _answers(node: str) -> bool:
    """Whether a drive gives its first sectors within half a minute; asked by a process that can be left behind."""
    words = ["dd", f"if={node}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct"]
    try:
        ended = run_foreign(words, limit_s=_ANSWER_S)
    except ToolError:
        return False
    return ended.status == 0
