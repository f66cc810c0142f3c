# SPDX-License-Identifier: Apache-2.0
"""Where a virtual bench keeps its files: a state folder of its own, short socket paths, and the shared cache."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Protocol

from storqual_core.kit.errors import StorqualError


def cache_folder() -> Path:
    """What all checkouts of this user share: `STORQUAL_CACHE`, else `storqual` in the XDG cache folder."""
    named = os.environ.get("STORQUAL_CACHE")
    if named:
        return Path(named).absolute()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "storqual"


def socket_folder(state: Path) -> Path:
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"storqual-{os.getuid()}"  # noqa: S108 - owner is checked
    return base / hashlib.sha256(os.fsencode(state)).hexdigest()[:16]


def make_private(folder: Path) -> None:
    """Make `folder` for this user only. Raises StorqualError when someone else prepared it (/tmp is everyone's)."""
    for each in (folder.parent, folder):
        with suppress(FileExistsError):
            each.mkdir(mode=0o700, parents=True)
        status = each.lstat()
        if status.st_uid != os.getuid() or not each.is_dir() or each.is_symlink() or status.st_mode & 0o022:
            raise StorqualError(f"{each} belongs to someone else or is writable by others; remove it and try again")


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold an exclusive lock on `file`, made when missing; waits for whoever holds it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        flock(handle, LOCK_EX)
        yield


class FileOf:
    """A file by its name in the folder of what it belongs to."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: "HasFolder", kind: type) -> Path:
        return owner.folder / self.name


class HasFolder(Protocol):
    """What keeps its files in one folder."""

    @property
    def folder(self) -> Path: ...


@dataclass(frozen=True)
class BenchPlaces:
    """The files of one virtual bench under its state folder."""

    state: Path

    @property
    def folder(self) -> Path:
        return self.state

    @classmethod
    def of(cls, state: Path | str) -> "BenchPlaces":
        """The places of a state folder, with every link and dot in its path resolved."""
        return cls(Path(state).expanduser().resolve())

    @property
    def targets(self) -> "BenchPlaces":
        """Those of the guest with the targets of this bench, where it has one."""
        return BenchPlaces(self.state / "targets")

    overlay = FileOf("system.qcow2")
    """The root disk: what this bench changed, over the shared image."""
    variables = FileOf("system.efivars")
    """The EFI variables of a bench that UEFI starts."""
    console = FileOf("console.log")
    """Everything the serial console ever said, over all power cycles."""
    recording = FileOf("recording")
    """What a recorder kept of the console, with the time of each line."""
    pstore = FileOf("pstore.img")
    """What the emulated firmware keeps over a reboot: the last lines of kernels that panicked."""
    keys = FileOf("keys")
    ssh_config = FileOf("ssh_config")
    """How ssh and Ansible reach the bench: `ssh -F <this file> <name>`."""
    power = FileOf("power.json")
    """What was started: process id, port, acceleration, description. Missing while the bench is off."""
    lock = FileOf("lock")
    """Held while the power state is changed or the monitor is used."""

    def drive(self, device: str) -> Path:
        return self.state / "drives" / f"{device}.img"

    @property
    def serial(self) -> Path:
        """The socket of the serial line while the bench is on: it speaks telnet, and takes one listener."""
        return socket_folder(self.state) / "serial"

    @property
    def netconsole(self) -> Path:
        """The socket to which a bench with a card for netconsole sends Ethernet frames, whoever listens."""
        return socket_folder(self.state) / "netconsole"
