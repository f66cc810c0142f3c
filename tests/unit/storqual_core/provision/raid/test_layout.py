# SPDX-License-Identifier: Apache-2.0
"""Volumes on a synthetic bench: made behind the guard, found again, refused, restored, whole after a power cut."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from storqual_core.guard.signatures import STAMP, Ledger, read_stamp, volume_uuid
from storqual_core.kit.command import run
from storqual_core.kit.errors import BadInputError, GuardRefusalError, ToolError
from storqual_core.kit.lock import SavedState, read_saved
from storqual_core.kit.results import PartialError
from storqual_core.provision.boot import System
from storqual_core.provision.raid.layout import MEMORY, Chooser, RaidRequest, made_by, provision_volumes, volumes_of
from storqual_core.provision.restore import Tools, restore
from tests.support.bench_tree import MIB, STATE, BenchTree
from tests.support.fake_md import Array, FakeMd

pytestmark = pytest.mark.slow

IDS = [f"0x5000c5000000000{place}" for place in range(1, 6)]
SMALL = 4 * MIB
FOREIGN = "11111111-2222-3333-4444-555555555555"
VOLUME = {"adapter": "sym", "level": "5", "strip": "64k", "name": "r5", "members": IDS[:3]}


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    tree = BenchTree(tmp_path).adapter()
    for place, wwn in enumerate(IDS):
        tree.scsi(f"sd{'abcde'[place]}", wwn=wwn, serial=f"SER{place}", size=SMALL)
    return tree


@pytest.fixture
def md(tree: BenchTree) -> FakeMd:
    return FakeMd(tree)


def adapters(*, claimed: int = 5) -> dict[str, Any]:
    common = {"vendor": "SEAGATE", "model": "ST336607LW", "size": SMALL}
    drives = [
        {"wwn": wwn, "serial": f"SER{place}", **common, "claim": place < claimed} for place, wwn in enumerate(IDS)
    ]
    return {"sym": {"driver": "sym53c8xx", "drives": drives}}


def provision(md: FakeMd, *volumes: dict[str, Any], runner: Any = None, **options: Any) -> dict[str, Any]:
    state = md.tree.machine.path(STATE)
    given: dict[str, Any] = {"run": "r", "claimed": 5, "consent": (), **options}
    inventory = adapters(claimed=given.pop("claimed"))
    request = RaidRequest(volumes=volumes, adapters=inventory, state_dir=state, **given)
    # the state folder is this process' path, the guard's is the bench's
    backends = volumes_of(STATE, request.run, request.consent, machine=md.tree.machine, runner=runner or md)
    return provision_volumes(request, backends, Chooser(inventory, md.tree.machine).tool)


def put_back(md: FakeMd, runner: Any = None, *, check: bool = False) -> dict[str, Any]:
    """The restore, with the guard over drives left out: the volumes are what is looked at."""

    def volumes(_state: str, run_id: str) -> Any:
        return volumes_of(STATE, run_id, machine=md.tree.machine, runner=runner or md)

    @contextmanager
    def access(claims: Any, _state: str, _run: str) -> Any:
        yield {claim.id: None for claim in claims}

    tools = Tools(md, System(run), access=access, volumes=volumes)
    return restore(md.tree.machine.path(STATE), tools, check=check)


def content(tree: BenchTree) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((tree.root / "dev").glob("sd?"))}


def stamped(tree: BenchTree, name: str, drive: str) -> bool:
    """Whether a drive is storqual's scratch again, and no superblock is left."""
    data = (tree.root / "dev" / name).read_bytes()
    return read_stamp(data[:STAMP], drive, SMALL, end="start") == "stamp" and not any(data[STAMP : STAMP + 512])


def test_a_volume_is_made_read_back_and_found_again(md: FakeMd) -> None:
    first = provision(md, VOLUME)
    assert first["changed"]
    assert {entry["name"]: entry["read_back"] for entry in first["settings"]} == {
        "raid.level": "5",
        "raid.members": IDS[:3],
        "raid.strip": 65536,
        "raid.name": "r5",
        "raid.state": "clean",
    }
    assert all(entry["before"] is None for entry in first["settings"])
    create = next(line for line in md.seen if "--create" in line)
    assert f"--chunk=64K --bitmap=none --force --homehost=any --name=r5 --uuid={volume_uuid(IDS[:3])}" in create
    assert create.endswith("/dev/sda /dev/sdb /dev/sdc")
    md.seen.clear()
    second = provision(md, VOLUME)
    assert (second["changed"], second["drift"], second["steps"]) == (False, [], [])
    assert all(line.startswith("mdadm --detail") for line in md.seen)


@pytest.mark.parametrize(
    ("state", "progress", "goes_on"),
    [("read-auto", [0] * 4, True), ("read-auto", [], False), ("active", [9] * 4, False)],
)
def test_an_initialisation_that_waits_since_a_boot_goes_on(
    md: FakeMd, state: str, progress: list[int], goes_on: bool
) -> None:
    """An array that was assembled to be read only until it is written to would never be whole."""
    provision(md, VOLUME)
    md.arrays["md127"].progress = progress
    md.tree.write("/sys/block/md127/md/array_state", state + "\n")
    said = provision(md, VOLUME)
    assert ("sym/r5: initialise goes on" in said["steps"], "mdadm --readwrite /dev/md127" in md.seen) == (
        (goes_on,) * 2
    )
    assert said["changed"] == goes_on


def test_layouts_are_compared_not_names(md: FakeMd) -> None:
    provision(md, VOLUME)
    unnamed = {name: value for name, value in VOLUME.items() if name != "name"} | {"members": IDS[2::-1]}
    assert not provision(md, unnamed)["changed"]


def test_check_mode_shows_the_drift_and_touches_nothing(md: FakeMd) -> None:
    before = content(md.tree)
    state = sorted(Path(md.tree.machine.path(STATE)).iterdir())
    said = provision(md, VOLUME, check=True)
    assert said["changed"]
    assert "sym/r5 raid.strip: None, declared 65536" in said["drift"]
    assert "raid.level: 5" in said["diff"]["after"]
    assert content(md.tree) == before
    assert sorted(Path(md.tree.machine.path(STATE)).iterdir()) == state
    assert all(line.startswith("mdadm --detail") for line in md.seen)


def test_another_layout_of_the_same_run_takes_the_place_of_the_first(md: FakeMd) -> None:
    provision(md, VOLUME)
    other = {**VOLUME, "strip": "128k"}
    said = provision(md, other)
    assert [step.rpartition(": ")[2] for step in said["steps"]][-1] == "RAID 5 of 3 drives made"
    entry = next(entry for entry in said["settings"] if entry["name"] == "raid.strip")
    assert (entry["before"], entry["read_back"]) == (65536, 131072)


@pytest.mark.parametrize("check", [False, True])
def test_a_volume_of_somebody_needs_consent_that_names_every_member(md: FakeMd, *, check: bool) -> None:
    md.assemble(Array("/dev/md0", FOREIGN, "1", ["/dev/sda", "/dev/sdb"], [], "512K", "theirs"))
    before = content(md.tree)
    for consent in ([], ["00000001"]):
        with pytest.raises(GuardRefusalError, match="there is no consent to it; add -e consent=00000002"):
            provision(md, VOLUME, consent=consent, check=check)
    assert content(md.tree) == before
    assert not any(word in line for line in md.seen for word in ("--stop", "--create"))


def test_with_consent_the_volume_of_somebody_goes_and_its_drives_are_cleared(md: FakeMd) -> None:
    md.assemble(Array("/dev/md0", FOREIGN, "1", ["/dev/sda", "/dev/sdb"], [], "512K", "theirs"))
    md.tree.fill("sda", 1500 << 10, b"somebody's data")
    said = provision(md, VOLUME, consent=["00000001", "00000002"])
    assert said["steps"][0] == "/dev/md0 stopped"
    assert [array.level for array in md.arrays.values()] == ["5"]
    assert FOREIGN not in str(Ledger.read(md.tree.machine.path(STATE)).made)


def test_a_volume_that_is_kept_from_an_earlier_run_needs_consent_too(md: FakeMd) -> None:
    provision(md, VOLUME)
    Path(md.tree.machine.path(STATE), "saved.json").unlink()
    with pytest.raises(GuardRefusalError, match="there is no consent"):
        provision(md, {**VOLUME, "level": "0"}, run="later")


def test_consent_does_not_reach_drives_that_nobody_claims(md: FakeMd) -> None:
    md.assemble(Array("/dev/md0", FOREIGN, "1", ["/dev/sda", "/dev/sde"], [], "512K", "theirs"))
    with pytest.raises(ToolError, match="is in its way and is also on sde, which no claim covers"):
        provision(md, VOLUME, claimed=4, consent=["00000001", "00000005"])


def test_a_mounted_volume_is_refused_even_with_consent(md: FakeMd) -> None:
    md.assemble(Array("/dev/md0", FOREIGN, "1", ["/dev/sda", "/dev/sdb"], [], "512K", "theirs"))
    md.tree.mount(md.tree.machine.nodes["/dev/md0"].number, "/srv")
    with pytest.raises(GuardRefusalError, match="mounted on /srv"):
        provision(md, VOLUME, consent=["00000001", "00000002"])
    assert not any("--stop" in line for line in md.seen)


def test_a_member_with_data_is_refused(md: FakeMd) -> None:
    md.tree.fill("sdb", 1500 << 10, b"precious")
    with pytest.raises(GuardRefusalError, match="holds data of an unknown kind"):
        provision(md, VOLUME)
    assert not any("--create" in line for line in md.seen)
    assert read_saved(Path(md.tree.machine.path(STATE))) is None


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        ({**VOLUME, "level": "7"}, "raid.level: '7' is not one of"),
        ({**VOLUME, "chunk": 4}, "raid.chunk is not a known setting"),
        ({"adapter": "sym", "level": "5"}, "found no members, expected a level and members"),
        ({**VOLUME, "members": [*IDS[:2], "0x5000c500ffffffff"]}, "no adapter of this bench has a claim on it"),
        ({**VOLUME, "tool": "mdadmm"}, "raid.tool 'mdadmm' makes no volumes"),
    ],
)
def test_what_is_wrong_with_a_declaration_is_told_before_anything_is_read(
    md: FakeMd, volume: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInputError, match=words):
        provision(md, volume)
    assert md.seen == []


def test_a_drive_is_in_one_volume_only(md: FakeMd) -> None:
    with pytest.raises(BadInputError) as told:
        provision(md, VOLUME, {**VOLUME, "name": "again"})
    assert len(told.value.problems) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"write_policy": "wb"}, "md has no write_policy: md writes through"),
        ({"rebuild_rate": 30}, "md has no rebuild_rate"),
        ({"initialisation": "fast"}, "md initialises a volume fully or not at all"),
        ({"level": "6"}, "RAID 6 needs 4 members, 3 are named"),
        ({"level": "50"}, "md makes no RAID 50"),
        ({"name": "a b"}, "md takes names of up to 31 letters"),
        ({"level": "0", "hot_spares": IDS[3:4]}, "RAID 0 cannot use hot spares"),
    ],
)
def test_what_md_does_not_have_is_refused_with_what_to_do_instead(
    md: FakeMd, change: dict[str, Any], words: str
) -> None:
    for check in (True, False):
        with pytest.raises(ToolError, match=words):
            provision(md, {**VOLUME, **change}, check=check)
    assert not any("--create" in line for line in md.seen)


def test_a_degraded_volume_is_a_failure_that_names_what_failed(md: FakeMd) -> None:
    provision(md, VOLUME)
    md.arrays["md127"].state = "clean, degraded"
    md.arrays["md127"].lost = ("/dev/sdb",)
    with pytest.raises(ToolError, match="volume /dev/md127 is clean, degraded; replace what failed"):
        provision(md, VOLUME)
    md.arrays["md127"].lost, md.arrays["md127"].progress = (), [50] * 8
    assert provision(md, VOLUME)["progress"] == {"sym/r5": {"initialise": 50.0}}


def test_what_is_under_way_is_told_as_progress(md: FakeMd) -> None:
    md.resync = (12, 12, 12, 40, 40, 40, 40)
    assert provision(md, VOLUME)["progress"] == {"sym/r5": {"initialise": 12.0}}
    assert provision(md, VOLUME)["progress"]["sym/r5"]["initialise"] == 40.0


def test_a_bitmap_is_added_to_a_living_volume(md: FakeMd) -> None:
    """Nothing else of it changes."""
    provision(md, VOLUME)
    said = provision(md, {**VOLUME, "bitmap": "internal"})
    assert said["steps"] == ["sym/r5: bitmap set to internal"]
    assert md.arrays["md127"].bitmap == "internal"


def test_hot_spares_are_part_of_the_layout(md: FakeMd) -> None:
    spared = {**VOLUME, "hot_spares": [IDS[3]]}
    provision(md, spared)
    assert "--spare-devices=1" in next(line for line in md.seen if "--create" in line)
    assert not provision(md, spared)["changed"]
    assert provision(md, {**VOLUME, "hot_spares": []})["changed"]


def test_only_removes_what_the_run_made_and_nobody_declares_any_more(md: FakeMd) -> None:
    """Another configuration of the campaign has no volumes; a volume of somebody else stays."""
    md.assemble(Array("/dev/md0", FOREIGN, "1", ["/dev/sdd", "/dev/sde"], [], "512K", "theirs"))
    provision(md, VOLUME)
    assert provision(md)["changed"] is False
    said = provision(md, only=True)
    assert said["changed"]
    assert [array.name for array in md.arrays.values()] == ["theirs"]
    assert stamped(md.tree, "sda", IDS[0])


def test_restore_takes_away_what_the_run_made(md: FakeMd) -> None:
    provision(md, VOLUME)
    seen = put_back(md, check=True)
    assert not seen["restored"]
    assert list(md.arrays)
    said = put_back(md)
    assert said["restored"]
    assert md.arrays == {}
    assert all(stamped(md.tree, f"sd{'abc'[place]}", IDS[place]) for place in range(3))
    assert read_saved(Path(md.tree.machine.path(STATE))) is None
    assert put_back(md)["changed"] is False
    assert provision(md, VOLUME)["changed"]


def test_a_mirror_copies_stamps_between_its_members_and_is_taken_away_all_the_same(md: FakeMd) -> None:
    provision(md, {**VOLUME, "level": "1"})
    assert put_back(md)["restored"]
    assert all(stamped(md.tree, f"sd{'abc'[place]}", IDS[place]) for place in range(3))


def test_restore_gives_a_volume_that_was_there_its_policy_back(md: FakeMd) -> None:
    provision(md, VOLUME)
    Path(md.tree.machine.path(STATE), "saved.json").unlink()
    provision(md, {**VOLUME, "bitmap": "internal"}, run="later")
    assert put_back(md)["restored"]
    assert md.arrays["md127"].bitmap == "none"


def test_a_failing_mdadm_leaves_drives_that_the_restore_clears(md: FakeMd) -> None:
    md.fail = "--create"
    with pytest.raises(PartialError, match="could not be made on md: mdadm: --create failed for a reason"):
        provision(md, VOLUME)
    md.fail = ""
    assert put_back(md)["restored"]
    assert not any(IDS[0] in drive for drive in Ledger.read(md.tree.machine.path(STATE)).made)


def test_volumes_that_an_earlier_run_made_are_not_this_runs() -> None:
    values = {f"{MEMORY}@aa:bb": {"tool": "mdadm"}, "drive.WCE@0x5": 1}
    saved = SavedState(run="earlier", since="2026-11-20T10:00:00Z", boot_id="b", values=values)
    assert made_by(saved, "this") == {}
    assert made_by(None, "this") == {}
    assert made_by(saved, "earlier") == {"aa:bb": {"tool": "mdadm"}}
