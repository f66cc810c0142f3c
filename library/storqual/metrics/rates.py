# SPDX-License-Identifier: Apache-2.0
"""I/Os and bytes per second, and errors per terabyte."""

from __future__ import annotations

from collections.abc import Iterator

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value

__all__ = ["RATES", "io_count", "io_rate", "moved_bytes", "runtime_s"]

MB = 1_000_000
MIB = 1024 * 1024
TB = 10**12


def runtime_s(measured: Measured) -> float:
    """Seconds that fio measured. Raises UnavailableError for none."""
    seconds = float(measured.primitives["runtime_ns"]) / 1e9
    if seconds <= 0:
        raise UnavailableError("fio measured for no time at all")
    return seconds


def io_count(measured: Measured, way: str = "") -> float:
    """I/Os of one direction, or of both. Raises UnavailableError for none: no I/O is no measurement."""
    return _count(measured, "ios", way, "I/O")


def moved_bytes(measured: Measured, way: str = "") -> float:
    """Bytes of one direction, or of both. Raises UnavailableError for none."""
    return _count(measured, "bytes", way, "byte")


def _count(measured: Measured, what: str, way: str, word: str) -> float:
    names = [f"{way}_{what}"] if way else [f"read_{what}", f"write_{what}"]
    found = [float(measured.primitives[name]) for name in names if name in measured.primitives]
    if not found or sum(found) <= 0:
        raise UnavailableError(f"no {f'{way} ' if way else ''}{word} was done")
    return sum(found)


def io_rate(measured: Measured, way: str = "") -> float:
    """I/Os per second."""
    return io_count(measured, way) / runtime_s(measured)


def _iops(way: str) -> Metric:
    def function(measured: Measured) -> Value:
        return Value(io_rate(measured, way))

    name = f"{way}_iops" if way else "iops"
    label = f"{way.capitalize()} IOPS" if way else "IOPS"
    needs = ("runtime_ns", f"{way}_ios" if way else "read_ios|write_ios")
    return Metric(name, label, "IOPS", "higher", needs, "rate", function, "" if way else "iops")


def _throughput(way: str, unit: str, size: int) -> Metric:
    def function(measured: Measured) -> Value:
        return Value(moved_bytes(measured, way) / size / runtime_s(measured))

    short = unit.lower().replace("/", "_")
    name = f"{way}_throughput_{short}" if way else f"throughput_{short}"
    label = f"{way.capitalize()} throughput" if way else "Throughput"
    needs = ("runtime_ns", f"{way}_bytes" if way else "read_bytes|write_bytes")
    return Metric(name, label, unit, "higher", needs, "rate", function, "" if way else "iops")


def _errors(measured: Measured) -> Value:
    """I/O errors that fio met, per decimal terabyte moved; a launch without any is a true 0."""
    return Value(float(measured.primitives["fio_errors"]) / (moved_bytes(measured) / TB))


def _all() -> Iterator[Metric]:
    for way in ("", "read", "write"):
        yield _iops(way)
    for unit, size in (("MB/s", MB), ("MiB/s", MIB)):
        for way in ("", "read", "write"):
            yield _throughput(way, unit, size)
    needs = ("fio_errors", "read_bytes|write_bytes")
    yield Metric("io_errors_per_tb", "I/O errors per TB", "1/TB", "lower", needs, "count", _errors)


RATES: tuple[Metric, ...] = tuple(_all())
