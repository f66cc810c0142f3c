# SPDX-License-Identifier: Apache-2.0
"""A control node in a process of its own: campaigns that reserve folders as benches, and write there over a shell.

Each line of standard input starts one campaign: its name, the bench's state folder, for how long it writes, and how
long it waits for the bench. What it does on the bench it does as a campaign does: with the bench program, which
answers for reservations, and a command that holds the bench's lock and writes the bench's own record.
"""

import json
import os
import shlex
import sys
import threading
import time
from pathlib import Path

import storqual_core
from storqual.bench.follow import Connection
from storqual.bench.lease import Keeper, Waiting, bench_book, new_owner, renewing, reserve
from storqual_core.kit.errors import StorqualError

ROOT = str(Path(storqual_core.__file__).parent.parent)
_WRITE = Path(__file__).with_suffix(".write").read_text(encoding="utf-8")


def campaign(name: str, state: str, seconds: float, wait_s: float) -> str:
    """Reserve, write, give back; how it ended."""
    here = Connection("bench", lambda command: ["sh", "-c", command], ["true"], remote=False)
    program = [sys.executable, "-c", f"import sys; sys.path.insert(0, {ROOT!r})\n" + _MAIN]
    ask = bench_book(lambda command: (*here.call(command), ""), program, state)
    waiting = Waiting(wait_s, lambda line: say(name, line), look_s=0.2)
    lease = reserve(ask, Path(state).name, new_owner(f"test {name}", 3600, run=name), waiting)["lease"]
    token = f"{lease['number']}@{state}"
    under = Connection("bench", here.words, ["true"], remote=False, lease=token)
    keeper = Keeper(token, Path(state).name)
    keeper.start([here.words(renewing(token))], os.getpid())
    try:
        argv = [sys.executable, "-c", _WRITE.format(root=ROOT), state, name]
        while seconds > 0:
            # commands, as a campaign gives them: between two of them nothing of it is on the bench
            part = min(seconds, 0.5)
            say(name, "command")
            under.run(shlex.join([*argv, str(part)]))
            seconds -= part
    finally:
        keeper.stop()
    ask({"act": "release", "number": lease["number"]})
    return "done"


_MAIN = "from storqual_core.turns.main import main\nsys.exit(main())"
_LOCK = threading.Lock()


def say(name: str, text: str) -> None:
    with _LOCK:
        sys.stdout.write(json.dumps([name, text, time.time()]) + "\n")
        sys.stdout.flush()


def main() -> None:
    threads = []
    for line in sys.stdin:
        name, state, seconds, wait_s = json.loads(line)

        def run(name: str = name, state: str = state, seconds: float = seconds, wait_s: float = wait_s) -> None:
            try:
                say(name, campaign(name, state, seconds, wait_s))
            except StorqualError as problem:
                say(name, f"refused: {problem}")

        threads.append(threading.Thread(target=run))
        threads[-1].start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
