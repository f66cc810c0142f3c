# SPDX-License-Identifier: Apache-2.0
"""Maps are of the claimed drives of several paths alone, a bench's own multipath stays, and a lost path is seen."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from storqual.bench.follow import ConnectionLostError
from storqual.plan import PlanRequest
from storqual.run import read_batch, read_run
from storqual.turns import acts, paths
from storqual.turns.acts import CONTROL_WAYS, Reach, mend
from storqual_core.data.faults import WAYS
from storqual_core.kit.errors import BadInputError, ToolError
from tests.support.paths import status
from tests.support.turn_records import plan_campaign
from tests.unit.storqual.virtual_bench.test_qemu import SHARED, bench_of_paths

pytestmark = pytest.mark.slow

DRIVE = "0x5000c5001f2d0000"
REQUEST = PlanRequest(
    inventories=[Path("inventories/virtual_paths")], candidate="stable", baseline="stable", suite="paths", seed=1
)


class FakeBench:
    """A bench as `storqual.turns.paths` asks it: a configuration, a daemon, and the paths that the kernel uses."""

    host = "vpaths"

    def __init__(self, *, own: str = "", maps: bool = False, enabled: str = "", active: int = 2) -> None:
        self.file, self.maps, self.enabled, self.active = own, maps, enabled, active
        self.ran: list[str] = []
        self.busy = False
        self.timers = ""

    def run(self, command: str, *, data: bytes = b"", limit_s: float = 0.0) -> str:
        self.ran.append(command)
        if command == paths._OWN:
            return "own\n" if self.file or self.maps else "none\n"
        if command == paths.OURS:
            head = self.file.partition("\n")[0]
            return head + "\n" if head.startswith(paths.MARK) else ""
        if command == paths.ASK_TIMERS:
            return self.timers
        if command == paths._FLUSH:
            if self.busy:
                raise ConnectionLostError("map in use")
            self.maps = False
            return "35000c5001f2d0000\n"
        if command.startswith("systemctl is-enabled"):
            return self.enabled
        if command.startswith("cat > ") and f"sync {paths._FILE}.part && mv " in command:
            self.file = data.decode()
        if command.startswith("rm "):
            self.file = ""
        if "restart multipathd" in command:
            self.maps = True
        if "dmsetup status" in command:
            told = [(f"8:{16 * number}", number < self.active) for number in range(2)]
            return status(told) if self.maps else ""
        return ""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_LIMIT_S", 0.0)
    monkeypatch.setattr(paths, "_LOOK_S", 0.0)
    monkeypatch.setattr(paths, "install_package", lambda *_, **__: "0.9.4-3")


def make(link: FakeBench, drive: str = DRIVE) -> str:
    return paths.make_maps(cast("Any", link), {drive: 2}, "/var/lib/storqual", virtual=True)


def test_maps_are_made_of_the_named_drives_alone_and_taken_back() -> None:
    link = FakeBench()
    assert make(link) == "installed multipath-tools 0.9.4-3"
    assert 'blacklist {\n    wwid ".*"' in link.file
    assert 'blacklist_exceptions {\n    wwid "^([0-9]5000c5001f2d0000)$"' in link.file
    assert "no_path_retry fail" in link.file
    assert "protocol" not in link.file
    assert paths.take_maps_apart(cast("Any", link)) == ["multipath device 35000c5001f2d0000 was taken apart"]
    assert (link.file, link.maps) == ("", False)
    assert "disable multipathd" in link.ran[-1]
    assert paths.take_maps_apart(cast("Any", link)) == []


def test_timers_of_a_fabric_are_given_to_the_daemon_which_would_set_its_own() -> None:
    link = FakeBench()
    port = "/sys/class/fc_remote_ports/rport-{}/fast_io_fail_tmo:{}\n"
    link.timers = port.format("9:0-0", "off") + port.format("9:0-1", 30) + port.format("9:0-2", 8)
    link.timers += "/sys/class/iscsi_session/session1/recovery_tmo:120\n"
    make(link)
    timers = re.findall(r'protocol \{\s+type "(\S+)"\s+fast_io_fail_tmo (\w+)\s+\}', link.file)
    assert timers == [("scsi:fcp", "8"), ("scsi:iscsi", "120")]
    assert link.file.count("{") == link.file.count("}")
    link = FakeBench()
    link.timers = port.format("9:0-0", "off")
    make(link)
    assert "fast_io_fail_tmo off\n" in link.file


def test_a_daemon_that_was_enabled_runs_again_afterwards() -> None:
    link = FakeBench(enabled="enabled\n")
    make(link)
    paths.take_maps_apart(cast("Any", link))
    assert "start multipathd" in link.ran[-1]


def test_a_session_that_is_gone_on_with_finds_its_configuration_and_keeps_it() -> None:
    link = FakeBench()
    make(link)
    before, link.maps = link.file, False
    make(link)
    assert (link.file, link.maps) == (before, True)


def test_multipath_of_the_benchs_own_is_used_and_never_touched() -> None:
    for own in (FakeBench(own="defaults {}\n", maps=True), FakeBench(maps=True)):
        before = own.file
        assert make(own) == ""
        assert paths.take_maps_apart(cast("Any", own)) == []
        assert (own.file, own.maps) == (before, True)
        assert not [command for command in own.ran if "systemctl" in command or "cat >" in command]


def test_a_drive_without_all_its_paths_is_an_error() -> None:
    with pytest.raises(ToolError, match="1 paths of 0x5000c5001f2d0000 are active"):
        make(FakeBench(active=1))
    with pytest.raises(ToolError, match="0 paths of"):
        make(FakeBench(own="defaults {}\n"))
    with pytest.raises(ToolError, match="no WWN"):
        make(FakeBench(), '.*)|(.*"')


def test_a_configuration_whose_map_is_in_use_stays() -> None:
    link = FakeBench()
    make(link)
    link.busy = True
    with pytest.raises(ConnectionLostError, match="map in use"):
        paths.take_maps_apart(cast("Any", link))
    assert link.file


class FakeQemu:
    """Drives that are pulled and put back; the bench knows at once where `follows`."""

    def __init__(self, link: FakeBench, *, follows: bool = True) -> None:
        self.link, self.follows, self.devices = link, follows, ["left-0", "right-0", "right-1"]

    async def ask(self, command: str, arguments: Any = None) -> Any:
        if command == "query-block":
            return [{"qdev": f"/machine/peripheral/{name}", "inserted": {"iops": 0}} for name in self.devices]
        if command == "query-named-block-nodes":
            return []
        if command == "device_add":
            self.devices.append(arguments["id"])
            self.link.active = 2 if self.follows else self.link.active
        return {}

    async def ask_and_await(self, command: str, arguments: Any, event: str, limit_s: float, **_: Any) -> bool:
        self.devices.remove(arguments["id"])
        self.link.active -= self.follows
        return True


def lose(qemu: FakeQemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alias: str = "right") -> list[str]:
    """Bring the loss of a path about; what was told."""

    class Power:
        monitor, bench = "m", bench_of_paths()

    told: list[str] = []
    monkeypatch.setattr(acts, "guests", lambda _places: [Power])
    monkeypatch.setattr(acts, "converse", lambda _socket, words: asyncio.run(words(qemu)))
    link = cast("Any", qemu.link)
    reach = Reach(
        cast("Any", None), link, SHARED, "0000:00:06.0", 0.0, tmp_path, lambda name, _: told.append(name), alias
    )
    try:
        CONTROL_WAYS["qmp_path_unplug"](reach)
    except ToolError as problem:
        told.append(str(problem))
    return told


def test_a_pulled_path_is_proven_by_what_the_bench_no_longer_uses_and_uses_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = FakeBench(maps=True)
    told = lose(FakeQemu(link), tmp_path, monkeypatch)
    assert told == ["event:DEVICE_DELETED", "path_lost", "plugged", "path_back"]
    assert "0000:00:06.0" in link.ran[-2]
    _, way = WAYS["qmp_path_unplug"]
    for missing in told[:3]:
        assert way.unproven(frozenset(told) - {missing}, ()) == [missing]
    assert way.returns == ("path_back",)


def test_a_path_that_the_bench_goes_on_with_is_put_back_and_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qemu = FakeQemu(FakeBench(maps=True), follows=False)
    told = lose(qemu, tmp_path, monkeypatch)
    assert told[:2] == ["event:DEVICE_DELETED", "plugged"]
    assert told[2].startswith("2 paths of")
    assert len(told) == 3
    assert "right-1" in qemu.devices


def test_the_last_path_is_never_pulled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu = FakeQemu(FakeBench(maps=True, active=1))
    (told,) = lose(qemu, tmp_path, monkeypatch)
    assert told.startswith("1 paths of")
    assert len(qemu.devices) == 3


def test_a_path_that_was_left_pulled_is_put_back() -> None:
    qemu = FakeQemu(FakeBench())
    qemu.devices.remove("right-1")
    (told,) = asyncio.run(mend(cast("Any", qemu), bench_of_paths()))
    assert told == f"the path of {SHARED} through right was left unplugged, and was put back"
    assert asyncio.run(mend(cast("Any", qemu), bench_of_paths())) == []


def test_the_shipped_suite_loses_the_path_of_each_adapter_by_each_way(tmp_path: Path) -> None:
    run = read_run(plan_campaign(REQUEST, tmp_path))
    trials = run.document["plan"]["trials"]
    assert {(trial["adapter"], trial["way"], trial["drive"]) for trial in trials} == {
        (alias, way, DRIVE) for alias in ("fusion", "vscsi") for way in ("path_offline", "qmp_path_unplug")
    }
    assert paths.paths_of(run.benches["vpaths"]["adapters"]) == {DRIVE: 2}


def test_a_fault_is_guarded_by_the_claims_of_all_adapters_and_nothing_else_is_tested_on_a_drive_of_two(
    tmp_path: Path,
) -> None:
    run = read_run(plan_campaign(REQUEST, tmp_path))
    batches = [read_batch(run.path, path.stem) for path in (run.path / "blocks").glob("*.json")]
    claimed = {name for batch in batches for name in batch["targets"]}
    assert claimed == {DRIVE, "0x5000c5001f2d0010", "0x5000cca04e2d0000"}
    other = tmp_path / "other.suite.yml"
    other.write_text(
        "loads: {mine: {}}\ntrials: [{fault: scheduler_change, load: mine, repeats: 9}]\n", encoding="utf-8"
    )
    plan = read_run(plan_campaign(replace(REQUEST, suite=str(other)), tmp_path)).document["plan"]
    assert DRIVE not in {trial["drive"] for trial in plan["trials"]}


def test_a_bench_without_such_a_drive_has_no_path_to_lose(tmp_path: Path) -> None:
    request = replace(REQUEST, inventories=[Path("inventories/virtual")])
    with pytest.raises(BadInputError, match="path_loss on sym: no claimed drive with a second path"):
        plan_campaign(request, tmp_path)
