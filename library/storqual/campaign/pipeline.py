# SPDX-License-Identifier: Apache-2.0
"""A qualification from its inputs to its signatures: plan, apply, turns, close, judge, report, seal.

Ansible is in charge, because what a lab reads, runs and changes is `playbooks/qualify.yml`. It calls these stages: by
`storqual plan`, `storqual next` and `storqual publish`, and by the plugin `bench_turns`. People call `storqual sign`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storqual.campaign.next_step import next_command
from storqual.campaign.steps import Provision, Step
from storqual.run import read_batch
from storqual.run.layout import INPUTS, locked

if TYPE_CHECKING:
    from storqual.campaign.publication import PublishedRun
    from storqual.plan.inputs import PlanRequest
    from storqual.plan.make import Planned
    from storqual.signoff.sign import Signed, SignRequest


def plan(request: PlanRequest, runs: Path, *, write: bool = True) -> Planned:
    """Check every input and write the run directory: all that will be done, in the order in which it is."""
    from storqual.plan.make import plan_run

    return plan_run(request, runs, write=write)


def next_step(run: Path, bench: str, *, boot_id: str | None = None) -> Step:
    """What a bench does now: a session is applied, a batch of turns is run, or it stops. Asked after each of them."""
    return next_command(run, bench, boot_id=boot_id)


def apply(step: Provision) -> dict[str, Any]:
    """What a session declares, as the module `bench_apply` takes it; a boot that it needs is the role's."""
    from storqual.campaign.declared import declared_document

    return declared_document(step.spec)


def turns(run: Path, batch: str, durable: Callable[[], Any], streamed: Callable[[], Any]) -> Any:  # noqa: ANN401 - what they give
    """Run a batch on its bench and collect it: what was measured at its end, what a fault was told of at once."""
    return streamed() if read_batch(run, batch)["spool"] == "streamed" else durable()


def publish(run: Path, *, waivers: Path | None = None) -> PublishedRun:
    """Close, judge, report. One process publishes a run at a time; a signed run stays as it is (BadInputError).

    Failures are accepted by `waivers_for(run, waivers)`. From the verdict to the end the run's own lock is held, so
    that nobody signs half of what is published.
    """
    from storqual.campaign import publication

    with locked(run / INPUTS):
        accepted, measured = publication.look(run, waivers)
        publication.close(run, measured)
        with locked(run):
            verdict = publication.judge(run, accepted, measured)
            return publication.report(run, verdict, measured)


def seal(request: SignRequest) -> Signed:
    """Sign: the run is judged again from its files, and a manifest of all of them is what the signature is about."""
    from storqual.signoff.sign import sign_run

    return sign_run(request)
