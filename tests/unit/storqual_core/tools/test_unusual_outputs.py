# SPDX-License-Identifier: Apache-2.0
"""What tools print beside the usual: one odd object among others, nothing where something was asked, other texts."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core import tools
from storqual_core.kit.errors import StorqualError, ToolError
from storqual_core.tools import (
    TOOLS,
    arcconf,
    dkms,
    hbacmd,
    lsiutil,
    lspci,
    lsscsi,
    mdadm,
    mvcli,
    nvme,
    qaucli,
    sas3ircu,
    sdparm,
    smartctl,
    ssacli,
    storcli,
    storcli2,
)
from storqual_core.tools.capabilities import DriveFacts, VolumeFacts, all_but_odd
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text
from tests.unit.storqual_core.tools.test_next_release import FACTS, volumes_of

FIXTURES = Path(__file__).parent / "fixtures"
DONE = "Command completed successfully.\n"


# one odd object among others


def test_what_is_not_known_whole_has_no_members_and_hides_nothing_beside_it() -> None:
    odd, sound = VolumeFacts("0", members=("1",), healthy=True, unread="half of it"), VolumeFacts("1", members=("2",))
    assert all_but_odd([odd, sound]) == (replace(odd, members=(), healthy=None), sound)
    with pytest.raises(ToolError, match="half of it"):
        all_but_odd([odd])
    assert all_but_odd([odd], [DriveFacts("1")])[0].unread == "half of it"


def test_a_volume_of_arcconf_in_words_that_nobody_knows_does_not_hide_drives_and_volumes() -> None:
    config = fixture_text("arcconf", "getconfig.txt")
    second = (
        "Logical device number 1\n   RAID level : 0\n   Status of logical device : Optimal\n"
        "   Logical device segment information\n   Segment 0 : 12 of 13\n\n"
    )
    text = config.replace("Physical Device information", f"{second}Physical Device information")
    (adapter,) = arcconf.parse_config(text).adapters
    sound, odd = adapter.volumes
    assert (sound.members, sound.unread) == (("0 0", "0 1"), "")
    assert (odd.id, odd.healthy, odd.members) == ("1", None, ())
    assert "'Segment 0 : 12 of 13' where a member of a volume was expected" in odd.unread
    assert adapter.unreadable() == [f"volume 1: {odd.unread}"]


def test_a_cache_of_drives_is_no_volume_and_hides_none() -> None:
    cache = (
        "maxCache device number 100\n   RAID level : 1\n   Size : 10 MB\n   Status of maxCache device : Optimal\n\n"
    )
    config = fixture_text("arcconf", "getconfig.txt")
    (adapter,) = arcconf.parse_config(config.replace("Physical Device inf", f"{cache}Physical Device inf")).adapters
    assert [volume.id for volume in adapter.volumes] == ["0"]
    assert adapter.settings["cache 100: RAID level"] == "1"


def test_a_controller_that_does_not_answer_does_not_hide_the_next() -> None:
    listed = "Controllers found: 2\nController 1: : Optimal, Slot 1\nController 2: : Optimal, Slot 2\n" + DONE
    status = Call("arcconf GETSTATUS 2", "Controllers found: 1\n" + DONE)
    calls = [
        Call("arcconf LIST", listed),
        Call("arcconf GETCONFIG 1 AL", "Controller is not responding.\n"),
        Call("arcconf GETCONFIG 2 AL", fixture_text("arcconf", "smartraid.txt")),
        status,
    ]
    odd, sound = arcconf.read_facts(Replay(calls)).adapters
    assert (odd.index, odd.drives, "not responding" in odd.unread) == ("1", (), True)
    assert (sound.index, len(sound.drives), sound.unread) == ("2", 2, "")


def test_a_drive_of_integrated_raid_without_its_slot_does_not_hide_the_next() -> None:
    more = "Device is a Hard disk\n  Enclosure # : 2\n  Slot # : 1\n  Serial No : DSN0002\n\nDevice is a Enclosure"
    text = fixture_text("sas3ircu", "display.txt").replace("Device is a Enclosure", more)
    (adapter,) = sas3ircu.parse_display(text.replace("  Slot #    ", "  Bay #     ", 1)).adapters
    odd, sound = adapter.drives
    assert (odd.serial, "without its enclosure or slot" in odd.unread) == ("DSN0001VPD", True)
    assert (sound.position, sound.serial, sound.unread) == ("2:1", "DSN0002", "")


def test_a_record_of_mvcli_that_is_of_two_drives_does_not_hide_the_next() -> None:
    text = fixture_text("mvcli", "pd.txt").replace("SSD Type:            SSD", "Serial:              DSN0009")
    odd, sound = mvcli.parse_drives(text)
    assert "is no drive, or of two drives" in odd.unread
    assert (sound.serial, sound.unread) == ("DSN0002", "")


def test_a_row_of_lsiutil_that_is_not_understood_does_not_hide_the_others() -> None:
    text = fixture_text("lsiutil", "display.txt")
    right = lsiutil.parse_display(text).drives
    row = next(line for line in text.splitlines() if right[0].model and right[0].model in line)
    odd = lsiutil.parse_display(text.replace(row, "   ?  ?  Disk      ???", 1)).drives
    assert "is not understood" in odd[0].unread
    assert odd[1:] == right[1:]


def controller(number: int, **data: Any) -> dict[str, Any]:
    """The answer of one controller in the JSON of storcli."""
    status = {"CLI Version": "007.1", "Controller": number, "Status": "Success", "Description": "None"}
    return {"Command Status": status, "Response Data": data}


def drive(place: str, **row: Any) -> dict[str, Any]:
    return {"EID:Slt": place, "State": "Onln", "DG": 0, "Size": "1 TB", "Med": "HDD", "Model": "EXAMPLE", **row}


def said(*answers: Any) -> str:
    return json.dumps({"Controllers": list(answers)})


def test_a_controller_that_lists_less_than_it_says_does_not_hide_the_next() -> None:
    whole = {"Product Name": "A", "Physical Drives": 1, "PD LIST": [drive("1:0")]}
    odd, sound = storcli.parse_adapters(
        said(controller(0, **{**whole, "Physical Drives": 2}), controller(1, **whole))
    )
    assert (odd.index, odd.drives, "reports 2 (Physical Drives) and lists 1" in odd.unread) == ("0", (), True)
    assert (sound.index, sound.drives[0].position, sound.unread) == ("1", "1:0", "")


def test_a_drive_of_storcli_without_a_state_does_not_hide_the_others() -> None:
    rows = [drive("1:0"), drive("1:1"), drive("1:1"), drive("1:3")]
    del rows[0]["State"]
    (adapter,) = storcli.parse_adapters(said(controller(0, **{"Product Name": "A", "PD LIST": rows})))
    assert [(each.position, bool(each.unread)) for each in adapter.drives] == [
        ("1:0", True),
        ("1:1", True),
        ("1:3", False),
    ]


def volume(number: int, members: int, **properties: Any) -> dict[str, Any]:
    """A volume of storcli with so many members, as `/cN/vall show all` tells it."""
    row = {"DG/VD": f"{number}/{number}", "TYPE": "RAID6", "State": "Optl", "Size": "1 TB", "Name": ""}
    return {
        f"/c0/v{number}": [row],
        f"PDs for VD {number}": [drive(f"1:{place}") for place in range(members)],
        f"VD{number} Properties": {"Strip Size": "64 KB", **properties},
    }


def test_a_volume_of_storcli_that_lists_less_than_its_spans_does_not_hide_the_next() -> None:
    spans = {"Span Depth": 2, "Number of Drives Per Span": 4}
    odd, sound = storcli.parse_volumes(said(controller(0, **volume(0, 6, **spans), **volume(1, 8, **spans))))
    assert (odd.id, odd.members, odd.healthy) == ("0", (), None)
    assert "is said to have 8 drives, and lists 6" in odd.unread
    assert (len(sound.members), sound.healthy, sound.unread) == (8, True, "")


def test_a_volume_of_storcli2_that_lists_less_than_it_says_is_told() -> None:
    text = fixture_text("storcli2", "volumes.json")
    (right, *_) = storcli2.parse_volumes(text)
    wrong = text.replace('"VD Properties": {', '"VD Properties": {"Number of Drives": 9, ').replace("Dgrd", "Optl")
    with pytest.raises(ToolError, match=f"is said to have 9 drives, and lists {len(right.members)}"):
        storcli2.parse_volumes(wrong)


def test_a_namespace_of_two_sizes_does_not_hide_the_next() -> None:
    spaces = [
        {"NameSpace": f"nvme0n{number}", "MaximumLBA": 1000, "SectorSize": 512, "PhysicalSize": size}
        for number, size in ((1, 9999), (2, 512000))
    ]
    odd, sound = nvme.parse_list(json.dumps({"Devices": [{"Namespaces": spaces}]}))
    assert (odd.node, odd.size, "two sizes" in odd.unread) == ("/dev/nvme0n1", None, True)
    assert (sound.node, sound.size, sound.unread) == ("/dev/nvme0n2", 512000, "")


@pytest.mark.parametrize(
    ("lines", "module"),
    [
        (
            "Error! Could not locate dkms.conf file.\nFile: /var/lib/dkms/odd/1.0/source/dkms.conf does not exist.\n",
            "odd",
        ),
        ("odd/1.0: Missing the module source directory or the symbolic link pointing to it.\n", "odd"),
        ("Error! something that nobody knows\n", ""),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_broken_tree_of_dkms_does_not_hide_the_others(lines: str, module: str, first: bool) -> None:
    sound = "hba/1.2.3, 6.1.0-1-amd64, x86_64: installed\n"
    states = dkms.parse_status(lines + sound if first else sound + lines)
    assert [(each.module, each.state) for each in states] == [("hba", "installed"), (module, dkms.UNREAD)]
    source = dkms.DkmsSource("hba", "1.2.3")
    calls = [Call("dkms status", sound, f"{lines}", 4)]
    if module:
        # the broken tree is another driver's
        uninstall = Call("dkms uninstall -m hba -v 1.2.3 -k 6.1.0-1-amd64")
        assert dkms.uninstall(Replay([*calls, uninstall]), source, "6.1.0-1-amd64")
    else:
        with pytest.raises(ToolError, match="mend that tree first"):
            dkms.uninstall(Replay(calls), source, "6.1.0-1-amd64")
    if module:
        assert [(each.module, each.state) for each in dkms.parse_status(lines)] == [(module, dkms.UNREAD)]
        with pytest.raises(ToolError, match="mend that tree first"):
            dkms.uninstall(
                Replay([Call("dkms status", "", lines, 4)]), dkms.DkmsSource("odd", "1.0"), "6.1.0-1-amd64"
            )
    else:
        with pytest.raises(ToolError, match="which is not understood"):
            dkms.parse_status(lines)


def test_two_members_that_are_missing_are_both_said_to_be_nowhere() -> None:
    text = fixture_text("sas3ircu", "display.txt").replace("Okay (OKY)", "Degraded (DGD)")
    text = text.replace(": 2:0\n  PHY", ": 0:0\n  PHY").replace(": 2:1\n---", ": 0:0\n---")
    (volume_facts,) = sas3ircu.parse_display(text).adapters[0].volumes
    assert (volume_facts.members, volume_facts.unread, volume_facts.healthy) == (("0:0", "0:0"), "", False)


def test_a_row_of_lspci_or_lsscsi_that_is_odd_does_not_hide_the_others() -> None:
    records = fixture_text("lspci", "records.txt")
    odd, sound = lspci.parse_records(records.replace("Slot:\t3b:00.0", "Slot:\tff:3b:00.0"))
    assert (odd.address, "without the address" in odd.unread) == ("", True)
    assert sound == lspci.parse_records(records)[1]
    text = fixture_text("lsscsi", "g.txt")
    devices = lsscsi.parse_devices("root@bench:~# lsscsi -g\n" + text.replace("1.02  -          /dev/sg1", "1.02 ?"))
    assert [(each.path, bool(each.unread)) for each in devices] == [
        ("0:0:0:0", False),
        ("0:0:8:0", True),
        ("2:2:0:0", False),
        ("N:0:1:1", False),
    ]


def test_an_instance_of_qlogic_without_its_model_does_not_hide_the_next() -> None:
    text = fixture_text("qaucli", "instances.txt")
    odd, sound = qaucli.parse_instances(text.replace("HBA Model", "Board") + text.replace(": 3\n", ": 4\n")).adapters
    assert (odd.index, bool(odd.unread), sound.index, sound.unread) == ("3", True, "4", "")
    listing = fixture_text("qaucli", "listing.txt").replace("(HBA instance  3)", "(instance 3)")
    one, other = qaucli.parse_listing(listing).adapters
    assert (one.index, one.unread, "in other words" in other.unread) == ("2", "", True)


def test_a_volume_whose_task_is_not_told_does_not_hide_the_drives() -> None:
    display = fixture_text("sas3ircu", "display.txt")
    calls = [
        Call("sas3ircu LIST", fixture_text("sas3ircu", "list.txt")),
        Call("sas2ircu LIST", "MPTLib2 Error 1\n", rc=1),
        Call("sas3ircu 0 DISPLAY", display),
        Call("sas3ircu 0 STATUS", "SAS3IRCU: Error executing command STATUS.\n"),
    ]
    listed = sas3ircu.parse_list(fixture_text("sas3ircu", "list.txt"))
    for number in [name for name in listed if name != "0"]:
        calls += [Call(f"sas3ircu {number} DISPLAY", display), Call(f"sas3ircu {number} STATUS", "")]
    adapter, *_ = sas3ircu.read_facts(Replay(calls)).adapters
    assert [drive.unread for drive in adapter.drives] == [""]
    assert [(bool(each.unread), each.healthy) for each in adapter.volumes] == [(True, None)]


def test_a_port_of_emulex_that_does_not_answer_does_not_hide_the_next() -> None:
    name = "10:00:00:00:00:00:00:0{}"
    listed = f"Manageable HBA List\n\nPort WWN : {name.format(1)}\n\nPort WWN : {name.format(2)}\n"
    calls = [
        Call("hbacmd ListHBAs", listed),
        Call(f"hbacmd HbaAttributes {name.format(1)}", "ERROR: HBA not found\n", rc=1),
        Call(f"hbacmd HbaAttributes {name.format(2)}", fixture_text("hbacmd", "attributes.txt")),
        Call(f"hbacmd GetFwParams {name.format(2)}", fixture_text("hbacmd", "parameters.txt")),
    ]
    odd, sound = hbacmd.read_facts(Replay(calls)).adapters
    assert (odd.index, bool(odd.unread), sound.model, sound.unread) == (name.format(1), True, "LPe00000", "")


def test_an_array_whose_details_contradict_each_other_does_not_hide_the_next() -> None:
    sound, odd = fixture_text("mdadm", "raid10_rebuilding.txt"), fixture_text("mdadm", "raid5_pending.txt")
    odd = odd.replace("Raid Devices : 3", "Raid Devices : 4")
    one, other = mdadm.parse_details(f"{sound}\n{odd}")
    assert one == mdadm.parse_detail(sound)
    assert (other.id, other.state, other.members) == ("/dev/md/r5", "clean, resyncing (PENDING)", ())
    assert "reports 4 (Raid Devices) and lists 3" in other.unread


def test_a_tree_of_ssacli_that_lists_less_than_it_says_is_refused() -> None:
    tree = fixture_text("ssacli", "config_short.txt")
    (right,) = ssacli.parse_controllers(tree).adapters
    first = next(line for line in tree.splitlines() if " in Slot " in line)
    told = f"{first}\n   Number of Logical Drives: {{}}\n   Number of Physical Drives: {{}}\n"
    text = tree.replace(f"{first}\n", told, 1)
    counts = len(right.volumes), len(right.drives)
    assert ssacli.parse_controllers(text.format(*counts)).adapters[0].volumes == right.volumes
    with pytest.raises(ToolError, match=r"reports 9 \(Number of Logical Drives\) and lists"):
        ssacli.parse_controllers(text.format(9, counts[1]))
    with pytest.raises(ToolError, match=r"reports 9 \(Number of Physical Drives\) and lists"):
        ssacli.parse_controllers(text.format(counts[0], 9))


# nothing is no reading


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"local_time": {"time_t": 1}},
        {"model_name": "EXAMPLE", "serial_number": "S1", "smart_support": {"available": True, "enabled": True}},
        {"smart_status": {}, "temperature": {"current": 0}},
        {"temperature": {"current": 255, "drive_trip": 255}, "power_on_time": {}},
    ],
    ids=["a device alone", "a device and the time", "an answer to -i", "empty objects", "no sensor"],
)
def test_an_answer_without_health_is_no_answer_about_health(more: dict[str, Any]) -> None:
    about = {"smartctl": {"argv": ["smartctl", "-x", "/dev/sdz"], "exit_status": 0}, "device": {"name": "/dev/sdz"}}
    with pytest.raises(ToolError, match="no health in the answer of `smartctl -x /dev/sdz`"):
        smartctl.parse_health(json.dumps({**about, **more}))


def test_a_log_of_zeros_is_no_log_and_a_list_of_no_controllers_no_list() -> None:
    zeros = dict.fromkeys(json.loads(fixture_text("nvme", "smart_log.json")), 0)
    with pytest.raises(ToolError, match="the drive did not answer"):
        nvme.parse_smart_log(json.dumps({**zeros, "media_errors": 0}))
    for tool in (storcli, storcli2):
        with pytest.raises(ToolError, match="does not say that there is none"):
            tool.parse_adapters('{"Controllers": []}')
    with pytest.raises(ToolError, match="no active firmware slot"):
        nvme.parse_slots('{"nvme0": {"Active Firmware Slot (afi)": 0}}')
    with pytest.raises(ToolError, match="no list of devices"):
        smartctl.parse_scan('{"smartctl": {"argv": ["smartctl", "--scan"], "exit_status": 0}}')


def test_progress_that_no_answer_tells_is_not_idle() -> None:
    answer = said(controller(0))
    calls = [Call(f"storcli64 /c0/v1 show {word} J nolog", answer) for word in ("init", "bgi", "cc", "migrate")]
    with pytest.raises(ToolError, match="does not tell what is under way on volume 1"):
        storcli.progress(Replay(calls), "0", VolumeFacts("1"))


def test_a_configuration_of_the_controller_alone_does_not_say_that_it_has_no_volumes() -> None:
    text = fixture_text("arcconf", "smartraid.txt")
    alone = text[: text.index("Array Information")] + DONE
    with pytest.raises(ToolError, match="says that it has 1 volumes and lists 0"):
        arcconf.parse_config(alone)
    assert arcconf.parse_config(alone, part="AD").adapters[0].model == "SmartX 3154"
    with pytest.raises(ToolError, match="no answer to GETCONFIG AL"):
        arcconf.parse_config(alone.replace("1/0/0", "x"), part="AL")


GOOD = ("Optl", "Optimal", "functional", "Okay (OKY)", "Okay", "Status: OK", ", OK)")


@pytest.mark.parametrize("nothing", ["N/A", "-", "", "Unknown"])
@pytest.mark.parametrize(
    ("tool", "parser", "name"),
    [
        ("arcconf", "parse_config", "getconfig.txt"),
        ("arcconf", "parse_config", "smartraid.txt"),
        ("mvcli", "parse_volumes", "vd.txt"),
        ("sas3ircu", "parse_display", "display.txt"),
        ("ssacli", "parse_controllers", "config_short.txt"),
        ("ssacli", "parse_controllers", "config_detail.txt"),
        ("storcli", "parse_volumes", "volumes.json"),
        ("storcli2", "parse_volumes", "volumes.json"),
    ],
)
def test_no_state_is_not_well(tool: str, parser: str, name: str, nothing: str) -> None:
    text = fixture_text(tool, name)
    for good in GOOD:
        text = text.replace(good, good.replace(good.strip(", )").rpartition(": ")[2], nothing))
    try:
        found = getattr(TOOLS[tool](), parser)(text)
    except ToolError:
        return
    assert not any(each.healthy for each in volumes_of(found))


# a refusal names the cause


def test_a_refusal_names_the_closing_line_that_is_missing() -> None:
    text = fixture_text("arcconf", "getconfig.txt").replace(DONE.strip(), "")
    with pytest.raises(
        ToolError, match=r"closing line `Command completed successfully\.` is missing, the last one is"
    ):
        arcconf.parse_config(text)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"Devices": [\n {"DevicePath": "/dev/nvme0n1"', "it ends before it is whole, after"),
        (
            '{"Devices": [\n {"DevicePath": "/dev/nvme0n1", "UsedBytes": -nan}\n]}\n',
            r"line 2 is not JSON \(-nan is no",
        ),
        ('{"Devices": [\nfailed to open /dev/nvme1\n]}\n', "line 2 is not JSON .*: failed to open /dev/nvme1"),
        ('{"error": "Permission denied"}\n', "Permission denied"),
        ("Permission denied\n", "no JSON object: Permission denied"),
        ("", "nothing"),
    ],
)
def test_a_refusal_of_json_names_what_is_wrong_in_it(text: str, cause: str) -> None:
    with pytest.raises(ToolError, match=cause):
        nvme.parse_list(text)


def test_a_warning_within_mode_pages_is_kept_and_says_nothing_against_the_other_pages() -> None:
    text = (
        "    /dev/sdb: EXAMPLE   STICK             1.00\nRead write error recovery mode page:\n  AWRE  0\n"
        "Caching (SBC) mode page:\n>>> warning: mode page seems malformed, try '--flexible'\n"
        "  WCE         0  [cha: n, def:  0, sav:  0]\n  RCD         1  [cha: y, def:  1, sav:  1]\n"
    )
    found = sdparm.parse_fields(text)
    values = [field.value for name in ("AWRE", "WCE", "RCD") for field in [found.field(name)] if field]
    assert values == [0, 0, 1]
    assert found.notes == ("Caching (SBC) mode page: >>> warning: mode page seems malformed, try '--flexible'",)


# a parser knows its own text

OWN = {
    (tool, parser): files
    for tool, parsers in json.loads(Path(__file__).with_name("own_outputs.json").read_text(encoding="utf-8")).items()
    for parser, files in parsers.items()
}
"""The outputs of its own command, by tool and parser; every other output of the tool is another command's."""


@pytest.mark.parametrize(("tool", "parser"), OWN)
def test_a_parser_reads_the_output_of_its_own_command_alone(tool: str, parser: str) -> None:
    parse: Callable[[str], Any] = getattr(TOOLS[tool](), parser)
    read = set()
    for path in sorted((FIXTURES / tool).iterdir()):
        try:
            parse(path.read_text(encoding="utf-8"))
        except ToolError:
            continue
        read.add(path.name)
    assert read == set(OWN[tool, parser])


def test_a_drive_of_storcli2_is_not_read_in_the_words_of_storcli() -> None:
    with pytest.raises(ToolError, match="a status beside its state, as storcli2 does"):
        storcli.parse_drives(fixture_text("storcli2", "drives.json"))


@pytest.mark.parametrize(
    ("tool", "parser", "path"),
    [
        (tool, parser, path)
        for tool, parsers in FACTS.items()
        for path in sorted((FIXTURES / tool).iterdir())
        for parser in parsers
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_byte_order_mark_changes_nothing(tool: str, parser: str, path: Path) -> None:
    parse, text = getattr(TOOLS[tool](), parser), path.read_text(encoding="utf-8")
    try:
        right = parse(text)
    except StorqualError:
        return
    try:
        marked = parse("\ufeff" + text)
    except ToolError:
        # not read, and told
        return
    assert marked == right


def every_parser() -> dict[tuple[str, str], Callable[[str], Any]]:
    """Each function that reads one whole text of a tool, by tool and name."""
    found = {}
    for each in pkgutil.iter_modules(tools.__path__):
        module = importlib.import_module(f"{tools.__name__}.{each.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
            if name.startswith("parse_") and function.__module__ == module.__name__ and len(needed) == 1:
                found[each.name, name] = function
    return found


PARSERS = every_parser()
OF_ANY_TEXT = {
    *(("fwupd", "parse_error"), ("grub", "parse_config"), ("grub", "parse_environment")),
    *(("lsiutil", "parse_notes"), ("mvcli", "parse_records"), ("sg_write_buffer", "parse_revision")),
    *(("bls", "parse_entry"), ("rpm", "parse_files")),
}
"""These look for something in files of a system, or in an answer that another parser of the tool takes or refuses."""
SILENT = {
    *(("dkms", "parse_status"), ("dpkg", "parse_packages"), ("kmod", "parse_modinfo"), ("lspci", "parse_records")),
    *(
        ("lsscsi", "parse_devices"),
        ("lsscsi", "parse_transports"),
        ("mdadm", "parse_scan"),
        ("multipath", "parse_maps"),
    ),
    *(("sg3", "parse_hex_bytes"), ("smartctl", "parse_scan_text")),
    *(("mvcli", "parse_cards"), ("mvcli", "parse_drives"), ("mvcli", "parse_volumes")),
    *(("rpm", "parse_scripts"), ("rpm", "parse_verify"), ("weak_modules", "parse_answer")),
}
"""Tools that print nothing where there is nothing."""
FAMILIES = {"storcli2": "storcli"}
NO_ANSWERS = (
    *("{}", "[]", "null", "sh: 1: tool: not found\n", "Permission denied\n", "Segmentation fault (core dumped)\n"),
    *("Usage: tool [options] <command>\n  -h  help\n", "<html><body>502 Bad Gateway</body></html>", "\x00\x00"),
)


def accepted(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except StorqualError:
        return False
    return True


@pytest.mark.parametrize(("tool", "parser"), sorted(PARSERS.keys() - OF_ANY_TEXT))
def test_a_parser_refuses_what_is_no_answer_and_the_answers_of_every_other_tool(tool: str, parser: str) -> None:
    parse = PARSERS[tool, parser]
    assert [text for text in NO_ANSWERS if accepted(parse, text)] == []
    assert accepted(parse, "") is ((tool, parser) in SILENT)
    texts = {
        f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(FIXTURES.rglob("*"))
        if path.is_file() and FAMILIES.get(path.parent.name, path.parent.name) != FAMILIES.get(tool, tool)
    }
    assert [name for name, text in texts.items() if text.strip() and accepted(parse, text)] == []
