# SPDX-License-Identifier: Apache-2.0
"""The sequential test where changing arms needs a boot: the session is the unit, launches are nested in it.

A boot moves the level of everything that is measured in it, and no number of launches inside shows by how much. So a
session counts as one value, its mean, launches of the two arms are not paired, and the noise comes from sessions of
the same arm. After each complete session in both arms there is a look. A session is complete when another one began
after it, or when it has as many launches as its predecessors (their median): both can be told without knowing the
future, so a decision taken launch by launch is the one taken at the end.

What two sessions per arm decide: with two degrees of freedom a pass needs the shift to lie 6.1 standard deviations
of a session mean inside the margin (3: 2.8, 4: 2.1, 6: 1.5). A margin of 8 % is decided by 2 + 2 sessions on a bench
whose sessions repeat within 0.6 %, by 3 + 3 within 1.2 %; one of 3 % by 2 + 2 within 0.25 %, by 6 + 6 within 1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.statistics.analysis import Analysis, Limits, Outcome
from storqual.statistics.launches import session_levels
from storqual.statistics.levels import Rule, nominal_levels
from storqual.statistics.noise import LAUNCH_FLOOR, Prior, with_prior
from storqual.statistics.pairs import CI_SIDE, FAIL_SHARE, POWER, further_units

__all__ = ["Session", "analyse_sessions", "split_sessions"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Session:
    """The launches of one session in order (axes launch, second); `open` when it is the last and not yet complete."""

    launches: Floats
    open: bool


@dataclass(frozen=True, slots=True)
class _Look:
    shift: float
    plain: float
    error: float
    sd: float
    df: float
    robust: bool
    levels: tuple[float, float, float]
    """one-sided levels for pass, fail, and one side of the interval"""


def split_sessions(launches: Floats, ids: Sequence[object]) -> list[Session]:
    """Launches grouped by session in the order the sessions began."""
    order: dict[object, list[int]] = {}
    for index, name in enumerate(ids):
        order.setdefault(name, []).append(index)
    groups = list(order.values())
    last = len(groups) - 1
    found = []
    for number, indices in enumerate(groups):
        earlier = [len(group) for group in groups[:number]]
        usual = float(np.median(earlier)) if earlier else np.inf
        found.append(Session(launches[indices], number == last and len(indices) < usual))
    return found


def analyse_sessions(
    baseline: list[Session],
    candidate: list[Session],
    limits: Limits,
    *,
    sign: float = 1.0,
    launch_prior: Prior | None = None,
    session_prior: Prior | None = None,
) -> Analysis:
    """Test one point whose arms were measured in sessions of their own.

    `session_prior` is the variance of a session's level from earlier campaigns, `launch_prior` that of one launch.
    """
    known = _Known(sign, launch_prior, session_prior if session_prior and session_prior.df > 0 else None)
    complete = min(sum(not s.open for s in arm) for arm in (baseline, candidate))
    # a session effect that is known lets the first session speak; its looks and those of sessions share the error
    share = 0.5 if known.session else 1.0
    looks: list[tuple[int, _Look]] = []
    if known.session:
        for count in range(2, min(len(baseline[0].launches), len(candidate[0].launches)) + 1):
            first = [[arm[0].launches[:count]] for arm in (baseline, candidate)]
            levels = _levels(("pass", "fail"), limits.alpha * share, CI_SIDE * share, count)
            looks.append((1, _look(first[0], first[1], known, levels)))
    for j in range(2, complete + 1):
        arms = [_first(arm, j) for arm in (baseline, candidate)]
        levels = _levels(("session_pass", "session_fail"), limits.alpha * share, CI_SIDE * share, j)
        looks.append((j, _look(arms[0], arms[1], known, levels)))
    for units, look in looks:
        outcome = _crossed(look, limits)
        if outcome != "inconclusive":
            return _analysis(look, outcome, units, limits, 0)
    if not looks:
        return _undecidable(baseline, candidate, sign)
    units, last = looks[-1]
    alone = Limits(limits.margin, limits.indifference, limits.alpha * share)
    wanted = further_units(
        units, last.shift, last.error * np.sqrt(units), last.df, alone, ("session_pass", "session_fail"), growth=2.0
    )
    return _analysis(last, "inconclusive", units, limits, wanted)


@dataclass(frozen=True, slots=True)
class _Known:
    """The direction of better, and variances known from earlier campaigns."""

    sign: float
    launch: Prior | None
    session: Prior | None


def _first(arm: list[Session], count: int) -> list[Floats]:
    """The first sessions of an arm as they were when the look was made: the last one with its usual launches."""
    taken = [session.launches for session in arm[:count]]
    usual = int(np.ceil(np.median([len(launches) for launches in taken[:-1]])))
    return [*taken[:-1], taken[-1][:usual]]


def _levels(rules: tuple[Rule, Rule], alpha: float, side: float, look: int) -> tuple[float, float, float]:
    """One-sided levels of this look for pass, fail, and one side of the interval."""
    at = np.array([float(look)])
    spent = ((rules[0], alpha), (rules[1], FAIL_SHARE * alpha), (rules[0], side))
    to_pass, to_fail, aside = (float(nominal_levels(rule, error, at)[0]) for rule, error in spent)
    return to_pass, to_fail, aside


def _look(
    baseline: list[Floats], candidate: list[Floats], known: _Known, levels: tuple[float, float, float]
) -> _Look:
    """The estimate with these sessions."""
    used, plain, robust = session_levels(baseline, candidate, known.sign)
    j = len(baseline)
    means = [np.array([values.mean() for values in arm]) for arm in used]
    raw = [float(np.mean([values.mean() for values in arm])) for arm in plain]
    df = np.array(float(2 * j - 2))
    between = sum(float(((m - m.mean()) ** 2).sum()) for m in means)
    launches = [values for arm in used for values in arm]
    within, within_df = _within(launches, known.launch)
    # what launches alone contribute to the variance of a session mean
    inside = within * float(np.mean([1.0 / len(values) for values in launches]))
    prior = None
    if known.session:
        # Satterthwaite: how many degrees of freedom the sum of two estimated variances has
        total = known.session.variance + inside
        parts = known.session.variance**2 / known.session.df + inside**2 / max(within_df, 1.0)
        prior = Prior(total, total**2 / parts if parts > 0 else known.session.df)
    variance, df = with_prior(np.array(between / df if j > 1 else 0.0), df, prior)
    # a session mean cannot be steadier than the launches it is made of
    sd = float(np.sqrt(max(float(variance), inside if within_df >= 4 else 0.0, LAUNCH_FLOOR**2)))
    return _Look(
        shift=known.sign * float(means[1].mean() - means[0].mean()),
        plain=known.sign * (raw[1] - raw[0]),
        error=sd * float(np.sqrt(2.0 / j)),
        sd=sd,
        df=float(df),
        robust=robust,
        levels=levels,
    )


def _within(launches: list[Floats], prior: Prior | None) -> tuple[float, float]:
    """The variance of one launch inside its session, pooled over sessions, and its degrees of freedom."""
    df = sum(len(values) - 1 for values in launches)
    ss = sum(float(((values - values.mean()) ** 2).sum()) for values in launches)
    variance, total = with_prior(np.array(ss / df if df else 0.0), np.array(float(df)), prior)
    return max(float(variance), LAUNCH_FLOOR**2), float(total)


def _crossed(look: _Look, limits: Limits) -> Outcome:
    if look.df <= 0:
        return "inconclusive"
    to_pass, to_fail = (-special.stdtrit(look.df, level) * look.error for level in look.levels[:2])
    if look.shift - to_pass > limits.margin and look.plain > limits.margin:
        return "pass"
    if look.shift + to_fail < limits.indifference and look.plain < limits.indifference:
        return "fail"
    return "inconclusive"


def _analysis(look: _Look, outcome: Outcome, units: int, limits: Limits, wanted: int) -> Analysis:
    to_pass, to_fail, aside = (-special.stdtrit(look.df, level) * look.error for level in look.levels)
    return Analysis(
        outcome=outcome,
        unit="session",
        shift=look.shift,
        low=float(look.shift - aside),
        high=float(look.shift + aside),
        bound=float(look.shift - to_pass),
        detectable=float(limits.indifference - to_fail - special.stdtrit(look.df, POWER) * look.error),
        wanted=wanted,
        units=units,
        sd=look.sd,
        df=look.df,
        robust=look.robust,
    )


def _undecidable(baseline: list[Session], candidate: list[Session], sign: float) -> Analysis:
    """An estimate without an error: fewer than two complete sessions in an arm say nothing about sessions."""
    used, _, robust = session_levels([s.launches for s in baseline], [s.launches for s in candidate], sign)
    means = [float(np.mean([values.mean() for values in arm])) for arm in used]
    fewest = min(len(baseline), len(candidate))
    reason = (
        "one session per arm: the effect of a boot cannot be told from the effect of the drop"
        if fewest < 2
        else "the second session of an arm is not complete"
    )
    return Analysis(
        outcome="inconclusive",
        unit="session",
        shift=sign * (means[1] - means[0]),
        low=-np.inf,
        high=np.inf,
        bound=-np.inf,
        detectable=-np.inf,
        wanted=1,
        units=fewest,
        sd=np.nan,
        df=0.0,
        robust=robust,
        missing=reason,
    )
