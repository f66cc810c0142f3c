# SPDX-License-Identifier: Apache-2.0
"""The files of a run as every reader gets them: plain files, each kind with the size that it never honestly has.

Whoever can write to a run directory can put anything there: a pipe that is waited for, a link to a device, a file of
a terabyte, a small one that unpacks to it. Every reader of a run goes through here.
"""

import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

from storqual.base.files import (
    NoJsonError,
    OddFileError,
    Unpacking,
    digest_of,
    oddity_of,
    open_below,
    parse_json,
    read_all,
    size_problem,
)
from storqual.base.text import visible_text
from storqual.run.shapes import shape_problem
from storqual_core.kit.errors import StorqualError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class FileLimit:
    """The most that files of one kind have: bytes, bytes of a line or once unpacked, values of JSON or XML.

    `all_values` are those of all lines where readers keep them all.
    `why` says why no honest file reaches it. What was measured is a run of 10,000 samples at 1,000 points.
    """

    most: int
    why: str
    line: int = MIB
    unpacked: int = 32 * MIB
    values: int = 1_000_000
    all_values: int = 1 << 62


_VERDICT = FileLimit(64 * MIB, "1,000 points have 2 MB in a verdict, of 80,000 values")
_JUDGED_WITH = FileLimit(256 * KIB, "people write it by hand, and no more of it is read")
_CHECKS = FileLimit(32 * MIB, "a check is one line of 300 bytes, and a bench has dozens", all_values=4_000_000)
_STREAM = FileLimit(64 * MIB, "a minute at 10,000 I/Os a second packs to 5 MB", line=16 * MIB, unpacked=GIB // 2)
_NOTE = FileLimit(64 * MIB, "a larger attachment is refused when the note is written")
_PAGE = FileLimit(32 * MIB, "a page of 40 points has 2 MB, and more points go to pages of their own")

LIMITS = {
    "run.json": FileLimit(32 * MIB, "a plan of 1,000 points has 300 KB, of 10,000 values", values=500_000),
    "samples.jsonl": FileLimit(16 * GIB, "a sample has 3 to 30 KB, 100,000 of them 3 GB at most", line=8 * MIB),
    "events.jsonl": FileLimit(128 * MIB, "10,000 batches leave 100 MB of events", 16 * MIB, all_values=4_000_000),
    "checks.jsonl": _CHECKS,
    "verdict.json": _VERDICT,
    "waivers.yml": _JUDGED_WITH,
    "report.html": _PAGE,
    "junit.xml": FileLimit(32 * MIB, "1,000 points have 2 MB in 20,000 elements"),
    "ocp.jsonl": FileLimit(128 * MIB, "1,000 points have 7 MB"),
    "signoff.manifest.json": FileLimit(256 * MIB, "200,000 raw files have 50 MB", values=4_000_000),
    "signoff.": FileLimit(4 * MIB, "a statement names its run and its waivers: some KB"),
    "inputs/.json": FileLimit(16 * MIB, "the inventory of a bench has 10 KB, the noise of 1,000 points 200 KB"),
    "inputs/.yml": _JUDGED_WITH,
    "inputs/": FileLimit(4 * MIB, "a hand-written check has some KB, and is only copied"),
    "blocks/": FileLimit(16 * MIB, "the 250 launches of a batch have 40 KB"),
    "raw/": FileLimit(32 * MIB, "64 jobs with full histograms print 7 MB, which pack to 1 MB"),
    "raw/.console.gz": FileLimit(32 * MIB, "a recorder keeps 24 MiB of a console"),
    "raw/.stream.jsonl.gz": _STREAM,
    "raw/.writes.jsonl.gz": _STREAM,
    "raw/.output.jsonl.gz": FileLimit(64 * MIB, "a program that prints 10 MB packs to 1 MB", 16 * MIB, 64 * MIB),
    "turns/.json": FileLimit(16 * MIB, "the record of a trial has some KB, 10,000 tests of a program 2 MB"),
    "turns/": FileLimit(GIB // 2, "a stream that is still told, and is packed at its end"),
    "judgements/verdict.json": _VERDICT,
    "judgements/checks.jsonl": _CHECKS,
    "judgements/": _JUDGED_WITH,
    "notes/": _NOTE,
    "annex/verdict.json": _VERDICT,
    "annex/": _NOTE,
    "report/": _PAGE,
    "": FileLimit(GIB, "nothing reads it but to compare its digest"),
}
"""By the name of a file, or by its folder with the name or the end of the name of what lies in it."""
DAMAGE = (
    *(StorqualError, OSError, KeyError, TypeError, ValueError, AttributeError, IndexError),
    *(ArithmeticError, RecursionError, MemoryError),
)
"""What reading a run raises whose files are not what they should be."""
FOLDERS = ("inputs", "blocks", "raw", "turns", "judgements", "annex", "notes", "report", "robot")
_DEEPEST = 8
"""Folders in folders: a judgement in the annex lies four deep."""
_MOST_ENTRIES = 1_000_000
"""Of a whole run: 100,000 samples have 200,000 raw files."""
_MOST_ODDITIES = 20
_SMALL = min(limit.most for limit in LIMITS.values())


def limit_of(name: str) -> FileLimit:
    return LIMITS[_kind_of(name)]


def _kind_of(name: str) -> str:
    """The kind of a file of a run, as a key of `LIMITS`."""
    folder, _, inner = name.partition("/")
    if not inner:
        return name if name in LIMITS else "signoff." if name.startswith("signoff") else ""
    last = inner.rpartition("/")[2]
    ends = (last, f".{last.partition('.')[2]}", os.path.splitext(last)[1], "")  # noqa: PTH122 - one name
    for key in (f"{folder}/{end}" for end in ends):
        if key in LIMITS:
            return key
    return ""


def open_file(run: Path | str, name: str) -> int:
    """The handle of a file of a run. Raises FileNotFoundError, and OddFileError for what is no file of its kind."""
    return open_below(run, name, limit_of(name).most)


def read_bytes(run: Path | str, name: str) -> bytes:
    """A file of a run. Raises what `open_file` raises."""
    most = limit_of(name).most
    return read_all(open_below(run, name, most), most)


def read_json(run: Path, name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """A JSON file of a run. Raises what `open_file` raises, and NoJsonError, which names the file too."""
    try:
        return parse_line(read_bytes(run, name), name)
    except NoJsonError as problem:
        raise NoJsonError(f"{run / name}: is not as it was written ({problem}): damaged") from None


def parse_line(line: bytes, name: str) -> Any:  # noqa: ANN401 - whatever the line holds
    """A line of a file of a run, or all of it. Raises NoJsonError, also for what is not of the file's shape."""
    value = parse_json(line, limit_of(name).values)
    # what is judged by other rules, or behind a signature, is a verdict and checks as those of the run
    problem = shape_problem(value, name, kind := _kind_of(name), kind.rpartition("/")[2])
    if problem:
        raise NoJsonError(problem)
    return value


def read_object(run: Path, name: str) -> dict[str, Any]:
    """The same where it is an object. Raises NoJsonError for anything else."""
    value = read_json(run, name)
    if not isinstance(value, dict):
        raise NoJsonError(f"{run / name}: found {type(value).__name__}, expected a JSON object")
    return value


def read_text(run: Path, name: str) -> str:
    """A text in UTF-8 of a run. Raises what `open_file` raises, and OddFileError for one in another encoding."""
    data = read_bytes(run, name)
    if b"\0" in data:
        raise OddFileError(f"{run / name}: found NUL bytes, expected a text")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise OddFileError(f"{run / name}: is no text in UTF-8") from None


def read_lines(run: Path, name: str) -> Iterator[tuple[int, bytes]]:
    """Line numbers from 1 and lines without their end; a torn last line and a missing file yield nothing.

    Raises OddFileError as `open_file`, and for a line that is too long.
    """
    try:
        handle = open_file(run, name)
    except FileNotFoundError:
        return
    limit = limit_of(name)
    longest, values = limit.line, 0
    with os.fdopen(handle, "rb") as file:
        for number, line in enumerate(iter(partial(file.readline, longest + 1), b""), start=1):
            if len(line) > longest:
                raise OddFileError(f"{run / name}:{number}: this line has more than {longest} bytes")
            values += line.count(b",")
            if values > limit.all_values:
                raise OddFileError(f"{run / name}:{number}: up to here there are more than {limit.all_values} values")
            if line.endswith(b"\n"):
                yield number, line[:-1]


def read_packed_lines(data: bytes, name: str) -> Iterator[Any]:
    """The values of the lines of packed JSON, one after the other: what it unpacks to may not fit in memory.

    Raises OddFileError for one that cannot be unpacked or ends within a line, NoJsonError for a line that is no JSON.
    """
    limit = limit_of(name)
    source = BufferedReader(Unpacking(data, limit.unpacked))
    try:
        while line := source.readline(limit.line):
            if not line.endswith(b"\n"):
                raise OddFileError(f"{name}: ends within a line, or has one of more than {limit.line} bytes")
            yield parse_json(line, limit.values)
    except (EOFError, zlib.error) as problem:
        raise OddFileError(f"{name}: cannot be read ({problem})") from None


def file_digest(run: Path, name: str, most: int | None = None) -> str:
    """The SHA-256 of a file of a run, of at most `most` bytes. Raises what `open_file` raises."""
    most = limit_of(name).most if most is None else most
    return digest_of(open_below(run, name, most), most, f"{run / name}")


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """Something below a run directory: its path there, what the kernel says of it, and why it is no file of a run."""

    path: str
    status: os.stat_result
    odd: str

    @property
    def folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


def walk(run: Path, top: str = "") -> Iterator[FolderEntry]:
    """Everything below a run directory, or below the folder `top` of it; links are not followed.

    A folder that lies too deep is told and not gone into. Raises OSError, and OddFileError beyond a million entries.
    """
    return (FolderEntry(*parts) for parts in _below(run, top))


def _below(run: Path, top: str) -> Iterator[tuple[str, os.stat_result, str]]:
    """The same as plain tuples: of 200,000 raw files most are as they should be."""
    left, count = [top], 0
    while left:
        below = left.pop()
        with os.scandir(run / below) as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                count += 1
                if count > _MOST_ENTRIES:
                    raise OddFileError(f"{path}: a run has no more than {_MOST_ENTRIES} files and folders")
                status = entry.stat(follow_symlinks=False)
                yield path, status, _odd(path, status)
                if stat.S_ISDIR(status.st_mode) and path.count("/") < _DEEPEST:
                    left.append(path)


def _odd(path: str, status: os.stat_result) -> str:
    """Why that is nothing that a run has at this path; empty when it may be."""
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size <= _SMALL and path not in FOLDERS:
        return ""
    inside = stat.S_ISDIR(status.st_mode)
    if inside and path.count("/") >= _DEEPEST:
        return f"is a folder that lies more than {_DEEPEST} deep"
    if inside:
        return "is a folder, expected a file" if path in LIMITS else ""
    if path in FOLDERS:
        return oddity_of(status) or "is a file, expected a folder"
    return oddity_of(status) or size_problem(status.st_size, limit_of(path).most)


def oddities(run: Path) -> list[str]:
    """What below a run directory no run has, a sentence each that begins with its path; the first of many.

    Whoever judges or verifies looks here first, and at nothing else where there is something.
    """
    sentences: list[str] = []
    more = 0
    try:
        for path, _, odd in _below(run, ""):
            if odd and len(sentences) < _MOST_ODDITIES:
                sentences.append(f"{visible_text(path)}: {odd}")
            elif odd:
                more += 1
    except OddFileError as problem:
        sentences.append(str(problem))
    except OSError as problem:
        sentences.append(f"{os.path.relpath(problem.filename, run)}: cannot be read ({problem.strerror})")
    return [*sentences, f"and {more} more of this kind"] if more else sentences


def damage_sentences(run: Path, problem: BaseException) -> list[str]:
    """What was raised while a run was read (one of `DAMAGE`), as sentences that begin with the file."""
    if isinstance(problem, StorqualError | OSError):
        return [line.removeprefix(f"{run}/").removeprefix(f"{run.resolve()}/") for line in str(problem).splitlines()]
    return [f"run.json: what the run says cannot be what a run is ({problem!r})"]


def refuse_odd(run: Path) -> None:
    """Raise OddFileError with what no run has, if there is anything."""
    problems = oddities(run)
    if problems:
        raise OddFileError("\n".join(f"{run}/{problem}" for problem in problems))
