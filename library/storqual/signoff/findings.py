# SPDX-License-Identifier: Apache-2.0
"""What speaks against a run as it lies there, whoever signs or signed it: the same for signing and for verifying."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from storqual.run import Run, read_run, sha256_of
from storqual.run.files import DAMAGE, damage_told, read_bytes, read_text
from storqual.run.layout import MANIFEST
from storqual.run.published import run_findings
from storqual.signoff.beside import Named, named_signatures
from storqual.signoff.exports import export_findings
from storqual.signoff.judgement import JudgedAgain
from storqual.signoff.manifest import Listing, Manifest, look, manifest_differences, parse_manifest
from storqual.signoff.statement import kinds_of


@dataclass(frozen=True)
class Examined:
    """A run directory as it was found. `problems` name their file each; without any the run was `judged` again.

    `run` is None where it cannot be read. `digest` is that of the manifest, empty for a run that nobody signed.
    """

    folder: Path
    listing: Listing
    digest: str
    manifest: Manifest | None
    signatures: tuple[Named, ...]
    run: Run | None
    judged: JudgedAgain | None
    problems: tuple[str, ...]


def examine(folder: Path) -> Examined:
    """Look at every file, hold it to the manifest, and judge the run again as its verdict was made.

    The one is done only where the other found nothing: a file that is not the one that was signed, or no file at all,
    is not read as anything else. Raises OSError when the folder cannot be read.
    """
    listing = look(folder)
    named, strange = named_signatures(listing.signatures)
    digest, manifest, problems = _manifest(folder, listing)
    problems += strange
    run, wrong = (None, []) if listing.odd else _run(folder)
    problems += wrong
    judged = None
    if run is not None and not problems:
        try:
            judged = JudgedAgain(run)
            problems += _of_run(run, judged)
            problems += [] if problems else judged.differences("verdict.json")
        except DAMAGE as problem:
            problems += damage_told(folder, problem)
    found = tuple(_relative(folder, line) for line in dict.fromkeys(problems))
    return Examined(folder, listing, digest, manifest, tuple(named), run, judged, found)


def _of_run(run: Run, judged: JudgedAgain) -> Iterator[str]:
    """What its files say against each other."""
    yield from run.verify_inputs()
    yield from run_findings(run.path, judged.measured.evidence)
    yield from export_findings(run)


def release_findings(examined: Examined, signed: Iterable[tuple[str, str, date]]) -> list[str]:
    """What speaks against the judgements that are signed: `(path, SHA-256, day)`, a day for each signature.

    Each is made again, must have passed on its day, and the report must be that of one of them.
    """
    again, signed = examined.judged, list(signed)
    if again is None or not signed:
        return []
    found = []
    try:
        for path in dict.fromkeys(path for path, _, _ in signed if path != "verdict.json"):
            found += again.differences(path)
        for path, _, day in dict.fromkeys(signed):
            verdict = again.of_day(path, day)
            if verdict["exit_code"] != 0:
                found.append(f"{path}: as of {day}, when it was signed, the files give {verdict['outcome']}")
        report = again.run.path / "report.html"
        if report.is_file():
            page = read_text(again.run.path, report.name)
            if not any(digest in page for _, digest, _ in signed):
                found.append("report.html: this report is of another verdict than the one that is signed")
    except DAMAGE as problem:
        found += damage_told(again.run.path, problem)
    return [_relative(again.run.path, line) for line in dict.fromkeys(found)]


def _manifest(folder: Path, listing: Listing) -> tuple[str, Manifest | None, list[str]]:
    """Digest of the manifest, what it covers, and what in the directory differs from it, or is odd."""
    odd = listing.problems
    if not listing.signatures:
        return "", None, odd
    if MANIFEST not in listing.signatures:
        return "", None, [*odd, *([] if MANIFEST in listing.odd else [f"{MANIFEST}: is missing"])]
    try:
        data = read_bytes(folder, MANIFEST)
    except DAMAGE as problem:
        return "", None, [*odd, *damage_told(folder, problem)]
    try:
        manifest = parse_manifest(data)
    except ValueError as problem:
        return sha256_of(data), None, [*odd, f"{MANIFEST}: was changed: {problem}"]
    return sha256_of(data), manifest, manifest_differences(listing, manifest)


def _run(folder: Path) -> tuple[Run | None, list[str]]:
    """The run; None with the reasons where it cannot be read: the manifest names the file as well."""
    try:
        run = read_run(folder)
        # what is asked of it later is there
        _ = run.arms["candidate"].drop, kinds_of(run)
    except DAMAGE as problem:
        return None, damage_told(folder, problem)
    return run, []


def _relative(folder: Path, line: str) -> str:
    return line.removeprefix(f"{folder}/")
