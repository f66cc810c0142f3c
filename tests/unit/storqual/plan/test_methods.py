# SPDX-License-Identifier: Apache-2.0
"""Tests that the published methods can be planned: every suite in `quick` on the bench that is made for them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from storqual.base.resources import project_root
from storqual.inputs import load_suite
from storqual.plan import PlannedCampaign, PlanRequest, make_plan

METHODS = (
    "qla1040-adapters",
    "drive-settings",
    "command-limit",
    "load-generators",
    "a7173a-service-demand",
    "a6826a-port-scaling",
    "perc3qc-raid",
    "xeon-ultra320",
)
DROPS = {
    "xeon-ultra320": ("stable-volume", "backport-volume"),
    "perc3qc-raid": ("", "raid"),
}
ADAPTERS = {"drive-settings": ["symb"], "command-limit": ["para"], "load-generators": ["fusion"]}


def planned(suite: str, inventory: Path) -> PlannedCampaign:
    """The suite's quick profile on the bench of the methods."""
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


def test_the_same_points_are_read_by_three_ways_to_a_drive(
    campaigns: dict[str, PlannedCampaign],
) -> None:
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
