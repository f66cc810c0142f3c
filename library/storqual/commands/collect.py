# SPDX-License-Identifier: Apache-2.0
"""`storqual collect`: take the spool of a block into the run directory."""

from __future__ import annotations

from pathlib import Path

from storqual.store import Collected, collect

__all__ = ["collect_spool"]


def collect_spool(path: Path, block: str, spool: Path | str, *, lost: str | None = None) -> Collected:
    """Take in a spool file, or its text; doing it again changes nothing.

    `lost` says why the block will never end by itself (the bench was reset). Raises StorqualError for a spool that
    contradicts the plan or what is stored already.
    """
    text = spool.read_text(encoding="utf-8", errors="replace") if isinstance(spool, Path) else spool
    return collect(path, block, text, lost=lost)
