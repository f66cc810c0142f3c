# SPDX-License-Identifier: Apache-2.0
"""Before a bench is changed: no turn is under way on it, and what one left behind in QEMU is put right.

A trial on a bench goes on when its campaign was killed or its connection lost, up to its own end, and takes back by
itself what it did. What the control node did to a virtual bench nobody takes back but the control node.
"""

import shlex
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from storqual.bench.follow import Connection, ConnectionLostError
from storqual.run import read_batch
from storqual.run.layout import BATCHES
from storqual.turns.acts import mend
from storqual.turns.paths import OURS, take_maps_apart
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import guests, start_targets
from storqual.virtual_bench.qmp import converse
from storqual_core.turns.left_behind import PUT_RIGHT, SCAN, scripts

_ANSWER_S = 600.0
_FREE_S = 900.0
_ASK_S = 20.0
_AGAIN_S = 2.0
_END = "--storqual--"


def leaves_something(run: Path) -> bool:
    return any(read_batch(run, path.stem)["spool"] == "streamed" for path in (run / BATCHES).glob("*.json"))


def settle(connection: Connection, state_dir: str, places: BenchPlaces | None, *, say: Callable[[str], None]) -> None:
    """Wait for the bench to answer and for the end of an earlier trial, then put right what it left.

    Raises ConnectionLostError when the bench stays silent for ten minutes, or a trial does not end within a quarter
    of an hour.
    """
    end, notice = time.monotonic() + _FREE_S, False
    while not (left := _left(connection, state_dir, say)):
        if time.monotonic() > end:
            raise ConnectionLostError(
                f"{connection.host}: {state_dir}/lock is still held after {_FREE_S:g} s; the file says by whom"
            )
        if not notice:
            say(f"{connection.host}: waiting until what runs there has ended")
        notice = True
    maps, *changed = left
    for names, change in zip(changed, PUT_RIGHT, strict=True):
        for name in dict.fromkeys(names.split()):
            say(f"{connection.host}: {name} was left {change}")
    for sentence in take_maps_apart(connection) if maps.strip() else ():
        say(f"{connection.host}: {sentence}")
    running = [] if places is None else guests(places)
    put_right: list[str] = []
    for state in running:
        put_right += converse(Path(state.monitor), partial(mend, bench=state.bench))
    if places is not None and len(running) == 1 and running[0].bench.targets is not None:
        start_targets(places, running[0].bench)
        put_right.append("the targets were left without power, and were started")
    for sentence in put_right:
        say(f"{connection.host}: {sentence}")
    if put_right:
        connection.run(SCAN)


def _left(connection: Connection, state_dir: str, say: Callable[[str], None]) -> list[str]:
    """What is there of our multipath configuration, then what was put right of each of `PUT_RIGHT`.

    Nothing where somebody holds the bench; where the connection is lost meanwhile, the bench is waited for. Asked in
    one command: each takes half a second on a slow bench, and this is asked after every batch.
    """
    lock = shlex.quote(f"{state_dir}/lock")
    command = f"test ! -e {lock} || flock -w {_ASK_S:g} {lock} true || exit 0\n"
    command += "".join(f"{{\n{script}\n}} || exit 1\necho {_END}\n" for script in (OURS, *scripts(state_dir)))
    try:
        status, output = connection.call(command, limit_s=_ASK_S * 4)
    except ConnectionLostError:
        _await_answer(connection, say)
        return []
    if status:
        raise ConnectionLostError(f"{connection.host}: what an earlier turn left is not put right: {output.strip()}")
    return output.split(f"{_END}\n")[:-1]


def _await_answer(connection: Connection, say: Callable[[str], None]) -> None:
    """Wait until the bench answers."""
    end, notice = time.monotonic() + _ANSWER_S, False
    while True:
        try:
            connection.run("true", limit_s=_ASK_S)
        except ConnectionLostError as problem:
            if time.monotonic() > end:
                raise
            if not notice:
                say(f"{connection.host} does not answer ({problem}); waiting for it")
            notice = True
            time.sleep(_AGAIN_S)
        else:
            return
