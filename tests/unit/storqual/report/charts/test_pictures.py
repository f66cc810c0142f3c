# SPDX-License-Identifier: Apache-2.0
"""Tests of the charts by reading their XML: marks lie where their values are, and equal input gives equal bytes."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from storqual.report.charts import (
    Bin,
    Distribution,
    DotRow,
    EventMark,
    Mark,
    PlottedCurve,
    Shift,
    Span,
    Trace,
    clock_axis,
    curve_panel,
    dot_chart,
    histogram,
    interval_axis,
    interval_bar,
    latency_axis,
    percent_axis,
    reach,
    share_axis,
    size_axis,
    time_chart,
    value_axis,
)
from storqual.report.svg import spread


def parsed(picture: str) -> ET.Element:
    """The picture as a tree."""
    return ET.fromstring(picture)  # noqa: S314 - own output


def texts(picture: str) -> list[str]:
    """All labels of a picture."""
    return [node.text or "" for node in parsed(picture).iter("text")]


def circles(picture: str, class_: str) -> list[tuple[float, float]]:
    """Centres of an arm's marks."""
    groups = [node for node in parsed(picture).iter("g") if node.get("class") == class_]
    return [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for node in groups for dot in node.iter("circle")]


def paths(picture: str) -> dict[str, str]:
    """The lines of a picture by their class."""
    return {node.get("class", ""): node.get("d", "") for node in parsed(picture).iter("path")}


def panel(*curves: PlottedCurve) -> str:
    """A panel over 4k to 64k up to 100."""
    return curve_panel(
        "p", "IOPS", "d", curves, size_axis("block size", [4096, 65536], sizes=True), value_axis("IOPS", 98)
    )


BASE = PlottedCurve(
    "baseline", "baseline", (Mark(4096, 100, 95, 105), Mark(16384, 70, 66, 74), Mark(65536, 50, 45, 55))
)
CAND = PlottedCurve(
    "candidate", "candidate", (Mark(4096, 90, 88, 92), Mark(16384, 70, 68, 72), Mark(65536, 50, 49, 51))
)


def test_higher_values_stand_higher_and_equal_values_level() -> None:
    base, cand = circles(panel(BASE, CAND), "d-baseline"), circles(panel(BASE, CAND), "d-candidate")
    assert base[0][1] < cand[0][1] < base[1][1]
    assert base[1][1] == cand[1][1]
    assert base[0][0] == cand[0][0] < base[1][0]


def test_curves_of_three_levels_have_bands_and_single_marks_have_whiskers() -> None:
    assert {"i-baseline", "i-candidate", "s-baseline", "s-candidate"} <= set(paths(panel(BASE, CAND)))
    single = paths(panel(PlottedCurve("candidate", "candidate", (Mark(4096, 90, 88, 92),))))
    assert "w-candidate" in single
    assert "s-candidate" not in single


def test_two_levels_are_no_curve() -> None:
    two = paths(panel(PlottedCurve("candidate", "candidate", (Mark(4096, 90, 88, 92), Mark(65536, 50, 49, 51)))))
    assert "w-candidate" in two
    assert not {"s-candidate", "i-candidate"} & set(two)


def test_curves_without_intervals_are_drawn_without_bands() -> None:
    bare = PlottedCurve("candidate", "candidate", (Mark(4096, 90), Mark(65536, 50)))
    assert "i-candidate" not in panel(bare)
    assert len(circles(panel(bare), "d-candidate")) == 2


def test_each_curve_is_named_at_its_end_and_labels_keep_apart() -> None:
    nodes = [node for node in parsed(panel(BASE, CAND)).iter("text") if (node.get("class") or "").startswith("t-")]
    assert [node.text for node in nodes] == ["baseline", "candidate"]
    first, second = (float(node.get("y", "")) for node in nodes)
    assert second - first >= 13


def test_block_sizes_and_rates_label_the_axes() -> None:
    assert {"4k", "64k", "0", "100", "block size", "IOPS"} <= set(texts(panel(BASE)))


def test_labels_that_fit_stay_within_their_box() -> None:
    """Spreading moves labels up when the lowest would fall out."""
    assert spread([98, 99, 100], 10, 0, 100) == (80, 90, 100)
    assert spread([5, 50], 10, 0, 100) == (5, 50)


def shift(
    value: float | None, low: float | None = None, high: float | None = None, margin: float | None = 3
) -> Shift:
    """A shift of an outcome that does not matter here."""
    return Shift(value, low, high, margin, "PASS")


def test_an_interval_bar_has_its_dot_between_its_ends_and_left_is_worse() -> None:
    bar = parsed(interval_bar(shift(-1.0, -2.0, 0.0), 6.0, "shift -1 %"))
    dot = float(next(bar.iter("circle")).get("cx", ""))
    limit = next(node for node in bar.iter("path") if node.get("class") == "limit")
    edge = float(re.match(r"M([\d.]+) ", limit.get("d", "")).group(1))  # type: ignore[union-attr]
    assert edge < dot < 100
    assert next(bar.iter("title")).text == "shift -1 %"
    zone = next(bar.iter("rect"))
    assert float(zone.get("width", "")) == edge


def test_what_leaves_the_axis_ends_in_an_arrow() -> None:
    """A loss of 90 % on an axis of 6 % is at the edge and shown to go on."""
    bar = parsed(interval_bar(shift(-90.0, -95.0, -85.0), 6.0, "x"))
    assert not list(bar.iter("circle"))
    heads = [node.get("d", "") for node in bar.iter("path") if node.get("fill") and node.get("d", "").endswith("Z")]
    assert len(heads) == 1
    assert heads[0].startswith("M1 ")


def test_a_criterion_without_shift_draws_only_its_frame() -> None:
    bar = interval_bar(shift(None), 6.0, "no shift")
    assert "circle" not in bar
    assert "limit" in bar


@pytest.mark.parametrize(
    ("shifts", "end"),
    [
        ([shift(-1, -2, 0)], 4.0),
        ([shift(-10.2, -10.7, -9.7)], 20.0),
        ([shift(0.1, -0.1, 0.3, 0.5)], 2.0),
        ([shift(None, None, None, None)], 2.0),
        ([shift(-80, -99, 400)], 40.0),
    ],
)
def test_the_axis_reaches_over_margin_and_intervals_but_not_over_everything(shifts: list[Shift], end: float) -> None:
    assert reach(shifts) == end


def test_the_axis_of_intervals_is_symmetric_and_labelled_inside() -> None:
    assert texts(interval_axis(6.0, lambda value: f"{value:g}")) == ["-3", "0", "3"]


def test_a_dot_chart_has_a_row_per_point_under_its_heading() -> None:
    rows = [
        DotRow("4 KiB", "rand_read QD1", {"baseline": Mark(0, 100), "candidate": Mark(0, 90, 85, 95)}),
        DotRow("", "rand_read QD16", {"baseline": Mark(0, 200)}),
    ]
    picture = dot_chart("d", "IOPS", "x", rows, value_axis("IOPS", 200))
    assert [label for label in texts(picture) if "Ki" in label or "QD" in label] == [
        "rand_read QD1",
        "rand_read QD16",
        "4 KiB",
    ]
    base, cand = circles(picture, "d-baseline"), circles(picture, "d-candidate")
    assert base[0][1] == cand[0][1] < base[1][1]
    assert cand[0][0] < base[0][0] < base[1][0]


def test_a_histogram_starts_and_ends_on_its_axis() -> None:
    """The filled outline is closed on the axis, so that its area is the whole distribution."""
    bins = (Bin(1e6, 2e6, 0.25), Bin(2e6, 4e6, 0.75))
    picture = histogram(
        "h", "Latency", "d", [Distribution("baseline", bins)], latency_axis(1e6, 4e6), share_axis(0.75)
    )
    outline = paths(picture)["i-baseline"]
    bottom = re.match(r"M[\d.]+ ([\d.]+)", outline).group(1)  # type: ignore[union-attr]
    assert outline.endswith(f"V{bottom}Z")
    assert {"1 ms", "2 ms", "latency", "of I/O"} <= set(texts(picture))


def test_a_histogram_without_bins_is_an_empty_frame() -> None:
    picture = histogram("h", "t", "d", [Distribution("candidate", ())], latency_axis(1e3, 1e6), share_axis(0))
    assert "s-candidate" not in picture


def test_time_steps_break_where_nothing_was_measured() -> None:
    trace = Trace("candidate", ((0, 1, 5), (1, 2, 6), (10, 11, 5)))
    picture = time_chart("t", "t", "d", [trace], clock_axis(0, 11), value_axis("", 6))
    assert paths(picture)["s-candidate"].count("M") == 2


def test_events_stand_at_their_time_with_their_badge() -> None:
    events = [EventMark(5.0, "E1"), EventMark(5.0, "K1"), EventMark(50.0, "K2")]
    picture = time_chart("t", "t", "d", [], clock_axis(0, 100), percent_axis("", 1), events=events)
    badges = [node for node in parsed(picture).iter("text") if node.text in ("E1", "K1", "K2")]
    assert [node.text for node in badges] == ["E1", "K1", "K2"]
    assert badges[0].get("x") == badges[1].get("x")
    assert badges[0].get("y") != badges[1].get("y")
    assert badges[2].get("y") == badges[0].get("y")


def test_sessions_are_named_and_the_candidate_s_are_tinted() -> None:
    spans = [Span(0, 50, "s01 baseline", "baseline"), Span(50, 100, "s02 candidate", "candidate")]
    picture = time_chart("t", "t", "d", [], clock_axis(0, 100), percent_axis("", 1), spans=spans)
    assert {"s01 baseline", "s02 candidate"} <= set(texts(picture))
    assert len(list(parsed(picture).iter("rect"))) == 1


def test_a_short_session_is_named_over_the_pause_after_it_or_by_its_number() -> None:
    """Boots take longer than launches: the name has the room up to the next session, else a shorter one."""
    spans = [Span(0, 2, "s01 baseline", "baseline", "s01"), Span(60, 62, "s02 candidate", "candidate", "s02")]
    spans.append(Span(66, 100, "s03 candidate", "candidate", "s03"))
    picture = time_chart("t", "t", "d", [], clock_axis(0, 100), percent_axis("", 1), spans=spans)
    assert {"s01 baseline", "s02", "s03 candidate"} <= set(texts(picture))


def test_the_time_axis_has_round_minutes_and_days_where_needed() -> None:
    assert [label for _, label in clock_axis(0, 360).ticks] == [
        "00:00",
        "00:01",
        "00:02",
        "00:03",
        "00:04",
        "00:05",
        "00:06",
    ]
    assert clock_axis(0, 2 * 86400).ticks[0][1] == "01 Jan 00:00"
    assert len(clock_axis(0, 30 * 86400).ticks) <= 9


def test_equal_input_gives_equal_bytes() -> None:
    assert panel(BASE, CAND) == panel(BASE, CAND)
