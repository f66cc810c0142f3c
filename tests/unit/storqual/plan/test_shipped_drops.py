# SPDX-License-Identifier: Apache-2.0
"""Every drop that is shipped applies as a whole to its inventory, and what an adapter does not take is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.declared import resolve_drop
from storqual.inputs import load_inventory
from storqual.plan import PlanRequest, make_plan
from storqual_core.kit.errors import BadInputError
from storqual_core.kit.settings import SETTINGS
from storqual_core.provision.driver import FIXED_DEPTH
from tests.support.make_lab import REPOSITORY, SMALL_SUITE, lab_hosts, make_lab

pytestmark = pytest.mark.slow

LABS = sorted(folder.parent for folder in (REPOSITORY / "inventories").glob("*/drops"))
SHIPPED = [(lab, drop.stem) for lab in LABS for drop in sorted((lab / "drops").glob("*.yml"))]
REFUSED = {"qla1040": "no tool here is known to set it"}
"""A drop that is shipped to show why it is refused."""
FROM_VENDORS = "' does not exist"
"""Images and packages of vendors, which the example lab names and nobody may ship."""


def resolved(lab: Path, bench: str, drop: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What a drop declares for the drives of a bench, and why it cannot be applied."""
    try:
        return resolve_drop([lab], bench, drop)["declared"]["drive"]["settings"], []
    except BadInputError as problem:
        return {}, problem.problems


@pytest.mark.parametrize(("lab", "drop"), SHIPPED, ids=[f"{lab.name}-{drop}" for lab, drop in SHIPPED])
def test_a_shipped_drop_applies_as_a_whole(lab: Path, drop: str) -> None:
    for name, bench in load_inventory([lab]).benches.items():
        declared, problems = resolved(lab, name, drop)
        assert all(REFUSED.get(drop, FROM_VENDORS) in told for told in problems), problems
        assert bool(problems) >= (drop in REFUSED)
        for adapter in bench.adapters.values():
            for drive in adapter.claimed:
                settings = declared.get(drive.id, {})
                assert adapter.driver not in FIXED_DEPTH or "queue_depth" not in settings
                if adapter.driver == "nvme":
                    assert "queue_depth" not in settings
                    assert not [each for each in settings if SETTINGS[f"drive.{each}"].field and each != "WCE"]


def refusal(folder: Path, candidate: dict[str, Any], driver: str, **request: Any) -> str:
    hosts = lab_hosts({"sym": 4, "old": 2})
    hosts["b1"]["storqual_adapters"]["old"]["driver"] = driver
    with pytest.raises(BadInputError) as refused:
        make_plan(make_lab(folder, hosts=hosts, candidate=candidate, **request))
    (told,) = refused.value.problems
    return told


@pytest.mark.parametrize("depth", [2, 16])
def test_a_queue_depth_that_a_driver_does_not_let_be_changed_is_refused_before_a_bench_is_touched(
    depth: int, tmp_path: Path
) -> None:
    told = refusal(tmp_path, {"drive": {"queue_depth": depth}}, "am53c974")
    assert "drive.queue_depth is declared for old of b1, whose driver am53c974 does not let it be changed" in told
    others = {"drive": {"on": {"adapter": "sym"}, "queue_depth": 16}}
    hosts = lab_hosts({"sym": 4, "old": 2})
    hosts["b1"]["storqual_adapters"]["old"]["driver"] = "am53c974"
    assert make_plan(make_lab(tmp_path, hosts=hosts, candidate=others)).batches


def test_a_queue_depth_beyond_what_an_adapter_was_seen_to_take_in_all_is_refused(tmp_path: Path) -> None:
    address = lab_hosts({"sym": 4, "old": 2})["b1"]["storqual_adapters"]["old"]["pci"]
    facts = tmp_path / "facts.json"
    adapter = {"pci": address, "hosts": [{"can_queue": 7}]}
    facts.write_text(json.dumps({"b1": {"adapters": [adapter], "drives": []}}), encoding="utf-8")
    told = refusal(tmp_path, {"drive": {"queue_depth": 16}}, "esp_scsi", facts=facts)
    assert "drive.queue_depth is declared for old of b1, which takes 7 commands in all for its drives" in told
    small = {"drive": {"queue_depth": 7}}
    assert make_plan(make_lab(tmp_path, hosts=lab_hosts({"sym": 4, "old": 2}), candidate=small, facts=facts)).batches


@pytest.mark.parametrize("setting", ["queue_depth", "DRA"])
def test_what_nvme_drives_do_not_have_is_refused(setting: str, tmp_path: Path) -> None:
    told = refusal(tmp_path, {"drive": {setting: 1}}, "nvme")
    assert f"drive.{setting} is declared for old of b1, whose drives are NVMe and do not have it" in told


SECTIONS: dict[str, Any] = {
    "driver": {"kernel": {"package": "linux-image-6.1.0-47-amd64"}},
    "drive": {"queue_depth": 4},
    "nvram": {"max_tags": 8},
    "raid": {"level": 0, "tool": "storcli"},
    "os": {"nr_requests": 64},
}


def desks(tmp_path: Path, candidate: dict[str, Any]) -> PlanRequest:
    adapters = lab_hosts({"sym": 3}) | lab_hosts({}, kind="local", bench="desk")
    drive = {"file": str(tmp_path / "targets" / "drive0"), "size": "64MiB", "claim": True}
    adapters["desk"]["storqual_adapters"] = {"files": {"model": "files", "drives": [drive]}}
    adapters["desk"]["storqual_state_dir"] = str(tmp_path)
    suite = SMALL_SUITE.replace("drives: [1, 2]", "drives: [1]")
    return make_lab(tmp_path, hosts=adapters, candidate=candidate, suite=suite)


@pytest.mark.parametrize("section", SECTIONS)
def test_settings_for_a_bench_of_files_are_refused_and_never_passed_over(section: str, tmp_path: Path) -> None:
    """By the plan, and by `setup`, which applied nothing and called the bench as declared."""
    request = desks(tmp_path, {section: SECTIONS[section]})
    for refusing in (lambda: make_plan(request), lambda: resolve_drop(request.inventories, "desk", "candidate")):
        with pytest.raises(BadInputError) as refused:
            refusing()
        assert [told for told in refused.value.problems if "candidate.yml:1: bench desk has files for drives" in told]
        assert f"section `{section}`" in str(refused.value)
    resolve_drop(request.inventories, "b1", "candidate")


def test_settings_for_the_other_benches_are_named_and_a_bench_of_files_is_left_alone(tmp_path: Path) -> None:
    request = desks(tmp_path, {"drive": {"on": {"adapter": "sym"}, "queue_depth": 4}})
    assert make_plan(request).batches
    declared = resolve_drop(request.inventories, "desk", "candidate")["declared"]
    assert declared["drive"]["settings"] == {}


def test_limits_of_an_emulator_are_refused_for_a_bench_that_is_none_by_setup_as_well(tmp_path: Path) -> None:
    request = desks(tmp_path, {"virtual": {"iops_limit": {"all": 100}}})
    with pytest.raises(BadInputError, match="`virtual` is for virtual benches only, and bench desk is local"):
        resolve_drop(request.inventories, "desk", "candidate")
