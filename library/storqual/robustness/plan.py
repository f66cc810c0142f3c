# SPDX-License-Identifier: Apache-2.0
"""A trial as the plan of a run has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from storqual.inputs.shape import raise_all
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True)
class PlannedTrial:
    """One trial. `id` names it everywhere; `pair` is the same for the trials of both arms that are compared."""

    id: str
    pair: str
    session: str
    arm: str
    adapter: str
    drive: str
    fault: str
    way: str
    load: str
    seed: int
    load_s: float
    at_s: float
    away_s: float
    number: int

    def to_json(self) -> dict[str, Any]:
        """The entry of `plan.trials` in run.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, line: object) -> PlannedTrial:
        """Read one entry. Raises BadInputError with everything that is missing, too much or of another type."""
        if not isinstance(line, dict):
            raise BadInputError([f"found {line!r}, expected a planned trial"])
        wanted = {field.name: str(field.type) for field in fields(cls)}
        problems = [f"{name}: is missing" for name in wanted if name not in line]
        problems += [f"{name}: found a key that no trial has" for name in line if name not in wanted]
        problems += [
            f"{name}: found {line[name]!r}, expected {_EXPECTED[kind][1]}"
            for name, kind in wanted.items()
            if name in line and type(line[name]) not in _EXPECTED[kind][0]
        ]
        raise_all(problems)
        return cls(**line)


_EXPECTED: Mapping[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
}
"""What JSON gives for the fields of a planned trial, by their annotations; `true` is no number."""
