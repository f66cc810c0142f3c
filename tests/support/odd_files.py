# SPDX-License-Identifier: Apache-2.0
"""What somebody can put in the place of a file of a run, or beside it, and a child of limited time and memory."""

import contextlib
import fcntl
import functools
import gzip
import io
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from storqual.cli import main

MIB = 1 << 20
SECONDS, MEMORY = 10, 512 * MIB
_NOBODY = 65534
_GET_FLAGS, _SET_FLAGS, _IMMUTABLE = 0x80086601, 0x40086602, 0x10

_ELSEWHERE = tempfile.TemporaryDirectory()
Make = Callable[[Path], None]
"""Makes something at a path where nothing is."""


def _sparse(size: int) -> Make:
    def make(path: Path) -> None:
        path.touch()
        os.truncate(path, size)

    return make


def _bytes(data: bytes | Callable[[], bytes]) -> Make:
    def make(path: Path) -> None:
        path.write_bytes(data if isinstance(data, bytes) else data())

    return make


def _socket(path: Path) -> None:
    # the name of a socket may have a hundred bytes
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{folder}/s")
        Path(folder, "s").rename(path)


def _hard_link(path: Path) -> None:
    handle, other = tempfile.mkstemp(dir=_ELSEWHERE.name)
    os.close(handle)
    os.link(other, path)


def _nested(levels: int) -> Make:
    def make(path: Path) -> None:
        path.mkdir()
        handle = os.open(path, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir("d", dir_fd=handle)
            inner = os.open("d", os.O_RDONLY, dir_fd=handle)
            os.close(handle)
            handle = inner
        os.close(handle)

    return make


def _many(number: int) -> Make:
    def make(path: Path) -> None:
        path.mkdir()
        handle = os.open(path, os.O_RDONLY)
        for one in range(number):
            os.close(os.open(f"f{one}", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        os.close(handle)

    return make


def _device(kind: int) -> Make:
    return lambda path: os.mknod(path, kind | 0o666, os.makedev(1, 5))


def _rights(mode: int) -> Make:
    def make(path: Path) -> None:
        path.write_bytes(b"{}\n")
        path.chmod(mode)

    return make


@functools.cache
def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + (packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)) * 1023


@functools.cache
def _wide_object() -> bytes:
    return b"{" + b",".join(b'"%d":{}' % one for one in range(1_500_000)) + b"}"


_PACKED = gzip.compress(b'{"kind": "note"}\n' * 100, mtime=0)
_NO_FILE: Mapping[str, Make] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "link to /dev/full": lambda path: path.symlink_to("/dev/full"),
    "link to a terminal": lambda path: path.symlink_to("/dev/tty"),
    "link outside": lambda path: path.symlink_to("/etc/hostname"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "hard link": _hard_link,
    "character device": _device(0o020000),
    "block device": _device(0o060000),
    "sparse terabyte": _sparse(1 << 40),
    "nested folders": _nested(1500),
}
"""What no run has anywhere."""
_CONTENT: Mapping[str, Make] = {
    "line of 500 MB": _sparse(500 * MIB),
    "deep JSON": _bytes(b"[" * 100_000 + b"]" * 100_000),
    "deep objects": _bytes(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "wide JSON": _bytes(lambda: b"[" + b"[]," * (4 * MIB) + b"[]]"),
    "wide object": _bytes(_wide_object),
    "infinity": _bytes(b'{"schema": 1e400, "run": 1e400}\n'),
    "NaN": _bytes(b'{"schema": NaN, "run": -Infinity}\n'),
    "huge integer": _bytes(b'{"schema": ' + b"9" * 100_000 + b"}\n"),
    "long integer": _bytes(b'{"schema": "storqual.run/2", "run": ' + b"9" * 4000 + b"}\n"),
    "byte order mark": _bytes(b"\xef\xbb\xbf{}\n"),
    "UTF-16": _bytes('{"schema": "storqual.run/2"}\n'.encode("utf-16")),
    "invalid UTF-8": _bytes(b'{"schema": "\xff\xfe\x80"}\n'),
    "lone surrogate": _bytes(b'{"schema": "\\ud800"}\n'),
    "NUL bytes": _bytes(bytes(4096)),
    "packed bomb": _bytes(_bomb),
    "cut gzip": _bytes(_PACKED[:-9]),
    "two packed files": _bytes(_PACKED * 2),
    "packed and more": _bytes(_PACKED + b"more"),
    "no gzip": _bytes(b"\x1f\x8b\x08\x00not packed at all"),
    "empty": _bytes(b""),
    "line ends": _bytes(b"\n" * 1_000_000),
    "CRLF": _bytes(b'{"schema": "storqual.run/2"}\r\n' * 3),
    "a number": _bytes(b"1\n"),
    "an object": _bytes(b"{}\n"),
    "a list": _bytes(b"[]\n"),
    "absurd times": _bytes(b'{"schema":"storqual.sample/3","id":"a","runtime_s":1e300,"n":1000000000000000}\n'),
}
_BESIDE: Mapping[str, Make] = {
    "20,000 files": _many(20_000),
    "setuid": _rights(0o4755),
    "world-writable": _rights(0o666),
    "empty folder": lambda path: path.mkdir(),
}
ODD: Mapping[str, Make] = {**_NO_FILE, **_CONTENT, **_BESIDE}
NO_FILE = frozenset(_NO_FILE)
NAMES = (
    *(b"n" * 255, b"new\nline", b"\x1b[2Jred", b"\xff\xfe\x80.json", b"\xe2\x80\xae.gpj", b" ", b"-rf", b".hidden"),
    *(b"*", b"?.json", b"'quoted\"", b"con.json."),
)
"""Names that no file of a run has."""


@contextlib.contextmanager
def immutable(path: Path):  # noqa: ANN201 - of the library
    """A file that nobody can change; OSError where the file system has none."""
    handle = os.open(path, os.O_RDONLY)
    flags = struct.unpack("i", fcntl.ioctl(handle, _GET_FLAGS, bytes(4)))[0]
    fcntl.ioctl(handle, _SET_FLAGS, struct.pack("i", flags | _IMMUTABLE))
    try:
        yield
    finally:
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("i", flags))
        os.close(handle)


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (negative: its signal), what it printed, the most memory that it had."""

    code: int
    said: str
    memory: int


class Commands:
    """Commands of storqual, each in a process of its own: a fork of a server that imported the product, nothing else.

    The peak memory of a child includes what it was forked with, so no command is forked from pytest, which is as
    large as all tests before made it. The server is as large as any command of storqual.
    """

    def __init__(self, *usual: Sequence[str], log: bool = True) -> None:
        """`usual` are executed in the server itself: children need no right to read what these import.

        Without `log`, `publish` does not start pytest, which takes most of its time and reads nothing but the verdict
        that was just written.
        """
        words = [sys.executable, "-P", __file__, *([] if log else [_NO_LOG])]
        self._server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for arguments in usual:
            self._ask(arguments=list(arguments), fork=False)

    def __call__(self, arguments: Sequence[str], *, nobody: bool = False) -> Ended:
        """One command, which has ten seconds of a processor."""
        return Ended(*self._ask(arguments=list(arguments), nobody=nobody))

    def _ask(self, **asked: object) -> tuple[int, str, int]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{json.dumps(asked)}\n")
        self._server.stdin.flush()
        code, said, memory = json.loads(self._server.stdout.readline())
        return code, said, memory

    def close(self) -> None:
        self._server.communicate()


_NO_LOG = "--no-log"


def _serve() -> None:
    """Execute what standard input says, a line for each command, and answer with a line."""
    if _NO_LOG in sys.argv:
        from storqual.checks import pytest_run  # noqa: PLC0415 - before `publish` imports it

        pytest_run.publish_log = lambda run: run / "pytest.html"
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        answers.write(f"{json.dumps(_executed(**json.loads(line)))}\n")
        answers.flush()


def _executed(arguments: Sequence[str], *, fork: bool = True, nobody: bool = False) -> tuple[int, str, int]:
    if not fork:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main(list(arguments))
        return 0, "", 0
    with tempfile.TemporaryFile() as said:
        pid = os.fork()
        if not pid:
            _become(arguments, said.fileno(), nobody=nobody)
        _, status, usage = os.wait4(pid, 0)
        said.seek(0)
        return (
            os.waitstatus_to_exitcode(status),
            said.read().decode("utf-8", "backslashreplace"),
            usage.ru_maxrss << 10,
        )


def _become(arguments: Sequence[str], output: int, *, nobody: bool) -> None:
    """The child: it never comes back."""
    code = 99
    try:
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        # of the processor, because others may use it as well; what waits for ever uses none
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(6 * SECONDS)
        now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", 0, closefd=False), write_through=True)
        sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", 0, closefd=False), write_through=True)
        sys.stdin = io.StringIO("")
        if nobody:
            os.setgroups([])
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
        main(list(arguments))
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        os._exit(code)


def remove(path: Path) -> None:
    """Remove whatever was made there, also folders deeper than a call may recurse."""
    subprocess.run(["rm", "-rf", "--", path], check=True)


if __name__ == "__main__":
    _serve()
