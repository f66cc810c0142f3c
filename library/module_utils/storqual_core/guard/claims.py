# SPDX-License-Identifier: Apache-2.0
"""What an inventory says may be destroyed: claims, read from inventory variables and from block files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Collection, Iterable, Mapping, Sequence, Tuple

from ..host.identity import declared_address, normalise_wwn, port_name
from ..kit.errors import BadInputError
from ..kit.machine import visible
from ..kit.quantities import parse_size

_WRONG_KIND = {
    True: "a bench of kind local has files for drives, and this is not a file",
    False: "only a bench of kind local has files for drives",
}


Route = Tuple[str, ...]
"""One way to a drive: the port of the bench and that of the target, or the address of the adapter alone."""


@dataclass(frozen=True)
class Claim:
    """One drive (or one file, kind `local`) that may be destroyed; `id` is its name in every file; size in bytes.

    `routes` are the declared paths of a drive that may be touched without a multipath device over them.
    """

    id: str
    wwn: str
    serial: str
    vendor: str
    model: str
    size: int
    file: str = ""
    inode: int | None = None
    routes: tuple[Route, ...] = ()


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


def claims_of_adapters(
    adapters: Mapping[str, Any], kind: str = "hardware", *, routes: bool = False
) -> tuple[Claim, ...]:
    """The claims in the inventory variable `storqual_adapters`: its drives with `claim: true`, in inventory order.

    On a bench of kind `local` they are files, on any other they are drives; with `routes` those of several paths have
    theirs. Raises BadInputError with every problem of every claim.
    """
    problems: list[str] = []
    claims = []
    for alias, adapter in adapters.items():
        for place, drive in enumerate(adapter.get("drives") or ()):
            where = f"adapter {alias}, drive {place + 1}"
            if drive.get("claim") is True:
                named = {**drive, "routes": routes_of(drive, alias, adapters) if routes else ()}
                claims.append(_claim("", named, problems, where))
                if bool(claims[-1].file) != (kind == "local"):
                    problems.append(f"{where}: {_WRONG_KIND[kind == 'local']}")
    _refuse(problems)
    return tuple(claims)


def routes_of(drive: Mapping[str, Any], alias: str, adapters: Mapping[str, Any]) -> tuple[Route, ...]:
    """The declared paths of a drive on adapter `alias`; none of a drive that has only one."""
    routes: list[Route] = []
    for way in (drive.get("port"), *drive["paths"]) if drive.get("paths") else ():
        if isinstance(way, Mapping):
            routes.append((port_name(way.get("initiator")), port_name(way.get("target"))))
        else:
            routes.append((declared_address(adapters.get(way if isinstance(way, str) else alias) or {}),))
    return tuple(routes)


def ways_of(adapter: str, paths: Iterable[Mapping[str, Any]]) -> tuple[Route, ...]:
    """What a disk behind an adapter may be declared by, with its paths through a fabric (host/fabric.py)."""
    ends = ((path["initiator"], path[key]) for path in paths for key in ("target", "portal"))
    return (*(pair for pair in ends if all(pair)), (adapter,))


def each_declared(routes: Sequence[Route], disks: Iterable[Collection[Route]]) -> bool:
    """Whether disks of one name are paths to one drive as declared: each by a route that is no other's."""
    left = list(routes)
    for ways in disks:
        own = next((route for route in sorted(left, key=len, reverse=True) if route in ways), None)
        if own is None:
            return False
        left.remove(own)
    return bool(routes)


def read_volumes(targets: Mapping[str, Mapping[str, Any]]) -> tuple[VolumeClaim, ...]:
    """The volumes among a block file's targets: `{"<id>": {"volume": {"path", "uuid", "members": [...]}}}`."""
    return tuple(
        VolumeClaim(name, str(fields["path"]), str(fields["uuid"]).lower(), tuple(fields["members"]))
        for name, fields in ((name, target.get("volume")) for name, target in targets.items())
        if fields
    )


def _refuse(problems: Iterable[str]) -> None:
    reasons = list(problems)
    if reasons:
        raise BadInputError(reasons)


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
        routes=tuple(tuple(route) for route in fields.get("routes") or ()),
    )
