# SPDX-License-Identifier: Apache-2.0
"""Runs that nobody could sign: the lab's trusted keys require a role that the gate policy does not ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from storqual.inputs.find import beside_inventory
from storqual.inputs.policy import DEFAULT_ROLES, Gate, PolicyRequirement, Trust, load_gate
from storqual.inputs.shape import did_you_mean, sound
from storqual.inputs.yaml_file import read_yaml
from storqual_core.kit.errors import BadInputError

KEYS = "keys.yml"
_VARIABLE = "STORQUAL_KEYS"


def signature_warnings(
    inventories: Sequence[Path], gate: Path | None, drop: str, suite: str, benches: Sequence[str]
) -> Iterator[str]:
    """What to change before a campaign so that its run can be signed; nothing where no trusted keys are known."""
    keys = _keys(inventories)
    trust = _trust(keys)
    if trust is None:
        return
    asked = (load_gate(gate).signatures if gate is not None else ()) or DEFAULT_ROLES
    wanted = dict.fromkeys(role for one in trust.require if _fits(one, drop, suite, benches) for role in one.roles)
    lacking = [role for role in wanted if role not in asked]
    if lacking:
        has = f"{gate} asks for" if gate is not None else "without a gate policy the run asks for"
        told = f"{keys} requires a signature as {' and '.join(lacking)}, and {has} {' and '.join(asked)} only"
        roles = ", ".join(dict.fromkeys((*asked, *lacking)))
        where = gate or "gate.yml beside the inventory"
        yield f"nobody could sign this run: {told}; set `signatures: [{roles}]` in {where} before it is measured"


def role_warnings(inventories: Sequence[Path], gate: Gate, path: Path) -> Iterator[str]:
    """Roles that a gate asks for and none of the trusted keys that are known here has."""
    keys = _keys(inventories)
    trust = _trust(keys)
    there = dict.fromkeys(role for key in trust.keys for role in key.role) if trust is not None else {}
    for role in gate.signatures if there else ():
        if role not in there:
            told = (
                f"a signature as {role} is asked for, and no key in {keys} has that role{did_you_mean(role, there)}"
            )
            yield read_yaml(path).about(("signatures",), told)


def _keys(inventories: Sequence[Path]) -> Path:
    return Path(os.environ.get(_VARIABLE) or beside_inventory(KEYS, inventories) or KEYS)


def _trust(keys: Path) -> Trust | None:
    """A file of trusted keys; None for one that is not there or cannot be read, which signing tells."""
    try:
        return sound(Trust, read_yaml(keys).data) if keys.is_file() else None
    except BadInputError:
        return None


def _fits(one: PolicyRequirement, drop: str, suite: str, benches: Sequence[str]) -> bool:
    named = fnmatchcase(drop, one.drop) and fnmatchcase(suite, one.suite)
    return named and any(fnmatchcase(bench, one.bench) for bench in benches)
