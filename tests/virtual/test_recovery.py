# SPDX-License-Identifier: Apache-2.0
"""The kernel's own recovery on its scsi_debug: each step made to fail, proven, and outlasted by data and drive."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.run import read_run
from storqual.run.turns import turns_of
from tests.support.live_bench import REPOSITORY, over_ssh, power_fixture, qualified

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

INVENTORY = REPOSITORY / "inventories" / "virtual_debug"
STATE = REPOSITORY / ".cache" / "bench" / "vdebug"
LOGGED = {
    "busy": ("statusbyte=0x8",),
    "task_set_full": ("statusbyte=0x28",),
    "read_error": ("Unrecovered read error",),
    "write_error": ("sense_key=0x4",),
    "flush_error": ("fail command 0x35",),
    "command_timeout": ("timeout command 0x2a", "retry aborted command"),
    "failed_abort": ("cmd abort failed", "Sending BDR"),
    "failed_lun_reset": ("BDR failed", "Sending target reset"),
    "failed_target_reset": ("Target reset failed", "Sending BRST"),
    "failed_bus_reset": ("Sending BRST", "Sending HRST"),
    "drive_offline": ("Sending HRST", "Device offlined"),
}
"""What the kernel must have logged of each fault."""
LEFT = "; ".join(
    (
        "grep -h '^[0-9]' /sys/kernel/debug/scsi_debug/*/error",
        "cat /sys/kernel/debug/scsi_debug/target*/fail_reset /proc/sys/dev/scsi/logging_level",
        "cat /sys/block/sda/device/timeout /sys/block/sda/device/eh_timeout /sys/block/sda/device/state",
        "ls /run/storqual-rules",
    )
)


powered = power_fixture(INVENTORY, STATE)


def told(record: dict[str, Any], what: str) -> list[str]:
    return [text for _, kind, text in record["timeline"] if kind == what]


def test_every_step_of_the_recovery_fails_as_it_is_told_and_no_data_is_lost(tmp_path: Path) -> None:
    code, said, path = qualified(tmp_path, INVENTORY, "--candidate", "backport", "--suite", "recovery", "--seed", 1)
    files = turns_of(read_run(path))
    assert {record["fault"] for record in files.records} == {*LOGGED}, said[-3000:]
    for record in files.records:
        fault = record["fault"]
        assert record["outcome"] == "passed", (fault, record["reasons"])
        proofs = [text.partition(":")[0] for text in told(record, "proof")]
        assert proofs[:2] == ["injected", "counted"]
        assert proofs[-1] == "running"
        assert ("escalated" in proofs) == (
            fault.startswith("failed_") or fault in ("command_timeout", "drive_offline")
        )
        kernel = "\n".join(told(record, "kernel"))
        assert [text for text in LOGGED[fault] if text not in kernel] == []
        failing = fault in ("read_error", "write_error", "flush_error", "drive_offline")
        assert (record["errors"] > 0) == failing, (fault, record["errors"])
    verdict = json.loads((path / "verdict.json").read_text(encoding="utf-8"))
    assert (code, verdict["outcome"]) == (0, "PASS"), said[-3000:]
    page = (path / "report.html").read_text(encoding="utf-8")
    assert "no hardware was tested by it" in page
    left = over_ssh(STATE, "vdebug", f"{LEFT}; true", limit_s=120)
    # the campaign has put the former kernel back, whose scsi_debug takes no rules
    assert left.split() == ["0", "30", "10", "running"], left


def test_a_kernel_without_rules_leaves_every_trial_void_and_passes_none(tmp_path: Path) -> None:
    suite = tmp_path / "own.suite.yml"
    suite.write_text(
        "name: own\nloads: {mine: {region: 2MiB, time: 2s}}\n"
        "trials:\n  - {fault: failed_abort, load: mine}\n  - {fault: busy, load: mine}\n",
        encoding="utf-8",
    )
    code, said, path = qualified(tmp_path, INVENTORY, "--candidate", "stable", "--suite", suite)
    records = turns_of(read_run(path)).records
    assert [record["outcome"] for record in records] == ["void", "void"], said[-3000:]
    assert all("error is not there" in record["reasons"][0] for record in records)
    assert code == 2


def test_an_expectation_that_is_wrong_on_purpose_fails(tmp_path: Path) -> None:
    """Reads that fail where none may, and a recovery that takes longer than it may."""
    suite = tmp_path / "own.suite.yml"
    suite.write_text(
        "name: own\nloads: {mine: {region: 2MiB, time: 2s}}\ntrials:\n"
        "  - {fault: read_error, load: mine, expect: {errors: none}}\n"
        "  - {fault: failed_abort, load: mine, expect: {recovery: 60s, stall: 1s}}\n",
        encoding="utf-8",
    )
    code, said, path = qualified(tmp_path, INVENTORY, "--candidate", "backport", "--suite", suite)
    reasons = {record["fault"]: record["reasons"] for record in turns_of(read_run(path)).records}
    assert [one for one in reasons["read_error"] if "I/Os failed, none may" in one], said[-3000:]
    assert [one for one in reasons["failed_abort"] if "slow recovery" in one]
    assert code == 1
