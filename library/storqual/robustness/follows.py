# SPDX-License-Identifier: Apache-2.0
"""Do the checks of a run of trials follow from its records? They are counted again and compared."""

from __future__ import annotations

from storqual.judge.outcome import TRIALS
from storqual.robustness.criteria import checks_of
from storqual.robustness.external_results import external_checks
from storqual.robustness.external_store import read_external
from storqual.robustness.store import has_trials, read_trials
from storqual.run import Run
from storqual.run.layout import CHECKS
from storqual_core.kit.errors import StorqualError


def trial_findings(run: Run) -> list[str]:
    """Outcomes of trials that are not those of the records, a sentence each; empty for a run without trials.

    Only outcomes are compared: another version may say otherwise why. A record that cannot be read is told as well.
    """
    if not has_trials(run.document):
        return []
    bench = next(iter(run.benches), "")
    try:
        files, programs = read_trials(run), read_external(run)
        counted = [
            *checks_of(files.planned, files.records, bench=bench, until_failure=files.until_failure),
            *external_checks(programs.planned, programs.records, bench=bench),
        ]
    except (StorqualError, KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
        return [line.removeprefix(f"{run.path}/") for line in str(problem).splitlines()]
    wanted = {(one["id"], one["bench"], one["adapter"]): one["outcome"] for one in counted}
    said = {(one.id, one.bench, one.adapter): one.outcome for one in run.checks if one.source == TRIALS}
    return [
        f"{CHECKS}: {key[0]} on {key[2]}: found {said.get(key, 'no outcome')}, "
        f"the records of its trials say {wanted.get(key, 'nothing of it')}"
        for key in dict.fromkeys([*wanted, *said])
        if wanted.get(key) != said.get(key)
    ]
