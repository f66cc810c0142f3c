# SPDX-License-Identifier: Apache-2.0
"""Find fio's JSON in what fio printed: notes may stand before and after it, and there may be none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping

from .json_text import find_spans

__all__ = ["FioDocument", "find_document"]

_VERSION = re.compile(r"fio-(\d+)\.")


@dataclass(frozen=True)
class FioDocument:
    """fio's result: its version, its jobs, and whether it counts in microseconds and KiB as fio 2 did."""

    version: str
    jobs: tuple[Mapping[str, Any], ...]
    old_units: bool


def find_document(output: str) -> tuple[FioDocument | None, str]:
    """The last complete result in `output`, and every line that is no part of one.

    A result is a JSON object that begins on a line of its own and has at least one job. Raises nothing.
    """
    found = None
    notes, end = [], 0
    for body, start, after in find_spans(output):
        document = _document(body)
        if document is not None:
            found = document
            notes.append(output[end:start])
            end = after
    notes.append(output[end:])
    return found, "\n".join(notes)


def _document(body: object) -> FioDocument | None:
    """A parsed object as fio's result; None when it is something else."""
    if not isinstance(body, dict):
        return None
    jobs = body.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        return None
    version = str(body.get("fio version", ""))[:100]
    match = _VERSION.match(version)
    return FioDocument(version, tuple(jobs), old_units=match is not None and int(match.group(1)[:6]) < 3)
