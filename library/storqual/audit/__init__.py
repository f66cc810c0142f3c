# SPDX-License-Identifier: Apache-2.0
"""Recompute what a report states from its own figures: consistent, rounding, inconsistent, or not checkable."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from storqual.audit.auditing import audit_report
from storqual.audit.claim import Claim, Status, audit_document
from storqual.audit.reading import read_report
from storqual_core.kit.errors import BadInputError

__all__ = ["Claim", "Status", "audit", "audit_document", "audit_report", "exit_code", "read_report"]


def audit(files: Iterable[Path]) -> list[Claim]:
    """Every claim of every file, in order. Raises BadInputError with the problems of all files."""
    claims: list[Claim] = []
    problems: list[str] = []
    for file in files:
        try:
            claims += audit_report(read_report(file))
        except BadInputError as bad:
            problems += bad.problems
    if problems:
        raise BadInputError(problems)
    return claims


def exit_code(claims: Iterable[Claim]) -> int:
    """1 when any claim is inconsistent, else 0."""
    return int(any(claim.status is Status.INCONSISTENT for claim in claims))
