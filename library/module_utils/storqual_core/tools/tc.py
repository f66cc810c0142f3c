# SPDX-License-Identifier: Apache-2.0
"""tc: what a network interface does to the frames that it sends (netem), and how many it did it to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError

_LIMIT_S = 30.0


@dataclass(frozen=True)
class Shaping:
    """A netem that is in place, and what it counted: frames that were sent, and those that it dropped."""

    options: tuple[str, ...]
    sent: int
    dropped: int


def shape(runner: Runner, interface: str, words: Sequence[str]) -> None:
    """Have `interface` treat what it sends as `words` say (`loss 2%`). Raises ToolError."""
    runner(["tc", "qdisc", "replace", "dev", interface, "root", "netem", *words], timeout=_LIMIT_S).expect()


def unshape(runner: Runner, interface: str) -> None:
    """Have it send everything at once again. Raises ToolError."""
    runner(["tc", "qdisc", "del", "dev", interface, "root"], timeout=_LIMIT_S).expect()


def read_shaping(runner: Runner, interface: str) -> Shaping | None:
    """The netem of an interface, None without one. Raises ToolError when the answer is not understood."""
    done = runner(["tc", "-j", "-s", "qdisc", "show", "dev", interface], timeout=_LIMIT_S).expect()
    return parse_shaping(done.stdout)


def parse_shaping(text: str) -> Shaping | None:
    """The netem in the answer of `tc -j -s qdisc show`, which names one discipline at least. Raises ToolError."""
    try:
        entries = json.loads(text)
        kinds = [entry["kind"] for entry in entries]
        if isinstance(entries, list) and kinds and "netem" not in kinds:
            return None
        netem = entries[kinds.index("netem")]
        return Shaping(tuple(sorted(netem["options"])), int(netem["packets"]), int(netem["drops"]))
    except (ValueError, LookupError, TypeError):
        raise ToolError(f"this is no list of queueing disciplines: {text.strip()[:200]!r}") from None
