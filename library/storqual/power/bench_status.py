# SPDX-License-Identifier: Apache-2.0
"""One row for each bench: power, console, SSH, who has it, who waits, what runs, last verdict, drift, what is left.

Each bench is asked by threads of its own with limits of their own, so one that hangs costs its own row only.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from storqual.base.table import Table
from storqual.bench.lease import kept_here, lease_question, unpack_lease
from storqual.bench.reached import ReachedBench
from storqual.console.console import Console
from storqual.history.past_runs import LastResult
from storqual.inputs.power import read_rendered_power
from storqual.power.backends import bench_backends
from storqual.virtual_bench.description import BenchDescription
from storqual.virtual_bench.places import BenchPlaces
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lease import Lease, LeaseBook

LIMIT_S = 6.0
"""For all benches together."""
_CALL_S = 4.5
_SILENT = "no answer"
_HEADS = (
    *("bench", "power", "console", "SSH", "reserved by", "waiting", "running", "last verdict", "drift", "left over"),
    "out",
)


@dataclass(frozen=True)
class BenchStatus:
    """What is known of a bench; empty where there is nothing, `no answer` where nobody said."""

    bench: str
    power: str = ""
    console: str = ""
    ssh: str = _SILENT
    reserved: str = ""
    waiting: str = ""
    running: str = ""
    last: str = ""
    drift: str = ""
    left_over: str = ""
    out: str = ""


def status_table(rows: Sequence[BenchStatus]) -> Table:
    cells = tuple(tuple(asdict(row).values()) for row in rows)
    return Table("Benches", _HEADS, cells, widths=dict.fromkeys(_HEADS[1:], 40))


def read_status(
    benches: Mapping[str, ReachedBench | StorqualError],
    last: Mapping[str, LastResult],
    drift: Mapping[str, str] = MappingProxyType({}),
    *,
    limit_s: float = LIMIT_S,
) -> list[BenchStatus]:
    """The row of each bench within `limit_s` seconds; who has not answered by then says nothing."""
    parts: dict[str, dict[str, Any]] = {name: {} for name in benches}
    threads = []
    for name, bench in benches.items():
        parts[name].update({**_verdict(last.get(name)), "drift": drift.get(name, "")})
        if isinstance(bench, StorqualError):
            parts[name]["ssh"] = str(bench)
            continue
        if bench.variables.get("storqual_power"):
            parts[name]["power"] = _SILENT
        for ask in (_ssh, _power, _console):
            threads.append(threading.Thread(target=_into, args=(parts[name], ask, bench), daemon=True))
            threads[-1].start()
    end = time.monotonic() + limit_s
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0.0))
    # a thread that is late adds to what nobody reads any more
    return [BenchStatus(name, **dict(part)) for name, part in parts.items()]


def _into(part: dict[str, Any], ask: Callable[[ReachedBench], dict[str, Any]], bench: ReachedBench) -> None:
    part.update(ask(bench))


def _ssh(bench: ReachedBench) -> dict[str, Any]:
    """What the bench says, and for one that is silent what this control node knows of its reservation."""
    here = LeaseBook(kept_here(bench.name, bench.queue), name=bench.name)
    with suppress(StorqualError):
        known = _reservation(here.read())
        try:
            answer = bench.connection.run(lease_question(bench.state_dir), limit_s=_CALL_S)
        except StorqualError as problem:
            return {**known, "ssh": f"{_SILENT}: {str(problem).splitlines()[0]}"}
        return {**known, "ssh": "answers", **{key: value for key, value in _read_answer(answer).items() if value}}
    return {}


def _read_answer(answer: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="storqual-lease-") as folder:
        now, boot, lines = unpack_lease(answer, Path(folder))
        with suppress(StorqualError):
            # the bench's files with the bench's clock
            fields |= _reservation(LeaseBook(Path(folder), clock=lambda: now, boot_time=lambda: boot).read())
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            saved = json.loads((Path(folder) / "saved.json").read_text(encoding="utf-8"))
            fields["left_over"] = f"changed by run {saved['run']} since {saved['since']}, not restored"
    if lines[-1:] == ["held"]:
        fields["running"] = "something"
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            holder = json.loads(lines[0])
            fields["running"] = f"{holder['block'] or holder['purpose']} of {holder['run']} since {holder['since']}"
            # what it changed is what it measures
            fields.pop("left_over", None)
    return fields


def _reservation(lease: Lease) -> dict[str, Any]:
    owner, former = lease.owner, f", taken from {lease.former}" if lease.former else ""
    return {
        "reserved": "" if owner is None else owner.describe() + former,
        "waiting": "; ".join(waiter.describe() for _, waiter in lease.waiting),
        "out": lease.out.describe() if lease.out else "",
    }


def _power(bench: ReachedBench) -> dict[str, Any]:
    """What its first backend says; nobody proves it here."""
    entries = bench.variables.get("storqual_power") or ()
    state = bench.variables.get("virtual_bench_state")
    if not entries:
        return {}
    virtual = BenchPlaces.of(str(state)) if state else None
    try:
        read = read_rendered_power(entries, bench.name, bench.variables.get("storqual_queue"))
        backend = bench_backends(read, places=virtual, description=_nothing)[0]
        return {"power": f"{backend.name} says {backend.state() or 'unknown'}"}
    except StorqualError as problem:
        return {"power": f"{_SILENT}: {str(problem).splitlines()[0]}"}


def _nothing() -> BenchDescription:
    raise StorqualError("nothing is switched on here")


def _console(bench: ReachedBench) -> dict[str, Any]:
    state = bench.variables.get("virtual_bench_state")
    virtual = BenchPlaces.of(str(state)) if state and bench.variables.get("storqual_kind") == "virtual" else None
    console = Console(bench.name, virtual)
    if console.running() is None:
        named = bench.variables.get("storqual_console") or virtual
        return {"console": "not recorded" if named else ""}
    try:
        status = console.status()
    except StorqualError as problem:
        return {"console": f"{_SILENT}: {str(problem).splitlines()[0]}"}
    return {"console": "recorded" if status.get("connected", True) else "recorder is not connected"}


def _verdict(last: LastResult | None) -> dict[str, Any]:
    return {} if last is None else {"last": f"{last.outcome} {last.finished} ({last.run})"}
