# SPDX-License-Identifier: Apache-2.0
"""`storqual next`: what a bench does now."""

from pathlib import Path

import click

from storqual.base.text import terminal_text
from storqual.campaign import Provision, RunBatch, Stop
from storqual.campaign.pipeline import apply, next_step
from storqual.cli.options import as_json, print_json, run_argument
from storqual.run import planned_session, read_run
from storqual.run.time_left import TimeLeft


@click.command("next")
@run_argument
@click.option("--bench", required=True, help="The bench that asks for its next step.")
@click.option(
    "--boot-id", help="The current boot id of the bench; if it differs from the session's, a new session begins."
)
@as_json
def next_command(run: Path, bench: str, boot_id: str | None, as_json: bool) -> None:
    """Print what a bench has to do next: provision a session, measure a batch, or stop.

    \b
    Example:
      storqual next runs/20261121T101500Z-adapter-4f2a --bench vbench --json
    """
    step = next_step(run, bench, boot_id=boot_id)
    answer = step.to_json()
    if isinstance(step, Provision):
        answer["declared"] = apply(step)
        answer["told"] = TimeLeft(run, bench).line(
            f"session {step.session.id} is being prepared: packages, settings, boots"
        )
    elif isinstance(step, RunBatch):
        answer["disturb"] = _disturbance(run, bench, step.session)
    elif isinstance(step, Stop):
        answer["told"] = TimeLeft(run, bench).line("nothing more to measure; the bench is being restored", over=True)
    if as_json:
        print_json(answer)
        return
    words = [answer["action"], *(str(answer[name]) for name in ("block", "reason") if answer.get(name))]
    click.echo(terminal_text(" ".join(words)))


def _disturbance(run: Path, bench: str, session: str) -> dict[str, object]:
    """What the drop of a virtual bench asks to happen while this session is measured."""
    opened = read_run(run)
    name = planned_session(session)
    planned = next((s for s in opened.sessions if s.id == name and s.bench == bench), None)
    if planned is None:
        return {}
    spec = opened.document["provision"][bench][planned.configuration]
    return dict((spec.get("virtual") or {}).get("unplug") or {})
