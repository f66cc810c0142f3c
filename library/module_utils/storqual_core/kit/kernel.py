# SPDX-License-Identifier: Apache-2.0
"""Calls of the running kernel for which Python has no function, and module options as modprobe keeps them.

modprobe reads the files of its folders by name and hands the kernel all options of a module in that order, so the
last one holds (modprobe.d(5)); words of the kernel's command line come after them.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import re
import shlex
import socket
import struct
from pathlib import Path
from typing import Iterable, Mapping

from .errors import BadInputError, ToolError

_LIBC = ctypes.CDLL(None, use_errno=True)
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "ppc64le": 354, "s390x": 343}
_KCMP_FILES = 2
_KEXEC_FILE_LOAD = {"x86_64": 320, "aarch64": 294, "riscv64": 294, "ppc64le": 382, "s390x": 381}
_ON_CRASH = 0x2
_IO_URING_SETUP = 425
_INIT_FLAGS = 0x1 | 0x2  # FAN_CLOEXEC | FAN_NONBLOCK
_MARK_ADD = 0x1
_MODIFY = 0x2
_CLOSE_WRITE = 0x8
_AT_FDCWD = -100
_LOOP_GET_STATUS64 = 0x4C05
_LOOP_INFO64 = struct.Struct("=QQQ208x")  # device of the file system, inode, number of a device node; the rest
_EVENT = struct.Struct("=IBBHQii")  # length, version, reserved, length of this head, what, descriptor, process


def share_open_files(thread: int, other: int) -> bool:
    """Whether two threads have one and the same table of open files; False where the kernel does not tell."""
    number = _KCMP.get(platform.machine())
    if number is None:
        return False
    return bool(_LIBC.syscall(number, thread, other, _KCMP_FILES, 0, 0) == 0)


def loop_source(path: str) -> tuple[int, int, int]:
    """What a loop device was given: the number of a block device, else 0, the file system of its file, and the inode.

    Its path in sysfs may lead to something else by now, or to nothing. Raises OSError where nothing was given to it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        answer = bytearray(_LOOP_INFO64.size)
        fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, answer)
    finally:
        os.close(descriptor)
    file_system, inode, device = _LOOP_INFO64.unpack(answer)
    return device, file_system, inode


def lists_registered_files() -> bool:
    """Whether this kernel shows the files that are registered with io_uring, or has no io_uring at all."""
    ring = _LIBC.syscall(_IO_URING_SETUP, 1, ctypes.create_string_buffer(120))
    if ring < 0:
        return ctypes.get_errno() == errno.ENOSYS
    try:
        return "UserFiles:" in Path(f"/proc/self/fdinfo/{ring}").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    finally:
        os.close(ring)


def counts_waiting_files() -> bool:
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        try:
            return "scm_fds:" in Path(f"/proc/self/fdinfo/{left.fileno()}").read_text(encoding="ascii")
        except OSError:
            return False


def names_writers() -> bool:
    with WriteWatch(["/dev/null"]) as watch, Path("/dev/null").open("wb", buffering=0) as nothing:
        nothing.write(b"x")
        return os.getpid() in watch.events()


def load_crash_kernel(kernel: str, archive: str, line: str) -> None:
    """Load the kernel image `kernel`, with the archive of its first files, for the next panic. Raises ToolError.

    Nobody may have either open for writing.
    """
    number = _KEXEC_FILE_LOAD.get(platform.machine())
    if number is None:
        raise ToolError(f"how a crash kernel is loaded on {platform.machine()} is not known")
    words = line.encode("ascii") + b"\0"
    length, flags = ctypes.c_ulong(len(words)), ctypes.c_ulong(_ON_CRASH)
    try:
        with Path(kernel).open("rb") as image, Path(archive).open("rb") as files:
            wrong = _LIBC.syscall(ctypes.c_long(number), image.fileno(), files.fileno(), length, words, flags)
    except OSError as problem:
        raise ToolError(f"{problem.filename} cannot be opened: {problem.strerror}") from problem
    if wrong:
        why = os.strerror(ctypes.get_errno())
        raise ToolError(f"the kernel refused {kernel} as its crash kernel: {why}")


class WriteWatch:
    """Which other processes write through device nodes, or close one that they could write to, while this lives.

    `works` is False where the kernel has no fanotify or does not allow it; then nothing is seen. Some kernels allow
    it and tell nothing of device nodes (`names_writers`).
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._group = -1
        start = getattr(_LIBC, "fanotify_init", None)
        if start is not None:
            self._group = start(_INIT_FLAGS, os.O_RDONLY | os.O_CLOEXEC)
        self.works = self._group >= 0
        for path in paths if self.works else ():
            mask = ctypes.c_uint64(_MODIFY | _CLOSE_WRITE)
            marked = _LIBC.fanotify_mark(self._group, _MARK_ADD, mask, _AT_FDCWD, os.fsencode(path))
            self.works = self.works and marked == 0

    def __enter__(self) -> WriteWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def processes(self) -> list[int]:
        """The processes that did so since the last call, this one left out; those that have ended by now included."""
        return sorted(self.events() - {os.getpid()})

    def events(self) -> set[int]:
        processes: set[int] = set()
        while self._group >= 0:
            try:
                events = os.read(self._group, 65536)
            except BlockingIOError:
                break
            place = 0
            while place + _EVENT.size <= len(events):
                length, _, _, _, _, descriptor, process = _EVENT.unpack_from(events, place)
                if descriptor >= 0:
                    os.close(descriptor)
                processes.add(process)
                place += max(length, _EVENT.size)
        return processes

    def close(self) -> None:
        if self._group >= 0:
            os.close(self._group)
        self._group = -1


FILE = "/etc/modprobe.d/zz-storqual.conf"
_HEAD = "# Written by storqual, which also removes it; options declared in a drop.\n"
ARGUMENT = re.compile(r"[A-Za-z0-9_.,:=/+@%-]+\Z")
"""A word of the kernel's command line that every boot loader and its shell take as it is."""
OWN_ARGUMENT = "storqual."
"""What the words begin with by which a boot is known as a trial of ours."""
_NAME = re.compile(r"[A-Za-z][\w-]*\Z")
_TRUE, _FALSE = ("1", "y", "yes", "on", "true"), ("0", "n", "no", "off", "false")

Options = Mapping[str, Mapping[str, str]]
"""Values as text by module and parameter; dashes in a module's name are underscores."""


def declared_options(options: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Options as a drop declares them, `{module: {parameter: value}}`. Raises BadInputError with every problem."""
    modules: dict[str, dict[str, str]] = {}
    problems = []
    for module, parameters in options.items():
        if not _NAME.match(module):
            problems.append(f"found {module!r}, expected the name of a kernel module")
        elif not isinstance(parameters, Mapping) or not parameters:
            problems.append(f"{module}: found {parameters!r}, expected {{parameter: value}}")
        else:
            values = modules.setdefault(module.replace("-", "_"), {})
            for name, value in parameters.items():
                text = _text(value)
                if not _NAME.match(str(name)):
                    problems.append(f"{module}: found {name!r}, expected the name of a parameter")
                elif text is None:
                    problems.append(f"{module}.{name}: found {value!r}, expected one printable word")
                else:
                    values[str(name)] = text
    if problems:
        raise BadInputError(problems)
    return modules


def _text(value: object) -> str | None:
    """A value as a module takes it; None for what a line of modprobe.d or a command line cannot carry."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, (str, int)):
        return None
    text = str(value)
    return text if text and re.fullmatch(r"[!-~]+", text) and not set(text) & set("\"'\\#`$") else None


def parse_options(text: str) -> dict[str, dict[str, str]]:
    """The `options` lines of a file, or of `modprobe --showconfig`: the last value of each parameter.

    A line goes on after a backslash; a parameter without a value is a flag and has an empty one. Raises ToolError.
    """
    options: dict[str, dict[str, str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split(None, 2)
        if len(words) < 3 or words[0] != "options":
            continue
        try:
            pairs = shlex.split(words[2], posix=True)
        except ValueError as problem:
            raise ToolError(f"an options line of modprobe is not understood ({problem}): {line[:120]!r}") from problem
        for pair in pairs:
            name, _, value = pair.partition("=")
            options.setdefault(words[1].replace("-", "_"), {})[name] = value
    return options


def in_file(text: str | None) -> dict[str, dict[str, str]]:
    """The options of our own file; none when there is no file."""
    return parse_options(text or "")


def compose(options: Options) -> str | None:
    """Our file with these options; None (no file) when there are none."""
    lines = [
        f"options {module} {' '.join(f'{name}={value}' for name, value in sorted(parameters.items()))}\n"
        for module, parameters in sorted(options.items())
        if parameters
    ]
    return _HEAD + "".join(lines) if lines else None


def same_value(text: str, other: str) -> bool:
    """Whether the kernel's text of a parameter is the declared value: `Y` is 1, `0x10` is 16."""
    if text == other:
        return True
    lowered = text.strip().lower(), other.strip().lower()
    for words in (_TRUE, _FALSE):
        if all(word in words for word in lowered):
            return True
    try:
        return int(lowered[0], 0) == int(lowered[1], 0)
    except ValueError:
        return lowered[0] == lowered[1]
