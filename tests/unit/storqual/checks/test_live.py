# SPDX-License-Identifier: Apache-2.0
"""A bench that answers now: what its own kernel shows, through the facts that a bench really gives."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.checks.seen import NotJudgedError
from storqual.robot_library import StorqualLibrary
from storqual_core.facts.bench_facts import read_facts
from tests.support.bench_tree import SIZE, STATE, BenchTree

KNOWN, STRANGER = "0x5000c50000000001", "0x5000c50000000002"


class Bench:
    """One bench with two drives, of which its inventory knows one; it counts how often it is asked, and for what."""

    def __init__(self, folder: Path) -> None:
        self.tree = BenchTree(folder).adapter().scsi("sda", wwn=KNOWN).scsi("sdb", wwn=STRANGER, serial="SER2")
        self.tree.write("/sys/block/sda/device/queue_depth", "16\n")
        self.tree.write("/sys/block/sda/device/scsi_disk/2:0:0:0/cache_type", "write back\n")
        self.kernel_log: list[str] | None = ["sd 2:0:0:0: [sda] Attached SCSI disk"]
        self.proven: bool | None = True
        self.asked: list[dict[str, Any]] = []

    def answer(
        self, playbook: str, sources: object, *, limit: str | None = None, variables: dict[str, Any]
    ) -> dict[str, Any]:
        assert (playbook, limit) == ("facts.yml", "b1")
        depths = variables["look_depths"]
        self.asked.append(depths)
        settings = [
            {"name": "drive.queue_depth", "drive": name, "declared": depth["queue_depth"], "read_back": 16}
            | {"proven": self.proven, "proof": "16 in flight at most"}
            for name, depth in depths.items()
        ]
        facts = read_facts(self.tree.machine, state_dir=STATE)
        return {"b1": {"facts": facts, "kernel_log": self.kernel_log, "settings": settings}}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path / "bench")
    monkeypatch.setattr("storqual.bench.ansible_run.ask_benches", made.answer)
    return made


@pytest.fixture
def library(tmp_path: Path) -> StorqualLibrary:
    drive = {"wwn": KNOWN, "serial": "SER1", "model": "ST336607LW", "size": SIZE, "revision": "0007", "claim": True}
    adapter = {"model": "Symbios", "driver": "sym53c8xx", "pci": "0000:00:05.0", "drives": [drive]}
    variables = {"storqual_kind": "hardware", "storqual_adapters": {"sym": adapter}}
    inventory = {"benches": {"hosts": ["b1"]}, "_meta": {"hostvars": {"b1": variables}}}
    (tmp_path / "lab.json").write_text(json.dumps(inventory))
    return StorqualLibrary(inventory=str(tmp_path / "lab.json"), bench="b1")


def test_one_look_serves_all_keywords_until_somebody_looks_again(bench: Bench, library: StorqualLibrary) -> None:
    library.every_adapter_should_run_its_driver()
    library.every_expected_drive_should_be_in_place()
    library.drive_write_cache_should_be(KNOWN, "on")
    library.drive_queue_depth_should_be(KNOWN, 16)
    library.drive_firmware_levels_should_match_the_inventory()
    assert bench.asked == [{}]
    bench.tree.write("/sys/block/sda/device/queue_depth", "4\n")
    library.drive_queue_depth_should_be(KNOWN, 16)
    library.look_at_the_bench()
    with pytest.raises(AssertionError, match="queue depth of 4, not 16"):
        library.drive_queue_depth_should_be(KNOWN, 16)


def test_a_drive_without_an_inventory_entry_is_a_stranger(bench: Bench, library: StorqualLibrary) -> None:
    with pytest.raises(AssertionError) as failed:
        library.no_unknown_drive_should_be_attached()
    assert STRANGER in str(failed.value)
    assert "vda" not in str(failed.value)


def test_the_kernel_log_since_boot_fails_a_bench(bench: Bench, library: StorqualLibrary) -> None:
    library.kernel_log_should_be_clean()
    bench.kernel_log = ["sym0: SCSI BUS reset detected"]
    library.look_at_the_bench()
    with pytest.raises(AssertionError, match="SCSI BUS reset"):
        library.kernel_log_should_be_clean()
    bench.kernel_log = None
    library.look_at_the_bench()
    with pytest.raises(NotJudgedError, match="dmesg was refused"):
        library.kernel_log_should_be_clean()


def test_a_throttle_is_watched_and_never_set(bench: Bench, library: StorqualLibrary) -> None:
    library.execution_throttle_should_be_in_effect("sym", 16)
    assert bench.asked == [{}, {KNOWN: {"queue_depth": 16}}]
    with pytest.raises(AssertionError, match="is 16, not 4"):
        library.execution_throttle_should_be_in_effect("sym", 4)
    assert len(bench.asked) == 2
    bench.proven = None
    with pytest.raises(NotJudgedError, match="not shown to be in effect"):
        library.execution_throttle_should_be_in_effect("sym", 16)
