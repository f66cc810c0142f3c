# SPDX-License-Identifier: Apache-2.0
"""Where a verdict is written: the first one beside the samples, others below `judgements/`, none over another's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from storqual.inputs import WAIVERS
from storqual.run import is_signed, write_bytes

_RULES = ("suite", "gate", "waivers", "history")


def write_verdict(run: Path, verdict: Mapping[str, Any], *, other_rules: bool, waivers: Path | None = None) -> Path:
    """Write `verdict` of `run`, and beside it a copy of the waivers that it was judged with; return where.

    `verdict.json` is written when there is none, or again when the same rules judge a run that went on (a campaign
    that was resumed) and nobody has signed. Everything else goes to `judgements/<digest of its inputs>/`, where
    nothing is written a second time once somebody has signed: the signature may be about it.
    """
    first = run / "verdict.json"
    path = first
    if other_rules or (first.is_file() and not _may_replace(run, first, verdict)):
        named = {"inputs": verdict["inputs"], "as_of": verdict["as_of"][:10]}
        digest = hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]
        path = run / "judgements" / digest / "verdict.json"
        if path.is_file() and is_signed(run):
            return path
    if waivers is not None:
        write_bytes(path.with_name(WAIVERS), waivers.read_bytes())
    write_bytes(path, b"".join(_lines(verdict)))
    return path


def kept_waivers(run: Path) -> Path | None:
    """The copy of the waivers that the verdict of `run` was made with; None without a verdict, or without waivers."""
    kept = run / WAIVERS
    try:
        inputs = json.loads((run / "verdict.json").read_text(encoding="utf-8"))["inputs"]
        return kept if inputs.get("waivers") == hashlib.sha256(kept.read_bytes()).hexdigest() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _may_replace(run: Path, first: Path, verdict: Mapping[str, Any]) -> bool:
    """Whether the verdict there is of the same rules and unsigned."""
    if is_signed(run):
        return False
    try:
        before = json.loads(first.read_text(encoding="utf-8"))["inputs"]
        return all(before.get(name) == verdict["inputs"].get(name) for name in _RULES)
    except (ValueError, KeyError, TypeError, AttributeError):
        # what was written there is no verdict
        return True


def _lines(verdict: Mapping[str, Any]) -> Iterator[bytes]:
    """Readable JSON, one line per criterion: a large campaign has a hundred thousand of them."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    yield b"{\n"
    for number, (name, value) in enumerate(verdict.items()):
        end = b",\n" if number < len(verdict) - 1 else b"\n"
        if isinstance(value, list) and value:
            yield f" {encode(name)}: [\n".encode()
            for place, item in enumerate(value):
                yield f"  {encode(item)}{',' if place < len(value) - 1 else ''}\n".encode()
            yield b" ]" + end
        else:
            yield f" {encode(name)}: {encode(value)}".encode() + end
    yield b"}\n"
