# SPDX-License-Identifier: Apache-2.0
"""What load costs and what limits it: shapes of growth, service demand, ceilings of a path."""

import re

import pytest

from storqual.statistics.estimates import Estimate
from storqual.study.demand import (
    PathPart,
    ceiling,
    demands,
    drives_part,
    growths,
    known_ceiling,
    link_part,
    reached,
    read_adapter,
    saturation_advice,
    share_of,
    slot_part,
)
from storqual.study.findings import findings
from storqual.study.points import StudyPoint
from tests.support.study_points import point, swept


def test_scaling_names_the_level_that_is_enough() -> None:
    """The knee at a depth of 4 is found with the gain over a depth of 1."""
    grown = growths([point for point in swept() if point.subject == "qla"], "iops")
    assert [growth.scaling.shape for growth in grown] == ["knee"]
    (sentence,) = saturation_advice(grown)
    assert re.fullmatch(r"qla: QD 4 is enough at depth: 30\d % over QD 1, and no more with up to QD 16\.", sentence)


def test_what_was_measured_last_is_never_called_enough() -> None:
    points = [point for point in swept() if point.subject == "qla" and point.levels["iodepth"] in (1, 2, 4)]
    assert [growth.enough for growth in growths(points, "iops")] == [None]


def test_lines_that_one_level_saturates_share_a_sentence() -> None:
    points = [
        point("qla", "depth", rate * min(depth, 4), iodepth=depth, bs=size)
        for size, rate in ((512, 100.0), (4096, 80.0))
        for depth in (1, 2, 4, 8, 16)
    ]
    (sentence,) = saturation_advice(growths(points, "iops"))
    assert "and 1 more" in sentence


def test_linear_growth_gives_no_advice() -> None:
    """Nothing is saturated, so nothing is enough."""
    points = [point("qla", "ports", 100.0 * ports, ports=ports) for ports in (1, 2, 4)]
    points = [StudyPoint(**{**vars(point), "levels": {"ports": point.ports}}) for point in points]
    assert [(growth.scaling.shape, growth.enough) for growth in growths(points, "iops")] == [("straight", None)]


def test_throughput_over_the_members_of_a_volume_has_a_shape() -> None:
    """Each member adds its share, as long as there is no other limit."""
    points = [point("sym", "dbms", 100.0 * count, varied={"raid.members": count}, noise=0.001) for count in (2, 3, 4)]
    (growth,) = findings(points, ["scaling"], benches={}).growths
    assert (growth.line.along, growth.scaling.linear_to) == ("raid.members", 4)


def test_processor_time_next_to_nothing_shows_how_far_it_reaches() -> None:
    base = point("fc0", "demand", 1000.0, busy=5.0, launches=3, noise=0.0)
    busy = (0.5, 6.0, 8.5)
    launches = tuple({**values, "cpu_percent": value} for values, value in zip(base.launches, busy, strict=True))
    (demand,) = demands([StudyPoint(**{**vars(base), "launches": launches})])
    assert demand.cpu_percent == pytest.approx(5.0)
    assert demand.cpu_reach == pytest.approx(4.303 * 4.093 / 3**0.5, rel=0.001)
    (single,) = demands([point("fc0", "demand", 1000.0, busy=5.0, launches=1)])
    assert single.cpu_reach is None


def test_demand_is_given_in_the_units_of_both_papers() -> None:
    """HP A6826A, p. 3, single port, 4 KiB reads: 130 MB/s at 37 % of one CPU are 2.91 us/KiB (printed 2.93)."""
    (demand,) = demands([point("fc0", "demand", 130e6 / 4096, busy=37.0, noise=0.0)])
    assert demand.us_per_kib == pytest.approx(37.0 * 1e4 / (130e6 / 1024))
    assert demand.percent_thousandths == pytest.approx(37.0 * 1000 / (130e6 / 1024))


def test_percent_of_the_ceiling_names_the_limit() -> None:
    """One drive gives 65 MB/s and a port 80: two drives on two ports are limited by the drives."""
    points = [
        point("sym", "seq", 65e6 / 65536, size=65536, drives=("a",)),
        point("sym", "seq", 130e6 / 65536, size=65536, drives=("a", "b"), ports=2),
    ]
    first, second = reached(points, {("b1", "sym"): {"slot": 133e6, "link": 80e6}})
    assert (first.ceiling_mb_s, first.share.lowest.name, first.share.limited_by) == (80.0, "link (1 port)", None)
    assert (second.share.lowest.name, second.share.limited_by is not None) == ("2 drives", True)


def test_an_adapter_without_known_parts_has_no_ceiling() -> None:
    assert reached([point("sym", "seq", 100.0)], {}) == []


SLOT = slot_part(528e6, "66 MHz, 64 bit")


PORT = 200_000_000


def exactly(value: float) -> Estimate:
    """A published value: no interval."""
    return Estimate(value, None, None)


@pytest.mark.parametrize(
    ("megabytes", "ports", "both_ways", "percent", "lowest"),
    [
        (195, 1, False, 97.5, "link (1 port)"),
        (351, 1, True, 87.75, "link (1 port, both ways)"),
        (390, 2, False, 97.5, "link (2 ports)"),
        (368, 2, False, 92.0, "link (2 ports)"),
        (412, 2, True, 78.03, "slot"),
    ],
)
def test_the_a6826a_rows_against_their_true_ceiling(
    megabytes: int, ports: int, both_ways: bool, percent: float, lowest: str
) -> None:
    """Two ports both ways are limited by the PCI slot, as the paper's note says: they reach 78 % of it."""
    share = share_of(exactly(megabytes * 1e6), ceiling([SLOT, link_part(PORT, ports, both_ways=both_ways)]))
    assert share.percent.value == pytest.approx(percent, abs=0.01)
    assert share.lowest.name == lowest
    assert share.limited_by is None


def test_drives_that_give_all_they_have_are_named_as_the_limit() -> None:
    """Four drives of 100 MB/s behind an 800 MB/s link measure drives."""
    path = ceiling([link_part(800.0, 1), drives_part({f"drive{n}": 100.0 for n in range(4)})])
    share = share_of(Estimate(395.0, 390.0, 400.0), path)
    assert share.limited_by is not None
    assert share.sentence() == (
        "98.8 % of the ceiling (4 drives); the limit here is 4 drives, which is not what was tested."
    )


def test_a_result_that_may_have_reached_the_rig_says_so() -> None:
    path = ceiling([PathPart("slot", 100.0, rig=True), PathPart("link", 200.0, rig=False)])
    assert share_of(Estimate(93.0, 89.0, 97.0), path).limited_by is not None
    assert share_of(Estimate(93.0, 92.0, 94.0), path).limited_by is None
    assert share_of(exactly(94.9), path).sentence() == "94.9 % of the ceiling (slot)."


def test_the_adapters_own_link_is_no_fault_of_the_rig() -> None:
    """97.5 % of a port is what was tested."""
    assert share_of(exactly(195e6), ceiling([link_part(PORT, 1)])).limited_by is None


def test_a_path_without_parts_is_refused() -> None:
    for parts in ([], [PathPart("slot", 0.0, rig=True)], [PathPart("slot", float("nan"), rig=True)]):
        with pytest.raises(ValueError, match="limits above zero"):
            ceiling(parts)
    with pytest.raises(ValueError, match="expected one or more"):
        link_part(PORT, 0)
    with pytest.raises(ValueError, match="no drives"):
        drives_part({})


def test_an_fc_port_carries_what_its_negotiated_speed_does_after_the_line_code() -> None:
    slow = {"fc_ports": [{"state": "Online", "speed": "16 Gbit"}, {"state": "Online", "speed": "8 Gbit"}]}
    assert known_ceiling({}, slow) == {"link": pytest.approx(850e6)}
    # a port that is down carries nothing, and says nothing of the others
    down = {"fc_ports": [{"state": "Linkdown", "speed": "unknown"}, {"state": "Online", "speed": "16 Gbit"}]}
    assert known_ceiling({"ceiling": {"slot": 7_880_000_000, "link": 3_200_000_000}}, down) == {
        "slot": 7.88e9,
        "link": pytest.approx(1.7e9),
    }
    assert known_ceiling({"ceiling": {"link": 1_000_000_000}}, down) == {"link": 1e9}
    assert known_ceiling({"ceiling": {"link": 1_000_000_000}}, {}) == {"link": 1e9}


def test_percent_of_ceiling_follows_from_the_port_that_the_bench_read() -> None:
    read = {"fc_ports": [{"state": "Online", "speed": "8 Gbit"}]}
    bench = {"adapters": {"qla": {}}, "environment": {"before": {"adapters": {"qla": read}}}}
    measured = point("qla", "stream", 425.0, size=1_000_000)
    (share,) = findings([measured], ["ceiling"], benches={"b1": bench}).reached
    assert share.ceiling_mb_s == pytest.approx(850)
    assert share.share.percent.value == pytest.approx(50, abs=1)
    assert read_adapter({"environment": {}}, "qla") == {}
