# SPDX-License-Identifier: Apache-2.0
"""What storqual itself made on claimed drives, written down before it is made: `<state dir>/made.json`.

A file system or array that storqual made and a power cut left behind is found again by its UUID, which was chosen
and flushed to disk before the tool ran. Anything else on a drive is somebody's data.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping

from .durable import make_folder, replace_json
from .errors import StorqualError

__all__ = ["Ledger"]

_SCHEMA = "storqual.made/1"


@dataclass(frozen=True)
class Ledger:
    """UUIDs made per drive, and drives that are just being cleared."""

    path: Path
    made: Mapping[str, frozenset[str]] = field(default_factory=dict)
    restamping: frozenset[str] = frozenset()

    @classmethod
    def read(cls, state_dir: str) -> Ledger:
        """The ledger of a bench; empty when nothing was ever made. Raises StorqualError when it cannot be read."""
        path = Path(state_dir) / "made.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            kept = document[_SCHEMA]
            made = {str(drive): frozenset(map(str, uuids)) for drive, uuids in kept["made"].items()}
            return cls(path, made, frozenset(map(str, kept["restamping"])))
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as problem:
            raise StorqualError(
                f"the list of what storqual made on drives, {path}, cannot be read: {problem}"
            ) from problem

    def announce(self, *drives: str, name: str = "") -> tuple[Ledger, str]:
        """The UUID of something that is about to be made on `drives`, a new one or `name`.

        It is on disk before this returns.
        """
        name = name or str(uuid.uuid4())
        added = {drive: self.made.get(drive, frozenset()) | {name} for drive in drives}
        return Ledger(self.path, {**self.made, **added}, self.restamping).written(), name

    def clearing(self, drive: str) -> Ledger:
        """`drive` is about to be cleared and stamped."""
        return Ledger(self.path, self.made, self.restamping | {drive}).written()

    def cleared(self, drive: str) -> Ledger:
        """`drive` is stamped and nothing made is left on it."""
        made = {name: uuids for name, uuids in self.made.items() if name != drive}
        return Ledger(self.path, made, self.restamping - {drive}).written()

    def written(self) -> Ledger:
        """Itself, replaced on disk as a whole and flushed."""
        make_folder(self.path.parent)
        made = {drive: sorted(uuids) for drive, uuids in sorted(self.made.items())}
        replace_json(self.path, {_SCHEMA: {"made": made, "restamping": sorted(self.restamping)}})
        return self
