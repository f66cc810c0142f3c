# SPDX-License-Identifier: Apache-2.0
"""I/Os and bytes per second, errors per terabyte, and how evenly a launch ran: dips and the longest stall."""

import statistics
from collections.abc import Callable, Iterator

from storqual.metrics.metric import Measured, Metric, UnavailableError, Value

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
    counts = [float(measured.primitives[name]) for name in names if name in measured.primitives]
    if not counts or sum(counts) <= 0:
        raise UnavailableError(f"no {f'{way} ' if way else ''}{word} was done")
    return sum(counts)


def io_rate(measured: Measured, way: str = "") -> float:
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


_LINK = (
    "invalid_dword_count",
    "running_disparity_error_count",
    "loss_of_dword_sync_count",
    "phy_reset_problem_count",
)
_FC_LINK = (
    "link_failure_count",
    "loss_of_sync_count",
    "loss_of_signal_count",
    "invalid_tx_word_count",
    "invalid_crc_count",
)
_COUNTED = (
    ("command_errors_per_tb", "Command errors per TB", ("ioerr_cnt",)),
    ("command_timeouts_per_tb", "Command timeouts per TB", ("iotmo_cnt",)),
    ("link_errors_per_tb", "Link errors per TB", _LINK),
    ("fc_link_errors_per_tb", "FC link errors per TB", _FC_LINK),
    ("iscsi_errors_per_tb", "iSCSI errors per TB", ("iscsi_digest_err", "iscsi_timeout_err")),
)
"""What is counted of a launch's drives, and of phys, FC ports and iSCSI sessions that they are reached through."""


def _counted(names: tuple[str, ...]) -> Callable[[Measured], Value]:
    def function(measured: Measured) -> Value:
        counted = sum(float(measured.primitives[f"error_{name}"]) for name in names)
        return Value(counted / (moved_bytes(measured) / TB))

    return function


def _fairness(measured: Measured) -> Value:
    """Jain's index of the I/Os of all paths, in percent: 100 where each has as many, 100/n where one of n has all."""
    counts = [float(number) for number in measured.primitives["path_ios"].values()]
    if not sum(counts):
        raise UnavailableError("no path counted an I/O")
    return Value(100 * sum(counts) ** 2 / (len(counts) * sum(number * number for number in counts)))


def _all() -> Iterator[Metric]:
    for way in ("", "read", "write"):
        yield _iops(way)
    for unit, size in (("MB/s", MB), ("MiB/s", MIB)):
        for way in ("", "read", "write"):
            yield _throughput(way, unit, size)
    yield Metric("path_fairness", "Fairness between paths", "%", "higher", ("path_ios",), "ratio", _fairness)
    needs: tuple[str, ...] = ("fio_errors", "read_bytes|write_bytes")
    yield Metric("io_errors_per_tb", "I/O errors per TB", "1/TB", "lower", needs, "count", _errors)
    for name, label, counters in _COUNTED:
        needs = (*(f"error_{counter}" for counter in counters), "read_bytes|write_bytes")
        yield Metric(name, label, "1/TB", "lower", needs, "count", _counted(counters))


RATES: tuple[Metric, ...] = tuple(_all())


def _members_per_io(measured: Measured) -> Value:
    """I/Os that the members completed for each that the volume completed, both counted by the kernel in one window.

    A small write costs 4 on RAID 5 and 2 on RAID 1 and 10, a read 1 (Patterson, Gibson, Katz 1988, tables 2 to 5).
    """
    volume_ios = sum(float(measured.primitives.get(f"disk_{way}_ios", 0)) for way in ("read", "write"))
    if volume_ios <= 0:
        raise UnavailableError("the volume completed no I/O")
    member_ios = sum(float(measured.primitives.get(f"member_{way}_ios", 0)) for way in ("read", "write"))
    return Value(member_ios / volume_ios)


VOLUMES: tuple[Metric, ...] = (
    Metric(
        "member_ios_per_io",
        "Member I/Os per I/O",
        "IO/IO",
        "lower",
        ("member_read_ios|member_write_ios", "disk_read_ios|disk_write_ios"),
        "ratio",
        _members_per_io,
    ),
)


DIP_SHARE = 0.10
"""A second is a dip when it lies this far below the launch's median, and three robust standard deviations."""
DIP_SPREADS = 3.0
STALL_SHARE = 0.10
"""A second is part of a stall when less than this share of the launch's median was done in it."""
FEWEST_SECONDS = 2
_MAD = 1.4826


def _seconds(measured: Measured) -> list[float]:
    seconds = [float(value) for value in measured.series.get("iops") or ()]
    if len(seconds) < FEWEST_SECONDS:
        raise UnavailableError(f"{len(seconds)} seconds of I/O were recorded, {FEWEST_SECONDS} are needed")
    return seconds


def dip_count(seconds: list[float]) -> int:
    """How many dips: successive seconds below the level count once."""
    level = statistics.median(seconds)
    spread = _MAD * statistics.median([abs(value - level) for value in seconds])
    below = level - max(DIP_SPREADS * spread, DIP_SHARE * level)
    dips = 0
    inside = False
    for value in seconds:
        dips += value < below and not inside
        inside = value < below
    return dips


def longest_stall(seconds: list[float]) -> int:
    limit = STALL_SHARE * statistics.median(seconds)
    longest = run = 0
    for value in seconds:
        run = run + 1 if value <= limit else 0
        longest = max(longest, run)
    return longest


def _dips(measured: Measured) -> Value:
    seconds = _seconds(measured)
    return Value(dip_count(seconds) / (len(seconds) / 60.0))


def _stall(measured: Measured) -> Value:
    seconds = _seconds(measured)
    if statistics.median(seconds) <= 0:
        raise UnavailableError("no I/O completed during most of the launch")
    return Value(float(longest_stall(seconds)))


STEADINESS: tuple[Metric, ...] = (
    Metric("dips_per_min", "Dips per minute", "1/min", "lower", ("iops",), "count", _dips),
    Metric("longest_stall_s", "Longest stall", "s", "lower", ("iops",), "count", _stall),
)
