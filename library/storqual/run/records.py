# SPDX-License-Identifier: Apache-2.0
"""The records of a run: what was planned, and one sample, check or event as other people's scripts read them."""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from orjson import loads

from storqual.metrics import OF_RATES, Unavailable, Value
from storqual.run.files import open_file, read_lines
from storqual.run.layout import SAMPLES
from storqual.run.shapes import shape_problem
from storqual_core.kit.errors import StorqualError

REFERENCE_POINT = "golden_reference"
"""The point of launches on a bench's golden reference drive; no suite has it, so no criterion is judged there."""
NAMES = ("id", "bench", "adapter", "arm", "configuration", "session", "block", "point")
"""What names a launch, in the order in which its line begins."""
STATUSES = ("ok", "refused", "killed", "short", "io_error", "lost")


@dataclass(frozen=True, slots=True)
class RawFile:
    """A piece of evidence: path relative to the run directory, SHA-256 of the bytes as stored."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """Which launch it was, when, and how it ended; `raw` is its evidence.

    `suspect` are doubts about all that it measured, `suspect_but_rates` those about all but its rates: a file that
    kept its pace beside another load shows nothing about latencies and processor time.
    """

    id: str
    bench: str
    adapter: str
    arm: str
    configuration: str
    session: str
    block: str
    point: str
    n: int
    start: str
    runtime_s: float
    status: str
    suspect: tuple[str, ...]
    raw: tuple[RawFile, ...]
    suspect_but_rates: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.bench, self.adapter, self.point)

    def doubts_about(self, metric: str) -> tuple[str, ...]:
        """Why its value of a metric is no evidence; empty when it is."""
        return self.suspect if metric in OF_RATES else (*self.suspect, *self.suspect_but_rates)


@dataclass(frozen=True, slots=True)
class Sample(LaunchRecord):
    """The finished record of one launch: counts, bytes, nanoseconds, ticks and bins; metrics are functions of it."""

    series: Mapping[str, Sequence[float]]
    primitives: Mapping[str, Any]
    data: Mapping[str, Any] = field(default_factory=dict)
    """What was read back after it (`storqual_core.turns.content`), or why nothing was."""

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Sample:
        """Read one line. Raises KeyError, TypeError or ValueError for one that is not a sample."""
        status, problem = line["status"], shape_problem(line, SAMPLES)
        if problem or status not in STATUSES:
            raise ValueError(problem or f"status {status!r} is none of {', '.join(STATUSES)}")
        # a hundred thousand samples have a few names
        names: dict[str, Any] = {name: sys.intern(_text(line, name)) for name in NAMES}
        return cls(
            **names,
            n=int(_in_range(line["n"], "n")),
            start=str(line["start"]),
            runtime_s=float(_in_range(line["runtime_s"], "runtime_s")),
            status=status,
            suspect=tuple(str(reason) for reason in line.get("suspect") or ()),
            suspect_but_rates=tuple(str(reason) for reason in line.get("suspect_but_rates") or ()),
            raw=tuple(RawFile(str(file["path"]), str(file["sha256"])) for file in line.get("raw") or ()),
            series=_numbers(line, "series"),
            primitives=_numbers(line, "primitives"),
            data=line.get("data") or {},
        )


_LONGEST = ("read_lat_max_ns", "write_lat_max_ns")


@dataclass(frozen=True, slots=True)
class Launch(LaunchRecord):
    """What is kept of a launch, with the metrics that were asked for.

    `values` has a value or a reason for each of them, `seconds` the IOPS of each second. `pool` are the bins of its
    session, for percentiles that one launch is too short for; None where all of them have a value. `longest_us` is
    the longest I/O, where it is known.
    """

    values: Mapping[str, Value | Unavailable] = field(default_factory=dict)
    seconds: tuple[float, ...] = ()
    pool: SessionPool | None = None
    longest_us: float | None = None

    @classmethod
    def of(
        cls, sample: Sample, values: Mapping[str, Value | Unavailable] | None = None, pool: SessionPool | None = None
    ) -> Launch:
        """What is kept of a sample; without `values` nothing of what it measured."""
        seconds = () if values is None else tuple(map(float, sample.series.get("iops") or ()))
        record: dict[str, Any] = {name: getattr(sample, name) for name in _RECORD}
        longest = None if values is None else _longest_us(sample)
        return cls(**record, values=values or {}, seconds=seconds, pool=pool, longest_us=longest)

    @property
    def began(self) -> float:
        """When it was started, in seconds since 1970. Raises StorqualError for a start that is no time."""
        try:
            return datetime.fromisoformat(self.start).timestamp()
        except ValueError:
            raise StorqualError(f"sample {self.id}: found start {self.start!r}, expected an ISO time") from None

    def number(self, metric: str) -> float | None:
        """The value of `metric`; None where it has none, or was not asked for."""
        value = self.values.get(metric)
        return value.value if isinstance(value, Value) else None


_RECORD = tuple(part.name for part in fields(LaunchRecord))


def _longest_us(sample: Sample) -> float | None:
    latencies = [float(sample.primitives[name]) for name in _LONGEST if sample.primitives.get(name)]
    return max(latencies) / 1000.0 if latencies else None


@dataclass(slots=True)
class SessionPool:
    """Bins of so many launches of one session at one point, added up."""

    launches: int = 0
    primitives: Mapping[str, Any] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """An outcome appended by a hand-written pytest or Robot test; it becomes a criterion with `against: check`."""

    id: str
    outcome: str
    reason: str
    source: str
    bench: str | None
    adapter: str | None
    point: str | None
    fields: Mapping[str, Any]

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Check:
        """Read one line. Raises KeyError or TypeError for one that is not a check."""
        return cls(
            id=_text(line, "id"),
            outcome=_text(line, "outcome"),
            reason=str(line.get("reason") or ""),
            source=str(line.get("source") or ""),
            bench=line.get("bench"),
            adapter=line.get("adapter"),
            point=line.get("point"),
            fields=line,
        )


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the campaign; `fields` is the whole line, `number` and `sha256` are of that line.

    Which fields there are, and what they hold, its kind says (event_kinds.py): a fact is read from one kind.
    """

    time: str
    kind: str
    bench: str | None
    fields: Mapping[str, Any]
    number: int = 0
    sha256: str = ""

    @classmethod
    def from_json(cls, line: Mapping[str, Any], number: int = 0, sha256: str = "") -> Event:
        return cls(line["time"], line["kind"], line.get("bench"), line, number, sha256)

    def text(self, name: str) -> str:
        """The field `name` as text; empty when it is missing."""
        value = self.fields.get(name)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Preconditioned:
    """What was done to a bench's drives before they were measured, by stage: purge, fill, steady."""

    bench: str
    block: str
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """One cell on one adapter. `skipped` says why it will not be measured; empty means that it will be."""

    bench: str
    adapter: str
    point: str
    workload: str
    factors: Mapping[str, Any]
    drives: tuple[str, ...]
    varied: Mapping[str, Any]
    skipped: str

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.bench, self.adapter, self.point)

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> PlannedPoint:
        """Read one entry of `plan.points`. Raises KeyError or TypeError."""
        return cls(
            bench=_text(line, "bench"),
            adapter=_text(line, "adapter"),
            point=_text(line, "point"),
            workload=_text(line, "workload"),
            factors=_mapping(line, "factors"),
            drives=tuple(str(drive) for drive in line.get("drives") or ()),
            varied=dict(line.get("varied") or {}),
            skipped=str(line.get("skipped") or ""),
        )

    def to_json(self) -> dict[str, Any]:
        plain = {"factors": dict(self.factors), "drives": list(self.drives), "varied": dict(self.varied)}
        return {**{name: getattr(self, name) for name in self.__slots__}, **plain}


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """The launches between two non-instant changes on one bench.

    `change` is what getting there costs (reboot, reload, rebuild, instant, none). `boot` says when the bench boots
    for it: `always` (a fresh boot even when the arm is in place), `if_needed`, or `never`. `purpose` is `confirm` for
    a session that measures a fail afresh, and empty otherwise.
    """

    id: str
    bench: str
    arm: str
    configuration: str
    change: str
    boot: str
    arms: tuple[str, ...]
    batches: tuple[str, ...]
    purpose: str = ""

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> PlannedSession:
        """Read one entry of `plan.sessions`. Raises KeyError or TypeError."""
        arm = _text(line, "arm")
        return cls(
            id=_text(line, "id"),
            bench=_text(line, "bench"),
            arm=arm,
            configuration=_text(line, "configuration"),
            change=_text(line, "change"),
            boot=str(line.get("boot") or "if_needed"),
            arms=tuple(line.get("arms") or (arm,)),
            batches=tuple(line.get("blocks") or ()),
            purpose=str(line.get("purpose") or ""),
        )

    def to_json(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ("id", "bench", "arm", "configuration", "change", "boot")}
        listed = {"arms": list(self.arms), "blocks": list(self.batches)}
        return {**named, **listed, **({"purpose": self.purpose} if self.purpose else {})}


def planned_session(name: str) -> str:
    """The id in the plan: a session that was lost goes on as `<session>.<attempt>`, in the same configuration."""
    return name.partition(".")[0]


@dataclass(frozen=True)
class Plan:
    """The plan of a run; times in seconds, margins as fractions. `fields` is the whole object of run.json."""

    seed: int
    design: str
    points: tuple[PlannedPoint, ...]
    sessions: tuple[PlannedSession, ...]
    launches: int
    runtime_s: float
    ramp_s: float
    expected_seconds: float
    fields: Mapping[str, Any]

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Plan:
        """Read `plan` of run.json. Raises KeyError, TypeError or ValueError."""
        return cls(
            seed=int(document["seed"]),
            design=str(document.get("design") or "sessions"),
            points=tuple(PlannedPoint.from_json(point) for point in document["points"]),
            sessions=tuple(PlannedSession.from_json(session) for session in document["sessions"]),
            launches=int(document["launches"]),
            runtime_s=float(document["runtime_s"]),
            ramp_s=float(document["ramp_s"]),
            expected_seconds=float(document.get("expected_seconds") or 0.0),
            fields=document,
        )


@dataclass(frozen=True, slots=True)
class Arm:
    """Which drop is which: `file` is the copy in the run directory, `manifest` what was read from it."""

    name: str
    drop: str
    file: str
    sha256: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SuiteRef:
    """The suite and profile of a run; `file` is the copy in the run directory."""

    name: str
    profile: str
    file: Path
    sha256: str


_MOST_SECONDS = 1_000_000
"""Of a launch: more than eleven days."""
_MOST = 1 << 63  # no counter, size or time of a launch reaches it: it is three centuries in nanoseconds


def _in_range(value: Any, *name: str) -> Any:  # noqa: ANN401 - the value as it stands there
    if isinstance(value, (int, float)) and not -_MOST < value < _MOST:
        raise ValueError(f"{'.'.join(name)} is {str(value)[:40]}, which no launch can have")
    return value


def _numbers(line: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A mapping whose numbers are in range, those in its lists and mappings too; text in them is left alone."""
    numbers = _mapping(line, name)
    for key, value in numbers.items():
        # a sample has dozens of these, a run millions: most are whole numbers in range, and need no call
        kind = type(value)
        if kind is int and -_MOST < value < _MOST:
            continue
        inner = value if kind is list else value.values() if kind is dict else None
        if inner is None:
            _in_range(value, name, key)
        elif inner:
            if len(inner) > _MOST_SECONDS:
                raise ValueError(f"{name}.{key} has {len(inner)} values, more than any launch has")
            try:
                widest = abs(max(inner)) + abs(min(inner))
            except TypeError:
                continue
            _in_range(widest, name, key)
    return numbers


def _text(line: Mapping[str, Any], name: str) -> str:
    value = line[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, expected text")
    return value


def _mapping(line: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = line[name]
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {value!r}, expected a mapping")
    return value


_HEAD = re.compile(
    rb'\{"schema":"[^"\\]*",'
    + b"".join(rb'"%b":"(?P<%b>[^"\\]+)",' % (name.encode(), name.encode()) for name in NAMES)
    + rb'"n":(?P<n>[0-9]+),"start":"(?P<start>[^"\\]*)","runtime_s":(?P<runtime_s>[0-9.eE+-]+),'
    + rb'"status":"(?P<status>[a-z_]+)",(?:"reason":"(?:[^"\\]|\\.)*",)?"series":\{'
)
"""How a line begins that storqual wrote; one of any other form is parsed as a whole."""
_TAIL = b',"suspect":['
_TAIL_KEYS = {"suspect", "suspect_but_rates", "notes", "data", "seed", "raw"}


Look = Callable[[bytes, Mapping[str, Any]], None]
"""Is shown each line, and the same parsed."""


def read_samples(
    run: Path, selection: Callable[[Launch], bool] | None = None, look: Look | None = None
) -> Iterator[Sample]:
    """The samples of a run directory, one by one and in the order they came in; nothing is kept.

    With `selection`, only the lines of those launches are parsed; without it each is shown to `look`. Raises
    StorqualError for a line that is no sample, or an id seen twice.
    """
    seen: set[str] = set()
    for where, line in _lines(run):
        if selection is None:
            sample = _sample(where, line, look)
            _once(where, sample.id, seen)
            yield sample
        else:
            launch = _launch(where, line)
            _once(where, launch.id, seen)
            if selection(launch):
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
        self._offsets: defaultdict[tuple[str, str, str], list[tuple[int, int]]] = defaultdict(list)
        offset = 0
        for where, line in _lines(run):
            self._offsets[_launch(where, line).key].append((offset, len(line)))
            offset += len(line) + 1

    def samples(self, key: tuple[str, str, str]) -> Iterator[Sample]:
        """The samples at a point (bench, adapter, point) in the order they came in. Raises as `read_samples`."""
        offsets = self._offsets.get(key, [])
        if offsets:
            with os.fdopen(open_file(self._run, SAMPLES), "rb") as file:
                for offset, length in offsets:
                    file.seek(offset)
                    yield _sample(f"{self._run / SAMPLES} at byte {offset}", file.read(length))


def _lines(run: Path) -> Iterator[tuple[str, bytes]]:
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
        if status not in STATUSES or tail.keys() - _TAIL_KEYS:
            return Launch.of(_sample(where, line))
        return Launch(
            **names,
            n=int(head["n"]),
            start=head["start"].decode(),
            runtime_s=float(head["runtime_s"]),
            status=status,
            suspect=tuple(tail["suspect"]),
            suspect_but_rates=tuple(tail.get("suspect_but_rates") or ()),
            raw=raw,
        )
    except (ValueError, KeyError, TypeError):
        return Launch.of(_sample(where, line))
