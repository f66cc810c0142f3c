# SPDX-License-Identifier: Apache-2.0
"""`storqual qualify`: the main job."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from storqual.base import child
from storqual.base.text import terminal_text
from storqual.bench.ansible_run import run_playbook
from storqual.cli.campaign import Campaign, campaign_options, refuse_broken_checks
from storqual.cli.options import EXISTING_FILE, as_json, print_json, wanted_seconds
from storqual_core.kit.errors import EXIT_BENCH_LOST, EXIT_UNEXPECTED, BadInputError

_NO_VERDICT = 2
_LAST_RUN = "STORQUAL_LAST_RUN"


@click.command("qualify")
@campaign_options
@click.option("--resume", metavar="RUN", help="Resume this run, which was interrupted.")
@click.option(
    "--waivers",
    type=EXISTING_FILE,
    help="Waiver file: failures that are accepted (default: waivers.yml beside the inventory).",
)
@click.option("--wait", metavar="TIME", help="Wait in order, such as 8h, for benches that somebody else has.")
@click.option("-v", "--verbose", count=True, help="Show what each task of Ansible does; can be repeated.")
@as_json
def qualify_command(
    campaign: Campaign,
    *,
    resume: str | None,
    waivers: Path | None,
    wait: str | None,
    verbose: int,
    as_json: bool,
) -> int:
    """Qualify a candidate drop against a baseline and exit with the gate's exit code.

    Without --baseline one drop is characterised, by a suite that has no criterion against the baseline: adapters,
    drives, ports and settings are compared with each other, with limits and with published figures.

    \b
    Examples:
      storqual qualify -i inventories/virtual --baseline stable --candidate backport --suite adapter --profile quick
      storqual qualify -i inventories/local --baseline baseline --candidate candidate --suite adapter --profile quick
      storqual qualify -i inventories/virtual_methods --candidate stable --suite qla1040-adapters
      storqual qualify -i inventories/local --baseline baseline --candidate candidate --suite adapter --budget 2h
      storqual qualify --resume 20261121T101500Z-adapter-4f2a
    """
    from storqual.inputs import load_waivers

    runs, inventories = campaign.runs.resolve(), campaign.inventories
    resumed = None if resume is None else _find_run(resume, runs)
    if resumed is not None:
        campaign.refuse_another(resumed)
    if waivers is not None:
        # read now: a mistake in it must not wait for the end of a campaign
        load_waivers(waivers)
    if resumed is not None:
        if waivers is not None:
            from storqual.campaign.publication import waivers_for

            waivers_for(resumed, waivers)
        if not inventories:
            from storqual.checks.plan_record import planned_inventories
            from storqual.run import read_run

            inventories = planned_inventories(read_run(resumed))
        variables: dict[str, object] = {"resume": str(resumed)}
    else:
        variables = _variables(campaign, _refuse_mistakes(campaign))
    for inventory in inventories:
        if "," not in inventory and not Path(inventory).exists():
            raise BadInputError([f"{inventory}: no such inventory; expected a folder or a file"])
    variables["runs"] = str(runs)
    if wait is not None:
        wanted_seconds(wait, "--wait")
        variables["wait"] = wait
    if waivers is not None:
        variables["waivers"] = str(waivers.resolve())
    options = [*(["--limit", campaign.limit] if campaign.limit else []), *(["-" + "v" * verbose] if verbose else [])]
    # a folder of its own: whoever may write to the runs may have left a note there, or a link
    with child.empty_folder() as folder:
        note = folder / "run"
        status = run_playbook(
            "qualify.yml",
            inventories=inventories,
            variables=variables,
            options=options,
            environment={_LAST_RUN: str(note)},
            quiet=as_json,
            lines=not verbose,
        )
        run_path = Path(note.read_text(encoding="utf-8").strip()) if note.is_file() else None
    code = status if status in (0, 1, 2, 3, 4, EXIT_BENCH_LOST, EXIT_UNEXPECTED) else _NO_VERDICT
    verdict = _json(run_path / "verdict.json") if run_path and (run_path / "verdict.json").is_file() else {}
    if code in (0, 1) and code != verdict.get("exit_code"):
        # Ansible ended without reaching the plan (no matching host, a play that could not start), or as it likes
        code = _NO_VERDICT
    _tell(run_path, verdict, code, as_json=as_json)
    return code


def _refuse_mistakes(campaign: Campaign) -> Sequence[Path]:
    """Raise BadInputError with every mistake of the inputs, as `storqual plan` tells them, before Ansible starts.

    What a list of hosts in place of an inventory means, only Ansible says: then its plan tells the mistakes. Returns
    the files of hand-written checks.
    """
    from storqual.plan.make import make_plan

    request = campaign.request()
    if any("," in inventory for inventory in campaign.inventories):
        return request.checks
    refuse_broken_checks(request)
    planned = make_plan(request)
    for sentence in planned.unsigned:
        # the run would be measured for nothing, and its gate cannot be changed afterwards
        click.echo(terminal_text(f"storqual: warning: {sentence}"), err=True)
    for sentence in planned.left_out:
        click.echo(terminal_text(f"storqual: left out: {sentence}"), err=True)
    return request.checks


def _variables(campaign: Campaign, checks: Sequence[Path]) -> dict[str, object]:
    """The campaign as the playbook takes it; what was not given is left out."""
    names = ("candidate", "suite", "baseline", "profile", "adapters", "seed", "consent", "budget", "trial")
    files = {"gate": campaign.gate, "history": campaign.history, "facts_file": campaign.facts}
    lists = {"points": list(campaign.points), "checks": [str(path) for path in checks]}
    return {
        **({"repeat": campaign.repeat} if campaign.trial else {}),
        **{name: value for name in names if (value := getattr(campaign, name)) is not None},
        **{name: str(file.resolve()) for name, file in files.items() if file is not None},
        **{name: listed for name, listed in lists.items() if listed},
    }


def _tell(run: Path | None, verdict: Mapping[str, Any], code: int, *, as_json: bool) -> None:
    """The end of a job: a summary, or one JSON object; what is missing on standard error."""
    from storqual.report.summary import print_summary

    report = run / "report.html" if run is not None and (run / "report.html").is_file() else None
    if report is None or code not in (verdict.get("exit_code"), EXIT_BENCH_LOST):
        # judged, and then refused: a verdict that is not published is nobody's to read
        verdict, report = {}, None
    if run is None:
        click.echo(f"storqual: no run directory was written; exit code {code}", err=True)
    elif not verdict:
        named = run.name if run.parent == Path("runs").resolve() else str(run)
        sentence = f"exit code {code}, no verdict was published; to resume: storqual qualify --resume {named}"
        click.echo(f"storqual: {sentence}", err=True)
    elif not as_json:
        print_summary(verdict, _json(run / "run.json"), run / "report.html")
    if as_json:
        paths = {"run": None if run is None else str(run), "report": None if report is None else str(report)}
        print_json({**paths, "outcome": verdict.get("outcome"), "exit_code": code})


def _json(path: Path) -> dict[str, Any]:
    from storqual.run.files import read_object

    return read_object(path.parent, path.name)


def _find_run(name: str, runs: Path) -> Path:
    for path in (runs / name, Path(name)):
        if (path / "run.json").is_file():
            return path.resolve()
    raise BadInputError([f"{runs / name}: no run directory (it has no run.json)"])
