# SPDX-License-Identifier: Apache-2.0
"""The guard refuses every target with something to lose, says why, and lets the claimed empty drive through."""

from pathlib import Path

import pytest

from storqual_core.guard import hold
from storqual_core.guard.claims import VolumeClaim
from storqual_core.guard.signatures import AREA, Ledger
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import GuardRefusalError, StorqualError
from tests.support.bad_states import BAD_STATES, written
from tests.support.bench_tree import MIB, SIZE, STATE, BenchTree, claim

pytestmark = pytest.mark.slow

SECOND = {"wwn": "0x5000c50000000002", "serial": "SER2"}


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with one adapter, the claimed empty drive sda, and an unclaimed drive sdb."""
    return BenchTree(tmp_path).adapter().scsi("sda").scsi("sdb", **SECOND)


def refusals(tree: BenchTree, *claims: object, purpose: str = "write", **options: object) -> list[str]:
    found = hold.check(
        claims or (claim(),),  # type: ignore[arg-type]
        purpose=purpose,
        state_dir=STATE,
        machine=tree.machine,
        **options,  # type: ignore[arg-type]
    )
    return [str(refusal) for refusal in found]


@pytest.mark.parametrize("state", BAD_STATES)
def test_a_drive_with_something_to_lose_is_refused_and_nothing_is_written(tree: BenchTree, state: str) -> None:
    arrange, expected = BAD_STATES[state]
    arrange(tree)
    written(tree)
    said = refusals(tree)
    assert any(expected in sentence for sentence in said), said
    assert all(sentence.startswith("drive 0x5000c50000000001 (") and "; " in sentence for sentence in said)
    assert all("\n" not in sentence for sentence in said)
    with (
        pytest.raises(GuardRefusalError),
        hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine),
    ):
        pytest.fail("the drive was given out")
    assert written(tree) == []


def test_a_zfs_label_is_known(tmp_path: Path) -> None:
    """Eight times one uberblock in each of the two labels at the front; a small drive is no pool for libblkid."""
    size = 64 * MIB
    tree = BenchTree(tmp_path).adapter().scsi("sda", size=size)
    uberblock = (0x00BAB10C).to_bytes(8, "little") + (5000).to_bytes(8, "little") + bytes(1008)
    for place in (128 << 10, 384 << 10):
        tree.fill("sda", place, uberblock * 8)
    assert "it holds a file system (zfs_member)" in refusals(tree, claim(size=size))[0]


WRONG_CLAIMS = {
    "other-wwn-same-serial": (
        claim(wwn="0x5000c500000000ff"),
        "sda has its serial but says WWN 0x5000c50000000001, the claim says WWN 0x5000c500000000ff",
    ),
    "other-serial": (claim(serial="SER9"), "its serial is 'SER1', the claim says 'SER9'"),
    "no-serial": (claim(serial=""), "its serial is 'SER1', the claim does not state it"),
    "no-wwn": (claim(wwn=""), "its WWN is '0x5000c50000000001', the claim does not state it"),
    "other-model": (claim(model="ST336607LC"), "its model is 'ST336607LW', the claim says 'ST336607LC'"),
    "other-vendor": (claim(vendor="HITACHI"), "its vendor is 'SEAGATE', the claim says 'HITACHI'"),
    "other-size": (claim(size=SIZE - 512), "its size is 20971520 bytes, the claim says 20971008"),
    "two-drives-mixed-up": (claim(serial="SER2"), "its serial is 'SER1', the claim says 'SER2'"),
    "another-bench": (
        claim(wwn="0x5000c500000000aa", serial="ELSEWHERE"),
        "no drive of this bench has WWN 0x5000c500000000aa; check that the claim is in the right bench's inventory",
    ),
    "serial-in-another-case": (claim(serial="ser1"), "its serial is 'SER1', the claim says 'ser1'"),
}


@pytest.mark.parametrize("case", WRONG_CLAIMS)
def test_a_claim_that_is_not_exactly_the_drive_is_refused(tree: BenchTree, case: str) -> None:
    wrong, expected = WRONG_CLAIMS[case]
    said = refusals(tree, wrong)
    assert any(expected in sentence for sentence in said), said


def test_all_wrong_claims_are_refused_at_once(tree: BenchTree) -> None:
    tree.mount("8:32", "/data")
    said = refusals(tree, claim(model="X"), claim(**SECOND))
    assert len(said) == 2
    assert "its model is" in said[0]
    assert "it is mounted on /data" in said[1]


def test_one_drive_claimed_twice_is_refused(tree: BenchTree) -> None:
    """Two names for one drive would be two targets that overwrite each other."""
    said = refusals(tree, claim(), claim(id="again"))
    assert any("it is the same device as drive 0x5000c50000000001" in sentence for sentence in said)


def test_the_claimed_empty_drive_is_accepted_stamped_and_known_again(tree: BenchTree) -> None:
    written(tree)
    assert refusals(tree) == []
    assert written(tree) == []
    with hold.hold([claim()], purpose="write", state_dir=STATE, run="run-1", machine=tree.machine) as held:
        assert dict(held) == {claim().id: "/dev/sda"}
        assert held.stamped == (claim().id,)
        assert written(tree) == ["sda"]
        assert (held.window(claim().id).offset, held.window(claim().id).size) == (MIB, SIZE - 2 * MIB)
    window = held.window(claim().id)
    tree.fill("sda", window.offset, b"\xa5" * 4096).fill("sda", window.offset + window.size - 4096, b"\xa5" * 4096)
    written(tree)
    with hold.hold([claim()], purpose="write", state_dir=STATE, run="run-2", machine=tree.machine) as held:
        assert held.stamped == ()
    assert written(tree) == []


@pytest.mark.parametrize("purpose", ["read", "settings"])
def test_what_writes_nothing_does_not_look_at_contents_and_does_not_stamp(tree: BenchTree, purpose: str) -> None:
    tree.fill("sda", 0, b"x")
    written(tree)
    with hold.hold([claim()], purpose=purpose, state_dir=STATE, machine=tree.machine) as held:
        assert held[claim().id] == "/dev/sda"
    assert written(tree) == []
    tree.mount("8:16", "/data")
    assert refusals(tree, purpose=purpose)


def test_no_option_switches_the_guard_off() -> None:
    import inspect  # noqa: PLC0415

    for function in (hold.check, hold.hold):
        assert not {"force", "skip", "unsafe", "yes"} & set(inspect.signature(function).parameters)


def test_a_purpose_nobody_defined_is_an_error(tree: BenchTree) -> None:
    with pytest.raises(KeyError):
        refusals(tree, purpose="wirte")


@pytest.mark.parametrize("purpose", ["firmware", "format", "delete_volume"])
def test_what_a_claim_does_not_cover_needs_a_consent_that_names_the_drive(tree: BenchTree, purpose: str) -> None:
    assert "there is no consent to it; add -e consent=00000001" in refusals(tree, purpose=purpose)[0]
    assert refusals(tree, purpose=purpose, consent=["00001"])
    assert refusals(tree, purpose=purpose, consent=["000002"])
    assert refusals(tree, purpose=purpose, consent=[""])
    assert refusals(tree, purpose=purpose, consent=["000001"]) == []
    tree.scsi("sdc", wwn="0x5000c51100000001", serial="SER3")
    assert "also names 0x5000c51100000001" in refusals(tree, purpose=purpose, consent=["00000001"])[0]
    assert refusals(tree, purpose=purpose, consent=["0000000001"]) == []


def test_release_and_retake_let_a_tool_in_and_look_again(tree: BenchTree) -> None:
    """What the tool was to make is known by its UUID; anything else is refused on the way back."""

    def blkid(*_: object, **__: object) -> Completed:
        return Completed(("blkid",), 0, f"UUID={made}\nTYPE=xfs\nUSAGE=filesystem\n", "", 0.0)

    with (
        pytest.MonkeyPatch.context() as patch,
        hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine, runner=blkid) as held,
    ):
        patch.setattr("storqual_core.tools.blkid._LIBRARY", "no-such-library.so")
        made = held.announce(claim().id)
        assert made in Ledger.read(tree.machine.path(STATE)).made[claim().id]
        assert held.release(claim().id) == "/dev/sda"
        tree.fill("sda", 0, b"XFSB" + bytes(8188) + b"x")
        assert held.retake(claim().id) == "/dev/sda"
        held.stamp(claim().id)
        made = "11111111-1111-1111-1111-111111111111"
        held.release(claim().id)
        with pytest.raises(GuardRefusalError, match="holds a file system \\(xfs\\)"):
            held.retake(claim().id)


def test_stamp_clears_the_guards_areas_and_forgets_what_was_made(tree: BenchTree) -> None:
    with hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine) as held:
        made = held.announce(claim().id)
        held.stamp(claim().id)
    assert made not in str(Ledger.read(tree.machine.path(STATE)).made)
    assert refusals(tree) == []


def test_a_drive_that_was_lent_is_taken_back_and_one_that_was_not_is_left_alone(tree: BenchTree) -> None:
    with hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine) as held:
        with pytest.raises(StorqualError, match="it was never lent"):
            held.reclaim(claim().id)
        held.lend(claim().id)
        tree.fill("sda", 0, b"\xa5" * AREA).fill("sda", -AREA, b"\xa5" * AREA)
    # a reset in the middle: the data is that of the program, and of nobody else
    assert refusals(tree) == []
    with hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine) as held:
        held.reclaim(claim().id)
    assert (refusals(tree), Ledger.read(tree.machine.path(STATE)).lent) == ([], frozenset())
    tree.fill("sda", 0, b"\xa5" * AREA)
    assert "holds data of an unknown kind in its first 8 MiB" in refusals(tree)[0]


def test_a_drive_cannot_be_lent_for_a_purpose_that_writes_nothing(tree: BenchTree) -> None:
    with (
        hold.hold([claim()], purpose="read", state_dir=STATE, machine=tree.machine) as held,
        pytest.raises(StorqualError, match="not held for writing"),
    ):
        held.lend(claim().id)


def test_a_drive_that_is_not_held_cannot_be_stamped_or_released(tree: BenchTree) -> None:
    with hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine) as held:
        for act in (held.stamp, held.release, held.announce, held.lend):
            with pytest.raises(StorqualError, match="not among the drives that are held"):
                act("0x5000c50000000002")


def volume(tree: BenchTree, *, own: bool = True) -> VolumeClaim:
    """An md array over sda and sdb that storqual made (or did not)."""
    ledger, name = Ledger.read(tree.machine.path(STATE)).announce(claim().id)
    if own:
        Ledger(ledger.path, {member: frozenset({name}) for member in (claim().id, SECOND["wwn"])}).written()
    tree.stacked("md9", ["sda", "sdb"], level="raid1")
    return VolumeClaim("vol0", "/dev/md9", name, (claim().id, SECOND["wwn"]))


def test_a_volume_that_storqual_made_of_claimed_drives_is_given_out_instead_of_its_members(tree: BenchTree) -> None:
    """Its members are in use by it and by nothing else."""
    made = volume(tree)
    claims = [claim(), claim(**SECOND)]
    with hold.hold(claims, purpose="write", state_dir=STATE, machine=tree.machine, volumes=[made]) as held:
        assert dict(held) == {"vol0": "/dev/md9"}
        assert held.window("vol0").size == SIZE
    assert any("md array md9 (raid1) is made of it" in sentence for sentence in refusals(tree, *claims))


def test_a_volume_with_an_unclaimed_member_or_of_somebody_else_is_refused(tree: BenchTree) -> None:
    made = volume(tree, own=False)
    said = refusals(tree, claim(), volumes=[VolumeClaim("vol0", made.path, made.uuid, (claim().id,))])
    assert any("it is also on sdb, which the claim does not name" in sentence for sentence in said)
    said = refusals(tree, claim(), claim(**SECOND), volumes=[made])
    assert any("volume vol0: storqual did not make it" in sentence for sentence in said)


def test_a_hostile_device_text_is_only_text_in_a_sentence(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sda", model="\x1b[2J<b>{{7*7}}\n", serial="A\x00B\xff")
    said = refusals(tree)
    assert all(sentence.isprintable() and sentence.isascii() for sentence in said)
    assert any("its model is '\\x1b[2J<b>{{7*7}}" in sentence for sentence in said)


def test_the_guards_area_is_the_first_and_the_last_mib() -> None:
    """The window that fio gets is what other parts of the project compute with."""
    assert AREA == MIB
