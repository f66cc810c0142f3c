# SPDX-License-Identifier: Apache-2.0
"""What an attacker on a signed run has, what a kind of tampering is, and the list of them."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.signing import Person

ENVELOPE = "signoff.release-manager.json"
STATEMENT = "signoff.technician.statement.json"
DETACHED = f"{STATEMENT}.sig"
SIGNATURES = (ENVELOPE, STATEMENT, DETACHED)
TEXTS = (
    *("run.json", "verdict.json", "samples.jsonl", "events.jsonl", "checks.jsonl", "inputs/gate.yml"),
    "report.html",
)
LINES = ("samples.jsonl", "events.jsonl")


@dataclass(frozen=True)
class Attack:
    """What an attacker has: the signed run to write to, another one signed by the same people, a key of his own."""

    run: Path
    other: Path
    stranger: Person

    def any_file(self, source: random.Random) -> Path:
        found = (path for path in sorted(self.run.rglob("*")) if path.is_file())
        return source.choice([path for path in found if not path.name.startswith("signoff")])


Kind = Callable[[Attack, random.Random], None]
KINDS: dict[str, Kind] = {}
"""By name; the modules beside this one put them here."""


def kind(function: Kind) -> Kind:
    KINDS[function.__name__] = function
    return function
