# SPDX-License-Identifier: Apache-2.0
"""The extract of earlier campaigns that a plan is made with: noise of points, limits of golden references."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from storqual.history.chart import limits_after
from storqual.history.index import open_history
from storqual.history.noise import pooled
from storqual.judge.history import SCHEMA, read_histories

__all__ = ["NEWEST", "extract_of", "history_bytes"]

NEWEST = 10
"""Runs whose noise counts: a bench changes, and what it did years ago says little about today."""


def extract_of(runs: Path, benches: Collection[str] | None = None) -> bytes:
    """Noise of points and limits of references (of some benches) from a folder of runs, as a run's input file."""
    with open_history(runs) as history:
        history.update(runs)
        entries = pooled(history.noise(NEWEST))
        limits = limits_after(history.readings())
    chosen = [asdict(entry) for entry in entries if benches is None or entry.bench in benches]
    reference = [
        {"bench": bench, "drive": drive, "low": low, "high": high}
        for (bench, drive), (low, high) in limits.items()
        if benches is None or bench in benches
    ]
    return (json.dumps({"schema": SCHEMA, "noise": chosen, "reference": reference}, indent=1) + "\n").encode()


def history_bytes(path: Path, benches: Collection[str]) -> bytes:
    """The extract that `path` is, or one made of the folder of runs that it is. Raises BadInputError."""
    if path.is_dir():
        return extract_of(path, benches)
    read_histories(path)
    return path.read_bytes()
