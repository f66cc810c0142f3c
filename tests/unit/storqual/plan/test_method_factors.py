# SPDX-License-Identifier: Apache-2.0
"""Each published method varies what its report varies: charts, strips, members, zones, settings, programs."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from storqual.base.resources import project_root
from storqual.inputs import load_suite
from storqual.inputs.references import published_value
from storqual.inputs.suite import Suite
from storqual.plan.points import points_of


def suite(name: str, profile: str = "full") -> Suite:
    """A suite under one of its profiles."""
    return load_suite(project_root() / "suites" / f"{name}.suite.yml").under(profile)


def levels(of: Suite, workload: str, factor: str) -> set[Any]:
    """What a workload of a suite is measured at."""
    return {dict(one.factors).get(factor) for one in points_of(of) if one.workload == workload}


@pytest.mark.parametrize("profile", ["full", "quick"])
def test_read_cache_read_ahead_and_segments_are_in_the_study_of_mode_pages(profile: str) -> None:
    of = suite("drive-settings", profile)
    assert set(of.vary) == {"drive.WCE", "drive.RCD", "drive.DRA", "drive.NCS", "drive.read_ahead_kb"}
    assert all(len(set(given)) > 1 for given in of.vary.values())


def test_charts_1a_to_3b_of_the_a7173a_are_of_one_channel_and_of_both_reads_and_writes() -> None:
    of = suite("a7173a-service-demand")
    for workload, charts in (("iops_1k", "charts 1a and 1b"), ("throughput_256k", "charts 3a and 3b")):
        assert of.workloads[workload].source.endswith(charts)
        assert levels(of, workload, "ports") == {1, 2}
        assert levels(of, workload, "rw") == {"read", "write"}


@pytest.mark.parametrize(("profile", "drives"), [("full", {2, 4, 6, 8, 12, 16, 20, 26}), ("quick", {2, 4, 8})])
def test_chart_3c_of_the_a7173a_is_over_drives_on_both_channels(profile: str, drives: set[int]) -> None:
    of = suite("a7173a-service-demand", profile)
    assert of.workloads["disks"].source.endswith("chart 3c")
    assert (of.workloads["disks"].ports, levels(of, "disks", "drives")) == (2, drives)


def test_chart_4a_of_the_a7173a_is_of_one_and_two_adapters_reads_and_writes() -> None:
    of = suite("a7173a-service-demand")
    assert levels(of, "two_adapters", "adapters") == {1, 2}
    assert levels(of, "two_adapters", "rw") == {"read", "write"}


@pytest.mark.parametrize("profile", ["full", "quick"])
def test_immediate_reporting_of_the_a7173a_is_set_by_the_suite(profile: str) -> None:
    assert suite("a7173a-service-demand", profile).vary == {"drive.WCE": (1,)}


def test_strips_of_the_perc_are_all_seven_of_its_article_and_those_of_md_from_4_kib_on() -> None:
    printed = [f"{published_value(f'perc3qc:stripe_sizes[{at}]').value:g}k" for at in "abcdefg"]
    assert sorted(suite("perc3qc-raid").vary["raid.strip"]) == sorted(printed)
    assert {"4k", "32k"} < set(suite("perc3qc-raid", "strips").vary["raid.strip"]) == set(printed) - {"2k"}


def test_members_of_each_level_of_the_perc_are_those_of_its_article_scaled_where_a_bench_has_fewer() -> None:
    printed = {level: int(published_value(f"perc3qc:drives[raid{level}]").value) for level in ("0", "5", "10")}
    assert suite("perc3qc-raid").vary["raid.members"] == (printed,)
    assert suite("perc3qc-raid", "quick").vary["raid.members"] == ({"0": 4, "5": 3, "10": 4},)


@pytest.mark.parametrize("profile", ["full", "caches"])
def test_the_disk_cache_of_a_volume_is_varied(profile: str) -> None:
    assert set(suite("perc3qc-raid", profile).vary["raid.disk_cache"]) == {"enable", "disable"}


def test_streaming_in_bursts_has_a_think_time() -> None:
    bursts = suite("perc3qc-raid").workloads["bursts"]
    assert bursts.options == {"thinktime": "100000", "thinktime_blocks": "32"}


@pytest.mark.parametrize("drop", ["stable-volume", "backport-volume"])
def test_the_volume_of_the_xseries_is_raid_0_of_four_drives(drop: str) -> None:
    of = suite("xeon-ultra320")
    assert {of.workloads[name].target for name in ("volume_streaming", "volume_zones")} == {"xfs_on_volume"}
    file = project_root() / "inventories" / "virtual_methods" / "drops" / f"{drop}.yml"
    volume = YAML(typ="safe").load(file)["raid"]
    assert (volume["level"], len(volume["members"])) == (0, published_value("xeon-ultra320:drives").value)


@pytest.mark.parametrize("workload", ["zones", "volume_zones"])
@pytest.mark.parametrize("profile", ["full", "quick"])
def test_reads_of_32_kib_are_among_the_zones(profile: str, workload: str) -> None:
    of = suite("xeon-ultra320", profile)
    assert published_value("xeon-ultra320:crossing.threads").value * 1024 in levels(of, workload, "bs")


def test_the_search_for_a_load_reads_a_file_through_the_cache_too() -> None:
    of = suite("xeon-ultra320")
    asked = {name: of.workloads[name] for name in ("database", "database_file")}
    assert {one.load for one in asked.values()} == {asked["database"].load}
    assert [(one.target, one.direct) for one in asked.values()] == [(None, None), ("xfs", False)]
