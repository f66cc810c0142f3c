# SPDX-License-Identifier: Apache-2.0
"""The one reader of samples.jsonl: a sample at a time, or of each line only which launch it is and how it ended."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from orjson import loads

from storqual.run.files import open_file, read_lines
from storqual.run.layout import SAMPLES
from storqual.run.records import NAMES, STATUSES, Launch, RawFile, Sample
from storqual_core.kit.errors import StorqualError

_HEAD = re.compile(
    rb'\{"schema":"[^"\\]*",'
    + b"".join(rb'"%b":"(?P<%b>[^"\\]+)",' % (name.encode(), name.encode()) for name in NAMES)
    + rb'"n":(?P<n>[0-9]+),"start":"(?P<start>[^"\\]*)","runtime_s":(?P<runtime_s>[0-9.eE+-]+),'
    + rb'"status":"(?P<status>[a-z_]+)",(?:"reason":"(?:[^"\\]|\\.)*",)?"series":\{'
)
"""How a line begins that storqual wrote; one of any other form is parsed as a whole."""
_TAIL = b',"suspect":['


Look = Callable[[bytes, Mapping[str, Any]], None]
"""Is shown each line, and the same parsed."""


def read_samples(
    run: Path, wanted: Callable[[Launch], bool] | None = None, look: Look | None = None
) -> Iterator[Sample]:
    """The samples of a run directory, one by one and in the order they came in; nothing is kept.

    With `wanted`, only the lines of those launches are parsed; without it each is shown to `look`. Raises
    StorqualError for a line that is no sample, or an id seen twice.
    """
    seen: set[str] = set()
    for where, line in _lines(run):
        if wanted is None:
            sample = _sample(where, line, look)
            _once(where, sample.id, seen)
            yield sample
        else:
            launch = _launch(where, line)
            _once(where, launch.id, seen)
            if wanted(launch):
                yield _sample(where, line)


def read_launches(run: Path) -> Iterator[Launch]:
    """Which launches have a sample, and how each ended; what they measured is passed over.

    Raises what `read_samples` raises.
    """
    seen: set[str] = set()
    for where, line in _lines(run):
        launch = _launch(where, line)
        _once(where, launch.id, seen)
        yield launch


class PointIndex:
    """Where the lines of each point are: for readers that want the samples of a point at a time, many times."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._places: defaultdict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
        offset = 0
        for where, line in _lines(run):
            self._places[_launch(where, line).key].append((offset, len(line)))
            offset += len(line) + 1

    def samples(self, key: tuple[str, str, str]) -> Iterator[Sample]:
        """The samples at a point (bench, adapter, point) in the order they came in. Raises as `read_samples`."""
        places = self._places.get(key, [])
        if places:
            with os.fdopen(open_file(self._run, SAMPLES), "rb") as file:
                for offset, length in places:
                    file.seek(offset)
                    yield _sample(f"{self._run / SAMPLES} at byte {offset}", file.read(length))


def _lines(run: Path) -> Iterator[tuple[str, bytes]]:
    """Whole lines with their place in the file."""
    file = run / SAMPLES
    for number, line in read_lines(run, SAMPLES):
        yield f"{file}:{number}", line


def _once(where: str, name: str, seen: set[str]) -> None:
    if name in seen:
        raise StorqualError(f"{where}: found sample {name} twice")
    seen.add(name)


def _sample(where: str, line: bytes, look: Look | None = None) -> Sample:
    try:
        # NaN and infinity are no JSON: other people's parsers refuse them, and so does this one
        parsed = loads(line)
        sample = Sample.from_json(parsed)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as problem:
        raise StorqualError(f"{where}: this is not a sample ({problem}); the run directory is damaged") from None
    if look is not None:
        look(line, parsed)
    return sample


def _launch(where: str, line: bytes) -> Launch:
    """The beginning and the end of a line, where they are as storqual writes them; else the whole line."""
    head, at = _HEAD.match(line), line.rfind(_TAIL)
    if head is None or at < 0:
        return Launch.of(_sample(where, line))
    try:
        # a key inside of primitives would leave a brace too many: that is no JSON, and the whole line is parsed
        tail = loads(b"{" + line[at + 1 :])
        raw = tuple(RawFile(file["path"], file["sha256"]) for file in tail["raw"])
        names: dict[str, Any] = {name: sys.intern(head[name].decode()) for name in NAMES}
        status = head["status"].decode()
        if status not in STATUSES or tail.keys() - {"suspect", "notes", "seed", "raw"}:
            return Launch.of(_sample(where, line))
        return Launch(
            **names,
            n=int(head["n"]),
            start=head["start"].decode(),
            runtime_s=float(head["runtime_s"]),
            status=status,
            suspect=tuple(tail["suspect"]),
            raw=raw,
        )
    except (ValueError, KeyError, TypeError):
        return Launch.of(_sample(where, line))
