# SPDX-License-Identifier: Apache-2.0
"""Trials as a release manager asks for them: counts, bound and recovery of each fault, adapter and arm."""

from __future__ import annotations

import re
import shlex
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.robustness.confidence import upper_bound

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
    for record in records:
        groups[(record["fault"], record["adapter"], record["arm"])].append(record)
    cells = []
    for (fault, adapter, arm), listed in sorted(groups.items()):
        valid = [record for record in listed if record["outcome"] != "void"]
        failures = sum(record["outcome"] == "failed" for record in valid)
        times = [float(record["recovery_s"]) for record in valid if record["recovery_s"] is not None]
        cells.append(
            Cell(
                fault=fault,
                adapter=adapter,
                arm=arm,
                trials=len(valid),
                failures=failures,
                void=len(listed) - len(valid),
                bound=upper_bound(failures, len(valid)),
                recovery_p50=statistics.median(times) if times else None,
                recovery_worst=max(times, default=None),
            )
        )
    return cells


def repeat_command(run: Mapping[str, Any], trial: str, times: int = 20) -> str:
    """The command that makes one trial of a run (its run.json) again until it fails."""
    trial = _REPETITION.sub("", trial)
    suite = run["suite"]
    words: list[str] = ["storqual", "qualify"]
    for source in run["inventories"]:
        words += ["-i", str(source)]
    # files instead of names: a drop or a suite may have been given by its path
    for arm in (*run["arms"], "suite"):
        words += [f"--{arm}", str(run["inputs"][arm]["source"])]
    bench, adapters = _tested(run, trial)
    words += ["--profile", str(suite["profile"]), "--adapters", ",".join(adapters), "--limit", bench]
    words += ["--seed", str(run["plan"]["seed"]), "--trial", trial, "--repeat", str(times)]
    return shlex.join(words)


def _tested(run: Mapping[str, Any], trial: str) -> tuple[str, Sequence[str]]:
    """The bench of a trial, and its adapters in the plan."""
    plan = run["plan"]
    benches = {session["id"]: str(session["bench"]) for session in plan["sessions"]}
    by_trial = {_REPETITION.sub("", one["id"]): benches[one["session"]] for one in plan["trials"]}
    bench = by_trial[trial]
    return bench, sorted({str(one["adapter"]) for one in plan["trials"] if benches[one["session"]] == bench})
