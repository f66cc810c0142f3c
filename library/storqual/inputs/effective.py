# SPDX-License-Identifier: Apache-2.0
"""A criterion with everything decided that it inherits from its profile, or takes from a published figure."""

from __future__ import annotations

from dataclasses import dataclass

from storqual.inputs.fields import limit_value
from storqual.inputs.suite import Criterion, Profile

LINEAR_TOLERANCE = 0.05
"""Linear is at least 95 % of the share that the first level gives, as in `storqual.statistics.scaling`."""


@dataclass(frozen=True)
class EffectiveCriterion:
    """A criterion with everything decided: fractions, and limits in the metric's unit."""

    id: str
    metric: str
    against: str
    margin: float
    indifference: float
    marginal: float | None
    alpha: float
    min: float | None
    max: float | None
    required: bool
    source: str
    hardware_only: str = ""
    over: str = ""
    linear_to: int | None = None
    unstated: str = ""


def effective(criterion: Criterion, profile: Profile, kind: str) -> EffectiveCriterion:
    """`criterion` under `profile` on a bench of `kind`; a limit's unit was checked when the suite was planned."""
    if criterion.reference is not None:
        from storqual.inputs.references import limits_from  # noqa: PLC0415 - most criteria have no reference

        low, high, published = limits_from(criterion.reference, criterion.metric, criterion.min, criterion.max)
        source = "; ".join(filter(None, [published, criterion.source]))
    else:
        low, high = (
            None if text is None else limit_value(text, criterion.metric, criterion.unit)
            for text in (criterion.min, criterion.max)
        )
        source = criterion.source or ""
    return EffectiveCriterion(
        id=criterion.name,
        metric=criterion.metric,
        against=criterion.against,
        margin=_margin(criterion, profile),
        indifference=_below(criterion, profile),
        marginal=profile.marginal if criterion.marginal is None else criterion.marginal,
        alpha=profile.alpha if criterion.alpha is None else criterion.alpha,
        min=low,
        max=high,
        required=criterion.is_required(kind),
        source=source,
        hardware_only=criterion.hardware_only or "",
        over=criterion.over or "",
        linear_to=criterion.linear_to,
    )


def _margin(criterion: Criterion, profile: Profile) -> float:
    """The margin; of a scaling criterion it is the tolerance for what is called linear."""
    if criterion.margin is not None:
        return criterion.margin
    return LINEAR_TOLERANCE if criterion.against == "scaling" else profile.margin


def _below(criterion: Criterion, profile: Profile) -> float:
    """The indifference zone; one that the criterion does not name is at most half of its margin."""
    if criterion.indifference is not None:
        return criterion.indifference
    margin = profile.margin if criterion.margin is None else criterion.margin
    return min(profile.indifference, margin / 2)
