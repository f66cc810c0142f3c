# SPDX-License-Identifier: Apache-2.0
"""The level of each launch: its mean, with dips bounded so that one stall does not decide a verdict in either way.

A dip (garbage collection, a retry) takes 10 to 30 % off one to three seconds. In launches of five seconds such dips
can double the variance of the means, so that a verdict needs twice the bench time. Seconds therefore count in full up
to `BOUND` robust standard deviations about the median of their arm, less beyond, and not at all from `GONE` on, and
the means are corrected for that (one Newton step of Hampel's location; merely bounding dips, Huber's, leaves pairs
with 2 to 12 % more variance). What was bounded is not lost: dips are counted by a metric of their own, and the plain
means are used instead

- where more than `MOST_BOUNDED` of an arm's seconds, beyond one whole launch, would be bounded: that is not a dip,
  that is a second mode;
- where the candidate loses more by what is bounded than the baseline, in more launches than chance explains;
- where there are too few seconds to know what a usual second is.

A pair whose log-ratio differs from the other pairs by more than their noise explains (an externally studentised
residual, Bonferroni over the pairs) is left out, one at most: two are not odd, they are what the bench does. What is
left out must not turn a verdict, so a pass and a fail still need the plain mean of all launches on their side.

One odd launch among the others of a point, a stall that took it as a whole, is left out with its partner.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

BOUND, FALLING, GONE = 2.5, 3.0, 4.5
MOST_BOUNDED = 0.10
FEWEST_SECONDS = 20
LARGEST_SCALE = 0.3
ASYMMETRY_LEVEL = 0.05
LONGEST_SERIES = 60
_MAD = 1.482602218505602


@dataclass(frozen=True, slots=True)
class Levels:
    """Logarithms of one arm's launch levels; axes (point, launch).

    `used` are robust where `bounded` (axis point) says so, plain elsewhere.
    """

    used: Floats
    plain: Floats
    bounded: Flags


def pad(launches: list[list[float]]) -> Floats:
    """Launches as a rectangle (launch, second), filled up with NaN; long series averaged to a minute's worth."""
    longest = max(len(launch) for launch in launches)
    group = -(-longest // LONGEST_SERIES)
    rows = [_grouped(launch, group) for launch in launches] if group > 1 else launches
    lengths = np.array([len(row) for row in rows])
    filled = np.full((len(rows), int(lengths.max())), np.nan)
    filled[np.arange(filled.shape[1]) < lengths[:, None]] = [value for row in rows for value in row]
    return filled


def stack_sessions(sessions: list[Floats]) -> Floats:
    """Sessions of different lengths as one array (session, launch, second), filled up with NaN."""
    longest = max(len(session) for session in sessions)
    widest = max(session.shape[1] for session in sessions)
    filled = np.full((len(sessions), longest, widest), np.nan)
    for row, session in zip(filled, sessions, strict=True):
        row[: session.shape[0], : session.shape[1]] = session
    return filled


def _grouped(launch: list[float], group: int) -> list[float]:
    """Means of `group` successive seconds; the last group may be shorter and is weighted as a whole one."""
    values = np.asarray(launch)
    return [float(values[i : i + group].mean()) for i in range(0, len(values), group)]


def launch_levels(baseline: Floats, candidate: Floats, sign: float = 1.0) -> tuple[Levels, Levels]:
    """The levels of both arms; arguments have axes (point, launch, second). `sign` is +1 where higher is better."""
    points, count, seconds = baseline.shape
    with np.errstate(divide="ignore"):
        plain = [np.log(np.nanmean(arm, axis=2)) for arm in (baseline, candidate)]
    if seconds == 1 or 2 * count * seconds < FEWEST_SECONDS:
        none = np.zeros(points, dtype=bool)
        return Levels(plain[0], plain[0], none), Levels(plain[1], plain[1], none)
    robust, bounded = _robust(baseline, candidate, sign)
    used = [np.where(bounded[:, None], r, p) for r, p in zip(robust, plain, strict=True)]
    return Levels(used[0], plain[0], bounded), Levels(used[1], plain[1], bounded)


def _robust(baseline: Floats, candidate: Floats, sign: float) -> tuple[list[Floats], Flags]:
    """Robust levels of both arms, and of which points they may be used."""
    points, _, arm_seconds = baseline.shape
    relative = []
    centres = []
    for arm in (baseline, candidate):
        centre = _median(arm.reshape(points, -1))
        # an arm that stands still for most of its seconds has no usual second: its spread is refused below
        centre = np.where(centre > 0, centre, 1e-9)
        centres.append(centre)
        relative.append(arm / centre[:, None, None] - 1.0)
    deviations = np.concatenate([np.abs(r).reshape(points, -1) for r in relative], axis=1)
    spread = _MAD * _median(deviations)
    enough = np.sum(~np.isnan(deviations), axis=1) >= FEWEST_SECONDS
    usable = enough & (spread > 0) & (spread < LARGEST_SCALE)
    scale = np.where(usable, spread, 1.0)
    levels: list[Floats] = []
    lost: list[Floats] = []
    for r, centre in zip(relative, centres, strict=True):
        step, outside, total, removed = _hampel(r, scale)
        usable &= outside <= arm_seconds + MOST_BOUNDED * total
        with np.errstate(invalid="ignore", divide="ignore"):
            levels.append(np.log(centre[:, None] * np.maximum(1.0 + step, 1e-9)))
        lost.append(sign * removed)
    usable &= ~_lopsided(lost[0], lost[1])
    return levels, usable


def _hampel(relative: Floats, scale: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """One Newton step of each launch from the centre that its seconds are `relative` to; the point is the first axis.

    Also how many seconds lie beyond the bound and how many there are, by point, and what the bound takes away from
    each launch, in standard deviations of a second (negative: work was lost).
    """
    scale = scale.reshape(-1, *[1] * (relative.ndim - 1))
    valid = ~np.isnan(relative)
    u = np.where(valid, relative / scale, 0.0)
    size = np.abs(u)
    counted = np.sign(u) * np.minimum(
        np.minimum(size, BOUND), BOUND * np.maximum(GONE - size, 0.0) / (GONE - FALLING)
    )
    later = tuple(range(1, relative.ndim))
    total = np.maximum(valid.sum(axis=later), 1)
    outside = np.sum(size > BOUND, axis=later)
    falling = np.sum((size > FALLING) & (size < GONE), axis=later)
    slope = 1.0 - (outside + falling * BOUND / (GONE - FALLING)) / total
    seconds = np.maximum(valid.sum(axis=-1), 1)
    mean = counted.sum(axis=-1) / seconds / np.maximum(slope, 0.5).reshape(-1, *[1] * (relative.ndim - 2))
    step = np.where(valid.any(axis=-1), mean * scale[..., 0], np.nan)
    return step, outside, total, (u - np.clip(u, -BOUND, BOUND)).sum(axis=-1)


def _lopsided(baseline: Floats, candidate: Floats) -> Flags:
    """Whether the candidate loses more by what is bounded, in more launches than a fair coin explains.

    The point is the first axis, its launches the last.
    """
    candidate_dips = (candidate < -1.0).sum(axis=-1)
    baseline_dips = (baseline < -1.0).sum(axis=-1)
    # P(X >= mine) of a fair coin thrown mine + theirs times
    chance = special.bdtrc(candidate_dips - 1.0, candidate_dips + baseline_dips, 0.5)
    more: Flags = (candidate_dips > baseline_dips) & (chance < ASYMMETRY_LEVEL)
    return more


def _median(values: Floats) -> Floats:
    """Medians along the last axis without NaN; much faster than nanmedian on many short rows."""
    ordered = np.sort(values, axis=-1)
    number = np.sum(~np.isnan(ordered), axis=-1)
    low = np.maximum((number - 1) // 2, 0)[..., None]
    high = np.maximum(number // 2, 0)[..., None]
    high = np.minimum(high, ordered.shape[-1] - 1)
    pair = np.take_along_axis(ordered, low, -1) + np.take_along_axis(ordered, high, -1)
    median: Floats = pair[..., 0] / 2
    return median


@dataclass(frozen=True, slots=True)
class SessionLevels:
    """Logarithms of launch levels of both arms; axes (point, session, launch), NaN where there is no launch."""

    used: tuple[Floats, Floats]
    plain: tuple[Floats, Floats]
    robust: Flags


def session_levels(baseline: Floats, candidate: Floats, sign: float = 1.0) -> SessionLevels:
    """Launch levels where launches lie in sessions; arguments have axes (point, session, launch, second).

    Seconds are bounded about the median of their session. NaN stands where there is no second.
    """
    arms = (baseline, candidate)
    counts = [np.sum(~np.isnan(arm), axis=3) for arm in arms]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [np.nansum(arm, axis=3) / number for arm, number in zip(arms, counts, strict=True)]
        plain = (np.log(means[0]), np.log(means[1]))
    points = len(baseline)
    total = sum(number.sum(axis=(1, 2)) for number in counts)
    if baseline.shape[3] == 1 or not np.any(total >= FEWEST_SECONDS):
        return SessionLevels(plain, plain, np.zeros(points, dtype=bool))
    centres = [_median(arm.reshape(points, arm.shape[1], -1)) for arm in arms]
    usable = (total >= FEWEST_SECONDS) & (centres[0].min(axis=1) > 0) & (centres[1].min(axis=1) > 0)
    centres = [np.maximum(centre, 1e-9)[:, :, None] for centre in centres]
    relative = [arm / centre[..., None] - 1.0 for arm, centre in zip(arms, centres, strict=True)]
    spread = _MAD * _median(np.abs(np.concatenate([r.reshape(points, -1) for r in relative], axis=1)))
    usable &= (spread > 0) & (spread < LARGEST_SCALE)
    scale = np.where(usable, spread, 1.0)
    levels: list[Floats] = []
    lost: list[Floats] = []
    for r, centre in zip(relative, centres, strict=True):
        step, outside, whole, removed = _hampel(r, scale)
        usable &= outside <= r.shape[3] + MOST_BOUNDED * whole
        with np.errstate(invalid="ignore", divide="ignore"):
            levels.append(np.log(centre * np.maximum(1.0 + step, 1e-9)))
        lost.append(sign * removed.reshape(points, -1))
    usable &= ~_lopsided(lost[0], lost[1])
    chosen = usable[:, None, None]
    used = (np.where(chosen, levels[0], plain[0]), np.where(chosen, levels[1], plain[1]))
    return SessionLevels(used, plain, usable)


FEWEST_PAIRS = 4
"""Pairs from which one can be called odd: three others must agree."""
_LEVEL = 0.01
"""How often a point without any odd launch has one found."""


@dataclass(frozen=True, slots=True)
class Odd:
    """The launch that was left out with its partner: its arm and its place among the launches of its arm, from 0."""

    candidate: bool
    number: int


def odd_pairs(ratios: Floats, prior_variance: Floats, prior_df: Floats, floor: float) -> NDArray[np.intp]:
    """The one odd pair of each point, -1 where there is none or more than one; `ratios` has axes (point, pair).

    `prior_variance` is what history and other points know of the variance of a pair's log-ratio, with `prior_df`.
    """
    points, count = ratios.shape
    if count < FEWEST_PAIRS:
        return np.full(points, -1)
    farthest, odd = _farthest(ratios, prior_variance, prior_df, floor)
    for point in np.flatnonzero(odd).tolist():
        rest = np.delete(ratios[point], farthest[point])[None]
        odd[point] = not _farthest(rest, prior_variance[point : point + 1], prior_df[point : point + 1], floor)[1][0]
    return np.where(odd, farthest, -1)


def _farthest(
    ratios: Floats, prior_variance: Floats, prior_df: Floats, floor: float
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The pair that is farthest from the others of its point, and whether their noise does not explain that."""
    count = ratios.shape[1]
    rest_mean = (ratios.sum(axis=1, keepdims=True) - ratios) / (count - 1)
    squares = ((ratios - ratios.mean(axis=1, keepdims=True)) ** 2).sum(axis=1, keepdims=True)
    # what a sum of squares is without one of its terms
    rest_squares = np.maximum(squares - (ratios - rest_mean) ** 2 * (count - 1) / count, 0.0)
    df = count - 2 + prior_df[:, None]
    variance = np.maximum((rest_squares + prior_df[:, None] * prior_variance[:, None]) / df, floor)
    t = np.abs(ratios - rest_mean) / np.sqrt(variance * count / (count - 1))
    chance = 2.0 * count * special.stdtr(df[:, 0], -t.max(axis=1))
    return t.argmax(axis=1), chance < _LEVEL


def odd_pair(before: Floats, after: Floats, pair: int) -> Odd:
    """Which launch of the odd pair it was: the one farther from the middle of its arm (logarithms of levels)."""
    far = [abs(float(arm[pair] - np.median(np.delete(arm, pair)))) for arm in (before, after)]
    return Odd(far[1] >= far[0], pair)
