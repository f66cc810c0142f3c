# SPDX-License-Identifier: Apache-2.0
"""What must be done so that a bench has the declared volumes: layouts compared with layouts, never names with names.

Pure: declared volumes and those that exist go in, both with their members as drive ids; what to keep, to change, to
delete and to make comes out, and what a person must look at first.
"""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Sequence

from ...guard.signatures import volume_uuid
from ...kit.errors import BadInputError
from ...kit.settings import check_section
from ...tools.capabilities import Value, VolumeFacts

POLICIES = ("read_policy", "write_policy", "io_policy", "disk_cache", "rebuild_rate", "bitmap")
"""What can be changed while a volume lives."""

_NEEDED = ("level", "members")
_WITHOUT_STRIPS = "1"
_NOT_STARTED = "inactive"


@dataclass(frozen=True)
class Wish:
    """A declared volume. `members` and `spares` are drive ids, `strip` is bytes; None: not declared."""

    adapter: str
    level: str
    members: tuple[str, ...]
    strip: int | None
    name: str | None
    initialisation: str
    spares: tuple[str, ...] | None
    policies: Mapping[str, Value]
    tool: str

    @property
    def key(self) -> str:
        """What the volume of these members is known by, whatever it is called: its UUID where storqual makes it."""
        return volume_uuid(self.members)

    @property
    def owner(self) -> str:
        """The volume in messages and records: `<adapter>/<name>`."""
        return f"{self.adapter}/{self.made_name}"

    @property
    def made_name(self) -> str:
        """The declared name, else one that its members give."""
        return self.name or f"sq-{self.key[:8]}"

    @property
    def drives(self) -> tuple[str, ...]:
        """Members and spares."""
        return self.members + (self.spares or ())

    def declared(self) -> dict[str, Any]:
        """Every declared setting by name, in the drop's words."""
        settings: dict[str, Any] = {"level": self.level, "members": sorted(self.members)}
        if self.strip is not None and self.level != _WITHOUT_STRIPS:
            settings["strip"] = self.strip
        if self.name is not None:
            settings["name"] = self.name
        if self.spares is not None:
            settings["hot_spares"] = sorted(self.spares)
        return {**settings, **self.policies}


@dataclass(frozen=True)
class Existing:
    """A volume that the bench has: what its tool says, its drives by id (kernel name where nobody claims one).

    `own`: storqual made it. `this_run`: the run that asks made it, so that its end needs nobody's consent.
    """

    facts: VolumeFacts
    members: tuple[str, ...]
    spares: tuple[str, ...]
    own: bool
    this_run: bool = False
    failed: tuple[str, ...] = ()
    adapter: str = ""
    """Its adapter, as the tool names it."""

    @property
    def drives(self) -> frozenset[str]:
        """Everything that belongs to it, failed members too."""
        return frozenset((*self.members, *self.spares, *self.failed))

    def settings(self) -> dict[str, Any]:
        """What it is, in the drop's words."""
        return {
            "level": self.facts.level,
            "members": sorted(self.members),
            "strip": self.facts.strip,
            "name": self.facts.name,
            "hot_spares": sorted(self.spares),
            **self.facts.policies,
        }


@dataclass(frozen=True)
class VolumePlan:
    """One declared volume: the one that is it already, else what is in its way; policies to set; what forbids it."""

    wish: Wish
    there: Existing | None
    delete: tuple[Existing, ...] = ()
    policies: Mapping[str, Value] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def makes(self) -> bool:
        """Whether the volume must be made."""
        return self.there is None

    @property
    def writes(self) -> bool:
        """Whether anything is to be done."""
        return self.makes or bool(self.policies)

    def before(self) -> dict[str, Any]:
        """What was there in place of each declared setting; None where there was no such volume."""
        found = self.there or next((volume for volume in self.delete), None)
        settings = found.settings() if found is not None else {}
        return {name: settings.get(name) for name in self.wish.declared()}


def read_wishes(volumes: Iterable[Mapping[str, Any]]) -> list[Wish]:
    """Declared volumes from the section `raid` of a resolved drop (each with its `adapter`).

    Raises BadInputError with every problem: a name or value that is wrong, what is missing, a drive named twice.
    """
    wishes, problems = [], []
    taken: dict[str, str] = {}
    for number, given in enumerate(volumes, start=1):
        place = f"volume {number} of adapter {given.get('adapter')}"
        values = {name: value for name, value in given.items() if name != "adapter"}
        try:
            plain: Mapping[str, Any] = check_section("raid", values)
        except BadInputError as problem:
            problems += [f"{place}: {line}" for line in problem.problems]
            continue
        missing = [name for name in _NEEDED if not plain.get(name)]
        if missing:
            problems.append(f"{place}: found no {' and no '.join(missing)}, expected a level and members")
            continue
        wish = _wish(str(given.get("adapter", "")), plain)
        for drive in wish.drives:
            if drive in taken:
                problems.append(f"{place}: drive {drive} is in {taken[drive]} already")
            taken.setdefault(drive, place)
        wishes.append(wish)
    if problems:
        raise BadInputError(problems)
    return wishes


def _wish(adapter: str, plain: Mapping[str, Any]) -> Wish:
    spares = plain.get("hot_spares")
    return Wish(
        adapter=adapter,
        level=plain["level"],
        members=tuple(plain["members"]),
        strip=plain.get("strip"),
        name=plain.get("name"),
        initialisation=plain.get("initialisation", ""),
        spares=None if spares is None else tuple(spares),
        policies={name: plain[name] for name in POLICIES if name in plain},
        tool=plain.get("tool", ""),
    )


def plan_volumes(wishes: Sequence[Wish], existing: Sequence[Existing], claimed: Iterable[str]) -> list[VolumePlan]:
    """One plan per declared volume. A volume that shares a drive with a declared one and is not it must go."""
    known = set(claimed)
    return [_plan(wish, existing, known) for wish in wishes]


def _plan(wish: Wish, existing: Sequence[Existing], claimed: set[str]) -> VolumePlan:
    touching = [volume for volume in existing if volume.drives & set(wish.drives)]
    there = next((volume for volume in touching if not _cut_short(volume) and _same_layout(wish, volume)), None)
    if there is not None:
        has = there.settings()
        policies = {name: value for name, value in wish.policies.items() if has.get(name) != value}
        return VolumePlan(wish, there, policies=policies, problems=tuple(_ill(wish, there)))
    problems = []
    for volume in touching:
        others = sorted(volume.drives - claimed)
        if others:
            problems.append(
                f"{wish.owner}: volume {volume.facts.id} is in its way and is also on {', '.join(others)}, "
                f"which no claim covers; delete it yourself if it is not needed"
            )
    return VolumePlan(wish, None, delete=tuple(touching), problems=tuple(problems))


def _same_layout(wish: Wish, volume: Existing) -> bool:
    """Level, members, strip, and name and spares where they are declared.

    A volume that storqual made of these members and that lost one is still that volume, and is told to be ill.
    """
    has = volume.settings()
    ill = volume.own and volume.facts.uuid == wish.key and volume.facts.healthy is False
    passed = {*POLICIES, *(("members", "hot_spares") if ill else ())}
    return all(has[name] == value for name, value in wish.declared().items() if name not in passed)


def _cut_short(volume: Existing) -> bool:
    """Whether the run was interrupted while it made this volume: some members know of it, so it does not start."""
    return volume.this_run and volume.facts.state == _NOT_STARTED


def _ill(wish: Wish, volume: Existing) -> Iterable[str]:
    """A volume that lost a member and is not being rebuilt is not what was declared, though its layout is."""
    if volume.facts.healthy is False and not volume.facts.progress:
        failed = f", failed: {', '.join(volume.facts.failed)}" if volume.facts.failed else ""
        yield (
            f"{wish.owner}: volume {volume.facts.id} is {volume.facts.state}{failed}; "
            f"replace what failed and let it rebuild, or delete the volume"
        )


_IDLE = ("idle", "frozen", "")
_LOOK_AGAIN_S = 5.0
"""A controller has no event to wait for; and an event of md may come before its counters are settled."""


def wait_for(
    volume: Existing, progress: Callable[[Existing], Mapping[str, float]], seconds: float
) -> Mapping[str, float]:
    """Wait at most `seconds`; percent by task of what is still under way, empty when nothing is. Raises ToolError."""
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        under_way = progress(volume)
        if not under_way or left <= 0:
            return under_way
        _event(Path("/sys/block") / Path(volume.facts.device).resolve().name / "md" / "sync_action", left)


def _event(path: Path, seconds: float) -> None:
    """Until the kernel says that the action changed, but not longer than `seconds` or until the next look."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        time.sleep(min(seconds, _LOOK_AGAIN_S))
        return
    try:
        if os.read(handle, 64).decode("ascii", "replace").strip() in _IDLE:
            time.sleep(min(seconds, _LOOK_AGAIN_S / 10))
            return
        waiting = select.poll()
        waiting.register(handle, select.POLLPRI | select.POLLERR)
        waiting.poll(min(seconds, _LOOK_AGAIN_S * 12) * 1000)
    finally:
        os.close(handle)
