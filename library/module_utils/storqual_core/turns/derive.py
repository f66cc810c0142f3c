# SPDX-License-Identifier: Apache-2.0
"""From what fio and the kernel said of a launch to its sample: one function, on the bench and whenever it is judged.

A launch leaves fio's output, and a record: which launch it was, how fio ended, the counters before and after, fio's
log of I/Os per second. Both are kept as evidence. The sample follows from them and from nothing else, so whoever has
them can make it again and compare.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, NamedTuple, Sequence

from ..host.counters import CounterSnapshot, DiskCounters, differences, idle_window, path_counts
from .content import data_of
from .fio_result import Find, FioResult, find_document, read_result

SAMPLE_SCHEMA = "storqual.sample/3"
RECORD_SCHEMA = "storqual.launch/3"
RECORD = "launch"
"""The type of a record among the evidence of a sample: `raw/<sha256>.launch.gz`."""
_WAYS = ("read", "write", "trim")
_DISKS = ("disks", "members", "paths")
_LEAST_REST_MS = 500.0
_MOST_INTERVALS = 1_000_000
_UNCOUNTED: Mapping[str, Any] = {
    "context_switches": None,
    "interrupts": None,
    "cpuidle_ns": None,
    "adapter_interrupts": None,
    "ticks": {},
}

Idle = Callable[[Sequence[Mapping[str, Any]], int], Dict[str, int]]
"""From the two readings of an idle window and the tick of their machine to its primitives."""


def result_of(
    output: str,
    errors: str,
    *,
    exit_status: int,
    asked_s: float,
    in_time: bool,
    wall_ns: int,
    find: Find = find_document,
) -> FioResult:
    """One fio process by what it wrote and how it ended; one that was not done in time was killed."""
    result = read_result(output, exit_status=exit_status, asked_s=asked_s, errors=errors, find=find)
    if in_time:
        return result
    why = f"storqual gave up on fio {wall_ns / 1e9:.0f} s after its start; {result.reason or 'it was running'}"
    return FioResult("killed", why, result.primitives, result.notes, result.suspect, result.version)


def series_of(result: FioResult, iops_logs: Sequence[str], log_ms: int) -> list[float]:
    return per_second(
        iops_logs,
        jobs_ios=result.jobs_ios,
        runtime_ns=int(result.primitives.get("runtime_ns", 0)),
        interval_ms=log_ms,
    )


def counted_of(before: CounterSnapshot | None, after: CounterSnapshot | None, tick_ns: int) -> dict[str, int]:
    """The window's primitives; none when fio ended before its ramp did."""
    if before is None or after is None:
        return {}
    return differences(before, after, tick_ns=tick_ns)


_PACE_SHARE = 0.02
"""How far a second may be off the pace of its file; one I/O more or less is always within it."""


def kept_pace(series: Sequence[float], iops: int, asked_s: float) -> bool:
    """Whether each second of a launch had the rate that fio was to keep; False where not all seconds were logged."""
    tolerance = max(_PACE_SHARE * iops, 1.0)
    return len(series) >= max(int(asked_s), 1) and all(abs(rate - iops) <= tolerance for rate in series)


def _beside(record: Mapping[str, Any], series: Sequence[float]) -> tuple[list[str], list[str]]:
    """Doubts about all that was measured, and about all but its rates: other loads beside a file that has a pace.

    A file that had its pace in every second shows by itself that they did not reach its rate. How long each I/O took
    and what it cost of the processors shows nothing of the kind. This is decided here, by the launch alone and for
    both arms alike: nothing that is judged is known yet.
    """
    paced: Mapping[str, Any] = record.get("paced") or {}
    doubts = [str(doubt) for doubt in paced.get("beside", ())]
    if not doubts or not kept_pace(series, int(paced["iops"]), float(record["asked_s"])):
        return doubts, []
    return [], doubts


def arrived_of(per_s: int | None, result: FioResult) -> dict[str, int]:
    """Primitives of an open loop of so many arrivals a second; none of a closed one (None)."""
    if per_s is None:
        return {}
    return {"open_loop": 1, "asked_ios": round(per_s * (int(result.primitives.get("runtime_ns", 0)) / 1e9))}


def counts_of(result: FioResult) -> dict[str, Any]:
    primitives = result.primitives
    bins: dict[str, int] = {}
    for way in _WAYS:
        for edge, count in (primitives.get(f"{way}_bins") or {}).items():
            bins[edge] = bins.get(edge, 0) + count
    return {
        "ios": sum(int(primitives.get(f"{way}_ios", 0)) for way in _WAYS),
        "runtime_ns": int(primitives.get("runtime_ns", 0)),
        "lat_sum_ns": sum(int(primitives.get(f"{way}_lat_sum_ns", 0)) for way in _WAYS),
        "bins": bins,
    }


def idle_of(idle: Sequence[Mapping[str, Any]], tick_ns: int) -> dict[str, int]:
    """The primitives of an idle window by the two readings in a record. Raises ValueError where one is missing."""
    before, after = (_snapshot(reading) for reading in idle)
    if before is None or after is None:
        raise ValueError("found an idle window without its two readings")
    return idle_window(before, after, tick_ns=tick_ns)


def derive(
    record: Mapping[str, Any], texts: Mapping[str, str], find: Find = find_document, idle: Idle = idle_of
) -> dict[str, Any]:
    """The sample of a launch (but for `raw`, which names its evidence) from its record and the texts beside it.

    `texts` are by the name that the record has for them, `find` finds fio's result in one, `idle` has what the idle
    bench did. Raises KeyError, TypeError or ValueError for a record that is none, or whose texts are not all there.
    """
    if record["schema"] != RECORD_SCHEMA:
        raise ValueError(f"found schema {record['schema']!r}, expected {RECORD_SCHEMA!r}")
    results = [_result(run, texts, find) for run in record["runs"]]
    result, run = results[record["chosen"]], record["runs"][record["chosen"]]
    tick_ns = int(record["tick_ns"])
    window = _snapshot(record["before"]), _snapshot(record["after"])
    series = series_of(result, record["iops_logs"], record["log_ms"])
    doubts, but_rates = _beside(record, series)
    return {
        **record["launch"],
        "runtime_s": int(result.primitives.get("runtime_ns", 0)) / 1e9,
        "status": "lost" if record["gone"] else result.status,
        "reason": record["reason"],
        "series": {"iops": series},
        "primitives": {
            **result.primitives,
            "asked_runtime_ns": round(record["asked_s"] * 1e9),
            "fio_wall_ns": run["wall_ns"],
            **counted_of(*window, tick_ns),
            **path_counts(*window),
            "overhead_ns": record["overhead_ns"],
            **(idle(record["idle"], tick_ns) if record["idle"] else {}),
            **arrived_of(record["arrivals_per_s"], result),
            **(_curve(record, results) if record["search"] else {}),
        },
        "suspect": [*record["suspect"], *doubts],
        # only where there is something: it is about files that stand for drives
        **({"suspect_but_rates": but_rates} if but_rates else {}),
        "notes": list(record["notes"]),
        "data": _data(record["data"], texts),
        "seed": record["seed"],
    }


def _data(data: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """What was read back after the launch, or why nothing was."""
    return data_of(texts[data["readback"]]) if data["readback"] else {"reason": str(data["reason"])}


def _result(run: Mapping[str, Any], texts: Mapping[str, str], find: Find) -> FioResult:
    output, errors = (texts[run[name]] if run[name] else "" for name in ("output", "errors"))
    return result_of(
        output,
        errors,
        exit_status=run["exit_status"],
        asked_s=run["asked_s"],
        in_time=run["in_time"],
        wall_ns=run["wall_ns"],
        find=find,
    )


def _curve(record: Mapping[str, Any], results: Sequence[FioResult]) -> dict[str, Any]:
    """What a search for a latency cap measured: counts and bins of each launch, and what was asked."""
    steps = [{"load": run["load"], **counts_of(result)} for run, result in zip(record["runs"], results)]
    return {"load_steps": steps, **record["search"]}


def dump_snapshot(snapshot: CounterSnapshot | None) -> dict[str, Any] | None:
    """Counters as a record has them; what the kernel does not count is left out."""
    if snapshot is None:
        return None
    disks = {name: {disk: counts._asdict() for disk, counts in getattr(snapshot, name).items()} for name in _DISKS}
    return {name: value for name, value in {**snapshot._asdict(), **disks}.items() if value not in (None, {})}


def _snapshot(entry: Mapping[str, Any] | None) -> CounterSnapshot | None:
    """Counters out of a record. Raises KeyError or TypeError for anything else."""
    if entry is None:
        return None
    known = {**_UNCOUNTED, **entry}
    for name in _DISKS:
        if known.get(name):
            known[name] = {disk: DiskCounters(**counters) for disk, counters in known[name].items()}
    return CounterSnapshot(**known)


def parse_log(text: str) -> list[tuple[int, int, int]]:
    """Time (ms since the ramp's end), value, direction of each entry; a line that is no entry is left out."""
    entries = []
    for line in text.splitlines():
        words = line.split(",")
        try:
            time_ms, value, way = int(words[0]), int(words[1]), int(words[2])
        except (ValueError, IndexError):
            continue
        if time_ms >= 0 and value >= 0:
            entries.append((time_ms, value, way))
    return entries


class _Logged(NamedTuple):
    """What fio's logs of some jobs hold: values by interval, I/Os, and when the last entry was."""

    values: dict[int, float]
    ios: float
    last_ms: int


def _logged(logs: Sequence[str], interval_ms: int) -> _Logged:
    values: dict[int, float] = {}
    ios = 0.0
    last_ms = 0
    for text in logs:
        before: dict[int, int] = {}
        for time_ms, value, way in parse_log(text):
            number = max(round(time_ms / interval_ms), 1)
            if number > _MOST_INTERVALS:
                continue
            values[number] = values.get(number, 0.0) + value
            # an entry covers the time since the one before it, or one interval when those between were left out
            spent = time_ms - before.get(way, 0)
            ios += value * (spent if spent < 1.5 * interval_ms else interval_ms) / 1000.0
            before[way] = time_ms
            last_ms = max(last_ms, time_ms)
    return _Logged(values, ios, last_ms)


def per_second(
    logs: Sequence[str], *, jobs_ios: Sequence[int], runtime_ns: int, interval_ms: int = 1000
) -> list[float]:
    """I/Os per second of every interval, in order; a stalled interval, which fio leaves out, is 0.

    fio never logs the interval that is open when a job ends, and jobs that end together often differ in whether that
    is so. What the log of a job does not hold is known exactly: the I/Os of its whole run (`jobs_ios`, one number
    per log) less those logged, over the time that is left, when that is half a second or more for all jobs. Empty
    when the logs cannot tell: another number of logs than jobs, nothing in one of them, or a run that no job has.
    """
    if len(logs) != len(jobs_ios) or interval_ms <= 0:
        return []
    logged, ios_of = [_logged([text], interval_ms) for text in logs], list(jobs_ios)
    runtime_ms = runtime_ns / 1e6
    left_ms = runtime_ms - max((log.last_ms for log in logged), default=0)
    count = max((number for log in logged for number in log.values), default=0)
    silent = not count or any(ios and not log.values for log, ios in zip(logged, ios_of))
    if silent and runtime_ms >= 1.5 * interval_ms:
        return []
    count += max(int(left_ms // interval_ms), 1) if left_ms >= _LEAST_REST_MS else 0
    if count > _MOST_INTERVALS:
        return []
    series = [0.0] * count
    for log, ios in zip(logged, ios_of):
        for number, value in log.values.items():
            series[number - 1] += value
        left = (runtime_ms - log.last_ms) / 1000.0
        rest = round(max(ios - log.ios, 0.0) / left, 3) if left > 0 else 0.0
        for number in range(max(log.values, default=0), len(series)):
            series[number] += rest
    return series
