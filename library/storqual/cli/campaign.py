# SPDX-License-Identifier: Apache-2.0
"""Which campaign is meant: the options that `storqual plan` and `storqual qualify` share, and their requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.cli.options import EXISTING_FILE, adapters_option, complete_drop, complete_profile, complete_suite
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import parse_duration

if TYPE_CHECKING:
    from storqual.plan.inputs import PlanRequest


@dataclass(frozen=True)
class Campaign:
    """The options as they were given; None, or nothing, where one was left out."""

    inventories: tuple[str, ...]
    candidate: str | None
    baseline: str | None
    suite: str | None
    profile: str | None
    gate: Path | None
    runs: Path
    adapters: str | None
    points: tuple[str, ...]
    seed: int | None
    limit: str | None
    history: Path | None
    facts: Path | None
    budget: str | None
    consent: str | None
    checks: tuple[Path, ...]
    trial: str | None
    repeat: int

    def request(self) -> PlanRequest:
        """The same for the planner. Raises BadInputError for what is missing, and for a wrong budget."""
        from storqual.checks.own import find_checks
        from storqual.inputs.shape import raise_all
        from storqual.plan.inputs import PlanRequest

        needed = {"-i/--inventory": self.inventories, "--candidate": self.candidate, "--suite": self.suite}
        raise_all(f"{name} is needed" for name, given in needed.items() if not given)
        given = {field.name: getattr(self, field.name) for field in fields(Campaign) if field.name != "runs"}
        read: dict[str, Any] = {
            "inventories": tuple(map(Path, self.inventories)),
            "baseline": self.baseline or "",
            "adapters": comma_separated(self.adapters),
            "budget": _seconds(self.budget),
            "consent": comma_separated(self.consent) or (),
            "checks": find_checks(self.checks),
        }
        return PlanRequest(**{**given, **read})

    def refuse_another(self, run: Path) -> None:
        """Raise BadInputError for options of a new campaign, because `run`, which is resumed, has its plan.

        Raises it, too, for checks and files of the plan that this user did not name: the run may be anybody's.
        """
        from storqual.campaign.declared import refuse_foreign_files
        from storqual.checks.own import resume_checks
        from storqual.inputs.shape import raise_all
        from storqual.run import read_run
        from storqual.run.closing import is_closed

        others = {f"--{name}": getattr(self, name) for name in _OF_THE_PLAN} | {"--point": self.points}
        raise_all(
            f"{name} cannot be used with --resume, because the run has its plan already; leave it out"
            for name, given in others.items()
            if given not in (None, ())
        )
        refuse_foreign_files(read_run(run), self.inventories)
        if not is_closed(run):
            resume_checks(read_run(run), self.checks)


def refuse_broken_checks(request: PlanRequest) -> None:
    from storqual.checks.own import broken_checks
    from storqual.inputs.shape import raise_all
    from storqual.plan.make import make_plan

    broken = broken_checks(request.checks)
    if broken:
        try:
            make_plan(request)
        except BadInputError as problem:
            broken = [*problem.problems, *broken]
    raise_all(broken)


_OF_THE_PLAN = (
    "candidate",
    "baseline",
    "suite",
    "profile",
    "gate",
    "adapters",
    "seed",
    "history",
    "facts",
    "budget",
    "consent",
    "trial",
)


def comma_separated(listed: str | None) -> tuple[str, ...] | None:
    """Names separated by commas, blanks around them left out; None where nothing was given."""
    return None if listed is None else tuple(name.strip() for name in listed.split(",") if name.strip())


def _seconds(budget: str | None) -> float | None:
    try:
        return None if budget is None else parse_duration(budget)
    except ValueError as problem:
        raise BadInputError([f"--budget: {problem}"]) from None


_CAMPAIGN = (
    click.option(
        "-i", "--inventory", "inventories", multiple=True, help="Inventory of the lab (a folder or a file)."
    ),
    click.option(
        "--candidate",
        shell_complete=complete_drop,
        help="The drop to qualify: a name in <inventory>/drops, or a path.",
    ),
    click.option(
        "--baseline",
        shell_complete=complete_drop,
        help="The drop to compare with; leave it out to characterise one drop.",
    ),
    click.option(
        "--suite", shell_complete=complete_suite, help="What is run, and what decides: a name in suites/, or a path."
    ),
    click.option(
        "--profile",
        shell_complete=complete_profile,
        help="A profile of the suite, such as quick or full (default: the suite's own).",
    ),
    click.option(
        "--gate",
        type=EXISTING_FILE,
        help=(
            "Gate policy (default: gate.yml beside the inventory, else the criteria that the suite marks "
            "as required)."
        ),
    ),
    click.option(
        "--runs",
        type=click.Path(path_type=Path),
        default=Path("runs"),
        show_default=True,
        help="Folder of the run directories.",
    ),
    adapters_option,
    click.option(
        "--point",
        "points",
        multiple=True,
        help="Only this point, as the report names it; can be repeated.",
    ),
    click.option("--seed", type=int, help="Seed of the order in which points are measured; recorded in the run."),
    click.option("--limit", help="Only these benches (an Ansible pattern)."),
    click.option(
        "--history",
        type=click.Path(path_type=Path, exists=True),
        help="Noise of earlier runs: their folder, or an extract (`storqual history --extract`).",
    ),
    click.option(
        "--facts",
        type=EXISTING_FILE,
        help="Output of `storqual facts --deep --json`; only settings that the drives allow to change are varied.",
    ),
    click.option(
        "--budget", help="Bench time, such as 2h: measure until every criterion is decided or the time is used up."
    ),
    click.option(
        "--consent",
        help=(
            "Last characters of the WWNs of drives for which you allow what a claim does not cover "
            "(firmware, format, deleting a volume), separated by commas."
        ),
    ),
    click.option(
        "--checks",
        multiple=True,
        type=click.Path(path_type=Path),
        help=(
            "Your own checks: a test_*.py, a *.robot, or a folder of them; those in suites/ run anyway. "
            "With --resume: your copies of checks that another user planned. Can be repeated."
        ),
    ),
    click.option("--trial", help="Only the trial with this id, repeated until it fails."),
    click.option(
        "--repeat",
        type=click.IntRange(min=1),
        default=20,
        show_default=True,
        help="With --trial: how often to repeat it at most.",
    ),
)


def campaign_options(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def gathered(**given: Any) -> Any:  # noqa: ANN401 - the command's own options, as click has them
        campaign = Campaign(**{field.name: given.pop(field.name) for field in fields(Campaign)})
        return command(campaign=campaign, **given)

    for option in reversed(_CAMPAIGN):
        gathered = option(gathered)
    return gathered
