# SPDX-License-Identifier: Apache-2.0
"""storcli2 and perccli2: another grammar, other words for the same things, failures with a status of 0."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import storcli2
from storqual_core.tools.capabilities import VolumeFacts, VolumeRequest
from tests.support.replay import Call, Replay, Tools

FIXTURES = Path(__file__).parent / "fixtures" / "storcli2"
VOLUME = VolumeFacts("1", level="1")
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FIXTURES.iterdir())}


def call(words: str, answer: str = "done") -> Call:
    """One command of the tool, answered with a fixture."""
    return Call(f"storcli2 {words} J", TEXTS[answer])


def reading() -> Replay:
    """The commands of a look at everything."""
    return Replay(
        [
            call("show", "show"),
            call("/c0 show all", "show_all"),
            call("/c0/eall/sall show all", "drives"),
            call("/c0/vall show all", "volumes"),
        ]
    )


def test_a_controller_is_read_with_drives_and_volumes() -> None:
    (adapter,) = storcli2.read_facts(reading()).adapters
    assert (adapter.index, adapter.model, adapter.vendor, adapter.pci) == (
        *("0", "Example 96", "Example", "0000:16:00.0"),
    )
    assert adapter.firmware == {"firmware": "8.1.1", "package": "8.1.0"}
    assert [drive.state for drive in adapter.drives] == ["Conf Online", "Conf Offline", "UConf Good"]
    assert adapter.drives[0].wwn == "0x5000c50000000010"
    (volume,) = adapter.volumes
    assert (volume.level, volume.healthy, volume.strip) == ("1", False, 65536)
    assert volume.policies == {"read_policy": "nora", "write_policy": "wb", "disk_cache": "disable"}
    assert (volume.members, volume.device) == (("306:0", "306:1"), "/dev/sdq")
    assert volume.wwn == "0x600062b200000020aabbccdd00112233"


def test_a_volume_leads_to_its_drives() -> None:
    assert storcli2.resolve(reading(), "/dev/sdq") == ("0x5000c50000000010", "306:1")


def drives_list() -> Replay:
    return Replay(
        [
            call("show", "show"),
            call("/c0 show all", "show_all"),
            call("/c0/eall/sall show all", "drives_list"),
            call("/c0/vall show all", "volumes_4096"),
        ]
    )


def test_drives_of_a_drives_list_are_read_and_resolved() -> None:
    (adapter,) = storcli2.read_facts(drives_list()).adapters
    drive = next(drive for drive in adapter.drives if drive.position == "306:0")
    assert (drive.wwn, drive.serial, drive.model) == ("0x5000c50000001000", "DSN1000", "EXAMPLE10T")
    assert (drive.size, drive.revision) == (0x48C400000 * 512, "E001")
    assert (drive.counters["Media Error Count"], drive.state) == (2, "Conf Online")
    assert drive.settings["LU/NS Properties / Current Write Cache"] == "Off"
    assert storcli2.resolve(drives_list(), "/dev/sdk") == ("0x5000c50000001000",)


def test_a_volume_of_blocks_of_4096_bytes_and_its_drives_write_cache() -> None:
    (volume,) = storcli2.parse_volumes(TEXTS["volumes_4096"])
    assert volume.size == 2441478144 * 4096
    assert volume.policies["disk_cache"] == "disable"


def test_an_overview_and_a_short_list_of_volumes_are_read() -> None:
    (adapter,) = storcli2.parse_adapters(TEXTS["overview"])
    assert (adapter.index, adapter.model, adapter.health) == ("0", "Example 9660", "Optimal")
    assert adapter.ports[0].wwn == "0x500062b200000020"
    (volume,) = storcli2.parse_volumes(TEXTS["volumes_short"])
    assert (volume.id, volume.level, volume.policies["write_policy"]) == ("1", "0", "wb")


@pytest.mark.parametrize("answer", ["done", "show", "drives_list"])
def test_what_tells_nothing_of_volumes_is_refused(answer: str) -> None:
    with pytest.raises(ToolError, match=r"says nothing about volumes|its volumes were asked for"):
        storcli2.parse_volumes(TEXTS[answer])


def test_no_controller_is_no_error_and_no_volume_is_one() -> None:
    """Both end with status 0."""
    assert storcli2.read_facts(Replay([call("show", "none")])).adapters == ()
    with pytest.raises(ToolError, match=r"Invalid VD number \(code 255\)"):
        storcli2.parse_volumes(TEXTS["no_volume"])
    with pytest.raises(ToolError, match="finds no controller 3"):
        storcli2.read_versions(Replay([call("/c3 show all", "none")]), "3")


def test_plain_text_is_told_with_what_it_says() -> None:
    with pytest.raises(ToolError, match="could not be set to wt: syntax error, unexpected TOKEN_EXAMPLE"):
        storcli2.set_policy(Replay([call("/c0/v1 set wrcache=wt", "plain")]), "0", VOLUME, "write_policy", "wt")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda r: storcli2.delete(r, "0", VOLUME), "/c0/v1 delete"),
        (lambda r: storcli2.set_policy(r, "0", VOLUME, "write_policy", "wt"), "/c0/v1 set wrcache=wt"),
        (
            lambda r: storcli2.create(
                r, "0", VolumeRequest("1", ("306:0", "306:1"), policies={"read_policy": "ra", "write_policy": "wb"})
            ),
            "/c0 add vd r1 drives=306:0,306:1 wb ra",
        ),
    ],
)
def test_a_change_is_one_command(act: Callable[[Replay], None], words: str) -> None:
    replay = Replay([call(words)])
    act(replay)
    replay.done()
    with pytest.raises(ToolError, match="Invalid VD number"):
        act(Replay([call(words, "no_volume")]))


def test_what_is_not_verified_is_refused_with_every_reason() -> None:
    request = VolumeRequest("5", ("a",), 65536, "n", {"io_policy": "direct"}, "full", ("b",))
    with pytest.raises(ToolError) as told:
        storcli2.create(Replay([]), "0", request)
    for words in ("needs 3 members", "no io_policy to set", "a strip", "name", "hot spares", "initialisation"):
        assert words in str(told.value)
    assert "how storcli2 makes RAID 60 is not verified" in storcli2.objections(VolumeRequest("60", ()))[0]
    with pytest.raises(ToolError, match="knows no io_policy"):
        storcli2.set_policy(Replay([]), "0", VOLUME, "io_policy", "direct")


def test_a_member_that_failed_is_told_and_a_listed_volume_has_a_size() -> None:
    assert storcli2.parse_volumes(TEXTS["volumes"])[0].failed == ("306:1",)
    assert storcli2.parse_volumes(TEXTS["volumes_4096"])[0].failed == ()
    low, high = storcli2.parse_volumes(TEXTS["volumes_short"])[0].size_range or (0, 0)
    assert low < 2441478144 * 4096 < high


PROPERTIES = [{"Ctrl_Prop": "PR Mode", "Value": "Auto"}, {"Ctrl_Prop": "PR Current State", "Value": "Active 3"}]
PATROL = json.dumps(
    {
        "Controllers": [
            {
                "Command Status": {"Controller": "0", "Status": "Success", "Description": "None"},
                "Response Data": {"Controller Properties": PROPERTIES},
            }
        ]
    }
)


def at_work(volumes: str, patrol: str, shown: str = TEXTS["show_all"]) -> Replay:
    return Replay(
        [
            Call("storcli2 /call show J", shown),
            Call("storcli2 /c0/vall show all J", volumes),
            Call("storcli2 /c0 show patrolread J", patrol),
        ]
    )


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ('"Status": "Offline"', '"Status": "Rebuild"', "volume 1: rebuild is under way"),
        ('"Status": "Offline"', '"Status": "Replace"', "volume 1: copyback is under way"),
        ('"State": "Conf"', '"State": "ConfSntz"', "volume 1: sanitize is under way"),
        ('"Strip Size"', '"Morphing": "Yes", "Strip Size"', "volume 1: reshape is under way"),
    ],
)
def test_what_a_controller_does_beside_the_host_is_told(written: str, instead: str, said: str) -> None:
    (found,) = storcli2.read_background(at_work(TEXTS["volumes"].replace(written, instead), PATROL))
    assert (found.index, found.pci) == ("0", "0000:16:00.0")
    assert found.work == (said, "a patrol read is under way (3 drives done)")
    assert found.unread == ()


def test_a_spare_that_is_erased_is_work_and_a_healthy_controller_has_none() -> None:
    assert storcli2.read_background(at_work(TEXTS["volumes"], TEXTS["no_patrol_read"]))[0].work == ()
    sanitizing = TEXTS["show_all"].replace('"UConf"', '"UConfSntz"')
    (found,) = storcli2.read_background(at_work(TEXTS["volumes"], TEXTS["no_patrol_read"], sanitizing))
    assert found.work == ("drive 306:2 is UConfSntz Good",)


def test_a_controller_without_volumes_is_not_asked_for_them() -> None:
    shown = json.loads(TEXTS["show_all"][TEXTS["show_all"].index("{") :])
    del shown["Controllers"][0]["Response Data"]["VD LIST"]
    calls = [
        Call("storcli2 /call show J", json.dumps(shown)),
        Call("storcli2 /c0 show patrolread J", TEXTS["no_patrol_read"]),
    ]
    (found,) = storcli2.read_background(Replay(calls))
    assert (found.work, found.unread) == ((), ())
    assert storcli2.read_background(Replay([Call("storcli2 /call show J", TEXTS["none"])])) == ()


@pytest.mark.parametrize("odd", [*TEXTS.values(), "", "{}", "[]", '{"Controllers": [{}]}', '{"Controllers": [1]}'])
def test_any_answer_to_any_question_is_read_or_told(odd: str) -> None:
    """Other commands' answers among them: nothing but a sentence, and never work that nobody told."""
    (found,) = storcli2.read_background(at_work(odd, PATROL))
    assert found.work[-1] == "a patrol read is under way (3 drives done)"
    (found,) = storcli2.read_background(at_work(TEXTS["volumes"], odd))
    assert found.work == ()
    assert found.unread or odd in (TEXTS["none"], TEXTS["no_volume"], TEXTS["no_patrol_read"])
    with contextlib.suppress(ToolError):
        found_all = storcli2.read_background(Tools({"storcli2 /call show J": odd}))
        assert all(not each.work for each in found_all)
