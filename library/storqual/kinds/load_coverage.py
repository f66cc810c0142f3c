# SPDX-License-Identifier: Apache-2.0
"""What a sweep reached: levels and pairs of levels, acknowledged and read back; what it did not reach, and why.

A row counts where its write is in the list of acknowledged I/Os, and as read back where every read of it was right.
Also here: whether the kernel's memory grew with ordinary commands. A driver that leaks does so in every part of them,
and nothing of it comes back; what else a kernel does with its memory happens once, or comes and goes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

from storqual.kinds.oracle import Oracle
from storqual_core.turns.load_levels import COMMAND_FACTORS, FACTORS

_LEAST_SAMPLES = 10
_LEAST_SHARE = 0.15
"""Of all growth at least this must be in each third of the commands, and at most this may have been given back."""
_LEAST_BYTES = (24 << 10, 256 << 10)
"""How much it must grow in all: slabs and vmalloc, which are counted exactly; everything that the kernel keeps."""
_NAMES = ("slabs and vmalloc", "the kernel's memory")

Levels = dict[str, dict[str, list[int]]]
"""By factor and level: rows that were planned, acknowledged, read back."""


def coverage_of(
    request: Mapping[str, Any], rows: Iterable[Sequence[Any]], lacks: Iterable[Mapping[str, Any]], oracle: Oracle
) -> dict[str, Any]:
    """The coverage of one trial by the rows that it told. Raises ValueError for a row that there is not."""
    levels: Levels = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    designs = {
        len(FACTORS): (tuple(FACTORS), request["rows"]),
        len(COMMAND_FACTORS): (tuple(COMMAND_FACTORS), request["commands"]),
    }
    for factors, planned in designs.values():
        for row in planned:
            for factor, level in zip(factors, row, strict=True):
                levels[factor][level][0] += 1
    covered: set[tuple[Any, ...]] = set()
    beside = []
    for _, reached, sequence, right in rows:
        if len(reached) == len(COMMAND_FACTORS) and reached[0] not in COMMAND_FACTORS["size"]:
            # of what is in no design: pauses, bursts, drives at the same time
            beside.append(" ".join(map(str, reached)))
            continue
        factors, _ = designs[len(reached)]
        write = oracle.writes.get(sequence)
        if write is None or write.problem:
            continue
        pairs = [(factor, level) for factor, level in zip(factors, reached, strict=True) if level]
        for factor, level in pairs:
            levels[factor][level][1] += 1
            levels[factor][level][2] += right
        if right:
            covered.update(combinations(pairs, 2))
    planned_pairs = {
        pair
        for factors, planned in designs.values()
        for row in planned
        for pair in combinations(zip(factors, row, strict=True), 2)
    }
    return {
        "levels": {factor: dict(by_level.items()) for factor, by_level in levels.items()},
        "pairs": [len(planned_pairs & covered), len(planned_pairs)],
        "beside": beside,
        "lacks": [[str(lack["what"]), str(lack["why"])] for lack in lacks],
    }


def grown_memory(samples: Sequence[Sequence[int]]) -> str:
    """What grew with ordinary commands, `` where nothing did: samples of commands so far and bytes of each kind."""
    if len(samples) < _LEAST_SAMPLES:
        return ""
    commands = samples[-1][0] - samples[0][0]
    for column, (name, least) in enumerate(zip(_NAMES, _LEAST_BYTES, strict=True), start=1):
        sizes = [int(sample[column]) for sample in samples]
        steps = [after - before for before, after in pairwise(sizes)]
        grown, third = sizes[-1] - sizes[0], len(steps) // 3
        parts = (sum(steps[:third]), sum(steps[third : 2 * third]), sum(steps[2 * third :]))
        shrunk = -sum(step for step in steps if step < 0)
        if grown >= least and min(parts) >= _LEAST_SHARE * grown and shrunk <= _LEAST_SHARE * grown:
            return f"{name} grew by {grown >> 10} KiB in {commands} ordinary commands, {grown // commands} bytes each"
    return ""


def unreached(coverage: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was not reached, with the reason: what was told, and levels that no acknowledged row has."""
    reasons = [(str(what), str(why)) for what, why in coverage["lacks"]]
    names = {what for what, _ in reasons}
    missing = [
        f"{factor} {level}"
        for factor, levels in coverage["levels"].items()
        for level, (planned, acknowledged, _) in levels.items()
        if planned and not acknowledged and f"{factor} {level}" not in names
    ]
    return [*reasons, *((name, "no row with it was acknowledged") for name in missing)]
