# SPDX-License-Identifier: Apache-2.0
"""mdadm: arrays in all their states, what md cannot make, and text that is none of mdadm's."""

from pathlib import Path

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.tools import mdadm
from storqual_core.tools.capabilities import DELAYED_TASK, VolumeFacts, VolumeRequest
from tests.support.replay import Call, Replay
from tests.support.tool_fixtures import fixture_text

FIXTURES = Path(__file__).parent / "fixtures" / "mdadm"
SINGLE = Path(__file__).with_name("single_case")
SCAN = "mdadm --detail --scan"
REBUILDING = (FIXTURES / "raid10_rebuilding.txt").read_text(encoding="ascii")
WAITING = (FIXTURES / "raid5_pending.txt").read_text(encoding="ascii")


def test_an_array_is_read_with_its_members_in_their_order() -> None:
    """Chunk in bytes, the name without the host, the UUID as the kernel writes it."""
    volume = mdadm.parse_detail(REBUILDING)
    assert (volume.id, volume.name, volume.level) == ("/dev/md125", "scratch", "10")
    assert (volume.size, volume.strip) == (2093056 * 1024, 65536)
    assert volume.members == ("/dev/sdc", "/dev/sdb", "/dev/sdf", "/dev/sde")
    assert volume.spares == ("/dev/sdg",)
    assert volume.failed == ("/dev/sdd",)
    assert volume.uuid == "01234567-89ab-cdef-0123-456789abcdef"
    assert volume.policies == {"bitmap": "internal"}


def test_what_is_under_way_is_told_in_percent_and_health_apart_from_it() -> None:
    volume = mdadm.parse_detail(REBUILDING)
    assert (volume.healthy, volume.progress) == (False, {"rebuild": 24.0})
    volume = mdadm.parse_detail(WAITING)
    assert (volume.healthy, volume.progress) == (True, {"initialise": 0.0})


def test_lines_without_a_field_of_their_own_are_kept() -> None:
    settings = mdadm.parse_detail(REBUILDING)
    assert settings.settings["Layout"] == "near=2"
    assert settings.settings["Container GUID"] == "4C69:6E75 (Linux-MD)"


def test_the_scan_names_inactive_arrays_too() -> None:
    text = (
        "ARRAY /dev/md/r5 metadata=1.2 UUID=a:b\nINACTIVE-ARRAY /dev/md127 metadata=1.2 name=x\n   devices=/dev/sda\n"
    )
    assert mdadm.parse_scan(text) == ("/dev/md/r5", "/dev/md127")
    with pytest.raises(ToolError, match="where an ARRAY line was expected"):
        mdadm.parse_scan("mdadm: something else\n")


def test_an_array_that_does_not_start_tells_no_places() -> None:
    text = (
        "/dev/md127:\n           Version : 1.2\n        Raid Level : raid1\n     Total Devices : 2\n"
        "             State : inactive\n   Working Devices : 2\n\n"
        "    Number   Major   Minor   RaidDevice\n\n"
        "       -       8       32        -        /dev/sdc\n       -       8       16        -        /dev/sdb\n"
    )
    volume = mdadm.parse_detail(text)
    assert (volume.state, volume.healthy) == ("inactive", False)
    assert (volume.members, volume.spares, volume.failed) == (("/dev/sdc", "/dev/sdb"), (), ())


def test_facts_are_one_adapter_or_none() -> None:
    assert mdadm.read_facts(Replay([Call(SCAN)])).adapters == ()
    replay = Replay([Call(SCAN, "ARRAY /dev/md125 metadata=1.2\n"), Call("mdadm --detail /dev/md125", REBUILDING)])
    facts = mdadm.read_facts(replay)
    assert (facts.adapters[0].index, facts.adapters[0].volumes[0].level) == ("md", "10")


REQUEST = VolumeRequest("5", ("/dev/sda", "/dev/sdb", "/dev/sdc"), 65536, "r5", uuid="u", device="/dev/md/r5")
COMMON = "--homehost=any --name=r5 --uuid=u /dev/sda /dev/sdb /dev/sdc"


@pytest.mark.parametrize(
    ("change", "options"),
    [
        ({}, "--level=5 --raid-devices=3 --chunk=64K --bitmap=none --force"),
        ({"initialisation": "none"}, "--level=5 --raid-devices=3 --chunk=64K --bitmap=none --assume-clean"),
        ({"level": "0"}, "--level=0 --raid-devices=3 --chunk=64K"),
        ({"level": "1"}, "--level=1 --raid-devices=3 --bitmap=none --force"),
        ({"policies": {"bitmap": "internal"}}, "--level=5 --raid-devices=3 --chunk=64K --bitmap=internal --force"),
    ],
)
def test_an_array_is_made_with_every_choice_said(change: dict[str, object], options: str) -> None:
    """RAID 0 has no bitmap and nothing to initialise, RAID 1 has no strips."""
    request = VolumeRequest(**{**vars(REQUEST), **change})  # type: ignore[arg-type]
    replay = Replay([Call(f"mdadm --create /dev/md/r5 --run --metadata=1.2 {options} {COMMON}")])
    mdadm.create(replay, "md", request)
    replay.done()


def test_what_md_cannot_make_never_reaches_mdadm() -> None:
    request = VolumeRequest("5", ("/dev/sda",), 1000, policies={"io_policy": "direct"}, initialisation="fast")
    with pytest.raises(ToolError) as told:
        mdadm.create(Replay([]), "md", request)
    for words in ("needs 3 members", "no io_policy", "fully or not at all", "from 4k to 1g"):
        assert words in str(told.value)


VOLUME = VolumeFacts("/dev/md9", level="1")


@pytest.mark.parametrize(
    ("line", "act", "words"),
    [
        (SCAN, lambda r: mdadm.read_volumes(r, "md"), "the arrays of md cannot be listed"),
        ("mdadm --detail /dev/md9", lambda r: mdadm.progress(r, "md", VOLUME), "array /dev/md9 cannot be read"),
        (
            "mdadm --stop /dev/md9",
            lambda r: mdadm.delete(r, "md", VOLUME),
            "could not be stopped.*; stop what uses it",
        ),
        (
            "mdadm --grow /dev/md9 --bitmap=none",
            lambda r: mdadm.set_policy(r, "md", VOLUME, "bitmap", "none"),
            "the bitmap of /dev/md9 could not be set to none",
        ),
        (
            "mdadm --readwrite /dev/md9",
            lambda r: mdadm.resume(r, "md", VOLUME),
            "array /dev/md9 of md does not continue",
        ),
    ],
)
def test_a_failure_says_what_failed_what_mdadm_said_and_the_command(line: str, act: object, words: str) -> None:
    with pytest.raises(ToolError, match=words) as told:
        act(Replay([Call(line, rc=1, stderr="mdadm: no\n")]))  # type: ignore[operator]
    assert f"mdadm: no (status 1); command: {line}" in str(told.value)


def test_a_policy_that_md_does_not_have_is_refused() -> None:
    with pytest.raises(ToolError, match="md has no write_policy that can be set"):
        mdadm.set_policy(Replay([]), "md", VOLUME, "write_policy", "wb")


EXAMINE = (SINGLE / "mdadm_examine.txt").read_text(encoding="utf-8")


def test_examine_of_a_member_is_no_array() -> None:
    with pytest.raises(ToolError, match="--examine of the member /dev/sdb1"):
        mdadm.parse_detail(EXAMINE)


def test_metadata_is_no_node() -> None:
    text = "ARRAY metadata=imsm UUID=1\nARRAY /dev/md/v0 container=1 member=0\nINACTIVE-ARRAY /dev/md127 name=x\n"
    assert mdadm.parse_scan(text) == ("/dev/md/v0", "/dev/md127")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Total Devices : 6", "Total Devices : 7"),
        ("Failed Devices : 1", "Failed Devices : 0"),
        ("Raid Devices : 4", "Raid Devices : 5"),
        ("2093056 (2044.00 MiB", "2093056 (2044.00 GiB"),
    ],
)
def test_a_count_or_a_size_that_is_not_borne_out_is_refused(old: str, new: str) -> None:
    text = REBUILDING
    assert mdadm.parse_detail(text).members
    with pytest.raises(ToolError, match="reports"):
        mdadm.parse_detail(text.replace(old, new))


def test_a_size_below_2_gib_is_read_as_old_releases_rounded_it() -> None:
    old = REBUILDING.replace("2093056 (2044.00 MiB", "2093056 (2044.34 MiB")
    assert mdadm.parse_detail(old).size == mdadm.parse_detail(REBUILDING).size


def test_a_resync_that_old_releases_call_a_rebuild_is_an_initialisation() -> None:
    text = REBUILDING.replace("active, degraded, recovering", "active, resyncing")
    assert mdadm.parse_detail(text).progress == {"initialise": 24.0}


def test_labels_in_capitals_are_labels() -> None:
    text = REBUILDING
    loud = text.replace("Raid Level :", "RAID LEVEL :").replace("State : active", "STATE : active")
    assert mdadm.parse_detail(loud) == mdadm.parse_detail(text)


def with_rows(text: str, *rows: str) -> str:
    return text.partition("       1       8       32")[0] + "".join(f"   {row}\n" for row in rows)


def test_a_member_that_failed_in_its_place_is_no_member() -> None:
    text = with_rows(REBUILDING, "0 8 80 0 faulty   /dev/sdb", "1 8 81 1 faulty   /dev/sdc")
    for old, new in (("Devices : 4", "Devices : 2"), ("Devices : 6", "Devices : 2"), ("Devices : 1", "Devices : 2")):
        text = text.replace(old, new)
    volume = mdadm.parse_detail(text.replace("active, degraded, recovering", "clean, FAILED"))
    assert (volume.members, volume.failed, volume.healthy) == ((), ("/dev/sdb", "/dev/sdc"), False)


def test_a_device_that_the_kernel_does_not_have_any_more_is_counted() -> None:
    text = REBUILDING.replace("faulty   /dev/sdd", "faulty   missing")
    volume = mdadm.parse_detail(text)
    assert (volume.failed, volume.members) == ((), mdadm.parse_detail(REBUILDING).members)


def test_a_journal_is_kept_and_a_replacement_is_no_member_yet() -> None:
    text = REBUILDING.replace("-      spare   /dev/sdg", "-      journal   /dev/sdg")
    volume = mdadm.parse_detail(text.replace("active sync set-A   /dev/sdc", "active sync writemostly   /dev/sdc"))
    assert (volume.spares, volume.settings["Device /dev/sdg"]) == ((), "journal")
    assert volume.settings["Device /dev/sdc"] == "active sync writemostly"
    text = REBUILDING.replace("-      spare   /dev/sdg", "1      spare rebuilding replacement   /dev/sdg")
    assert mdadm.parse_detail(text).spares == ("/dev/sdg",)
    assert mdadm.parse_detail(text).members == mdadm.parse_detail(REBUILDING).members


def test_a_bitmap_in_a_file_is_neither_internal_nor_none() -> None:
    text = REBUILDING.replace("Intent Bitmap : Internal", "Intent Bitmap : /boot/md.bitmap")
    assert mdadm.parse_detail(text).policies == {}


def test_a_line_that_is_no_part_of_a_value_is_refused() -> None:
    text = REBUILDING.replace("        Array Size :", "      List of tomorrow\n        Array Size :")
    with pytest.raises(ToolError, match="belongs to nothing: 'List of tomorrow'"):
        mdadm.parse_detail(text)


def test_an_array_whose_members_all_went_away_is_a_failed_one() -> None:
    """The kernel counts them still, and mdadm lists their places alone."""
    text = with_rows(REBUILDING, *(f"- 0 0 {place} removed" for place in range(4)))
    for label, old, new in (("Total", 6, 4), ("Failed", 1, 4)):
        text = text.replace(f"{label} Devices : {old}", f"{label} Devices : {new}")
    text = text.replace("active, degraded, recovering", "clean, FAILED")
    volume = mdadm.parse_detail(text)
    assert (volume.members, volume.failed, volume.healthy) == ((), (), False)
    for wrong in (text.replace("Failed Devices : 4", "Failed Devices : 0"), text.replace("removed", "faulty", 4)):
        with pytest.raises(ToolError, match="Devices"):
            mdadm.parse_detail(wrong)


def test_a_failed_device_in_whose_place_nothing_is_printed_is_counted() -> None:
    """As older releases told of a device that the kernel does not have any more."""
    gone = REBUILDING.replace("faulty   /dev/sdd", "faulty spare")
    assert mdadm.parse_detail(gone) == mdadm.parse_detail(REBUILDING.replace("faulty   /dev/sdd", "faulty   missing"))


def test_an_array_that_becomes_narrower_has_the_members_that_leave() -> None:
    text = REBUILDING.replace("Raid Devices : 4", "Raid Devices : 3")
    narrower = text.replace(
        "Rebuild Status : 24% complete", "Reshape Status : 24% complete\n Delta Devices : -1, (4->3)"
    )
    assert mdadm.parse_detail(narrower).members == mdadm.parse_detail(REBUILDING).members
    assert mdadm.parse_detail(narrower).progress["reshape"] == 24.0
    # at its end the members that leave are listed no more
    left = narrower.replace("Raid Devices : 3", "Raid Devices : 4").replace("(4->3)", "(5->4)")
    assert mdadm.parse_detail(left).members == mdadm.parse_detail(REBUILDING).members
    for wrong in (text, narrower.replace(" -1,", " -2,"), narrower.replace(" -1, (4->3)", " 1, (2->3)")):
        with pytest.raises(ToolError, match="Raid Devices"):
            mdadm.parse_detail(wrong)


def test_an_array_that_is_not_started_has_no_level_that_mdadm_made_up_and_no_bitmap() -> None:
    """Whatever its level, mdadm calls it raid0, and prints no line of a bitmap."""
    text = (SINGLE / "mdadm_not_started.txt").read_text(encoding="utf-8")
    volume = mdadm.parse_detail(text)
    assert (volume.level, volume.policies, volume.settings["Raid Level"]) == ("", {}, "raid0")
    assert (volume.members, volume.healthy) == (("/dev/sdb1", "/dev/sdc1"), False)
    running = mdadm.parse_detail(text.replace("inactive", "clean"))
    assert (running.level, running.policies) == ("0", {"bitmap": "none"})
    assert mdadm.parse_detail(text.replace("raid0", "raid5")).level == "5"
    assert (
        mdadm.parse_detail(text.replace("raid0", "raid5").replace("inactive", "active, Not Started")).policies == {}
    )


def test_a_task_that_waits_for_another_array_is_not_taken_for_an_initialisation() -> None:
    text = REBUILDING.replace("active, degraded, recovering", "clean, resyncing (DELAYED)")
    assert mdadm.parse_detail(text.replace("    Rebuild Status : 24% complete\n", "")).progress == {DELAYED_TASK: 0.0}


def test_an_array_that_old_releases_call_recovering_while_it_is_reshaped_rebuilds_nothing() -> None:
    text = REBUILDING.replace("Rebuild Status", "Reshape Status")
    assert mdadm.parse_detail(text).progress == {"reshape": 24.0}


def test_the_margin_of_a_text_is_no_part_of_it() -> None:
    """A text that was quoted is indented, and one whose margin was stripped is not."""
    quoted = "".join(f"  {line}\n" if line else "\n" for line in (REBUILDING + WAITING).splitlines())
    bare = "".join(f"{line.strip()}\n" for line in REBUILDING.splitlines() if "(Linux-MD)" not in line)
    assert mdadm.parse_details(quoted) == mdadm.parse_details(REBUILDING + WAITING)
    assert mdadm.parse_detail(bare).members == mdadm.parse_detail(REBUILDING).members


@pytest.mark.parametrize(
    ("state", "healthy"),
    [
        ("clean", True),
        ("active, resyncing (PENDING)", True),
        ("clean, checking", True),
        ("clean, FAILED", False),
        ("active, Not Started", False),
        ("clean, quiescing", None),
        ("quiescing, degraded", False),
    ],
)
def test_a_state_that_is_not_known_is_not_taken_for_a_good_one(state: str, healthy: bool | None) -> None:
    assert mdadm.parse_detail(REBUILDING.replace("active, degraded, recovering", state)).healthy is healthy


def test_several_arrays_of_one_text_are_read_apart() -> None:
    text = REBUILDING + WAITING
    assert mdadm.parse_details(text) == (mdadm.parse_detail(REBUILDING), mdadm.parse_detail(WAITING))
    scan = "ARRAY /dev/md125 metadata=1.2\nARRAY /dev/md/r5 metadata=1.2\n"
    both = Call("mdadm --detail /dev/md125 /dev/md/r5", text)
    assert [each.level for each in mdadm.read_volumes(Replay([Call(SCAN, scan), both]), "md")] == ["10", "5"]


@pytest.mark.parametrize("text", ["", "\n", "mdadm: metadata format 00.90 unknown, ignored.\n{}"])
def test_what_is_no_array_is_not_passed_over(text: str) -> None:
    with pytest.raises(ToolError, match="was expected"):
        mdadm.parse_details(text.format(REBUILDING))


def test_arrays_are_as_many_as_were_asked_for_and_each_comes_once() -> None:
    scan = "ARRAY /dev/md125 metadata=1.2\nARRAY /dev/md/r5 metadata=1.2\n"
    one = Call("mdadm --detail /dev/md125 /dev/md/r5", REBUILDING)
    with pytest.raises(ToolError, match="asked for 2 arrays and shows 1"):
        mdadm.read_volumes(Replay([Call(SCAN, scan), one]), "md")
    with pytest.raises(ToolError, match="shows /dev/md125 twice"):
        mdadm.parse_details(REBUILDING * 2)


TEXT = fixture_text("mdadm", "mdstat_four.txt")


def test_arrays_are_read_with_members_and_what_is_under_way() -> None:
    mirror, parity, stripes, container = mdadm.parse_arrays(TEXT)
    assert (mirror.id, mirror.level, mirror.members) == ("/dev/md0", "1", ("/dev/sda1", "/dev/sdb1"))
    assert (mirror.size, mirror.healthy, mirror.state) == (1048512 * 1024, True, "active")
    assert (parity.level, parity.strip, parity.progress) == ("5", 65536, {"rebuild": 5.0})
    assert (parity.members, parity.spares, parity.failed) == (
        ("/dev/sdb2", "/dev/sdc1", "/dev/sde1"),
        ("/dev/sdf1",),
        ("/dev/sdd1",),
    )
    assert (parity.healthy, parity.state) == (False, "active, degraded")
    assert (stripes.level, stripes.strip, stripes.state) == ("0", 524288, "active, auto-read-only")
    # a container is never started, and a volume of it that is not is not well
    assert (container.level, container.healthy, container.members) == ("", None, ("/dev/sdb", "/dev/sdc"))
    assert mdadm.parse_arrays(TEXT.replace("external:imsm", "external:/md9/0"))[3].healthy is False
    assert "bitmap" in parity.settings["line 3"]


def test_no_array_is_no_error() -> None:
    assert mdadm.parse_arrays(fixture_text("mdadm", "mdstat_none.txt")) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unused devices: <none>\n", ""),
        ("Personalities :", ""),
        ("md2 : active", "  md2 : active"),
        ("md2 : active", "array 2 : active"),
    ],
)
def test_what_is_not_whole_or_of_no_array_is_refused(old: str, new: str) -> None:
    text = (
        TEXT.replace(old, new) if "md2" not in old else f"Personalities :\n{new} raid0 sdg[0]\nunused devices: <none>"
    )
    with pytest.raises(ToolError, match="/proc/mdstat"):
        mdadm.parse_arrays(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[2/2] [UU]", "[2/2] [U_]"),
        ("[2/2] [UU]", "[3/2] [UU]"),
        (" sda1[0]\n", "\n"),
        (" sda1[0]\n", " sda1\n"),
        ("md0 : active", "md0 is active"),
    ],
)
def test_an_array_that_does_not_agree_does_not_hide_the_others(old: str, new: str) -> None:
    odd, *others = mdadm.parse_arrays(TEXT.replace(old, new))
    assert (odd.id, odd.healthy, odd.members) == ("/dev/md0", None, ())
    assert "/proc/mdstat" in odd.unread
    assert tuple(others) == mdadm.parse_arrays(TEXT)[1:]


def test_an_array_in_a_state_that_nobody_knows_is_told_with_it() -> None:
    odd, *others = mdadm.parse_arrays(TEXT.replace("md0 : active", "md0 : frozen"))
    assert (odd.state, odd.healthy, odd.members) == ("frozen", None, ("/dev/sda1", "/dev/sdb1"))
    assert tuple(others) == mdadm.parse_arrays(TEXT)[1:]


@pytest.mark.parametrize(("word", "task"), [("resync=PENDING", "initialise"), ("check =  1.5%", "check")])
def test_a_task_that_waits_is_under_way(word: str, task: str) -> None:
    assert list(mdadm.parse_arrays(TEXT.replace("recovery =  5.0%", word))[1].progress) == [task]


def test_a_journal_and_a_replacement_are_no_members() -> None:
    text = TEXT.replace("sdf1[5](S)", "sdf1[5](R) sdg1[6](J)").replace("sde1[4]", "sde1[4](W)")
    parity = mdadm.parse_arrays(text)[1]
    assert (parity.members, parity.spares) == (("/dev/sdb2", "/dev/sdc1", "/dev/sde1"), ("/dev/sdf1",))
    assert parity.settings["journal"] == "/dev/sdg1"


def test_an_array_whose_failed_member_was_replaced_is_well() -> None:
    mirror = mdadm.parse_arrays(TEXT.replace("sdb1[1] sda1[0]", "sdb1[1] sda1[0] sdz1[2](F)"))[0]
    assert (mirror.failed, mirror.healthy) == (("/dev/sdz1",), True)


def test_an_array_that_is_broken_is_read_and_is_not_well() -> None:
    """What newer kernels call an array whose last members failed, of whatever level."""
    *_, stripes, _ = mdadm.parse_arrays(TEXT.replace("md2 : active", "md2 : broken"))
    assert (stripes.state.split(",")[0], stripes.healthy, len(stripes.members)) == ("broken", False, 2)
    lost = "md0 : broken raid1 sdb1[1](F) sda1[0](F)"
    (mirror, *_) = mdadm.parse_arrays(
        TEXT.replace("md0 : active raid1 sdb1[1] sda1[0]", lost).replace("[2/2] [UU]", "[2/0] [__]")
    )
    assert (mirror.members, mirror.failed, mirror.healthy) == ((), ("/dev/sda1", "/dev/sdb1"), False)


def test_a_waiting_task_in_mdstat_is_no_initialisation() -> None:
    """The kernel calls a check and a rebuild that wait `resync=DELAYED` too."""
    assert mdadm.parse_arrays(TEXT.replace("recovery =  5.0%", "resync=DELAYED"))[1].progress == {DELAYED_TASK: 0.0}


def test_an_array_whose_drive_is_in_error_is_not_well() -> None:
    """A NAS's own kernel marks a drive that it does not write any more with E, and counts it among those there."""
    text = TEXT.replace("sda1[0]", "sda1[0](E)").replace("[2/2] [UU]", "[2/2] [EU]")
    mirror = mdadm.parse_arrays(text)[0]
    assert (mirror.members, mirror.healthy) == (("/dev/sda1", "/dev/sdb1"), False)
    assert mirror.settings["Device /dev/sda1"] == "(E)"
    assert "/proc/mdstat" in mdadm.parse_arrays(text.replace("[EU]", "[E_]"))[0].unread
    alone = TEXT.replace("sda1[0]", "sda1[0](E)").replace(" [2/2] [UU]", "")
    assert mdadm.parse_arrays(alone)[0].healthy is False
    # without the mark nothing says that it is well, where a mirror tells no members
    assert mdadm.parse_arrays(alone.replace("(E)", ""))[0].healthy is None
    assert mdadm.parse_arrays(text.replace("\n ", "\n\u00a0")) == mdadm.parse_arrays(text)
