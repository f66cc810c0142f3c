# SPDX-License-Identifier: Apache-2.0
"""Putting drives back as they were, from what was remembered."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from storqual_core.guard.signatures import AREA, Ledger, volume_uuid
from storqual_core.host.block_stack import DriveTarget, partitions
from storqual_core.kit.errors import BadInputError, GuardRefusalError, StorqualError
from storqual_core.kit.lock import LockedError, hold_lock, read_saved, remember
from storqual_core.kit.results import PartialError
from storqual_core.provision.boot import System
from storqual_core.provision.drives import DriveRequest, claim_record, claims_for, provision_drives
from storqual_core.provision.firmware.flash import FirmwareBack
from storqual_core.provision.restore import Tools, accept, remembered, restore, take_up
from tests.support.bench_tree import SIZE, BenchTree
from tests.support.fake_md import Array, FakeMd
from tests.support.fake_parts import FakeParts
from tests.support.replay import Call, Replay

WWNS = ("0x5000c50015ea0000", "0x5000c50015ea0010")
ADAPTERS = {
    "sym": {
        "drives": [
            {"wwn": wwn, "serial": f"S{place}", "vendor": "V", "model": "M", "size": "1GiB", "claim": True}
            for place, wwn in enumerate(WWNS)
        ]
        + [{"wwn": "0x5000c50015ea0020", "serial": "S3", "vendor": "V", "model": "M", "size": "1GiB"}]
    }
}
GONE: set[str] = set()


def page(value: int) -> str:
    return f"88 12 {value:02x} " + "00 " * 17


def steps_of(place: int, before: int, after: int) -> tuple[list[Call], Call, Call]:
    """Reading WCE of a drive and its mask, the write from one value to another (in bit 2), the read-back."""
    zeros = ",".join(["00"] * 17)
    read = f"sg_modes -R --control=0 --page=0x8,0x0 /dev/sg{place}"
    reads = [Call(read, page(before << 2)), Call(read.replace("control=0", "control=1"), page(0xFF))]
    contents = f"88,12,{after << 2:02x},{zeros}"
    write = Call(f"sg_wr_mode --page=8 --contents={contents} --mask=00,00,04,{zeros} /dev/sg{place}")
    return reads, write, Call(read, page(after << 2))


def commands(*values: tuple[int, int]) -> list[Call]:
    """A change of the first drives: all are read before one is written."""
    drives = [steps_of(place, *value) for place, value in enumerate(values)]
    reads = [call for found, _, _ in drives for call in found]
    return reads + [write for _, write, _ in drives] + [back for _, _, back in drives]


def one_by_one(*values: tuple[int, int]) -> list[Call]:
    """A restore of the first drives: each for itself."""
    drives = [steps_of(place, *value) for place, value in enumerate(values)]
    return [call for found, write, back in drives for call in (*found, write, back)]


@pytest.fixture
def sysfs(tmp_path: Path) -> str:
    for place in range(2):
        (tmp_path / "sys" / "block" / f"sd{place}" / "device").mkdir(parents=True)
        (tmp_path / "sys" / "block" / f"sd{place}" / "device" / "rescan").write_text("")
        (tmp_path / "sys" / "block" / f"sd{place}" / "device" / "queue_depth").write_text("8\n")
    GONE.clear()
    return str(tmp_path / "sys")


@contextmanager
def access(claims: Any, state_dir: str, run: str) -> Iterator[dict[str, DriveTarget]]:
    """The guard, which refuses drives that are gone."""
    refused = [f"drive {claim.id}: it is not on this bench" for claim in claims if claim.id in GONE]
    if refused:
        raise GuardRefusalError(refused)
    yield {
        claim.id: DriveTarget(claim.id, f"sd{WWNS.index(claim.id)}", f"/dev/sg{WWNS.index(claim.id)}")
        for claim in claims
    }


def provision(tmp_path: Path, sysfs: str, drives: dict, calls: list[Call], **more: Any) -> dict:
    replay = Replay(calls)
    request = DriveRequest(drives, ADAPTERS, str(tmp_path / "state"), "r1", **more)
    try:
        return provision_drives(request, runner=replay, sysfs=sysfs, access=access)
    finally:
        replay.done()


def put_back(tmp_path: Path, sysfs: str, calls: list[Call], *, check: bool = False) -> dict:
    """One call of the restore module's work."""
    replay = Replay(calls)
    try:
        return restore(str(tmp_path / "state"), Tools(replay, System(replay), access, sysfs), check=check)
    finally:
        replay.done()


def test_drives_are_put_back_and_then_forgotten(tmp_path: Path, sysfs: str) -> None:
    provision(tmp_path, sysfs, {wwn: {"WCE": 0} for wwn in WWNS}, commands((1, 0), (1, 0)))
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [])
    saved = read_saved(tmp_path / "state")
    assert saved is not None
    assert saved.run == "r1"
    assert saved.values[f"drive.WCE@{WWNS[1]}"] == 1
    assert saved.values[f"drive.queue_depth@{WWNS[0]}"] == 8
    result = put_back(tmp_path, sysfs, one_by_one((0, 1), (0, 1)))
    assert result["restored"]
    assert read_saved(tmp_path / "state") is None
    assert (Path(sysfs) / "block" / "sd0" / "device" / "queue_depth").read_text() == "8\n"
    assert {entry["read_back"] for entry in result["settings"]} == {1, 8}


def test_a_second_change_does_not_become_the_former_state(tmp_path: Path, sysfs: str) -> None:
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [])
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 2}}, [])
    put_back(tmp_path, sysfs, [])
    assert (Path(sysfs) / "block" / "sd0" / "device" / "queue_depth").read_text() == "8\n"


def test_a_drive_that_is_gone_does_not_keep_the_others_back(tmp_path: Path, sysfs: str) -> None:
    provision(tmp_path, sysfs, {wwn: {"queue_depth": 4} for wwn in WWNS}, [])
    GONE.add(WWNS[0])
    with pytest.raises(PartialError, match=f"drive {WWNS[0]}: it is not on this bench") as caught:
        put_back(tmp_path, sysfs, [])
    assert [entry.drive for entry in caught.value.settings] == [WWNS[1]]
    assert (Path(sysfs) / "block" / "sd1" / "device" / "queue_depth").read_text() == "8\n"
    GONE.clear()
    assert put_back(tmp_path, sysfs, [])["restored"]


def test_a_value_that_does_not_come_back_keeps_the_memory(
    tmp_path: Path, sysfs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [])
    monkeypatch.setattr("storqual_core.provision.queue.write_attribute", lambda _path, _value: None)
    with pytest.raises(PartialError, match="set to 8 and reads back 4"):
        put_back(tmp_path, sysfs, [])
    assert read_saved(tmp_path / "state") is not None


def test_check_mode_puts_nothing_back(tmp_path: Path, sysfs: str) -> None:
    """It reads, and says so."""
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [])
    result = put_back(tmp_path, sysfs, [], check=True)
    assert (result["changed"], result["restored"]) == (True, False)
    assert (Path(sysfs) / "block" / "sd0" / "device" / "queue_depth").read_text() == "4\n"


def test_a_memory_that_nothing_here_can_restore_is_named(tmp_path: Path, sysfs: str) -> None:
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [])
    path = tmp_path / "state" / "saved.json"
    body = json.loads(path.read_text())
    body["values"]["moon.phase@bench"] = 1
    path.write_text(json.dumps(body))
    with pytest.raises(PartialError, match=r"moon\.phase@bench was saved, but nothing here can restore it"):
        put_back(tmp_path, sysfs, [])
    assert (Path(sysfs) / "block" / "sd0" / "device" / "queue_depth").read_text() == "8\n"


def test_keys_are_sorted_by_section_and_owner() -> None:
    values = {"claim@a": {"model": "M"}, "drive.WCE@a": 1, "drive.WCE.saved@a": 0, "drive.queue_depth@b": 8}
    assert remembered(values, "drive") == {"a": {"WCE": 1, "WCE.saved": 0}, "b": {"queue_depth": 8}}
    assert remembered(values, "nvram") == {}


def test_check_mode_of_a_change_leaves_no_trace(tmp_path: Path, sysfs: str) -> None:
    result = provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [], check=True)
    assert result["changed"]
    assert not (tmp_path / "state").exists()


def test_a_drive_that_nobody_claimed_is_refused(tmp_path: Path, sysfs: str) -> None:
    drives = {"0x5000c50015ea0020": {"WCE": 0}, "0x5000c50015ea9999": {"WCE": 0}, WWNS[0]: {"WCE": 0}}
    with pytest.raises(BadInputError) as caught:
        provision(tmp_path, sysfs, drives, [])
    assert len(caught.value.problems) == 2
    assert all("no adapter of this bench has a claim on it" in line for line in caught.value.problems)


def test_a_file_has_no_mode_pages(tmp_path: Path, sysfs: str) -> None:
    adapters = {"disk": {"drives": [{"file": "/tmp/x", "size": "64MiB", "claim": True}]}}
    request = DriveRequest({"/tmp/x": {"WCE": 0}}, adapters, str(tmp_path / "state"), "r1")
    with pytest.raises(BadInputError, match="is a file; only a real drive has mode pages, a queue"):
        provision_drives(request, runner=Replay([]), access=access)


def test_nothing_declared_is_nothing_done(tmp_path: Path, sysfs: str) -> None:
    result = provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [], part="mode_pages")
    assert (result["changed"], result["settings"], result["steps"], result["drift"]) == (False, [], [], [])


def test_what_only_the_other_arm_declares_is_as_it_was_found(tmp_path: Path, sysfs: str) -> None:
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [])
    found = {wwn: ["queue_depth"] for wwn in WWNS}
    result = provision(tmp_path, sysfs, {}, [], as_found=found)
    assert [(entry["declared"], entry["read_back"]) for entry in result["settings"]] == [(8, 8), (None, 8)]
    assert result["changed"]
    assert not provision(tmp_path, sysfs, {}, [], as_found=found)["changed"]


def test_a_bench_that_another_run_is_changing_is_not_accepted(
    tmp_path: Path, sysfs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storqual_core.provision.restore.LOCK_WAIT_S", 0.0)
    state = tmp_path / "state"
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [])
    with hold_lock(state, "another", "measuring"), pytest.raises(LockedError):
        accept(str(state), check=False)
    assert read_saved(state) is not None


def test_an_accepted_bench_has_no_memory_but_can_still_be_put_back(tmp_path: Path, sysfs: str) -> None:
    state = str(tmp_path / "state")
    provision(tmp_path, sysfs, {WWNS[0]: {"queue_depth": 4}}, [])
    assert accept(state, check=True)["changed"]
    assert read_saved(Path(state)) is not None
    kept = accept(state, check=False)["kept"]
    assert read_saved(Path(state)) is None
    assert not accept(state, check=False)["changed"]
    take_up(state, kept)
    with pytest.raises(StorqualError, match="restore that first"):
        take_up(state, kept)
    assert put_back(tmp_path, sysfs, [])["restored"]
    assert (Path(sysfs) / "block" / "sd0" / "device" / "queue_depth").read_text() == "8\n"
    with pytest.raises(StorqualError, match="cannot be taken up"):
        take_up(state, kept)


FIRMWARE = {"version": "1.0", "kind": "adapter", "image": {"path": "/x"}}


def with_firmware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: FirmwareBack) -> list[str]:
    """A memory with firmware in it, and what comes of putting it back; the order in which things were done."""
    done = []

    def flash(*_words: Any, **_more: Any) -> FirmwareBack:
        done.append("firmware")
        return back

    monkeypatch.setattr("storqual_core.provision.restore.put_firmware_back", flash)
    monkeypatch.setattr("storqual_core.provision.restore._Restore.volumes", lambda _self: done.append("volumes"))
    with hold_lock(tmp_path / "state", "r1", "test") as lock:
        remember(lock, {"firmware.firmware@sas0": FIRMWARE})
    return done


@pytest.mark.parametrize("pending", ["reboot", "power cycle"])
def test_firmware_that_waits_for_a_restart_keeps_the_memory(
    tmp_path: Path, sysfs: str, monkeypatch: pytest.MonkeyPatch, pending: str
) -> None:
    done = with_firmware(tmp_path, monkeypatch, FirmwareBack(pending=pending, steps=["written"]))
    result = put_back(tmp_path, sysfs, [])
    assert (result["restored"], result["reboot"], result["power_cycle"]) == (False, True, pending == "power cycle")
    assert (done, result["steps"]) == (["volumes", "firmware"], ["written"])
    assert read_saved(tmp_path / "state") is not None


def test_firmware_that_is_as_it_was_is_forgotten(tmp_path: Path, sysfs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "firmware.firmware@sas0"
    with_firmware(tmp_path, monkeypatch, FirmwareBack(failures=["no image"]))
    with pytest.raises(PartialError, match="no image"):
        put_back(tmp_path, sysfs, [])
    with_firmware(tmp_path, monkeypatch, FirmwareBack(settings=[{"name": "f"}], read_back={key: FIRMWARE}))
    result = put_back(tmp_path, sysfs, [])
    assert (result["restored"], result["settings"]) == (True, [{"name": "f"}])
    assert read_saved(tmp_path / "state") is None


def test_a_failure_keeps_the_memory_though_every_value_reads_back(
    tmp_path: Path, sysfs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_back = {"firmware.firmware@sas0": FIRMWARE}
    with_firmware(tmp_path, monkeypatch, FirmwareBack(failures=["the tool ended with 1"], read_back=read_back))
    with pytest.raises(PartialError, match="the tool ended with 1"):
        put_back(tmp_path, sysfs, [])
    assert read_saved(tmp_path / "state") is not None


@pytest.mark.parametrize("left", [True, False], ids=["killed", "done"])
def test_what_a_block_left_of_a_file_system_goes_with_the_restore(tmp_path: Path, left: bool) -> None:
    tree = BenchTree(tmp_path / "tree").adapter().scsi("sd0", wwn=WWNS[0], serial="S0")
    tools = FakeParts(tree)
    if left:
        tools.add("sd0", 1, AREA // 512)
    claim = claim_record(claims_for(ADAPTERS, WWNS[:1])[0])
    with hold_lock(tmp_path / "state", "r1", "measuring") as lock:
        remember(lock, {f"claim@{WWNS[0]}": claim, f"file_system@{WWNS[0]}": None})
    kit = Tools(tools, System(tools), access, machine=tree.machine)
    restore(str(tmp_path / "state"), kit, check=True)
    assert partitions(tree.machine, "sd0") == (["sd0p1"] if left else [])
    result = restore(str(tmp_path / "state"), kit, check=False)
    assert result["restored"]
    assert partitions(tree.machine, "sd0") == []
    (entry,) = result["settings"]
    assert (entry["name"], entry["before"], entry["read_back"]) == ("file_system", "sd0p1" if left else None, None)
    assert read_saved(tmp_path / "state") is None


@pytest.mark.parametrize("stays", [True, False], ids=["the volume stays", "the volume is gone"])
def test_what_a_batch_left_of_a_file_system_on_a_volume_goes_with_the_restore(tmp_path: Path, stays: bool) -> None:
    tree = BenchTree(tmp_path / "tree").adapter()
    state, made = str(tmp_path / "state"), volume_uuid(WWNS)
    for place, wwn in enumerate(WWNS):
        tree.scsi(f"sd{place}", wwn=wwn, serial=f"S{place}")
    tools = FakeParts(tree)
    if stays:
        FakeMd(tree).assemble(
            Array("/dev/md127", made, "0", [f"/dev/sd{i}" for i, _ in enumerate(WWNS)], [], "64K", "v")
        )
        Ledger.read(tree.machine.path(state)).announce(*WWNS, name=made)
        tools.add("md127", 1, AREA // 512)
    drive = {"vendor": "SEAGATE", "model": "ST336607LW", "size": SIZE}
    claims = {f"claim@{wwn}": {"wwn": wwn, "serial": f"S{place}", **drive} for place, wwn in enumerate(WWNS)}
    with hold_lock(Path(state), "r1", "measuring") as lock:
        remember(lock, {**claims, f"file_system@{made}": None})
    kit = Tools(tools, System(tools), access, machine=tree.machine)
    restore(state, kit, check=True)
    assert partitions(tree.machine, "md127") == (["md127p1"] if stays else [])
    result = restore(state, kit, check=False)
    assert result["restored"]
    assert partitions(tree.machine, "md127") == []
    (entry,) = result["settings"]
    assert (entry["name"], entry["before"], entry["read_back"]) == ("file_system", "md127p1" if stays else None, None)
    assert read_saved(Path(state)) is None
