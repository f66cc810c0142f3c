# SPDX-License-Identifier: Apache-2.0
"""Find fio's JSON in what fio printed: notes may stand before and after it, and there may be none."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Mapping

__all__ = ["FioDocument", "find_document"]

_OPENING = re.compile(r"^\{", re.MULTILINE)
_VERSION = re.compile(r"fio-(\d+)\.")
_TRIES = 16


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
    decoder = json.JSONDecoder()
    found: FioDocument | None = None
    rest = []
    end = 0
    for match in list(_OPENING.finditer(output))[:_TRIES]:
        if match.start() < end:
            continue
        try:
            body, after = decoder.raw_decode(output, match.start())
        except (ValueError, RecursionError):
            continue
        document = _document(body)
        if document is not None:
            found = document
            rest.append(output[end : match.start()])
            end = after
    rest.append(output[end:])
    return found, "\n".join(rest)


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
