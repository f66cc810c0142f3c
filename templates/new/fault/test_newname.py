# SPDX-License-Identifier: Apache-2.0
"""newname: what is reported is what was read back."""

from pathlib import Path

import pytest

from storqual_core.data.faults import WAYS
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import run
from storqual_core.turns import newname
from storqual_core.turns.bench_faults import ACTS, missing
from storqual_core.turns.drive_faults import Aim
from tests.support.bench_tree import BenchTree

_, WAY = WAYS["newname_by_bench"]


@pytest.fixture
def aim(tmp_path: Path) -> Aim:
    """A drive with a read-ahead of 128 KiB."""
    machine = BenchTree(tmp_path).adapter("0000:00:05.0").scsi("sda", hctl="2:0:0:0", serial="S1").machine
    queue = Path(machine.path("/sys/block/sda/queue"))
    queue.mkdir(parents=True, exist_ok=True)
    (queue / "read_ahead_kb").write_text("128\n")
    drive = next(drive for drive in read_drives(machine) if drive.name == "sda")
    return Aim(machine, run, drive, away_s=0.0, limit_s=0.2)


def seen_by(aim: Aim) -> frozenset[str]:
    seen: list[str] = []
    ACTS[WAY.name](aim, lambda name, _sentence: seen.append(name))
    return frozenset(seen)


def test_it_is_proven_and_the_drive_is_left_as_it_was(aim: Aim) -> None:
    assert missing(WAY, aim.machine, aim.drive) == ""
    assert WAY.unproven(seen_by(aim), ()) == []
    assert aim.machine.text("/sys/block/sda/queue/read_ahead_kb") == "128"


def test_a_kernel_that_does_nothing_proves_nothing(aim: Aim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newname, "write_attribute", lambda _path, _value: None)
    assert WAY.unproven(seen_by(aim), ()) == ["read_back"]


def test_a_bench_without_the_attribute_cannot_bring_it_about(aim: Aim) -> None:
    Path(aim.machine.path("/sys/block/sda/queue/read_ahead_kb")).unlink()
    assert "read_ahead_kb is not there" in missing(WAY, aim.machine, aim.drive)
