# SPDX-License-Identifier: Apache-2.0
"""Features and slots of adapters, published figures beside measured ones, and the advice of all studies."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.plan import make_plan
from storqual.study.findings import (
    NOT_KNOWN,
    beside,
    features,
    findings,
    overlays_of,
    placement_advice,
    shared_advice,
)
from storqual.study.points import StudyPoint, lines_of, ports_of
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import lab_hosts, make_lab
from tests.support.study_points import point, swept

FOUND = {
    "rom": True,
    "boot_code": "6.04",
    "cdroms": 1,
    "can_queue": [32, 32],
    "drives": {"a": {"queue_depth": "4"}, "b": {"queue_depth": "8"}},
}
BOOT = {"bios": "4.03", "cdrom": True, "drives": "any id", "options": ["boot id", "LUNs"]}


def chart(**columns: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """The chart by row; of each adapter what the inventory declares and what the bench read."""
    bench = {
        "adapters": {alias: declared for alias, (declared, _) in columns.items()},
        "environment": {"before": {"adapters": {alias: read for alias, (_, read) in columns.items()}}},
    }
    return {row.name: row.values for row in features(bench, list(columns))}


def test_what_the_bench_read_stands_before_what_the_inventory_declares() -> None:
    rows = chart(one=({"boot": BOOT}, FOUND), two=({"boot": BOOT}, {}), three=({}, {}))
    assert rows["BIOS"] == ("6.04", "4.03 (inventory)", NOT_KNOWN)
    assert rows["BIOS options"] == ("boot id, LUNs (inventory)", "boot id, LUNs (inventory)", NOT_KNOWN)
    assert rows["Boot from CD-ROM"] == ("yes (inventory)", "yes (inventory)", NOT_KNOWN)
    assert rows["Boot from drives"] == ("any id (inventory)", "any id (inventory)", NOT_KNOWN)
    assert rows["CD-ROM drives"] == ("1", NOT_KNOWN, NOT_KNOWN)
    assert rows["Commands per adapter"] == ("32", NOT_KNOWN, NOT_KNOWN)
    assert rows["Queue depth per drive"] == ("4 or 8", NOT_KNOWN, NOT_KNOWN)


def test_a_feature_that_is_not_there_is_told_and_is_not_unknown() -> None:
    rows = chart(one=({"boot": {"cdrom": False}}, {"rom": False, "cdroms": 0}), two=({}, {"rom": True}))
    assert rows["BIOS"] == ("no ROM on the card", "a ROM, its version not known")
    assert rows["Boot from CD-ROM"] == ("no (inventory)", NOT_KNOWN)
    assert rows["CD-ROM drives"] == ("none", NOT_KNOWN)


def test_what_the_inventory_declares_of_the_boot_code_reaches_the_chart_of_a_run(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 2})
    hosts["b1"]["storqual_adapters"]["sym"]["boot"] = BOOT
    document = make_plan(make_lab(tmp_path, hosts=hosts)).document
    by_name = {row.name: row.values for row in features(document["benches"]["b1"], ["sym"])}
    assert by_name["Boot from drives"] == ("any id (inventory)",)


def test_no_cell_is_ever_blank() -> None:
    for columns in ({"one": ({}, {})}, {"one": ({"boot": BOOT}, FOUND), "two": ({}, {"drives": {"a": {}}})}):
        assert all(all(values) for values in chart(**columns).values())


@pytest.mark.parametrize(
    ("slot", "link", "ports", "sentence"),
    [
        (133e6, 80e6, 2, "feeds 1 of 2 ports at full rate"),
        (1e9, 300e6, 2, "feeds all 2 ports at full rate"),
        (133e6, 320e6, 1, "no port runs at full rate"),
    ],
)
def test_slots_are_told_by_what_their_ports_need(slot: float, link: float, ports: int, sentence: str) -> None:
    declared = {"ceiling": {"slot": slot, "link": link}, "drives": [{"port": port} for port in range(ports)]}
    assert sentence in " ".join(placement_advice("sym", declared, {}))


def test_a_link_below_its_best_is_told() -> None:
    read = {"link": {"speed": "8.0 GT/s", "speed_max": "8.0 GT/s", "width": "4", "width_max": "8"}}
    assert list(placement_advice("sas0", {}, read)) == [
        "sas0: its PCI link runs at width 4, the card can 8: another slot may give more."
    ]


def card(pci: str, *bridges: tuple[str, str, int | None], root: str = "0000:00", **more: Any) -> dict[str, Any]:
    """What a bench says of an adapter with eight lanes of 8 GT/s, behind these bridges."""
    above = [{"pci": address, "speed": speed, "width": width} for address, speed, width in bridges]
    link = {"speed": "8.0 GT/s PCIe", "width": 8}
    return {"pci": pci, "root": root, "link": link, "bridges": above, "numa_node": 0, **more}


ROOT_PORT = ("0000:00:03.0", "8.0 GT/s PCIe", 8)
WIDE_PORT = ("0000:00:03.0", "8.0 GT/s PCIe", 16)
DOWN = (("0000:02:08.0", "8.0 GT/s PCIe", 8), ("0000:02:09.0", "8.0 GT/s PCIe", 8))


def test_cards_behind_a_port_that_carries_less_than_they_do_are_told_to_part() -> None:
    adapters = {"sas0": card("0000:03:00.0", ROOT_PORT, DOWN[0]), "sas1": card("0000:04:00.0", ROOT_PORT, DOWN[1])}
    roots, shared = shared_advice("b1", adapters)
    assert roots == "b1: of 2 tested cards 2 are behind PCI root 0000:00 of NUMA node 0 (sas0, sas1)."
    assert shared == (
        "b1: sas0, sas1 share PCI bridge 0000:00:03.0 (8.0 GT/s x8, 7877 MB/s), less than their own links together "
        "(sas0 7877, sas1 7877 MB/s): put one behind another root port."
    )


def test_a_port_that_carries_all_of_its_cards_is_told_as_that() -> None:
    adapters = {"sas0": card("0000:03:00.0", WIDE_PORT), "sas1": card("0000:04:00.0", WIDE_PORT)}
    _, sentence = shared_advice("b1", adapters)
    assert sentence.endswith("x16, 15754 MB/s), enough for what their own links carry (sas0 7877, sas1 7877 MB/s).")


def test_of_several_shared_links_the_narrowest_is_told_once() -> None:
    narrow = ("0000:01:00.0", "8.0 GT/s PCIe", 4)
    adapters = {name: card(f"0000:0{bus}:00.0", WIDE_PORT, narrow) for bus, name in ((3, "sas0"), (4, "sas1"))}
    _, sentence = shared_advice("b1", adapters)
    assert "share PCI bridge 0000:01:00.0 (8.0 GT/s x4, 3938 MB/s), less than" in sentence


def test_cards_behind_roots_of_their_own_share_nothing() -> None:
    adapters = {
        "sas0": card("0000:03:00.0", ROOT_PORT),
        "sas1": card("0000:83:00.0", ("0000:80:01.0", "8.0 GT/s PCIe", 8), root="0000:80", numa_node=1),
    }
    (sentence,) = shared_advice("b1", adapters)
    assert sentence == (
        "b1: of 2 tested cards 1 is behind PCI root 0000:00 of NUMA node 0 (sas0), "
        "1 is behind PCI root 0000:80 of NUMA node 1 (sas1)."
    )


def test_functions_of_one_card_are_one_card() -> None:
    adapters = {"fc0": card("0000:03:00.0", ROOT_PORT), "fc1": card("0000:03:00.1", ROOT_PORT)}
    assert list(shared_advice("b1", adapters)) == []
    adapters["sas0"] = card("0000:04:00.0", ROOT_PORT)
    assert "of 2 tested cards 2 are behind PCI root 0000:00 of NUMA node 0 (fc0/fc1, sas0)" in " ".join(
        shared_advice("b1", adapters)
    )


def test_a_bus_without_links_is_divided_and_an_unknown_link_is_told() -> None:
    bus = ("0000:00:1e.0", "", None)
    old = {"link": {"speed": "", "width": None}}
    adapters = {name: card(f"0000:05:0{slot}.0", bus, **old) for slot, name in ((1, "scsi0"), (2, "scsi1"))}
    assert "scsi0, scsi1 share the bus behind PCI bridge 0000:00:1e.0: all" in " ".join(shared_advice("b1", adapters))
    adapters = {"sas0": card("0000:03:00.0", ROOT_PORT), "sas1": card("0000:04:00.0", ROOT_PORT, **old)}
    assert "the link of sas1 is not known" in " ".join(shared_advice("b1", adapters))


def test_nothing_is_said_of_what_shows_no_links_and_no_bridges() -> None:
    """As the emulated adapters, which all sit on the first bus; and runs of before, which have no such record."""
    plain = {"link": {"speed": "", "width": None}}
    adapters = {name: card(f"0000:00:0{slot}.0", **plain) for slot, name in ((4, "sym"), (5, "fusion"))}
    assert list(shared_advice("b1", adapters)) == []
    assert list(shared_advice("b1", {"sym": {}, "fusion": {"link": {}}})) == []


def test_published_figures_find_their_points() -> None:
    """The 1 KiB reads of the A6826A paper on one and two ports, beside points of the same pattern."""
    points = [
        StudyPoint(
            **{
                **vars(point("fc0", "iops_1k", 100.0 * ports, bs=1024, ports=ports)),
                "pattern": {"rw": "read", "bs": 1024},
            }
        )
        for ports in (1, 2)
    ]
    figures = [figure for figure in beside(points, ["a6826a"]) if figure.theirs.metric == "iops"]
    assert [(figure.theirs.value, figure.point.ports) for figure in figures] == [(35530.0, 1), (70100.0, 2)]
    assert figures[0].ratio == pytest.approx(100 / 35530, rel=0.02)


def test_a_published_figure_lies_on_the_curve_of_its_point() -> None:
    """Over ports where the paper has several of them; what stands alone is on no curve."""
    here = [point("fc0", "iops_1k", 100.0 * ports, bs=1024, ports=ports) for ports in (1, 2, 4)]
    points = [
        StudyPoint(**{**vars(planned), "levels": {"ports": planned.ports}, "pattern": {"rw": "read", "bs": 1024}})
        for planned in here
    ]
    (overlay,) = overlays_of(
        points, [figure for figure in beside(points, ["a6826a"]) if figure.theirs.metric == "iops"]
    )
    assert (overlay.along, [len(line.points) for line in overlay.lines]) == ("ports", [3])
    (theirs,) = overlay.theirs.values()
    assert theirs == {1.0: 35530.0, 2.0: 70100.0}
    assert overlays_of(points[:1], beside(points[:1], ["a6826a"])) == []


def test_an_unknown_report_is_told_with_those_there_are() -> None:
    with pytest.raises(BadInputError, match="a6826a"):
        beside([point("fc0", "iops_1k", 100.0)], ["a6826"])


def test_advice_leads_to_the_study_that_shows_it() -> None:
    results = findings(swept(), ["scaling"], benches={})
    assert results.advice
    assert {advice.evidence for advice in results.advice} == {"study-scaling"}
    assert results.contests == ()


def test_cards_behind_one_port_are_told_by_the_study_of_ceilings() -> None:
    cards = {
        name: {
            "pci": f"0000:0{bus}:00.0",
            "root": "0000:00",
            "link": {"speed": "8.0 GT/s PCIe", "width": 8},
            "bridges": [{"pci": "0000:00:03.0", "speed": "8.0 GT/s PCIe", "width": 8}],
        }
        for bus, name in enumerate(("sas0", "sas1"), start=4)
    }
    points = [point(name, "reads", 100.0, ports=1) for name in cards]
    bench = {points[0].bench: {"environment": {"before": {"adapters": cards}}}}
    advice = findings(points, ["ceiling"], benches=bench).advice
    assert [sentence.evidence for sentence in advice] == ["study-ceiling"] * 2
    assert "sas0, sas1 share PCI bridge 0000:00:03.0" in advice[1].text
    assert findings(points[:1], ["ceiling"], benches=bench).advice == ()


def test_lines_are_ascending_and_have_two_levels() -> None:
    points = [point("qla", "depth", 1.0, iodepth=depth) for depth in (8, 1)]
    (line,) = lines_of(points, "iodepth")
    assert [measured.levels["iodepth"] for measured in line.points] == [1, 8]
    assert lines_of(points[:1], "iodepth") == []


def test_levels_without_a_difference_are_named_and_a_setting_only_when_all_of_its_levels_have_none() -> None:
    """RAID 0 and 5 stream alike and 10 does not: the level of RAID is not said to make no difference."""
    rates = {"raid.level": {0: 100.0, 5: 100.0, 10: 80.0}, "drive.NCS": {1: 100.0, 16: 100.0}}
    sentences = [
        advice.text
        for setting, levels in rates.items()
        for advice in findings(
            [
                point("sym", setting, rate, varied={setting: level}, launches=6, noise=0.001)
                for level, rate in levels.items()
            ],
            ["settings"],
            benches={},
        ).advice
    ]
    assert "sym, raid.level: raid.level 0 and 5 make no difference of 3 % or more." in sentences
    assert "sym, drive.NCS: drive.NCS makes no difference of 3 % or more; leave it." in sentences
    assert not any("raid.level makes" in text for text in sentences)


def test_advice_on_a_raid_level_says_how_many_members_each_has() -> None:
    rates = {("0", 4): 400.0, ("5", 3): 200.0}
    points = [
        point("sym", "dbms", rate, varied={"raid.level": level, "raid.members": count}, noise=0.001)
        for (level, count), rate in rates.items()
    ]
    (advice,) = findings(points, ["settings"], benches={}).advice
    assert "raid.level 0 (raid.members 4) gives " in advice.text
    assert " % more IOPS than 5 (raid.members 3) (interval " in advice.text


def test_ports_that_a_fabric_names_are_told_apart_by_their_initiators() -> None:
    drives = [{"id": number, "port": {"initiator": f"0x{number % 2}", "target": "0x9"}} for number in range(3)]
    run: Any = SimpleNamespace(benches={"b1": {"adapters": {"fc": {"drives": drives}}}})
    assert ports_of(run, "b1") == {"0": ("fc", "0x0"), "1": ("fc", "0x1"), "2": ("fc", "0x0")}
