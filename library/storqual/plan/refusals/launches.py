# SPDX-License-Identifier: Apache-2.0
"""Launches, trials and programs that cannot be planned, and benches on which nothing of a suite can be run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from storqual.inputs.inventory import Bench
from storqual.inputs.shape import did_you_mean, one_of, unknown
from storqual.inputs.suite import Suite
from storqual.inputs.yaml_file import Keys, read_yaml
from storqual.plan.bench_plan import BenchPlan
from storqual.plan.inputs import PlanInputs
from storqual.plan.points import Pattern, points_of
from storqual.plan.refusals.drops import section_keys
from storqual.plan.settable import Facts
from storqual.run.records import PlannedPoint

_SECTOR = 512
"""The smallest logical block of any drive (bytes)."""

_SCSI = "sg"
_FILE_SYSTEMS = ("xfs", "ext4")


def launch_problems(
    suite: Suite, path: Path, chosen: Sequence[tuple[Bench, Sequence[str]]], facts: Facts
) -> Iterator[str]:
    """What of a suite's points fio would refuse; how long a logical block is, facts know."""
    document = read_yaml(path)
    block, where = max((_largest_block(bench, aliases, facts) for bench, aliases in chosen), default=(_SECTOR, ""))
    problems: dict[tuple[Keys, str], None] = {}
    for point in points_of(suite):
        size = int(point.pattern.values["bs"])
        if size % block and (point.pattern["direct"] or point.pattern["engine"] == _SCSI):
            buffered = "" if point.pattern["engine"] == _SCSI else ", or `direct: false`"
            problems[_keys(suite, point.workload, "bs"), _unaligned(size, block, where) + buffered] = None
        files = _not_drives(point.pattern, chosen) if point.pattern["engine"] == _SCSI else ""
        if files:
            sentence = f"engine sg sends SCSI commands to drives, and {files}; use libaio or psync"
            problems[_keys(suite, point.workload, "engine"), sentence] = None
    for keys, sentence in problems:
        yield document.about(keys, sentence)


def _unaligned(size: int, block: int, where: str) -> str:
    has = f", because drive {where} has logical blocks of that size" if where else ""
    return f"a block size of {size} bytes cannot be used with direct I/O; use a multiple of {block}{has}"


def _not_drives(pattern: Pattern, chosen: Sequence[tuple[Bench, Sequence[str]]]) -> str:
    """Why the targets are files; empty where they are drives or volumes."""
    target = str(pattern["target"])
    if target.startswith(_FILE_SYSTEMS):
        return f"target {target} is a file"
    local = [bench.name for bench, _ in chosen if bench.kind == "local"]
    return f"{local[0]} has files" if local else ""


def _keys(suite: Suite, workload: str, name: str) -> Keys:
    """Where a parameter of a workload was written."""
    declared = suite.workloads[workload]
    if name in declared.factors:
        return ("workloads", workload, "factors", name)
    return ("defaults", name) if getattr(declared, name) is None else ("workloads", workload, name)


def _largest_block(bench: Bench, aliases: Sequence[str], facts: Facts) -> tuple[int, str]:
    claimed = {drive.id for alias in aliases for drive in bench.adapters[alias].claimed}
    drives: list[dict[str, Any]] = [
        drive for drive in facts.get(bench.name, {}).get("drives") or () if drive["id"] in claimed
    ]
    sizes = [(int((drive.get("block") or {}).get("logical_block_size") or 0), str(drive["id"])) for drive in drives]
    return max([size for size in sizes if size[0] > _SECTOR], default=(_SECTOR, ""))


def nothing_planned(plans: Sequence[BenchPlan], suite: Suite, trial: str | None, *, named: bool) -> Iterator[str]:
    """Benches on which nothing can be run, or not the trial that is to be repeated.

    Where the benches were `named` (--limit, --adapters, --trial), those are left out as long as one has work.
    """
    busy = [plan.bench.name for plan in plans if plan.sessions]
    if trial is not None and not busy:
        ids = [ident for plan in plans for ident in plan.turns.drawn]
        yield f"--trial: no trial {trial!r} in this plan{did_you_mean(trial, ids)}; expected {one_of(ids)}"
        return
    for plan in plans:
        if plan.sessions or (busy and (named or trial is not None)):
            continue
        others = f"; to qualify the others, add --limit {','.join(busy)}" if busy else ""
        yield f"{plan.bench.name}: {idle_because(plan, suite)}{others}"


def idle_because(plan: BenchPlan, suite: Suite) -> str:
    reasons = [*skipped_reasons(plan.points), *plan.turns.left_out]
    listed = [*(trial.adapters for trial in suite.trials), *(program.adapters for program in suite.programs.values())]
    named = dict.fromkeys(alias for aliases in listed for alias in aliases)
    if not reasons and named:
        reasons = [f"its trials and programs are for {' and '.join(named)}"]
    why = f": {'; '.join(reasons)}" if reasons else ""
    return f"nothing of suite {suite.name} can be run on this bench{why}"


def skipped_reasons(points: Iterable[PlannedPoint]) -> list[str]:
    """Why points are skipped, adapter by adapter: `mraid: 5 points: needs 1 drive, ...`."""
    counts = Counter((point.adapter, point.skipped) for point in points if point.skipped)
    return [f"{alias}: {count} point{'s' * (count != 1)}: {why}" for (alias, why), count in counts.items()]


_WHILE_MEASURED = ("iops_limit", "unplug")
"""What is done to a virtual bench only while it measures launches; trials have faults for it."""


def turn_problems(read: PlanInputs) -> Iterator[str]:
    """What the trials and programs of a suite name and no bench of the inventory has, and what drops ask in vain."""
    suite, path = read.suite, read.suite_path
    assert suite is not None and path is not None  # noqa: S101, PT018 - read without problems
    if not suite.trials and not suite.programs:
        return
    named: list[tuple[Keys, Sequence[str]]] = []
    named += [(("trials", number, "adapters"), trial.adapters) for number, trial in enumerate(suite.trials)]
    named += [(("programs", name, "adapters"), program.adapters) for name, program in suite.programs.items()]
    document = read_yaml(path)
    for keys, aliases in named:
        for alias in aliases:
            if alias not in read.aliases:
                yield document.about(keys, unknown("adapter", alias, read.aliases))
    for file in read.drops.values():
        document = read_yaml(file.path)
        for number, entry in enumerate(file.drop.sections["virtual"]):
            keys = section_keys(document, "virtual", number)
            for name in _WHILE_MEASURED:
                if name in entry.settings:
                    sentence = f"sessions of trials and programs do not apply virtual.{name}; remove it from the drop"
                    yield document.about((*keys, name), sentence)
