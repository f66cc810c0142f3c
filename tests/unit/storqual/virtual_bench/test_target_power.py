# SPDX-License-Identifier: Apache-2.0
"""Targets that lose their power: what is told of it is what the initiator says, and they have power in the end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.virtual_bench import target_power
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.target_power import lose_targets
from storqual_core.kit.errors import ToolError
from tests.support.fake_qemu import bench_with_targets_apart

DRIVE = bench_with_targets_apart().adapters[0].drives[0].identity
PLACE = "/sys/devices/pci0000:00/0000:00:04.1/virtio1/net/fc0/ctlr_0/host2/rport-2:0-1/target2:0:0/2:0:0:0/"
WAITS, GONE, BACK = "Blocked,blocked", "Not Present,", "Online,running"


class Bench:
    """An initiator that says of port and drive what is due; `done` is what happened to its targets and their link."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *states: str, apart: bool = True) -> None:
        self.states, self.done, self.told = list(states), list[str](), list[str]()
        whole = bench_with_targets_apart()
        state = SimpleNamespace(bench=whole if apart else whole.targets, monitor="m")
        monkeypatch.setattr(target_power, "power_state", lambda _places: state)
        monkeypatch.setattr(target_power, "end_targets", lambda _places: self.done.append("off"))
        monkeypatch.setattr(target_power, "start_targets", lambda _places, _bench: self.done.append("on"))
        monkeypatch.setattr(target_power, "_NOTICED_S", 0.3)
        monkeypatch.setattr(target_power, "_BOOT_S", 0.3)
        monkeypatch.setattr(target_power, "set_link", lambda _state, name, *, up: self.done.append(f"{name} {up}"))

    def run(self, command: str) -> str:
        assert DRIVE.removeprefix("0x") in command
        if "readlink" in command:
            return f"{PLACE}\n0x2000020000000002\n0\n"
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def lose(self, folder: Path, **how: bool) -> list[str]:
        link: Any = self
        lose_targets(BenchPlaces(folder), link, DRIVE, 0.0, lambda seen, _: self.told.append(seen), **how)
        return self.told


def test_power_that_is_back_in_time_is_told_by_what_the_port_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, BACK, WAITS, WAITS, "Online,blocked", BACK)
    assert bench.lose(tmp_path) == ["target_off", "blocked", "target_on", "back"]
    assert bench.done == ["off", "on"]


def test_a_link_is_down_while_its_target_starts_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, WAITS, BACK)
    assert bench.lose(tmp_path, link=True) == ["link_down", "target_off", "blocked", "target_on", "link_up", "back"]
    assert bench.done == ["fc False", "off", "on", "fc True"]


def test_a_port_is_gone_when_its_timer_is_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, BACK, WAITS, "Not Present,transport-offline", GONE, BACK)
    assert bench.lose(tmp_path, past_timer=True) == ["target_off", "gone", "target_on", "back"]


@pytest.mark.parametrize(
    ("states", "how", "told", "why"),
    [
        ([WAITS, GONE], {}, ["target_off", "blocked", "target_on"], "was given up after its dev_loss_tmo"),
        ([","], {}, ["target_off"], "was given up after its dev_loss_tmo"),
        ([BACK], {}, ["target_off"], "was not Blocked"),
        ([WAITS], {"link": True}, ["link_down", "target_off", "blocked", "target_on", "link_up"], "not Online again"),
        ([WAITS], {"past_timer": True}, ["target_off"], "was not given up"),
        ([WAITS, "Online,blocked"], {}, ["target_off", "blocked", "target_on"], "Online again, and .* not running"),
    ],
)
def test_what_was_not_seen_is_not_told_and_targets_have_power_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    states: list[str],
    how: dict[str, bool],
    told: list[str],
    why: str,
) -> None:
    bench = Bench(monkeypatch, *states)
    with pytest.raises(ToolError, match=why):
        bench.lose(tmp_path, **how)
    assert bench.told == told
    assert bench.done[-1] == ("fc True" if how.get("link") else "on")


def test_targets_inside_have_no_power_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, BACK, apart=False)
    with pytest.raises(ToolError, match="not in a guest of their own"):
        bench.lose(tmp_path)
    assert (bench.done, bench.told) == ([], [])
