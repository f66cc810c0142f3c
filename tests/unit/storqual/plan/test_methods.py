# SPDX-License-Identifier: Apache-2.0
"""Tests that the published methods can be planned: every suite in `quick` on the bench that is made for them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from storqual.base.files import project_root
from storqual.inputs import load_suite
from storqual.inputs.references import published_value
from storqual.inputs.suite import Suite
from storqual.plan import PlannedCampaign, PlanRequest, make_plan
from storqual.plan.points import points_of

METHODS = (
    *("qla1040-adapters", "drive-settings", "command-limit", "load-generators", "a7173a-service-demand"),
    *("a6826a-port-scaling", "perc3qc-raid", "xeon-ultra320"),
)
DROPS = {"xeon-ultra320": ("stable-volume", "backport-volume"), "perc3qc-raid": ("", "raid")}
ADAPTERS = {"drive-settings": ["symb"], "command-limit": ["para"], "load-generators": ["fusion"]}


def planned(suite: str, inventory: Path) -> PlannedCampaign:
    baseline, candidate = DROPS.get(suite, ("", "stable"))
    chosen = ADAPTERS.get(suite)
    facts = inventory.with_name("facts.json") if suite == "drive-settings" else None
    return make_plan(
        PlanRequest([inventory], baseline, candidate, suite, profile="quick", adapters=chosen, seed=1, facts=facts)
    )


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PlannedCampaign]:
    """Every method, planned once; the inventory as Ansible reads it, without the seconds that it takes."""
    folder = tmp_path_factory.mktemp("methods")
    own = project_root() / "inventories" / "virtual_methods"
    hosts = YAML(typ="safe").load(own / "hosts.yml")["benches"]["hosts"]
    listed = {"benches": {"hosts": list(hosts)}, "_meta": {"hostvars": hosts}}
    (folder / "hosts.json").write_text(json.dumps(listed), encoding="utf-8")
    # an emulated drive changes its write cache only
    pages = {name: {"value": 0, "changeable": name == "WCE"} for name in ("WCE", "RCD", "DRA", "NCS")}
    (drive,) = hosts["vmethods"]["storqual_adapters"]["symb"]["drives"]
    facts = {"vmethods": {"drives": [{"id": drive["wwn"], "mode_pages": pages}]}}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    shutil.copytree(own / "drops", folder / "drops")
    return {suite: planned(suite, folder / "hosts.json") for suite in METHODS}


@pytest.mark.parametrize("suite", METHODS)
def test_a_method_takes_minutes(campaigns: dict[str, PlannedCampaign], suite: str) -> None:
    """Two kernels have two boots an arm, and need longer launches to be told apart on a busy host."""
    document = campaigns[suite].document
    assert document["plan"]["expected_seconds"] < (2400 if suite == "xeon-ultra320" else 1000)
    assert sum(not point["skipped"] for point in document["plan"]["points"]) >= 4


def test_three_adapters_of_three_families_stand_side_by_side(campaigns: dict[str, PlannedCampaign]) -> None:
    """As in the QLA1040 report; two processor counts each."""
    points = campaigns["qla1040-adapters"].document["plan"]["points"]
    assert {point["adapter"] for point in points} == {"sym", "fusion", "mraid"}
    assert {point["varied"]["os.cpus"] for point in points} == {2, 4}


def test_each_limit_of_commands_is_a_load_of_the_driver_with_that_option(
    campaigns: dict[str, PlannedCampaign],
) -> None:
    document = campaigns["command-limit"].document
    specs = document["provision"]["vmethods"]
    options = {name: spec["driver"]["options"] for name, spec in specs.items()}
    assert options == {
        f"candidate[driver.can_queue={commands}]": {"vmw_pvscsi": {"ring_pages": pages}}
        for commands, pages in ((32, "1"), (64, "2"), (256, "8"))
    }
    changes = [session["change"] for session in document["plan"]["sessions"]]
    assert changes[1:] == ["reload", "reload", "none", "reload", "reload"]


def test_the_same_points_are_read_by_three_ways_to_a_drive(campaigns: dict[str, PlannedCampaign]) -> None:
    """Reads only: the suite compares engines, and nothing of that needs a write."""
    points = [point for point in campaigns["load-generators"].document["plan"]["points"] if not point["skipped"]]
    by_rest: dict[str, set[str]] = {}
    for point in points:
        by_rest.setdefault(f"{point['workload']} {point['factors']['bs']}", set()).add(point["factors"]["engine"])
    assert len(by_rest) == 4
    fio = {"libaio", "psync", "sg"}
    assert all(engines == fio for engines in by_rest.values())
    launches = [launch for batch in campaigns["load-generators"].batches for launch in batch["turns"]]
    assert {launch["request"]["fio"]["rw"] for launch in launches} == {"read", "randread"}


def test_channels_and_cards_of_the_a7173a(campaigns: dict[str, PlannedCampaign]) -> None:
    """Reads and writes of each, with immediate reporting on."""
    points = {(p["adapter"], p["point"]): p for p in campaigns["a7173a-service-demand"].document["plan"]["points"]}
    assert {adapter for adapter, _ in points} == {"mraid", "mraidb"}
    assert {point["varied"]["drive.WCE"] for point in points.values()} == {1}
    on = "drive.WCE=1"
    for way in ("read", "write"):
        channels = points["mraid", f"throughput_256k[{on},drives_per_port=4,ports=2,rw={way}]"]
        cards = points["mraid", f"two_adapters[adapters=2,{on},drives_per_port=4,rw={way}]"]
        assert (len(channels["drives"]), len(cards["drives"])) == (8, 16)


def test_ports_scale_to_eight(campaigns: dict[str, PlannedCampaign]) -> None:
    points = [p for p in campaigns["a6826a-port-scaling"].document["plan"]["points"] if p["workload"] == "scaling"]
    assert max(len(point["drives"]) for point in points if not point["skipped"]) == 8


def test_the_rate_of_links_is_a_factor_of_every_point_of_its_profile() -> None:
    suite = load_suite(project_root() / "suites" / "a6826a-port-scaling.suite.yml")
    assert suite.profiles["link_rates"].vary == {"drive.link_rate": ("1.5 Gbit", "3.0 Gbit")}
    assert {"settings", "scaling"} <= set(suite.studies)
    assert not suite.vary


def test_three_levels_of_one_volume_with_advice_before_it_is_made(campaigns: dict[str, PlannedCampaign]) -> None:
    """RAID 0, 5 and 10 of 4, 3 and 4 drives by sessions; the strip arithmetic and the read-ahead inequality."""
    document = campaigns["perc3qc-raid"].document
    points = document["plan"]["points"]
    varied = {(point["varied"]["raid.level"], len(point["drives"])) for point in points if not point["skipped"]}
    assert varied == {("0", 4), ("5", 3), ("10", 4)}
    assert {point["adapter"] for point in points} == {"fusion"}
    assert {p["workload"] for p in points if p["skipped"]} == {"controller_cache"}
    launches = [launch for block in campaigns["perc3qc-raid"].batches for launch in block["turns"]]
    bursts = [launch["request"]["fio"] for launch in launches if launch["point"].startswith("bursts[")]
    assert {(fio["options"]["thinktime_blocks"], fio["ramp_s"]) for fio in bursts} == {("32", 0.0)}
    advice = " ".join(document["plan"]["advice"])
    assert "strips a second" in advice
    assert "can only help random reads of 320 KiB or more" in advice


@pytest.mark.parametrize("file", sorted((project_root() / "suites").glob("*.suite.yml")), ids=lambda file: file.name)
def test_every_workload_of_a_method_cites_its_source(file: Path) -> None:
    suite = load_suite(file)
    if suite.published or suite.name in METHODS:
        assert [name for name, workload in suite.workloads.items() if not workload.source] == []


@pytest.mark.parametrize("suite", METHODS)
def test_published_figures_that_a_suite_names_are_set_beside_ours(suite: str) -> None:
    read = load_suite(project_root() / "suites" / f"{suite}.suite.yml")
    assert ("published" in read.studies) == bool(read.published)


def suite(name: str, profile: str = "full") -> Suite:
    return load_suite(project_root() / "suites" / f"{name}.suite.yml").under(profile)


def levels(of: Suite, workload: str, factor: str) -> set[Any]:
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
