# SPDX-License-Identifier: Apache-2.0
"""Ways to a console: a socket that may speak telnet, a program that somebody else wrote, or netconsole."""

import ctypes
import fcntl
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import termios
import tty
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.base.console_log import NetconsoleText, datagram_of
from storqual.inputs.bmc import ipmitool_environment
from storqual.inputs.console_way import ConsoleWay
from storqual.virtual_bench.places import make_private
from storqual_core.kit.errors import ToolError

_LONGEST = 1 << 16
_BUFFER = 1 << 20
"""A whole panic, or the tasks that sysrq lists, come within a moment."""
_AT_ONCE = 64
"""Datagrams that are taken before the console and whoever asks are served again."""


class NetconsoleListener:
    """Takes what comes to an address and port from one sender; without a port, frames to a virtual bench's socket."""

    def __init__(self, listen: str, port: int = 0, sender: str = "") -> None:
        """Raises ToolError where it cannot be listened there."""
        self._path = None if port else Path(listen)
        self._sender, self._refused = sender, False
        self._text = NetconsoleText()
        family = socket.AF_UNIX if not port else socket.AF_INET6 if ":" in listen else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self.socket.settimeout(0)
        if self._path is not None:
            make_private(self._path.parent)
            self._path.unlink(missing_ok=True)
        try:
            self.socket.bind((listen, port) if port else listen)
        except OSError as problem:
            self.socket.close()
            where = f"{listen}, port {port}" if port else listen
            raise ToolError(f"netconsole cannot be listened to at {where}: {problem.strerror}") from None

    def receive(self) -> Iterator[tuple[str, bytes]]:
        """Of each datagram that waits what is to be noted, and its lines."""
        with suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                data, peer = self.socket.recvfrom(_LONGEST)
                if self._path is not None:
                    yield self._text.take(datagram_of(data))
                elif ip_address(peer[0].partition("%")[0]) == ip_address(self._sender):
                    yield self._text.take(data)
                elif not self._refused:
                    # said once: whoever floods this port must not fill the recording
                    self._refused = True
                    yield f"datagrams of {peer[0]} are not kept: the bench is {self._sender}", b""

    def close(self) -> None:
        self.socket.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            with suppress(OSError):
                self._path.parent.rmdir()


_CONNECT_S = 4.0
_TYPE_S = 5.0
_BEFORE_S = 10.0
_END_S = 2.0
_CHUNK = 65536
_LAST_WORDS = 4096
_PR_SET_PDEATHSIG = 1
# telnet (RFC 854): a break is all that is ever asked for, and every option is refused
_IAC, _DONT, _DO, _WONT, _WILL, _SB, _SE, _BREAK = 255, 254, 253, 252, 251, 250, 240, 243


class ConsoleLostError(ToolError):
    """The way to a console ended, or could not be gone."""


class Telnet:
    """What a telnet server sends, without its commands: each option that it offers or wants is refused once."""

    def __init__(self) -> None:
        self._command = b""
        self._answered: set[tuple[int, int]] = set()

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """The text in it, and what is to be answered. A command may end in the next data."""
        text, answer = bytearray(), bytearray()
        for byte in data:
            if not self._command:
                if byte == _IAC:
                    self._command = bytes([byte])
                else:
                    text.append(byte)
                continue
            self._command += bytes([byte])
            verb = self._command[1]
            if verb == _IAC:
                text.append(_IAC)
                self._command = b""
            elif verb == _SB:
                # its length is the server's choice: what it says is not kept, only whether it ends
                ended = self._command[-2:] == bytes([_IAC, _SE])
                self._command = b"" if ended else bytes([_IAC, _SB]) + self._command[2:][-1:]
            elif verb not in (_WILL, _WONT, _DO, _DONT):
                self._command = b""
            elif len(self._command) == 3:
                if verb in (_WILL, _DO) and (verb, byte) not in self._answered:
                    self._answered.add((verb, byte))
                    answer += bytes([_IAC, _DONT if verb == _WILL else _WONT, byte])
                self._command = b""
        return bytes(text), bytes(answer)


@dataclass(frozen=True)
class SocketSource:
    """`host` is the path of a Unix socket where `port` is 0."""

    host: str
    port: int = 0

    def open(self) -> "_SocketLine":
        """Connect. Raises ConsoleLostError."""
        try:
            if not self.port:
                made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    made.settimeout(_CONNECT_S)
                    made.connect(self.host)
                except OSError:
                    made.close()
                    raise
            else:
                made = socket.create_connection((self.host, self.port), timeout=_CONNECT_S)
                # a server that lost its power says nothing: without this it would be listened to for ever
                made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        except OSError as problem:
            raise ConsoleLostError(f"no connection: {problem.strerror or problem}") from None
        made.settimeout(_TYPE_S)
        return _SocketLine(made)


class _SocketLine:
    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._telnet = connected, Telnet()

    def filenos(self) -> tuple[int, ...]:
        return (self._socket.fileno(),)

    def receive(self) -> bytes:
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError:
            return b""
        except OSError as problem:
            raise ConsoleLostError(f"the connection ended: {problem.strerror}") from None
        if not data:
            raise ConsoleLostError("the connection was closed by the other end")
        text, answer = self._telnet.take(data)
        if answer:
            self._all(answer)
        return text

    def send(self, data: bytes) -> None:
        self._all(data.replace(bytes([_IAC]), bytes([_IAC, _IAC])))

    def send_break(self) -> None:
        self._all(bytes([_IAC, _BREAK]))

    def close(self) -> None:
        self._socket.close()

    def _all(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as problem:
            raise ConsoleLostError(f"nothing can be typed: {problem.strerror or problem}") from None


@dataclass(frozen=True)
class ProgramSource:
    """A program with a terminal of its own; `first` is run ahead of it, `secret` is for its environment alone.

    `break_keys` make it send a BREAK; empty where it cannot.
    """

    argv: tuple[str, ...]
    break_keys: str = ""
    first: tuple[str, ...] = ()
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)

    def open(self) -> "_ProgramLine":
        """Start it. Raises ConsoleLostError."""
        if self.first:
            with suppress(OSError, subprocess.TimeoutExpired):
                child.run(self.first, env=self.secret, stdout=child.DEVNULL, stderr=child.DEVNULL, timeout=_BEFORE_S)
        return _ProgramLine(self)


class _ProgramLine:
    """Its terminal is raw, and nothing is ever typed but by us: a program that reads to the end finds none."""

    def __init__(self, source: ProgramSource) -> None:
        self._source = source
        self._complaints, self._complained = b"", False
        self._master, terminal = pty.openpty()
        tty.setraw(terminal)
        try:
            self._process = child.start(
                source.argv,
                env=source.secret,
                stdin=terminal,
                stdout=terminal,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=_end_with_recorder,  # the recorder has one thread
            )
        except OSError as problem:
            os.close(self._master)
            raise ConsoleLostError(f"{source.argv[0]} cannot be started: {problem.strerror}") from None
        finally:
            os.close(terminal)
        assert self._process.stderr is not None  # noqa: S101 - it is a pipe, for mypy
        self._errors = self._process.stderr
        os.set_blocking(self._master, False)
        os.set_blocking(self._errors.fileno(), False)

    def filenos(self) -> tuple[int, ...]:
        return (self._master, *([] if self._complained else [self._errors.fileno()]))

    def receive(self) -> bytes:
        self._hear_complaints()
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:
            # what Linux says of a terminal that nobody has open any more
            data = b""
        if data:
            return data
        self._end()
        self._hear_complaints()
        complaints = self._complaints.decode("utf-8", "replace").strip().splitlines()
        reason = f": {complaints[-1]}" if complaints else ""
        raise ConsoleLostError(f"{self._source.argv[0]} ended with {self._process.returncode}{reason}")

    def _hear_complaints(self) -> None:
        """What the program says of itself is no console; its last words tell why it ended."""
        with suppress(BlockingIOError):
            data = os.read(self._errors.fileno(), _CHUNK)
            self._complaints = (self._complaints + data)[-_LAST_WORDS:]
            self._complained = not data

    def send(self, data: bytes) -> None:
        try:
            while data:
                if not select.select([], [self._master], [], _TYPE_S)[1]:
                    raise ConsoleLostError("nothing can be typed: the program takes nothing")
                data = data[os.write(self._master, data) :]
        except OSError as problem:
            raise ConsoleLostError(f"nothing can be typed: {problem.strerror}") from None

    def send_break(self) -> None:
        if not self._source.break_keys:
            raise ToolError(f"{self._source.argv[0]} cannot send a BREAK")
        self.send(self._source.break_keys.encode())

    def close(self) -> None:
        self._end()
        os.close(self._master)
        self._errors.close()

    def _end(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_END_S)


ConsoleSource = SocketSource | ProgramSource
OpenConsole = _SocketLine | _ProgramLine
"""An open way: `filenos` become readable when something was said or it ended; all else raises ConsoleLostError."""


def _end_with_recorder() -> None:
    """Have the kernel end the program with the recorder, and the terminal be the program's own."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


_TOOLS = {
    "ipmi_sol": ("ipmitool", "ipmitool"),
    "ssh": ("ssh", "openssh-client"),
    "conserver": ("console", "conserver-client"),
    "labgrid": ("labgrid-client", "labgrid (from PyPI)"),
}
"""The program of each way, and the package that has it on Debian."""


def missing_program(way: ConsoleWay) -> str:
    """What is to be installed before that way can be gone; empty when nothing is."""
    program, package = _TOOLS.get(way.name, ("", ""))
    if not program or shutil.which(program):
        return ""
    return f"the console ({way.words}) needs the program {program}, which is not here; install {package}"


def source_of(way: ConsoleWay, virtual_console: Path | None = None) -> ConsoleSource | None:
    """How that way is gone; `virtual_console` is the socket of a virtual bench's serial line. None: not at all."""
    if way.ipmi_sol is not None:
        words, secret = way.ipmi_sol.argv, ipmitool_environment(way.ipmi_sol.password)
        # one session is all that a BMC has: a dead one of ours, or of somebody else, is ended first
        return ProgramSource((*words, "sol", "activate"), "\r~B", (*words, "sol", "deactivate"), secret)
    if way.ssh is not None:
        alive = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=4", "-o", "ServerAliveInterval=10")
        command = (way.ssh.command,) if way.ssh.command else ()
        return ProgramSource(("ssh", "-tt", *alive, "--", way.ssh.host, *command), "\r~B")
    if way.conserver is not None:
        named = way.conserver
        return ProgramSource(("console", "-M", named.server, "-p", str(named.port), "-f", named.name), "\x05cl0")
    if way.labgrid is not None:
        return ProgramSource((*way.labgrid.argv, "console"))
    if way.telnet is not None:
        host, _, port = way.telnet.rpartition(":")
        return SocketSource(host.strip("[]"), int(port))
    return SocketSource(str(virtual_console)) if way.virtual else None


def source_from_plain(plain: Mapping[str, Any] | None) -> ConsoleSource | None:
    """A source that became JSON on its way to the recorder."""
    if plain and "argv" in plain:
        return ProgramSource(**{**plain, "argv": tuple(plain["argv"]), "first": tuple(plain["first"])})
    return SocketSource(**plain) if plain else None
