# SPDX-License-Identifier: Apache-2.0
"""`storqual history`: what the runs of a folder say together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from storqual.cli.options import as_json, print_json
from storqual.text_safety import terminal_text

__all__ = ["history_command"]


@click.command("history")
@click.argument("runs", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("runs"))
@click.option("--bench", help="Only this bench.")
@click.option(
    "--extract", type=click.Path(path_type=Path), help="Write the noise of all points here, for `plan --history`."
)
@as_json
def history_command(runs: Path, bench: str | None, extract: Path | None, as_json: bool) -> None:
    """Index the runs of a folder; show their outcomes, the control chart of each bench, the noise of each point.

    The index is a file in the folder. It is made from the run directories and brought up to date each time; deleting
    it loses nothing.

    \b
    Examples:
      storqual history runs
      storqual history runs --bench vbench --json
      storqual history runs --extract noise.json
    """
    from storqual.commands.history import history_of
    from storqual.history.extract import extract_of
    from storqual.store import write_bytes

    answer = history_of(runs.resolve())
    if extract is not None:
        write_bytes(extract.resolve(), extract_of(runs.resolve(), None if bench is None else [bench]))
    for part in ("control_chart", "noise") if bench is not None else ():
        answer[part] = [entry for entry in answer[part] if entry["bench"] == bench]
    if as_json:
        print_json(answer)
    else:
        for line in _lines(answer):
            click.echo(terminal_text(line))


def _lines(answer: dict[str, Any]) -> list[str]:
    """The answer for a person."""
    lines = [f"{run['outcome']:<13}{run['run']}  {_drops(run)}" for run in answer["runs"]]
    lines += [f"{'':<13}{run['run']}: {run['suspect']}" for run in answer["runs"] if run["suspect"]]
    benches = sorted({entry["bench"] for entry in answer["noise"]})
    for bench in benches:
        known = ([e["sd_pair"], e["sd_session"]] for e in answer["noise"] if e["bench"] == bench)
        spreads = sorted(next(sd for sd in pair if sd is not None) for pair in known)
        middle = spreads[len(spreads) // 2]
        lines.append(
            f"noise        {bench}: {len(spreads)} points and metrics, spread in the middle {100 * middle:.2f} %"
        )
    lines += [f"not read     {problem}" for problem in answer["index"]["problems"]]
    return lines or ["no judged run was found"]


def _drops(run: Mapping[str, Any]) -> str:
    """Both arms, or the only one of a characterisation."""
    return f"{run['baseline']} -> {run['candidate']}" if run["baseline"] else str(run["candidate"])
