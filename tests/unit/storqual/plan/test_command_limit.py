# SPDX-License-Identifier: Apache-2.0
"""Tests of `driver.can_queue`: one word for what each driver calls the commands that it holds for an adapter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.plan import make_plan
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import lab_hosts, make_lab


def options(folder: Path, driver: dict[str, Any], *modules: str) -> dict[str, Any]:
    """The module options of a planned drop, for adapters with these drivers."""
    hosts = lab_hosts(dict.fromkeys((f"a{number}" for number in range(len(modules))), 2))
    for adapter, module in zip(hosts["b1"]["storqual_adapters"].values(), modules, strict=True):
        adapter["driver"] = module
    campaign = make_plan(replace(make_lab(folder, hosts=hosts, candidate={"driver": driver}), baseline="candidate"))
    found: dict[str, Any] = campaign.document["provision"]["b1"]["candidate"]["driver"]["options"]
    return found


def test_it_becomes_the_option_of_each_driver_beside_those_that_are_declared(tmp_path: Path) -> None:
    declared = {"can_queue": 64, "options": {"mpt3sas": {"max_sectors": 128}}}
    assert options(tmp_path, declared, "mpt3sas", "vmw_pvscsi") == {
        "mpt3sas": {"max_sectors": "128", "max_queue_depth": "64"},
        "vmw_pvscsi": {"ring_pages": "2"},
    }


@pytest.mark.parametrize(
    ("driver", "module", "told"),
    [
        ({"can_queue": 64}, "sym53c8xx", r"sym53c8xx has no parameter for the commands of an adapter .*mpt3sas"),
        ({"can_queue": 48}, "vmw_pvscsi", r"vmw_pvscsi takes 32 to 1024 in steps of 32"),
        ({"can_queue": 16}, "lpfc", r"lpfc takes 32 to 8192$"),
        (
            {"can_queue": 64, "options": {"lpfc": {"lpfc_hba_queue_depth": 32}}},
            "lpfc",
            r"means lpfc\.lpfc_hba_queue_depth=64, but the drop declares 32",
        ),
    ],
)
def test_what_a_driver_cannot_have_is_refused_before_a_bench_is_touched(
    tmp_path: Path, driver: dict[str, Any], module: str, told: str
) -> None:
    with pytest.raises(BadInputError, match=told):
        options(tmp_path, driver, module)
