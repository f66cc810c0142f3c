# SPDX-License-Identifier: Apache-2.0
"""The program that measures on the bench: `python3 core-<sha>.pyz start|run|status|stop BATCH.json`.

`start` returns as soon as the batch runs, whoever started it; `run` is the batch itself, in the foreground. Exit
status: 0 done, 2 could not (bench taken, stopped), 3 the batch file is wrong, 4 refused by the guard.

What a command does not need is not imported: an emulated bench compiles a module of ours in a tenth of a second.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress
from pathlib import Path

from ..kit.durable import replace_json
from ..kit.errors import StorqualError

_USAGE = "usage: core.pyz start|run|status|stop BATCH.json"


def main(argv: list[str] | None = None) -> int:
    """Run one command; its message goes to standard error, the answer of `status` to standard output."""
    words = sys.argv[1:] if argv is None else argv
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


def _control(word: str, path: Path) -> int:
    from .control import read_place, start_batch, status_of, stop_batch  # noqa: PLC0415 - see above

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
        from .launches import LaunchRunner  # noqa: PLC0415 - see above

        asked: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda caught, _: asked.append(caught))
        end = LaunchRunner(batch, stopping=lambda: bool(asked), ready=say_ready).run()
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
