# SPDX-License-Identifier: Apache-2.0
"""File systems on held drives: never where the guard has an objection, and never left behind."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual_core.guard import hold as guard
from storqual_core.guard.claims import Claim, VolumeClaim
from storqual_core.guard.signatures import AREA, Ledger, volume_uuid, window
from storqual_core.kit.command import Runner
from storqual_core.kit.errors import GuardRefusalError, ToolError
from storqual_core.kit.lock import hold_lock, read_saved
from storqual_core.turns.batch_file import FileSystemAsk, parse_batch, part_bytes, read_file_system
from storqual_core.turns.file_systems import FileSystems, Making, file_systems_of
from storqual_core.turns.fio_job import FioTarget
from storqual_core.turns.targets import HeldTargets, TargetDevice
from tests.support.batches import launch_batch
from tests.support.bench_tree import MIB, STATE, BenchTree
from tests.support.fake_md import Array, FakeMd
from tests.support.fake_parts import FakeParts

WWNS = ("0x5000c50000000001", "0x5000c50000000002")
SIZE = 512 * MIB
XFS, EXT4 = FileSystemAsk("xfs", 8 * MIB), FileSystemAsk("ext4", 8 * MIB)


class Rig:
    """Two drives of a fixture bench that the guard holds, and the file systems on them."""

    def __init__(self, folder: Path) -> None:
        self.tree = BenchTree(folder / "tree").adapter()
        for place, wwn in enumerate(WWNS):
            self.tree.scsi(f"sd{'ab'[place]}", wwn=wwn, serial=f"S{place}", size=SIZE)
        self.tools = FakeParts(self.tree)
        self.claims = tuple(
            Claim(wwn, wwn, f"S{place}", "SEAGATE", "ST336607LW", SIZE) for place, wwn in enumerate(WWNS)
        )
        self.saved: list[str] = []
        self.filled: list[str] = []
        self.points = folder / "points"
        self.points.mkdir()
        self.mounted_device: str | None = None
        room = window(SIZE)
        self.disks = dict(zip(WWNS, ("sda", "sdb"), strict=True))
        self.windows = {
            wwn: FioTarget(wwn, f"/dev/{disk}", room.offset, room.size) for wwn, disk in self.disks.items()
        }

    def hold(self) -> guard.Hold:
        """The guard's hold on both; a context."""
        return guard.hold(  # type: ignore[return-value]
            self.claims, purpose="write", state_dir=STATE, run="r", machine=self.tree.machine, runner=self.tools
        )

    def systems(self, held: guard.Hold | None) -> FileSystems:
        bench = Making(self.tools, self.tree.machine, self.points, self.separate, self.device_of)
        write = self.filled.extend
        return FileSystems(held, self.windows, self.disks, bench, save=self.save, write_files=write)

    def separate(self, runner: Runner) -> None:
        runner(["separate"])

    def device_of(self, point: Path) -> str:
        return self.mounted_device or self.tree.machine.text(f"/sys/class/block/{point.name}/dev")

    def save(self, drive: str) -> None:
        """Remember a drive; the kernel knows of no part of it yet."""
        self.saved.append(drive)
        self.tools.calls.append(["save"])

    @property
    def parts(self) -> list[str]:
        return [
            name
            for name in self.tree.machine.names("/sys/class/block")
            if name.startswith("sd") and name[-1].isdigit()
        ]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def held(rig: Rig) -> Iterator[guard.Hold]:
    with rig.hold() as hold:  # type: ignore[attr-defined]
        yield hold


def test_nothing_is_mounted_where_the_guard_objects_after_mkfs(rig: Rig, held: guard.Hold) -> None:
    rig.tools.then["mkfs.xfs"] = lambda: rig.tree.fill("sda", 8192, b"somebody's data")
    with pytest.raises(GuardRefusalError, match="holds data of an unknown kind"):
        rig.systems(held).aim(WWNS[:1], XFS)
    assert "mount" not in rig.tools.tools


def test_nothing_is_done_to_a_drive_that_shows_somebody_elses_part(rig: Rig, held: guard.Hold) -> None:
    """Whoever told the kernel of it wants it."""
    rig.tools.add("sda", 1, 4096)
    with pytest.raises(ToolError, match="part sda1 of sda was not made by storqual"):
        rig.systems(held).aim(WWNS[:1], XFS)
    assert not {"addpart", "delpart", "mkfs.xfs", "mount"} & set(rig.tools.tools)
    assert rig.parts == ["sda1"]


def test_what_is_no_held_drive_gets_no_file_system(rig: Rig, held: guard.Hold) -> None:
    with pytest.raises(ToolError, match="x cannot carry a file system"):
        rig.systems(held).aim(["x"], XFS)
    with pytest.raises(ToolError, match="cannot carry a file system"):
        rig.systems(None).aim(WWNS[:1], XFS)
    with pytest.raises(ToolError, match="ext4 with its file takes 1025 MiB, it has 510 MiB"):
        rig.systems(held).aim(WWNS[:1], FileSystemAsk("ext4", 512 * MIB))
    assert rig.tools.tools == []


def test_a_mount_of_another_device_is_undone(rig: Rig, held: guard.Hold) -> None:
    rig.mounted_device = "9:9"
    with pytest.raises(ToolError, match="a device other than /dev/sda1 is mounted there"):
        rig.systems(held).aim(WWNS[:1], XFS)
    assert rig.tools.tools[-3:] == ["mount", "umount", "delpart"]
    assert rig.parts == []


@pytest.mark.parametrize("tool", ["addpart", "mkfs.ext4", "mount"])
def test_a_step_that_fails_leaves_the_drive_held_and_without_a_part(rig: Rig, held: guard.Hold, tool: str) -> None:
    rig.tools.fails[tool] = ["it broke"]
    with pytest.raises(ToolError, match=f"`{tool} .*it broke"):
        rig.systems(held).aim(WWNS[:1], EXT4)
    assert rig.parts == []
    assert held.release(WWNS[0]) == "/dev/sda"


def test_a_drive_is_remembered_before_the_first_step_on_it(rig: Rig, held: guard.Hold) -> None:
    rig.systems(held).aim(WWNS[:1], XFS)
    assert rig.tools.tools == ["separate", "save", "addpart", "mkfs.xfs", "mount"]
    assert rig.saved == [WWNS[0]]


def test_fio_gets_a_file_that_was_written_on_a_part_inside_its_window(rig: Rig, held: guard.Hold) -> None:
    targets, notes = rig.systems(held).aim(WWNS, XFS)
    assert [(target.drive, target.node, target.size, target.is_file) for target in targets] == [
        (wwn, str(rig.points / f"sd{'ab'[place]}1" / "file"), 8 * MIB, True) for place, wwn in enumerate(WWNS)
    ]
    assert [target.node for target in targets if (rig.points / target.node).stat().st_size == 8 * MIB]
    assert rig.filled == list(WWNS)
    asked = next(words for words in rig.tools.calls if words[0] == "addpart")
    assert asked == ["addpart", "/dev/sda", "1", str(AREA // 512), str(part_bytes(8 * MIB) // 512)]
    assert notes == ["mkfs.xfs -q -f -K on 395 MiB, a file of 8 MiB"]


def test_a_file_system_is_made_once_and_goes_when_its_drive_is_used_otherwise(rig: Rig, held: guard.Hold) -> None:
    systems = rig.systems(held)
    systems.aim(WWNS[:1], XFS)
    systems.aim(WWNS, XFS)
    assert [tool for tool in rig.tools.tools if tool.startswith("mkfs")] == ["mkfs.xfs"] * 2
    assert rig.filled == list(WWNS)
    systems.aim(WWNS[:1], EXT4)
    assert rig.tools.tools[-6:] == ["umount", "delpart", "save", "addpart", "mkfs.ext4", "mount"]
    assert rig.parts == ["sda1", "sdb1"]
    raw, notes = systems.aim(WWNS, None)
    assert (raw, notes) == ([rig.windows[wwn] for wwn in WWNS], [])
    assert rig.parts == []


def test_closing_takes_every_one_away_and_holds_the_drives_again(rig: Rig, held: guard.Hold) -> None:
    systems = rig.systems(held)
    systems.aim(WWNS, XFS)
    rig.tools.fails["umount"] = ["target is busy"]
    with pytest.raises(ToolError, match="target is busy"):
        systems.close()
    assert len(rig.parts) == 1
    systems.close()
    assert rig.parts == []


def test_a_part_that_udev_looks_at_is_tried_again(rig: Rig, held: guard.Hold) -> None:
    systems = rig.systems(held)
    systems.aim(WWNS[:1], XFS)
    rig.tools.fails["delpart"] = ["delpart: failed to remove partition: Device or resource busy"] * 2
    systems.close()
    assert rig.tools.tools[-5:] == ["delpart", "udevadm", "delpart", "udevadm", "delpart"]
    assert rig.parts == []


def test_what_a_block_file_says_of_a_file_system_is_checked() -> None:
    """Kind and whole MiB; nothing else."""
    problems: list[str] = []
    assert read_file_system({"kind": "xfs", "file_bytes": 8 * MIB}, "w", problems) == XFS
    assert read_file_system(None, "w", problems) is None
    assert problems == []
    for wrong in ({"kind": "btrfs", "file_bytes": MIB}, {"kind": "xfs"}, "xfs", {"kind": "xfs", "file_bytes": 5}):
        assert read_file_system(wrong, "w", problems) is None
    assert len(problems) == 4
    assert "file_bytes: found '5', expected a whole number from 1048576" in problems[-1]


MEMBERS = ("0x5000c50000000003", "0x5000c50000000004")
VOLUME, MADE = "sym/volume1", volume_uuid(MEMBERS)


def striped(folder: Path) -> tuple[Rig, guard.Hold]:
    """A bench with an array of two more drives that storqual made; the guard's hold on all, a context."""
    rig = Rig(folder)
    claims = {}
    for name, wwn in zip(("sdc", "sdd"), MEMBERS, strict=True):
        rig.tree.scsi(name, wwn=wwn, serial=name, size=SIZE)
        claims[wwn] = Claim(wwn, wwn, name, "SEAGATE", "ST336607LW", SIZE)
    FakeMd(rig.tree).assemble(Array("/dev/md127", MADE, "0", ["/dev/sdc", "/dev/sdd"], [], "64K", "v"))
    Ledger.read(rig.tree.machine.path(STATE)).announce(*MEMBERS, name=MADE)
    rig.claims += tuple(claims.values())
    rig.disks[VOLUME] = "md127"
    rig.windows[VOLUME] = FioTarget(VOLUME, "/dev/md127", 0, 2 * SIZE)
    hold = guard.hold(
        rig.claims,
        purpose="write",
        state_dir=STATE,
        run="r",
        volumes=[VolumeClaim(VOLUME, "/dev/md127", MADE, MEMBERS)],
        machine=rig.tree.machine,
        runner=rig.tools,
    )
    return rig, hold  # type: ignore[return-value]


def test_a_volume_carries_a_file_system_as_a_drive_does_and_is_held_again_afterwards(tmp_path: Path) -> None:
    rig, hold = striped(tmp_path)
    with hold as held:  # type: ignore[attr-defined]
        systems = rig.systems(held)
        (target,), _ = systems.aim([VOLUME], XFS)
        assert (target.node, target.size) == (str(rig.points / "md127p1" / "file"), 8 * MIB)
        asked = next(words for words in rig.tools.calls if words[0] == "addpart")
        assert asked == ["addpart", "/dev/md127", "1", str(AREA // 512), str(part_bytes(8 * MIB) // 512)]
        systems.aim(WWNS[:1], XFS)
        systems.aim([VOLUME], None)
        assert rig.tools.tools[-2:] == ["umount", "delpart"]
        assert "md127p1" not in rig.tree.machine.names("/sys/class/block")
        systems.close()
        assert held.release(VOLUME) == "/dev/md127"


def test_a_part_of_a_volume_leaves_the_first_mib_alone_and_needs_room_behind_it(tmp_path: Path) -> None:
    rig, hold = striped(tmp_path)
    rig.windows[VOLUME] = FioTarget(VOLUME, "/dev/md127", 0, part_bytes(8 * MIB) + AREA - 1)
    with hold as held, pytest.raises(ToolError, match="xfs with its file takes 395 MiB, it has 394 MiB"):  # type: ignore[attr-defined]
        rig.systems(held).aim([VOLUME], XFS)


def test_of_a_volume_its_uuid_is_remembered_and_the_claims_of_its_members(tmp_path: Path) -> None:
    rig, _ = striped(tmp_path)
    drives = {wwn: {"claim": {"wwn": wwn, "serial": "S", "model": "ST336607LW", "size": SIZE}} for wwn in MEMBERS}
    volume = {"path": "/dev/md127", "uuid": MADE, "members": list(MEMBERS)}
    state = tmp_path / "state"
    names = {"run": "r", "block": "b", "bench": "b1", "session": "s1", "state_dir": str(state), "idle_s": 0.0}
    launch = {
        "index": 0,
        "adapter": "sym",
        "arm": "candidate",
        "configuration": "c",
        "point": "p",
        "n": 1,
        "switch": [],
        "drives": [VOLUME],
        "fio": {"rw": "read", "bs": 4096, "runtime_s": 1.0},
        "file_system": {"kind": "xfs", "file_bytes": 8 * MIB},
    }
    targets = {**drives, VOLUME: {"volume": volume}}
    block = parse_batch(json.dumps(launch_batch([launch], **names, targets=targets)))
    place = TargetDevice(Path("/sys/devices/virtual/block/md127"), ())
    with hold_lock(state, "r", "measuring") as lock:
        systems = file_systems_of(
            block,
            HeldTargets(rig.windows),
            {VOLUME: place},
            lock,
            tmp_path,
            stopping=lambda: False,
            runner=rig.tools,
            program="fio",
        )
        systems._save(VOLUME)
    saved = read_saved(state)
    assert saved is not None
    assert set(saved.values) == {f"file_system@{MADE}", *(f"claim@{wwn}" for wwn in MEMBERS)}
