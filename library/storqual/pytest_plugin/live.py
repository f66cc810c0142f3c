# SPDX-License-Identifier: Apache-2.0
"""Benches that answer now, for hand-written tests without a run: each is asked once per session of tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from storqual.ask_benches import ask_benches
from storqual.model import load_inventory

__all__ = ["bench_names", "live_bench"]


@cache
def _described(sources: tuple[str, ...]) -> dict[str, Any]:
    benches = load_inventory([Path(source) for source in sources]).benches
    return {name: bench.model_dump(mode="json", exclude_none=True) for name, bench in benches.items()}


def bench_names(sources: tuple[str, ...]) -> list[str]:
    """The benches of an inventory. Raises BadInputError for one that cannot be read."""
    return list(_described(sources))


@cache
def live_bench(sources: tuple[str, ...], name: str) -> dict[str, Any]:
    """What the inventory says of a bench, and under `facts` and `kernel_log` (lines since boot) what it says itself.

    Raises StorqualError when it does not answer.
    """
    answer = ask_benches("look.yml", sources, limit=name)[name]
    return {**_described(sources)[name], "name": name, "facts": answer["facts"], "kernel_log": answer["kernel_log"]}
