# SPDX-License-Identifier: Apache-2.0
"""Volumes as targets: known by their members before they are made, and apart from the drives that stand alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.declared import resolve_drop
from storqual.plan import PlannedCampaign, make_plan
from storqual_core.guard.claims import read_claims, read_volumes
from storqual_core.guard.signatures import volume_path, volume_uuid
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import parse_batch
from tests.support.make_lab import lab_hosts, make_lab

SUITE = """\
name: volumes
workloads:
  on_volume: {rw: randwrite, target: volume, bs: 4k, factors: {iodepth: [1, 8]}}
  on_drives: {rw: read, factors: {drives: [1, 2]}}
criteria:
  - {metric: iops, against: baseline}
profiles:
  quick: {cells: all, runtime: 2s, ramp: 500ms, sessions: 2, pairs: 2, margin: 8%}
"""
HOSTS = lab_hosts({"sym": 6})
DRIVES = [drive["wwn"] for drive in HOSTS["b1"]["storqual_adapters"]["sym"]["drives"]]


def raid(**changes: Any) -> dict[str, Any]:
    """A drop with one volume of the first four drives."""
    return {"raid": {"level": 5, "strip": "64k", "members": DRIVES[:4], **changes}}


def plan(folder: Path, baseline: dict[str, Any], candidate: dict[str, Any], suite: str = SUITE) -> PlannedCampaign:
    """The plan of a campaign over the bench's one adapter."""
    return make_plan(make_lab(folder, hosts=HOSTS, baseline=baseline, candidate=candidate, suite=suite))


def test_a_volume_is_a_target_with_all_its_members_claimed(tmp_path: Path) -> None:
    campaign = plan(tmp_path, raid(), raid(level=10))
    for block in campaign.batches:
        read = parse_batch(json.dumps(block))
        (volume,) = read_volumes(read.targets)
        claims = read_claims({name: target for name, target in read.targets.items() if "volume" not in target})
        assert (volume.id, volume.uuid, volume.members) == ("sym/volume1", volume_uuid(DRIVES[:4]), tuple(DRIVES[:4]))
        assert volume.path == volume_path(volume.uuid)
        assert {claim.id for claim in claims} == set(DRIVES)
        drives = {launch.point.partition("[")[0]: launch.drives for launch in read.launches}
        assert drives["on_volume"] == ("sym/volume1",)


def test_drives_in_a_volume_are_no_targets_of_their_own(tmp_path: Path) -> None:
    one = SUITE.replace("drives: [1, 2]", "drives: [1]")
    campaign = plan(tmp_path, raid(), raid(members=DRIVES[1:5]), one)
    launches = [launch for block in campaign.batches for launch in block["turns"]]
    used = {drive for launch in launches if "on_drives" in launch["point"] for drive in launch["drives"]}
    assert used == {DRIVES[5]}
    with pytest.raises(BadInputError, match=r"too few single drives for on_drives; .*`target: volume`"):
        plan(tmp_path, raid(), raid(members=DRIVES[1:5]))


def test_the_points_of_a_volume_name_the_drives_behind_it(tmp_path: Path) -> None:
    points = plan(tmp_path, raid(), raid()).document["plan"]["points"]
    assert {tuple(point["drives"]) for point in points if point["workload"] == "on_volume"} == {tuple(DRIVES[:4])}


def test_another_layout_is_a_rebuild(tmp_path: Path) -> None:
    campaign = plan(tmp_path, raid(), raid(strip="128k"))
    assert {session["change"] for session in campaign.document["plan"]["sessions"]} == {"rebuild"}
    specs = campaign.document["provision"]["b1"]
    assert [spec["raid"][0]["strip"] for spec in specs.values()] == [65536, 131072]


def test_a_suite_varies_the_strip_of_the_volumes(tmp_path: Path) -> None:
    campaign = plan(tmp_path, raid(), raid(), SUITE + "vary: {raid.strip: [64k, 256k]}\n")
    strips = {name: spec["raid"][0]["strip"] for name, spec in campaign.document["provision"]["b1"].items()}
    assert strips["candidate[raid.strip=262144]"] == 262144
    assert {session["change"] for session in campaign.document["plan"]["sessions"]} >= {"rebuild"}


ON_VOLUME = SUITE.replace("  on_drives: {rw: read, factors: {drives: [1, 2]}}\n", "")

ON_DRIVES = re.sub("  on_volume: .*\n", "", SUITE)


def test_a_suite_varies_how_many_of_its_drives_a_volume_has(tmp_path: Path) -> None:
    campaign = plan(tmp_path, raid(level=0), raid(level=0), ON_VOLUME + "vary: {raid.members: [2, 3, 4]}\n")
    members = {name: spec["raid"][0]["members"] for name, spec in campaign.document["provision"]["b1"].items()}
    assert {name: listed for name, listed in members.items() if name.startswith("candidate")} == {
        f"candidate[raid.members={count}]": DRIVES[:count] for count in (2, 3, 4)
    }
    points = campaign.document["plan"]["points"]
    assert {(point["varied"]["raid.members"], tuple(point["drives"])) for point in points} == {
        (count, tuple(DRIVES[:count])) for count in (2, 3, 4)
    }
    assert "on_volume[iodepth=8,raid.members=3]" in {point["point"] for point in points}
    sizes = {
        (launch["configuration"], len(block["targets"][name]["volume"]["members"]))
        for block in campaign.batches
        for launch in block["turns"]
        for name in launch["drives"]
    }
    assert ("candidate[raid.members=3]", 3) in sizes
    assert {session["change"] for session in campaign.document["plan"]["sessions"]} == {"rebuild"}


def test_a_suite_says_how_many_members_each_raid_level_has(tmp_path: Path) -> None:
    vary = "vary: {raid.level: [0, 5, 10], raid.members: {0: 4, 5: [3, 4], 10: 4}}\n"
    campaign = plan(tmp_path, raid(), raid(), ON_VOLUME + vary)
    specs = campaign.document["provision"]["b1"].values()
    made = {(spec["raid"][0]["level"], len(spec["raid"][0]["members"])) for spec in specs}
    assert made == {("0", 4), ("5", 3), ("5", 4), ("10", 4)}
    points = campaign.document["plan"]["points"]
    assert {(point["varied"]["raid.level"], point["varied"]["raid.members"]) for point in points} == made


def test_the_strip_arithmetic_is_that_of_the_varied_number_of_members(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 6})
    suite = ON_VOLUME.replace("randwrite", "randread") + "vary: {raid.members: [2, 4]}\n"
    for drive in hosts["b1"]["storqual_adapters"]["sym"]["drives"]:
        drive["rotation_rate"] = 15000
    request = make_lab(tmp_path, hosts=hosts, baseline=raid(level=0), candidate=raid(level=0), suite=suite)
    advice = " ".join(make_plan(request).document["plan"]["advice"])
    assert (
        "(64 KiB strips, 2 drives): the drives' own read-ahead can only help random reads of 192 KiB or more"
    ) in advice
    assert (
        "(64 KiB strips, 4 drives): the drives' own read-ahead can only help random reads of 320 KiB or more"
        in advice
    )


@pytest.mark.parametrize(
    ("drop", "vary", "words"),
    [
        (
            raid(level=0),
            "{raid.members: [2, 5]}",
            "5 members are asked for, and drop candidate gives the volume of sym on b1 only 4",
        ),
        (
            raid(level=5),
            "{raid.members: [2, 3]}",
            "RAID 5 needs at least 3 members; 2 given",
        ),
        (
            raid(level=10, tool="storcli"),
            "{raid.members: [3, 4]}",
            "RAID 10 needs 4 members, 3 are named",
        ),
        (
            raid(level=0),
            "{raid.members: [1, 2]}",
            "RAID 0 needs 2 members, 1 are named",
        ),
        (raid(), "{raid.members: {5: 3}}", "raid.members gives counts for raid.level 5; vary raid.level too"),
        (
            raid(),
            "{raid.level: [0, 5], raid.members: {5: 3}}",
            "raid.members gives counts for raid.level 5, and raid.level varies over 0, 5",
        ),
        (
            raid(),
            "{raid.level: [5], raid.members: [4, {5: 3}]}",
            "raid.members mixes counts by raid.level with plain counts; use one mapping, or plain counts only",
        ),
    ],
)
def test_a_number_of_members_that_cannot_be_is_one_line(
    tmp_path: Path, drop: dict[str, Any], vary: str, words: str
) -> None:
    with pytest.raises(BadInputError) as told:
        plan(tmp_path, drop, drop, f"{ON_VOLUME}vary: {vary}\n")
    found = [problem for problem in told.value.problems if problem.endswith(words)]
    assert told.value.problems == found
    assert re.search(r"small\.suite\.yml:\d+: ", found[0])


def test_a_level_has_its_fewest_members_whatever_tool_will_make_the_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storqual.plan.refusals.volumes.count_objection", lambda *_: "")
    with pytest.raises(BadInputError, match="RAID 5 needs at least 3 members; 2 given"):
        plan(tmp_path, raid(level=5), raid(level=5), ON_VOLUME + "vary: {raid.members: [2, 4]}\n")


def test_numbers_of_members_of_a_profile_are_told_at_their_own_line(tmp_path: Path) -> None:
    suite = ON_VOLUME.replace("margin: 8%}", "margin: 8%, vary: {raid.members: [9]}}")
    with pytest.raises(BadInputError) as told:
        plan(tmp_path, raid(), raid(), suite)
    (line,) = (number for number, text in enumerate(suite.splitlines(), start=1) if "[9]" in text)
    assert {problem.partition(": ")[0].rpartition(":")[2] for problem in told.value.problems} == {str(line)}


@pytest.mark.parametrize("level", ["two", "0", "[2, 3]", "2.5", "5000", "{5: many}", "{7: 3}", "true"])
def test_what_is_no_number_of_members_is_refused(tmp_path: Path, level: str) -> None:
    with pytest.raises(BadInputError, match=r"raid\.(members|level): "):
        plan(tmp_path, raid(), raid(), f"{ON_VOLUME}vary: {{raid.level: [5], raid.members: [{level}]}}\n")


def test_the_disk_cache_of_a_volume_that_md_makes_is_the_write_cache_of_its_members(tmp_path: Path) -> None:
    """What the drop says of the other drives stays."""
    drop = {**raid(), "drive": {"WCE": 1, "queue_depth": 16}}
    campaign = plan(tmp_path, drop, drop, ON_VOLUME + "vary: {raid.disk_cache: [enable, disable]}\n")
    specs = campaign.document["provision"]["b1"]
    assert not any("disk_cache" in volume for spec in specs.values() for volume in spec["raid"])
    caches = {
        name.partition("=")[2][:-1]: [spec["drive"][drive]["WCE"] for drive in DRIVES]
        for name, spec in specs.items()
        if name.startswith("candidate")
    }
    assert caches == {"enable": [1] * 6, "disable": [0] * 4 + [1] * 2}


def test_a_default_that_md_does_not_have_is_refused_before_a_bench_is_touched(tmp_path: Path) -> None:
    drop = raid(disk_cache="default")
    with pytest.raises(BadInputError, match="mdadm cannot make this volume: md has no disk_cache"):
        plan(tmp_path, drop, drop, ON_VOLUME)


def test_a_disk_cache_of_fewer_members_is_that_of_those_that_the_volume_has(tmp_path: Path) -> None:
    vary = "vary: {raid.members: [3], raid.disk_cache: [disable]}\n"
    (spec, _) = plan(tmp_path, raid(), raid(), ON_VOLUME + vary).document["provision"]["b1"].values()
    assert spec["drive"] == {drive: {"WCE": 0} for drive in DRIVES[:3]}


@pytest.mark.parametrize(
    ("kind", "driver", "tool", "spread"),
    [
        ("hardware", "sym53c8xx", {}, True),
        ("hardware", "megaraid_sas", {}, False),
        ("hardware", "megaraid_sas", {"tool": "mdadm"}, True),
        ("hardware", "sym53c8xx", {"tool": "storcli"}, False),
        ("virtual", "megaraid_sas", {}, True),
    ],
)
def test_what_an_adapter_may_make_keeps_its_disk_cache(
    tmp_path: Path, kind: str, driver: str, tool: dict[str, str], spread: bool
) -> None:
    hosts = lab_hosts({"sym": 6}, kind=kind)
    hosts["b1"]["storqual_adapters"]["sym"]["driver"] = driver
    drop = raid(disk_cache="disable", **tool)
    suite = ON_VOLUME if spread else ON_DRIVES
    document = make_plan(make_lab(tmp_path, hosts=hosts, baseline=drop, candidate=drop, suite=suite)).document
    spec = document["provision"]["b1"]["candidate"]
    assert ("disk_cache" in spec["raid"][0]) is not spread
    assert (spec["drive"] == {drive: {"WCE": 0} for drive in DRIVES[:4]}) is spread


def test_a_write_cache_that_is_declared_twice_is_refused(tmp_path: Path) -> None:
    drop = {**raid(disk_cache="disable"), "drive": {"WCE": 1}}
    told = f"b1: raid.disk_cache disable means WCE=0 on member {DRIVES[0]}, but the drop declares WCE=1 for it"
    with pytest.raises(BadInputError, match=told):
        plan(tmp_path, drop, drop, ON_VOLUME)


def test_members_are_by_default_all_claimed_drives_but_the_spares(tmp_path: Path) -> None:
    """`on` narrows them."""
    drop = {"raid": {"level": 6, "hot_spares": [DRIVES[5]]}}
    spec = plan(tmp_path, drop, drop, ON_VOLUME).document["provision"]["b1"]["candidate"]["raid"]
    assert spec[0]["members"] == DRIVES[:5]
    drop = {"raid": {"on": {"drives": DRIVES[:3]}, "level": 5}}
    spec = plan(tmp_path, drop, drop, ON_VOLUME).document["provision"]["b1"]["candidate"]["raid"]
    assert spec[0]["members"] == DRIVES[:3]


@pytest.mark.parametrize(
    ("baseline", "suite", "words"),
    [
        ({}, SUITE, "needs 1 volume, the drops declare 0"),
        ({}, SUITE.replace(", target: volume", "") + "vary: {raid.strip: [64k, 128k]}\n", "add a section `raid`"),
    ],
)
def test_a_volume_that_no_drop_declares_is_told_before_the_bench_is_touched(
    tmp_path: Path, baseline: dict[str, Any], suite: str, words: str
) -> None:
    with pytest.raises(BadInputError, match=r"small\.suite\.yml:\d+: ") as told:
        plan(tmp_path, baseline, baseline, suite)
    assert words in "\n".join(told.value.problems)


def test_the_id_of_a_volume_does_not_depend_on_the_order_of_its_members() -> None:
    assert volume_uuid(DRIVES[:3]) == volume_uuid(DRIVES[2::-1])
    assert volume_uuid(DRIVES[:3]) != volume_uuid(DRIVES[:4])


def refused(folder: Path, drop: dict[str, Any], suite: str = ON_VOLUME) -> list[str]:
    """What a campaign is refused for, without the folder; both arms have the same volume."""
    with pytest.raises(BadInputError) as told:
        plan(folder, drop, drop, suite)
    return [problem.replace(f"{folder}/", "") for problem in told.value.problems]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"strip": "65k"}, "mdadm cannot make this volume: its strips are powers of two from 4k to 1g, and 65k is"),
        ({"strip": "2k"}, "mdadm cannot make this volume: its strips are powers of two from 4k to 1g, and 2k is"),
        ({"strip": "2m", "tool": "storcli"}, "storcli cannot make this volume: its strips are powers of two from 8k"),
        ({"level": 0, "strip": "128k", "tool": "mvcli"}, "its strips are powers of two from 32k to 64k, and 128k is"),
        ({"strip": "96k", "tool": "arcconf"}, "its strips are powers of two from 1k to 1m, and 96k is declared"),
        ({"strip": "96k", "tool": "ssacli"}, "its strips are powers of two from 1k to 1m, and 96k is declared"),
        ({"tool": "sas3ircu"}, "integrated RAID cannot be told a strip of a new volume; leave it out of the drop"),
        ({"write_policy": "wb"}, "md has no write_policy: md writes through"),
    ],
)
def test_a_volume_that_its_tool_cannot_make_is_refused_before_a_bench_is_touched(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    told = refused(tmp_path, raid(**changes))
    assert [problem.partition(": ")[0] for problem in told] == ["drops/baseline.yml:1", "drops/candidate.yml:1"]
    assert all(words in problem for problem in told)


def test_a_volume_that_one_of_two_tools_may_make_is_planned(tmp_path: Path) -> None:
    """On hardware md makes it if the kernel sees the drives, else the tool of their adapter, which has policies."""
    hosts = lab_hosts({"sym": 6}, kind="hardware")
    hosts["b1"]["storqual_adapters"]["sym"]["driver"] = "megaraid_sas"
    drop = raid(write_policy="wb")
    assert make_plan(make_lab(tmp_path, hosts=hosts, baseline=drop, candidate=drop, suite=ON_DRIVES)).batches


def test_a_strip_that_a_suite_varies_is_told_at_its_line(tmp_path: Path) -> None:
    (told,) = refused(tmp_path, raid(), ON_VOLUME + "vary: {raid.strip: [64k, 65k]}\n")
    (line,) = (number for number, text in enumerate((ON_VOLUME + "vary").splitlines(), 1) if text == "vary")
    assert told == (
        f"small.suite.yml:{line}: with raid.strip 65k, mdadm cannot make this volume: its strips are powers of two "
        "from 4k to 1g, and 65k is declared"
    )


def test_a_volume_has_a_level_unless_a_suite_varies_it(tmp_path: Path) -> None:
    drop = {"raid": {"members": DRIVES[:4]}}
    assert "drops/candidate.yml:1: the volume has no `level`; give its RAID level" in refused(tmp_path / "a", drop)
    assert plan(tmp_path / "b", drop, drop, ON_VOLUME + "vary: {raid.level: [0, 5]}\n").batches


def test_drives_may_be_named_without_quotes(tmp_path: Path) -> None:
    """YAML makes numbers of such names, and their text is what the inventory has."""
    request = make_lab(tmp_path, hosts=HOSTS, baseline=raid(), candidate=raid(), suite=ON_VOLUME)
    members = ", ".join(DRIVES[:4])
    for arm in ("baseline", "candidate"):
        path = tmp_path / "drops" / f"{arm}.yml"
        path.write_text(f"raid: {{level: 5, strip: 64k, members: [{members}]}}\n", encoding="utf-8")
    (spec, *_) = make_plan(request).document["provision"]["b1"].values()
    assert spec["raid"][0]["members"] == DRIVES[:4]


@pytest.mark.parametrize(
    ("kind", "driver", "tool", "named", "made_by"),
    [
        ("hardware", "megaraid_sas", "storcli", {}, "storcli"),
        ("hardware", "megaraid_sas", None, {}, "storcli"),
        ("hardware", "megaraid_sas", "storcli", {"tool": "mdadm"}, "mdadm"),
        ("virtual", "megaraid_sas", "storcli", {}, "storcli"),
        ("virtual", "megaraid_sas", None, {}, "mdadm"),
        ("hardware", "mpt3sas", None, {}, "mdadm"),
        ("hardware", "mpt3sas", "sas3ircu", {}, "sas3ircu"),
        ("hardware", "sym53c8xx", None, {}, "mdadm"),
        ("hardware", "qla2xxx", "qaucli", {}, "mdadm"),
    ],
)
def test_a_plan_says_which_tool_makes_a_volume_and_md_is_asked_for_by_name_on_a_raid_controller(
    kind: str, driver: str, tool: str | None, named: dict[str, str], made_by: str, tmp_path: Path
) -> None:
    hosts = lab_hosts({"sym": 6}, kind=kind)
    adapter = hosts["b1"]["storqual_adapters"]["sym"]
    adapter |= {"driver": driver, **({"tool": tool} if tool else {})}
    drop = {"raid": {"level": 1, "members": DRIVES[:2], **named}}
    suite = SUITE if made_by == "mdadm" else ON_DRIVES
    campaign = make_plan(make_lab(tmp_path, hosts=hosts, baseline=drop, candidate=drop, suite=suite))
    for spec in campaign.document["provision"]["b1"].values():
        assert [volume["tool"] for volume in spec["raid"]] == [made_by]
    declared = resolve_drop([tmp_path / "hosts.json"], "b1", "candidate")["declared"]
    assert [volume["tool"] for volume in declared["raid"]["volumes"]] == [made_by]


def test_a_refusal_of_a_controller_s_tool_says_how_to_get_an_md_array(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 6}, kind="hardware")
    hosts["b1"]["storqual_adapters"]["sym"] |= {"driver": "megaraid_sas", "tool": "storcli"}
    drop = raid(strip="4k")
    with pytest.raises(BadInputError) as refused:
        make_plan(make_lab(tmp_path, hosts=hosts, baseline=drop, candidate=drop, suite=SUITE))
    told = "\n".join(refused.value.problems)
    assert "storcli, the tool of adapter sym of b1, cannot make this volume" in told
    assert "for a Linux md array, write `tool: mdadm`" in told


@pytest.mark.parametrize("named", [{}, {"tool": "storcli"}])
def test_a_volume_of_a_controller_s_tool_is_not_measured_as_an_md_array(
    named: dict[str, Any], tmp_path: Path
) -> None:
    hosts = lab_hosts({"sym": 6}, kind="hardware")
    hosts["b1"]["storqual_adapters"]["sym"] |= {"driver": "megaraid_sas"}
    drop = raid(**named)
    with pytest.raises(BadInputError) as refused:
        make_plan(make_lab(tmp_path, hosts=hosts, baseline=drop, candidate=drop, suite=SUITE))
    for name, told in zip(("baseline", "candidate"), refused.value.problems, strict=True):
        assert told.startswith(f"{tmp_path}/drops/{name}.yml:1: storcli makes the volume of sym of b1")
        assert f"({tmp_path}/small.suite.yml:3)" in told
        assert "write `tool: mdadm`" in told
        assert "`storqual playbook setup`" in told
    # as md arrays, and with a suite that leaves the volume alone, both drops are planned
    arrays = raid(tool="mdadm")
    assert make_plan(make_lab(tmp_path, hosts=hosts, baseline=arrays, candidate=arrays, suite=SUITE)).batches


def test_nobody_is_sent_to_measure_volumes_that_cannot_be_measured(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 4}, kind="hardware")
    hosts["b1"]["storqual_adapters"]["sym"] |= {"driver": "megaraid_sas"}
    drop = raid()
    with pytest.raises(BadInputError) as refused:
        make_plan(make_lab(tmp_path, hosts=hosts, baseline=drop, candidate=drop, suite=ON_DRIVES))
    (told,) = refused.value.problems
    assert "too few single drives for on_drives; storcli would make them" in told
    assert "target: volume" not in told


def test_a_volume_of_named_members_is_made_on_their_adapter_alone(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 6, "mpt": 2})
    campaign = make_plan(make_lab(tmp_path, hosts=hosts, baseline=raid(), candidate=raid(), suite=SUITE))
    assert [volume["adapter"] for volume in campaign.document["provision"]["b1"]["candidate"]["raid"]] == ["sym"]
