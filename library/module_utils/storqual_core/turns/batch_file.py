# SPDX-License-Identifier: Apache-2.0
"""The batch file: an ordered list of turns that a bench runs without the control node (`storqual.block/3`).

Launches are spooled on the bench (`durable`) and need nobody until they are collected. Trials and programs are
`streamed`: what they tell leaves the bench as it happens, because a power cut may take the bench's disk. Of a
streamed batch the bench runs one turn at a time; `attempt`, which the control node adds to the file, says which.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..host.kernel_log import LogRule, read_rules
from ..kit.errors import BadInputError
from ..kit.settings import check_value, find
from .entries import EntryReader
from .fio_job import FioAsk, read_ask
from .spool import spool_path

if TYPE_CHECKING:
    from .requests import ProgramRequest, TrialRequest


FILE_SYSTEMS = ("ext4", "xfs")
_MIB = 1 << 20
_OWN_MIB = 384
"""What a file system gets beyond its file: mkfs.xfs makes none below 300 MiB, and its log alone takes 64 MiB."""


@dataclass(frozen=True)
class FileSystemAsk:
    """One file of `file_bytes` on a fresh file system of this kind, on each drive of the launch."""

    kind: str
    file_bytes: int


def part_bytes(file_bytes: int) -> int:
    """How much of a drive a file system with a file of this size takes, in whole MiB (bytes).

    The same on every drive, large or small: so the file lies where drives are compared, and mkfs has the same to do.
    """
    return (file_bytes * 5 // 4 // _MIB + 1 + _OWN_MIB) * _MIB


def read_file_system(entry: object, where: str, problems: list[str]) -> FileSystemAsk | None:
    """The `file_system` of a launch; None where there is none, or where `problems` says what is wrong with it."""
    reader = EntryReader(where, problems)
    fields = {} if entry is None else reader.keys(entry, ("kind", "file_bytes"))
    if not fields:
        return None
    kind, size = reader.choice(fields, "kind", FILE_SYSTEMS), reader.whole(fields, "file_bytes", _MIB, 1 << 60)
    if size % _MIB:
        reader.complain("file_bytes", size, "bytes in whole MiB")
    return FileSystemAsk(kind, size) if reader.sound else None


BY = {"iodepth": 1 << 16, "numjobs": 4096}
"""What may be raised, and how far fio can go with it."""
_PPM = 1000000
_DRAINS = 50
_BEYOND = 10


@dataclass(frozen=True)
class LatencyCap:
    """Raise `by` (iodepth, numjobs; per drive) from `least` to `most` until the response time passes `cap_ns`.

    The response time is the mean (`share_ppm` 0), or the percentile of so many parts per million.
    """

    cap_ns: int
    share_ppm: int
    by: str
    least: int
    most: int

    def runtime_s(self, response_ns: float) -> float:
        """How long a launch with several I/Os outstanding must run for such a response time to be right within 1 %.

        At its end fio waits for all that is outstanding, and gives each of them the time at which the last one came
        back: up to twice what it took. Those are the I/Os of one response time. In 50 response times they raise the
        mean by 1 %; for a percentile they must be no more than a tenth of what lies beyond it. Beyond the cap it is
        enough to know that it is passed.
        """
        drains = _DRAINS
        if self.share_ppm:
            drains = max(drains, _BEYOND * _PPM // (_PPM - self.share_ppm))
        return drains * min(response_ns, self.cap_ns) / 1e9

    def at(self, ask: FioAsk, load: int, response_ns: float = 0.0) -> FioAsk:
        """The launch of one step, from which such a response time is expected; 0 where nothing is known of it."""
        step = replace(ask, iodepth=load) if self.by == "iodepth" else replace(ask, numjobs=load)
        if step.iodepth == 1:
            return step
        return replace(step, runtime_s=max(step.runtime_s, self.runtime_s(response_ns)))


def read_latency_cap(entry: object, where: str, problems: list[str]) -> LatencyCap | None:
    """The `load` part of a launch; None where there is none, or where `problems` says what is wrong with it."""
    reader = EntryReader(where, problems)
    fields = {} if entry is None else reader.keys(entry, ("cap_ns", "share_ppm", "by", "least", "most"))
    if not fields:
        return None
    by = reader.choice(fields, "by", tuple(BY))
    cap_ns, share_ppm = reader.whole(fields, "cap_ns", 1, 10**15), reader.whole(fields, "share_ppm", 0, 999999)
    most = reader.whole(fields, "most", 1, BY[by])
    return LatencyCap(cap_ns, share_ppm, by, reader.whole(fields, "least", 1, most), most) if reader.sound else None


PURGES = ("none", "discard", "format")
MEDIA = ("all", "flash")
_PRECONDITION_KEYS = frozenset({"purge", "consent", "beside", "fill", "steady", "media"})
_MOST_VOLUME = 100


@dataclass(frozen=True)
class FillAsk:
    """Sequential writes of `bs` bytes over the whole drive, so many `times`: independent of any workload."""

    bs: int
    times: int


@dataclass(frozen=True)
class SteadyAsk:
    """Rounds of a load (`fio`, whose runtime is a round's) until it is level.

    `volume` is how much is written before the first test, in capacities of a drive; `rounds` is the most.
    """

    fio: FioAsk
    volume: float
    rounds: int


@dataclass(frozen=True)
class PreconditionAsk:
    """Purge (none, discard, or format, which needs a consent that names the drives), fill, then steady state.

    `media`: of all drives, or only of those whose medium does not turn (`flash`). `beside` are the claims on the
    bench's other drives, by id: a format may reach them as well.
    """

    purge: str
    consent: tuple[str, ...]
    fill: FillAsk | None
    steady: SteadyAsk | None
    media: str = "all"
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_precondition(entry: object, where: str, problems: list[str]) -> PreconditionAsk | None:
    """The `precondition` of a batch; None where there is none, or where `problems` says what is wrong with it."""
    if entry is None:
        return None
    reader = EntryReader(where, problems)
    fields = {"purge": "none", "media": "all", "consent": [], **reader.keys(entry, (), _PRECONDITION_KEYS)}
    purge, media = reader.choice(fields, "purge", PURGES), reader.choice(fields, "media", MEDIA)
    consent = reader.words({"consent": fields["consent"] or []}, "consent", least=0)
    beside = fields.get("beside") or {}
    if not isinstance(beside, dict) or not all(isinstance(target, dict) for target in beside.values()):
        reader.complain("beside", beside, "a mapping of drive ids to claims")
    fill = _fill(reader.inside("fill"), fields.get("fill"))
    steady = _steady(reader.inside("steady"), fields.get("steady"))
    return PreconditionAsk(purge, consent, fill, steady, media, beside) if reader.sound else None


def _fill(reader: EntryReader, entry: object) -> FillAsk | None:
    fields = {} if entry is None else reader.keys(entry, ("bs", "times"))
    if not fields:
        return None
    return FillAsk(reader.whole(fields, "bs", 512, 1 << 30), reader.whole(fields, "times", 1, 100))


def _steady(reader: EntryReader, entry: object) -> SteadyAsk | None:
    fields = {} if entry is None else reader.keys(entry, ("fio", "volume", "rounds"))
    if not fields:
        return None
    fio = read_ask(fields["fio"], f"{reader.where}: fio", reader.problems)
    volume, rounds = reader.number(fields, "volume", least=0.0), reader.whole(fields, "rounds", 1, 10000)
    if volume > _MOST_VOLUME:
        reader.complain("volume", volume, f"at most {_MOST_VOLUME} capacities")
    return None if fio is None else SteadyAsk(fio, float(volume), rounds)


SCHEMA = "storqual.block/3"
SPOOLS = ("durable", "streamed")
PARTS = ("all", "verify", "reclaim")
"""Of a turn: all of it; what a trial left, after the bench was down; the drive of a program taken back after that."""
_TAG = re.compile(r"[0-9a-f]{16}\Z")
_TOP = {
    "schema",
    "run",
    "block",
    "bench",
    "session",
    "state_dir",
    "targets",
    "idle_s",
    "precondition",
    "kernel_rules",
    "spool",
    "turns",
    "attempt",
}
_TURN = {"kind", "index", "id", "adapter", "arm", "configuration", "point", "n", "drives", "request"}
_LAUNCH = {"fio", "load", "file_system", "switch", "readback_s", "paced_iops"}
_SWITCH = {"drive", "setting", "value"}
KINDS = {"launch": "durable", "trial": "streamed", "program": "streamed"}
"""The kinds of turns, and how the batches are spooled that have them."""


@dataclass(frozen=True)
class SwitchStep:
    """One instant setting of a drive before a launch, by the names of the vocabulary's section `drive`."""

    drive: str
    setting: str
    value: Any


@dataclass(frozen=True)
class LaunchTurn:
    """One fio process at one point, or, with a `load`, a search for a cap; the names are copied into its sample.

    `paced_iops` is the rate to which fio keeps files that stand for drives, all of them together; 0 where there is
    none.
    """

    index: int
    id: str
    adapter: str
    arm: str
    configuration: str
    point: str
    n: int
    drives: tuple[str, ...]
    fio: FioAsk
    switch: tuple[SwitchStep, ...]
    load: LatencyCap | None = None
    file_system: FileSystemAsk | None = None
    readback_s: float = 0.0
    """How long its data is looked at afterwards."""
    paced_iops: int = 0

    @property
    def writes(self) -> bool:
        return self.file_system is not None or not self.fio.reads_only


@dataclass(frozen=True)
class DriveTurn:
    """A trial or a program on one claimed drive: the request says which of the two."""

    index: int
    id: str
    drive: str
    request: TrialRequest | ProgramRequest


@dataclass(frozen=True)
class Attempt:
    """Which turn of a streamed batch is run, which part of it, and the tag of its sectors (of trials)."""

    turn: str
    part: str
    tag: bytes


@dataclass(frozen=True)
class Batch:
    """What to run, where, and on which claimed targets; `targets` is what the guard reads its claims from."""

    run: str
    block: str
    bench: str
    session: str
    state_dir: Path
    targets: Mapping[str, Mapping[str, Any]]
    idle_s: float
    launches: tuple[LaunchTurn, ...] = ()
    on_drives: tuple[DriveTurn, ...] = ()
    attempt: Attempt | None = None
    precondition: PreconditionAsk | None = None
    kernel_rules: tuple[LogRule, ...] = ()

    @property
    def folder(self) -> Path:
        return self.state_dir / "spool" / self.run

    @property
    def spool(self) -> Path:
        attempt = None if self.attempt is None else (self.attempt.turn, self.attempt.part)
        return spool_path(self.state_dir, self.run, self.block, attempt)

    @property
    def progress(self) -> Path:
        return self.folder / "progress.json"

    @property
    def writes(self) -> bool:
        return self.precondition is not None or any(launch.writes for launch in self.launches)


def read_batch_file(path: Path) -> Batch:
    """The batch in `path`. Raises BadInputError with all that is wrong."""
    try:
        return parse_batch(path.read_text(encoding="utf-8"), where=str(path))
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInputError([f"{path}: cannot be read: {problem}"]) from problem


def parse_batch(text: str, *, where: str = "batch file") -> Batch:
    """The batch in `text`. Raises BadInputError with all that is wrong, never anything else."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadInputError([f"{where}: is not JSON: {problem}"]) from None
    problems: list[str] = []
    reader = EntryReader(where, problems)
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        raise BadInputError([f"{where}: found no {SCHEMA}"])
    reader.unknown(body, _TOP, "")
    names = {key: reader.name(body, key) for key in ("run", "block", "bench", "session")}
    state_dir = reader.text(body, "state_dir")
    if state_dir and not Path(state_dir).is_absolute():
        reader.complain("state_dir", state_dir, "an absolute path")
    targets = body.get("targets")
    if not isinstance(targets, dict) or not all(isinstance(target, dict) for target in targets.values()):
        reader.complain("targets", targets, "a mapping of drive ids to claims")
        targets = {}
    spool = reader.choice(body, "spool", SPOOLS)
    turns = body.get("turns")
    if not isinstance(turns, list) or not turns:
        reader.complain("turns", turns, "a list with at least one turn")
        turns = []
    read = [_turn(reader, entry, number, targets, spool) for number, entry in enumerate(turns)]
    for name in ("index", "id"):
        listed = [getattr(turn, name) for turn in read if turn]
        if len(set(listed)) != len(listed):
            reader.complain("turns", f"two turns with one {name}", f"a different {name} for each")
    idle_s = reader.number(body, "idle_s", least=0.0, default=0.0)
    rules = read_rules(body.get("kernel_rules"), f"{where}: kernel_rules", problems)
    precondition = read_precondition(body.get("precondition"), f"{where}: precondition", problems)
    attempt = _attempt(reader, body.get("attempt"), [turn for turn in read if isinstance(turn, DriveTurn)], spool)
    if problems:
        raise BadInputError(problems)
    return Batch(
        state_dir=Path(state_dir),
        targets=targets,
        idle_s=idle_s,
        launches=tuple(turn for turn in read if isinstance(turn, LaunchTurn)),
        on_drives=tuple(turn for turn in read if isinstance(turn, DriveTurn)),
        attempt=attempt,
        precondition=precondition,
        kernel_rules=rules,
        **names,
    )


def _turn(
    reader: EntryReader, entry: object, number: int, targets: Mapping[str, Any], spool: str
) -> LaunchTurn | DriveTurn | None:
    where = f"turns[{number}]"
    if not isinstance(entry, dict):
        reader.complain(where, entry, "a mapping")
        return None
    inner = reader.inside(where)
    inner.unknown(entry, _TURN, "")
    kind = inner.choice(entry, "kind", tuple(KINDS))
    if KINDS[kind] != spool:
        inner.complain("kind", kind, f"one whose batches are {spool}")
    drives = inner.words(entry, "drives", least=1)
    for drive in drives:
        if drive not in targets:
            inner.complain("drives", drive, "one of the batch's targets")
    if len(set(drives)) != len(drives):
        inner.complain("drives", list(drives), "each drive once")
    index = int(inner.number(entry, "index", least=0, whole=True))
    ident, request = inner.text(entry, "id"), inner.mapping(entry, "request")
    if kind == "launch":
        return _launch(inner, entry, request, targets, index=index, ident=ident, drives=drives)
    # with them comes every fault: a bench that measures need not compile them
    from .requests import read_program, read_trial  # noqa: PLC0415 - see above

    if len(drives) != 1:
        inner.complain("drives", list(drives), "one drive")
    request_reader = inner.inside("request")
    read: TrialRequest | ProgramRequest | None
    read = read_trial(request_reader, request) if kind == "trial" else read_program(request_reader, request)
    return None if read is None or not drives else DriveTurn(index, ident, drives[0], read)


def _launch(
    reader: EntryReader,
    entry: Mapping[str, Any],
    request: Mapping[str, Any],
    targets: Mapping[str, Any],
    *,
    index: int,
    ident: str,
    drives: tuple[str, ...],
) -> LaunchTurn | None:
    reader.unknown(request, _LAUNCH, "request")
    steps = request.get("switch") or []
    if not isinstance(steps, list):
        reader.complain("switch", steps, "a list of steps")
        steps = []
    ask = read_ask(request.get("fio"), f"{reader.where}: fio", reader.problems)
    load = read_latency_cap(request.get("load"), f"{reader.where}: load", reader.problems)
    system = read_file_system(request.get("file_system"), f"{reader.where}: file_system", reader.problems)
    switch = tuple(
        step for at, entry in enumerate(steps) for step in _steps(reader.inside(f"switch[{at}]"), entry, targets)
    )
    paced = int(reader.number(request, "paced_iops", least=0, default=0, whole=True))
    if ask is None:
        return None
    return LaunchTurn(
        index=index,
        id=ident,
        adapter=reader.text(entry, "adapter"),
        arm=reader.text(entry, "arm"),
        configuration=reader.text(entry, "configuration"),
        point=reader.text(entry, "point"),
        n=int(reader.number(entry, "n", least=0, whole=True)),
        drives=drives,
        fio=ask,
        switch=switch,
        load=load,
        file_system=system,
        readback_s=reader.inside("request").number(request, "readback_s", least=0.0, default=0.0),
        paced_iops=paced,
    )


def _attempt(reader: EntryReader, entry: object, turns: Sequence[DriveTurn], spool: str) -> Attempt | None:
    """What of a streamed batch is run; None of a durable one, which is run whole."""
    if spool == "durable" and entry is None:
        return None
    if not isinstance(entry, dict) or spool == "durable":
        reader.complain("attempt", entry, "the turn of a streamed batch that is run, and of no other batch")
        return None
    inner = reader.inside("attempt")
    inner.unknown(entry, {"turn", "part", "tag"}, "")
    turn = inner.choice(entry, "turn", [turn.id for turn in turns])
    part = inner.choice(entry, "part", PARTS)
    tag = str(entry.get("tag"))
    if not _TAG.match(tag):
        inner.complain("tag", tag, "16 hexadecimal digits")
        return None
    return Attempt(turn, part, bytes.fromhex(tag))


def _steps(reader: EntryReader, entry: object, targets: Mapping[str, Any]) -> list[SwitchStep]:
    """The step that an entry is; none when it is wrong."""
    if not isinstance(entry, dict) or not set(entry) >= _SWITCH:
        reader.problems.append(f"{reader.where}: found {entry!r}, expected a switch (drive, setting, value)")
        return []
    reader.unknown(entry, _SWITCH, "")
    drive = reader.text(entry, "drive")
    if drive not in targets:
        reader.complain("drive", drive, "one of the batch's targets")
    try:
        setting = find("drive", reader.text(entry, "setting"))
        return [SwitchStep(drive, setting.name, check_value(setting, entry["value"]))]
    except (BadInputError, ValueError) as problem:
        reader.problems.append(f"{reader.where}: {problem}")
        return []
