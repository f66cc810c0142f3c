# SPDX-License-Identifier: Apache-2.0
"""What the audit says about one assertion of a report."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


class Status(enum.StrEnum):
    """How an assertion stands to the figures of its own report."""

    CONSISTENT = "consistent"
    ROUNDING = "rounding"
    INCONSISTENT = "inconsistent"
    NOT_CHECKABLE = "not_checkable"


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check, before it is told of an assertion."""

    status: Status
    stated: float | str | None
    computed: float | str | None
    explanation: str


@dataclass(frozen=True)
class AuditedAssertion:
    """`stated` and `computed` are numbers, texts, or None where nothing can be compared.

    The fields are the keys of `storqual audit --json`, which are other people's and do not change.
    """

    id: str
    source: str
    page: int | str | None
    text: str
    stated: float | str | None
    computed: float | str | None
    unit: str
    status: Status
    explanation: str


def audit_document(assertions: Iterable[AuditedAssertion]) -> dict[str, Any]:
    return {"claims": [asdict(one) for one in assertions]}
