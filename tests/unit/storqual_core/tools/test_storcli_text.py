# SPDX-License-Identifier: Apache-2.0
"""storcli and its kin in plain text: read as their JSON, or refused where a table is not in columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import storcli, storcli2
from tests.support.replay import Call, Replay

FIXTURES = Path(__file__).parent / "fixtures"
ADAPTER = (FIXTURES / "storcli" / "show_all_in_text.txt").read_text(encoding="utf-8")
VOLUMES = (FIXTURES / "storcli" / "volumes_in_text.txt").read_text(encoding="utf-8")
DRIVES = (FIXTURES / "storcli" / "drives_in_text.txt").read_text(encoding="utf-8")
RULE = "-" * 24
REBUILD = (FIXTURES / "storcli" / "rebuild_in_text.txt").read_text(encoding="utf-8")


def test_a_controller_is_read_with_its_lists() -> None:
    (adapter,) = storcli.parse_adapters(ADAPTER)
    assert (adapter.index, adapter.model, adapter.serial) == ("0", "Example RAID 7", "EXT0001")
    assert (adapter.pci, adapter.health) == ("0000:5e:00.0", "Needs Attention")
    assert adapter.settings["Policies Table / Rebuild Rate"] == "30 %"
    assert adapter.settings["Flush Time(Default)"] == "4s"
    (volume,) = adapter.volumes
    assert (volume.name, volume.level, volume.failed) == ("two words", "1", ("252:1",))
    states = {drive.position: (drive.state, drive.model, drive.settings["Size"]) for drive in adapter.drives}
    assert states["252:1"] == ("Offln", "EXAMPLE SSD 850 1TB", "931.000 GB")
    assert states["252:2"] == ("UGood foreign", "EXAMPLE2000", "1.818 TB")


def test_volumes_and_drives_are_read_with_their_details() -> None:
    (volume,) = storcli.parse_volumes(VOLUMES)
    assert (volume.size, volume.strip, volume.device) == (1952448512 * 512, 65536, "/dev/sdk")
    assert (volume.members, volume.policies["disk_cache"]) == (("252:0", "252:1"), "default")
    first, second = storcli.parse_drives(DRIVES)
    assert (first.serial, first.wwn, first.size) == ("TSER0", "0x5000c50000000a00", 0x74706DB0 * 512)
    assert (second.serial, second.counters["Media Error Count"]) == ("TSER1", 3)
    spare = storcli2.parse_drives((FIXTURES / "storcli2" / "drives_in_text.txt").read_text(encoding="utf-8"))[1]
    assert (spare.position, spare.state, spare.model) == ("308:9", "GHS Good", "EXAMPLE MZQ 7680")


def test_volumes_of_the_successors_are_read() -> None:
    text = (FIXTURES / "storcli2" / "volumes_in_text.txt").read_text(encoding="utf-8")
    (volume,) = storcli2.parse_volumes(text)
    assert (volume.members, volume.size, volume.strip) == (("268:1", "268:0"), 468582400 * 4096, 65536)
    assert (volume.name, volume.level, volume.state, volume.device) == ("two words", "10", "Dgrd", "/dev/sdm")
    assert (volume.policies["read_policy"], volume.progress) == ("nora", {"rebuild": 0.0})


@pytest.mark.parametrize(
    ("parse", "text"),
    [(storcli.parse_adapters, ADAPTER), (storcli.parse_volumes, VOLUMES), (storcli.parse_drives, DRIVES)],
)
def test_blank_lines_that_a_copy_left_out_hide_nothing(parse: Callable[[str], object], text: str) -> None:
    assert parse(re.sub(r"\n{2,}", "\n", text)) == parse(text)


def test_rows_among_labelled_lines_are_refused() -> None:
    text = ADAPTER.replace("VD LIST :\n=======\n\n", "VD LIST :\n=======\nOf this group = 1\n")
    with pytest.raises(ToolError, match="lists drives or volumes under 'VD LIST', which is not known"):
        storcli.parse_adapters(text.replace("Virtual Drives = 1\n", ""))


def test_drive_groups_of_which_nothing_follows_are_refused() -> None:
    head = ADAPTER.partition("Virtual Drives = 1")[0]
    with pytest.raises(ToolError, match="reports drive groups and shows none"):
        storcli.parse_adapters(head)
    assert not storcli.parse_adapters(head.replace("Drive Groups = 1", "Drive Groups = 0"))[0].volumes


def test_a_topology_that_lost_its_leading_blanks_is_no_obstacle() -> None:
    rule = "-" * 40
    topology = f"{rule}\nDG Arr Row EID:Slot DID Type  State\n{rule}\n0 -   -   -        -   RAID1 Dgrd\n{rule}\n\n"
    text = ADAPTER.replace("Virtual Drives = 1", f"TOPOLOGY :\n========\n\n{topology}Virtual Drives = 1")
    (adapter,) = storcli.parse_adapters(text)
    assert adapter.volumes == storcli.parse_adapters(ADAPTER)[0].volumes


def test_what_needs_attention_is_told_with_an_overview() -> None:
    drive = "EID:Slt DID State\n{rule}\n98:7     12 Offln\n"
    text = (
        "Status = Success\nDescription = None\n\nNumber of Controllers = 1\n\nSystem Overview :\n===============\n"
        f"{RULE}\nCtl Model    Ports Hlth\n{RULE}\n  0 Example9     8 NdAtn\n{RULE}\n\n"
        "Need Attention :\n==============\n\nController 0 :\n============\n\n"
        f"{RULE}\n{drive.format(rule=RULE)}{RULE}\n"
    )
    (adapter,) = storcli.parse_adapters(text)
    assert (adapter.model, adapter.health) == ("Example9", "NdAtn")
    assert adapter.settings["Need Attention / 98:7"] == "Offln"
    with pytest.raises(ToolError, match="under 'Controller 0'"):
        storcli.parse_adapters(ADAPTER + text.partition("Need Attention :")[2])


def test_several_controllers_are_several_answers() -> None:
    second = ADAPTER.replace("Controller = 0", "Controller = 1").replace("EXT0001", "EXT0002")
    found = storcli.parse_adapters(ADAPTER + "\n" + second)
    assert [(adapter.index, adapter.serial) for adapter in found] == [("0", "EXT0001"), ("1", "EXT0002")]


def test_a_failure_is_told_with_its_reason() -> None:
    rows = "-" * 40 + "\nCtrl Status Property ErrMsg        ErrCd\n" + "-" * 40
    rows += "\n   0 Failed -        out of range    255\n" + "-" * 40 + "\n"
    text = f"Controller = 0\nStatus = Failure\nDescription = None\n\nDetailed Status :\n===============\n\n{rows}"
    with pytest.raises(ToolError, match=r"out of range \(code 255\)"):
        storcli.parse_adapters(text)
    assert storcli.parse_adapters("Status = Failure\nDescription = No Controller found\n") == ()


def test_a_list_without_a_title_is_one_of_drives() -> None:
    calls = [Call(f"storcli64 /c0/v239 show {word} J nolog", REBUILD) for word in ("init", "bgi", "cc", "migrate")]
    calls += [Call(f"storcli64 /c0/eall/sall show {word} J nolog", REBUILD) for word in ("rebuild", "copyback")]
    volume = storcli.VolumeFacts("239", members=("252:0", "252:2"))
    assert storcli.progress(Replay(calls), "0", volume) == {"rebuild": 8.0, "copyback": 8.0}


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (re.sub(r"(?m)(?<=\S) {2,}(?=\S)", " ", ADAPTER), "not in columns"),
        (ADAPTER[: ADAPTER.index("252:2")], "not whole"),
        (ADAPTER.replace("252:1     6 Offln", "252:1     6 Offln\n"), "not in columns"),
        (ADAPTER.replace("EXAMPLE2000", "EXAMPLE2000 with a name longer than its column"), "not whole"),
        (
            f"{ADAPTER}\nJBOD LIST :\n=========\n\n{RULE}\nID EID:Slt DID State\n{RULE}\n1 252:4 3 Onln\n{RULE}\n",
            "not in columns",
        ),
    ],
)
def test_a_table_that_is_not_whole_or_not_in_columns_is_refused(broken: str, complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        storcli.parse_adapters(broken)


def test_other_lines_are_kept() -> None:
    (adapter,) = storcli.parse_adapters(ADAPTER.replace("Drive Groups = 1", "A line of tomorrow\nDrive Groups = 1"))
    assert "A line of tomorrow" in adapter.settings.values()
