# SPDX-License-Identifier: Apache-2.0
"""A read-only view of one Linux machine: `/sys`, `/proc` and `/dev` below a root, so that tests run on fixture trees.

Text is decoded as Latin-1: one byte is one character, so what a device says is kept byte for byte.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Mapping

from . import kernel
from .errors import ToolError
from .quantities import is_whole

# os.path and os.open on purpose: pathlib doubles the time of hundreds of small reads on an emulated bench
# ruff: noqa: PTH110, PTH116, PTH208


_LIMIT = 1 << 22
_ENDINGS = b"\0 "


@dataclass(frozen=True)
class Node:
    """What a path leads to: `block`, `char`, `file` or `other`; for a node its number, for a file where it lies.

    `inode` is that of a file, 0 for anything else.
    """

    kind: str
    major: int
    minor: int
    inode: int = field(default=0, compare=False)

    @property
    def number(self) -> str:
        """`8:0`, as sysfs names devices."""
        return f"{self.major}:{self.minor}"

    @property
    def file(self) -> str:
        """What names a file whatever its path: its file system and its inode; `` for anything else."""
        return f"{self.number}/{self.inode}" if self.inode else ""


def visible(text: str) -> str:
    r"""Device text for a sentence: printable ASCII stays, anything else becomes `\xhh` and can do nothing."""
    return "".join(char if " " <= char <= "~" else f"\\x{ord(char):02x}" for char in text)


def block_node(name: str) -> str:
    """The device node of a kernel name; sysfs writes `!` where the node has `/`."""
    return "/dev/" + name.replace("!", "/")


class Machine:
    """Files of one machine, read without raising: what is not there, or cannot be read, is empty or None."""

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/")

    def path(self, path: str) -> str:
        """Where `path` of the machine is on this file system."""
        return self.root + path

    def read(self, path: str) -> bytes | None:
        """All bytes of a small file (at most 4 MiB), None when it cannot be read."""
        try:
            descriptor = os.open(self.path(path), os.O_RDONLY)
        except OSError:
            return None
        try:
            chunks = []
            left = _LIMIT
            while left > 0:
                chunk = os.read(descriptor, min(left, 65536))
                if not chunk:
                    break
                chunks.append(chunk)
                left -= len(chunk)
            return b"".join(chunks)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def text(self, path: str) -> str:
        """A file without its last newline and without blanks and NULs at its end; `` when it cannot be read."""
        data = self.read(path) or b""
        if data.endswith(b"\n"):
            data = data[:-1]
        return data.rstrip(_ENDINGS).decode("latin-1")

    def lines(self, path: str) -> list[str]:
        """The lines of a file; none when it cannot be read."""
        return (self.read(path) or b"").decode("latin-1").split("\n")

    def number(self, path: str) -> int | None:
        """A decimal number from a file, None when there is none."""
        text = self.text(path).strip()
        return int(text) if is_whole(text.lstrip("-")) else None

    def names(self, path: str) -> list[str]:
        """What a folder holds, sorted; nothing when it is not there."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Whether something is at `path` (a link that leads nowhere is nothing)."""
        return os.path.exists(self.path(path))

    def link(self, path: str) -> str:
        """The text of a symbolic link, `` when it is none."""
        try:
            return os.readlink(self.path(path))
        except OSError:
            return ""

    def real(self, path: str) -> str:
        """The path with every link followed, as the machine names it; `` when it leads nowhere."""
        place = os.path.realpath(self.path(path))
        if not os.path.exists(place):
            return ""
        root = os.path.realpath(self.root or "/").rstrip("/")
        return place[len(root) :] if place.startswith(root + "/") else place

    def target(self, path: str) -> str:
        """The last word of where a link leads: `driver` -> `sym53c8xx`."""
        return os.path.basename(self.link(path))  # noqa: PTH119 - as above

    def node(self, path: str) -> Node | None:
        """What `path` leads to after following links; for a file the device that its file system reports."""
        try:
            status = os.stat(self.path(path))
        except OSError:
            return None
        if stat.S_ISBLK(status.st_mode):
            return Node("block", os.major(status.st_rdev), os.minor(status.st_rdev))
        if stat.S_ISCHR(status.st_mode):
            return Node("char", os.major(status.st_rdev), os.minor(status.st_rdev))
        kind = "file" if stat.S_ISREG(status.st_mode) else "other"
        inode = status.st_ino if kind == "file" else 0
        return Node(kind, os.major(status.st_dev), os.minor(status.st_dev), inode)

    def busy(self, path: str) -> str:
        """Why a device node cannot be opened exclusively, as part of a sentence; `` when it can be."""
        try:
            os.close(os.open(self.path(path), os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as problem:
            if problem.errno == errno.EBUSY:
                return "another program or the kernel holds it exclusively"
            return f"it cannot be opened: {problem.strerror}"
        return ""

    def opened(self, descriptor: int) -> str:
        device = os.fstat(descriptor).st_rdev
        return f"{os.major(device)}:{os.minor(device)}"

    def loop_source(self, path: str) -> Node | None:
        """What the kernel has for the loop device at `path`: a block device, or a file as `node` tells it."""
        if self.root:
            return None
        try:
            device, file_system, inode = kernel.loop_source(path)
        except OSError:
            return None
        number = device or file_system
        return Node("block" if device else "file", os.major(number), os.minor(number), 0 if device else inode)

    def share_open_files(self, process: str, task: str) -> bool:
        """Whether a thread has the open files of its process; False where that is not known."""
        return not self.root and kernel.share_open_files(int(process), int(task))

    def watch_writes(self, paths: Iterable[str]) -> kernel.WriteWatch:
        """See who writes through these nodes from now on; nothing is seen below another root."""
        return kernel.WriteWatch(() if self.root else paths)

    def kernel_ways(self) -> Mapping[str, bool]:
        """What the running kernel tells about programs that can write; nothing of a machine below another root."""
        if self.root:
            return {}
        return {
            "files registered with io_uring": kernel.lists_registered_files(),
            "open files that wait in a socket": kernel.counts_waiting_files(),
            "writes through a node (fanotify)": kernel.names_writers(),
        }

    def clock(self) -> float:
        """Seconds of a clock that only goes forward."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def name_of(self, node: Node) -> str:
        """The kernel name of a block device by its number, `` when sysfs does not know it."""
        return self.target(f"/sys/dev/block/{node.number}")


def read_attribute(path: str | Path) -> str | None:
    """The attribute's text without the line end, None when this kernel or device does not have it."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem


def write_attribute(path: str | Path, value: object) -> None:
    """Write the attribute. Raises ToolError: the kernel says no more than an error number, and so does this."""
    try:
        with Path(path).open("w", encoding="ascii") as stream:
            stream.write(f"{value}\n")
    except OSError as problem:
        raise ToolError(f"the kernel refused {value!r} for {path}: {problem.strerror}") from problem


def selected_word(text: str) -> str:
    """The choice in brackets of `none [mq-deadline] bfq`; the text itself when there are no brackets."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return text.strip()


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
