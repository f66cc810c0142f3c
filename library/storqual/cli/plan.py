# SPDX-License-Identifier: Apache-2.0
"""`storqual plan`: check every input, say what will be measured and what can be seen, make the run directory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from storqual.base.text import plural
from storqual.cli.campaign import Campaign, campaign_options, refuse_broken_checks
from storqual.cli.options import as_json, print_json, print_pairs, print_rows
from storqual.run import Run, read_batch
from storqual_core.kit.errors import StorqualError
from storqual_core.kit.quantities import format_duration, format_percent


@click.command("plan")
@campaign_options
@click.option("--dry-run", is_flag=True, help="Check the inputs and plan, or what is left of a run; write nothing.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Check whether this interrupted run can be resumed and what is left of it, instead of planning a new one.",
)
@as_json
def plan_command(campaign: Campaign, *, dry_run: bool, resume: Path | None, as_json: bool) -> None:
    """Plan a campaign: points, trials, sessions, bench time, the smallest detectable change. No bench is touched.

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
    from storqual.plan.make import check_resume
    from storqual.run import read_run
    from storqual.witness import witness_addresses

    if resume is not None:
        done = check_resume(resume, record=not dry_run)
        campaign.refuse_another(resume)
        answer: dict[str, Any] = {"run": done.name, "path": str(resume.resolve()), "benches": _benches(resume)}
        answer["left"] = [_left(done, bench) for bench in done.benches]
    else:
        request = campaign.request()
        refuse_broken_checks(request)
        planned = plan(request, campaign.runs.resolve(), write=not dry_run)
        answer = planned.to_json()
        if planned.path is not None:
            made = read_run(planned.path)
            allow_checks(made, request.checks, campaign.inventories, witness_addresses(made.document).values())
            answer["benches"] = {
                name: {**answer["benches"][name], **bench} for name, bench in _benches(planned.path).items()
            }
    if as_json:
        print_json(answer)
    else:
        _print(answer)


_FEW = 3


def _key(turn: Mapping[str, Any]) -> tuple[str, str, str, int] | str:
    """A launch as a run has it measured on a bench; another turn by its id."""
    if turn["kind"] != "launch":
        return str(turn["id"])
    return (str(turn["adapter"]), str(turn["point"]), str(turn["arm"]), int(turn["n"]))


def _left(run: Run, bench: str) -> str:
    """What a resumed campaign would still do on a bench."""
    from storqual.campaign.next_step import next_step
    from storqual.campaign.steps import Stop

    step = next_step(run, bench)
    if isinstance(step, Stop):
        return f"{bench}: nothing is left to measure ({step.reason})"
    batches = (batch for session in run.sessions if session.bench == bench for batch in session.batches)
    turns = [_key(turn) for batch in batches for turn in read_batch(run.path, batch)["turns"]]
    done = {key[1:] for key in run.measured if key[0] == bench} | run.recorded
    what = "launches" if all(isinstance(turn, tuple) for turn in turns) else "launches, trials and programs"
    return f"{bench}: {sum(turn not in done for turn in turns)} of {len(turns)} {what} are left"


def _benches(run: Path) -> dict[str, Any]:
    """The benches as the plan read them: their device strings are what devices say, never templates."""
    from storqual.run.files import read_object

    try:
        return read_object(run, "inputs/inventory.json")
    except FileNotFoundError:
        raise StorqualError(f"{run / 'inputs/inventory.json'}: is missing; the run directory is damaged") from None


def _skipped(points: Sequence[Mapping[str, str]]) -> list[str]:
    """Why points are skipped: a line for each adapter and reason, with the points by name where they are few."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for point in points:
        names.setdefault((point["bench"], point["adapter"], point["reason"]), []).append(point["point"])
    return [
        f"{adapter} of {bench}, {', '.join(listed) if len(listed) <= _FEW else f'{len(listed)} points'}: {reason}"
        for (bench, adapter, reason), listed in names.items()
    ]


def _idle(answer: dict[str, Any]) -> list[str]:
    """Claimed drives that nothing is done with: whoever claims eight may think that eight are measured."""
    return [
        f"{adapter} of {name}: {plural(len(drives), 'claimed drive')} in no point; a workload takes 1 drive of an "
        "adapter unless `drives` says more"
        for name, bench in answer["benches"].items()
        for adapter, drives in bench.get("idle_drives", {}).items()
    ]


def _until(answer: dict[str, Any]) -> str:
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
    pairs: list[tuple[str, object]] = [("run", answer["run"])]
    if answer.get("points") or answer.get("skipped"):
        points = f"{answer['points']} ({answer['skipped']} skipped), {answer['launches']} launches"
        pairs += [("points", points), *(("skipped", sentence) for sentence in _skipped(answer["skipped_points"]))]
    if answer.get("trials"):
        counts = Counter((trial["fault"], trial["adapter"], trial["arm"]) for trial in answer["trials"])
        heads = ("fault", "adapter", "trials in each arm")
        cells = {(fault, adapter): count for (fault, adapter, _), count in counts.items()}
        print_rows(heads, [[*names, str(count)] for names, count in sorted(cells.items())], numbers=heads[2:])
        pairs.append(("trials", len(answer["trials"])))
    if answer.get("external"):
        pairs.append(("programs", f"{len(answer['external'])} runs, whose time is not known"))
    if "sessions" in answer:
        pairs += [("bench time", f"{answer['expected_seconds'] / 60:.0f} min{_until(answer)}"), *_time_lines(answer)]
    if answer.get("launches"):
        seen = answer["detectable_percent"]
        unknown = "not known: this needs the noise of earlier runs (--history)"
        pairs += [
            ("margin", format_percent(answer["margin_percent"] / 100)),
            ("detectable", unknown if seen is None else format_percent(seen / 100)),
        ]
    pairs += [("not used", sentence) for sentence in _idle(answer)]
    for name, key in (("left", "left"), ("left out", "left_out"), ("warning", "warnings"), ("advice", "advice")):
        pairs += [(name, sentence) for sentence in answer.get(key, ())]
    if answer.get("path"):
        pairs.append(("directory", answer["path"]))
    print_pairs(pairs)
