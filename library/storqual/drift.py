# SPDX-License-Identifier: Apache-2.0
"""The drift report: which benches are as declared, which are not and in what, which could not be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storqual.text_safety import terminal_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["drift_table"]


def drift_table(found: Mapping[str, Sequence[str]], unseen: Mapping[str, str]) -> list[str]:
    """Lines of a table with a row per bench, in the order of names.

    `found` has the differences of each bench that was looked at, none for one that is as declared; `unseen` says why
    a bench was not looked at: it is a row of its own, because a bench nobody saw is not a bench without drift.
    """
    drifted = sum(bool(lines) for lines in found.values())
    total = len(found.keys() | unseen.keys())
    head = f"drift: {drifted} of {total} benches differ from what is declared"
    if unseen:
        head += f", {len(unseen)} could not be looked at"
    width = max((len(terminal_text(name)) for name in (*found, *unseen, "bench")), default=0)
    rows = [head, f"{'bench':{width}}  state"]
    for name in sorted(found.keys() | unseen.keys()):
        label = f"{terminal_text(name):{width}}"
        if name in unseen:
            rows.append(f"{label}  not looked at: {terminal_text(unseen[name].strip().partition(chr(10))[0])}")
            continue
        lines = found[name]
        rows.append(f"{label}  {_differences(len(lines))}")
        rows += [f"{'':{width}}    {terminal_text(line)}" for line in lines]
    return rows


def _differences(count: int) -> str:
    return {0: "as declared", 1: "1 difference"}.get(count, f"{count} differences")
