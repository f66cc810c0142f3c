# SPDX-License-Identifier: Apache-2.0
"""Runs that nobody could sign: the lab's trusted keys require a role that the gate policy does not ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from storqual.inputs.find import beside_inventory
from storqual.inputs.policy import DEFAULT_ROLES, PolicyRequirement, Trust, load_gate
from storqual.inputs.shape import sound
from storqual.inputs.yaml_file import read_yaml
from storqual_core.kit.errors import BadInputError

KEYS = "keys.yml"
_VARIABLE = "STORQUAL_KEYS"


def signature_warnings(
    inventories: Sequence[Path], gate: Path | None, drop: str, suite: str, benches: Sequence[str]
) -> Iterator[str]:
    """What to change before a campaign so that its run can be signed; nothing where no trusted keys are known."""
    keys = Path(os.environ.get(_VARIABLE) or beside_inventory(KEYS, inventories) or KEYS)
    wanted = dict.fromkeys(role for one in _required(keys) if _fits(one, drop, suite, benches) for role in one.roles)
    if not wanted:
        return
    asked = (load_gate(gate).signatures if gate is not None else ()) or DEFAULT_ROLES
    lacking = [role for role in wanted if role not in asked]
    if lacking:
        has = f"{gate} asks for" if gate is not None else "without a gate policy the run asks for"
        told = f"{keys} requires a signature as {' and '.join(lacking)}, and {has} {' and '.join(asked)} only"
        roles = ", ".join(dict.fromkeys((*asked, *lacking)))
        where = gate or "gate.yml beside the inventory"
        yield f"nobody could sign this run: {told}; set `signatures: [{roles}]` in {where} before it is measured"


def _required(keys: Path) -> tuple[PolicyRequirement, ...]:
    """Who must sign by a file of trusted keys; nobody by one that cannot be read, which signing tells."""
    try:
        data = read_yaml(keys).data if keys.is_file() else None
    except BadInputError:
        return ()
    trust = sound(Trust, data)
    return trust.require if trust is not None else ()


def _fits(one: PolicyRequirement, drop: str, suite: str, benches: Sequence[str]) -> bool:
    named = fnmatchcase(drop, one.drop) and fnmatchcase(suite, one.suite)
    return named and any(fnmatchcase(bench, one.bench) for bench in benches)
