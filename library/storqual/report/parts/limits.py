# SPDX-License-Identifier: Apache-2.0
"""What the candidate is held to, for a first screen: the two limits by name, the zone between, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, median

from storqual.report.change import in_sentence
from storqual.report.criterion import Criterion
from storqual.report.figures import Figure, count, percent
from storqual.report.material import Material, measure, spread_of
from storqual.report.view import Phrase

_ONE_SIDED = 1.645
"""Standard errors between a shift and its one-sided 95 % bound, of a normal."""


@dataclass(frozen=True)
class Limits:
    """The two limits of some metrics, and what is said of a loss between them."""

    metrics: str
    acceptable: Figure
    unacceptable: Figure
    between: Phrase


def limits_of(compared: Sequence[Criterion]) -> tuple[Limits, ...]:
    """The limits of required criteria against the baseline, one entry for metrics that share both."""
    groups: dict[tuple[float | None, float | None], list[Criterion]] = {}
    for row in compared:
        pair = (row.number("indifference_percent"), row.number("margin_percent"))
        groups.setdefault(pair, []).append(row)
    return tuple(_limits(rows) for (_, margin), rows in groups.items() if margin is not None)


def _limits(rows: Sequence[Criterion]) -> Limits:
    first = rows[0]
    names = list(dict.fromkeys(measure(row.text("metric")).label for row in rows))
    names = [*names[:1], *map(in_sentence, names[1:])]
    return Limits(
        metrics=" and ".join(filter(None, [", ".join(names[:-1]), names[-1]])),
        acceptable=first.percent("indifference", signed=False),
        unacceptable=first.percent("margin", signed=False),
        between=_between(rows),
    )


def _between(rows: Sequence[Criterion]) -> Phrase:
    """The odds of a true loss half way between the limits, at the noise of the middle one of these criteria."""
    low, high = rows[0].number("indifference_percent"), rows[0].number("margin_percent")
    reaches = [
        shift - bound
        for row in rows
        if (shift := row.number("shift_percent")) is not None and (bound := row.number("bound_percent")) is not None
    ]
    reaches = [reach for reach in reaches if reach > 0 and math.isfinite(reach)]
    if low is None or high is None or not reaches:
        return ("a loss between them may pass, fail or stay undecided",)
    half, reach = (low + high) / 2, median(reaches)
    odds = round(100 * NormalDist().cdf((high - half - reach) * _ONE_SIDED / reach))
    return (
        "a loss between them may pass or fail: at the noise seen here, a true loss of ",
        percent(half, f"count:half-way:{rows[0].index}", signed=False),
        " passes in about ",
        count(min(max(odds, 1), 99), f"count:odds:{rows[0].index}"),
        " of ",
        count(100, "count:hundred"),
        " such campaigns",
    )


def how_sure(material: Material, compared: Sequence[Criterion]) -> Iterator[Phrase]:
    """The error rate of the gate at each point, and how well launches repeat on this bench."""
    alpha = material.run.plan.fields.get("alpha")
    if compared and isinstance(alpha, (int, float)):
        rate = percent(100 * alpha, "run:/plan/alpha", signed=False)
        yield (
            "At each point, at most ",
            rate,
            " of campaigns pass a candidate with the unacceptable loss, and at most ",
            rate,
            " fail one within the acceptable loss; a fail counts when launches made for it find it again.",
        )
    arm = "baseline" if "baseline" in material.arms else "candidate"
    spread = spread_of(material.points.values(), arm, "iops")
    if spread.freedom > 0:
        shown = percent(100 * spread.relative, f"samples:spread:{arm}", signed=False)
        several = len({session.id for session in material.run.sessions if arm in session.arms}) > 1
        yield (
            f"IOPS of {'sessions' if several else 'launches'} of the {arm} repeat within ",
            shown,
            " (standard deviation, all points together).",
        )
