# SPDX-License-Identifier: Apache-2.0
"""What the guard decides from one reading of a machine, and how a drive that it lets through is taken and stamped."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from storqual_core.guard import hold
from storqual_core.guard.claims import VolumeClaim
from storqual_core.guard.rules import PURPOSES, decide
from storqual_core.guard.signatures import STAMP, Content, FormatSignature, objection
from storqual_core.guard.snapshot import GuardSnapshot, VolumeState, look
from storqual_core.kit.errors import GuardRefusalError, StorqualError
from tests.support.bench_tree import SIZE, STATE, BenchTree, claim

DRIVE = "0x5000c50000000001"


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with one adapter and the claimed empty drive sda."""
    return BenchTree(tmp_path).adapter().scsi("sda")


@pytest.fixture
def snapshot(tree: BenchTree) -> GuardSnapshot:
    found = look(tree.machine, [claim()], state_dir=STATE)
    assert decide([claim()], found, purpose="write") == []
    return found


def said(snapshot: GuardSnapshot, purpose: str) -> list[str]:
    return [str(refusal) for refusal in decide([claim()], snapshot, purpose=purpose, consent=[DRIVE])]


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_system_disk_is_refused_for_every_purpose(snapshot: GuardSnapshot, purpose: str) -> None:
    assert "it is a system disk: it carries /" in said(replace(snapshot, system={"sda": "carries /"}), purpose)[0]


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_machine_about_which_nothing_is_known_is_refused_for_every_purpose(
    snapshot: GuardSnapshot, purpose: str
) -> None:
    (refusal,) = said(replace(snapshot, problem="/proc is not there"), purpose)
    assert "it cannot be examined: /proc is not there" in refusal


@pytest.mark.parametrize("purpose", [name for name, rule in PURPOSES.items() if rule.contents])
def test_content_that_could_not_be_read_is_not_empty(snapshot: GuardSnapshot, purpose: str) -> None:
    assert any("what is on it could not be read" in one for one in said(replace(snapshot, contents={}), purpose))


@pytest.mark.parametrize(("problem", "erases"), [("cannot be opened: Input/output error", False), ("", True)])
def test_nobody_is_told_to_erase_a_drive_that_gives_nothing_out(
    snapshot: GuardSnapshot, problem: str, erases: bool
) -> None:
    contents = dict.fromkeys(snapshot.contents, Content((), "data", "data", problem))
    (refusal,) = said(replace(snapshot, contents=contents), "write")
    assert ("zero the first" in refusal) == erases


@pytest.mark.parametrize(("start", "end"), [("foreign", "stamp"), ("stamp", "foreign"), ("foreign", "foreign")])
def test_the_stamp_of_another_drive_at_either_end_is_a_copy_of_that_drive(start: str, end: str) -> None:
    assert "it is a copy of that drive" in objection(Content((), start, end))


def test_what_is_served_from_a_path_that_is_gone_may_be_any_drive(tree: BenchTree) -> None:
    tree.write("/sys/kernel/config/nvmet/subsystems/one/namespaces/1/device_path", "/dev/gone\n")
    tree.write("/sys/kernel/config/nvmet/subsystems/one/namespaces/1/enable", "1\n")
    found = look(tree.machine, [claim()], state_dir=STATE)
    (refusal,) = said(found, "write")
    assert (
        "it cannot be ruled out that a program writes to it: an NVMe target serves /dev/gone, which leads" in refusal
    )
    assert said(found, "read") == []


@pytest.mark.parametrize(
    ("made", "unsteady", "reason"),
    [("aa:bb", False, ""), ("cc:dd", False, "storqual did not make it"), ("aa:bb", True, "when it was read again")],
)
def test_a_volume_is_storquals_own_by_its_uuid_and_not_by_another_on_the_same_drives(
    snapshot: GuardSnapshot, made: str, unsteady: bool, reason: str
) -> None:
    volume = VolumeClaim(id="/dev/md127", path="/dev/md127", uuid="aa:bb", members=(DRIVE,))
    state = VolumeState("md127", "/dev/md127", ("sda",), "", Content((), "empty", "empty", unsteady=unsteady))
    found = replace(snapshot, volumes={volume.id: state}, made={DRIVE: (made,)})
    refusals = [str(r) for r in decide([claim()], found, purpose="write", volumes=[volume]) if "volume" in str(r)]
    assert [reason in refusal for refusal in refusals] == ([True] if reason else [])


@pytest.mark.parametrize(("made", "named"), [("aa:bb", True), ("aa:bb", False), ("cc:dd", True)])
def test_only_a_member_of_our_own_volume_may_change_while_it_is_read(
    snapshot: GuardSnapshot, made: str, named: bool
) -> None:
    own = VolumeClaim(id="/dev/md127", path="/dev/md127", uuid="aa:bb", members=(DRIVE,))
    content = Content((FormatSignature("raid", "linux_raid_member", "aa:bb"),), "data", "foreign", unsteady=True)
    state = VolumeState("md127", "/dev/md127", ("sda",), "", None)
    found = replace(snapshot, volumes={own.id: state}, made={DRIVE: (made,)}, contents={DRIVE: content})
    told = [str(each) for each in decide([claim()], found, purpose="write", volumes=[own] if named else [])]
    unsteady = [text for text in told if "when it was read again" in text]
    assert bool(unsteady) == (made != "aa:bb" or not named)
    # a drive that reads otherwise each time is none to be erased
    assert all("repair drive or path" in text for text in unsteady)


def test_a_drive_is_opened_so_that_nobody_else_can_have_it(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    real = os.open

    def watched(path: str, flags: int, *rest: int, **named: int) -> int:
        if str(path).endswith("/dev/sda"):
            opened.append(flags)
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", watched)
    with hold.hold([claim()], purpose="settings", state_dir=STATE, machine=tree.machine):
        pass
    assert opened
    assert all(flags & os.O_EXCL for flags in opened[-1:])


def test_a_held_drive_on_which_something_appeared_is_not_cleared(tree: BenchTree) -> None:
    with hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine) as held:
        tree.fill("sda", 1080, b"\x53\xef")
        before = (tree.root / "dev/sda").read_bytes()
        with pytest.raises(GuardRefusalError):
            held.stamp(DRIVE)
        assert (tree.root / "dev/sda").read_bytes() == before


@pytest.mark.parametrize("purpose", ["read", "settings"])
def test_a_drive_that_is_not_held_for_writing_is_not_stamped(tree: BenchTree, purpose: str) -> None:
    with (
        hold.hold([claim()], purpose=purpose, state_dir=STATE, machine=tree.machine) as held,
        pytest.raises(StorqualError, match="it is not held for writing"),
    ):
        held.stamp(DRIVE)
    assert not any((tree.root / "dev/sda").read_bytes())


def test_the_end_of_a_drive_is_stamped_and_on_disk_before_its_start(
    tree: BenchTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut in between, a drive with a stamp at its start alone would look like one whose end was overwritten."""
    done: list[str] = []
    write, sync = os.pwrite, os.fsync

    def watched(descriptor: int, data: bytes, place: int) -> int:
        done.append(f"write {place}")
        return write(descriptor, data, place)

    def synced(descriptor: int) -> None:
        done.append("sync")
        sync(descriptor)

    monkeypatch.setattr(os, "pwrite", watched)
    monkeypatch.setattr(os, "fsync", synced)
    with hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine):
        pass
    assert [word for word in done if word in ("write 0", f"write {SIZE - STAMP}")] == [
        f"write {SIZE - STAMP}",
        "write 0",
    ]
    assert "sync" in done[done.index(f"write {SIZE - STAMP}") : done.index("write 0")]
