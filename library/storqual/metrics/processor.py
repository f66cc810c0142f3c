# SPDX-License-Identifier: Apache-2.0
"""Service demand: what an I/O costs the host in processor time, interrupts and context switches.

Processor time is that of the whole system, from the first source that the sample has:

1. cpuidle residency: time that no processor was in an idle state;
2. the idle column of /proc/stat, which kernels without a tick while idle measure exactly;
3. fio's own user and system time, which misses interrupts and kernel threads. It is named so and has its own metric.

The busy columns of /proc/stat are sampled by the tick and are no meter for launches of seconds (CV 36-60 % over equal
launches); they serve only to split the time. What the idle bench uses, measured in a window without load, is
subtracted, and so is the bench program's own time. iowait is idle. Steal above 1 % voids all of it: time that another
guest took is in no counter. Counters and fio's run are compared as rates, so that windows may differ by milliseconds.
"""

from collections.abc import Callable, Iterator

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value
from storqual.metrics.rates import io_rate, moved_bytes, runtime_s
from storqual_core.host.counters import IDLE_CLASSES
from storqual_core.kit.quantities import format_percent

MOST_STEAL = 0.01
KIB = 1024
RESIDENCY = "cpuidle residency"
IDLE_COLUMN = "/proc/stat idle time"
BUSY_COLUMNS = "/proc/stat ticks"
OWN = "fio's own"
CYCLES = "performance events of the kernel"
_ANY_TIME = ("cpuidle_ns|stat_idle_ticks", "cpu_count", "wall_ns", "read_ios|write_ios", "runtime_ns")

Busy = tuple[float, str]
"""Processor seconds per second of load, and their source."""


def _total_ns(measured: Measured, prefix: str = "") -> float:
    total = float(measured.primitives[f"{prefix}wall_ns"]) * float(measured.primitives["cpu_count"])
    if total <= 0:
        raise UnavailableError("the counters cover no time")
    return total


def _ticks_ns(measured: Measured, columns: tuple[str, ...], prefix: str = "") -> float:
    """Columns of /proc/stat as nanoseconds; those that the kernel lacks count as nothing."""
    p = measured.primitives
    return sum(float(p.get(f"{prefix}stat_{name}_ticks", 0)) for name in columns) * float(p["tick_ns"])


def steal_share(measured: Measured) -> float | None:
    """The share of processor time that the hypervisor took; None where the kernel does not say."""
    p = measured.primitives
    if "stat_steal_ticks" not in p or "tick_ns" not in p:
        return None
    return _ticks_ns(measured, ("steal",)) / _total_ns(measured)


def _share(measured: Measured, source: str, prefix: str) -> float | None:
    """The busy share of all processor time in a window by one source; None when the source is not there."""
    p = measured.primitives
    if f"{prefix}wall_ns" not in p:
        return None
    total = _total_ns(measured, prefix)
    if source == RESIDENCY and f"{prefix}cpuidle_ns" in p:
        return 1.0 - float(p[f"{prefix}cpuidle_ns"]) / total
    if source == IDLE_COLUMN and f"{prefix}stat_idle_ticks" in p and "tick_ns" in p:
        return 1.0 - _ticks_ns(measured, IDLE_CLASSES, prefix) / total
    return None


def busy_share(measured: Measured) -> Busy:
    """Busy share of all processors while the load ran, background subtracted. Raises UnavailableError."""
    stolen = steal_share(measured)
    if stolen is not None and stolen > MOST_STEAL:
        raise UnavailableError(_stolen(stolen))
    for source in (RESIDENCY, IDLE_COLUMN):
        share = _share(measured, source, "")
        if share is None:
            continue
        background = _share(measured, source, "idle_")
        own_share = float(measured.primitives.get("own_cpu_ns", 0)) / _total_ns(measured)
        used = share - own_share - max(background or 0.0, 0.0)
        if used <= 0:
            raise UnavailableError("the load used no more processor time than the idle bench")
        return used, source if background is not None else f"{source}, idle use not subtracted"
    raise UnavailableError("neither cpuidle residency nor /proc/stat was recorded")


def _stolen(share: float) -> str:
    return f"the hypervisor took {format_percent(share)} of the processors' time; above 1 % CPU figures are not valid"


def _per_io(measured: Measured) -> Value:
    share, source = busy_share(measured)
    return Value(share * float(measured.primitives["cpu_count"]) * 1e6 / io_rate(measured), source)


def _per_kib(measured: Measured) -> Value:
    share, source = busy_share(measured)
    rate = moved_bytes(measured) / KIB / runtime_s(measured)
    return Value(share * float(measured.primitives["cpu_count"]) * 1e6 / rate, source)


def _percent(measured: Measured) -> Value:
    share, source = busy_share(measured)
    return Value(100.0 * share, source)


def _column(name: str) -> Callable[[Measured], Value]:
    """Microseconds per I/O of one busy column, background subtracted: coarse, for the split only."""

    def function(measured: Measured) -> Value:
        stolen = steal_share(measured)
        if stolen is not None and stolen > MOST_STEAL:
            raise UnavailableError(_stolen(stolen))
        columns = ("user", "nice") if name == "user" else (name,)
        if f"stat_{name}_ticks" not in measured.primitives:
            raise UnavailableError(f"no stat_{name}_ticks was recorded")
        share = _ticks_ns(measured, columns) / _total_ns(measured)
        if f"idle_stat_{name}_ticks" in measured.primitives and "idle_wall_ns" in measured.primitives:
            share -= _ticks_ns(measured, columns, "idle_") / _total_ns(measured, "idle_")
        return Value(
            max(share, 0.0) * float(measured.primitives["cpu_count"]) * 1e6 / io_rate(measured), BUSY_COLUMNS
        )

    return function


def _fio_seconds(measured: Measured) -> float:
    """Processor time of fio's own processes per second of their run."""
    p = measured.primitives
    used = float(p["fio_user_ns"]) + float(p["fio_system_ns"])
    return used / 1e9 / runtime_s(measured)


def _fio_per_io(measured: Measured) -> Value:
    return Value(_fio_seconds(measured) * 1e6 / io_rate(measured), OWN)


def _fio_per_kib(measured: Measured) -> Value:
    rate = moved_bytes(measured) / KIB / runtime_s(measured)
    return Value(_fio_seconds(measured) * 1e6 / rate, OWN)


def _events(name: str) -> Callable[[Measured], Value]:
    """Events of a counter per I/O; the counter covers the processors' window."""

    def function(measured: Measured) -> Value:
        seconds = float(measured.primitives["wall_ns"]) / 1e9
        rate = float(measured.primitives[name]) / seconds
        if f"idle_{name}" in measured.primitives and "idle_wall_ns" in measured.primitives:
            rate -= float(measured.primitives[f"idle_{name}"]) / (float(measured.primitives["idle_wall_ns"]) / 1e9)
        return Value(max(rate, 0.0) / io_rate(measured))

    return function


def _cycles(measured: Measured) -> Value:
    """Unhalted cycles per I/O, those of the idle bench subtracted; the bench program's own few are in it."""
    p = measured.primitives
    rate = float(p["cycles"]) / (float(p["wall_ns"]) / 1e9)
    watched = "idle_cycles" in p and "idle_wall_ns" in p
    if watched:
        rate -= float(p["idle_cycles"]) / (float(p["idle_wall_ns"]) / 1e9)
    if rate <= 0:
        raise UnavailableError("the load used no more cycles than the idle bench")
    return Value(rate / io_rate(measured), CYCLES if watched else f"{CYCLES}, idle use not subtracted")


def _steal(measured: Measured) -> Value:
    share = steal_share(measured)
    if share is None:
        raise UnavailableError("the kernel does not say what the hypervisor took")
    return Value(100.0 * share)


def _all() -> Iterator[Metric]:
    io = ("read_ios|write_ios", "runtime_ns")
    moved = ("read_bytes|write_bytes", "runtime_ns")
    needs: tuple[str, ...]
    yield Metric("cpu_us_per_io", "CPU time per I/O", "us/IO", "lower", _ANY_TIME, "ratio", _per_io)
    needs = ("cpuidle_ns|stat_idle_ticks", "cpu_count", "wall_ns", *moved)
    yield Metric("cpu_us_per_kib", "CPU time per KiB", "us/KiB", "lower", needs, "ratio", _per_kib)
    # of all processors together, as both HP papers and the QLA1040 report print it
    yield Metric("cpu_percent", "CPU utilisation", "%", "lower", _ANY_TIME, "ratio", _percent)
    for name in ("user", "system", "irq", "softirq"):
        needs = (f"stat_{name}_ticks", "tick_ns", "cpu_count", "wall_ns", *io)
        label = f"CPU time per I/O, {name}"
        yield Metric(f"cpu_{name}_us_per_io", label, "us/IO", "lower", needs, "ratio", _column(name))
    fio_times = ("fio_user_ns", "fio_system_ns")
    named = "CPU time of fio per"
    yield Metric("fio_cpu_us_per_io", f"{named} I/O", "us/IO", "lower", (*fio_times, *io), "ratio", _fio_per_io)
    yield Metric("fio_cpu_us_per_kib", f"{named} KiB", "us/KiB", "lower", (*fio_times, *moved), "ratio", _fio_per_kib)
    for name, label in (
        ("interrupts", "Interrupts per I/O"),
        ("adapter_interrupts", "Adapter interrupts per I/O"),
        ("context_switches", "Context switches per I/O"),
    ):
        yield Metric(f"{name}_per_io", label, "1/IO", "lower", (name, "wall_ns", *io), "ratio", _events(name))
    needs = ("cycles", "wall_ns", *io)
    yield Metric("cycles_per_io", "CPU cycles per I/O", "cycles/IO", "lower", needs, "ratio", _cycles)
    needs = ("stat_steal_ticks", "tick_ns", "cpu_count", "wall_ns")
    yield Metric("steal_percent", "Time taken by the hypervisor", "%", "lower", needs, "count", _steal)


PROCESSOR: tuple[Metric, ...] = tuple(_all())
