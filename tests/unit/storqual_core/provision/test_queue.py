# SPDX-License-Identifier: Apache-2.0
"""The kernel's queue of each drive, on a tree like sysfs."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.direct_reads import random_reads
from storqual_core.kit.errors import ToolError
from storqual_core.kit.results import PartialError
from storqual_core.kit.settings import section_of
from storqual_core.provision.adapter_queue import ThrottleRequest, provision_throttle
from storqual_core.provision.drives import DriveSettings, is_page
from storqual_core.provision.engine import SettingPlan, StepOutcome, apply, plan
from storqual_core.provision.options import OptionsBench
from storqual_core.provision.queue import Queues
from tests.support.adapter_bench import AdapterBench

TARGET = DriveTarget("0x5000", "sdb", "/dev/sg1")


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """One drive behind an adapter that takes sixteen commands, and one virtio disk without a device queue."""
    device = tmp_path / "devices" / "pci0" / "host3" / "target3:0:0" / "3:0:0:0"
    host = tmp_path / "devices" / "pci0" / "host3" / "scsi_host" / "host3"
    for folder in (device, host, tmp_path / "block" / "sdb" / "queue", tmp_path / "block" / "vda" / "queue"):
        folder.mkdir(parents=True)
    (host / "can_queue").write_text("16\n")
    (device / "queue_depth").write_text("8\n")
    (tmp_path / "block" / "sdb" / "device").symlink_to(device)
    for node in ("sdb", "vda"):
        queue = tmp_path / "block" / node / "queue"
        (queue / "scheduler").write_text("none [mq-deadline] bfq\n")
        (queue / "nr_requests").write_text("64\n")
        (queue / "read_ahead_kb").write_text("128\n")
    return tmp_path


def read_plan(declared: dict, sysfs: Path, target: DriveTarget = TARGET) -> SettingPlan[DriveTarget]:
    return plan(DriveSettings(sysfs=str(sysfs)), target.id, target, declared)


def run_step(declared: dict, sysfs: Path, *, check: bool = False, kept: list | None = None) -> StepOutcome:
    """Carry the step out for one drive."""
    memory = [] if kept is None else kept
    found = read_plan(declared, sysfs)
    return apply(DriveSettings(sysfs=str(sysfs)), [found], save=None if check else memory.append)


def test_values_are_set_and_read_back(sysfs: Path) -> None:
    """A plain file stands in for the kernel, so the scheduler's brackets go."""
    kept: list = []
    outcome = run_step({"queue_depth": 4, "nr_requests": 32, "scheduler": "none"}, sysfs, kept=kept)
    assert {entry.name: (entry.before, entry.read_back) for entry in outcome.settings} == {
        "drive.queue_depth": (8, 4),
        "drive.nr_requests": (64, 32),
        "drive.scheduler": ("mq-deadline", "none"),
    }
    found = {"scheduler": "mq-deadline", "queue_depth": 8, "nr_requests": 64}
    assert kept == [{f"drive.{name}@0x5000": value for name, value in found.items()}]
    assert not run_step({"queue_depth": 4, "nr_requests": 32, "scheduler": "none"}, sysfs).steps


def test_the_scheduler_is_written_before_the_requests(sysfs: Path) -> None:
    steps = run_step({"nr_requests": 32, "scheduler": "none"}, sysfs).steps
    assert [step.split()[1] for step in steps] == ["scheduler", "nr_requests"]


def test_check_mode_touches_nothing(sysfs: Path) -> None:
    outcome = run_step({"queue_depth": 4}, sysfs, check=True)
    assert outcome.result()["changed"]
    assert (sysfs / "block" / "sdb" / "device" / "queue_depth").read_text() == "8\n"


def test_a_depth_above_the_adapters_is_refused_before_any_write(sysfs: Path) -> None:
    """The kernel would answer with an error number."""
    with pytest.raises(ToolError, match="0x5000: queue depth 17 is declared, its adapter takes 16 commands in total"):
        run_step({"queue_depth": 17, "scheduler": "none"}, sysfs)
    assert "mq-deadline" in (sysfs / "block" / "sdb" / "queue" / "scheduler").read_text()


def test_a_driver_without_the_attribute_is_named(sysfs: Path) -> None:
    found = read_plan({"queue_depth": 4}, sysfs, DriveTarget("V", "vda", "/dev/vda"))
    assert found.problems == ("V: the driver of vda has no queue_depth, 4 is declared",)


def test_a_driver_that_fixes_the_attribute_is_named_before_any_write(sysfs: Path) -> None:
    (sysfs / "block" / "sdb" / "device" / "queue_depth").chmod(0o444)
    with pytest.raises(ToolError, match="queue_depth is 8, and the driver of sdb does not let it be changed"):
        run_step({"queue_depth": 4, "scheduler": "none"}, sysfs)
    assert "mq-deadline" in (sysfs / "block" / "sdb" / "queue" / "scheduler").read_text()
    assert not run_step({"queue_depth": 8}, sysfs).steps


def test_a_value_that_the_kernel_changes_is_a_failure(sysfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storqual_core.provision.queue.write_attribute", lambda path, _value: path.write_text("2\n"))
    with pytest.raises(PartialError, match=r"drive\.queue_depth was set to 4 and reads back 2") as caught:
        run_step({"queue_depth": 4}, sysfs)
    assert caught.value.settings[0].changed


def test_a_refusal_of_the_kernel_is_a_sentence(sysfs: Path) -> None:
    """Nothing else is known of it."""
    path = sysfs / "block" / "sdb" / "queue" / "read_ahead_kb"
    path.unlink()
    path.mkdir()
    with pytest.raises(ToolError, match=r"cannot be read|refused"):
        Queues(str(sysfs)).write(TARGET, {"read_ahead_kb": 64})


def test_unreadable_text_is_a_sentence(sysfs: Path) -> None:
    (sysfs / "block" / "sdb" / "queue" / "nr_requests").write_text("many\n")
    (problem,) = read_plan({"nr_requests": 32}, sysfs).problems
    assert "'many' where a number was expected" in problem


def test_all_drive_settings_without_a_field_are_the_queues() -> None:
    queue = {name for name in section_of("drive") if not is_page(name)}
    assert {"scheduler", "queue_depth", "nr_requests", "read_ahead_kb", "nomerges"} <= queue
    assert "WCE" not in queue


PLACES = ("0000:00:05.0", "0000:00:06.0")
PARAMETERS = {"vmw_pvscsi": "ring_pages", "mpt3sas": "max_queue_depth"}


def shown(folder: Path, module: str, declared: int, *can_queue: int | None) -> Any:
    """The record of the option, on a bench whose adapters say so many commands (None: they say nothing)."""
    bench = AdapterBench(folder / "root", modules={module: {PARAMETERS[module]: "0"}})
    for number, (pci, commands) in enumerate(zip(PLACES, can_queue, strict=False), start=2):
        bench.adapter(pci, module)
        host = f"/sys/devices/pci0000:00/{pci}/host{number}/scsi_host/host{number}"
        bench.tree.write(f"{host}/proc_name", module + "\n")
        if commands is not None:
            bench.tree.write(f"{host}/can_queue", f"{commands}\n")
        bench.tree.link(f"/sys/class/scsi_host/host{number}", host)
    request = ThrottleRequest({}, {module: {PARAMETERS[module]: declared}}, {}, str(folder / "state"), "r1")
    (entry,) = provision_throttle(request, OptionsBench(bench, bench.machine))["settings"]
    return entry["proven"], entry["proof"]


@pytest.mark.parametrize(
    ("module", "declared", "can_queue", "proven", "told"),
    [
        ("vmw_pvscsi", 2, (64, 64), True, "can_queue, 64 declared: host2 64, host3 64"),
        ("vmw_pvscsi", 2, (64, 256), False, "host3 256"),
        # this driver takes each command of its ring: fewer are another ring
        ("vmw_pvscsi", 2, (32,), False, "host2 32"),
        ("mpt3sas", 64, (65,), False, "host2 65"),
        ("mpt3sas", 64, (54,), True, "host2 54; mpt3sas keeps commands for itself, or its firmware takes no more"),
        ("mpt3sas", 64, (54, None), None, "the kernel does not show can_queue of every SCSI host of it"),
        # left to the driver: nothing is limited
        ("mpt3sas", -1, (9000,), True, "the loaded module shows it"),
    ],
)
def test_the_limit_is_shown_by_can_queue(
    tmp_path: Path, module: str, declared: int, can_queue: tuple[int | None, ...], proven: bool | None, told: str
) -> None:
    found, proof = shown(tmp_path, module, declared, *can_queue)
    assert found is proven
    assert told in proof


def test_every_path_is_read_until_the_body_ends(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        Path(path).write_bytes(bytes(65536))
    before = threading.active_count()
    with random_reads(paths, 3) as tally:
        assert threading.active_count() > before
        threading.Event().wait(0.05)
    assert threading.active_count() == before
    assert all(tally.reads[path] > 0 for path in paths)
    assert tally.failures == []


def test_a_read_that_fails_is_told_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    for path in (good, bad):
        Path(path).write_bytes(bytes(65536))
    preadv = os.preadv

    def read(handle: int, buffers: Any, offset: int) -> int:
        if Path(f"/proc/self/fd/{handle}").readlink() == Path(bad):
            raise OSError(errno.EIO, "Input/output error")
        return preadv(handle, buffers, offset)

    monkeypatch.setattr("os.preadv", read)
    with random_reads([bad, good], 1) as tally:
        threading.Event().wait(0.05)
    assert tally.reads[bad] == 0
    assert tally.reads[good] > 0
    assert tally.failures == [f"{bad}: Input/output error"]


def test_a_path_that_does_not_open_is_a_sentence_before_anything_is_read(tmp_path: Path) -> None:
    before = threading.active_count()
    with (
        pytest.raises(ToolError, match="nowhere cannot be read: No such file"),
        random_reads([str(tmp_path / "nowhere")], 2),
    ):
        pytest.fail("the body must not run")
    assert threading.active_count() == before
