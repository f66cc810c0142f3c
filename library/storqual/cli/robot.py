# SPDX-License-Identifier: Apache-2.0
"""`storqual robot` and `storqual keywords`: acceptance in plain words, of a bench that answers or of a run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from storqual.base.text import terminal_text
from storqual.cli.options import NEW_FILE, RUN_FOLDER, as_json, limit_option, print_json
from storqual_core.kit.durable import checked_name
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from storqual.robot_library import Target


@click.command("robot")
@click.argument("suites", nargs=-1)
@click.option(
    "-i", "--inventory", "inventories", multiple=True, help="Run the suites against the benches of this inventory."
)
@limit_option
@click.option("--run", type=RUN_FOLDER, help="Run the suites on this run instead of on benches.")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for the logs of Robot Framework."
)
@click.option("--variable", "variables", multiple=True, help="A variable of the suites, such as THROTTLE:4.")
@as_json
def robot_command(
    suites: tuple[str, ...],
    inventories: tuple[str, ...],
    limit: str | None,
    run: Path | None,
    output: Path | None,
    variables: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run Robot Framework suites against benches or on a run.

    SUITES are files, or names of suites that come with storqual. In a run that is not judged yet, outcomes become
    checks of its verdict and the logs are kept in the run; a judged run is not changed. Exit codes: 0 all tests pass,
    1 one fails, 2 one could not judge.

    \b
    Examples:
      storqual robot bench_acceptance -i inventories/virtual
      storqual robot bench_acceptance -i inventories/virtual --variable THROTTLED_ADAPTER:sym --variable THROTTLE:16
      storqual robot driver_drop sign_off --run runs/20261121T101500Z-adapter-4f2a --output acceptance
    """
    from storqual.robot_library import run_suites, suite_files
    from storqual.run import append_check

    if (run is None) == (not inventories):
        raise BadInputError(["give either --run or -i"])
    files = suite_files(suites)
    judged = run is not None and (run / "verdict.json").is_file()
    if judged and output is None:
        raise BadInputError(
            [f"{run}: this run is judged and can no longer be changed; name a folder for the logs (--output)"]
        )
    folder = output or (run / "robot" if run is not None else _folder())
    answer = {}
    for target in _targets(run, inventories, limit):
        left_out = () if judged else ("after-verdict",)
        checks = run_suites(
            target, files, folder / checked_name(target.bench, "bench"), variables=variables, exclude=left_out
        )
        answer[target.bench] = [check.to_json(target.bench) for check in checks]
        if run is not None and not judged:
            for line in answer[target.bench]:
                append_check(run, line)
    if as_json:
        print_json({"checks": answer, "logs": str(folder)})
    else:
        for bench, lines in answer.items():
            for line in lines:
                click.echo(terminal_text(f"{line['outcome']:<8}  {bench}  {line['id']}  {_why(line)}".rstrip()))
        click.echo(f"logs: {folder}")
    outcomes = {str(line["outcome"]) for lines in answer.values() for line in lines}
    return 1 if "FAIL" in outcomes else 0 if outcomes and outcomes <= {"PASS", "SKIPPED"} else 2


def _why(line: dict[str, object]) -> str:
    return "" if line["outcome"] == "PASS" else str(line["reason"])


def _folder() -> Path:
    return Path("acceptance") / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def _targets(run: Path | None, inventories: tuple[str, ...], limit: str | None) -> list[Target]:
    from storqual.inputs import load_inventory
    from storqual.robot_library import Target
    from storqual.run import read_run

    if run is not None:
        return [Target(name, str(bench.get("kind")), run.resolve()) for name, bench in read_run(run).benches.items()]
    benches = load_inventory([Path(source) for source in inventories], limit=limit).benches
    absolute = tuple(str(Path(source).resolve()) for source in inventories)
    return [Target(name, bench.kind, None, absolute) for name, bench in benches.items()]


@click.command("keywords")
@click.argument("page", type=NEW_FILE)
@as_json
def keywords_command(page: Path, as_json: bool) -> None:
    """Write the documentation of the Robot Framework keywords to PAGE (.html, .json or .xml).

    \b
    Example:
      storqual keywords keywords.html
    """
    from robot.libdoc import libdoc

    if page.suffix not in (".html", ".json", ".xml"):
        raise BadInputError([f"{page}: unknown suffix {page.suffix!r}, expected .html, .json or .xml"])
    libdoc("storqual.robot_library.StorqualLibrary", str(page), quiet=True)
    if as_json:
        print_json({"page": str(page)})
    else:
        click.echo(page)
