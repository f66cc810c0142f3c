# SPDX-License-Identifier: Apache-2.0
"""The level of each launch: its mean, with dips bounded so that one stall does not decide a verdict in either way.

A dip (garbage collection, a retry) takes 10 to 30 % off one to three seconds. In launches of five seconds such dips
can double the variance of the means, so that a verdict needs twice the bench time. Seconds are therefore bounded at
`BOUND` robust standard deviations about the median of their arm, and the means corrected for that (one Newton step
of Huber's location). What was bounded is not lost: dips are counted by a metric of their own, and the plain means
are used instead

- where more than `MOST_BOUNDED` of an arm's seconds, beyond one whole launch, would be bounded: that is not a dip,
  that is a second mode;
- where the candidate loses more by what is bounded than the baseline, in more launches than chance explains;
- where there are too few seconds to know what a usual second is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

BOUND = 2.5
MOST_BOUNDED = 0.10
FEWEST_SECONDS = 20
LARGEST_SCALE = 0.3
ASYMMETRY_LEVEL = 0.05
LONGEST_SERIES = 60
_MAD = 1.482602218505602


@dataclass(frozen=True, slots=True)
class Levels:
    """Logarithms of one arm's launch levels at each look; axes (point, look, launch), NaN beyond a look's launches.

    `used` are robust where `bounded` says so, plain elsewhere.
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
    for place, session in zip(filled, sessions, strict=True):
        place[: session.shape[0], : session.shape[1]] = session
    return filled


def _grouped(launch: list[float], group: int) -> list[float]:
    """Means of `group` successive seconds; the last group may be shorter and is weighted as a whole one."""
    values = np.asarray(launch)
    return [float(values[i : i + group].mean()) for i in range(0, len(values), group)]


def launch_levels(
    baseline: Floats, candidate: Floats, at: tuple[int, ...], sign: float = 1.0
) -> tuple[Levels, Levels]:
    """The levels of both arms after `at` pairs; arguments have axes (point, launch, second).

    `sign` is +1 where higher is better. A look uses its own launches only, so that a later launch never changes an
    earlier look.
    """
    plain = [np.log(np.nanmean(arm, axis=2)) for arm in (baseline, candidate)]
    count = baseline.shape[1]
    shown = np.arange(count)[None, :] < np.array(at)[:, None]
    wide = [np.where(shown, level[:, None, :], np.nan) for level in plain]
    if baseline.shape[2] == 1 or baseline.shape[1] * baseline.shape[2] * 2 < FEWEST_SECONDS:
        nothing = np.zeros((baseline.shape[0], len(at)), dtype=bool)
        return Levels(wide[0], wide[0], nothing), Levels(wide[1], wide[1], nothing)
    robust, bounded = _robust(baseline, candidate, shown, sign)
    used = [np.where(bounded[:, :, None], r, w) for r, w in zip(robust, wide, strict=True)]
    return Levels(used[0], wide[0], bounded), Levels(used[1], wide[1], bounded)


def _robust(baseline: Floats, candidate: Floats, shown: Flags, sign: float) -> tuple[list[Floats], Flags]:
    """Huber levels of both arms at each look, and at which looks they may be used."""
    relative = []
    centres = []
    for arm in (baseline, candidate):
        seen = np.where(shown[None, :, :, None], arm[:, None, :, :], np.nan)
        centre = _median(seen.reshape(*seen.shape[:2], -1))
        # an arm that stands still for most of its seconds has no usual second: its spread is refused below
        centre = np.where(centre > 0, centre, 1e-9)
        centres.append(centre)
        relative.append(seen / centre[:, :, None, None] - 1.0)
    deviations = np.concatenate([np.abs(r).reshape(*r.shape[:2], -1) for r in relative], axis=2)
    spread = _MAD * _median(deviations)
    enough = np.sum(~np.isnan(deviations), axis=2) >= FEWEST_SECONDS
    usable = enough & (spread > 0) & (spread < LARGEST_SCALE)
    limit = BOUND * np.where(usable, spread, 1.0)[:, :, None, None]
    arm_seconds = baseline.shape[2]
    levels: list[Floats] = []
    lost: list[Floats] = []
    for r, centre in zip(relative, centres, strict=True):
        clipped = np.clip(r, -limit, limit)
        outside = np.abs(r) > limit
        valid = ~np.isnan(r)
        seconds = np.maximum(valid.sum(axis=3), 1)
        number, total = outside.sum(axis=(2, 3)), np.maximum(valid.sum(axis=(2, 3)), 1)
        share = number / total
        usable &= number <= arm_seconds + MOST_BOUNDED * total
        mean = np.where(valid, clipped, 0.0).sum(axis=3) / seconds
        step = mean / (1.0 - np.minimum(share, 0.5))[:, :, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            level = np.log(centre[:, :, None] * np.maximum(1.0 + step, 1e-9))
        levels.append(np.where(valid.any(axis=3), level, np.nan))
        # what the bound took away from each launch, in standard deviations of a second; negative: work was lost
        taken = np.where(valid, r - clipped, 0.0).sum(axis=3)
        lost.append(sign * taken / (limit[:, :, :, 0] / BOUND))
    usable &= ~_lopsided(lost[0], lost[1])
    return levels, usable


def _lopsided(baseline: Floats, candidate: Floats) -> Flags:
    """Whether the candidate loses more by what is bounded, in more launches than a fair coin explains."""
    mine = (candidate < -1.0).sum(axis=2)
    theirs = (baseline < -1.0).sum(axis=2)
    # P(X >= mine) of a fair coin thrown mine + theirs times
    chance = special.bdtrc(mine - 1.0, mine + theirs, 0.5)
    more: Flags = (mine > theirs) & (chance < ASYMMETRY_LEVEL)
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
    limit = BOUND * np.where(usable, spread, 1.0)[:, None, None, None]
    levels: list[Floats] = []
    lost: list[Floats] = []
    for r, centre, number in zip(relative, centres, counts, strict=True):
        clipped = np.clip(r, -limit, limit)
        outside, whole = np.sum(np.abs(r) > limit, axis=(1, 2, 3)), number.sum(axis=(1, 2))
        share = outside / whole
        usable &= outside <= r.shape[3] + MOST_BOUNDED * whole
        with np.errstate(invalid="ignore", divide="ignore"):
            step = np.nansum(clipped, axis=3) / number / (1.0 - np.minimum(share, 0.5))[:, None, None]
            levels.append(np.log(centre * np.maximum(1.0 + step, 1e-9)))
        taken = np.nansum(r - clipped, axis=3) * BOUND / limit[..., 0]
        lost.append(sign * taken.reshape(points, -1))
    usable &= ~_lopsided(lost[0][:, None], lost[1][:, None])[:, 0]
    chosen = usable[:, None, None]
    used = (np.where(chosen, levels[0], plain[0]), np.where(chosen, levels[1], plain[1]))
    return SessionLevels(used, plain, usable)
