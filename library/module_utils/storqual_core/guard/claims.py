# SPDX-License-Identifier: Apache-2.0
"""What an inventory says may be destroyed: claims, read from inventory variables and from block files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from ..host.identity import normalise_wwn
from ..kit.errors import BadInputError
from ..kit.machine import visible
from ..kit.quantities import parse_size

_WRONG_KIND = {
    True: "a bench of kind local has files for drives, and this is not a file",
    False: "only a bench of kind local has files for drives",
}


@dataclass(frozen=True)
class Claim:
    """One drive (or one file, kind `local`) that may be destroyed; `id` is its name in every file; size in bytes."""

    id: str
    wwn: str
    serial: str
    vendor: str
    model: str
    size: int
    file: str = ""
    inode: int | None = None


@dataclass(frozen=True)
class VolumeClaim:
    """A volume made of claimed drives: its node, the UUID it was made with, and the ids of all its members."""

    id: str
    path: str
    uuid: str
    members: tuple[str, ...]


def read_claims(targets: Mapping[str, Mapping[str, Any]]) -> tuple[Claim, ...]:
    """Claims from `{"<drive id>": {"claim": {...}}}` (a block file's targets) or `{"<drive id>": {...claim...}}`.

    Raises BadInputError with every problem of every claim.
    """
    problems: list[str] = []
    claims = []
    for name, target in targets.items():
        fields = target.get("claim", target)
        if isinstance(fields, Mapping):
            claims.append(_claim(name, fields, problems))
        else:
            problems.append(f"drive {visible(name)}: it is not claimed, so it is not a target")
    _refuse(problems)
    return tuple(claims)


def claims_of_adapters(adapters: Mapping[str, Any], kind: str = "hardware") -> tuple[Claim, ...]:
    """The claims in the inventory variable `storqual_adapters`: its drives with `claim: true`, in inventory order.

    On a bench of kind `local` they are files, on any other they are drives. Raises BadInputError with every problem
    of every claim.
    """
    problems: list[str] = []
    claims = []
    for alias, adapter in adapters.items():
        for place, drive in enumerate(adapter.get("drives") or ()):
            where = f"adapter {alias}, drive {place + 1}"
            if drive.get("claim") is True:
                claims.append(_claim("", drive, problems, where))
                if bool(claims[-1].file) != (kind == "local"):
                    problems.append(f"{where}: {_WRONG_KIND[kind == 'local']}")
    _refuse(problems)
    return tuple(claims)


def read_volumes(targets: Mapping[str, Mapping[str, Any]]) -> tuple[VolumeClaim, ...]:
    """The volumes among a block file's targets: `{"<id>": {"volume": {"path", "uuid", "members": [...]}}}`."""
    return tuple(
        VolumeClaim(name, str(fields["path"]), str(fields["uuid"]).lower(), tuple(fields["members"]))
        for name, fields in ((name, target.get("volume")) for name, target in targets.items())
        if fields
    )


def _refuse(problems: Iterable[str]) -> None:
    found = list(problems)
    if found:
        raise BadInputError(found)


def _claim(name: str, fields: Mapping[str, Any], problems: list[str], where: str = "") -> Claim:
    """One claim; what is wrong with it is added to `problems`."""

    def text(key: str) -> str:
        value = fields.get(key)
        if key == "wwn" and isinstance(value, int):
            # YAML 1.1, as Ansible reads it, makes a number of an unquoted 0x5000c500…
            return f"0x{value:016x}"
        return "" if value is None else str(value).rstrip(" \0")

    place = where or f"drive {visible(name)}"
    try:
        wwn = normalise_wwn(text("wwn"))
    except ValueError as problem:
        problems.append(f"{place}: {problem}")
        wwn = ""
    try:
        size = parse_size(fields.get("size") or 0)
    except ValueError as problem:
        problems.append(f"{place}: {problem}")
        size = 1
    if size <= 0:
        problems.append(f"{place}: the claim states no size")
    if not text("file"):
        if not text("wwn") and not text("serial"):
            problems.append(f"{place}: the claim states neither WWN nor serial number, so it names no drive")
        if not text("model"):
            problems.append(f"{place}: the claim states no model")
    return Claim(
        id=name or wwn or text("serial") or text("file"),
        wwn=wwn,
        serial=text("serial"),
        vendor=text("vendor"),
        model=text("model"),
        size=size,
        file=text("file"),
        inode=fields.get("inode"),
    )
