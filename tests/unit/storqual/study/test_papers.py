# SPDX-License-Identifier: Apache-2.0
"""Tests that the code which judges live runs gives the tables of both HP papers from their own figures.

Each row of a paper is turned into the primitives that a bench would have recorded; the metrics, the ceiling and the
scaling analysis do the rest. Where a paper is wrong by its own figures (the audit lists those), the code must differ.
"""

import pytest

from storqual.base.files import project_root
from storqual.base.formulas import MB, MIB
from storqual.inputs import load_suite
from storqual.inputs.references import overlays, published_value
from storqual.metrics import METRICS, Primitives, Value
from storqual.plan.points import points_of as suite_points
from storqual.statistics.estimates import Estimate
from storqual.statistics.scaling import scaling
from storqual.study.demand import ceiling, link_part, share_of
from storqual.study.findings import beside, overlays_of
from storqual.study.points import STUDIED, StudyPoint

CELLS = [f"{ports} {way} {size}KB" for ports in ("single", "dual") for way in ("read", "write") for size in (4, 8)]


def measured(metric: str, *, rate: float, busy: float, cpus: int = 1) -> float:
    """`metric` of one second at `rate` bytes/s with `busy` percent of all `cpus` processors."""
    second = 10**9
    primitives = {
        "runtime_ns": second,
        "wall_ns": second,
        "read_ios": round(rate / 4096),
        "read_bytes": round(rate),
        "cpu_count": cpus,
        "cpuidle_ns": round(second * cpus * (1 - busy / 100)),
    }
    value = METRICS[metric].value(Primitives(primitives, {}))
    assert isinstance(value, Value)
    return value.value


ULTRA320, FIBRE_CHANNEL = 320_000_000, 200_000_000
"""Bytes per second of one bus (A7173A, p. 2, note 2), and of one port in one direction (A6826A, chart 2a)."""


def figure(name: str) -> float:
    return published_value(name).value


@pytest.mark.parametrize("cell", CELLS)
def test_service_demand_of_the_a6826a(cell: str) -> None:
    """Microseconds per KiB of one processor, MB = 10^6: p. 3, all eight cells, as far as the printed digits say."""
    rate, busy = (figure(f"a6826a:sd.{name}[{cell}]") for name in ("throughput", "cpu"))
    ends = [measured("cpu_us_per_kib", rate=(rate - side * 0.5) * MB, busy=busy + side * 0.5) for side in (-1, 1)]
    # the paper cuts off: 2.7555 is printed as 2.75
    assert ends[0] - 0.01 <= figure(f"a6826a:sd.demand[{cell}]") <= ends[1]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("adapter", ["a7173a", "a6829a"])
def test_service_demand_of_the_a7173a(adapter: str, cell: str) -> None:
    """CPU percent of both cores per 1,000 KB/s, MB = 2^20: p. 4; the one cell that the audit finds wrong is wrong."""
    rate, busy = (figure(f"a7173a:sd.{name}.{adapter}[{cell}]") for name in ("throughput", "cpu"))
    printed = figure(f"a7173a:sd.demand.{adapter}[{cell}]") * 10 * 2
    ends = [
        measured("cpu_us_per_kib", rate=(rate - side * 0.5) * MIB, busy=busy + side * 0.5, cpus=2) for side in (-1, 1)
    ]
    slack = 0.0005 * 10 * 2
    agrees = ends[0] - slack <= printed <= ends[1] + slack
    assert agrees is ((adapter, cell) != ("a6829a", "single read 4KB"))


def share(part: float, whole: float) -> float:
    return share_of(Estimate(part, None, None), whole_of(whole)).percent.value


def whole_of(limit: float):  # noqa: ANN201 - a ceiling of one part
    """A path whose only part carries `limit`."""
    return ceiling([link_part(limit, 1)])


@pytest.mark.parametrize(
    ("adapter", "way", "printed"), [("a7173a", "read", 85.4), ("a6829a", "read", 43.0), ("a6829a", "write", 40.8)]
)
def test_percent_of_the_ultra320_maximum(adapter: str, way: str, printed: float) -> None:
    """Two buses of 3.20 x 10^8 bytes/s, MB = 2^20 (p. 2, note 2)."""
    limit = 2 * ULTRA320 / MIB
    assert share(figure(f"a7173a:throughput.{adapter}[{way}]"), limit) == pytest.approx(printed, abs=0.06)


def test_the_misprinted_share_of_the_a7173a_is_not_reproduced() -> None:
    """59.7 % is printed, 59.8 % it is."""
    limit = 2 * ULTRA320 / MIB
    assert share(figure("a7173a:throughput.a7173a[write]"), limit) == pytest.approx(59.785, abs=0.001)


@pytest.mark.parametrize(
    ("way", "ports", "printed"), [("read", 1, 97.5), ("read", 2, 97.5), ("write", 1, 94), ("write", 2, 92)]
)
def test_percent_of_the_fibre_channel_maximum(way: str, ports: int, printed: float) -> None:
    """200 MB/s of a port, MB = 10^6 (p. 2)."""
    path = ceiling([link_part(FIBRE_CHANNEL / MB, ports)])
    share = share_of(Estimate(figure(f"a6826a:throughput.{way}[{ports}]"), None, None), path)
    assert share.percent.value == pytest.approx(printed, abs=0.05)


@pytest.mark.parametrize(("ports", "printed", "right"), [(1, 87.7, 87.75), (2, 51.1, 51.5)])
def test_both_ways_count_twice(ports: int, printed: float, right: float) -> None:
    """87.7 % is a full-duplex port's share; of two ports the paper prints 51.1 and means 51.5."""
    path = ceiling([link_part(FIBRE_CHANNEL / MB, ports, both_ways=True)])
    share = share_of(Estimate(figure(f"a6826a:throughput.bidirectional[{ports}]"), None, None), path).percent.value
    assert share == pytest.approx(right)
    assert (abs(share - printed) < 0.1) is (ports == 1)


def reads(system: str) -> dict[float, list[float]]:
    """Chart 3a: read throughput over one to eight ports."""
    return {float(ports): [figure(f"a6826a:reads.{system}[{ports}]")] for ports in range(1, 9)}


@pytest.mark.parametrize("system", ["superdome", "rp8400"])
def test_four_cards_scale_linearly_on_the_large_systems(system: str) -> None:
    """Eight ports, at least 95 % of eight times one (p. 5)."""
    result = scaling(reads(system))
    assert (result.linear_to, result.broken_at) == (8.0, None)


def test_the_rp7400_is_linear_up_to_three_ports() -> None:
    """The paper says four (p. 5); its own figures say 93 % there."""
    result = scaling(reads("rp7400"))
    assert (result.linear_to, result.broken_at) == (3.0, 4.0)
    fourth = next(level for level in result.levels if level.at == 4)
    assert fourth.efficiency.value == pytest.approx(712 / (4 * 191))


SUITES = ("a6826a-port-scaling", "a7173a-service-demand", "qla1040-adapters", "xeon-ultra320")
ALONE = {
    "a6826a-port-scaling": set(),
    "a7173a-service-demand": set(),
    "qla1040-adapters": set(),
    # rate and users of a search for a load, which is one launch
    "xeon-ultra320": {("iops_at_cap", 2000.0), ("load_at_cap", 250.0)},
}
"""Figures beside a point that has no neighbours, so that there is no curve to draw them into."""


def measured_by_one_adapter(name: str) -> list[StudyPoint]:
    points = []
    for planned in suite_points(load_suite(project_root() / "suites" / f"{name}.suite.yml")):
        levels, pattern = {**dict(planned.factors), **dict(planned.varied)}, dict(planned.pattern.values)
        ports = int(pattern.get("ports") or 2 * int(pattern.get("adapters") or 1))
        subject = ("hba", "b1", "hba", planned.name, planned.workload)
        varied = tuple(name for name, _ in planned.varied)
        points.append(StudyPoint(*subject, levels, varied, pattern, ("d0",), ports, (dict.fromkeys(STUDIED, 1.0),)))
    return points


def test_every_suite_that_names_a_paper_is_here() -> None:
    named = {file.name.partition(".")[0] for file in (project_root() / "suites").glob("*.suite.yml")}
    read = {name: load_suite(project_root() / "suites" / f"{name}.suite.yml") for name in SUITES}
    assert all(suite.published for suite in read.values())
    missing = [name for name in named - set(SUITES) if name not in ("robustness", "paths", "recovery", "conformance")]
    assert not any(load_suite(project_root() / "suites" / f"{name}.suite.yml").published for name in missing)


@pytest.mark.parametrize("name", SUITES)
def test_every_published_figure_of_a_metric_is_beside_a_point_and_drawn_in_its_curve(name: str) -> None:
    papers = load_suite(project_root() / "suites" / f"{name}.suite.yml").published
    printed = {(metric, figure.value) for paper in papers for metric in METRICS for figure in overlays(paper, metric)}
    assert printed
    points = measured_by_one_adapter(name)
    figures = beside(points, papers)
    assert {(figure.theirs.metric, figure.theirs.value) for figure in figures} == printed
    drawn = {
        (curve.metric, value)
        for curve in overlays_of(points, figures)
        for levels in curve.theirs.values()
        for value in levels.values()
    }
    assert printed - drawn == ALONE[name]
