# SPDX-License-Identifier: Apache-2.0
"""A scaling analysis in sentences, each no stronger than its interval allows."""

from __future__ import annotations

from storqual.analysis.estimates import Estimate
from storqual.analysis.scaling import Level, Scaling

__all__ = ["scaling_sentences"]


def scaling_sentences(found: Scaling, unit: str, measure: str = "") -> list[str]:
    """What a reader may be told. `unit` is what is added (`ports`), `measure` the unit of the values (`MB/s`)."""
    said = [_linear(found, unit)]
    if found.broken_at is not None:
        level = next(level for level in found.levels if level.at == found.broken_at)
        said.append(f"At {level.at:g} {unit} there is {_percent(level.efficiency)} of linear{_added(level, unit)}.")
    if found.knee is not None and found.plateau is not None:
        word = "The knee is" if found.shape == "knee" else "There is no sharp knee; a line and a plateau meet best"
        tail = f" {measure}" if measure else ""
        said.append(f"{word} at {_number(found.knee)} {unit}, with a plateau of {_number(found.plateau)}{tail}.")
    elif found.shape == "flat":
        said.append(f"More {unit} make no difference.")
    return said


def _linear(found: Scaling, unit: str) -> str:
    share = f"at least {100 * (1 - found.tolerance):g} % of linear"
    first, last = found.levels[0].at, found.levels[-1].at
    if found.linear_to == last:
        return f"Linear over the whole range, from {first:g} to {last:g} {unit} ({share} everywhere)."
    start = (
        f"Linear up to {found.linear_to:g} {unit} ({share})."
        if found.linear_to > first
        else f"Not shown to be linear beyond {first:g} {unit[:-1] if first == 1 and unit.endswith('s') else unit}."
    )
    undecided = [
        level.at
        for level in found.levels
        if level.at > found.linear_to and (found.broken_at is None or level.at < found.broken_at)
    ]
    if undecided:
        start += f" These launches do not decide it at {', '.join(f'{at:g}' for at in undecided)}."
    return start


def _added(level: Level, unit: str) -> str:
    added = level.added
    if added is None or (added.high is not None and added.high >= 1):
        return ""
    return f"; each of the {unit} added last gives {_percent(added)} of what one gives alone"


def _percent(estimate: Estimate) -> str:
    value = f"{100 * estimate.value:.1f} %"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f} %)"


def _number(estimate: Estimate) -> str:
    value = f"{estimate.value:.4g}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({estimate.low:.4g} to {estimate.high:.4g})"
