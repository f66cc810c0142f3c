# SPDX-License-Identifier: Apache-2.0
"""Files as targets (benches of kind `local`): made by storqual, in one folder, known by path and inode."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from ..kit.durable import make_folder, replace_json
from ..kit.errors import GuardRefusalError, StorqualError
from ..kit.machine import visible
from .claims import Claim

_SCHEMA = "storqual.targets/1"


@dataclass(frozen=True)
class FileState:
    """A claimed file as it is: where it really lies, and the reason why it cannot be used (`` for none).

    `device` and `inode` say which file that is, whatever its path leads to later; 0 for one that was not found.
    """

    path: str
    problem: str
    remedy: str = ""
    missing: bool = False
    device: int = 0
    inode: int = 0


def targets_folder(state_dir: str | os.PathLike[str]) -> Path:
    """The only folder in which file targets may be."""
    return Path(state_dir) / "targets"


def _record(state_dir: str | os.PathLike[str]) -> Path:
    return targets_folder(state_dir) / ".claims.json"


def _inodes(state_dir: str | os.PathLike[str]) -> dict[str, int]:
    """The files that storqual made, by name in the folder. Raises StorqualError when the record cannot be read."""
    path = _record(state_dir)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): int(inode) for name, inode in document[_SCHEMA].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise StorqualError(f"the record of target files, {path}, cannot be read: {problem}") from problem


def look_at_file(claim: Claim, state_dir: str | os.PathLike[str]) -> FileState:
    """Whether a claimed file is what storqual made, nothing else. Raises StorqualError for an unreadable record."""
    folder = targets_folder(state_dir)
    path = Path(claim.file)
    if path.is_symlink():
        return FileState(claim.file, "it is a symbolic link", "claim the file itself")
    real = path.resolve().parent / path.name
    if real.parent != folder.resolve() or path.name.startswith("."):
        return FileState(claim.file, f"it is not in {folder}", "file targets must lie in that folder")
    try:
        found = real.lstat()
    except FileNotFoundError:
        return FileState(str(real), "it does not exist", "run the preflight of a run, which creates it", missing=True)
    except OSError as problem:
        return FileState(str(real), f"it cannot be examined: {problem.strerror}", "check its permissions")
    inode = claim.inode if claim.inode is not None else _inodes(state_dir).get(path.name)
    reason = ""
    if not stat.S_ISREG(found.st_mode):
        reason = "it is not a regular file"
    elif found.st_nlink != 1:
        reason = f"it has {found.st_nlink} names (hard links)"
    elif inode is None:
        reason = "storqual did not make it"
    elif inode != found.st_ino:
        reason = f"it is another file than the claimed one (inode {found.st_ino}, claimed {inode})"
    elif found.st_size != claim.size:
        reason = f"its size is {found.st_size} bytes, the claim says {claim.size}"
    remedy = "move it away if it is still needed, otherwise delete it, and run the preflight again" if reason else ""
    return FileState(str(real), reason, remedy, device=found.st_dev, inode=found.st_ino)


def open_file(state: FileState) -> int:
    """A descriptor of the very file that was examined, locked against other runs: from now on its path is not used.

    Raises OSError: ESTALE when another file, a link or a file with more names is there now, EAGAIN when it is locked.
    """
    path = Path(state.path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            descriptor = os.open(path.name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as problem:
            if problem.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise OSError(errno.ESTALE, "it is a different file now") from problem
            raise
    finally:
        os.close(folder)
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino, found.st_nlink) != (state.device, state.inode, 1):
        os.close(descriptor)
        raise OSError(errno.ESTALE, "it is a different file now")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def make_file(claim: Claim, state_dir: str | os.PathLike[str]) -> bool:
    """Make a claimed file that does not exist, with all its blocks, and record its inode; whether it was made.

    Raises GuardRefusalError when the name is taken by something else or lies elsewhere, StorqualError without room.
    """
    state = look_at_file(claim, state_dir)
    if not state.problem:
        return False
    if not state.missing:
        raise GuardRefusalError([f"file {visible(claim.file)}: {state.problem}; {state.remedy}"])
    folder = targets_folder(state_dir)
    make_folder(folder)
    partial = folder / f".{Path(state.path).name}.partial"
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, claim.size)
            os.fsync(descriptor)
            inode = os.fstat(descriptor).st_ino
        finally:
            os.close(descriptor)
        # recorded before it gets its name: a crash between leaves a record of nothing, never an unknown file
        inodes = {**_inodes(state_dir), Path(state.path).name: inode}
        replace_json(_record(state_dir), {_SCHEMA: inodes})
        # a link fails where the name was taken meanwhile; a rename would destroy what took it
        os.link(partial, state.path)
    except OSError as problem:
        raise StorqualError(f"target file {visible(claim.file)} could not be made: {problem.strerror}") from problem
    finally:
        partial.unlink(missing_ok=True)
    return True
