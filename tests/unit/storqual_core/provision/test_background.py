# SPDX-License-Identifier: Apache-2.0
"""What is under way beside the commands of the host, and what adapters' logs say from one look to the next."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed, ToolAnswers
from storqual_core.provision import background
from storqual_core.provision.background import AdapterWatch, work_of_adapters, work_of_arrays
from storqual_core.tools import TOOLS
from storqual_core.tools.capabilities import offers
from tests.support.bench_tree import BenchTree
from tests.support.replay import Tools
from tests.support.tool_fixtures import fixture_text

PCI, OTHER = "0000:3b:00.0", "0000:00:05.0"
EVENTS = fixture_text("storcli", "events.txt")
MDSTAT = fixture_text("mdadm", "mdstat_four.txt")
ANSWERS = {
    "storcli64 /call show J nolog": fixture_text("storcli", "show_all.json"),
    "storcli64 /c0 show patrolread J nolog": fixture_text("storcli", "patrol_active.json"),
    "storcli64 /c0/vall show all J nolog": fixture_text("storcli", "volumes.json"),
    "storcli64 /c0 show events type=latest=300 nolog": EVENTS[: EVENTS.index("seqNum: 0x00001286")],
}


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A RAID controller whose tool tells its work, and an adapter with a drive."""
    tree = BenchTree(tmp_path).adapter(PCI, driver="megaraid_sas").scsi("sda", pci=PCI)
    tree.write("/opt/MegaRAID/storcli/storcli64", "")
    return tree.adapter(OTHER).scsi("sdc", pci=OTHER, wwn="0x5000c50000000002", serial="SER2")


def test_a_patrol_read_is_told_of_the_adapters_own_controller_only(tree: BenchTree) -> None:
    runner = Tools(dict(ANSWERS))
    watch = AdapterWatch(tree.machine, [PCI], runner)
    assert watch.work[0] == f"adapter {PCI} (storcli): volume scratch: rebuild is under way"
    assert watch.work[-1] == f"adapter {PCI} (storcli): a patrol read is under way (3 drives done)"
    assert watch.unread == []
    assert AdapterWatch(tree.machine, [OTHER], runner).work == []


def test_a_tool_that_is_not_installed_is_not_even_loaded(tree: BenchTree, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree.root / "opt/MegaRAID/storcli/storcli64").unlink()
    monkeypatch.setattr(background, "TOOLS", {"storcli": lambda: pytest.fail("it was loaded")})
    assert AdapterWatch(tree.machine, [PCI], Tools(dict(ANSWERS))).work == []


def test_the_programs_are_the_tools_own() -> None:
    assert {name: tuple(programs) for name, programs in background.PROGRAMS.items()} == {
        name: TOOLS[name]().PROGRAMS for name in background.PROGRAMS
    }
    assert all("background" in offers(TOOLS[name]()) for name in background.PROGRAMS)


def test_a_96xx_that_rebuilds_is_watched_as_well(tree: BenchTree) -> None:
    address = "0000:16:00.0"
    tree.adapter(address, driver="mpi3mr").scsi("sdd", pci=address, wwn="0x5000c50000000003", serial="SER3")
    tree.write("/opt/MegaRAID/storcli2/storcli2", "")
    answers = {
        "storcli2 /call show J": fixture_text("storcli2", "show_all.json"),
        "storcli2 /c0/vall show all J": fixture_text("storcli2", "volumes.json").replace('"Offline"', '"Rebuild"'),
        "storcli2 /c0 show patrolread J": fixture_text("storcli2", "no_patrol_read.json"),
    }
    watch = AdapterWatch(tree.machine, [address], Tools(answers))
    assert watch.work == [f"adapter {address} (storcli2): volume 1: rebuild is under way"]
    assert (watch.unread, watch.findings("now")) == ([], [])
    assert AdapterWatch(tree.machine, [PCI], Tools(answers)).work == []


def test_what_the_controllers_log_says_later_is_a_finding(tree: BenchTree) -> None:
    """From a warning on: what is only informative is none, and what stood there before is not told."""
    runner = Tools(dict(ANSWERS))
    watch = AdapterWatch(tree.machine, [PCI], runner)
    assert watch.findings("now") == []
    runner.answers["storcli64 /c0 show events type=latest=300 nolog"] = EVENTS
    (found,) = watch.findings("now")
    assert (found["kind"], found["severity"], found["count"], found["time"]) == ("adapter_fault", "error", 1, "now")
    assert "event 4742 (critical" in found["line"]
    assert found["line"].endswith("Removed: PD 05(e0xfb/s4)")
    runner.answers["storcli64 /c0 show events type=latest=300 nolog"] = EVENTS.replace("Class: 2", "Class: 0")
    assert watch.findings("now") == []


def test_events_that_were_overwritten_meanwhile_are_said(tree: BenchTree) -> None:
    runner = Tools(dict(ANSWERS))
    watch = AdapterWatch(tree.machine, [PCI], runner)
    later = EVENTS[EVENTS.index("seqNum: 0x00001286") :].replace("1286", "2286").replace("Class: 2", "Class: 0")
    runner.answers["storcli64 /c0 show events type=latest=300 nolog"] = later
    (found,) = watch.findings("now")
    assert found["line"] == "storcli, adapter 0: the events before 8838 were not read, there were too many"


def test_an_answer_that_cannot_be_read_is_said_and_hides_nothing_else(tree: BenchTree) -> None:
    watch = AdapterWatch(tree.machine, [PCI], Tools({**ANSWERS, "storcli64 /c0 show patrolread J nolog": "odd"}))
    assert watch.work[0] == f"adapter {PCI} (storcli): volume scratch: rebuild is under way"
    assert not any("patrol read" in work for work in watch.work)
    assert watch.unread == [f"the work of adapter {PCI} (storcli): patrol read: storcli printed no JSON object: odd"]
    # a tool that is not installed has nothing to say
    assert AdapterWatch(tree.machine, [PCI], Tools({})).unread == []


def test_an_array_of_drives_behind_the_adapter_that_rebuilds_is_told(tree: BenchTree) -> None:
    tree.stacked("md1", ["sdc"])
    tree.write("/proc/mdstat", MDSTAT)
    assert list(work_of_arrays(tree.machine, [OTHER])) == ["array md1: rebuild is under way (5 %)"]
    assert list(work_of_arrays(tree.machine, [PCI])) == []
    assert AdapterWatch(tree.machine, [OTHER], Tools({})).work == ["array md1: rebuild is under way (5 %)"]
    tree.write("/proc/mdstat", MDSTAT + "novelty\n")
    assert "not understood" in AdapterWatch(tree.machine, [OTHER], Tools({})).unread[0]


def test_adapters_of_other_tools_are_asked_for_their_facts(tree: BenchTree) -> None:
    text = fixture_text("ssacli", "config_detail.txt")
    runner = Tools({})
    asked: list[str] = []

    def answer(argv: Sequence[str], **_: Any) -> Completed:
        asked.append(argv[0])
        return Completed(tuple(argv), 0, text, "", 0.0)

    def work(address: str, runner: Any) -> list[str]:
        return list(work_of_adapters(tree.machine, [address], runner, lambda _: ["ssacli"], said))

    said = ToolAnswers()
    work(OTHER, answer)
    assert set(asked) == {"ssacli"}
    assert all(sentence.startswith("the work of adapters, ssacli: ") for sentence in said.unread)
    # no tool, no word
    assert work(OTHER, runner) == []
    assert work(PCI, answer) == []
