# SPDX-License-Identifier: Apache-2.0
"""`storqual report`: write report.html again, the same as PDF, or the trend of many runs, from files alone."""

from datetime import datetime
from pathlib import Path

import click

from storqual.cli.options import NEW_FILE, Moment, as_json, print_json, runs_argument
from storqual.run.layout import refuse_inside_run
from storqual_core.kit.errors import BadInputError


@click.command("report")
@runs_argument
@click.option("--pdf", type=NEW_FILE, help="Also write the report to this file as PDF.")
@click.option("--trend", type=NEW_FILE, help="Instead of the report, write a page with the trend of many runs.")
@click.option(
    "--compatibility",
    type=NEW_FILE,
    help="Instead of the report, write a page that shows which combinations ran in many runs.",
)
@click.option("--requirements", type=NEW_FILE, help="Also write a page with the requirements and their results.")
@click.option(
    "--summary",
    type=NEW_FILE,
    help="Also write a page with a summary for a customer: no serial number, host name or path.",
)
@click.option(
    "--test-plan", type=NEW_FILE, help="Instead of the report, write a page with the plan of a run, measured or not."
)
@click.option(
    "--as-of",
    type=Moment(),
    help="With --trend or --compatibility: the day from which ages are counted (default: today).",
)
@as_json
def report_command(
    runs: tuple[Path, ...],
    pdf: Path | None,
    trend: Path | None,
    compatibility: Path | None,
    requirements: Path | None,
    summary: Path | None,
    test_plan: Path | None,
    as_of: datetime | None,
    as_json: bool,
) -> None:
    """Write the report of a judged run, a document made from it, or one page about many runs.

    The path of each written file is printed. The report of a signed run is not changed. Every page of a PDF carries
    the digest of the evidence (the run's manifest, which signatures refer to). Documents must be written outside the
    run directory, because every file in it is evidence.

    \b
    Examples:
      storqual report runs/20261121T101500Z-adapter-4f2a
      storqual report runs/20261121T101500Z-adapter-4f2a --pdf driver-4.2.pdf
      storqual report runs/20261121T101500Z-adapter-4f2a --requirements matrix.html --summary customer.html
      storqual report runs/20261121T101500Z-adapter-4f2a --test-plan plan.html
      storqual report runs --trend quarter.html
      storqual report runs --compatibility compatibility.html
    """
    of_many = {"trend": trend, "compatibility": compatibility}
    of_one = {"pdf": pdf, "requirements": requirements, "summary": summary, "test-plan": test_plan}
    options = [f"--{name}" for name, target in {**of_many, **of_one}.items() if target is not None]
    if (any(target is not None for target in of_many.values()) or test_plan is not None) and len(options) > 1:
        raise BadInputError([f"storqual report: {' and '.join(options)} cannot be combined; give one of them"])
    for target in (*of_many.values(), *of_one.values()):
        if target is not None:
            refuse_inside_run(target)
    if trend is not None:
        from storqual.report.trend import build_trend

        written = {"trend": build_trend(runs, trend, as_of=as_of)}
    elif compatibility is not None:
        from storqual.report import documents

        page = documents.compatibility(runs, as_of=as_of)
        written = {"compatibility": documents.write_document(page, compatibility)}
    elif len(runs) != 1:
        expected = "give one, or --trend or --compatibility for all of them together"
        raise BadInputError([f"storqual report: {len(runs)} runs were given; {expected}"])
    else:
        targets = {name: target.resolve() for name, target in of_one.items() if target is not None}
        written = _of_one(runs[0].resolve(), targets)
    if as_json:
        print_json({name: str(path) for name, path in written.items()})
    else:
        for path in written.values():
            click.echo(path)


def _of_one(run: Path, targets: dict[str, Path]) -> dict[str, Path]:
    """The report and the documents of one run that were asked for; of a plan nothing else."""
    pdf = targets.get("pdf")
    if pdf is not None and not pdf.parent.is_dir():
        raise BadInputError([f"--pdf {pdf}: the folder {pdf.parent} does not exist; create it, or name another"])
    from storqual.report import documents
    from storqual.report.material import read_material

    if "test-plan" in targets:
        return {"test-plan": documents.write_document(documents.planned_tests(run), targets["test-plan"])}
    written = {"report": _page(run)}
    if "pdf" in targets:
        written["pdf"] = _pdf(run, written["report"], targets["pdf"])
    makers = {"requirements": documents.traceability, "summary": documents.customer_summary}
    for name in [name for name in makers if name in targets]:
        written[name] = documents.write_document(makers[name](read_material(run)), targets[name])
    return written


def _page(run: Path) -> Path:
    """report.html, made again unless somebody has signed it."""
    from storqual.report import build_report
    from storqual.run import is_signed
    from storqual.run.closing import is_closed
    from storqual.run.evidence import record_published
    from storqual.run.layout import locked

    with locked(run, signed=True):
        signed = run / "report.html"
        if is_signed(run) and signed.is_file():
            return signed
        report = build_report(run)
        if is_closed(run):
            record_published(run)
    return report


def _pdf(run: Path, report: Path, target: Path) -> Path:
    from storqual.report.render import write_pdf
    from storqual.run import is_signed, read_run, sha256_of
    from storqual.run.files import file_digest
    from storqual.run.layout import MANIFEST
    from storqual.signoff.manifest import dump_manifest, list_files
    from storqual.signoff.signature import signature_lines

    if is_signed(run) and (run / MANIFEST).is_file():
        digest = file_digest(run, MANIFEST)
        return write_pdf(report, digest, target, signatures=signature_lines(run))
    return write_pdf(report, sha256_of(dump_manifest(read_run(run).name, list_files(run))), target)
