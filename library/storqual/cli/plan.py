# SPDX-License-Identifier: Apache-2.0
"""`storqual plan`: check every input, say what will be measured and what can be seen, make the run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from storqual.cli.campaign import Campaign, campaign_options
from storqual.cli.options import as_json, print_json, print_pairs
from storqual_core.kit.quantities import format_duration


@click.command("plan")
@campaign_options
@click.option("--dry-run", is_flag=True, help="Check the inputs and plan, but write no run directory.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Check whether this interrupted run can be resumed, instead of planning a new one.",
)
@as_json
def plan_command(campaign: Campaign, *, dry_run: bool, resume: Path | None, as_json: bool) -> None:
    """Plan a campaign: points, sessions, bench time, and the smallest change it can detect. No bench is touched.

    \b
    Examples:
      storqual plan -i inventories/virtual --baseline stable --candidate backport --suite adapter --profile quick
      storqual plan -i inventories/local --baseline baseline --candidate candidate --suite adapter --json
      storqual plan -i inventories/virtual_methods --candidate stable --suite qla1040-adapters --dry-run
      storqual plan -i inventories/local --baseline baseline --candidate candidate --suite adapter --budget 2h
      storqual plan -i inventories/virtual --baseline stable --candidate backport --suite robustness --dry-run
    """
    from storqual.campaign.pipeline import plan
    from storqual.checks.own import allow_checks
    from storqual.cli.trials import of_trials, plan_trials, planned_benches
    from storqual.plan.make import check_resume
    from storqual.run import read_run

    runs = campaign.runs.resolve()
    if resume is None and of_trials(campaign.suite, campaign.trial):
        plan_trials(campaign.of_trials(), None if dry_run else runs, as_json=as_json)
        return
    if resume is not None:
        done = check_resume(resume)
        campaign.refuse_another(resume)
        answer: dict[str, Any] = {"run": done.name, "path": str(resume.resolve()), "benches": planned_benches(resume)}
    else:
        request = campaign.of_points()
        planned = plan(request, runs, write=not dry_run)
        answer = planned.to_json()
        if planned.path is not None:
            allow_checks(read_run(planned.path), request.checks)
            answer["benches"] = {
                name: {**answer["benches"][name], **b} for name, b in planned_benches(planned.path).items()
            }
    if as_json:
        print_json(answer)
    else:
        _print(answer)


def rounded_percent(percent: float) -> str:
    """An estimate with two digits, as the field writes one: `15 %` of 14.999, `1.2 %` of 1.234."""
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


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
