# SPDX-License-Identifier: Apache-2.0
"""What the audit says about one assertion of a report."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


class Status(enum.StrEnum):
    """How an assertion stands to the figures of its own report."""

    CONSISTENT = "consistent"
    ROUNDING = "rounding"
    INCONSISTENT = "inconsistent"
    NOT_CHECKABLE = "not_checkable"


@dataclass(frozen=True)
class Claim:
    """One assertion, judged. `stated` and `computed` are numbers, texts, or None where nothing can be compared."""

    id: str
    source: str
    page: int | str | None
    text: str
    stated: float | str | None
    computed: float | str | None
    unit: str
    status: Status
    explanation: str

    def to_json(self) -> dict[str, Any]:
        """The claim as `storqual audit --json` prints it; the keys are other people's and do not change."""
        return {
            "id": self.id,
            "source": self.source,
            "page": self.page,
            "text": self.text,
            "stated": self.stated,
            "computed": self.computed,
            "unit": self.unit,
            "status": self.status.value,
            "explanation": self.explanation,
        }


def audit_document(claims: Iterable[Claim]) -> dict[str, Any]:
    """The answer of `storqual audit --json`."""
    return {"claims": [claim.to_json() for claim in claims]}
