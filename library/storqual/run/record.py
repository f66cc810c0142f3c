# SPDX-License-Identifier: Apache-2.0
"""`storqual record`: append an event to a run, and close a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from storqual.run import Collected, Event, Run, append_event, collect, finish_run, read_run
from storqual_core.kit.errors import BadInputError


def record(path: Path, kind: str, fields: Mapping[str, Any]) -> Event:
    """Append one event. Raises BadInputError for an unknown kind, a missing field, or a bench of another run."""
    run = read_run(path)
    bench = fields.get("bench")
    if bench is not None and bench not in run.benches:
        raise BadInputError([f"{path}: found no bench {bench!r}, expected one of {', '.join(run.benches)}"])
    return append_event(path, kind, fields)


def close_run(path: Path, *, versions: Mapping[str, Any] | None = None) -> Run:
    """Write into run.json what is known at the end, then record `run_finished`."""
    run = finish_run(path, versions=versions)
    append_event(path, "run_finished", {"coverage": run.document["coverage"]["measured"]})
    return read_run(path)


def parse_fields(words: Sequence[str]) -> dict[str, Any]:
    """`name=value` words as fields; `name:=json` for anything that is not text. Raises BadInputError."""
    fields: dict[str, Any] = {}
    problems = []
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name.rstrip(":"):
            problems.append(f"found {word!r}, expected name=value or name:=json")
        elif name.endswith(":"):
            try:
                fields[name[:-1]] = json.loads(value)
            except ValueError as problem:
                problems.append(f"found {word[:80]!r}, expected JSON after := ({problem})")
        else:
            fields[name] = value
    if problems:
        raise BadInputError(problems)
    return fields


def collect_spool(path: Path, block: str, spool: Path | str, *, lost: str | None = None) -> Collected:
    """Take in a spool file, or its text; doing it again changes nothing.

    `lost` says why the block will never end by itself (the bench was reset). Raises StorqualError for a spool that
    contradicts the plan or what is stored already.
    """
    text = spool.read_text(encoding="utf-8", errors="replace") if isinstance(spool, Path) else spool
    return collect(path, block, text, lost=lost)
