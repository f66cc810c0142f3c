# SPDX-License-Identifier: Apache-2.0
"""`decide`: whether the candidate is no worse than the margin, from the launches measured so far."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storqual.base.formulas import Better
from storqual.statistics.comparison import ArmComparison, limits_for, nothing
from storqual.statistics.launches import pad
from storqual.statistics.noise import Prior
from storqual.statistics.pairs import analyse_pairs, pair_levels
from storqual.statistics.sessions import analyse_sessions, split_sessions

HISTORY_WEIGHT = 0.5
"""How much of its degrees of freedom a history keeps: noise changes between campaigns more than it varies within.

With all of them a bench that has become 1.5 times noisier passes 8 % of candidates at the margin, with half 6.6 %."""

Launches = Sequence[Sequence[float] | float]


@dataclass(frozen=True, slots=True)
class History:
    """Noise of this point in earlier campaigns, as standard deviations of log-ratios with degrees of freedom.

    `sd_pair` is that of one interleaved pair of launches of equal drops, `sd_session` that of a session's level
    about the mean of its arm. None, or no degrees of freedom, means not known.
    """

    sd_pair: float | None = None
    df_pair: float = 0.0
    sd_session: float | None = None
    df_session: float = 0.0

    def __post_init__(self) -> None:
        for name in ("sd_pair", "sd_session"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}, expected a finite number, 0 or more")
        for name in ("df_pair", "df_session"):
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"{name} is {value!r}, expected 0 or more")

    def pair(self) -> Prior | None:
        return _prior(self.sd_pair, self.df_pair, 1.0)

    def launch(self) -> Prior | None:
        """The variance of one launch: half of a pair's."""
        return _prior(self.sd_pair, self.df_pair, 0.5)

    def session(self) -> Prior | None:
        return _prior(self.sd_session, self.df_session, 1.0)


def decide(
    baseline: Launches,
    candidate: Launches,
    *,
    margin: float = 0.03,
    indifference: float = 0.01,
    alpha: float = 0.05,
    better: Better = "higher",
    baseline_sessions: Sequence[object] | None = None,
    candidate_sessions: Sequence[object] | None = None,
    history: History | None = None,
) -> ArmComparison:
    """Judge one point from all launches so far, in wall-clock order, each a list of per-second values (or one value).

    Passes when the candidate is shown to lose less than `margin`, fails when it is shown to lose more than
    `indifference`, at the last look, which has all launches. There may be a look after each complete pair (with
    session ids after each complete session in both arms), and a campaign may stop at any: each of the two errs at
    most `alpha` over all looks. Neither the shift nor its interval depends on the limits. A launch without its
    partner is ignored. Raises ValueError for a launch that is empty, holds NaN, infinity or a negative value, or
    has a mean of 0, for session ids that do not fit, and for limits that make no sense.
    """
    limits = limits_for(margin, indifference, alpha, better)
    arms = [_checked(arm, name) for arm, name in ((baseline, "baseline"), (candidate, "candidate"))]
    prior = history or History()
    if baseline_sessions is None and candidate_sessions is None:
        count = min(len(arms[0]), len(arms[1]))
        if count == 0:
            return nothing("pair", "no complete pair of launches", better)
        filled = pad(arms[0][:count] + arms[1][:count])[None]
        levels = pair_levels(filled[:, :count], filled[:, count:], limits.sign)
        return analyse_pairs([levels], [limits], priors=[prior.pair()])[0]
    for arm, ids, name in (
        (arms[0], baseline_sessions, "baseline_sessions"),
        (arms[1], candidate_sessions, "candidate_sessions"),
    ):
        if ids is None or len(ids) != len(arm):
            count_text = "none" if ids is None else str(len(ids))
            raise ValueError(f"{name}: found {count_text}, expected a session id for each of {len(arm)} launches")
    if not arms[0] or not arms[1]:
        return nothing("session", "no launch of one arm", better)
    filled = pad(arms[0] + arms[1])
    return analyse_sessions(
        split_sessions(filled[: len(arms[0])], baseline_sessions or ()),
        split_sessions(filled[len(arms[0]) :], candidate_sessions or ()),
        limits,
        launch_prior=prior.launch(),
        session_prior=prior.session(),
    )


def _checked(launches: Launches, name: str) -> list[list[float]]:
    """Launches as lists of numbers. Raises ValueError for one that says nothing."""
    checked = []
    for number, launch in enumerate(launches):
        values = list(launch) if isinstance(launch, Iterable) else [launch]
        where = f"{name}, launch {number}"
        if not values:
            raise ValueError(f"{where}: found no value")
        seconds = [float(value) for value in values]
        if not all(math.isfinite(value) for value in seconds):
            raise ValueError(f"{where}: found {next(v for v in seconds if not math.isfinite(v))}, expected numbers")
        if min(seconds) < 0:
            raise ValueError(f"{where}: found {min(seconds)}, expected no negative value")
        if sum(seconds) <= 0:
            raise ValueError(f"{where}: found a mean of {sum(seconds) / len(seconds)}, expected more than 0")
        checked.append(seconds)
    return checked


def _prior(sd: float | None, df: float, share: float) -> Prior | None:
    return None if sd is None or df <= 0 else Prior(sd * sd * share, float(df) * HISTORY_WEIGHT)
