# SPDX-License-Identifier: Apache-2.0
"""Limits in percent of a published figure: `reference: a6826a:iops.read[2]` with `min: 90 %`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from storqual.audit.references import PublishedValue, published_value

if TYPE_CHECKING:
    from storqual.model.suite import Criterion

__all__ = ["limits_from", "reference_of"]

_PERCENT = re.compile(r"\s*(\d+(?:\.\d*)?)\s*%\s*\Z")


def reference_of(criterion: Criterion) -> PublishedValue:
    """The published figure of a criterion, in the metric's unit.

    Raises BadInputError for a figure that is not there, ValueError for one that is of another metric or of none.
    """
    found = published_value(criterion.reference or "")
    if found.metric != criterion.metric:
        raise ValueError(f"a figure of {criterion.metric} (that one is of {found.metric or 'no metric'})")
    return found


def limits_from(criterion: Criterion) -> tuple[float | None, float | None, str]:
    """Smallest and largest value allowed in the metric's unit, and where the figure stands.

    Raises as `reference_of`, and ValueError for limits that are no percentages.
    """
    found = reference_of(criterion)
    low, high = (None if text is None else found.value * _share(text) for text in (criterion.min, criterion.max))
    return low, high, "; ".join(filter(None, [found.source, criterion.source]))


def _share(text: str) -> float:
    match = _PERCENT.match(text)
    share = float(match.group(1)) / 100 if match is not None else math.nan
    if not 0 < share < math.inf:
        raise ValueError("percent of the published figure, such as 90 %")
    return share
