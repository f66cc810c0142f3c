# SPDX-License-Identifier: Apache-2.0
"""Names of points, and which drives a point works on."""

from storqual.inputs import Adapter, Suite, inventory_from_hostvars
from storqual.plan.points import Pattern, drives_for, points_of, shortage
from tests.support.make_lab import lab_hosts


def adapter(count: int) -> Adapter:
    """An adapter with so many claimed drives on two ports, 0 1 0 1 ..."""
    return inventory_from_hostvars(lab_hosts({"sym": count})).benches["b1"].adapters["sym"]


def suite(**workload: object) -> Suite:
    return Suite.model_validate(
        {
            "workloads": {"seq_read": {"rw": "read", **workload}},
            "criteria": [{"metric": "iops"}],
            "profiles": {"quick": {}},
        }
    )


def pattern(drives: int, ports: int | None = None) -> Pattern:
    """A pattern of which only the drives matter."""
    return Pattern({"drives": drives, "ports": ports, "target": "raw"}, {})


def test_a_name_has_all_factors_in_alphabetical_order() -> None:
    found = [
        point.name for point in points_of(suite(factors={"iodepth": [4], "drives": [4], "bs": ["4k", "1536", "1m"]}))
    ]
    assert found == [f"seq_read[bs={size},drives=4,iodepth=4]" for size in ("4k", "1536", "1m")]


def test_adding_a_level_renames_no_point() -> None:
    few = {point.name for point in points_of(suite(factors={"bs": ["4k"], "iodepth": [1, 4]}))}
    more = {point.name for point in points_of(suite(factors={"bs": ["4k", "64k"], "iodepth": [1, 4, 16]}))}
    assert few < more


def test_fixed_parameters_are_not_in_the_name() -> None:
    (point,) = points_of(suite(bs="64k", iodepth=8))
    assert (point.name, point.pattern["bs"], point.pattern["iodepth"]) == ("seq_read", 65536, 8)


def test_varied_settings_are_in_the_name() -> None:
    names = [point.name for point in points_of(suite(factors={"bs": ["4k"]}), [{"drive.WCE": 0}, {"drive.WCE": 1}])]
    assert names == ["seq_read[bs=4k,drive.WCE=0]", "seq_read[bs=4k,drive.WCE=1]"]


def test_drives_are_dealt_round_robin_over_ports() -> None:
    four = adapter(4)
    assert [drive.port for drive in drives_for(four, pattern(3))] == [0, 1, 0]
    uneven = four.model_copy(
        update={
            "drives": tuple(d.model_copy(update={"port": p}) for d, p in zip(four.drives, (0, 0, 0, 1), strict=True))
        }
    )
    assert [uneven.drives.index(drive) for drive in drives_for(uneven, pattern(3))] == [0, 3, 1]


def test_ports_keep_a_pattern_to_the_first_ports() -> None:
    """`ports=1` leaves the other link idle."""
    assert {drive.port for drive in drives_for(adapter(4), pattern(2, ports=1))} == {0}


def test_what_an_adapter_lacks_is_said() -> None:
    assert shortage(adapter(4), pattern(4)) == ""
    assert shortage(adapter(1), pattern(4)) == "needs 4 drives, 1 is claimed"
    assert shortage(adapter(4), pattern(2, ports=3)) == "needs drives on 3 ports, the claimed drives are on 2"


def test_unclaimed_drives_are_never_used() -> None:
    two = adapter(2)
    first = two.drives[0].model_copy(update={"claim": False})
    assert drives_for(two.model_copy(update={"drives": (first, two.drives[1])}), pattern(2)) == (two.drives[1],)
