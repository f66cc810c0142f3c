# SPDX-License-Identifier: Apache-2.0
"""Tests of the chart of features: read from the bench, else declared, else not known; never blank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from storqual.plan import make_plan
from storqual.study.findings import NOT_KNOWN, features
from tests.support.make_lab import lab_hosts, make_lab

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
        "environment": {"before": {"adapters": {alias: found for alias, (_, found) in columns.items()}}},
    }
    return {row.name: row.values for row in features(bench, list(columns))}


def test_what_the_bench_read_stands_before_what_the_inventory_declares() -> None:
    found = chart(one=({"boot": BOOT}, FOUND), two=({"boot": BOOT}, {}), three=({}, {}))
    assert found["BIOS"] == ("6.04", "4.03 (inventory)", NOT_KNOWN)
    assert found["BIOS options"] == ("boot id, LUNs (inventory)", "boot id, LUNs (inventory)", NOT_KNOWN)
    assert found["Boot from CD-ROM"] == ("yes (inventory)", "yes (inventory)", NOT_KNOWN)
    assert found["Boot from drives"] == ("any id (inventory)", "any id (inventory)", NOT_KNOWN)
    assert found["CD-ROM drives"] == ("1", NOT_KNOWN, NOT_KNOWN)
    assert found["Commands per adapter"] == ("32", NOT_KNOWN, NOT_KNOWN)
    assert found["Queue depth per drive"] == ("4 or 8", NOT_KNOWN, NOT_KNOWN)


def test_a_feature_that_is_not_there_is_told_and_is_not_unknown() -> None:
    found = chart(one=({"boot": {"cdrom": False}}, {"rom": False, "cdroms": 0}), two=({}, {"rom": True}))
    assert found["BIOS"] == ("no ROM on the card", "a ROM, its version not known")
    assert found["Boot from CD-ROM"] == ("no (inventory)", NOT_KNOWN)
    assert found["CD-ROM drives"] == ("none", NOT_KNOWN)


def test_what_the_inventory_declares_of_the_boot_code_reaches_the_chart_of_a_run(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 2})
    hosts["b1"]["storqual_adapters"]["sym"]["boot"] = BOOT
    document = make_plan(make_lab(tmp_path, hosts=hosts)).document
    found = {row.name: row.values for row in features(document["benches"]["b1"], ["sym"])}
    assert found["Boot from drives"] == ("any id (inventory)",)


def test_no_cell_is_ever_blank() -> None:
    for columns in ({"one": ({}, {})}, {"one": ({"boot": BOOT}, FOUND), "two": ({}, {"drives": {"a": {}}})}):
        assert all(all(values) for values in chart(**columns).values())
