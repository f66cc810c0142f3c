# SPDX-License-Identifier: Apache-2.0
"""Whatever is written, and in whatever order it is named: what is declared is there, and the rest is as found."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual.plan.arms import switch_steps
from storqual.plan.resolve import Resolved
from storqual_core.host.block_stack import DriveTarget
from storqual_core.kit.errors import ToolError
from storqual_core.kit.lock import hold_lock, read_saved
from storqual_core.kit.settings import SETTINGS, disturbed_by
from storqual_core.provision.boot import System
from storqual_core.provision.drives import DriveRequest, provision_drives
from storqual_core.provision.restore import Tools, restore
from storqual_core.turns.batch_file import Batch, SwitchStep
from storqual_core.turns.fio_job import FioAsk, FioTarget
from storqual_core.turns.targets import Switcher, TargetDevice
from tests.support.bench_tree import SIZE, BenchTree
from tests.support.fake_drives import LARGEST, READ_AHEAD, SCHEDULERS, TAGS, FakeDrives
from tests.support.fake_fio import launch, make_block

pytestmark = pytest.mark.slow

WATCHED = ("scheduler", "nr_requests", "queue_depth", "read_ahead_kb", "max_sectors_kb", "nomerges", "WCE", "RCD")


class Rig:
    """Drives with their kernel, and what provisions, switches and restores them."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, requests: int = 2 * TAGS) -> None:
        self.drives = FakeDrives(BenchTree(root / "bench"), requests=requests).connect(monkeypatch)
        self.state = root / "state"
        self.found = self.now()

    @property
    def ids(self) -> list[str]:
        return [self.drives.wwn(name) for name in self.drives.names]

    def now(self) -> dict[str, dict[str, Any]]:
        return {
            self.drives.wwn(name): {each: self.drives.get(name, each) for each in WATCHED}
            for name in self.drives.names
        }

    @contextmanager
    def access(self, claims: Sequence[Any], _state_dir: str, _run: str) -> Iterator[Mapping[str, DriveTarget]]:
        """A guard that lets every claimed drive be changed."""
        yield {claim.id: self.drives.targets()[claim.id] for claim in claims}

    def provision(self, declared: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        fields = {"vendor": "SEAGATE", "model": "ST336607LW", "size": f"{SIZE >> 20}MiB", "claim": True}
        listed = [{"wwn": drive, "serial": f"S{place}", **fields} for place, drive in enumerate(self.ids)]
        request = DriveRequest(declared, {"sym": {"drives": listed}}, str(self.state), "r1", **more)
        return provision_drives(request, runner=self.drives, sysfs=self.drives.sysfs, access=self.access)

    def block(self) -> Batch:
        """A block over these drives; what it measures is nobody's matter here."""
        fields = {"vendor": "SEAGATE", "model": "ST336607LW", "size": SIZE}
        targets = {
            drive: {"claim": {"wwn": drive, "serial": f"S{place}", **fields}} for place, drive in enumerate(self.ids)
        }
        step = {"drive": self.ids[0], "setting": "nomerges", "value": 0}
        return make_block(self.state, [launch(0, drives=self.ids, switch=[step])], targets=targets)

    def switch(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """What a bench does before a launch."""
        places = {
            drive: TargetDevice(Path(self.drives.sysfs) / "block" / name, ())
            for drive, name in zip(self.ids, self.drives.names, strict=True)
        }
        with hold_lock(self.state, "r1", "measuring") as lock:
            switcher = Switcher(self.block(), {}, places, lock, self.drives, self.drives.sysfs)
            switcher.apply([SwitchStep(**step) for step in steps])

    def restore(self) -> dict[str, Any]:
        tools = Tools(self.drives, System(self.drives), self.access, self.drives.sysfs)
        return restore(str(self.state), tools, check=False)

    def check(self, declared: Mapping[str, Mapping[str, Any]]) -> None:
        """Every declared setting has its value; any other is as it was found, where the kernel still takes that."""
        for drive, settings_now in self.now().items():
            name = self.drives.names[self.ids.index(drive)]
            for setting, value in settings_now.items():
                wanted = declared.get(drive, {}).get(setting, self.found[drive][setting])
                if setting in declared.get(drive, {}) or self.drives.takes(name, setting, wanted):
                    assert value == wanted, (drive, setting, declared.get(drive), settings_now)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path, monkeypatch)


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Hundreds of little benches, each of whose changes is made durable."""

REQUESTS = st.sampled_from([5, TAGS])
"""What is found is possible with any scheduler; what is not, has tests of its own."""

VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "scheduler": st.sampled_from(SCHEDULERS),
    # what every scheduler takes, and none too
    "nr_requests": st.integers(4, TAGS),
    "queue_depth": st.integers(1, 64),
    "read_ahead_kb": st.sampled_from([0, 4, 64, 128, 4096]),
    "max_sectors_kb": st.sampled_from([64, 512, 1280]),
    "nomerges": st.integers(0, 2),
    "WCE": st.integers(0, 1),
    "RCD": st.integers(0, 1),
}


@st.composite
def in_any_order(draw: st.DrawFn, names: Sequence[str]) -> dict[str, Any]:
    """Values of `names`, named in any order."""
    return {name: draw(VALUES[name]) for name in draw(st.permutations(list(names)))}


@st.composite
def drops(draw: st.DrawFn) -> dict[str, list[str]]:
    """Which settings a pair of arms declares, by drive number."""
    several = st.lists(st.sampled_from(WATCHED), unique=True, min_size=4)
    return {drive: draw(st.one_of(several, st.just([]))) for drive in ("0", "1")}


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_after_any_provisioning_every_setting_is_as_declared_or_as_found(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, pytest.MonkeyPatch.context() as monkeypatch:
        rig = Rig(Path(folder), monkeypatch, data.draw(REQUESTS))
        for _ in range(data.draw(st.integers(1, 3))):
            names = data.draw(drops())
            declared = {
                drive: data.draw(in_any_order(names[place])) for place, drive in zip("01", rig.ids, strict=True)
            }
            # what the drop before declared and this one does not is to be as it was found
            found = {drive: [name for name in WATCHED if name not in values] for drive, values in declared.items()}
            rig.provision(declared, as_found=found)
            rig.check(declared)
            assert not rig.provision(declared)["changed"]
        rig.restore()
        assert rig.now() == rig.found


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_after_any_switch_every_setting_is_as_declared_or_as_found(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, pytest.MonkeyPatch.context() as monkeypatch:
        rig = Rig(Path(folder), monkeypatch, data.draw(REQUESTS))
        names = data.draw(drops())
        arms = [
            Resolved(
                drive={
                    drive: data.draw(in_any_order(names[place])) for place, drive in zip("01", rig.ids, strict=True)
                }
            )
            for _ in range(2)
        ]
        rig.provision(arms[0].drive)
        rig.check(arms[0].drive)
        now = 0
        for after in data.draw(st.lists(st.integers(0, 1), max_size=5)):
            rig.switch(data.draw(st.permutations(switch_steps(arms[now], arms[after], rig.ids))))
            rig.check(arms[after].drive)
            now = after
        rig.restore()
        assert rig.now() == rig.found


def test_arms_that_differ_in_the_scheduler_alone_keep_their_requests(rig: Rig) -> None:
    drive = rig.ids[0]
    arms = [Resolved(drive={drive: {"nr_requests": 32, "scheduler": name}}) for name in ("none", "mq-deadline")]
    rig.provision(arms[0].drive)
    for before, after in ((0, 1), (1, 0), (0, 1)):
        rig.switch(switch_steps(arms[before], arms[after], [drive]))
        assert rig.now()[drive]["nr_requests"] == 32
        assert rig.now()[drive]["scheduler"] == arms[after].drive[drive]["scheduler"]


def test_what_a_switch_changes_by_the_way_is_as_found_again_in_the_same_arm(rig: Rig) -> None:
    """Without a scheduler the requests cannot be as many as they were; back under the scheduler they are."""
    drive = rig.ids[0]
    arms = [Resolved(drive={drive: {"scheduler": name}}) for name in ("mq-deadline", "none")]
    rig.provision(arms[0].drive)
    seen = []
    for before, after in ((0, 1), (1, 0), (0, 1), (1, 0)):
        rig.switch(switch_steps(arms[before], arms[after], [drive]))
        seen.append(rig.now()[drive]["nr_requests"])
    assert seen == [TAGS, 2 * TAGS, TAGS, 2 * TAGS]


def test_a_switch_remembers_what_it_changes_for_the_restore(rig: Rig) -> None:
    """Nothing was provisioned: the bench had by chance what the first arm declares."""
    drive = rig.ids[0]
    rig.switch([{"drive": drive, "setting": "WCE", "value": 0}])
    saved = read_saved(rig.state)
    assert saved is not None
    assert saved.values[f"drive.WCE@{drive}"] == 1
    assert saved.values[f"drive.max_sectors_kb@{drive}"] == LARGEST
    assert saved.values[f"claim@{drive}"]["serial"] == "S0"
    assert rig.restore()["restored"]
    assert rig.now() == rig.found


def test_a_lowered_read_ahead_survives_a_switch_of_the_write_cache(rig: Rig) -> None:
    drive = rig.ids[0]
    arms = [Resolved(drive={drive: {"WCE": cache, "read_ahead_kb": 4}}) for cache in (1, 0)]
    rig.provision(arms[0].drive)
    rig.switch(switch_steps(arms[0], arms[1], [drive]))
    assert (rig.now()[drive]["WCE"], rig.now()[drive]["read_ahead_kb"]) == (0, 4)
    assert READ_AHEAD > 4


def test_a_switch_that_the_kernel_refuses_stops_the_block(rig: Rig) -> None:
    with pytest.raises(Exception, match="the kernel refused 1000 for") as caught:
        rig.switch(
            [
                {"drive": rig.ids[0], "setting": "scheduler", "value": "none"},
                {"drive": rig.ids[0], "setting": "nr_requests", "value": 1000},
            ]
        )
    assert caught.value.steps == [f"{rig.ids[0]}: scheduler set to none"]


def test_a_drive_that_the_block_does_not_hold_is_not_touched(rig: Rig) -> None:
    block = rig.block()
    with hold_lock(rig.state, "r1", "measuring") as lock:
        switcher = Switcher(block, {}, {rig.ids[0]: TargetDevice(None, ())}, lock, rig.drives, rig.drives.sysfs)
        for drive in (rig.ids[0], "0x5000c50099999999"):
            with pytest.raises(ToolError, match="is not a drive that this batch holds"):
                switcher.apply([SwitchStep(drive, "WCE", 0)])
    assert rig.drives.writes == []


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.disturbs])
def test_what_disturbs_others_is_never_disturbed_by_them(name: str) -> None:
    """Else there would be no order of writing that holds."""
    section, _, own = name.partition(".")
    assert own not in disturbed_by(section, own)


@pytest.mark.parametrize(("rw", "shown"), [("randwrite", True), ("randread", False)])
def test_a_write_cache_is_shown_in_effect_once_where_the_block_writes_anyway(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, rw: str, shown: bool
) -> None:
    written: list[tuple[str, int, int]] = []

    def latencies(path: str, offset: int, size: int) -> list[int]:
        written.append((path, offset, size))
        return [100_000 if rig.now()[rig.ids[0]]["WCE"] else 5_000_000] * 40

    monkeypatch.setattr("storqual_core.turns.targets.write_latencies", latencies)
    target = FioTarget(rig.ids[0], "/dev/storqual/disk0", 4096, 1 << 20)
    block = replace(rig.block(), launches=(replace(rig.block().launches[0], fio=fio(rw)),))
    places = {rig.ids[0]: TargetDevice(Path(rig.drives.sysfs) / "block" / "sda", ())}
    with hold_lock(rig.state, "r1", "measuring") as lock:
        switcher = Switcher(block, {rig.ids[0]: target}, places, lock, rig.drives, rig.drives.sysfs)
        told = [switcher.apply([SwitchStep(rig.ids[0], "WCE", value)]) for value in (0, 1, 0)]
    sentence = "WCE is shown to be in effect: median write latency 100 us with the cache, 5000 us without"
    assert told == ([[f"{rig.ids[0]}: {sentence}"], [], []] if shown else [[], [], []])
    assert written == ([("/dev/storqual/disk0", 4096, 1 << 20)] * 2 if shown else [])


def fio(rw: str) -> FioAsk:
    return make_block(Path("/s"), [launch(0, fio={"rw": rw})]).launches[0].fio
