# SPDX-License-Identifier: Apache-2.0
"""Limits in percent of a published figure: `reference: a6826a:iops.read[2]` with `min: 90 %`."""

from __future__ import annotations

import math
import re

from storqual.inputs.references import PublishedValue, published_value

_PERCENT = re.compile(r"\s*(\d+(?:\.\d*)?)\s*%\s*\Z")


def published_figure(reference: str, metric: str) -> PublishedValue:
    """The figure that `reference` names, in the unit of `metric`.

    Raises BadInputError for a figure that is not there, ValueError for one that is of another metric or of none.
    """
    found = published_value(reference)
    if found.metric != metric:
        raise ValueError(f"a figure of {metric} (that one is of {found.metric or 'no metric'})")
    return found


def limits_from(
    reference: str, metric: str, low: str | None, high: str | None
) -> tuple[float | None, float | None, str]:
    """Smallest and largest value allowed in the metric's unit, and where the figure stands.

    Raises as `published_figure`, and ValueError for limits that are no percentages.
    """
    found = published_figure(reference, metric)
    least, most = (None if text is None else found.value * _share(text) for text in (low, high))
    return least, most, found.source


def _share(text: str) -> float:
    match = _PERCENT.match(text)
    share = float(match.group(1)) / 100 if match is not None else math.nan
    if not 0 < share < math.inf:
        raise ValueError("percent of the published figure, such as 90 %")
    return share
