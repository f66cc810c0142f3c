# SPDX-License-Identifier: Apache-2.0
"""The block file: an ordered list of launches that a bench runs without the control node (`storqual.block/2`)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..host.log_rule import Rule, read_rules
from ..kit.errors import BadInputError
from ..kit.setting_values import check_value
from ..kit.settings import find
from .asks import FileSystemAsk, LoadAsk, PreconditionAsk, read_file_system, read_load, read_precondition
from .fio_job import FioAsk, read_ask

SCHEMA = "storqual.block/2"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
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
    "launches",
    "kernel_rules",
}
_LAUNCH = {"index", "adapter", "arm", "configuration", "point", "n", "drives", "fio", "load", "file_system", "switch"}
_SWITCH = {"drive", "setting", "value"}


@dataclass(frozen=True)
class SwitchStep:
    """One instant setting of a drive before a launch, by the names of the vocabulary's section `drive`."""

    drive: str
    setting: str
    value: Any


@dataclass(frozen=True)
class Launch:
    """One fio process at one point, or, with a `load`, a search for a cap; the names are copied into its sample."""

    index: int
    adapter: str
    arm: str
    configuration: str
    point: str
    n: int
    drives: tuple[str, ...]
    fio: FioAsk
    switch: tuple[SwitchStep, ...]
    load: LoadAsk | None = None
    file_system: FileSystemAsk | None = None

    @property
    def writes(self) -> bool:
        """Whether it can change what is on a target."""
        return self.file_system is not None or not self.fio.reads_only


@dataclass(frozen=True)
class Block:
    """What to run, where, and on which claimed targets; `targets` is what the guard reads its claims from."""

    run: str
    block: str
    bench: str
    session: str
    state_dir: Path
    targets: Mapping[str, Mapping[str, Any]]
    idle_s: float
    launches: tuple[Launch, ...]
    precondition: PreconditionAsk | None = None
    kernel_rules: tuple[Rule, ...] = ()

    @property
    def folder(self) -> Path:
        """Where this run's batch files, spools and progress are on the bench."""
        return self.state_dir / "spool" / self.run

    @property
    def spool(self) -> Path:
        """Where this block's finished samples go."""
        return self.folder / f"{self.block}.jsonl"

    @property
    def progress(self) -> Path:
        """How far the run's batch is, replaced about once a second."""
        return self.folder / "progress.json"

    @property
    def writes(self) -> bool:
        """Whether any launch can change what is on a target."""
        return self.precondition is not None or any(launch.writes for launch in self.launches)


def read_block_file(path: Path) -> Block:
    """The batch in `path`. Raises BadInputError with all that is wrong."""
    try:
        return parse_block(path.read_text(encoding="utf-8"), where=str(path))
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInputError([f"{path}: cannot be read: {problem}"]) from problem


def parse_block(text: str, *, where: str = "block file") -> Block:
    """The batch in `text`. Raises BadInputError with all that is wrong, never anything else."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadInputError([f"{where}: is not JSON: {problem}"]) from None
    problems: list[str] = []
    reader = _Reader(where, problems)
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
    launches = body.get("launches")
    if not isinstance(launches, list) or not launches:
        reader.complain("launches", launches, "a list with at least one launch")
        launches = []
    read = [_launch(reader, entry, number, targets) for number, entry in enumerate(launches)]
    indexes = [launch.index for launch in read if launch]
    if len(set(indexes)) != len(indexes):
        reader.complain("launches", "two launches with one index", "a different index for each")
    idle_s = reader.number(body, "idle_s", least=0.0, default=0.0)
    rules = read_rules(body.get("kernel_rules"), f"{where}: kernel_rules", problems)
    precondition = read_precondition(body.get("precondition"), f"{where}: precondition", problems)
    if problems:
        raise BadInputError(problems)
    return Block(
        state_dir=Path(state_dir),
        targets=targets,
        idle_s=idle_s,
        launches=tuple(launch for launch in read if launch),
        precondition=precondition,
        kernel_rules=rules,
        **names,
    )


def _launch(reader: _Reader, entry: object, number: int, targets: Mapping[str, Any]) -> Launch | None:
    where = f"launches[{number}]"
    if not isinstance(entry, dict):
        reader.complain(where, entry, "a mapping")
        return None
    inner = reader.inside(where)
    inner.unknown(entry, _LAUNCH, "")
    drives = inner.words(entry, "drives", least=1)
    for drive in drives:
        if drive not in targets:
            inner.complain("drives", drive, "one of the block's targets")
    if len(set(drives)) != len(drives):
        inner.complain("drives", list(drives), "each drive once")
    steps = entry.get("switch") or []
    if not isinstance(steps, list):
        inner.complain("switch", steps, "a list of steps")
        steps = []
    ask = read_ask(entry.get("fio"), f"{inner.where}: fio", reader.problems)
    load = read_load(entry.get("load"), f"{inner.where}: load", reader.problems)
    system = read_file_system(entry.get("file_system"), f"{inner.where}: file_system", reader.problems)
    switch = tuple(
        step for at, entry in enumerate(steps) for step in _steps(inner.inside(f"switch[{at}]"), entry, targets)
    )
    if ask is None:
        return None
    return Launch(
        index=int(inner.number(entry, "index", least=0, whole=True)),
        adapter=inner.text(entry, "adapter"),
        arm=inner.text(entry, "arm"),
        configuration=inner.text(entry, "configuration"),
        point=inner.text(entry, "point"),
        n=int(inner.number(entry, "n", least=0, whole=True)),
        drives=drives,
        fio=ask,
        switch=switch,
        load=load,
        file_system=system,
    )


def _steps(reader: _Reader, entry: object, targets: Mapping[str, Any]) -> list[SwitchStep]:
    """The step that an entry is; none when it is wrong."""
    if not isinstance(entry, dict) or not set(entry) >= _SWITCH:
        reader.problems.append(f"{reader.where}: found {entry!r}, expected a switch: drive, setting, value")
        return []
    reader.unknown(entry, _SWITCH, "")
    drive = reader.text(entry, "drive")
    if drive not in targets:
        reader.complain("drive", drive, "one of the block's targets")
    try:
        setting = find("drive", reader.text(entry, "setting"))
        return [SwitchStep(drive, setting.name, check_value(setting, entry["value"]))]
    except (BadInputError, ValueError) as problem:
        reader.problems.append(f"{reader.where}: {problem}")
        return []


class _Reader:
    """Values out of parsed JSON; what does not fit becomes a problem and a harmless stand-in."""

    def __init__(self, where: str, problems: list[str]) -> None:
        self.where = where
        self.problems = problems

    def inside(self, name: str) -> _Reader:
        """A reader that names a deeper place."""
        return _Reader(f"{self.where}: {name}", self.problems)

    def complain(self, key: str, found: object, expected: str) -> None:
        """Note one problem."""
        self.problems.append(f"{self.where}: {key}: found {str(found)[:120]!r}, expected {expected}")

    def unknown(self, entry: Mapping[str, Any], known: set[str] | frozenset[str], place: str) -> None:
        """Keys nobody reads are spelling mistakes."""
        for key in sorted(set(entry) - known):
            self.complain(place or key, key, "one of " + ", ".join(sorted(known)))

    def text(self, entry: Mapping[str, Any], key: str) -> str:
        """A text that is not empty."""
        value = entry.get(key)
        if isinstance(value, str) and value:
            return value
        self.complain(key, value, "a text")
        return ""

    def name(self, entry: Mapping[str, Any], key: str) -> str:
        """A text that is safe as a file name."""
        value = self.text(entry, key)
        if value and not _NAME.match(value):
            self.complain(key, value, "letters, digits, dot, dash and underscore")
        return value

    def number(
        self,
        entry: Mapping[str, Any],
        key: str,
        *,
        least: float,
        default: float | None = None,
        whole: bool = False,
    ) -> float:
        """A finite number not below `least`."""
        value = entry.get(key, default)
        fits = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if fits and isinstance(value, (int, float)) and least <= value < float("inf"):
            return value
        self.complain(key, value, f"a {'whole ' if whole else ''}number from {least:g}")
        return least

    def words(self, entry: Mapping[str, Any], key: str, *, least: int) -> tuple[str, ...]:
        """A list of texts, at least so many."""
        value: Sequence[Any] = entry.get(key) or []
        if isinstance(value, list) and len(value) >= least and all(isinstance(word, str) and word for word in value):
            return tuple(value)
        self.complain(key, value, f"a list of at least {least} texts")
        return ()
