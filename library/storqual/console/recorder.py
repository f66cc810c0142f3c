# SPDX-License-Identifier: Apache-2.0
"""The recorder: a process of its own that keeps what a console says, and types at it for whoever asks.

It is started as `python -P -m storqual.console.recorder` with its order as JSON on standard input, says `ready` when
it holds its lock, and outlives whoever started it.
"""

import fcntl
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.console_log import (
    BEGINS,
    ENDS,
    EXPECTED,
    GAP,
    NET,
    NO_LONGER,
    NOTE,
    LineStamper,
    read_recording,
    utc_stamp,
)
from storqual.console.recording import Recording
from storqual.console.sources import (
    ConsoleLostError,
    ConsoleSource,
    NetconsoleListener,
    OpenConsole,
    source_from_plain,
)
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import StorqualError, ToolError

_AGAIN_S = (0.5, 1.0, 2.0, 4.0)
"""Until the next attempt to connect, by how many failed in a row; the last one holds for all that follow."""
_REST_S = 1.0
"""After so long a line that does not end is written as far as it came."""
_ALONE_S = 86400.0
"""A recorder that had no console for a day ends: its bench is gone."""
_ASK_S = 1.0
_END_BYTES = 4096
_MOST_ASKED = 65536
_SYSRQ_S = 0.2
"""Between the BREAK and its letter; the kernel takes the letter for five seconds."""


@dataclass(frozen=True)
class RecorderPlaces:
    """Files of a recorder: the recording with lock and pidfile, and the socket by which it is asked."""

    folder: Path

    @property
    def pidfile(self) -> Path:
        return self.folder / "recorder.json"

    @contextmanager
    def control(self) -> Iterator[str]:
        """The path of the socket, which is short however deep the folder lies: more than 107 bytes is no address."""
        opened = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{opened}/control"
        finally:
            os.close(opened)


class Recorder:
    """One console, and the netconsole of its bench; a bench may have either alone."""

    def __init__(self, places: RecorderPlaces, order: Mapping[str, Any]) -> None:
        """Raises ToolError where netconsole cannot be listened to."""
        self._places, self._order = places, order
        self._source = source_from_plain(order["source"])
        self._listener = NetconsoleListener(**order["netconsole"]) if order["netconsole"] else None
        self._recording = Recording(places.folder)
        self._messages = LineStamper(NET)
        self._stamper = LineStamper()
        self._selector = selectors.DefaultSelector()
        self._line: OpenConsole | None = None
        self._failed = 0
        self._since = self._again_at = self._heard = time.monotonic()
        self._why = "it was not connected yet" if self._source else "netconsole only listens"
        self._told = ""
        self._ends = ""
        self._unwritten = 0
        # the clock of the machine may be set, also back; one that counts while it sleeps is not
        self._offset = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def run(self, ready: Callable[[], None]) -> None:
        """Record until it is ended or the console was away for a day; `ready` is called when it can be asked."""
        awake, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._end("it was told to end"))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._selector.register(awake, selectors.EVENT_READ)
        with self._places.control() as path, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
            Path(path).unlink(missing_ok=True)
            control.bind(path)
            control.listen(8)
            self._selector.register(control, selectors.EVENT_READ, control)
            if self._listener is not None:
                self._selector.register(self._listener.socket, selectors.EVENT_READ, self._listener)
            if self._recording.mark() and not self._ended_before():
                self._note(f"{GAP}the recorder was killed, or its machine went down")
            self._note(f"{BEGINS}{self._order['words']}")
            ready()
            try:
                while not self._ends and self._places.folder.is_dir():
                    self._turn()
            finally:
                self._disconnect()
                if self._listener is not None:
                    self._listener.close()
                if self._places.folder.is_dir():
                    self._note(f"{ENDS}{self._ends or 'it failed'}")
                    Path(path).unlink(missing_ok=True)

    def _ended_before(self) -> bool:
        """Whether what was recorded before has an end."""
        last = [*read_recording(self._recording.read(max(0, self._recording.mark() - _END_BYTES)))][-1:]
        return any(line.mark == NOTE and line.text.startswith(ENDS) for line in last)

    def _turn(self) -> None:
        now = time.monotonic()
        if self._source is not None and self._line is None and now >= self._again_at:
            self._connect(self._source)
        if self._away and now - self._since > _ALONE_S:
            self._end("nothing was heard for a day")
            return
        wait = max(0.0, self._again_at - time.monotonic()) if self._away else _REST_S
        for key, _ in self._selector.select(wait):
            if isinstance(key.data, socket.socket):
                self._answer(key.data)
            elif key.data is self._line is not None:
                self._receive(self._line)
            elif key.data is self._listener is not None:
                self._listen(self._listener)
        if time.monotonic() - self._heard >= _REST_S:
            self._write(self._stamper.rest(self._stamp()))

    @property
    def _away(self) -> bool:
        return self._line is None and self._source is not None

    def _listen(self, listener: NetconsoleListener) -> None:
        at, lines = self._stamp(), b""
        for note, text in listener.receive():
            lines += (self._messages.note(note, at) if note else b"") + self._messages.take(text, at)
        self._write(lines)

    def _connect(self, source: ConsoleSource) -> None:
        try:
            line = source.open()
        except ConsoleLostError as problem:
            self._missed(str(problem))
            return
        self._line = line
        for number in line.filenos():
            self._selector.register(number, selectors.EVENT_READ, line)
        away = time.monotonic() - self._since
        self._note(f"connected{f' after {away:.1f} s' if self._told else ''}")
        self._why = ""

    def _receive(self, line: OpenConsole) -> None:
        before = line.filenos()
        try:
            data = line.receive()
        except ConsoleLostError as problem:
            self._missed(str(problem))
            return
        for number in set(before) - set(line.filenos()):
            self._selector.unregister(number)
        if data:
            # a connection that ends as soon as it began is none
            self._failed = 0
            self._told = ""
            self._heard = time.monotonic()
            self._write(self._stamper.take(data, self._stamp()))

    def _missed(self, why: str) -> None:
        if self._line is not None:
            self._since = time.monotonic()
        self._disconnect()
        self._again_at = time.monotonic() + _AGAIN_S[min(self._failed, len(_AGAIN_S) - 1)]
        self._failed += 1
        self._why = why
        if why != self._told:
            # of a console that is away for hours, each attempt would be a line
            self._note(f"{GAP}{why}")
            self._told = why

    def _disconnect(self) -> None:
        if self._line is not None:
            for number in self._line.filenos():
                with suppress(KeyError):
                    self._selector.unregister(number)
            self._line.close()
        self._line = None

    def _end(self, why: str) -> None:
        self._ends = why

    def _stamp(self) -> str:
        return utc_stamp(time.clock_gettime(time.CLOCK_BOOTTIME) + self._offset)

    def _note(self, text: str) -> None:
        self._write(self._stamper.note(text, self._stamp()))

    def _write(self, lines: bytes) -> None:
        if not lines:
            return
        try:
            if self._unwritten:
                lost = f"{GAP}{self._unwritten} bytes could not be written on the control node"
                self._recording.append(f"{self._stamp()} {NOTE} {lost}\n".encode())
                self._unwritten = 0
            self._recording.append(lines)
        except OSError:
            # a disk that is full is no reason to stop listening
            self._unwritten += len(lines)

    def _answer(self, control: socket.socket) -> None:
        """One question of somebody, a line of JSON, and the answer to it."""
        peer, _ = control.accept()
        with peer:
            peer.settimeout(_ASK_S)
            with suppress(OSError):
                line = b""
                while not line.endswith(b"\n") and len(line) < _MOST_ASKED and (data := peer.recv(_MOST_ASKED)):
                    line += data
                peer.sendall(json.dumps(self._answer_to(line)).encode() + b"\n")

    def _answer_to(self, line: bytes) -> dict[str, Any]:
        try:
            question = json.loads(line)
            act: Callable[[], None] = {
                "status": lambda: None,
                "break": self._break,
                "sysrq": lambda: self._sysrq(str(question["letter"])),
                "expect": lambda: self._expect(float(question["for_s"]), str(question["why"])),
                "no_longer": lambda: self._note(NO_LONGER),
            }[question["do"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"refused": "this is no question that a recorder answers"}
        try:
            act()
        except ToolError as problem:
            if isinstance(problem, ConsoleLostError):
                self._missed(str(problem))
            return {"refused": str(problem)}
        away = time.monotonic() - self._since if self._away else 0.0
        silent = time.monotonic() - self._heard
        here = {"connected": not self._away, "away_s": round(away, 1), "why": self._why}
        return {**here, "silent_s": round(silent, 1), "mark": self._recording.mark()}

    def _open_line(self) -> OpenConsole:
        if self._line is None:
            raise ToolError(f"nothing can be typed: the console is not connected ({self._why})")
        return self._line

    def _break(self) -> None:
        self._open_line().send_break()
        self._note("typed: BREAK")

    def _sysrq(self, letter: str) -> None:
        if len(letter) != 1 or not (letter.isascii() and letter.isalnum()):
            raise ToolError(f"{letter!r} is no letter of sysrq")
        line = self._open_line()
        # noted first: what the kernel answers stands behind it
        self._note(f"typed: BREAK {letter}")
        line.send_break()
        time.sleep(_SYSRQ_S)
        line.send(letter.encode())

    def _expect(self, for_s: float, why: str) -> None:
        until = time.clock_gettime(time.CLOCK_BOOTTIME) + self._offset + for_s
        self._note(f"{EXPECTED}{utc_stamp(until)}: {why}")


def record(order: Mapping[str, Any], ready: Callable[[], None]) -> None:
    """Record the console of `order` until it is told to end. Raises ToolError where another one does."""
    places = RecorderPlaces(Path(order["folder"]))
    places.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(places.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ToolError(f"another recorder holds {places.folder}") from None
    public = {name: order[name] for name in ("bench", "words", "way", "run")}
    pid = os.getpid()
    replace_file(places.pidfile, json.dumps({**public, "pid": pid, "start_ticks": child.ticks_of_start(pid)}))
    try:
        Recorder(places, order).run(ready)
    finally:
        if places.folder.is_dir():
            places.pidfile.unlink(missing_ok=True)


def main() -> None:
    """Take the order, say `ready`, and let go of whoever started it."""
    order = json.load(sys.stdin)
    os.umask(0o077)

    def ready() -> None:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        os.chdir("/")

    try:
        record(order, ready)
    except StorqualError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(problem.exit_code)


if __name__ == "__main__":
    main()
