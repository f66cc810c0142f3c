# SPDX-License-Identifier: Apache-2.0
"""A failing run is rewritten as one of a former version, whose figures are not derived again: it passes by its rules.

With `evidence: derived` in the file of trusted keys it is neither signed nor released.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual.cli.playbook.publish import publish
from storqual.judge.verdict import verdict_of
from storqual.robustness.criteria import checks_of
from storqual.robustness.external_results import external_checks
from storqual.robustness.external_runs import read_external
from storqual.robustness.store import read_trials
from storqual.run import append_check, read_run
from storqual.run.closing import plan_digest
from storqual.run.collect import block_digest
from storqual.run.layout import FORMER_RUN_SCHEMA, dump_line, sha256_of
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import BadInputError
from tests.attacks.before.tampering import chained, document, edited, lines_of
from tests.attacks.before.trials import told_anew
from tests.attacks.finished_run import finished_run, put
from tests.attacks.test_before_signing import seen
from tests.attacks.trial_run import record_of, trial_run
from tests.support.signing import NOW, Person, make_person, sign, write_keys

pytestmark = pytest.mark.slow

REQUIRED = "require:\n  - {roles: [release-manager], evidence: derived}\n"
NOT_REQUIRED = "require:\n  - {roles: [release-manager]}\n"
TOLD = "requires derived evidence, and the run is checked by the rules of storqual.run/"
_PUBLISHED = ("closed", "published", "judged")


def samples_by_former_rules(run: Path) -> None:
    """The baseline's figures stand in the candidate's samples; plan and samples say a former schema."""
    with document(run / "run.json") as plan:
        plan["schema"] = FORMER_RUN_SCHEMA
    with edited(run / "samples.jsonl") as samples:
        for sample in samples:
            sample["schema"] = "storqual.sample/1"
            of_baseline = (one for one in samples if one["arm"] == "baseline" and one["point"] == sample["point"])
            if sample["arm"] == "candidate":
                better = next(of_baseline)
                sample |= {name: better[name] for name in ("primitives", "series")}
    digests = [(one["block"], sha256_of(dump_line(one)[:-1])) for one in lines_of(run / "samples.jsonl")]
    events = [one for one in lines_of(run / "events.jsonl") if one["kind"] not in _PUBLISHED]
    del events[0]["plan_sha256"]
    for event in events:
        if event["kind"] == "block_finished":
            event["sha256"] = block_digest([digest for block, digest in digests if block == event["block"]])
    chained(run / "events.jsonl", events)


def trials_by_former_rules(run: Path) -> None:
    """Every trial passed, as its record says; the plan names no evidence that records are derived from."""
    with document(run / "run.json") as plan:
        del plan["plan"]["evidence"]
    for path in sorted((run / "trials").glob("*.json")):
        told_anew(run, path, {**record_of(path), "outcome": "passed", "reasons": [], "violations": []})
    events = [one for one in lines_of(run / "events.jsonl") if one["kind"] not in _PUBLISHED]
    events[0]["plan_sha256"] = plan_digest(json.loads((run / "run.json").read_bytes()))
    chained(run / "events.jsonl", events)
    put(run / "checks.jsonl", b"")
    files, programs = read_trials(read_run(run)), read_external(read_run(run))
    for check in (
        *checks_of(files.planned, files.records, bench="vbench", until_failure=False),
        *external_checks(programs.planned, programs.records, bench="vbench"),
    ):
        append_check(run, check)


def damaged_trials(folder: Path) -> Path:
    return trial_run(folder, damaged=True)


def slower_candidate(folder: Path) -> Path:
    return finished_run(folder, 0.3)


ATTACKS = [(slower_candidate, samples_by_former_rules), (damaged_trials, trials_by_former_rules)]


@pytest.fixture
def manager(tmp_path: Path) -> Person:
    return make_person(tmp_path, "Rene", "release-manager")


def keys_with(policy: str, person: Person, folder: Path) -> Path:
    folder.mkdir()
    path = write_keys(folder, person)
    path.write_text(path.read_text(encoding="utf-8") + policy, encoding="utf-8")
    return path


@pytest.mark.parametrize(("make", "rewrite"), ATTACKS, ids=["samples", "trials"])
def test_a_run_that_is_rewritten_as_a_former_one_passes_only_where_derived_evidence_is_not_required(
    make: Callable[[Path], Path], rewrite: Callable[[Path], None], manager: Person, tmp_path: Path
) -> None:
    failed = make(tmp_path / "failed")
    required = keys_with(REQUIRED, manager, tmp_path / "required")
    lax = keys_with(NOT_REQUIRED, manager, tmp_path / "lax")
    verdict = verdict_of(failed)
    assert (verdict["outcome"], "derived again from" in verdict["evidence"]) == ("FAIL", True)

    run = Path(shutil.copytree(failed, tmp_path / "rewritten" / failed.name))
    rewrite(run)
    assert publish(run).verdict["outcome"] == "PASS"
    # nothing but the rules that it names gives it away
    assert seen(run) == ""
    assert "not derived again" in verdict_of(run)["evidence"]

    with pytest.raises(BadInputError, match=TOLD):
        sign(run, manager, required)
    assert not list(run.glob("signoff*"))
    sign(run, manager, lax)
    assert verify_run(run, lax, as_of=NOW, allow_virtual=True).exit_code == 0
    found = verify_run(run, required, as_of=NOW, allow_virtual=True)
    assert found.exit_code == 1
    assert [TOLD in one for one in found.problems] == [True]
