# SPDX-License-Identifier: Apache-2.0
"""Errors that drives have on record: those of claimed drives, and no count that healthy use raises."""

from __future__ import annotations

from typing import Any

from storqual_core.facts.preflight import read_smart_errors
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError
from tests.support.tool_fixtures import fixture_text

FACTS = {
    "drives": [
        {"id": "0x5000c50015ea0000", "serial": "A1", "node": "/dev/sda"},
        {"id": "0x5000c50015ea0001", "serial": "A2", "node": "/dev/sdb"},
        {"id": "0x5000c50015ea0002", "serial": "A3", "node": "/dev/sdc"},
    ]
}
ADAPTERS = {
    "sym": {
        "drives": [
            {"wwn": "0x5000c50015ea0000", "claim": True},
            {"serial": "A2", "claim": True},
            {"serial": "A3"},
            {"serial": "GONE", "claim": True},
        ]
    }
}


def answer(argv: list[str], **_: Any) -> Completed:
    """Smartctl on drives of SCSI and ATA; the second one does not open."""
    name = {"/dev/sda": "scsi.json", "/dev/sdb": "open_failed.json", "/dev/sdc": "ata.json"}[argv[-1]]
    return Completed(tuple(argv), 0, fixture_text("smartctl", name), "", 0.1)


def test_claimed_drives_are_asked_and_one_that_cannot_be_read_is_left_out() -> None:
    """Counts of errors only; what the link counts, the kernel keeps."""
    found = read_smart_errors(FACTS, ADAPTERS, runner=answer)
    assert found == {"0x5000c50015ea0000": {"grown_defects": 3, "read.total_uncorrected_errors": 2}}


def test_attributes_of_errors_are_told_from_those_of_use() -> None:
    claims = {"ahci": {"drives": [{"serial": "A3", "claim": True}]}}
    assert read_smart_errors(FACTS, claims, runner=answer) == {"0x5000c50015ea0002": {"attribute.5": 8}}


def test_a_bench_without_smartctl_has_nothing_on_record() -> None:

    def missing(argv: list[str], **_: Any) -> Completed:
        raise MissingToolError("smartctl is not installed")

    assert read_smart_errors(FACTS, ADAPTERS, runner=missing) == {}
