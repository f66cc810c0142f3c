# SPDX-License-Identifier: Apache-2.0
"""Tests of charts: scales and ticks, SVG as escaped text, and each picture."""

import math
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

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
from storqual.report.svg import (
    LinearScale,
    LogScale,
    decade_ticks,
    drawing,
    element,
    group,
    nice_ceiling,
    nice_step,
    nice_ticks,
    num,
    path,
    power_ticks,
    spread,
    text,
)

spans = st.floats(min_value=1e-6, max_value=1e12, allow_nan=False)


def test_a_linear_scale_maps_ends_to_ends() -> None:
    scale = LinearScale(0, 10, 100, 0)
    assert [scale(0), scale(5), scale(10)] == [100, 50, 0]


def test_a_scale_without_length_puts_everything_in_the_middle() -> None:
    assert LinearScale(3, 3, 0, 10)(3) == 5


def test_equal_ratios_lie_at_equal_distances_on_a_logarithmic_scale() -> None:
    """4k, 64k and 1M are evenly apart."""
    scale = LogScale(4096, 1048576, 0, 100)
    assert scale(65536) == pytest.approx(50)


def test_zero_has_no_place_on_a_logarithmic_scale() -> None:
    with pytest.raises(ValueError, match=r"math domain error|positive input"):
        LogScale(1, 10, 0, 1)(0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)), (0, 300, (0.0, 100.0, 200.0, 300.0)), (-3, 3, (-2.0, 0.0, 2.0))],
)
def test_ticks_are_round(low: float, high: float, expected: tuple[float, ...]) -> None:
    """No 0.30000000000000004 on an axis."""
    assert nice_ticks(low, high) == expected


@given(low=st.floats(-1e9, 1e9), span=spans, count=st.integers(1, 12))
def test_ticks_stay_inside_and_are_not_too_many(low: float, span: float, count: int) -> None:
    high = low + span
    if high == low:
        return
    ticks = nice_ticks(low, high, count)
    assert len(ticks) <= count + 1
    room = (high - low) * 1e-6 + abs(low) * 1e-9
    assert all(low - room <= tick <= high + room for tick in ticks)


@given(value=spans)
def test_the_top_of_an_axis_is_not_below_its_values(value: float) -> None:
    top = nice_ceiling(value)
    assert value * (1 - 1e-6) <= top <= value * 2.01


def test_the_top_of_an_axis_without_values_is_one() -> None:
    assert [nice_ceiling(value) for value in (0, -1, math.inf, math.nan)] == [1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("span", [0.0, -1.0, math.inf, math.nan])
def test_no_step_fits_a_span_that_is_none(span: float) -> None:
    with pytest.raises(ValueError, match="no steps"):
        nice_step(span, 4)


def test_decades_get_marks_between_while_there_is_room() -> None:
    assert decade_ticks(1, 10, 6) == (1.0, 2.0, 5.0, 10.0)
    assert decade_ticks(1e3, 1e6, 6) == (1e3, 1e4, 1e5, 1e6)
    assert len(decade_ticks(1, 1e9, 5)) <= 5


def test_block_sizes_are_powers_of_two() -> None:
    assert power_ticks(4096, 65536) == (4096, 8192, 16384, 32768, 65536)
    assert power_ticks(512, 16 * 2**20, 6) == (512, 2**12, 2**15, 2**18, 2**21, 2**24)


anything = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=30)


@pytest.mark.parametrize(
    ("value", "expected"), [(1.0, "1"), (0.04, "0"), (-0.04, "0"), (12.34, "12.3"), (-7.25, "-7.2"), (100, "100")]
)
def test_coordinates_are_short(value: float, expected: str) -> None:
    assert num(value) == expected


@given(label=anything, title=anything)
def test_any_text_stays_text_in_a_drawing(label: str, title: str) -> None:
    """A drive model is a label and nothing else; the picture parses as XML whatever it says."""
    picture = drawing("x", (10, 10), title, label, [text(0, 0, label), element("rect", {"class": label})])
    root = ET.fromstring(picture)  # noqa: S314 - own output
    assert [child.tag for child in root] == ["title", "desc", "text", "rect"]


def test_a_drawing_tells_what_it_shows() -> None:
    root = ET.fromstring(drawing("c1", (10, 20), "IOPS", "over block size", []))  # noqa: S314 - own output
    assert (root.get("role"), root.get("aria-labelledby"), root.get("viewBox")) == ("img", "c1-t c1-d", "0 0 10 20")
    assert [(child.tag, child.get("id"), child.text) for child in root] == [
        ("title", "c1-t", "IOPS"),
        ("desc", "c1-d", "over block size"),
    ]


@pytest.mark.parametrize("name", ["onclick", "OnLoad", "href", "src", "style", "xlink:href", 'x" y', ""])
def test_no_attribute_can_act(name: str) -> None:
    with pytest.raises(ValueError, match="no attribute of a chart"):
        element("rect", {name: "1"})


@pytest.mark.parametrize("name", ["script", "foreignObject", "a", "use", "image", "svg onload=x", ""])
def test_no_element_can_act(name: str) -> None:
    with pytest.raises(ValueError, match="no element of a chart"):
        element(name, {})


def test_children_that_are_markup_are_kept_and_texts_are_escaped() -> None:
    inner = element("b", {}, "<")
    assert element("g", {}, inner, "<i>") == Markup("<g><b>&lt;</b>&lt;i&gt;</g>")


def test_an_empty_group_is_nothing() -> None:
    assert group("x", {}, []) == ""
    assert path([]) == ""


def test_level_and_upright_lines_are_written_short() -> None:
    assert path([(0, 1), (5, 1), (9, 1), (9, 4), (10, 5), (10, 5)]) == "M0 1H9V4L10 5"
    assert path([(0, 0), (1, 0)], [(5, 5), (5, 6)], closed=True) == "M0 0H1ZM5 5V6Z"


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - own output


def texts(picture: str) -> list[str]:
    return [node.text or "" for node in parsed(picture).iter("text")]


def circles(picture: str, class_: str) -> list[tuple[float, float]]:
    groups = [node for node in parsed(picture).iter("g") if node.get("class") == class_]
    return [(float(dot.get("cx", "")), float(dot.get("cy", ""))) for node in groups for dot in node.iter("circle")]


def paths(picture: str) -> dict[str, str]:
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
    picture = time_chart("t", "t", "d", [], clock_axis(0, 100), percent_axis(1), events=events)
    badges = [node for node in parsed(picture).iter("text") if node.text in ("E1", "K1", "K2")]
    assert [node.text for node in badges] == ["E1", "K1", "K2"]
    assert badges[0].get("x") == badges[1].get("x")
    assert badges[0].get("y") != badges[1].get("y")
    assert badges[2].get("y") == badges[0].get("y")


def test_sessions_are_named_and_the_candidate_s_are_tinted() -> None:
    spans = [Span(0, 50, "s01 baseline", "baseline"), Span(50, 100, "s02 candidate", "candidate")]
    picture = time_chart("t", "t", "d", [], clock_axis(0, 100), percent_axis(1), spans=spans)
    assert {"s01 baseline", "s02 candidate"} <= set(texts(picture))
    assert len(list(parsed(picture).iter("rect"))) == 1


def test_a_short_session_is_named_over_the_pause_after_it_or_by_its_number() -> None:
    """Boots take longer than launches: the name has the room up to the next session, else a shorter one."""
    spans = [Span(0, 2, "s01 baseline", "baseline", "s01"), Span(60, 62, "s02 candidate", "candidate", "s02")]
    spans.append(Span(66, 100, "s03 candidate", "candidate", "s03"))
    picture = time_chart("t", "t", "d", [], clock_axis(0, 100), percent_axis(1), spans=spans)
    assert {"s01 baseline", "s02", "s03 candidate"} <= set(texts(picture))


def test_the_time_axis_has_round_minutes_and_days_where_needed() -> None:
    assert [label for _, label in clock_axis(0, 360).ticks] == [
        *("00:00", "00:01", "00:02", "00:03", "00:04", "00:05", "00:06")
    ]
    assert clock_axis(0, 2 * 86400).ticks[0][1] == "01 Jan 00:00"
    assert len(clock_axis(0, 30 * 86400).ticks) <= 9


def test_equal_input_gives_equal_bytes() -> None:
    assert panel(BASE, CAND) == panel(BASE, CAND)
