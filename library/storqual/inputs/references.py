# SPDX-License-Identifier: Apache-2.0
"""One published figure as a reference: limits in percent of it for criteria, and overlays in a report's charts."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from storqual.base.files import suites_folder
from storqual.inputs.expression import Reference, parse_reference
from storqual.inputs.figures import Figures, load_published, on_page
from storqual.inputs.published import Figure, Published
from storqual.inputs.shape import did_you_mean, unknown
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """A published number in the unit of `metric` (None where it compares with no metric of storqual)."""

    value: float
    unit: str
    metric: str | None
    label: str | None
    point: Mapping[str, str]
    source: str


def published_value(name: str) -> PublishedValue:
    """The figure `report:figure` or `report:series[label]`, such as `a6826a:reads.superdome[4]`.

    Raises BadInputError for a report or a figure that is not there, a whole series, and a name that is no number.
    """
    report_name, _, figure_name = name.partition(":")
    report = _report(report_name)
    figures = Figures(report.figures)
    try:
        reference = _reference(figure_name)
        return _value(report, figures.figure(reference), reference.cell, float(figures.number(reference).value))
    except (KeyError, ValueError) as problem:
        known = [figure.id for figure in report.figures]
        near = did_you_mean(figure_name.partition("[")[0], known)
        raise BadInputError([f"{name}: {problem.args[0]}{near}; name a number of that report"]) from None


def overlays(report_name: str, metric: str) -> list[PublishedValue]:
    """Every figure of a report that compares with `metric`, in the order of the file. Raises BadInputError."""
    report = _report(report_name)
    figures = Figures(report.figures)
    return [
        _value(report, figure, label, float(figures.number(Reference(figure.id, label)).value))
        for figure in report.figures
        if figure.metric == metric
        for label in figure.cells()
    ]


def _reference(name: str) -> Reference:
    """A figure, or one cell of a series; a label may hold blanks. Raises ValueError."""
    series, bracket, label = name.partition("[")
    if not bracket:
        return parse_reference(name)
    if not label.endswith("]") or len(label) < 2:
        raise ValueError("this is not the name of one figure with its label in brackets")
    return Reference(parse_reference(series).figure, label[:-1])


def published_reports() -> list[str]:
    """The names of the reports whose figures come with the project."""
    return sorted(file.stem for file in (suites_folder() / "published").glob("*.yml"))


def _report(name: str) -> Published:
    folder = suites_folder() / "published"
    path = folder / f"{name.replace('_', '-')}.yml"
    known = published_reports()
    if path.stem not in known or path.parent != folder:
        raise BadInputError([unknown("published report", name, known, most=len(known))])
    return load_published(Path(path))


def _value(report: Published, figure: Figure, label: str | None, value: float) -> PublishedValue:
    place = f"{report.report.title}, {on_page(figure.page)}"
    point = {**figure.point, **({figure.along: label} if label and figure.along.isidentifier() else {})}
    return PublishedValue(value, figure.unit, figure.metric, label, point, f"{place}: {figure.what}")


_PERCENT = re.compile(r"\s*(\d+(?:\.\d*)?)\s*%\s*\Z")


def published_figure(reference: str, metric: str) -> PublishedValue:
    """The figure that `reference` names, in the unit of `metric`.

    Raises BadInputError for a figure that is not there, ValueError for one that is of another metric or of none.
    """
    figure = published_value(reference)
    if figure.metric != metric:
        raise ValueError(f"a figure of {metric} (that one is of {figure.metric or 'no metric'})")
    return figure


def limits_from(
    reference: str, metric: str, low: str | None, high: str | None
) -> tuple[float | None, float | None, str]:
    """Smallest and largest value allowed in the metric's unit, and where the figure stands.

    Raises as `published_figure`, and ValueError for limits that are no percentages.
    """
    figure = published_figure(reference, metric)
    least, most = (None if text is None else figure.value * _share(text) for text in (low, high))
    return least, most, figure.source


def _share(text: str) -> float:
    match = _PERCENT.match(text)
    share = float(match.group(1)) / 100 if match is not None else math.nan
    if not 0 < share < math.inf:
        raise ValueError("percent of the published figure, such as 90 %")
    return share
