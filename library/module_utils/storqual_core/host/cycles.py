# SPDX-License-Identifier: Apache-2.0
"""Cycles that all processors worked, by the kernel's performance events; or the reason why none are counted.

Processor time is read from idle time and blurred by the clock's ticks and its changes of frequency. Unhalted cycles
are counted by the processor itself, in user, kernel and interrupt alike, so a launch of seconds can tell what an I/O
costs. An emulated processor has no such counter. Structure and calls: perf_event_open(2), its attributes' version 0.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from pathlib import Path
from typing import Callable

_CALLS = {
    "aarch64": 241,
    "armv7l": 364,
    "i686": 336,
    "ppc64le": 319,
    "riscv64": 241,
    "s390x": 331,
    "x86_64": 298,
}
"""The number of perf_event_open by machine (Linux: arch/*/syscalls)."""
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
_READ = struct.Struct("=QQQ")
_TOTAL_TIMES = 1 | 2
_CLOSE_ON_EXEC = 8
_ALL_TASKS = -1
_NO_COUNTER = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL)
_FORBIDDEN = (errno.EACCES, errno.EPERM)

Open = Callable[[int], int]
"""From a processor's number to the descriptor of its counter of cycles. Raises OSError."""


class CycleCounter:
    """Counts from now on. `reason` says why it does not; it is empty while it does."""

    def __init__(self, root: Path = Path("/"), open_counter: Open | None = None) -> None:
        self.reason = ""
        self._handles: list[int] = []
        try:
            opener = open_counter or _opener()
            for cpu in online(root):
                self._handles.append(opener(cpu))
        except OSError as problem:
            self._give_up(_why(problem, root))
        if not self._handles and not self.reason:
            self.reason = "the kernel does not say which processors it has"

    def read(self) -> int | None:
        """Cycles of all processors since the start; None when they are not counted, or were not all the time."""
        total = 0
        for handle in self._handles:
            try:
                data = os.read(handle, _READ.size)
            except OSError:
                data = b""
            if len(data) != _READ.size:
                self._give_up("a processor was switched off while its cycles were counted")
                return None
            count, enabled_ns, running_ns = _READ.unpack(data)
            if running_ns < enabled_ns:
                self._give_up("another program used the processors' counters at the same time")
                return None
            total += count
        return total if self._handles else None

    def close(self) -> None:
        """Count no more."""
        for handle in self._handles:
            os.close(handle)
        self._handles = []

    def _give_up(self, reason: str) -> None:
        self.close()
        self.reason = reason


def online(root: Path = Path("/")) -> list[int]:
    """The numbers of the processors in use (`0-3,8`); none where the kernel does not say."""
    try:
        text = (root / "sys/devices/system/cpu/online").read_text(encoding="ascii").strip()
        ranges = [part.partition("-") for part in text.split(",") if part]
        return [cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)]
    except (OSError, ValueError):
        return []


def _opener() -> Open:
    """The system call of this machine. Raises OSError where none is known."""
    number = _CALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "no such call is known")
    # a process of 32 bits has other numbers
    if ctypes.sizeof(ctypes.c_void_p) == 4 and platform.machine() == "x86_64":
        number = _CALLS["i686"]
    call = ctypes.CDLL(None, use_errno=True).syscall

    def opened(cpu: int) -> int:
        attributes = ctypes.create_string_buffer(
            _ATTRIBUTES.pack(0, _ATTRIBUTES.size, 0, 0, 0, _TOTAL_TIMES, 0, 0, 0, 0), _ATTRIBUTES.size
        )
        words = (ctypes.c_int(_ALL_TASKS), ctypes.c_int(cpu), ctypes.c_int(-1), ctypes.c_ulong(_CLOSE_ON_EXEC))
        handle = int(call(ctypes.c_long(number), attributes, *words))
        if handle < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return handle

    return opened


def _why(problem: OSError, root: Path) -> str:
    """Why the kernel opens no counter, as a sentence without its full stop."""
    if problem.errno in _NO_COUNTER:
        return "its processors have no cycle counter that the kernel can use, which is usual for emulated processors"
    if problem.errno in _FORBIDDEN:
        try:
            level = (root / "proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii").strip()
        except OSError:
            level = "not readable"
        return f"the kernel does not allow it (kernel.perf_event_paranoid is {level})"
    if problem.errno == errno.ENOSYS:
        return "its kernel has no performance events"
    return f"the kernel opened no counter of cycles ({problem.strerror})"
