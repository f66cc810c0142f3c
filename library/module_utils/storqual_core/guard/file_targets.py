# SPDX-License-Identifier: Apache-2.0
"""Files as targets (benches of kind `local`): made by storqual, in one folder, known by path and inode.

A file has no room for stamps: fio is given all of it. So what storqual wrote is known by the time of the last write,
which is recorded when the file is let go, and by a note that it was lent, made before anything may write to it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Mapping, Sequence

from ..host.in_use import file_uses
from ..kit.command import Runner
from ..kit.durable import make_folder, replace_json
from ..kit.errors import GuardRefusalError, StorqualError
from ..kit.machine import Machine, Node, visible
from .claims import Claim
from .signatures import any_set, objection, read_content

_SCHEMA = "storqual.targets/1"
_CHUNK = 1 << 20
_TIDY = "move it away if it is still needed, otherwise delete it, and run the preflight again"


@dataclass(frozen=True)
class OwnFile:
    """A file that storqual made: its inode, and when storqual last wrote to it (ns; None while it is lent)."""

    inode: int
    written_ns: int | None = None


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
    written_ns: int = 0

    @property
    def name(self) -> str:
        return Node("file", os.major(self.device), os.minor(self.device), self.inode).file


def targets_folder(state_dir: str | os.PathLike[str]) -> Path:
    """The only folder in which file targets may be."""
    return Path(state_dir) / "targets"


def _record(state_dir: str | os.PathLike[str]) -> Path:
    return targets_folder(state_dir) / ".claims.json"


def _own_files(state_dir: str | os.PathLike[str]) -> dict[str, OwnFile]:
    """The files that storqual made, by name in the folder. Raises StorqualError when the record cannot be read."""
    path = _record(state_dir)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        # former versions kept the inode alone: what lies there counts as lent
        return {
            str(name): OwnFile(fields) if isinstance(fields, int) else OwnFile(**fields)
            for name, fields in document[_SCHEMA].items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise StorqualError(f"the record of target files, {path}, cannot be read: {problem}") from problem


def _keep(state_dir: str | os.PathLike[str], made: Mapping[str, OwnFile]) -> None:
    replace_json(_record(state_dir), {_SCHEMA: {name: asdict(each) for name, each in sorted(made.items())}})


def look_at_files(
    machine: Machine,
    claims: Sequence[Claim],
    state_dir: str | os.PathLike[str],
    *,
    contents: bool,
    held: Mapping[str, str],
    runner: Runner,
) -> dict[str, FileState]:
    """Claimed files by id: whether each is storqual's own, used by nobody else, and with `contents` what is in it.

    `held` are paths of those that this process has open itself. Raises StorqualError for an unreadable record.
    """
    states = {claim.id: look_at_file(claim, state_dir) for claim in claims if claim.file}
    paths = {state.name: state.path for state in states.values() if state.inode}
    uses = file_uses(machine, paths) if paths else {}
    made = _own_files(state_dir)
    for claim in claims:
        state = states.get(claim.id)
        if state is None or state.problem:
            continue
        known = made.get(Path(state.path).name)
        if uses[state.name]:
            states[claim.id] = replace(state, problem=f"it {'; it '.join(uses[state.name])}", remedy="stop that use")
        elif contents:
            reason = _objection(held.get(claim.id, state.path), claim, state, known, runner)
            states[claim.id] = replace(state, problem=reason, remedy=_TIDY if reason else "")
    return states


def _objection(path: str, claim: Claim, state: FileState, made: OwnFile | None, runner: Runner) -> str:
    """Why what is in a file forbids to overwrite it: a known format, or data that storqual did not write."""
    lent = made is not None and made.inode == state.inode and made.written_ns in (None, state.written_ns)
    content = read_content(path, claim.id, claim.size, runner=runner)
    reason = objection(content, lent=lent)
    if reason:
        return f"it {reason}"
    if lent:
        return ""
    try:
        return "it holds data that storqual did not write" if _holds_data(path) else ""
    except OSError as problem:
        return f"it cannot be read: {problem.strerror}"


def _holds_data(path: str) -> bool:
    """Whether any byte of a file is set; holes and blocks that were never written are passed over."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        place = 0
        while True:
            try:
                place = os.lseek(descriptor, place, os.SEEK_DATA)
            except OSError as problem:
                if problem.errno == errno.ENXIO:
                    return False
                raise
            chunk = os.pread(descriptor, _CHUNK, place)
            if any_set(chunk):
                return True
            place += len(chunk)
    finally:
        os.close(descriptor)


def lend_files(states: Sequence[FileState], state_dir: str | os.PathLike[str]) -> None:
    """Note that files are about to be written; after a crash what lies there is known to be storqual's."""
    if states:
        lent = {Path(state.path).name: OwnFile(state.inode) for state in states}
        _keep(state_dir, {**_own_files(state_dir), **lent})


def take_back_files(held: Mapping[str, int], state_dir: str | os.PathLike[str]) -> None:
    """Record when files that were lent were last written; `held` are open descriptors by path."""
    statuses = {Path(path).name: os.fstat(descriptor) for path, descriptor in held.items()}
    back = {name: OwnFile(status.st_ino, status.st_mtime_ns) for name, status in statuses.items()}
    _keep(state_dir, {**_own_files(state_dir), **back})


def in_targets(file: str | os.PathLike[str], state_dir: str | os.PathLike[str]) -> bool:
    """Whether a path is one at which a file target may be, whatever is there."""
    path = Path(file)
    return path.parent.resolve() == targets_folder(state_dir).resolve() and not path.name.startswith(".")


def look_at_file(claim: Claim, state_dir: str | os.PathLike[str]) -> FileState:
    """Whether a claimed file is what storqual made, nothing else. Raises StorqualError for an unreadable record."""
    folder = targets_folder(state_dir)
    path = Path(claim.file)
    if path.is_symlink():
        return FileState(claim.file, "it is a symbolic link", "claim the file itself")
    real = path.resolve().parent / path.name
    if not in_targets(path, state_dir):
        return FileState(claim.file, f"it is not in {folder}", "file targets must lie in that folder")
    try:
        status = real.lstat()
    except FileNotFoundError:
        return FileState(str(real), "it does not exist", "run the preflight of a run, which creates it", missing=True)
    except OSError as problem:
        return FileState(str(real), f"it cannot be examined: {problem.strerror}", "check its permissions")
    made = _own_files(state_dir).get(path.name)
    inode = claim.inode if claim.inode is not None or made is None else made.inode
    reason = ""
    if not stat.S_ISREG(status.st_mode):
        reason = "it is not a regular file"
    elif status.st_nlink != 1:
        reason = f"it has {status.st_nlink} names (hard links)"
    elif inode is None:
        reason = "storqual did not make it"
    elif inode != status.st_ino:
        reason = f"it is another file than the claimed one (inode {status.st_ino}, claimed {inode})"
    elif status.st_size != claim.size:
        reason = f"its size is {status.st_size} bytes, the claim says {claim.size}"
    remedy = _TIDY if reason else ""
    return FileState(
        str(real), reason, remedy, device=status.st_dev, inode=status.st_ino, written_ns=status.st_mtime_ns
    )


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
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino, status.st_nlink) != (state.device, state.inode, 1):
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
        # what a killed program left goes; it may be another name of somebody's file, so it is not emptied
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, claim.size)
            os.fsync(descriptor)
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        # recorded before it gets its name: a crash between leaves a record of nothing, never an unknown file
        _keep(state_dir, {**_own_files(state_dir), Path(state.path).name: OwnFile(status.st_ino, status.st_mtime_ns)})
        # a link fails where the name was taken meanwhile; a rename would destroy what took it
        os.link(partial, state.path)
    except OSError as problem:
        raise StorqualError(f"target file {visible(claim.file)} could not be made: {problem.strerror}") from problem
    finally:
        partial.unlink(missing_ok=True)
    return True
