# SPDX-License-Identifier: Apache-2.0
"""Volumes as targets: which ones a configuration has, and which drives are then no targets of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storqual.model.drop import Drop
from storqual.model.inventory import Bench
from storqual.model.suite import Suite
from storqual.model.yaml_file import read_yaml
from storqual.plan.resolve import Resolved, resolve
from storqual_core.own_volumes import volume_path, volume_uuid

__all__ = ["NO_VOLUMES", "VOLUME", "Layout", "TargetVolume", "layouts_of", "vary_problems", "volumes_of"]

VOLUME = "volume"
"""The level of the factor `target` that means the volumes of a drop, not its drives."""


@dataclass(frozen=True)
class TargetVolume:
    """A volume that fio is pointed at; `members` and `spares` are drive ids, `uuid` is known before it is made."""

    id: str
    members: tuple[str, ...]
    spares: tuple[str, ...] = ()

    @property
    def uuid(self) -> str:
        """What storqual will name it."""
        return volume_uuid(self.members)

    @property
    def drives(self) -> tuple[str, ...]:
        """Members and spares."""
        return self.members + self.spares

    def claim(self) -> dict[str, Any]:
        """What the guard must find before it is written: an array of exactly these drives, made by storqual."""
        return {"path": volume_path(self.uuid), "uuid": self.uuid, "members": list(self.drives)}


@dataclass(frozen=True)
class Layout:
    """What the volumes of both arms leave of an adapter: the least number of volumes, and the drives in any."""

    volumes: int = 0
    drives: Collection[str] = field(default=frozenset())


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
        )
        for number, volume in enumerate(listed, start=1)
    )


def layouts_of(bench: Bench, under_test: Sequence[str], drops: Sequence[Drop]) -> Mapping[str, Layout]:
    """By adapter under test: what the drops of both arms make of its drives."""
    arms = [resolve(drop, bench, under_test) for drop in drops]
    found = {}
    for alias in under_test:
        by_arm = [volumes_of(resolved, alias) for resolved in arms]
        drives = {drive for volumes in by_arm for volume in volumes for drive in volume.drives}
        found[alias] = Layout(min(map(len, by_arm), default=0), frozenset(drives))
    return found


def vary_problems(suite: Suite, path: Path, drops: Sequence[Drop]) -> Iterator[str]:
    """Settings of volumes that a suite varies although a drop declares none."""
    document = read_yaml(path)
    without = [drop.name for drop in drops if not drop.sections["raid"]]
    for name in suite.vary:
        if name.startswith("raid.") and without:
            told = f"{name} varied, and no volume in drop {' and '.join(dict.fromkeys(without))}"
            yield document.problem(("vary", name), told, "a section raid in both drops")
