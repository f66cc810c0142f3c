# SPDX-License-Identifier: Apache-2.0
"""The kinds of defects of `tests/planted/kinds.json`: what the layer is loaded with, drawn by a seed."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[1] / "planted" / "kinds.json"


@dataclass(frozen=True)
class Kind:
    """A kind of defect: what acts on which commands, and from where its parameters are drawn.

    `draw` has a range (or, of what is in `choose`, a list) for each. `profile` is the first one that must find it.
    `faults` are those without which it cannot act; `lacks` is what nothing on the shipped bench or in its loads has.
    """

    name: str
    about: str
    on: str
    act: str
    draw: dict[str, list[int]]
    profile: str
    choose: tuple[str, ...] = ()
    fixed: dict[str, int] | None = None
    faults: tuple[str, ...] = ()
    adapters: int = 1
    lacks: str = ""

    def parameters(self, seed: int) -> dict[str, int]:
        """Those of the module, drawn: the load does not know them."""
        source = random.Random(f"{seed}/{self.name}")
        drawn = {
            name: source.choice(limits) if name in self.choose else source.randint(*limits)
            for name, limits in self.draw.items()
        }
        return {"every": 1, **(self.fixed or {}), **drawn}

    def words(self, seed: int) -> str:
        """What insmod is called with."""
        listed = " ".join(f"{name}={value}" for name, value in self.parameters(seed).items())
        return f"on={self.on} act={self.act} {listed}"


@lru_cache(maxsize=1)
def all_kinds() -> dict[str, Kind]:
    entries: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    kinds = [
        Kind(**{name: tuple(v) if name in ("choose", "faults") else v for name, v in e.items()}) for e in entries
    ]
    return {kind.name: kind for kind in kinds}


def drawn_kinds(seed: int, number: int) -> list[Kind]:
    """So many kinds that profile `quick` must find, each another one while there are some."""
    quick = [kind for kind in all_kinds().values() if kind.profile == "quick" and not kind.lacks]
    random.Random(seed).shuffle(quick)
    return [quick[at % len(quick)] for at in range(number)]
