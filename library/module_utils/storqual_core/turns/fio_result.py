# SPDX-License-Identifier: Apache-2.0
"""What fio said, how it ended and what it was asked: primitives, a status, and a sentence of why.

fio exits 0 and says `error: 0` when it did nothing at all, and when it was killed half way; text may stand before the
JSON, or instead of it. So the status rests on three things together: exit status, I/Os done, time run.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Tuple

from ..kit.labelled_text import BYTE_ORDER_MARK, Repeated, find_spans, why_unread

_NUMBERS = frozenset((int, float))
_MOVED = ("io_bytes", "total_ios", "iops", "runtime")
_TIMED = ("mean", "max", "N")
_ENDED = ("error", "total_err", "job_runtime", "usr_cpu", "sys_cpu", "ctx")
_LONGEST_EDGE = 18
_TOO_MANY = 1 << 63
_VERSION = re.compile(r"fio-(\d{1,6})\.(\d{1,6})")
_NEW, _COUNTS_LATENCIES = (3, 0), (3, 18)
_SUSPECT = re.compile(f"\\A{BYTE_ORDER_MARK}|:\\s*-?(?:nan|inf)", re.IGNORECASE)
_NO_NUMBER = re.compile(r"(:\s*)(-?(?:nan|inf(?:inity)?))(?=\s*[,}\]])", re.IGNORECASE)
# what fio prints of itself, which may stand in the middle of its result
_OWN_WORDS = re.compile(r"^fio: .*$|^.*\b(?:error|failed|cannot|unable)\b.*$", re.IGNORECASE)


@dataclass(frozen=True)
class FioDocument:
    """fio's result: its version, its jobs, and its release as numbers, for what releases print in different ways.

    `repeats` names each object of the jobs in which a key stands twice, where the parser could see that.
    """

    version: str
    jobs: tuple[Mapping[str, Any], ...]
    release: tuple[int, int]
    repeats: frozenset[str] = frozenset()


def find_document(output: str) -> tuple[FioDocument | None, str]:
    """The last complete result in `output`, and every line that is no part of one.

    A result is a JSON object that begins on a line of its own and has at least one job. Raises nothing.
    """
    document, rest = _find(output)
    if document is None and _SUSPECT.search(output):
        # printf's word for a mean of nothing: what is no measure may have it, and a measure that has it is unreadable
        return _find(_NO_NUMBER.sub(r'\1"\2"', output.lstrip(BYTE_ORDER_MARK)))
    return document, rest


def _find(output: str) -> tuple[FioDocument | None, str]:
    result = None
    notes, end = [], 0
    for body, start, after in find_spans(output):
        document = document_of(body)
        if document is not None:
            result = replace(document, repeats=frozenset(_repeats(document.jobs)))
            notes.append(output[end:start])
            end = after
    notes.append(output[end:])
    return result, "\n".join(notes)


def _repeats(jobs: Sequence[Mapping[str, Any]], where: str = "") -> Iterator[str]:
    """Each object in which a key stands twice; fio itself repeats options and empty percentiles."""
    for entry in jobs:
        if isinstance(entry, Repeated):
            yield f"{where or 'a job'} (a key is in it twice)"
        for key, value in entry.items():
            # most values of a histogram are numbers
            if isinstance(value, dict) and key not in ("job options", "percentile"):
                yield from _repeats((value,), f"{where}.{key}" if where else key)


def document_of(body: object) -> FioDocument | None:
    """A parsed object as fio's result; None when it is something else."""
    if not isinstance(body, dict):
        return None
    jobs = body.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        return None
    version = str(body.get("fio version", ""))[:100]
    match = _VERSION.match(version)
    return FioDocument(
        version, tuple(jobs), (int(match.group(1)), int(match.group(2))) if match else _COUNTS_LATENCIES
    )


Find = Callable[[str], Tuple[Optional[FioDocument], str]]
"""From an output to its last complete result, and to what is no part of one."""

SHORT_BELOW = 0.9
"""A run that lasted less than this share of what was asked is short."""

_WAYS = ("read", "write", "trim", "mixed")
_CAPPED = re.compile(r"queue depth will be capped", re.IGNORECASE)
_NOTE_LIMIT = 20
# fio's words for an engine or an open flag that this target does not know
_UNSUPPORTED = ("not loadable", "Invalid argument", "Operation not supported", "Function not implemented")


@dataclass(frozen=True)
class FioResult:
    """One fio process: status (ok, refused, killed, short, io_error, lost), why, and what it counted.

    `primitives` has the names of a sample's primitives. `notes` are fio's own words beside the JSON; `suspect` are
    sentences that put the numbers in doubt. `jobs_ios` is the I/O count of each job, in fio's order.
    """

    status: str
    reason: str
    primitives: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    suspect: tuple[str, ...] = ()
    version: str = ""
    jobs_ios: tuple[int, ...] = ()


def is_unable(result: FioResult) -> bool:
    return result.status in ("refused", "io_error") and any(word in result.reason for word in _UNSUPPORTED)


def read_result(
    output: str, *, exit_status: int, asked_s: float, errors: str = "", find: Find = find_document
) -> FioResult:
    """Judge one fio process by its output, its exit status (negative: ended by that signal) and the asked seconds.

    `errors` is what it wrote to standard error. `find` finds the result in the output. Raises nothing, whatever the
    text.
    """
    document, rest = find(output)
    notes = _lines(rest) + _lines(errors)
    signalled = _signal(exit_status)
    if document is None:
        why = _why(rest, notes)
        if signalled:
            return FioResult("killed", f"fio was ended by {signalled}; it left no result", notes=notes)
        if exit_status == 0:
            return FioResult("lost", f"fio ended with 0 but its result cannot be read: {why}", notes=notes)
        return FioResult("refused", f"fio did not run (exit status {exit_status}): {why}", notes=notes)
    reader = _Reader(document.repeats, document.release)
    jobs = [reader.job(job) for job in document.jobs]
    primitives = _primitives(jobs)
    suspect = [f"fio: {note}" for note in notes if _CAPPED.search(note)]
    if reader.unreadable:
        suspect.append("fio's result has fields that cannot be read: " + ", ".join(sorted(reader.unreadable)[:8]))
    status, reason = _judge(jobs, primitives, exit_status, signalled, asked_s)
    # what cannot be read is not what was not done
    if reader.unreadable and status in ("ok", "refused", "short"):
        status, reason = "lost", suspect[-1]
    return FioResult(
        status, reason, primitives, notes, tuple(suspect), document.version, tuple(job.ios for job in jobs)
    )


def _why(text: str, notes: Sequence[str]) -> str:
    """Why there is no result: fio's own words, wherever they stand; else where its JSON is none, or what it said."""
    begun = re.search(r"^\{", text, re.MULTILINE)
    if begun is None:
        return notes[-1] if notes else "it printed nothing"
    lines = [line.strip() for line in text.splitlines() if not line.lstrip().startswith('"')]
    message = next((line for line in lines if _OWN_WORDS.match(line)), "")
    why = why_unread(text)
    return f"{message[:200]} ({why})" if message else why if why != "nothing" else "its JSON has no job"


def _judge(
    jobs: Sequence[_Job], primitives: Mapping[str, Any], exit_status: int, signalled: str, asked_s: float
) -> tuple[str, str]:
    """The first of: killed, I/O error, refused, short; else ok."""
    total = sum(job.ios for job in jobs)
    if signalled:
        return "killed", f"fio was ended by {signalled} after {primitives['runtime_ns'] / 1e9:.3g} of {asked_s:g} s"
    failed = [job for job in jobs if job.error or job.error_count]
    if failed:
        first = failed[0]
        what = os.strerror(first.error) if 0 < first.error < 4096 else f"error {first.error}"
        count = f", {sum(job.error_count for job in failed)} errors" if any(job.error_count for job in failed) else ""
        return "io_error", f"{_names(failed)}: {what}{count} (exit status {exit_status})"
    if exit_status != 0:
        return "io_error", f"fio ended with exit status {exit_status} and named no error"
    if total == 0:
        return "refused", "fio ended with 0 and no error, and did no I/O at all: it refused the job"
    idle = [job for job in jobs if job.ios == 0]
    if idle:
        return "refused", f"fio ended with 0 and no error, and did no I/O on {_names(idle)}"
    shortest = min(jobs, key=lambda job: job.runtime_ns)
    if shortest.runtime_ns < SHORT_BELOW * asked_s * 1e9:
        return "short", f"fio ran {shortest.runtime_ns / 1e9:.3g} of {asked_s:g} s on {_names([shortest])}"
    return "ok", ""


def _names(jobs: Sequence[_Job]) -> str:
    names = list(dict.fromkeys(job.drive or job.name or "a job without a name" for job in jobs))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _signal(exit_status: int) -> str:
    """The signal that ended fio: its own status 128, a shell's 128 + n, or a negative status."""
    if exit_status == 128:
        return "a signal"
    number = -exit_status if exit_status < 0 else exit_status - 128 if 128 < exit_status < 193 else 0
    try:
        return signal.Signals(number).name if number else ""
    except ValueError:
        return f"signal {number}"


def _lines(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    return tuple(line.strip()[:300] for line in text.splitlines() if line.strip())[:_NOTE_LIMIT]


@dataclass
class _Way:
    """One direction of one job, in nanoseconds and bytes."""

    ios: int = 0
    bytes: int = 0
    runtime_ns: int = 0
    lat_sum_ns: int = 0
    lat_max_ns: int = 0
    bins: Mapping[str, int] = field(default_factory=dict)


@dataclass
class _Job:
    """One job of fio's result."""

    name: str
    drive: str
    error: int
    error_count: int
    runtime_ns: int
    user_ns: int
    system_ns: int
    context_switches: int
    ways: dict[str, _Way]
    ios: int


def _primitives(jobs: Sequence[_Job]) -> dict[str, Any]:
    """Sums over jobs (and so over drives); times are the longest, histograms are added bin by bin."""
    sums: dict[str, Any] = {
        "runtime_ns": max([job.runtime_ns for job in jobs], default=0),
        "fio_user_ns": sum([job.user_ns for job in jobs]),
        "fio_system_ns": sum([job.system_ns for job in jobs]),
        "fio_context_switches": sum([job.context_switches for job in jobs]),
        "fio_errors": sum([job.error_count or (1 if job.error else 0) for job in jobs]),
    }
    for name in _WAYS:
        ways = [job.ways[name] for job in jobs if name in job.ways]
        ios = sum([way.ios for way in ways])
        if ios or name in ("read", "write"):
            sums[f"{name}_ios"] = ios
            sums[f"{name}_bytes"] = sum([way.bytes for way in ways])
        # a job may measure none (gtod_reduce): that is no latency of 0
        if ios and all(way.lat_max_ns for way in ways if way.ios):
            sums[f"{name}_lat_sum_ns"] = sum([way.lat_sum_ns for way in ways])
            sums[f"{name}_lat_max_ns"] = max([way.lat_max_ns for way in ways])
        every = [way.bins for way in ways if way.bins]
        if every:
            sums[f"{name}_bins"] = _added(every)
    return sums


def _added(every: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    """Histograms bin by bin, the lowest edge first; one alone, as fio prints it, is that already."""
    histogram = every[0] if every else {}
    if len(every) > 1:
        histogram = dict(histogram)
        for edge, count in (item for bins in every[1:] for item in bins.items()):
            histogram[edge] = histogram.get(edge, 0) + count
    edges = list(map(int, histogram))
    return histogram if edges == sorted(edges) else {edge: histogram[edge] for edge in sorted(histogram, key=int)}


def _is_histogram(bins: Mapping[str, Any]) -> bool:
    """Whether all edges and counts are whole numbers; looked at together, a run has a hundred thousand of them."""
    counts, digits, lengths = bins.values(), "".join(bins), set(map(len, bins))
    whole = set(map(type, counts)) == {int} and min(counts) >= 0
    return whole and digits.isascii() and digits.isdigit() and 0 not in lengths and max(lengths) <= _LONGEST_EDGE


class _Reader:
    """Numbers out of fio's JSON; what is no number is remembered by its name and counts as nothing."""

    def __init__(self, unreadable: Iterable[str], release: tuple[int, int]) -> None:
        self.unreadable = set(unreadable)
        self.release = release

    def number(self, entry: Mapping[str, Any], key: str, where: str = "") -> float:
        """A finite number from 0; 0 for a field that this fio does not have."""
        value = entry.get(key, 0)
        if type(value) in _NUMBERS and 0 <= value < _TOO_MANY:
            return value  # type: ignore[no-any-return]
        self.unreadable.add(where + key + (f" ({str(value)[:20]})" if isinstance(value, (str, float)) else ""))
        return 0

    def numbers(self, entry: Mapping[str, Any], keys: Sequence[str], where: str = "") -> list[float]:
        """`number` of each key; looked at together, since nearly always all of them are numbers."""
        values = [entry.get(key, 0) for key in keys]
        # what is no finite number makes the sum none
        if _NUMBERS.issuperset(map(type, values)) and min(values) >= 0 and sum(values) < _TOO_MANY:
            return values
        return [self.number(entry, key, where) for key in keys]

    def mapping(self, entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """A mapping; an empty one for a field that this fio does not have."""
        value = entry.get(key, {})
        if isinstance(value, dict):
            return value
        self.unreadable.add(key)
        return {}

    def job(self, entry: Mapping[str, Any]) -> _Job:
        ways = {name: self.way(self.mapping(entry, name), name) for name in _WAYS if name in entry}
        if "mixed" in ways and sum([way.ios > 0 for way in ways.values()]) > 1:
            del ways["mixed"]  # unified_rw_reporting=both prints the sum beside its parts
        runtime_ns = max([way.runtime_ns for way in ways.values()], default=0)
        error, errors, counted_ms, user, system, switches = self.numbers(entry, _ENDED)
        counted_ns = counted_ms * 1e6 or runtime_ns
        described = entry.get("desc") or self.mapping(entry, "job options").get("description") or ""
        return _Job(
            name=str(entry.get("jobname", ""))[:200],
            drive=str(described)[:200],
            error=int(error),
            error_count=int(errors),
            runtime_ns=runtime_ns,
            user_ns=int(user / 100 * counted_ns),
            system_ns=int(system / 100 * counted_ns),
            context_switches=int(switches),
            ways=ways,
            ios=sum([way.ios for way in ways.values()]),
        )

    def way(self, entry: Mapping[str, Any], name: str) -> _Way:
        """One direction; fio 2 counts microseconds and KiB, its last builds bytes and nanoseconds, as fio 3 does."""
        where = f"{name}."
        in_us, in_kib = (self.release < _NEW and key not in entry for key in ("lat_ns", "io_kbytes"))
        scale, suffix = (1000, "") if in_us else (1, "_ns")
        size, done, _, runtime_ms = self.numbers(entry, _MOVED, where)
        ios = int(done)
        total = self.mapping(entry, f"lat{suffix}")
        completion = self.mapping(entry, f"clat{suffix}")
        mean, longest, counted = self.numbers(total, _TIMED, where)
        source = completion if completion.get("bins") and not total.get("bins") else total
        bins = self.bins(source.get("bins") or {}, where, scale)
        moved = int(size * (1024 if in_kib else 1))
        if moved and "total_ios" not in entry:
            # fio before 2.1.3 gives a rate and a time, of which no count follows
            self.unreadable.add(f"{where}total_ios (missing)")
        if ios and not moved:
            self.unreadable.add(f"{where}io_bytes (nothing moved by {ios} I/Os)")
        if not in_us:
            self.agree(source, bins, where)
        return _Way(
            ios=ios,
            bytes=moved,
            runtime_ns=int(runtime_ms * 1e6),
            lat_sum_ns=round(mean * (counted or ios) * scale),
            lat_max_ns=int(longest * scale),
            bins=bins,
        )

    def agree(self, source: Mapping[str, Any], bins: Mapping[str, int], where: str) -> None:
        """A latency with a mean has a histogram, and the histogram holds every I/O that the latency counts.

        Releases before 3.18 do not tell how many it counts.
        """
        if "N" not in source and self.release < _COUNTS_LATENCIES:
            return
        counted = int(self.number(source, "N", where))
        if not bins:
            if counted and self.number(source, "mean", where):
                self.unreadable.add(f"{where}bins (none for {counted} latencies)")
        elif sum(bins.values()) != counted:
            self.unreadable.add(f"{where}bins ({sum(bins.values())} latencies, N says {counted})")

    def bins(self, entry: object, where: str, scale: int) -> Mapping[str, int]:
        """A histogram: lower edge in nanoseconds, as text, to count; empty bins are left out."""
        if entry == {}:
            return {}
        if not isinstance(entry, dict) or not _is_histogram(entry):
            self.unreadable.add(f"{where}bins")
            return {}
        if scale == 1 and 0 not in entry.values() and ",0" not in f",{','.join(entry)}":
            return entry
        return _added([{str(int(edge) * scale): count} for edge, count in entry.items() if count])
