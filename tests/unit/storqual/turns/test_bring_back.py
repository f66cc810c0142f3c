# SPDX-License-Identifier: Apache-2.0
"""A hung bench brought back: what is asked of it over SSH, and what the run says of it afterwards."""

import socket
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.bench.follow import Connection, ConnectionLostError
from storqual.bench.reboot import Boot
from storqual.run import append_event, iter_events, read_run
from storqual.turns import bring_back as bring_back_module
from storqual.turns.bring_back import BenchHere, Hung, Means, armed_watch, bring_back, ensure_answer, means_of
from storqual.virtual_bench.places import BenchPlaces
from storqual_core.host.watchdog import Watch
from storqual_core.kit.lease import OutOfServiceError
from tests.support.turn_records import REQUEST, plan_campaign

NONE = Means()
HUNG = Hung("s01", "candidate", "s01-b001", "a-trial")


@dataclass
class Link:
    """A bench that hangs in boot-1: it answers nothing, or everything but its load; `boot` is what it runs."""

    boot: str = "boot-1"
    answers: bool = False
    commands: list[str] = field(default_factory=list)
    host: str = "vbench"
    bootstatus: str = "0"
    remote: bool = True

    def boot_id(self, *, limit_s: float = 60.0) -> str:
        assert limit_s
        if not self.answers:
            raise ConnectionLostError("no answer")
        return self.boot

    def run(self, command: str, *, limit_s: float = 0.0) -> str:
        assert limit_s
        self.commands.append(command)
        if command == "true" and not self.answers:
            raise ConnectionLostError("no answer")
        if "bootstatus" in command:
            return self.bootstatus
        if "echo b" in command:
            self.boot = "boot-2"
            raise ConnectionLostError("it is gone")
        return "INFO: task fio:12 blocked"

    def cut(self) -> None:
        pass


@dataclass(frozen=True)
class Cycled:
    boot: Boot | None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    run = plan_campaign(REQUEST, tmp_path)
    setting = {"name": "boot.watchdog", "declared": None, "read_back": "i6300ESB timer, 60 s"}
    started = {"bench": "vbench", "session": "s01", "boot_id": "boot-1", "provisioned": {"settings": [setting]}}
    append_event(run, "session_started", started)
    return run


def back(path: Path, link: Link, *, hangs: bool, means: Means = NONE) -> Any:
    here = BenchHere("vbench", cast("Connection", link), "python3", "/s", "/s/core.pyz", None, means)
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return bring_back(
        path,
        here,
        HUNG,
        boot="boot-1",
        hangs=hangs,
        reason="it stopped answering",
        console_mark=0,
        clock=lambda: now[0],
        sleep=sleep,
    )


def told(path: Path, kind: str) -> list[dict[str, Any]]:
    return [dict(event.fields) for event in iter_events(path) if event.kind == kind]


def test_a_load_that_hangs_on_a_bench_that_answers_shows_its_tasks_and_is_ended_by_the_kernel(path: Path) -> None:
    link = Link(answers=True)
    recovery = back(path, link, hangs=True)
    assert (recovery.boot_id, recovery.ended_by) == ("boot-2", "restart by the kernel")
    look = next(step for step in told(path, "recovery_step") if step["step"] == "look")
    assert look["evidence"] == "INFO: task fio:12 blocked"
    assert link.commands[0].startswith("echo w > /proc/sysrq-trigger; echo l > /proc/sysrq-trigger; echo m >")
    [hung] = told(path, "bench_hung")
    assert (hung["session"], hung["arm"], hung["block"], hung["turn"], hung["ended_by"]) == (
        *("s01", "candidate", "s01-b001", "a-trial"),
        "restart by the kernel",
    )


def test_power_is_cycled_when_nothing_answers_and_nobody_is_accused_who_only_lost_the_network(path: Path) -> None:
    means = Means(cycle_power=lambda _reason: Cycled(Boot("boot-2", "6.1")))
    assert back(path, Link(), hangs=False, means=means).ended_by == "power cycle"
    assert len(told(path, "bench_hung")) == 1
    assert back(path, Link(answers=True), hangs=False).ended_by == ""
    assert len(told(path, "bench_hung")) == 1


def test_a_bench_that_does_not_answer_between_two_turns_is_brought_back_before_it_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(bring_back_module, "bring_back", lambda *_, **words: asked.append(words))
    for link in (Link(answers=True), Link()):
        here = BenchHere("vbench", cast("Connection", link), "python3", "/s", "/s/core.pyz", None)
        ensure_answer(path, here, console_mark=7, say=lambda _line: None)
    [words] = asked
    assert (words["boot"], words["hangs"], words["console_mark"]) == ("boot-1", False, 7)


def test_a_bench_that_is_the_control_node_itself_is_never_restarted_from_here(path: Path) -> None:
    link = Link(answers=True, remote=False)
    with pytest.raises(OutOfServiceError):
        back(path, link, hangs=True)
    assert not any("sysrq-trigger" in command for command in link.commands)


def test_a_boot_that_the_watchdog_says_it_made_is_its_work(path: Path) -> None:
    link = Link(boot="boot-2", answers=True, bootstatus="32")
    assert back(path, link, hangs=True).ended_by == "watchdog i6300ESB timer"
    assert back(path, Link(boot="boot-2", answers=True), hangs=True).ended_by == ""


def test_a_bench_that_nothing_brings_back_is_out_of_service(path: Path) -> None:
    with pytest.raises(OutOfServiceError, match="vbench is out of service: it stopped answering"):
        back(path, Link(), hangs=True, means=Means(cycle_power=lambda _reason: Cycled(None)))
    assert told(path, "recovery_step")[-1]["step"] == "out of service"
    assert told(path, "bench_hung")[0]["ended_by"] == ""


def test_the_watchdog_that_was_armed_is_the_sessions(path: Path) -> None:
    run = read_run(path)
    assert armed_watch(run, "vbench", "s01") == Watch("i6300ESB timer", 60.0)
    assert armed_watch(run, "vbench", "s02") == Watch()


def test_the_power_of_the_inventory_is_cycled_for_the_boot_that_hangs_and_longer_off_the_second_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A virtual bench keeps its button and its plug."""
    cycled: list[tuple[object, str, str, object]] = []

    def cycle(power: object, reason: str, *, run: Path, before: Boot, say: object, off_for_s: object = None) -> Any:
        cycled.append((power, reason, before.boot_id, off_for_s))
        return SimpleNamespace(boot=None)

    monkeypatch.setattr(bring_back_module, "cycle_bench", cycle)
    power: Any = object()
    usual, longer = means_of(None, power=power).cycles("b1", run=tmp_path, say=lambda _: None)
    assert usual is not None
    assert longer is not None
    usual("it hangs")
    longer("it hangs")
    assert cycled == [(power, "it hangs", "b1", None), (power, "it hangs", "b1", 60.0)]
    places = BenchPlaces.of(tmp_path)
    virtual = means_of(places, power=power)
    assert virtual.cycles("b1", run=tmp_path, say=lambda _: None) == (virtual.cycle_power, virtual.cycle_longer)
    assert means_of(None).cycles("b1", run=None, say=lambda _: None) == (None, None)


@pytest.mark.parametrize("virtual", [False, True])
def test_a_kernel_takes_connections_where_a_port_listens_that_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, virtual: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ssh = tmp_path / "ssh"
        ssh.write_text(
            f"#!/bin/sh\n[ $1 = -G ] && echo 'hostname 127.0.0.1' && echo 'port {port}'\n", encoding="ascii"
        )
        ssh.chmod(0o755)
        power = SimpleNamespace(port=port, monitor=str(tmp_path / "monitor"))
        monkeypatch.setattr(bring_back_module, "power_state", lambda _places: power)
        places = BenchPlaces.of(tmp_path) if virtual else None
        link = SimpleNamespace(words=lambda *words: [str(ssh), "bench", *words])
        here = BenchHere("vbench", cast("Connection", link), "", "", "", places, NONE)
        # QEMU takes those of a virtual bench; a monitor that does not say more is no reason to give up
        assert bring_back_module._listens(here) is not virtual
    assert not bring_back_module._listens(here)
