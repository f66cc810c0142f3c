# SPDX-License-Identifier: Apache-2.0
"""The program that measures on the bench: `python3 core-<sha>.pyz start|run|status|stop BATCH.json`.

`lease STATE_DIR REQUEST` answers for the bench's reservation.

`start` returns as soon as the batch runs, whoever started it; `run` is the batch itself, in the foreground. Exit
status: 0 done, 2 could not (bench taken, stopped), 3 the batch file is wrong, 4 refused by the guard.

What a command does not need is not imported: an emulated bench compiles a module of ours in a tenth of a second.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Sequence

from ..kit.durable import fsync_folder, is_name, make_folder, replace_json
from ..kit.errors import BadInputError, StorqualError, ToolError
from ..kit.lease import VARIABLE
from ..kit.lock import LockedError, LockHolder, lock_holder, lock_path
from ..kit.machine import visible
from .spool import read_spool, spool_path

if TYPE_CHECKING:
    from zipfile import ZipInfo

_USAGE = "usage: core.pyz start|run|status|stop BATCH.json, or core.pyz lease STATE_DIR REQUEST"


def main(argv: list[str] | None = None) -> int:
    """Run one command; its message goes to standard error, the answer of `status` to standard output."""
    words = sys.argv[1:] if argv is None else argv
    if len(words) == 3 and words[0] == "lease":
        return _lease(Path(words[1]), words[2])
    ready = Path(words[3]) if len(words) == 4 and words[0] == "run" and words[2] == "--ready" else None
    if len(words) != (4 if ready else 2) or words[0] not in ("start", "run", "status", "stop"):
        sys.stderr.write(_USAGE + "\n")
        return 3
    try:
        return _run(Path(words[1]), ready) if words[0] == "run" else _control(words[0], Path(words[1]))
    except StorqualError as problem:
        _say_ready(ready, problem.exit_code, str(problem))
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code


def _lease(state_dir: Path, request: str) -> int:
    from .lease_command import lease_command  # noqa: PLC0415 - see above

    try:
        sys.stdout.write(lease_command(state_dir, request) + "\n")
    except StorqualError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code
    return 0


def _control(word: str, path: Path) -> int:
    place = read_place(path)
    if word == "status":
        sys.stdout.write(json.dumps(status_of(place)) + "\n")
        return 0
    if word == "stop":
        stop_batch(place)
        return 0
    code, message = start_batch(place)
    if message:
        (sys.stderr if code else sys.stdout).write(message + "\n")
    return code


def _run(path: Path, ready: Path | None) -> int:
    from .batch_file import read_batch_file  # noqa: PLC0415 - see above

    batch = read_batch_file(path)

    def say_ready() -> None:
        _say_ready(ready, 0, "")

    if batch.attempt is None:
        from .launch_runner import LaunchRunner  # noqa: PLC0415 - see above

        signals: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda caught, _: signals.append(caught))
        end = LaunchRunner(batch, stopping=lambda: bool(signals), ready=say_ready).run()
    else:
        from .batch_run import TurnRunner  # noqa: PLC0415 - see above

        # a signal ends it at once: what it left behind is put right before the bench is used again
        end = TurnRunner(batch, ready=say_ready).run()
    if end.exit_code:
        _say_ready(ready, end.exit_code, end.message)
        sys.stderr.write(f"{end.outcome}: {end.message}\n")
    return end.exit_code


def _say_ready(ready: Path | None, code: int, message: str) -> None:
    """Tell the `start` that waits how it went; only the first word counts."""
    if ready is not None and not ready.exists():
        with suppress(OSError):
            replace_json(ready, {"code": code, "message": message}, durable=False)


if __name__ == "__main__":
    sys.exit(main())


def unpacked(program: Path, state_dir: Path) -> Path:
    """The folder of `program`, beside it or in `state_dir`; `program` itself where that is no zip file.

    A folder has its name only when all of it is on the disk: after a power cut its files would be empty, and a
    program of empty files ends at once, says nothing, and is there for the next block too.
    """
    program = program.resolve()
    if program.is_dir():
        return program
    import tempfile  # noqa: PLC0415 - see above
    import zipfile  # noqa: PLC0415 - see above

    if not zipfile.is_zipfile(program):
        return program
    folder = (program.parent if os.access(str(program.parent), os.W_OK) else state_dir) / program.stem
    if folder.is_dir():
        return folder
    part = Path(tempfile.mkdtemp(prefix=".core-", dir=str(folder.parent)))
    try:
        with zipfile.ZipFile(str(program)) as archive:
            _check_members(program, archive.infolist())
            archive.extractall(str(part))
    except BaseException:
        shutil.rmtree(str(part))
        raise
    part.chmod(0o755)
    os.sync()
    try:
        part.rename(folder)
    except OSError:
        # another process was as far in the same moment
        shutil.rmtree(str(part))
    fsync_folder(folder.parent)
    return folder


_MEMBERS, _BYTES = 2000, 64 << 20


def _check_members(program: Path, members: Sequence[ZipInfo]) -> None:
    """Plain files inside the folder, not too many and not too large. Raises ToolError for anything else."""
    problems = []
    for member in members:
        words, kind = member.filename.split("/"), stat.S_IFMT(member.external_attr >> 16)
        if not all(is_name(word.lstrip("_"), most=128) for word in words) or kind not in (0, stat.S_IFREG):
            problems.append(f"{visible(member.filename[:80])} is not a plain file in it")
    if len(members) > _MEMBERS or sum(member.file_size for member in members) > _BYTES:
        problems.append(f"it has more than {_MEMBERS} files or {_BYTES >> 20} MiB")
    if problems:
        raise ToolError(f"{program} is not unpacked: {problems[0]}")


_READY_S = 180.0
_STOP_S = 90.0
_ASK_S = 0.05


@dataclass(frozen=True)
class BatchPlace:
    """As much of a batch file as it takes to find its batch; whether the rest is right is said by who runs it."""

    path: Path
    run: str
    block: str
    state_dir: Path
    turns: int
    attempt: tuple[str, str] | None = None

    @property
    def folder(self) -> Path:
        return self.state_dir / "spool" / self.run

    @property
    def spool(self) -> Path:
        return spool_path(self.state_dir, self.run, self.block, self.attempt)

    def is_held_by(self, holder: LockHolder) -> bool:
        return (holder.run, holder.block) == (self.run, self.block)


def read_place(path: Path) -> BatchPlace:
    """The place of the batch in file `path`. Raises BadInputError."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        names = {key: str(body[key]) for key in ("run", "block", "state_dir")}
        turns, attempt = len(body["turns"]), body.get("attempt")
        attempted = None if attempt is None else (str(attempt["turn"]), str(attempt["part"]))
    except OSError as problem:
        raise BadInputError([f"{path}: cannot be read: {problem.strerror}"]) from problem
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise BadInputError([f"{path}: is not a batch file: {problem!r}"]) from None
    if any("/" in names[key] or names[key] in ("", ".", "..") for key in ("run", "block")):
        raise BadInputError([f"{path}: run {names['run']!r} and batch {names['block']!r} must be plain names"])
    return BatchPlace(path.resolve(), names["run"], names["block"], Path(names["state_dir"]), turns, attempted)


def start_batch(place: BatchPlace, program: Path | None = None) -> tuple[int, str]:
    """Have the batch run by itself; exit code and message. A batch that runs already is a success.

    `program` is the bench program's file (by default the one that is running). Raises LockedError when something
    else holds the bench.
    """
    holder = lock_holder(place.state_dir)
    if holder is not None:
        _must_be(place, holder)
        return 0, f"batch {place.block} is already running"
    make_folder(place.folder)
    ready = place.folder / f".{place.block}.{os.getpid()}.ready"
    complaints = place.folder / f"{place.block}.err"
    command = [
        # isolated from what else is installed
        *(sys.executable, "-I", "-S", str(unpacked(program or Path(sys.argv[0]), place.state_dir))),
        "run",
        str(place.path),
        "--ready",
        str(ready),
    ]
    try:
        started = _in_unit(place.block, command, complaints) if _systemd_runs() else _detached(command, complaints)
        answer = _await(ready, started.alive)
        if answer is None:
            # what begins later would run though nobody waits for it
            started.stop()
    finally:
        ready.unlink(missing_ok=True)
    if answer is None:
        lines = complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return 2, f"the bench program did not start: {lines[-1] if lines else 'it printed nothing'}"
    return answer


def _must_be(place: BatchPlace, holder: LockHolder) -> None:
    """Raise LockedError unless it is this batch that holds the bench."""
    if not place.is_held_by(holder):
        raise LockedError(lock_path(place.state_dir), holder)


def _systemd_runs() -> bool:
    return os.geteuid() == 0 and Path("/run/systemd/system").is_dir() and shutil.which("systemd-run") is not None


@dataclass(frozen=True)
class _Started:
    """A process that was started: whether it lives, and what ends it with all its children."""

    alive: Callable[[], bool]
    stop: Callable[[], object]


def _in_unit(block: str, command: list[str], complaints: Path) -> _Started:
    """Run `command` as a unit of its own: it outlives the connection, and what it leaves behind is killed with it."""
    unit = f"storqual-{block}"
    result = subprocess.run(
        [
            "systemd-run",
            "--collect",
            "--quiet",
            f"--unit={unit}",
            "--property=KillMode=mixed",
            f"--property=TimeoutStopSec={_STOP_S:g}",
            "--property=StandardOutput=null",
            f"--property=StandardError=truncate:{complaints}",
            *([f"--setenv={VARIABLE}={os.environ[VARIABLE]}"] if VARIABLE in os.environ else []),
            *command,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    if result.returncode != 0:
        raise StorqualError(f"systemd-run: {result.stderr.decode('utf-8', 'replace').strip()}")

    def control(*words: str) -> int:
        return subprocess.run(["systemctl", *words, unit], check=False, timeout=60 + _STOP_S).returncode

    return _Started(lambda: control("is-active", "--quiet") == 0, partial(control, "stop"))


def _detached(command: list[str], complaints: Path) -> _Started:
    """Run `command` in a session of its own, with nothing of ours open: a connection that waits for us can close."""
    with complaints.open("wb") as errors:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            cwd="/",
        )

    def stop() -> None:
        for number, limit_s in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, None)):
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(limit_s)
                return

    return _Started(lambda: child.poll() is None, stop)


def _await(ready: Path, alive: Callable[[], bool]) -> tuple[int, str] | None:
    """What the block's process says first; None when it ends, or the time is over, before it says anything."""
    deadline = time.monotonic() + _READY_S
    next_look = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        gone = False
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + 1.0
            gone = not alive()
        with suppress(FileNotFoundError):
            answer = json.loads(ready.read_text(encoding="utf-8"))
            return int(answer["code"]), str(answer["message"])
        if gone:
            return None
        time.sleep(_ASK_S)
    return None


def status_of(place: BatchPlace) -> dict[str, object]:
    """Whether the batch runs, who holds the bench, how many samples are spooled, how it ended, how far it is."""
    holder = lock_holder(place.state_dir)
    held = read_spool(place.spool)
    progress = None
    with suppress(OSError, ValueError):
        progress = json.loads((place.folder / "progress.json").read_text(encoding="utf-8"))
    return {
        "block": place.block,
        "running": holder is not None and place.is_held_by(holder),
        "holder": asdict(holder) if holder else None,
        "samples": len(held.done),
        "of": place.turns,
        "end": None if held.end is None else {key: held.end.get(key) for key in ("outcome", "message")},
        "progress": progress if progress and progress.get("block") == place.block else None,
    }


def stop_batch(place: BatchPlace) -> None:
    """Ask the block to stop and wait until it has; nothing when nothing runs.

    Raises LockedError when something else holds the bench, StorqualError when the batch does not stop.
    """
    holder = lock_holder(place.state_dir)
    if holder is None:
        return
    _must_be(place, holder)
    with suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_S
    while time.monotonic() < deadline:
        now = lock_holder(place.state_dir)
        if now is None or now.pid != holder.pid:
            return
        time.sleep(0.1)
    raise StorqualError(f"batch {place.block} (process {holder.pid}) did not stop within {_STOP_S:g} s")
