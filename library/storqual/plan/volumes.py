# SPDX-License-Identifier: Apache-2.0
"""Volumes as targets: which ones a configuration has, and which drives are then no targets of their own."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from storqual.base.figures import size_text
from storqual.base.formulas import MB, drives_without_queueing, read_ahead_threshold, stripes_per_second
from storqual.inputs.drop import Drop
from storqual.inputs.inventory import Adapter, Bench
from storqual.plan.resolve import Resolved, resolve
from storqual_core.guard.signatures import volume_path, volume_uuid

VOLUME = "volume"
"""The level of the factor `target` that means the volumes of a drop, not its drives."""

ON_VOLUME = "_on_volume"
"""How the levels end that mean file systems on those volumes."""


@dataclass(frozen=True)
class TargetVolume:
    """A volume that fio is pointed at; `members` and `spares` are drive ids, `uuid` is known before it is made."""

    id: str
    members: tuple[str, ...]
    spares: tuple[str, ...] = ()
    level: str = "0"

    @property
    def uuid(self) -> str:
        return volume_uuid(self.members)

    @property
    def drives(self) -> tuple[str, ...]:
        return self.members + self.spares

    def claim(self) -> dict[str, Any]:
        """What the guard must find before it is written: an array of exactly these drives, made by storqual."""
        return {"path": volume_path(self.uuid), "uuid": self.uuid, "members": list(self.drives)}


@dataclass(frozen=True)
class Layout:
    """What the volumes of both arms leave of an adapter: the least number of volumes, and the drives in any.

    `room` is how much the smallest volume holds at least (bytes).
    """

    volumes: int = 0
    drives: Collection[str] = field(default=frozenset())
    room: int = 0


NO_VOLUMES = Layout()
"""An adapter whose drives all stand alone."""


def volumes_of(resolved: Resolved, alias: str) -> tuple[TargetVolume, ...]:
    """The volumes of one adapter in the order of the drop. One has the same id in both arms: it is the nth."""
    listed = [volume for volume in resolved.raid if volume["adapter"] == alias]
    return tuple(
        TargetVolume(
            id=f"{alias}/volume{number}",
            members=tuple(volume["members"]),
            spares=tuple(volume.get("hot_spares", ())),
            level=str(volume.get("level")),
        )
        for number, volume in enumerate(listed, start=1)
    )


def layouts_of(bench: Bench, under_test: Sequence[str], drops: Sequence[Drop]) -> Mapping[str, Layout]:
    """By adapter under test: what the drops of both arms make of its drives."""
    arms = [resolve(drop, bench, under_test) for drop in drops]
    layouts = {}
    for alias in under_test:
        by_arm = [volumes_of(resolved, alias) for resolved in arms]
        drives = {drive for volumes in by_arm for volume in volumes for drive in volume.drives}
        room = min((_room(bench, volume) for volumes in by_arm for volume in volumes), default=0)
        layouts[alias] = Layout(min(map(len, by_arm), default=0), frozenset(drives), room)
    return layouts


_OWN = 8 << 20
"""What a volume keeps of each member for itself at most (bytes); md takes some MiB of small drives."""


def _room(bench: Bench, volume: TargetVolume) -> int:
    """What a volume holds at least (bytes); 0 where the inventory does not say how large a member is."""
    sizes = {drive.id: drive.size or 0 for adapter in bench.adapters.values() for drive in adapter.drives}
    count = len(volume.members)
    carrying = {"0": count, "5": count - 1, "6": count - 2, "10": count // 2}.get(volume.level, 1)
    return max(0, carrying * (min(sizes.get(member, 0) for member in volume.members) - _OWN)) if count else 0


_HALF_A_TURN = Fraction(30)
"""Seconds of half a rotation times revolutions per minute: no drive answers a random request sooner on average."""


def raid_advice(volumes: Iterable[Mapping[str, Any]], bench: Bench, largest_random_read: int) -> Iterator[str]:
    """Sentences about declared volumes (adapter, level, members, strip in bytes), each once.

    `largest_random_read` is the largest random read of the suite in bytes, 0 where it has none. What the inventory
    does not say (a port's link, a drive's rotation rate) is not guessed.
    """
    seen: set[str] = set()
    for volume in volumes:
        adapter = bench.adapters.get(str(volume.get("adapter")))
        strip, members = int(volume.get("strip") or 0), list(volume.get("members") or ())
        if adapter is None or not strip or not members:
            continue
        name = f"volume {volume.get('name') or volume['adapter']} ({size_text(strip)} strips, {len(members)} drives)"
        for sentence in (
            *_queueing(name, adapter, strip, members),
            *_read_ahead(name, volume, strip, largest_random_read),
        ):
            if sentence not in seen:
                seen.add(sentence)
                yield sentence


def _queueing(name: str, adapter: Adapter, strip: int, members: list[str]) -> Iterator[str]:
    drives = [drive for drive in adapter.drives if drive.id in members]
    turns = {drive.rotation_rate for drive in drives}
    link, rate = adapter.ceiling.link, min((turn for turn in turns if turn and turn > 1), default=None)
    if link is None or rate is None or len(turns) != 1:
        return
    service = _HALF_A_TURN / rate
    strips = stripes_per_second(Fraction(link), Fraction(strip))
    ports = len({adapter.port_of(drive) for drive in drives})
    wanted, have = drives_without_queueing(service, strips), len(drives) / ports
    enough = (
        "which it has"
        if have >= wanted
        else f"it has {have:g}, so drives will queue and the port will be idle at times"
    )
    yield (
        f"{name}: a port of {link / MB:g} MB/s carries {float(strips):.0f} strips a second; at "
        f"{float(service) * 1000:g} ms each or more (half a turn at {rate} rpm) it takes {wanted} drives on a port "
        f"to keep it busy, {enough}"
    )


def _read_ahead(name: str, volume: Mapping[str, Any], strip: int, largest: int) -> Iterator[str]:
    if str(volume.get("level")) != "0" or not largest:
        return
    threshold = read_ahead_threshold(strip, len(volume["members"]))
    reach = "some of this suite's reach it" if largest >= threshold else "none of this suite's does"
    yield (
        f"{name}: the drives' own read-ahead can only help random reads of {size_text(threshold)} or more"
        f" (strip x (drives + 1)); {reach}"
    )
