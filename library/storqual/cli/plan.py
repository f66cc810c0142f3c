# SPDX-License-Identifier: Apache-2.0
"""`storqual plan`: check every input, say what will be measured and what can be seen, make the run directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from storqual.cli.options import (
    as_json,
    campaign_options,
    names_of,
    print_json,
)
from storqual.cli.tables import print_pairs
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.quantities import format_duration, parse_duration


@click.command("plan")
@campaign_options
@click.option("--dry-run", is_flag=True, help="Check the inputs and plan, but write no run directory.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Check whether this interrupted run can be resumed, instead of planning a new one.",
)
@as_json
def plan_command(
    inventories: tuple[str, ...],
    candidate: str | None,
    baseline: str | None,
    suite: str | None,
    profile: str | None,
    gate: Path | None,
    adapters: str | None,
    points: tuple[str, ...],
    seed: int | None,
    limit: str | None,
    history: Path | None,
    facts: Path | None,
    budget: str | None,
    consent: str | None,
    runs: Path,
    checks: tuple[Path, ...],
    dry_run: bool,
    resume: Path | None,
    as_json: bool,
) -> None:
    """Plan a campaign: points, sessions, bench time, and the smallest change it can detect. No bench is touched.

    \b
    Examples:
      storqual plan -i inventories/virtual --baseline stable --candidate backport --suite adapter --profile quick
      storqual plan -i inventories/local --baseline baseline --candidate candidate --suite adapter --json
      storqual plan -i inventories/virtual_methods --candidate stable --suite qla1040-adapters --dry-run
      storqual plan -i inventories/local --baseline baseline --candidate candidate --suite adapter --budget 2h
      storqual plan -i inventories/virtual --baseline stable --candidate backport --suite robustness --dry-run
    """
    from storqual.checks.own import find_checks
    from storqual.cli.trials import of_trials, plan_trials
    from storqual.inputs.shape import raise_all
    from storqual.plan.inputs import PlanRequest
    from storqual.plan.make import check_resume, plan_run

    candidate, baseline, suite = candidate or "", baseline or "", suite or ""
    if resume is None and of_trials(suite, None, None):
        from storqual.trials.campaign import TrialRequest

        # of measured points, which trials do not have
        others = {"--point": points, "--history": history, "--facts": facts, "--budget": budget, "--checks": checks}
        raise_all(
            f"{name} cannot be used with suite {suite}, which is a suite of trials; leave it out"
            for name, given in others.items()
            if given
        )
        trials = TrialRequest(
            inventories=inventories,
            candidate=candidate,
            baseline=baseline,
            suite=suite,
            profile=profile,
            gate=gate,
            adapters=names_of(adapters),
            seed=seed,
            limit=limit,
            trial=None,
            repeat=1,
        )
        plan_trials(trials, None if dry_run else runs.resolve(), as_json=as_json)
        return
    if resume is not None:
        done = check_resume(resume)
        answer: dict[str, Any] = {"run": done.name, "path": str(resume.resolve()), "benches": _benches(resume)}
    else:
        asked = {"-i/--inventory": inventories, "--candidate": candidate, "--suite": suite}
        missing = [f"{name} is needed" for name, value in asked.items() if not value]
        if missing:
            raise BadInputError(missing)
        request = PlanRequest(
            inventories=tuple(Path(inventory) for inventory in inventories),
            baseline=baseline,
            candidate=candidate,
            suite=suite,
            profile=profile,
            gate=gate,
            limit=limit,
            adapters=names_of(adapters),
            points=points,
            seed=seed,
            budget=seconds_of_budget(budget) if budget else None,
            history=history,
            facts=facts,
            consent=tuple(word for word in (consent or "").split(",") if word),
            checks=find_checks(checks),
        )
        planned = plan_run(request, runs.resolve(), write=not dry_run)
        answer = planned.to_json()
        if planned.path is not None:
            answer["benches"] = {name: {**answer["benches"][name], **b} for name, b in _benches(planned.path).items()}
    if as_json:
        print_json(answer)
    else:
        _print(answer)


def rounded_percent(percent: float) -> str:
    """An estimate with two digits, as the field writes one: `15 %` of 14.999, `1.2 %` of 1.234."""
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def seconds_of_budget(budget: str) -> float:
    """Seconds of what `--budget` was given. Raises BadInputError."""
    try:
        return parse_duration(budget)
    except ValueError as problem:
        raise BadInputError([f"--budget: {problem}"]) from None


def _benches(run: Path) -> dict[str, Any]:
    """The benches as the plan read them: their device strings are what devices say, never templates."""
    return dict(json.loads((run / "inputs" / "inventory.json").read_text(encoding="utf-8")))


def _until(answer: dict[str, Any]) -> str:
    """How a campaign ends."""
    if answer["until"] == "planned":
        return f" in {answer['sessions']} session{'s' * (answer['sessions'] != 1)}"
    most = (
        f"about {answer['expected_units']} of at most {answer['most_units']} {answer['unit']} expected at each point"
    )
    return f" until decided; {most}"


def _time_lines(answer: dict[str, Any]) -> list[tuple[str, object]]:
    """What takes the bench time of the bench that takes longest, each with where its figure comes from."""
    longest = max(answer["benches"].values(), key=lambda bench: float(bench["expected_seconds"]))
    return [
        ("", f"{format_duration(round(line['seconds']))}: {line['what']} ({line['source']})")
        for line in longest["bench_time"]
    ]


def _print(answer: dict[str, Any]) -> None:
    """The plan in a few lines for a person."""
    pairs: list[tuple[str, object]] = [("run", answer["run"])]
    if "points" in answer:
        seen = answer["detectable_percent"]
        pairs += [
            ("points", f"{answer['points']} ({answer['skipped']} skipped), {answer['launches']} launches"),
            ("bench time", f"{answer['expected_seconds'] / 60:.0f} min{_until(answer)}"),
            *_time_lines(answer),
            ("margin", f"{answer['margin_percent']:g} %"),
            (
                "detectable",
                "not known: this needs the noise of earlier runs (--history)"
                if seen is None
                else rounded_percent(seen),
            ),
        ]
    pairs += [("warning", warning) for warning in answer.get("warnings", [])]
    pairs += [("advice", sentence) for sentence in answer.get("advice", [])]
    if answer.get("path"):
        pairs.append(("directory", answer["path"]))
    print_pairs(pairs)
