# SPDX-License-Identifier: Apache-2.0
"""Throughput against drives, ports, adapters or queue depth: how far it is linear, where the knee is, what is added.

Two answers that do not depend on each other. The *linear range* asks each level whether it gives its share of what
the first gives, within a stated tolerance; no shape is assumed. The *knee* is where a straight line through the
origin meets a plateau; it is found by trying every split of the levels, and called a knee only when a straight line
and a plateau alone are both refuted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from storqual.base.figures import percent_range
from storqual.statistics.estimates import Estimate, LogLevels, log_levels
from storqual_core.kit.quantities import format_percent

LINEAR_TOLERANCE = 0.05
"""Linear is: at least 95 % of the share that the first level gives (the audit's rule for published claims)."""
_FLOOR = 1e-3
"""No bench is quieter than 0.1 %: without it, equal values in all launches would refute anything."""
_ALPHA = 0.05
_SLACK = 1e-9
"""What arithmetic loses, far below any measurement."""

Shape = Literal["straight", "knee", "gradual", "flat"]


@dataclass(frozen=True, slots=True)
class ScalingLevel:
    """One level. `efficiency` is its share of linear; `added` what each unit above the level before gives, of one."""

    at: float
    value: Estimate
    efficiency: Estimate
    added: Estimate | None


@dataclass(frozen=True)
class Scaling:
    """What a curve says. Up to `linear_to` it is shown (without repeated launches: measured) to be linear.

    `broken_at` is the first level shown not to be; between the two the launches do not decide. `knee` and `plateau`
    are there for the shapes knee and gradual; gradual means that some level misses the two straight parts by
    more than the tolerance.
    """

    levels: tuple[ScalingLevel, ...]
    tolerance: float
    linear_to: float
    broken_at: float | None
    shape: Shape
    knee: Estimate | None
    plateau: Estimate | None


def scaling(launches: Mapping[float, Sequence[float]], *, tolerance: float = LINEAR_TOLERANCE) -> Scaling:
    """Analyse `launches`: level (1, 2, 4 drives ...) -> the throughput of each launch there, in one unit.

    `tolerance` is a fraction; also a shape is only told apart from a simpler one that misses by more. Raises
    ValueError for fewer than two levels, a level or a launch that is not above zero, a tolerance outside 0 to 1.
    """
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance {tolerance!r}, expected a fraction between 0 and 1")
    data = log_levels(launches)
    if len(data.at) < 2 or data.at[0] <= 0:
        raise ValueError("scaling needs two levels above zero")
    levels = tuple(_level(data, index) for index in range(len(data.at)))
    linear_to, broken_at = _linear_range(levels, 1 - tolerance - _SLACK)
    shape, knee, plateau = _shape(data, tolerance)
    return Scaling(levels, tolerance, linear_to, broken_at, shape, knee, plateau)


def _level(data: LogLevels, index: int) -> ScalingLevel:
    noise = [1 / count for count in data.count]
    value = data.estimate(data.mean[index], noise[index]).exp()
    if index == 0:
        return ScalingLevel(data.at[0], value, Estimate(1.0, 1.0, 1.0), None)
    share = data.mean[index] - data.mean[0] - math.log(data.at[index] / data.at[0])
    efficiency = data.estimate(share, noise[index] + noise[0]).exp()
    return ScalingLevel(data.at[index], value, efficiency, _added(data, index, noise))


def _added(data: LogLevels, index: int, noise: Sequence[float]) -> Estimate:
    """Gain per unit from the level before, as a fraction of what one unit gives alone (first-order error)."""
    unit = math.exp(data.mean[0]) / data.at[0]
    here, before = math.exp(data.mean[index]) / unit, math.exp(data.mean[index - 1]) / unit
    step = data.at[index] - data.at[index - 1]
    gain = (here - before) / step
    if data.variance is None:
        return Estimate(gain, None, None)
    weights = {index: here / step, index - 1: -before / step}
    weights[0] = weights.get(0, 0.0) - gain
    variance = data.variance * sum(weight**2 * noise[level] for level, weight in weights.items())
    half = data.quantile() * math.sqrt(variance)
    return Estimate(gain, gain - half, gain + half)


def _linear_range(levels: Sequence[ScalingLevel], limit: float) -> tuple[float, float | None]:
    """The last level up to which all are linear, and the first that is not."""
    linear_to, open_still = levels[0].at, True
    for level in levels[1:]:
        holds = level.efficiency.at_least(limit)
        if holds is False:
            return linear_to, level.at
        open_still = open_still and holds is True
        if open_still:
            linear_to = level.at
    return linear_to, None


@dataclass(frozen=True)
class _Fit:
    """A line through the origin up to the split, a plateau from there on; logarithms."""

    rate: float | None
    top: float | None
    squares: float
    residuals: tuple[float, ...]
    on_line: int


def _shape(data: LogLevels, tolerance: float) -> tuple[Shape, Estimate | None, Estimate | None]:
    levels = len(data.at)
    fits = [_fit(data, on_line) for on_line in range(levels + 1)]
    bent = [fit for fit in fits[1:levels] if _in_place(data, fit)]
    best = min(bent, key=lambda fit: fit.squares, default=None)
    plain: tuple[tuple[_Fit, Shape], ...] = ((fits[levels], "straight"), (fits[0], "flat"))
    for fit, shape in plain:
        if not _refuted(data, fit, best, tolerance):
            return shape, None, None
    if best is None:
        return "gradual", None, None
    return ("knee" if _largest(best) <= tolerance else "gradual"), *_knee(data, best)


def _largest(fit: _Fit) -> float:
    return max(abs(math.expm1(residual)) for residual in fit.residuals)


def _fit(data: LogLevels, on_line: int) -> _Fit:
    """Least squares with the first `on_line` levels on the line and the others on the plateau."""
    weights, means = np.asarray(data.count, dtype=np.float64), np.asarray(data.mean)
    line = means - np.log(np.asarray(data.at))
    rate = float(np.average(line[:on_line], weights=weights[:on_line])) if on_line else None
    top = float(np.average(means[on_line:], weights=weights[on_line:])) if on_line < len(means) else None
    residuals = np.concatenate(
        [line[:on_line] - (0.0 if rate is None else rate), means[on_line:] - (0.0 if top is None else top)]
    )
    return _Fit(rate, top, float((weights * residuals**2).sum()), tuple(residuals.tolist()), on_line)


def _in_place(data: LogLevels, fit: _Fit) -> bool:
    """Whether line and plateau meet between the levels that they split."""
    if fit.rate is None or fit.top is None:
        return False
    knee = fit.top - fit.rate
    return math.log(data.at[fit.on_line - 1]) - _SLACK <= knee <= math.log(data.at[fit.on_line]) + _SLACK


def _refuted(data: LogLevels, plain: _Fit, bent: _Fit | None, tolerance: float) -> bool:
    """Whether a plain shape misses by more than the tolerance, and by more than noise.

    For noise an F test of what the knee explains: it has one parameter more and was searched for among the splits,
    so the level is shared among them. Without any knee that fits, of the plain shape's own lack of fit.
    """
    if _largest(plain) <= tolerance:
        return False
    if data.variance is None:
        return True
    variance = max(data.variance, _FLOOR**2)
    if bent is None:
        freedom = max(1, len(data.at) - 1)
        return float(special.fdtrc(freedom, data.df, plain.squares / freedom / variance)) < _ALPHA
    gain = max(plain.squares - bent.squares, 0.0)
    return float(special.fdtrc(1, data.df, gain / variance)) < _ALPHA / max(1, len(data.at) - 1)


def _knee(data: LogLevels, fit: _Fit) -> tuple[Estimate, Estimate]:
    assert fit.rate is not None  # noqa: S101 - only fits with both parts get here
    assert fit.top is not None  # noqa: S101
    of_rate, of_top = 1 / sum(data.count[: fit.on_line]), 1 / sum(data.count[fit.on_line :])
    knee = data.estimate(fit.top - fit.rate, of_rate + of_top).exp()
    return knee, data.estimate(fit.top, of_top).exp()


def scaling_sentences(curve: Scaling, unit: str, measure: str = "") -> list[str]:
    """What a reader may be told. `unit` is what is added (`ports`), `measure` the unit of the values (`MB/s`)."""
    sentences = [_linear(curve, unit)]
    if curve.broken_at is not None:
        level = next(level for level in curve.levels if level.at == curve.broken_at)
        sentences.append(
            f"At {level.at:g} {unit} there is {_percent(level.efficiency)} of linear{_added_in_words(level, unit)}."
        )
    if curve.knee is not None and curve.plateau is not None:
        word = "The knee is" if curve.shape == "knee" else "There is no sharp knee; a line and a plateau meet best"
        tail = f" {measure}" if measure else ""
        sentences.append(f"{word} at {_number(curve.knee)} {unit}, with a plateau of {_number(curve.plateau)}{tail}.")
    elif curve.shape == "flat":
        sentences.append(f"More {unit} make no difference.")
    return sentences


def _linear(result: Scaling, unit: str) -> str:
    share = f"at least {format_percent(1 - result.tolerance)} of linear"
    first, last = result.levels[0].at, result.levels[-1].at
    if result.linear_to == last:
        return f"Linear over the whole range, from {first:g} to {last:g} {unit} ({share} everywhere)."
    start = (
        f"Linear up to {result.linear_to:g} {unit} ({share})."
        if result.linear_to > first
        else f"Not shown to be linear beyond {first:g} {unit[:-1] if first == 1 and unit.endswith('s') else unit}."
    )
    undecided = [
        level.at
        for level in result.levels
        if level.at > result.linear_to and (result.broken_at is None or level.at < result.broken_at)
    ]
    if undecided:
        start += f" These launches do not decide it at {', '.join(f'{at:g}' for at in undecided)}."
    return start


def _added_in_words(level: ScalingLevel, unit: str) -> str:
    added = level.added
    if added is None or (added.high is not None and added.high >= 1):
        return ""
    return f"; each of the {unit} added last gives {_percent(added)} of what one gives alone"


def _percent(estimate: Estimate) -> str:
    value = f"{format_percent(estimate.value)}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({percent_range(estimate.low, estimate.high)})"


def _number(estimate: Estimate) -> str:
    value = f"{estimate.value:.4g}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({estimate.low:.4g} to {estimate.high:.4g})"


SCALED = ("adapters", "ports", "drives", "raid.members", "numjobs", "iodepth")
