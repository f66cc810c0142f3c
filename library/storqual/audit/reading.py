# SPDX-License-Identifier: Apache-2.0
"""What a file given to the audit is: figures of a report, a known report's text, or a run of storqual."""

from __future__ import annotations

import hashlib
from pathlib import Path

from storqual.audit.run_directory import read_run_directory
from storqual.base.resources import suites_folder
from storqual.inputs.figures import load_published
from storqual.inputs.published import Published
from storqual_core.kit.errors import BadInputError

_OF_A_RUN = ("verdict.json", "run.json", "report.html")


def read_report(path: Path) -> Published:
    """The figures and assertions behind `path`. Raises BadInputError when it has none that can be named.

    A published file (`*.yml`) holds them. A run directory, or its verdict.json or report.html, stands for the run.
    A text is accepted when it is, byte for byte, the one that a file in suites/published was read from; of any other
    text nobody can tell mechanically which of its numbers belong together, so it is refused with what to do.
    """
    if path.is_dir():
        return read_run_directory(path)
    if path.name in _OF_A_RUN:
        return read_run_directory(path.parent)
    if path.suffix in (".yml", ".yaml"):
        return load_published(path)
    return _known_text(path)


def _known_text(path: Path) -> Published:
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as problem:
        raise BadInputError([f"{path}: found no readable file ({problem.strerror}), expected a report"]) from None
    for known in sorted((suites_folder() / "published").glob("*.yml")):
        if digest in known.read_text(encoding="utf-8"):
            return load_published(known)
    wanted = (
        "a file such as suites/published/qla1040.yml, the text that one of those was read from, or a run directory"
    )
    raise BadInputError([f"{path}: found a text whose figures have no names, expected {wanted}"])
