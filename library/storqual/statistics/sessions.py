# SPDX-License-Identifier: Apache-2.0
"""The test where changing arms needs a boot: the session is the unit, launches are nested in it.

A boot moves the level of everything that is measured in it, and no number of launches inside shows by how much. So a
session counts as one value, its mean, launches of the two arms are not paired, and the noise comes from sessions of
the same arm. After each complete session in both arms there is a look. A session is complete when another one began
after it, or when it has as many launches as its predecessors (their median): both can be told without knowing the
future. The last look is the one that counts: the error is spent over all of them.

What two sessions per arm decide: with two degrees of freedom a pass needs the shift to lie 6.1 standard deviations
of a session mean inside the margin (3: 2.8, 4: 2.1, 6: 1.5). A margin of 8 % is decided by 2 + 2 sessions on a bench
whose sessions repeat within 0.6 %, by 3 + 3 within 1.2 %; one of 3 % by 2 + 2 within 0.25 %, by 6 + 6 within 1 %.
Where the number of sessions was fixed before the campaign, there is one look at the end and 2 + 2 need 2.9 of them.

Many points that are measured in the same sessions share what they know of noise: one look at the full level where the
number of sessions was fixed before the campaign, else the last of all looks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from storqual.statistics.comparison import (
    ArmComparison,
    Limits,
    Looks,
    Spent,
    Unit,
    last_look,
    loss_probability,
    nothing,
    spend,
)
from storqual.statistics.launches import SessionLevels, session_levels, stack_sessions
from storqual.statistics.noise import LAUNCH_FLOOR, Prior, session_mean_noise, with_prior

Floats = NDArray[np.float64]

DF_PER_SESSION = 2.0
ONE_SESSION = "one session per arm: the effect of a boot cannot be told from the effect of the drop"
FEWEST_WITHIN = 4
"""Degrees of freedom from which the spread of launches inside sessions is a lower limit for that of session means."""


@dataclass(frozen=True, slots=True)
class Session:
    """The launches of one session in order (axes launch, second); `open`: it is the last and not yet complete."""

    launches: Floats
    open: bool


@dataclass(frozen=True, slots=True)
class _Look:
    """An estimate: `units` sessions per arm, of whose only one `inside` launches were used (0: all)."""

    units: int
    inside: int
    shift: float
    plain: float
    error: float
    sd: float
    df: float
    robust: bool


@dataclass(frozen=True, slots=True)
class _Priors:
    """The direction of better, and variances known from elsewhere."""

    sign: float
    launch: Prior | None
    session: Prior | None


def split_sessions(launches: Floats, ids: Sequence[object]) -> list[Session]:
    order: dict[object, list[int]] = {}
    for index, name in enumerate(ids):
        order.setdefault(name, []).append(index)
    groups = list(order.values())
    last = len(groups) - 1
    sessions = []
    for number, indices in enumerate(groups):
        earlier = [len(group) for group in groups[:number]]
        usual = float(np.median(earlier)) if earlier else np.inf
        sessions.append(Session(launches[indices], number == last and len(indices) < usual))
    return sessions


def analyse_sessions(
    baseline: list[Session],
    candidate: list[Session],
    limits: Limits,
    *,
    launch_prior: Prior | None = None,
    session_prior: Prior | None = None,
) -> ArmComparison:
    """Test one point whose arms were measured in sessions of their own.

    `session_prior` is the variance of a session's level from earlier campaigns, `launch_prior` that of one launch.
    """
    priors = _Priors(limits.sign, launch_prior, session_prior if session_prior and session_prior.df > 0 else None)
    look = _last_look(baseline, candidate, priors)
    if look is None:
        return _undecidable(baseline, candidate, limits)
    # a session effect that is known lets the first session speak; its looks and those of sessions share the error
    share = 0.5 if priors.session else 1.0
    unit: Unit = "pair" if look.inside else "session"
    at = float(look.inside or look.units)
    level = special.stdtr(look.df, (look.shift - limits.indifference) / look.error) if look.df > 0 else 1.0
    loss_p = min(1.0, loss_probability(unit, "every", float(level), at) / share)
    return _comparison(look, spend(unit, "every", limits.alpha, np.array([at]), share), limits, loss_p)


def _last_look(baseline: list[Session], candidate: list[Session], priors: _Priors) -> _Look | None:
    """The look that all launches so far allow: after the last complete session, else inside the first."""
    complete = min(sum(not s.open for s in arm) for arm in (baseline, candidate))
    if complete >= 2:
        arms = [_first(arm, complete) for arm in (baseline, candidate)]
        return _look(arms[0], arms[1], priors, 0)
    inside = min(len(baseline[0].launches), len(candidate[0].launches))
    if priors.session is None or inside < 2:
        return None
    first = [[arm[0].launches[:inside]] for arm in (baseline, candidate)]
    return _look(first[0], first[1], priors, inside)


def _first(arm: list[Session], count: int) -> list[Floats]:
    """The first sessions of an arm as they were when the look was made: the last one with its usual launches."""
    launches = [session.launches for session in arm[:count]]
    usual = int(np.ceil(np.median([len(session) for session in launches[:-1]])))
    return [*launches[:-1], launches[-1][:usual]]


def _look(baseline: list[Floats], candidate: list[Floats], priors: _Priors, inside: int) -> _Look:
    levels = session_levels(stack_sessions(baseline)[None], stack_sessions(candidate)[None], priors.sign)
    used, plain = ([_sessions(arm[0]) for arm in both] for both in (levels.used, levels.plain))
    means = [np.array([values.mean() for values in arm]) for arm in used]
    raw = [float(np.mean([values.mean() for values in arm])) for arm in plain]
    df = np.array(float(sum(len(m) - 1 for m in means)))
    between = sum(float(((m - m.mean()) ** 2).sum()) for m in means)
    launches = [values for arm in used for values in arm]
    within, within_df = _within(launches, priors.launch)
    # what launches alone contribute to the variance of a session mean
    alone = within * float(np.mean([1.0 / len(values) for values in launches]))
    variance = np.array(between / df if df > 0 else 0.0)
    if priors.session is not None:
        # Satterthwaite: how many degrees of freedom the sum of two estimated variances has
        total = priors.session.variance + alone
        parts = priors.session.variance**2 / priors.session.df + alone**2 / max(within_df, 1.0)
        prior = Prior(total, total**2 / parts if parts > 0 else priors.session.df)
        variance, df = with_prior(variance, df, prior)
    # a session mean cannot be steadier than the launches it is made of
    lowest = max(alone if within_df >= FEWEST_WITHIN else 0.0, LAUNCH_FLOOR**2)
    sd = float(np.sqrt(max(float(variance), lowest)))
    return _Look(
        units=min(len(baseline), len(candidate)),
        inside=inside,
        shift=priors.sign * float(means[1].mean() - means[0].mean()),
        plain=priors.sign * (raw[1] - raw[0]),
        error=sd * float(np.sqrt(1.0 / len(means[0]) + 1.0 / len(means[1]))),
        sd=sd,
        df=float(df),
        robust=bool(levels.robust[0]),
    )


def _sessions(levels: Floats) -> list[Floats]:
    return [session[~np.isnan(session)] for session in levels]


def _within(launches: list[Floats], prior: Prior | None) -> tuple[float, float]:
    """The variance of one launch inside its session, pooled over sessions, and its degrees of freedom."""
    df = sum(len(values) - 1 for values in launches)
    ss = sum(float(((values - values.mean()) ** 2).sum()) for values in launches)
    variance, total = with_prior(np.array(ss / df if df else 0.0), np.array(float(df)), prior)
    return max(float(variance), LAUNCH_FLOOR**2), float(total)


def _reach(look: _Look, spent: Spent) -> tuple[float, float, float]:
    """How far the bounds of the pass rule, the fail rule and the interval lie from the estimate."""
    to_pass, to_fail, aside = (float(q[0]) * look.error for q in spent.quantiles(np.array([look.df])))
    return to_pass, to_fail, aside


def _comparison(look: _Look, spent: Spent, limits: Limits, loss_p: float) -> ArmComparison:
    to_pass, to_fail, aside = _reach(look, spent)
    passed = look.shift - to_pass > limits.margin and look.plain > limits.margin
    failed = look.shift + to_fail < limits.indifference and look.plain < limits.indifference
    return last_look(
        "session",
        limits,
        shift=look.shift,
        sd=look.sd,
        df=look.df,
        error=look.error,
        reach=(to_pass, to_fail, aside),
        crossed=(passed, failed),
        units=look.units,
        growth=DF_PER_SESSION,
        loss_p=loss_p,
        robust=look.robust,
    )


def _undecidable(baseline: list[Session], candidate: list[Session], limits: Limits) -> ArmComparison:
    """An estimate without an error: fewer than two complete sessions in an arm say nothing about sessions."""
    means = [
        float(np.mean([np.log(np.nanmean(session.launches, axis=1)).mean() for session in arm]))
        for arm in (baseline, candidate)
    ]
    fewest = min(len(baseline), len(candidate))
    reason = ONE_SESSION if fewest < 2 else "the second session of an arm is not complete"
    return nothing("session", reason, limits.better, limits.sign * (means[1] - means[0]), fewest, further_units=1)


def analyse_fixed_sessions(
    baseline: Floats, candidate: Floats, limits: Sequence[Limits], *, looks: Looks = "last"
) -> list[ArmComparison]:
    """Test points of one bench and metric that were measured in the same sessions.

    Axes (point, session, launch, second), NaN where there is none.
    """
    better, sign = limits[0].better, limits[0].sign
    fewest = min(baseline.shape[1], candidate.shape[1])
    levels = session_levels(baseline, candidate, sign)
    before, after = (np.nanmean(arm, axis=2) for arm in levels.used)
    if fewest < 2:
        shifts = sign * (after.mean(axis=1) - before.mean(axis=1))
        return [nothing("session", ONE_SESSION, better, float(shift), fewest, further_units=1) for shift in shifts]
    alone, alone_df = _alone(levels.used)
    variance, df = _noise(before, after)
    # a session mean cannot be steadier than the launches it is made of
    variance = np.maximum(variance, np.where(alone_df >= FEWEST_WITHIN, alone, 0.0))
    return _decide(before, after, np.maximum(variance, LAUNCH_FLOOR**2), df, levels, limits, looks)


def _alone(levels: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """What the spread of launches inside sessions contributes to the variance of a session mean, and its df."""
    ss, df, inverse, sessions = 0.0, 0.0, 0.0, 0
    for arm in levels:
        number = np.sum(~np.isnan(arm), axis=2)
        ss = ss + np.nansum((arm - np.nanmean(arm, axis=2, keepdims=True)) ** 2, axis=(1, 2))
        df = df + (number - 1).sum(axis=1)
        inverse = inverse + (1.0 / number).sum(axis=1)
        sessions += arm.shape[1]
    freedom = np.asarray(df, dtype=np.float64)
    return np.asarray(ss) / np.maximum(freedom, 1.0) * np.asarray(inverse) / sessions, freedom


def _decide(
    before: Floats,
    after: Floats,
    variance: Floats,
    df: Floats,
    levels: SessionLevels,
    limits: Sequence[Limits],
    looks: Looks,
) -> list[ArmComparison]:
    """The last look at session means, axes (point, session), with what is known of their noise."""
    sign = limits[0].sign
    shift = sign * (after.mean(axis=1) - before.mean(axis=1))
    plain = sign * np.subtract(*(np.nanmean(np.nanmean(arm, axis=2), axis=1) for arm in levels.plain[::-1]))
    sd = np.sqrt(variance)
    error = sd * np.sqrt(1.0 / before.shape[1] + 1.0 / after.shape[1])
    margin, indifference, alpha = (
        np.array([getattr(limit, name) for limit in limits]) for name in ("margin", "indifference", "alpha")
    )
    units = min(before.shape[1], after.shape[1])
    at = np.array([float(units)])
    by_alpha = {level: spend("session", looks, level, at) for level in set(alpha.tolist())}
    spent = [by_alpha[level] for level in alpha.tolist()]
    to_pass, to_fail, aside = (
        -special.stdtrit(df, np.array([getattr(levels_spent, name)[0] for levels_spent in spent]))
        for name in ("to_pass", "to_fail", "aside")
    )
    bound = shift - to_pass * error
    passed = (bound > margin) & (plain > margin)
    failed = (shift + to_fail * error < indifference) & (plain < indifference)
    level = special.stdtr(df, (shift - indifference) / error)
    return [
        last_look(
            "session",
            limit,
            shift=float(shift[i]),
            sd=float(sd[i]),
            df=float(df[i]),
            error=float(error[i]),
            reach=(float(to_pass[i] * error[i]), float(to_fail[i] * error[i]), float(aside[i] * error[i])),
            crossed=(bool(passed[i]), bool(failed[i])),
            units=units,
            growth=DF_PER_SESSION,
            loss_p=loss_probability("session", looks, float(level[i]), float(units)),
            robust=bool(levels.robust[i]),
        )
        for i, limit in enumerate(limits)
    ]


def _noise(before: Floats, after: Floats) -> tuple[Floats, Floats]:
    """Variance of a session mean and its degrees of freedom, of each point."""
    shared = session_mean_noise(before, after)
    if shared is not None:
        return np.array([prior.variance for prior in shared]), np.array([prior.df for prior in shared])
    freedom = before.shape[1] + after.shape[1] - 2
    ss = ((before - before.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    ss = ss + ((after - after.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return ss / freedom, np.full(len(ss), float(freedom))
