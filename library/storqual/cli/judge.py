# SPDX-License-Identifier: Apache-2.0
"""`storqual judge` and `storqual publish`: a verdict from files, no bench needed."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json, run_argument

__all__ = ["judge_command", "publish_command"]


@click.command("judge")
@run_argument
@click.option("--suite", type=click.Path(path_type=Path, exists=True), help="Judge by this suite's criteria instead.")
@click.option("--gate", type=click.Path(path_type=Path, exists=True), help="Judge by this gate policy instead.")
@click.option("--waivers", type=click.Path(path_type=Path, exists=True), help="Accepted failures.")
@click.option("--as-of", type=click.DateTime(), help="Judge as if it were this time (UTC): waivers expire.")
@as_json
def judge_command(
    run: Path, suite: Path | None, gate: Path | None, waivers: Path | None, as_of: datetime | None, as_json: bool
) -> int:
    """Judge a run; the exit code is the gate's. Other limits never overwrite a finished verdict.

    \b
    Examples:
      storqual judge runs/20261121T101500Z-adapter-4f2a
      storqual judge runs/20261121T101500Z-adapter-4f2a --suite stricter.suite.yml --json
    """
    from storqual.judge.verdict import judge_run
    from storqual.report.summary import print_summary

    verdict = judge_run(run, suite=suite, gate=gate, waivers=waivers, as_of=as_of)
    if as_json:
        print_json(verdict)
    else:
        print_summary(verdict, None, None)
    return int(verdict["exit_code"])


@click.command("publish")
@run_argument
@click.option(
    "--waivers",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Accepted failures; without it `waivers.yml` beside the inventory.",
)
@as_json
def publish_command(run: Path, waivers: Path | None, as_json: bool) -> int:
    """Close a run: judge it, write pytest.html, junit.xml, report.html and ocp.jsonl; the exit code is the gate's.

    \b
    Example:
      storqual publish runs/20261121T101500Z-adapter-4f2a
    """
    from storqual.publish import publish
    from storqual.report.summary import print_summary
    from storqual.store import read_run_json

    done = publish(run.resolve(), waivers=waivers)
    if as_json:
        print_json(done.to_json())
    else:
        print_summary(dict(done.verdict), read_run_json(run), done.report)
    return int(done.verdict["exit_code"])
