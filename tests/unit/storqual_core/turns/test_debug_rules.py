# SPDX-License-Identifier: Apache-2.0
"""A fault by rules of scsi_debug is told step by step as driver and kernel show it, and all of it is put back."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from storqual_core.data.faults import WAYS
from storqual_core.host.kernel_log import Record
from storqual_core.host.sysfs import read_drives
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.turns import drive_faults
from storqual_core.turns.bench_faults import ACTS, missing
from storqual_core.turns.drive_faults import RULE_ACTS, RULES_MEMORY, Aim, read_rules
from tests.support.bench_tree import BenchTree

WWN = "0x33333330000007d0"
DEBUGFS = "/sys/kernel/debug/scsi_debug"
ERROR, TARGET = f"{DEBUGFS}/2:0:0:0/error", f"{DEBUGFS}/target2:0:0/fail_reset"
DEVICE, HOST = "/sys/block/sda/device", "/sys/class/scsi_host/host2/state"
LOGGING = "/proc/sys/dev/scsi/logging_level"
NEXT = {
    "rule_lost_write": "retry aborted command",
    "rule_failed_abort": "Sending BDR",
    "rule_failed_lun_reset": "Sending target reset",
    "rule_failed_target_reset": "Sending BRST",
    "rule_failed_bus_reset": "Sending HRST",
    "rule_drive_offline": "Sending HRST",
}


def unused(argv: Sequence[str], **_: object) -> Completed:
    return Completed(tuple(argv), 0, "", "", 0.0)


class FakeDriver:
    """scsi_debug and the kernel's recovery: `acts` is how often a rule acts, `steps` what the error handler logs."""

    def __init__(self, tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree, self.rules = tree, dict[tuple[int, int], tuple[int, str]]()
        self.acts, self.steps = 99, list(dict.fromkeys(NEXT.values()))
        self.takes, self.ends, self.offline, self.forgets = True, True, False, True
        self.reason, self.from_kernel, self.records = "", True, list[Record]()
        self.written: list[tuple[str, str]] = []
        self.show()
        tree.write("/run/x", "")
        for path, text in (
            (LOGGING, "0"),
            (f"{DEVICE}/timeout", "30"),
            (f"{DEVICE}/eh_timeout", "10"),
            (TARGET, "N"),
        ):
            tree.write(path, f"{text}\n")
        tree.write(HOST, "running\n")
        monkeypatch.setattr(drive_faults, "write_attribute", self.write)
        monkeypatch.setattr(drive_faults, "KernelLog", lambda: self)

    def read(self) -> list[Record]:
        """What was logged since the last call."""
        records, self.records = self.records, []
        return records

    def close(self) -> None:
        """Nothing is open."""

    def write(self, path: str, value: object) -> None:
        place, text = path.removeprefix(str(self.tree.root)), str(value)
        self.written.append((place, text))
        if place != ERROR:
            self.tree.write(place, f"{text}\n")
            return
        words = text.split()
        if words[0] == "-":
            if self.forgets:
                del self.rules[int(words[1]), int(words[2], 16)]
        elif self.takes:
            kind, count, command = int(words[0]), int(words[1]), int(words[2], 16)
            assert count < 0
            self.rules[kind, command] = (min(0, count + self.acts), " ".join(words[3:]))
            if int(self.tree.machine.text(LOGGING)) & 7 > 3:
                self.records += [Record(self.from_kernel, 6, 1, 1, f"scsi host2: {step}") for step in self.steps]
            self.tree.write(HOST, "running\n" if self.ends else "recovery\n")
            if self.offline:
                self.tree.write(f"{DEVICE}/state", "offline\n")
        self.show()

    def show(self) -> None:
        lines = [f"{kind}\t{count}\t{command:#x}\t{rest}" for (kind, command), (count, rest) in self.rules.items()]
        self.tree.write(ERROR, "\n".join(["Type\tCount\tCommand", *lines, ""]))


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    tree = BenchTree(tmp_path).debug_host()
    return tree.scsi("sda", above="pseudo_0/adapter0", hctl="2:0:0:0", wwn=WWN, serial="2000")


@pytest.fixture
def driver(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(tree, monkeypatch)


def aim_at(tree: BenchTree, wwn: str = WWN) -> Aim:
    drive = next(one for one in read_drives(tree.machine) if one.id == wwn)
    return Aim(tree.machine, unused, drive, 0.0, 0.2)


def brought(tree: BenchTree, way: str, told: list[str] | None = None) -> list[str]:
    told = [] if told is None else told
    ACTS[way](aim_at(tree), lambda seen, _text: told.append(seen))
    return told


def as_found(driver: FakeDriver) -> bool:
    """Whether nothing of a fault is left."""
    machine = driver.tree.machine
    places = (LOGGING, f"{DEVICE}/timeout", f"{DEVICE}/eh_timeout", TARGET, f"{DEVICE}/state")
    found = [machine.text(place) for place in places]
    return (driver.rules, found) == ({}, ["0", "30", "10", "N", "running"]) and not machine.exists(RULES_MEMORY)


def test_a_drive_of_another_adapter_gets_no_rule(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter("0000:00:05.0").scsi("sda", hctl="2:0:0:0", wwn=WWN, serial="2000")
    tree.write(ERROR, "Type\tCount\tCommand\n")
    for way in RULE_ACTS:
        with pytest.raises(ToolError, match=r"on the adapter at 0000:00:05\.0, which is not scsi_debug"):
            brought(tree, way)
    assert tree.machine.text(ERROR) == "Type\tCount\tCommand"


def test_a_kernel_whose_scsi_debug_takes_no_rules_is_told_beforehand(tree: BenchTree) -> None:
    drive = aim_at(tree).drive
    assert {missing(WAYS[way][1], tree.machine, drive) for way in RULE_ACTS} == {f"{ERROR} is not there"}
    with pytest.raises(ToolError, match="takes no rules"):
        brought(tree, "rule_busy")


@pytest.mark.parametrize("way", RULE_ACTS)
def test_every_way_tells_that_its_rules_acted_and_leaves_the_bench_as_it_found_it(
    tree: BenchTree, driver: FakeDriver, way: str
) -> None:
    driver.offline = way == "rule_drive_offline"
    told = brought(tree, way)
    assert told[:2] == ["injected", "counted"]
    assert told[-1] == "running"
    assert ("escalated" in told) == (WAYS[way][1].scope == "adapter")
    assert ("offline" in told) == driver.offline
    assert as_found(driver)


@pytest.mark.parametrize(
    ("way", "rule"),
    [
        ("rule_busy", "2 -16 0x2a 0x0 0x0 0x8 0x0 0x0 0x0"),
        ("rule_task_set_full", "2 -16 0x2a 0x0 0x0 0x28 0x0 0x0 0x0"),
        ("rule_read_error", "2 -4 0x28 0x0 0x0 0x2 0x3 0x11 0x0"),
        ("rule_flush_error", "2 -2 0x35 0x0 0x0 0x2 0x4 0x44 0x0"),
        ("rule_lost_write", "0 -1 0x2a"),
        ("rule_failed_abort", "3 -1 0xff"),
        ("rule_failed_lun_reset", "4 -1 0xff"),
        ("rule_failed_bus_reset", "0 -3 0x0"),
    ],
)
def test_a_rule_is_written_as_the_driver_reads_it(tree: BenchTree, driver: FakeDriver, way: str, rule: str) -> None:
    brought(tree, way)
    assert (ERROR, rule) in driver.written


def test_a_reset_of_the_target_fails_only_while_its_fault_lasts(tree: BenchTree, driver: FakeDriver) -> None:
    brought(tree, "rule_failed_lun_reset")
    assert TARGET not in dict(driver.written)
    brought(tree, "rule_failed_target_reset")
    assert [value for place, value in driver.written if place == TARGET] == ["Y", "N"]


@pytest.mark.parametrize(
    ("change", "way", "words", "reports"),
    [
        ({"acts": 15}, "rule_busy", r"rules did not all act within 0\.2 s", ["injected"]),
        ({"takes": False}, "rule_busy", "did not all act", []),
        ({"from_kernel": False}, "rule_failed_abort", "did not tell of 'Sending BDR'", ["injected", "counted"]),
        ({"reason": "/dev/kmsg: not permitted"}, "rule_failed_abort", "/dev/kmsg: not permitted", None),
        ({"ends": False}, "rule_failed_abort", "recovery did not end", None),
        (
            {"offline": True},
            "rule_failed_abort",
            "took sda offline; it was set running again",
            ["injected", "counted", "escalated", "offline"],
        ),
        ({"forgets": False}, "rule_busy", "sda is running, scsi_debug has rule 2 0x2a to act 0 times", None),
    ],
    ids=["too few", "not taken", "of a program", "no log", "no end", "offline", "not taken away"],
)
def test_what_does_not_prove_a_rule_is_told_and_nothing_of_it_stays(
    tree: BenchTree, driver: FakeDriver, change: dict[str, object], way: str, words: str, reports: list[str] | None
) -> None:
    vars(driver).update(change)
    told: list[str] = []
    with pytest.raises(ToolError, match=words):
        brought(tree, way, told)
    assert "running" not in told
    assert reports is None or told == reports
    assert as_found(driver) is ("forgets" not in change)


@pytest.mark.parametrize("way", NEXT)
def test_only_the_next_step_of_the_recovery_proves_that_the_one_before_failed(
    tree: BenchTree, driver: FakeDriver, way: str
) -> None:
    driver.steps.remove(NEXT[way])
    told: list[str] = []
    with pytest.raises(ToolError, match=f"the kernel did not tell of '{NEXT[way]}'"):
        brought(tree, way, told)
    assert told == ["injected", "counted"]
    assert as_found(driver)


def test_rules_of_a_trial_that_was_cut_short_are_taken_away_first(tree: BenchTree, driver: FakeDriver) -> None:
    driver.rules[1, 0x12] = (-5, "0x1056")
    driver.show()
    brought(tree, "rule_busy")
    assert driver.written[0] == (ERROR, "- 1 0x12")
    assert as_found(driver)


def test_what_puts_everything_back_is_noted_before_anything_is_changed(
    tree: BenchTree, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[list[str]] = []

    def write(path: str, value: object) -> None:
        noted.append(tree.machine.lines(RULES_MEMORY))
        driver.write(path, value)

    monkeypatch.setattr(drive_faults, "write_attribute", write)
    brought(tree, "rule_failed_target_reset")
    assert noted[0] == [
        f"{ERROR} - 0 0x2a",
        f"{ERROR} - 3 0xff",
        f"{ERROR} - 4 0xff",
        f"{TARGET} N",
        f"{DEVICE}/timeout 30",
        f"{DEVICE}/eh_timeout 10",
        f"{LOGGING} 0",
        f"{DEVICE}/state running",
        "",
    ]


def test_rules_are_read_with_how_often_they_are_still_to_act() -> None:
    text = "Type\tCount\tCommand\n0\t-1\t0x2a\n2\t-4\t0x28\t0x0 0x0 0x2 0x3 0x11 0x0\n3\t0\t0xff\n"
    assert read_rules(text) == {(0, 0x2A): 1, (2, 0x28): 4, (3, 0xFF): 0}
    with pytest.raises(ToolError, match="cannot be read: 'x -1 0x2a'"):
        read_rules("x -1 0x2a\n")
