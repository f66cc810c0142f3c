# SPDX-License-Identifier: Apache-2.0
"""Trials as people ask for them: counts, bound and recovery by fault, adapter and arm; failures with timelines."""

import re
import shlex
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.base.table import Table
from storqual.base.text import plural
from storqual.kinds.kind import FoldedList, Part, PlannedTurn, Record, Section
from storqual.kinds.load_coverage import unreached
from storqual.kinds.trial_checks import ALPHA, later_baselines
from storqual.statistics.counts import most_share
from storqual_core.data.faults import FAULTS
from storqual_core.turns.load_levels import COMMAND_FACTORS, FACTORS, NO_REQUEST

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
    levels = {**COMMAND_FACTORS, **FACTORS}.get(factor, ())
    return list(_FACTORS).index(factor), levels.index(level) if level in levels else len(levels)


def _by_adapter(records: Sequence[Record]) -> dict[str, list[Record]]:
    swept = [record for record in records if record.get("coverage")]
    arms = {record["arm"] for record in swept}
    by_adapter: defaultdict[str, list[Record]] = defaultdict(list)
    several = len({record["bench"] for record in swept}) > 1
    for record in swept:
        if record["arm"] == "candidate" or len(arms) == 1:
            by_adapter[f"{record['bench']} {record['adapter']}" if several else record["adapter"]].append(record)
    return dict(sorted(by_adapter.items()))


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
    reasons = {what: why for record in records for what, why in unreached(record["coverage"])}
    reached = {f"{factor} {level}" for (factor, level), (acknowledged, _) in counts.items() if acknowledged}
    return {what: why for what, why in reasons.items() if what not in reached}


def _beside(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(command for record in records for command in record["coverage"]["beside"]))


def show_coverage(records: Sequence[Record]) -> Iterator[Part]:
    """The table and the lists; nothing where no trial was a sweep."""
    adapters = _by_adapter(records)
    if not adapters:
        return
    counts = {name: _counts(members) for name, members in adapters.items()}
    levels = list(dict.fromkeys(key for of_adapter in counts.values() for key in of_adapter))
    rows = tuple(
        (
            _FACTORS[factor],
            level,
            *(
                "{} / {}".format(*of_adapter[factor, level]) if (factor, level) in of_adapter else _DASH
                for of_adapter in counts.values()
            ),
        )
        for factor, level in sorted(levels, key=_order)
    )
    pairs = {
        name: [sum(record["coverage"]["pairs"][at] for record in members) for at in (0, 1)]
        for name, members in adapters.items()
    }
    sentences = (
        *(
            f"{name}: {done} of {planned} pairs of levels were written and read back."
            for name, (done, planned) in pairs.items()
        ),
        *(f"{name}, also: {', '.join(_beside(members))}." for name, members in adapters.items()),
    )
    table = Table("What the data load reached", ("Of", "Level", *adapters), rows)
    folded = [FoldedList("Every level", table, (_WHAT,))]
    for name, members in adapters.items():
        reasons = _reasons(members)
        if reasons:
            title = f"Not reached on {name}: {plural(len(reasons), 'level')}"
            folded.append(FoldedList(title, Table(title, ("What", "Why"), tuple(reasons.items()))))
    yield Part("What the data load reached", None, sentences, tuple(folded))


def not_reached(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """For what was not tested: one sentence for each adapter."""
    for name, members in _by_adapter(records).items():
        # a size that no request can have is nothing that was left out
        named = [what for what, why in _reasons(members).items() if not why.startswith(NO_REQUEST)]
        if named:
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            yield (
                f"Data on {name}",
                f"not reached: {', '.join(named[:_MOST_NAMED])}{more}; the reasons are with the trials",
            )


_REPETITION = re.compile(r"\.r[0-9]+\Z")
"""What the id of a repeated trial ends with."""


@dataclass(frozen=True)
class Cell:
    """One fault on one adapter in one arm. Trials are valid ones; times in seconds, None without a recovery."""

    fault: str
    adapter: str
    arm: str
    trials: int
    failures: int
    void: int
    bound: float
    recovery_p50: float | None
    recovery_worst: float | None


def matrix_of(records: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """The cells in the order of faults, adapters and arms."""
    groups: defaultdict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    listed_records = list(records)
    several = len({record.get("bench") for record in listed_records}) > 1
    for record in listed_records:
        adapter = f"{record['bench']} {record['adapter']}" if several else record["adapter"]
        groups[(record["fault"], adapter, record["arm"])].append(record)
    cells = []
    for (fault, adapter, arm), members in sorted(groups.items()):
        valid = [record for record in members if record["outcome"] != "void"]
        failures = sum(record["outcome"] == "failed" for record in valid)
        times = [float(record["recovery_s"]) for record in valid if record["recovery_s"] is not None]
        cells.append(
            Cell(
                fault=fault,
                adapter=adapter,
                arm=arm,
                trials=len(valid),
                failures=failures,
                void=len(members) - len(valid),
                bound=most_share(failures, len(valid), ALPHA),
                recovery_p50=statistics.median(times) if times else None,
                recovery_worst=max(times, default=None),
            )
        )
    return cells


def repeat_command(run: Mapping[str, Any], bench: str, adapters: Iterable[str], trial: str, times: int = 20) -> str:
    """The command that makes one trial of a run (its run.json) again until it fails.

    `adapters` are those of its bench in the plan.
    """
    trial = _REPETITION.sub("", trial)
    suite = run["suite"]
    words: list[str] = ["storqual", "qualify"]
    for source in run["inventories"]:
        words += ["-i", str(source)]
    # files instead of names: a drop or a suite may have been given by its path
    for arm in (*run["arms"], "suite"):
        words += [f"--{arm}", str(run["inputs"][arm]["source"])]
    words += ["--profile", str(suite["profile"]), "--adapters", ",".join(sorted(set(adapters))), "--limit", bench]
    words += ["--seed", str(run["plan"]["seed"]), "--trial", trial, "--repeat", str(times)]
    return shlex.join(words)


_DASH = "\N{EN DASH}"
_HEADS = (
    "Fault",
    "Adapter",
    "Arm",
    "Trials",
    "Failed",
    "Void",
    "Failure rate below, at 95 %",
    "Recovery p50",
    "Worst",
)


def show_trials(
    planned: Sequence[PlannedTurn], records: Sequence[Mapping[str, Any]], document: Mapping[str, Any]
) -> Section:
    """The matrix, and each trial that failed or proved nothing."""
    cells = matrix_of(records)
    rows = tuple(
        (
            *(cell.fault, cell.adapter, cell.arm, str(cell.trials), str(cell.failures), str(cell.void)),
            f"{-(-cell.bound * 1000 // 1) / 10:.1f} %" if cell.trials else _DASH,
            _seconds(cell.recovery_p50),
            _seconds(cell.recovery_worst),
        )
        for cell in cells
    )
    failed = tuple(_failed(document, planned, record) for record in records if record["outcome"] != "passed")
    parts = [Part("", Table("Faults by adapter and arm", _HEADS, rows), () if failed else ("Every trial passed.",))]
    parts += show_coverage(records)
    if failed:
        parts.append(Part("Trials that did not pass", folded=failed))
    left_out = _left_out(planned, document)
    if left_out:
        parts.append(Part("Not tried", sentences=left_out))
    return Section("trials", "Trials", tuple(parts), figures=_figures(cells))


def _left_out(planned: Sequence[PlannedTurn], document: Mapping[str, Any]) -> tuple[str, ...]:
    later = dict.fromkeys(repeat.turn.point for repeat in later_baselines(planned))
    spared = (f"{fault} with the baseline: it is compared only where the candidate failed" for fault in sorted(later))
    return (*map(str, document["plan"].get("left_out") or ()), *spared)


def _figures(cells: Sequence[Cell]) -> tuple[tuple[str, str, str], ...]:
    adapters = plural(len({cell.adapter for cell in cells}), "adapter")
    trials, void = sum(cell.trials for cell in cells), sum(cell.void for cell in cells)
    failures = f"{sum(cell.failures for cell in cells)} of {trials}"
    worst = max((cell.recovery_worst for cell in cells if cell.recovery_worst is not None), default=None)
    return (
        ("Failed trials", failures, f"both arms; void (fault not proven): {void}"),
        ("Faults", str(len({cell.fault for cell in cells if cell.trials})), f"kinds on {adapters}"),
        ("Worst recovery", _seconds(worst), "from the fault to the last I/O that failed or stalled"),
    )


def _seconds(value: float | None) -> str:
    return _DASH if value is None else f"{value:.1f} s"


def _failed(document: Mapping[str, Any], planned: Sequence[PlannedTurn], record: Mapping[str, Any]) -> FoldedList:
    adapters = [turn.adapter for turn in planned if turn.bench == record["bench"]]
    rows = tuple((f"{at:.3f} s", str(what), str(text)) for at, what, text in record["timeline"])
    return FoldedList(
        f"{record['id']} {record['outcome']}: {record['reasons'][0]}",
        Table(f"Timeline of {record['id']}", ("Time of the load", "What", "Text"), rows),
        tuple(map(str, record["reasons"])),
        repeat_command(document, str(record["bench"]), adapters, str(record["id"])),
    )


_PLANNED = ("Fault", "What happens", "Adapter", "Load", "Trials of each arm", "Allowed")
_HOW = (
    "In each trial a fault is caused under load at a drawn moment; afterwards all data is read back. A trial whose "
    "fault is not proven does not count."
)


def planned_faults(planned: Sequence[PlannedTurn], document: Mapping[str, Any]) -> tuple[Part, ...]:
    """What a test plan says of the trials of a run."""
    arm = "candidate" if any(turn.arm == "candidate" for turn in planned) else "baseline"
    counts = Counter(
        (turn.point, turn.adapter, _load(turn.request["load"]), _allowed(turn.point, turn.request["expect"]))
        for turn in planned
        if turn.arm == arm
    )
    rows = tuple(
        (fault.replace("_", " "), FAULTS[fault].sentence, adapter, load, str(count), allowed)
        for (fault, adapter, load, allowed), count in sorted(counts.items())
    )
    left_out = tuple(f"{reason}." for reason in _left_out(planned, document))
    tried = Part("What is tried", Table("Faults with what is allowed", _PLANNED, rows), (_HOW,))
    return (tried, *([Part("What is not tried", sentences=left_out)] if left_out else []))


def _load(load: Mapping[str, Any]) -> str:
    if load.get("sweep"):
        rows, commands = (len(load["sweep"][name]) for name in ("rows", "commands"))
        return f"{rows} writes in combinations of size, address, memory and way, {commands} seldom commands"
    return f"{load['workers']} workers on {load['sectors'] // 2} KiB, a flush after {load['flush_every']} writes"


def _allowed(fault: str, expect: Mapping[str, Any]) -> str:
    errors = {"none": False, "any": True, None: FAULTS[fault].io_errors}[expect["errors"]]
    allowed = f"recovery within {expect['recovery']:g} s, no I/O longer than {expect['stall']:g} s"
    return f"{allowed}, I/O errors while it lasts" if errors else f"{allowed}, no I/O error"


def tried_faults(records: Sequence[Mapping[str, Any]]) -> Part:
    """For a customer: the faults that were tried on the candidate, and how many trials failed."""
    cells = [cell for cell in matrix_of(records) if cell.arm == "candidate"]
    rows = tuple(
        (
            *(cell.fault.replace("_", " "), cell.adapter, str(cell.trials), str(cell.failures)),
            "" if cell.recovery_worst is None else f"{cell.recovery_worst:.1f} s",
        )
        for cell in cells
    )
    trials, failed = sum(cell.trials for cell in cells), sum(cell.failures for cell in cells)
    kinds = len({cell.fault for cell in cells})
    sentences = (
        f"{kinds} kinds of faults were caused under load, in {trials} trials; all data was read back after each.",
        "No trial failed." if not failed else f"{plural(failed, 'trial')} failed.",
    )
    heads = ("Fault", "Adapter", "Trials", "Failed", "Recovery, longest")
    return Part("Faults", Table("Faults of the candidate", heads, rows), sentences)
