# SPDX-License-Identifier: Apache-2.0
"""The coverage of sweeps as people see it: a table of levels by adapter, and what was not reached, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from storqual.base.table import Table
from storqual.base.text import plural
from storqual.kinds.kind import FoldedList, Part, Record
from storqual.kinds.load_coverage import unreached
from storqual_core.turns.load_levels import COMMAND_FACTORS, FACTORS, NO_REQUEST

_DASH = "\N{EN DASH}"
_FACTORS = {
    "size": "Size",
    "place": "Address",
    "side": "Side of the address",
    "way": "Written by",
    "shape": "Memory",
    "read": "Read back by",
    "command": "Command",
}
_WHAT = (
    "Each cell is writes acknowledged / read back right, of the candidate. Sizes are in blocks: limit is the longest "
    "request of the kernel, hard the longest of the driver, segments as many pages as a request may have segments. "
    "Addresses are in sectors of 512 bytes."
)
_MOST_NAMED = 6


def _order(key: tuple[str, str]) -> tuple[int, int]:
    factor, level = key
    known = {**COMMAND_FACTORS, **FACTORS}.get(factor, ())
    return list(_FACTORS).index(factor), known.index(level) if level in known else len(known)


def _by_adapter(records: Sequence[Record]) -> dict[str, list[Record]]:
    swept = [record for record in records if record.get("coverage")]
    arms = {record["arm"] for record in swept}
    found: defaultdict[str, list[Record]] = defaultdict(list)
    several = len({record["bench"] for record in swept}) > 1
    for record in swept:
        if record["arm"] == "candidate" or len(arms) == 1:
            found[f"{record['bench']} {record['adapter']}" if several else record["adapter"]].append(record)
    return dict(sorted(found.items()))


def _counts(records: Sequence[Record]) -> dict[tuple[str, str], list[int]]:
    """Rows acknowledged and read back of each level, over all records."""
    counts: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for record in records:
        for factor, levels in record["coverage"]["levels"].items():
            for level, (_, acknowledged, read_back) in levels.items():
                counts[factor, level][0] += acknowledged
                counts[factor, level][1] += read_back
    return counts


def _reasons(records: Sequence[Record]) -> dict[str, str]:
    """What no record of an adapter reached, with its last reason."""
    counts = _counts(records)
    told = {what: why for record in records for what, why in unreached(record["coverage"])}
    reached = {f"{factor} {level}" for (factor, level), (acknowledged, _) in counts.items() if acknowledged}
    return {what: why for what, why in told.items() if what not in reached}


def _beside(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(one for record in records for one in record["coverage"]["beside"]))


def show_coverage(records: Sequence[Record]) -> Iterator[Part]:
    """The table and the lists; nothing where no trial was a sweep."""
    adapters = _by_adapter(records)
    if not adapters:
        return
    counts = {name: _counts(listed) for name, listed in adapters.items()}
    levels = list(dict.fromkeys(key for found in counts.values() for key in found))
    rows = tuple(
        (
            _FACTORS[factor],
            level,
            *(
                "{} / {}".format(*found[factor, level]) if (factor, level) in found else _DASH
                for found in counts.values()
            ),
        )
        for factor, level in sorted(levels, key=_order)
    )
    pairs = {
        name: [sum(record["coverage"]["pairs"][at] for record in listed) for at in (0, 1)]
        for name, listed in adapters.items()
    }
    sentences = (
        *(
            f"{name}: {done} of {wanted} pairs of levels were written and read back."
            for name, (done, wanted) in pairs.items()
        ),
        *(f"{name}, also: {', '.join(_beside(listed))}." for name, listed in adapters.items()),
    )
    table = Table("What the data load reached", ("Of", "Level", *adapters), rows)
    folded = [FoldedList("Every level", table, (_WHAT,))]
    for name, listed in adapters.items():
        reasons = _reasons(listed)
        if reasons:
            title = f"Not reached on {name}: {plural(len(reasons), 'level')}"
            folded.append(FoldedList(title, Table(title, ("What", "Why"), tuple(reasons.items()))))
    yield Part("What the data load reached", None, sentences, tuple(folded))


def not_reached(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """For what was not tested: one sentence for each adapter."""
    for name, listed in _by_adapter(records).items():
        # a size that no request can have is nothing that was left out
        named = [what for what, why in _reasons(listed).items() if not why.startswith(NO_REQUEST)]
        if named:
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            yield (
                f"Data on {name}",
                f"not reached: {', '.join(named[:_MOST_NAMED])}{more}; the reasons are with the trials",
            )
