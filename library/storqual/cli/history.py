# SPDX-License-Identifier: Apache-2.0
"""`storqual history`: what the runs of a folder say together."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from storqual.base.text import terminal_text
from storqual.cli.options import RUN_FOLDER, as_json, print_json, print_pairs, print_rows
from storqual_core.kit.quantities import format_percent


@click.command("history")
@click.argument("runs", type=RUN_FOLDER, default=Path("runs"))
@click.option("--bench", help="Show only this bench.")
@click.option(
    "--extract",
    type=click.Path(path_type=Path),
    help="Write the noise of all points to this file, for `plan --history`.",
)
@as_json
def history_command(runs: Path, bench: str | None, extract: Path | None, as_json: bool) -> None:
    """Index the runs of a folder; show their outcomes, the control chart of each bench and the noise of each point.

    The index is a file in that folder. It is built from the run directories and updated each time, so it can be
    deleted without loss.

    \b
    Examples:
      storqual history runs
      storqual history runs --bench vbench --json
      storqual history runs --extract noise.json
    """
    from storqual.history.index import extract_of, history_of
    from storqual.run import write_bytes
    from storqual.run.layout import refuse_inside_run

    if extract is not None:
        refuse_inside_run(extract)
    answer = history_of(runs.resolve())
    if extract is not None:
        write_bytes(extract.resolve(), extract_of(runs.resolve(), None if bench is None else [bench]))
    for part in ("control_chart", "noise") if bench is not None else ():
        answer[part] = [entry for entry in answer[part] if entry["bench"] == bench]
    if as_json:
        print_json(answer)
    else:
        _show(answer)


def _show(answer: Mapping[str, Any]) -> None:
    if not answer["runs"]:
        click.echo("no judged run was found")
    print_rows(
        ("Outcome", "Run", "Drops"),
        [(run["outcome"], run["run"], _drops(run)) for run in answer["runs"]],
        title="Runs",
    )
    for run in answer["runs"]:
        if run["waivers"]:
            click.echo(terminal_text(f"waived  {run['run']}: {run['outcome']} {run['waivers']}"))
        if run["suspect"]:
            click.echo(terminal_text(f"suspect  {run['run']}: {run['suspect']}"))
    print_rows(
        ("What", "Bench", "Reference", "Run", "IOPS", "Limits", "State"),
        [
            ("chart", row["bench"], row["drive"], row["run"], f"{row['iops']:.0f}", _limits(row), _state(row))
            for row in answer["control_chart"]
        ],
        title="Control chart of golden references",
        numbers=("IOPS",),
    )
    print_rows(
        ("What", "Bench", "Points and metrics", "Middle spread"),
        list(_spreads(answer["noise"])),
        title="Noise of a launch or session, as a share of its value",
        numbers=("Points and metrics", "Middle spread"),
    )
    print_pairs([("not read", problem) for problem in answer["index"]["problems"]])


def _limits(point: Mapping[str, Any]) -> str:
    return "" if point["low"] is None or point["high"] is None else f"{point['low']:.0f} to {point['high']:.0f}"


def _state(point: Mapping[str, Any]) -> str:
    """Whether the bench was in control when that campaign ran."""
    if point["low"] is None:
        return "too few campaigns before it"
    return "OUT OF CONTROL" if point["suspect"] else "in control"


def _spreads(noise: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, int, str]]:
    """For each bench how many points and metrics are known, and the spread of the one in the middle."""
    for bench in sorted({entry["bench"] for entry in noise}):
        known = ([e["sd_pair"], e["sd_session"]] for e in noise if e["bench"] == bench)
        spreads = sorted(next(sd for sd in pair if sd is not None) for pair in known)
        yield "noise", bench, len(spreads), format_percent(spreads[len(spreads) // 2])


def _drops(run: Mapping[str, Any]) -> str:
    """Both arms, or the only one of a characterisation."""
    return f"{run['baseline']} -> {run['candidate']}" if run["baseline"] else str(run["candidate"])
