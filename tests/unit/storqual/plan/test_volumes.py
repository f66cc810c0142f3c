# SPDX-License-Identifier: Apache-2.0
"""Volumes as targets: known by their members before they are made, and apart from the drives that stand alone."""

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.declared import resolve_drop
from storqual.cli import main
from storqual.inputs.inventory import Adapter, Bench, Ceiling, Drive
from storqual.plan import PlannedCampaign, make_plan
from storqual.plan.make import plan_run
from storqual.plan.volumes import raid_advice
from storqual_core.guard.claims import read_claims, read_volumes
from storqual_core.guard.signatures import volume_path, volume_uuid
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import FileSystemAsk, parse_batch, part_bytes
from tests.support.make_lab import lab_hosts, make_lab

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
HOSTS = lab_hosts({"sym": 6})
DRIVES = [drive["wwn"] for drive in HOSTS["b1"]["storqual_adapters"]["sym"]["drives"]]


def raid(**changes: Any) -> dict[str, Any]:
    """A drop with one volume of the first four drives."""
    return {"raid": {"level": 5, "strip": "64k", "members": DRIVES[:4], **changes}}


def plan(folder: Path, baseline: dict[str, Any], candidate: dict[str, Any], suite: str = SUITE) -> PlannedCampaign:
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


def test_claimed_drives_that_nothing_takes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def idle(suite: str, baseline: dict[str, Any], candidate: dict[str, Any]) -> Any:
        request = make_lab(tmp_path, hosts=HOSTS, baseline=baseline, candidate=candidate, suite=suite)
        return plan_run(request, tmp_path, write=False).to_json()["benches"]["b1"]["idle_drives"]

    alone = SUITE.replace("  on_volume: {rw: randwrite, target: volume, bs: 4k, factors: {iodepth: [1, 8]}}\n", "")
    assert idle(alone, {}, {"drive": {"WCE": 1}}) == {"sym": DRIVES[2:]}
    assert idle(alone.replace("[1, 2]", "[1, 6]"), {}, {"drive": {"WCE": 1}}) == {}
    # members and a hot spare are in use, of whichever arm
    one = SUITE.replace("drives: [1, 2]", "drives: [1]")
    spare = raid(members=DRIVES[:3], hot_spares=DRIVES[3:4])
    assert idle(one, raid(members=DRIVES[:3]), spare) == {"sym": DRIVES[5:]}
    hosts = tmp_path / "hosts.json"
    words = ["-i", str(hosts), "--baseline", "baseline", "--candidate", "candidate", "--dry-run"]
    with pytest.raises(SystemExit):
        main(["plan", *words, "--suite", str(tmp_path / "small.suite.yml")])
    assert "sym of b1: 1 claimed drive in no point" in " ".join(capsys.readouterr().out.split())


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
        (raid(level=5), "{raid.members: [2, 3]}", "RAID 5 needs at least 3 members; 2 given"),
        (raid(level=10, tool="storcli"), "{raid.members: [3, 4]}", "RAID 10 needs 4 members, 3 are named"),
        (raid(level=0), "{raid.members: [1, 2]}", "RAID 0 needs 2 members, 1 are named"),
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


KB = 1024


def bench(*, drives: int = 4, rotation_rate: int | None = 15000, link: int | None = 160_000_000) -> Bench:
    listed = tuple(
        Drive(wwn=f"0x5000c500000000{number:02x}", size=1 << 30, rotation_rate=rotation_rate)
        for number in range(drives)
    )
    adapter = Adapter(model="PERC 3/QC", drives=listed, ceiling=Ceiling(link=link))
    return Bench(name="b1", kind="hardware", adapters={"perc": adapter})


def advice(where: Bench, *, largest: int = 8 * KB, **changes: Any) -> list[str]:
    """What is said of a RAID 0 over all drives with strips of 64 KiB."""
    members = [drive.id for drive in where.adapters["perc"].drives]
    volume = {"adapter": "perc", "name": "v", "level": "0", "members": members, "strip": 64 * KB, **changes}
    return list(raid_advice([volume, volume], where, largest))


def test_drives_that_prevent_queueing_are_counted_per_port() -> None:
    """160 MB/s carry 2441 strips of 64 KiB a second, half a turn at 15,000 rpm is 2 ms: five drives."""
    queueing, _ = advice(bench())
    assert "carries 2441 strips a second; at 2 ms each or more" in queueing
    assert "it takes 5 drives on a port to keep it busy, it has 4, so drives will queue" in queueing
    assert "which it has" in advice(bench(drives=12))[0]


def test_read_ahead_helps_only_from_the_inequality_on() -> None:
    """Strip x (drives + 1): 320 KiB with four drives."""
    assert "can only help random reads of 320 KiB or more" in advice(bench())[1]
    assert "none of this suite's does" in advice(bench())[1]
    assert "some of this suite's reach it" in advice(bench(), largest=512 * KB)[1]


def test_other_levels_and_suites_without_random_reads_get_no_inequality() -> None:
    """It is derived for RAID 0."""
    assert len(advice(bench(), level="5")) == 1
    assert len(advice(bench(), largest=0)) == 1


def test_what_the_inventory_does_not_say_is_not_guessed() -> None:
    assert len(advice(bench(link=None))) == 1
    assert len(advice(bench(rotation_rate=1))) == 1
    assert advice(bench(), strip=None) == []


MIB = 1 << 20
FILES_SUITE = Path(__file__).with_suffix(".files_suite").read_text(encoding="utf-8")


def plan_files(folder: Path, suite: str = FILES_SUITE, **lab: Any) -> Any:
    """One arm on one adapter with one drive of 1 GiB."""
    return make_plan(make_lab(folder, hosts=lab_hosts({"sym": 1}, **lab), suite=suite, baseline=None, candidate={}))


def kind_of(launch: dict[str, Any]) -> str:
    """The file system of a launch of a block file; empty for none."""
    return str(launch["request"].get("file_system", {}).get("kind", ""))


def test_a_launch_says_which_file_system_its_drives_carry_and_how_large_the_file_is(tmp_path: Path) -> None:
    campaign = plan_files(tmp_path, FILES_SUITE.replace("24MiB", "24000001"))
    block = parse_batch(json.dumps(campaign.batches[0]))
    asked = {launch.point.rpartition("target=")[2][:-1]: launch.file_system for launch in block.launches}
    size = 23 * MIB
    assert asked == {"raw": None, "xfs": FileSystemAsk("xfs", size), "ext4": FileSystemAsk("ext4", size)}
    assert block.writes


def test_launches_on_one_file_system_stay_together(tmp_path: Path) -> None:
    (block,) = plan_files(tmp_path).batches
    rounds = [block["turns"][start : start + 36] for start in range(0, 144, 36)]
    orders = [[kind for kind, _ in groupby(round_, key=kind_of)] for round_ in rounds]
    assert [sorted(order) for order in orders] == [["", "ext4", "xfs"]] * 4
    assert len({tuple(order) for order in orders}) > 1
    points = [tuple(launch["point"] for launch in round_) for round_ in rounds]
    assert len(set(points)) == 4


def test_making_file_systems_is_part_of_the_expected_time(tmp_path: Path) -> None:
    seconds = [
        plan_files(tmp_path / name, FILES_SUITE.replace("24MiB", size)).document["plan"]["expected_seconds"]
        for name, size in (("small", "20MiB"), ("large", "220MiB"))
    ]
    assert seconds[1] - seconds[0] == pytest.approx(2 * 200 * MIB / 20e6, abs=1.0)


@pytest.mark.parametrize(
    ("lab", "size", "why"),
    [
        ({}, "600MiB", "xfs with a file of 600 MiB takes 1135 MiB of drive 0x5000c500"),
        ({"kind": "local"}, "24MiB", "xfs needs a drive, and the targets of this bench are files"),
    ],
    ids=["no-room", "files"],
)
def test_points_without_room_for_a_file_system_are_skipped_with_the_reason(
    tmp_path: Path, lab: dict[str, Any], size: str, why: str
) -> None:
    hosts = lab_hosts({"sym": 1}, **lab)
    if lab:
        (drive,) = hosts["b1"]["storqual_adapters"]["sym"]["drives"]
        path = tmp_path / "targets" / "disk"
        hosts["b1"]["storqual_state_dir"] = str(tmp_path)
        hosts["b1"]["storqual_adapters"]["sym"] = {
            "model": "a file",
            "drives": [{"file": str(path), "size": drive["size"], "claim": True}],
        }
    suite = FILES_SUITE.replace("24MiB", size)
    document = make_plan(make_lab(tmp_path, hosts=hosts, suite=suite, candidate={})).document
    points = document["plan"]["points"]
    assert {point["factors"]["target"] for point in points if not point["skipped"]} == {"raw"}
    assert {point["skipped"][: len(why)] for point in points if point["factors"]["target"] == "xfs"} == {why}


def test_a_file_system_needs_a_quarter_more_than_its_file_and_what_is_its_own() -> None:
    """XFS makes none below 300 MiB."""
    assert part_bytes(MIB) == 386 * MIB
    assert part_bytes(1024 * MIB) == (1280 + 385) * MIB


ON_VOLUMES = Path(__file__).with_suffix(".on_volumes").read_text(encoding="utf-8")


def on_volume(folder: Path, suite: str = ON_VOLUMES, *, level: int = 0, size: int = 1024 * MIB) -> Any:
    """Two equal arms with a volume of the first four of five drives of an adapter."""
    hosts = lab_hosts({"sym": 5})
    drives = hosts["b1"]["storqual_adapters"]["sym"]["drives"]
    for drive in drives[:4]:
        drive["size"] = size
    drop = {"raid": {"level": level, "strip": "64k", "members": [drive["wwn"] for drive in drives[:4]]}}
    return make_plan(make_lab(folder, hosts=hosts, suite=suite, baseline=drop, candidate=drop))


def test_a_file_on_a_volume_is_a_file_system_on_the_volume_of_the_drop(tmp_path: Path) -> None:
    campaign = on_volume(tmp_path)
    launches = [launch for batch in campaign.batches for launch in parse_batch(json.dumps(batch)).launches]
    asked = {
        (launch.point, launch.drives[0], launch.file_system) for launch in launches if "of_volume" in launch.point
    }
    xfs = FileSystemAsk("xfs", 24 * MIB)
    assert asked == {
        (f"of_volume[direct={direct},target={target}]", "sym/volume1", ask)
        for direct in ("true", "false")
        for target, ask in (("volume", None), ("xfs_on_volume", xfs))
    }
    points = {point["point"]: point["drives"] for point in campaign.document["plan"]["points"]}
    assert len(points["of_volume[direct=true,target=xfs_on_volume]"]) == 4
    assert len(points["reads[target=xfs]"]) == 1


def test_launches_on_one_file_system_of_a_volume_stay_together(tmp_path: Path) -> None:
    suite = ON_VOLUMES.replace("bs: 64k, factors: {direct", "factors: {bs: [4k, 8k, 64k], direct")
    (block,) = on_volume(tmp_path, suite).batches
    for start in range(0, 2 * 28, 28):
        round_ = block["turns"][start : start + 28]
        made = [target for target, _ in groupby((launch["drives"][0], kind_of(launch)) for launch in round_)]
        assert sorted(kind for _, kind in made if kind) == ["xfs", "xfs"]


def test_making_one_on_a_volume_takes_time_of_its_own(tmp_path: Path) -> None:
    both = on_volume(tmp_path / "a")
    one = on_volume(tmp_path / "b", ON_VOLUMES.replace("[volume, xfs_on_volume]", "[volume]"))
    made = [
        line["seconds"]
        for campaign in (both, one)
        for line in campaign.document["plan"]["bench_time"]["b1"]
        if line["what"] == "creating file systems"
    ]
    assert made[0] == pytest.approx(2 * made[1], abs=0.2)


def test_files_on_volumes_are_left_out_by_name_where_the_drop_declares_no_volume(tmp_path: Path) -> None:
    suite = ON_VOLUMES.replace("[volume, xfs_on_volume]", "[xfs_on_volume]")
    points = plan_files(tmp_path, suite).document["plan"]["points"]
    skipped = {point["point"]: point["skipped"] for point in points if point["skipped"]}
    assert skipped == {
        f"of_volume[direct={direct},target=xfs_on_volume]": "needs 1 volume, the drops declare 0"
        for direct in ("true", "false")
    }
    only = suite.replace("  reads: {rw: read, bs: 64k, factors: {target: [raw, xfs]}}\n", "")
    with pytest.raises(BadInputError, match="needs 1 volume, the drops declare 0"):
        plan_files(tmp_path, only)


@pytest.mark.parametrize(
    ("level", "size", "fits"), [(0, 115, True), (5, 115, False), (10, 230, True), (10, 200, False)]
)
def test_a_volume_without_room_for_a_file_system_is_skipped_with_the_reason(
    tmp_path: Path, level: int, size: int, fits: bool
) -> None:
    """415 MiB, behind the guard's area; what a level keeps of its members for redundancy is no room."""
    points = on_volume(tmp_path, level=level, size=size * MIB).document["plan"]["points"]
    skipped = {point["skipped"] for point in points if point["factors"]["target"] == "xfs_on_volume"}
    assert skipped == {"" if fits else "xfs with a file of 24 MiB takes 415 MiB of a volume"}
