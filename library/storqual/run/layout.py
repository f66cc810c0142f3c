# SPDX-License-Identifier: Apache-2.0
"""Where things lie in a run directory, and how they are written: whole or not at all, one writer at a time."""

import errno
import fcntl
import hashlib
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.run.files import read_json
from storqual.run.shapes import shape_problem
from storqual_core.kit.durable import MOST, checked_name
from storqual_core.kit.errors import BadInputError, StorqualError

RUN_SCHEMA = "storqual.run/2"
TRIAL_SCHEMA = "storqual.trial/2"
"""The `evidence` of a plan of trials: records of trials and programs are derived again from their streams."""
RUN_FILE = "run.json"
SAMPLES = "samples.jsonl"
CHECKS = "checks.jsonl"
CHECK_INPUT = "check:"
"""Before the name of a file: the input of a run that is a hand-written check."""
EVENTS = "events.jsonl"
INPUTS = "inputs"
BATCHES = "blocks"
RAW = "raw"
TURNS = "turns"
"""Records of trials and programs; those of launches are lines of samples.jsonl."""
MANIFEST = "signoff.manifest.json"
ROLE = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
SIGNATURE = re.compile(rf"signoff\.(?!manifest\.json\Z)(?P<role>{ROLE})(?P<detached>\.statement)?\.json\Z")
"""The name of a signature: an envelope, or a statement with a signature beside it."""
_APPENDED = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
ANNEX = "annex"
"""What is added to a run after it was signed: judgements by other rules, notes. No sign-off is about it."""


def now() -> str:
    """The time in UTC as ISO 8601 with milliseconds, as every file of a run writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def dump_line(value: Mapping[str, Any]) -> bytes:
    """One line of a `.jsonl` file; NaN is refused, because other people's parsers refuse it. Raises ValueError."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


class MachineError(StorqualError):
    """This machine does not permit what a command needs: no mistake of whoever wrote the inputs, nor of the code."""


class NoSpaceError(MachineError):
    """The disk, or what this user may have of it, is used up; what was written before is whole."""


_NO_SPACE = (
    "no space left on this disk; what was written before is kept: free some space, then resume the campaign with"
    " `storqual qualify --resume`, or repeat the command"
)
_REFUSED = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EROFS: "this file system is read-only; make it writable, or copy the folder to another one",
    errno.EACCES: "permission denied; run the command as a user who has access, or change the permissions",
    errno.EPERM: "operation not permitted; run the command as the owner, or remove the protection (chattr, ACL)",
    errno.EIO: "this disk or network file system returned an I/O error; see the kernel log, then repeat the command",
    errno.ESTALE: "this network file system was exchanged on its server; mount it again, then repeat the command",
    errno.ENAMETOOLONG: "this name is longer than the file system permits; use a shorter path",
    errno.EMFILE: "too many open files; raise the limit (`ulimit -n`), then repeat the command",
    errno.ENFILE: "too many open files on this machine; close other programs, then repeat the command",
}


def machine_error(problem: BaseException, where: str) -> MachineError | None:
    """The error about `where` with cause and remedy; None for what is not the machine's."""
    remedy = _REFUSED.get(problem.errno or 0) if isinstance(problem, OSError) else None
    if remedy is None:
        return None
    return (NoSpaceError if remedy is _NO_SPACE else MachineError)(f"{where}: {remedy}")


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Raises MachineError in the place of the kernel's error when `path` cannot be written."""
    try:
        yield
    except OSError as problem:
        refused = machine_error(problem, str(path))
        if refused is not None:
            raise refused from None
        raise StorqualError(f"{path}: cannot be written ({problem.strerror})") from None


def write_bytes(path: Path, data: bytes) -> None:
    """Write `path` so that a reader, or a machine that loses power, sees the old file or the whole new one.

    Raises MachineError.
    """
    with room_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def sync_tree(folder: Path) -> None:
    """Make every file below `folder` durable; all are written before the first is waited for: that is faster."""
    for path in sorted(folder.rglob("*")):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    _sync_folder(folder)


def dump_json(value: Mapping[str, Any], *, ascii_only: bool = False) -> bytes:
    """`value` as readable JSON. Raises ValueError for NaN and infinity."""
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, indent=1).encode() + b"\n"


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` as readable JSON, atomically. Raises ValueError for NaN and infinity."""
    write_bytes(path, dump_json(value))


def append_lines(path: Path, lines: bytes) -> None:
    """Append whole lines and make them durable; a torn last line (a writer that was killed) is cut off first.

    A torn line was never acknowledged to anybody: its sample is still in the bench's spool, its event happens again.
    The caller holds `locked`. Raises MachineError.
    """
    with room_for(path), os.fdopen(os.open(path, _APPENDED, 0o644), "ab+") as file:
        size = file.seek(0, os.SEEK_END)
        keep = _end_of_last_line(file.fileno(), size)
        if keep < size:
            file.truncate(keep)
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())


def run_folders(folder: Path) -> list[Path]:
    """The folder itself where it is a run directory, else those in it."""
    if (folder / RUN_FILE).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"[!.]*/{RUN_FILE}"))


def runs_below(paths: Iterable[Path]) -> list[Path]:
    """The run directories that are named, or that lie in the folders that are. Raises BadInputError for neither."""
    runs = {path: run_folders(path) for path in paths}
    empty = [path for path, below in runs.items() if not below]
    if empty:
        raise BadInputError([f"{path}: found no run directory, expected one, or a folder of them" for path in empty])
    return list(dict.fromkeys(run.resolve() for below in runs.values() for run in below))


def is_signed(run: Path) -> bool:
    """Whether somebody has signed this run: it is not changed any more, or the signature would be worth nothing.

    A folder, a link or a special file that is called like a signature is none.
    """
    try:
        with os.scandir(run) as entries:
            return any(SIGNATURE.match(entry.name) and entry.is_file(follow_symlinks=False) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_inside_run(path: Path) -> bool:
    """Whether `path` is, or would be, a file or folder of a run directory."""
    return any((folder / RUN_FILE).is_file() for folder in path.resolve().parents)


def refuse_inside_run(path: Path) -> Path:
    """`path`, for a command that only reads runs and writes its answer there.

    Raises BadInputError for a place in a run directory: every file in one is evidence.
    """
    if is_inside_run(path):
        reason = "this file would be inside the run directory, whose files are evidence; choose a path outside"
        raise BadInputError([f"{path}: {reason}"])
    return path


_held = threading.local()
"""The run directories that a thread has locked: `(process, device, inode)`."""


@contextmanager
def opened(run: Path) -> Iterator[Path]:
    """The folder that `run` is now, by a path that leads to it whatever takes its name in the meantime.

    Messages of errors that leave name it as `run`. Raises BadInputError when there is none.
    """
    try:
        handle = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as problem:
        raise BadInputError([f"{run}: no run directory ({problem.strerror})"]) from None
    # by the number of this process: the processes that derive samples beside it have other descriptors
    folder = Path(f"/proc/{os.getpid()}/fd/{handle}")
    try:
        yield folder
    except StorqualError as problem:

        def named(text: object) -> str:
            return str(text).replace(f"{folder}/", f"{run / 'x'}"[:-1]).replace(str(folder), str(run))

        problem.args = tuple(map(named, problem.args))
        if isinstance(problem, BadInputError):
            problem.problems = list(map(named, problem.problems))
        raise
    finally:
        os.close(handle)


@contextmanager
def locked(run: Path, *, signed: bool = False) -> Iterator[Path]:
    """Hold the run directory against other writers on this machine; waits. Yields it as `opened` does.

    A thread that holds it may take it again; whoever looks and then writes holds it from the first look on.
    Raises BadInputError when there is no such directory, or when it is signed: what people signed takes no more
    writers. With `signed` it may be: for signatures, and for what is added in `annex/`.
    """
    with opened(run) as folder:
        handle = int(folder.name)
        status = os.fstat(handle)
        key = (os.getpid(), status.st_dev, status.st_ino)
        keys: set[tuple[int, int, int]] = _held.__dict__.setdefault("runs", set())
        again = key in keys
        if not again:
            fcntl.flock(handle, fcntl.LOCK_EX)
            keys.add(key)
        try:
            # looked at under the lock: somebody may have signed, or put another run here, while this one waited
            if not _leads_to(run, status):
                raise BadInputError([f"{run}: another folder took the place of this run; repeat the command"])
            if not signed and is_signed(folder):
                reason = "this run is signed, so nothing is written to it; only `storqual judge` works on it"
                raise BadInputError([f"{run}: {reason}"])
            yield folder
        finally:
            if not again:
                keys.discard(key)


def _leads_to(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), status)
    except OSError:
        return False


def read_run_json(run: Path) -> dict[str, Any]:
    """`run.json` of a run directory. Raises BadInputError when there is none or it is of another schema."""
    path = run / RUN_FILE
    try:
        document = read_json(run, RUN_FILE)
    except OSError:
        raise BadInputError([f"{path}: cannot be read; this is not a run directory"]) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != RUN_SCHEMA:
        raise BadInputError([f"{path}:1: found schema {schema!r}, expected {RUN_SCHEMA!r}"])
    # it goes into paths, commands and lines of a log
    checked_name(document.get("run"), f"{path}: run", most=2 * MOST)
    # a run of another schema has another shape, so it is no file whose shape is looked at whenever it is read
    problem = shape_problem(document, "run")
    if problem:
        raise StorqualError(f"{path}: {problem}; the run directory is damaged")
    return dict(document)


def _end_of_last_line(handle: int, size: int) -> int:
    step = 65536
    position = size
    while position > 0:
        begin = max(0, position - step)
        newline = os.pread(handle, position - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        position = begin
    return 0


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
