# SPDX-License-Identifier: Apache-2.0
"""sas3ircu: only its own word of success counts; a controller without volumes is a normal one."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.command import Completed
from storqual_core.kit.errors import MissingToolError, ToolError
from storqual_core.tools import sas3ircu
from storqual_core.tools.capabilities import VolumeRequest
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

FOLDER = Path(__file__).parent / "fixtures" / "sas3ircu"
DISPLAY, STATUS, LIST = (
    (FOLDER / f"{name}.txt").read_text(encoding="utf-8") for name in ("display", "status", "list")
)
DONE = "SAS3IRCU: Utility Completed Successfully.\n"
HELP = Call("sas3ircu HELP", "CREATE <volume type> <size> <Enclosure:Bay> [noprompt]\nDELETEVOLUME <id> [noprompt]")


class OnlyThird(Replay):
    """A bench without sas2ircu."""

    def __call__(self, argv: Any, **options: Any) -> Completed:
        """As the table, but one program is not there."""
        if argv[0] == "sas2ircu":
            raise MissingToolError("`sas2ircu` is not installed on this machine")
        return super().__call__(argv, **options)


def test_a_controller_is_read_with_what_is_under_way() -> None:
    calls = [Call("sas3ircu LIST", LIST), Call("sas3ircu 0 DISPLAY", DISPLAY), Call("sas3ircu 0 STATUS", STATUS)]
    facts = sas3ircu.read_facts(OnlyThird(calls))
    (adapter,) = facts.adapters
    assert (adapter.index, adapter.model, adapter.pci) == ("sas3ircu 0", "SAS3008", "0000:3b:00.0")
    assert adapter.firmware == {"firmware": "16.00.10.00", "bios": "8.37.00.00"}
    (drive,) = adapter.drives
    assert (drive.position, drive.serial, drive.wwn) == ("2:0", "DSN0001VPD", "0x5000c50011110001")
    assert (drive.size, drive.state) == (3907029168 * 512, "OPT")
    (volume,) = adapter.volumes
    assert (volume.id, volume.level, volume.members, volume.state) == ("323", "1", ("2:0", "2:1"), "OKY")
    assert (volume.progress, volume.healthy) == ({"initialise": 42.5}, False)
    assert [(each.position, each.slots) for each in adapter.enclosures] == [("2", 8)]
    assert facts.notes == ("a line of another release",)


def test_no_volume_is_a_normal_state() -> None:
    text = "SAS2IRCU: there are no IR volumes on the controller!\nSAS2IRCU: Error executing command STATUS.\n"
    assert sas3ircu.parse_status(text) == {}


def test_no_controller_and_no_tool_are_told_apart() -> None:
    assert sas3ircu.parse_list("SAS3IRCU: MPTLib2 Error 1\n") == {}

    def nothing(argv: Any, **_options: Any) -> Completed:
        raise MissingToolError(f"`{argv[0]}` is not installed on this machine")

    with pytest.raises(MissingToolError):
        sas3ircu.read_facts(nothing)


@pytest.mark.parametrize("cut", [0, 300, len(DISPLAY) - 40])
def test_an_answer_without_its_end_is_refused(cut: int) -> None:
    with pytest.raises(ToolError, match="controller 0 could not be read"):
        sas3ircu.parse_display(DISPLAY[:cut], "0")


def test_a_volume_is_made_and_deleted_with_words_that_the_help_shows() -> None:
    request = VolumeRequest(level="1", members=("2:0", "2:1"), name="scratch")
    made = Call("sas3ircu 0 CREATE RAID1 MAX 2:0 2:1 scratch noprompt", DONE)
    replay = Replay([HELP, made])
    sas3ircu.create(replay, "sas3ircu 0", request)
    replay.done()
    volume = sas3ircu.parse_display(DISPLAY, "0").adapters[0].volumes[0]
    replay = Replay([HELP, Call("sas3ircu 0 DELETEVOLUME 323 noprompt", DONE)])
    sas3ircu.delete(replay, "sas3ircu 0", volume)
    replay.done()
    with pytest.raises(ToolError, match="does not show CREATE without a question"):
        sas3ircu.create(Replay([Call("sas3ircu HELP", "LIST DISPLAY")]), "sas3ircu 0", request)
    with pytest.raises(ToolError, match="cannot be told a strip of a new volume"):
        sas3ircu.create(Replay([]), "sas3ircu 0", VolumeRequest("1", ("2:0", "2:1"), strip=65536))
    with pytest.raises(ToolError, match="created no volume"):
        sas3ircu.create(
            Replay([HELP, Call(made.line, "SAS3IRCU: Error executing command CREATE.\n")]), "sas3ircu 0", request
        )


def test_versions_and_progress() -> None:
    assert sas3ircu.read_versions(Replay([Call("sas3ircu 0 DISPLAY", DISPLAY)]), "sas3ircu 0")["bios"] == "8.37.00.00"
    volume = sas3ircu.parse_display(DISPLAY, "0").adapters[0].volumes[0]
    assert sas3ircu.progress(Replay([Call("sas3ircu 0 STATUS", STATUS)]), "sas3ircu 0", volume) == {
        "initialise": 42.5
    }


@pytest.mark.parametrize(
    ("printed", "size"), [("953869/1953525167", 1000204886016), ("7630885/1953506645", 8001563222016), ("0/0", None)]
)
def test_the_sector_figure_is_the_last_block_of_512_or_4096_bytes(printed: str, size: int | None) -> None:
    """A drive that is gone has none."""
    (drive,) = sas3ircu.parse_display(DISPLAY.replace("1907729/3907029167", printed)).adapters[0].drives
    assert (drive.size, drive.size_range) == (size, None)


@pytest.mark.parametrize(("printed", "size"), [("953869/4294967295", 953869 << 20), ("953869", 953869 << 20)])
def test_megabytes_alone_are_an_interval(printed: str, size: int) -> None:
    (drive,) = sas3ircu.parse_display(DISPLAY.replace("1907729/3907029167", printed)).adapters[0].drives
    assert drive.size == size
    assert drive.size_range is not None
    assert drive.size_range[0] <= 1000204886016 <= drive.size_range[1]


def test_labels_are_read_in_any_case_and_spacing() -> None:
    """All but the words of the tool itself."""
    text = "\n".join(
        line.replace("  :", ":").upper() if ":" in line and not line.startswith("SAS3IRCU") else line
        for line in DISPLAY.splitlines()
    )
    (drive,) = sas3ircu.parse_display(text).adapters[0].drives
    assert (drive.position, drive.serial, drive.size) == ("2:0", "DSN0001VPD", 2000398934016)
    assert drive.settings["SAS ADDRESS"] == "4433221-1-0000-0000"


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (sas3ircu.parse_display, LIST),
        (sas3ircu.parse_display, STATUS),
        (sas3ircu.parse_status, DISPLAY),
        (sas3ircu.parse_status, LIST),
        (sas3ircu.parse_list, DISPLAY),
        (sas3ircu.parse_list, STATUS),
    ],
)
def test_the_text_of_another_command_is_refused(parse: Any, text: str) -> None:
    with pytest.raises(ToolError):
        parse(text)


def test_each_controller_of_a_list_has_a_table_of_its_own() -> None:
    table = LIST[LIST.index("         Adapter") : LIST.index("SAS3IRCU: ")]
    second = table.replace("   0     SAS3008", "   1     SAS2308_2").replace("00h:3bh", "00h:5eh")
    text = LIST.replace("SAS3IRCU: ", f"\n{second}SAS3IRCU: ")
    assert sas3ircu.parse_list(text) == {"0": "0000:3b:00.0", "1": "0000:5e:00.0"}


def test_a_member_that_is_missing_failed() -> None:
    text = DISPLAY.replace("(OPT)", "(MIS)")
    (volume,) = sas3ircu.parse_display(text).adapters[0].volumes
    assert (volume.members, volume.failed) == (("2:0", "2:1"), ("2:0",))
    assert sas3ircu.parse_display(DISPLAY).adapters[0].volumes[0].failed == ()


def test_a_volume_that_is_inactive_is_not_well() -> None:
    """Another controller made it, and the host does not see it before it is activated."""
    text = fixture_text("sas3ircu", "display.txt").replace("Okay (OKY)", "Inactive, Okay (OKY)")
    (volume,) = sas3ircu.parse_display(text).adapters[0].volumes
    assert (volume.state, volume.healthy) == ("inactive, OKY", False)


@pytest.mark.parametrize(
    ("printed", "name"),
    [("0b1f1de26a4b7c9d", "0x600508e0000000009d7c4b6ae21d1f0b"), ("N/A", ""), ("0" * 16, ""), ("0b1f1de2", "")],
)
def test_a_volume_has_the_name_that_the_host_knows_it_by(printed: str, name: str) -> None:
    """The tool prints the last eight bytes of it from back to front."""
    (volume,) = sas3ircu.parse_display(DISPLAY.replace("0b1f1de26a4b7c9d", printed)).adapters[0].volumes
    assert volume.wwn == name


@pytest.mark.parametrize(
    ("operation", "state", "task"),
    [
        ("Synchronize", "Optimal", "initialise"),
        ("Synchronize", "Degraded", "rebuild"),
        ("Background Init", "Optimal", "initialise"),
        ("Consistency Check", "Optimal", "check"),
        ("OCE", "Optimal", "reshape"),
    ],
)
def test_what_is_under_way_on_a_volume_is_called_as_other_tools_call_it(
    operation: str, state: str, task: str
) -> None:
    text = (
        "IR Volume 1\n  Volume ID                 : 286\n"
        f"  Current operation         : {operation}\n  Volume state              : {state}\n"
        f"  Percentage complete       : 4.19%\n{DONE}"
    )
    assert sas3ircu.parse_status(text) == {"286": {task: 4.19}}


@pytest.mark.parametrize("kind", ["Enclosure services device", "unknown device"])
def test_what_the_services_device_tells_is_told_of_its_enclosure(kind: str) -> None:
    """A backplane may be called an unknown device: it is no drive, as it stands by."""
    text = DISPLAY.replace("Enclosure services device", kind).replace(
        "  GUID                                    : N/A\n",
        "  Manufacturer                            : ACME\n  Model Number                            : Cage8\n"
        "  Firmware Revision                       : 0103\n  GUID                                    : N/A\n",
    )
    (adapter,) = sas3ircu.parse_display(text, "0").adapters
    (enclosure,) = adapter.enclosures
    assert [drive.position for drive in adapter.drives] == ["2:0"]
    assert (enclosure.vendor, enclosure.model, enclosure.state) == ("ACME", "Cage8", "SBY")
    assert adapter.settings["enclosure 2: Firmware Revision"] == "0103"
    assert adapter.settings["enclosure 2: Logical ID"] == "500065b3:6789abff"
