# SPDX-License-Identifier: Apache-2.0
"""The program that measures on the bench: `python3 core-<sha>.pyz start|run|status|stop BLOCK.json`.

`start` returns as soon as the block runs, whoever started it; `run` is the block itself, in the foreground. Exit
status: 0 done, 2 could not (bench taken, stopped, reset), 3 the block file is wrong, 4 refused by the guard.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Callable

from .bench_lock import LockedError, lock_holder, lock_path
from .block_file import Block, read_block_file
from .block_run import BlockRunner
from .durable import make_folder, replace_json
from .errors import StorqualError
from .spool import read_spool

__all__ = ["main", "start_block", "status_of", "stop_block"]

_READY_S = 180.0
_STOP_S = 90.0
_ASK_S = 0.05
_USAGE = "usage: core.pyz start|run|status|stop BLOCK.json"


def main(argv: list[str] | None = None) -> int:
    """Run one command; its message goes to standard error, the answer of `status` to standard output."""
    words = sys.argv[1:] if argv is None else argv
    commands: dict[str, Callable[[Path], int]] = {"start": _start, "status": _status, "stop": _stop}
    ready = Path(words[3]) if len(words) == 4 and words[2] == "--ready" else None
    if len(words) not in (2, 4) or words[0] not in {*commands, "run"} or (len(words) == 4 and ready is None):
        sys.stderr.write(_USAGE + "\n")
        return 3
    try:
        if words[0] == "run":
            return _run(Path(words[1]), ready)
        return commands[words[0]](Path(words[1]))
    except StorqualError as problem:
        _say_ready(ready, problem.exit_code, str(problem))
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code


def _run(path: Path, ready: Path | None) -> int:
    """The block itself, until it is done or somebody asks to stop."""
    block = read_block_file(path)
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda caught, _: asked.append(caught))
    end = BlockRunner(block, stopping=lambda: bool(asked), ready=lambda: _say_ready(ready, 0, "")).run()
    if end.exit_code:
        _say_ready(ready, end.exit_code, end.message)
        sys.stderr.write(f"{end.outcome}: {end.message}\n")
    return end.exit_code


def _say_ready(ready: Path | None, code: int, message: str) -> None:
    """Tell the `start` that waits how it went; only the first word counts."""
    if ready is not None and not ready.exists():
        with suppress(OSError):
            replace_json(ready, {"code": code, "message": message}, durable=False)


def _start(path: Path) -> int:
    code, message = start_block(path)
    if message:
        (sys.stderr if code else sys.stdout).write(message + "\n")
    return code


def start_block(path: Path, program: list[str] | None = None) -> tuple[int, str]:
    """Have the block in `path` run by itself; exit code and message. A block that runs already is a success.

    Raises LockedError when something else holds the bench, BadInputError for a bad block file.
    """
    block = read_block_file(path)
    if _is_running(block):
        return 0, f"block {block.block} runs already"
    make_folder(block.folder)
    ready = block.folder / f".{block.block}.{os.getpid()}.ready"
    complaints = block.folder / f"{block.block}.err"
    command = [*(program or _myself()), "run", str(path.resolve()), "--ready", str(ready)]
    try:
        alive = _in_unit(block, command, complaints) if _systemd_runs() else _detached(command, complaints)
        answer = _await(ready, alive)
    finally:
        ready.unlink(missing_ok=True)
    if answer is None:
        said = complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return 2, f"the bench program did not start: {said[-1] if said else 'it said nothing'}"
    return answer


def _is_running(block: Block) -> bool:
    """Whether this very block runs. Raises LockedError when the bench is taken by anything else."""
    holder = lock_holder(block.state_dir)
    if holder is None:
        return False
    if (holder.run, holder.block) == (block.run, block.block):
        return True
    raise LockedError(lock_path(block.state_dir), holder)


def _myself() -> list[str]:
    """How this program is run again: isolated from what else is installed, and without looking for it."""
    return [sys.executable, "-I", "-S", "-B", str(Path(sys.argv[0]).resolve())]


def _systemd_runs() -> bool:
    return os.geteuid() == 0 and Path("/run/systemd/system").is_dir() and shutil.which("systemd-run") is not None


def _in_unit(block: Block, command: list[str], complaints: Path) -> Callable[[], bool]:
    """Run `command` as a unit of its own: it outlives the connection, and what it leaves behind is killed with it."""
    unit = f"storqual-{block.block}"
    asked = subprocess.run(
        [
            "systemd-run",
            "--collect",
            "--quiet",
            f"--unit={unit}",
            "--property=KillMode=mixed",
            f"--property=TimeoutStopSec={_STOP_S:g}",
            "--property=StandardOutput=null",
            f"--property=StandardError=truncate:{complaints}",
            *command,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    if asked.returncode != 0:
        raise StorqualError(f"systemd-run: {asked.stderr.decode('utf-8', 'replace').strip()}")

    def alive() -> bool:
        return subprocess.run(["systemctl", "is-active", "--quiet", unit], check=False, timeout=60).returncode == 0

    return alive


def _detached(command: list[str], complaints: Path) -> Callable[[], bool]:
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
    # it is meant to outlive this process; an interpreter that warns about that would write to our caller
    child.returncode = None

    def alive() -> bool:
        return child.poll() is None

    return alive


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


def _status(path: Path) -> int:
    sys.stdout.write(json.dumps(status_of(read_block_file(path))) + "\n")
    return 0


def status_of(block: Block) -> dict[str, object]:
    """Whether the block runs, who holds the bench, how many samples are spooled, how it ended, how far it is."""
    holder = lock_holder(block.state_dir)
    held = read_spool(block.spool)
    progress = None
    with suppress(OSError, ValueError):
        progress = json.loads(block.progress.read_text(encoding="utf-8"))
    return {
        "block": block.block,
        "running": holder is not None and (holder.run, holder.block) == (block.run, block.block),
        "holder": asdict(holder) if holder else None,
        "samples": len(held.done),
        "of": len(block.launches),
        "end": None if held.end is None else {key: held.end.get(key) for key in ("outcome", "message")},
        "progress": progress if progress and progress.get("block") == block.block else None,
    }


def _stop(path: Path) -> int:
    return stop_block(read_block_file(path))


def stop_block(block: Block) -> int:
    """Ask the block to stop and wait until it has; 0 also when it does not run.

    Raises LockedError when something else holds the bench, StorqualError when the block does not stop.
    """
    holder = lock_holder(block.state_dir)
    if holder is None:
        return 0
    if (holder.run, holder.block) != (block.run, block.block):
        raise LockedError(lock_path(block.state_dir), holder)
    with suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_S
    while time.monotonic() < deadline:
        now = lock_holder(block.state_dir)
        if now is None or now.pid != holder.pid:
            return 0
        time.sleep(0.1)
    raise StorqualError(f"block {block.block} (process {holder.pid}) did not stop within {_STOP_S:g} s")


if __name__ == "__main__":
    sys.exit(main())
