# SPDX-License-Identifier: Apache-2.0
"""`storqual publish`: close a measured run, judge it, write its log and its report, and audit the report."""

from pathlib import Path

import click

from storqual.cli.options import EXISTING_FILE, as_json, print_json, run_argument


@click.command("publish")
@run_argument
@click.option(
    "--waivers",
    type=EXISTING_FILE,
    help="Waiver file (default: the waivers of its verdict, else waivers.yml beside the inventory).",
)
@click.option(
    "--checks",
    multiple=True,
    type=click.Path(path_type=Path),
    help=(
        "Checks to run now: corrected ones of yours that ended in an ERROR, or your copies of checks that another "
        "user planned. Can be repeated."
    ),
)
@click.option(
    "--witness",
    "witnesses",
    multiple=True,
    help="A witness that run.json names and that is yours: it is told of this run. Can be repeated.",
)
@as_json
def publish_command(
    run: Path, waivers: Path | None, checks: tuple[Path, ...], witnesses: tuple[str, ...], as_json: bool
) -> int:
    """Close a run: judge it, write report.html, pytest.html, junit.xml and ocp.jsonl, exit with the gate's exit code.

    A run can be published again, also with other waivers, until it is signed. Verdict, report and exports are then
    written again, and the run's events record what was published before.

    The waivers of the lab are used and the witness is told where you planned the run on this machine. For a run that
    somebody else planned, name both.

    Hand-written checks are executed once, before the run is closed: those of yours that you planned it with, and
    those that you name. Nothing of the run itself is executed. A check that ended in an ERROR can be corrected: name
    the corrected file with --checks. It is run over the same measurements; the run keeps both files and the verdict
    says that it was corrected.

    \b
    Examples:
      storqual publish runs/20261121T101500Z-adapter-4f2a
      storqual publish runs/20261121T101500Z-adapter-4f2a --waivers waivers.yml
      storqual publish runs/20261121T101500Z-adapter-4f2a --checks my_checks/test_steady.py
    """
    from storqual.campaign.pipeline import publish
    from storqual.checks.own import allow_checks, correct_checks, find_checks
    from storqual.inputs.shape import raise_all
    from storqual.report.summary import print_summary
    from storqual.run import read_run, read_run_json
    from storqual.witness import witness_addresses

    if witnesses:
        named = set(witness_addresses(read_run_json(run)).values())
        expected = f"this run has no such witness; run.json names {', '.join(sorted(named)) or 'none'}"
        raise_all(f"--witness {address}: {expected}" for address in witnesses if address not in named)
        allow_checks(read_run(run.resolve()), (), witnesses=witnesses)
    if checks:
        correct_checks(read_run(run.resolve()), find_checks(checks, None))
    done = publish(run.resolve(), waivers=waivers)
    if as_json:
        print_json(done.to_json())
    else:
        print_summary(dict(done.verdict), read_run_json(run), done.report)
    return int(done.verdict["exit_code"])
