# SPDX-License-Identifier: Apache-2.0
"""Whole plans: sessions by the cost of the change, arms interleaved, nothing silently left out."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.declared import declared_document
from storqual.inputs import yaml_file
from storqual.plan import PlannedCampaign, make_plan
from storqual_core.kit.errors import BadInputError
from storqual_core.turns.batch_file import parse_batch
from tests.support.make_lab import INSTANT, KERNEL, OTHER, SMALL_SUITE, lab_hosts, make_lab


def sessions(campaign: PlannedCampaign) -> list[tuple[str, str, str]]:
    """(arms, change, boot) of each session."""
    return [
        ("+".join(session["arms"]), session["change"], session["boot"])
        for session in campaign.document["plan"]["sessions"]
    ]


def problems(request: Any) -> str:
    with pytest.raises(BadInputError) as caught:
        make_plan(request)
    return "\n".join(caught.value.problems)


def test_a_kernel_is_compared_in_sessions_a_b_b_a(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=OTHER))
    assert sessions(campaign) == [
        ("baseline", "reboot", "if_needed"),
        ("candidate", "reboot", "always"),
        ("candidate", "reboot", "always"),
        ("baseline", "reboot", "always"),
    ]


def test_every_session_measures_every_point_once(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=OTHER))
    orders = [[(launch["adapter"], launch["point"]) for launch in block["turns"]] for block in campaign.batches]
    points = {(point["adapter"], point["point"]) for point in campaign.document["plan"]["points"]}
    assert all(Counter(order) == Counter(points) for order in orders)
    assert len({tuple(order) for order in orders}) == len(orders)
    counts = Counter((launch["arm"], launch["n"]) for block in campaign.batches for launch in block["turns"])
    assert counts == {(arm, n): len(points) for arm in ("baseline", "candidate") for n in (1, 2)}


def test_the_seed_decides_the_order_and_nothing_else(tmp_path: Path) -> None:
    plans = [
        make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=OTHER, seed=seed, run="r")) for seed in (1, 1, 2)
    ]
    assert plans[0].batches == plans[1].batches
    assert plans[0].batches != plans[2].batches
    assert plans[0].document["plan"]["points"] == plans[2].document["plan"]["points"]


def test_equal_arms_alternate_launch_by_launch(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=KERNEL))
    assert sessions(campaign) == [("baseline+candidate", "none", "if_needed")]
    (block,) = campaign.batches
    pairs = list(zip(block["turns"][::2], block["turns"][1::2], strict=True))
    half = len(pairs) // 2
    assert all((a["arm"], b["arm"]) == ("baseline", "candidate") for a, b in pairs[:half])
    assert all((a["arm"], b["arm"]) == ("candidate", "baseline") for a, b in pairs[half:])
    assert all((a["point"], a["adapter"], a["n"]) == (b["point"], b["adapter"], b["n"]) for a, b in pairs)
    assert not any(launch["request"]["switch"] for launch in block["turns"])
    assert "compares a drop with itself" in campaign.warnings[-1]


def test_equal_arms_can_be_kept_in_sessions(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=KERNEL, by_sessions=True))
    assert [arms for arms, _, _ in sessions(campaign)] == ["baseline", "candidate", "candidate", "baseline"]
    assert {boot for _, _, boot in sessions(campaign)[1:]} == {"always"}


LIMITED = {"virtual": {"iops_limit": {"all": 1000}}, "drive": {"WCE": 1}}
SLOWER = {"virtual": {"iops_limit": {"all": 900}}, "drive": {"WCE": 0}}


def test_limits_of_the_emulator_alternate_block_by_block(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, baseline=LIMITED, candidate=SLOWER))
    assert sessions(campaign) == [("baseline+candidate", "instant", "if_needed")]
    assert campaign.document["plan"]["designs"]["b1"]["by_block"]
    arms = [{launch["arm"] for launch in block["turns"]} for block in campaign.batches]
    assert arms == [{"baseline"}, {"candidate"}, {"baseline"}]
    first, both, last = (
        [(launch["n"], launch["point"], launch["adapter"]) for launch in block["turns"]] for block in campaign.batches
    )
    assert first + last == both
    # what the bench switches by itself is set in each block, which cannot know what the one before left
    assert all(len(wanted_state(block)) == len(block["targets"]) for block in campaign.batches)
    spec = campaign.document["provision"]["b1"]["candidate"]
    assert set(spec["virtual"]["iops_limit"].values()) == {900}
    assert len(spec["virtual"]["iops_limit"]) == 8


def test_module_options_are_loaded_again(tmp_path: Path) -> None:
    options = {"driver": {"options": {"sym53c8xx": {"max_tags": 16}}}}
    campaign = make_plan(make_lab(tmp_path, baseline={}, candidate=options))
    assert {(change, boot) for _, change, boot in sessions(campaign)[1:]} == {("reload", "never")}
    spec = campaign.document["provision"]["b1"]["candidate"]
    starts = [declared_document({**spec, "change": change, "boot": boot}) for _, change, boot in sessions(campaign)]
    assert [bool(declared["nvram"]["start"]) for declared in starts] == [False, True, True, True]


def test_a_setting_that_one_arm_does_not_declare_is_put_back_as_found(tmp_path: Path) -> None:
    """Nobody knows its value before the bench is asked, so the bench cannot switch by itself."""
    campaign = make_plan(make_lab(tmp_path, baseline={}, candidate={"drive": {"WCE": 0}}))
    assert [arms for arms, _, _ in sessions(campaign)] == ["baseline", "candidate", "candidate", "baseline"]
    specs = campaign.document["provision"]["b1"]
    assert set(specs["candidate"]["drive"]) == set(specs["baseline"]["as_found"]["drive"])
    assert specs["candidate"]["as_found"] == {}


def wanted_state(block: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for launch in block["turns"] for step in launch["request"]["switch"]]


def test_the_bench_program_takes_every_block(tmp_path: Path) -> None:
    for drops in ((KERNEL, OTHER), INSTANT, ({}, {})):
        for block in make_plan(make_lab(tmp_path, baseline=drops[0], candidate=drops[1])).batches:
            assert len(parse_batch(json.dumps(block)).launches) == len(block["turns"])


def test_a_long_session_is_cut_into_blocks_between_pairs(tmp_path: Path) -> None:
    suite = SMALL_SUITE.replace("cells: all, ", "cells: all, block: 60s, ")
    campaign = make_plan(make_lab(tmp_path, suite=suite, profile="full"))
    assert len(campaign.batches) > 2
    for block in campaign.batches:
        assert len(block["turns"]) % 2 == 0
        assert len(block["turns"]) * 3.4 <= 70
    whole = make_plan(make_lab(tmp_path, profile="full"))
    assert sum(len(b["turns"]) for b in campaign.batches) == sum(len(b["turns"]) for b in whole.batches)
    assert [block["block"] for block in campaign.batches[:2]] == ["s01-b01", "s01-b02"]


def test_a_point_that_an_adapter_cannot_serve_is_skipped_with_the_reason(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, hosts=lab_hosts({"sym": 4, "mpt": 1}), profile="full"))
    skipped = [point for point in campaign.document["plan"]["points"] if point["skipped"]]
    assert {(point["adapter"], point["skipped"]) for point in skipped} == {("mpt", "needs 2 drives, 1 is claimed")}
    assert len(campaign.document["plan"]["points"]) == 32


def test_drives_that_no_adapter_has_are_an_error(tmp_path: Path) -> None:
    said = problems(make_lab(tmp_path, hosts=lab_hosts({"sym": 1})))
    assert "small.suite.yml:3: workload seq_read asks for drives=2, which no adapter under test has" in said
    assert "sym of b1 needs 2 drives, 1 is claimed" in said


def test_a_fraction_too_small_to_show_every_level_is_an_error(tmp_path: Path) -> None:
    """It names what nobody would see."""
    suite = SMALL_SUITE.replace("bs: [4k, 64k]", "bs: [4k, 8k, 16k, 32k, 64k]").replace("cells: 8", "cells: 3")
    assert "never cover bs" in problems(make_lab(tmp_path, suite=suite, adapters=["sym", "mpt"]))


def test_the_number_of_adapters_is_the_profiles_the_choice_the_users(tmp_path: Path) -> None:
    """Those that can serve the whole suite come first; `--adapters` and `under_test` go over the number."""
    hosts = lab_hosts({"one": 1, "two": 4, "three": 4, "four": 4})
    under = [make_plan(make_lab(tmp_path, hosts=hosts)).benches[0].under_test]
    under.append(make_plan(make_lab(tmp_path, hosts=hosts, adapters=["four"])).benches[0].under_test)
    hosts["b1"]["storqual_under_test"] = ["three"]
    under.append(make_plan(make_lab(tmp_path, hosts=hosts)).benches[0].under_test)
    assert under == [("two", "three"), ("four",), ("three",)]


def test_fewer_adapters_get_their_share_of_the_cells(tmp_path: Path) -> None:
    campaign = make_plan(make_lab(tmp_path, hosts=lab_hosts({"sym": 4})))
    assert len(campaign.document["plan"]["points"]) == 4


def test_a_later_part_of_a_section_holds(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 2, "mpt": 2})
    wwn, serial = (hosts["b1"]["storqual_adapters"]["sym"]["drives"][1][name] for name in ("wwn", "serial"))
    drop = {
        "drive": [{"WCE": 1}, {"on": {"adapter": "mpt"}, "WCE": 0}, {"on": {"drives": [serial]}, "queue_depth": 2}]
    }
    campaign = make_plan(make_lab(tmp_path, hosts=hosts, baseline=drop, candidate=drop))
    drives = campaign.document["provision"]["b1"]["baseline"]["drive"]
    assert [entry["WCE"] for entry in drives.values()] == [1, 1, 0, 0]
    assert drives[wwn] == {"WCE": 1, "queue_depth": 2}


def test_what_a_drop_names_and_no_bench_has_is_an_error(tmp_path: Path) -> None:
    drop = {
        "nvram": {"on": {"adapter": "syn"}, "max_tags": 4},
        "drive": {"on": {"model": "WD*"}, "WCE": 0},
        "raid": {"level": 1, "members": ["0x5000c500ffffffff"]},
        "virtual": {"unplug": {"drive": "NOSUCH", "after_s": 5}},
    }
    said = problems(make_lab(tmp_path, baseline=drop))
    assert "baseline.yml:1: no bench has adapter 'syn' (did you mean 'sym'?); expected one of sym, mpt" in said
    assert "no bench has model 'WD*'" in said
    assert "no bench has drive '0x5000c500ffffffff'" in said
    assert "no bench has drive 'NOSUCH'" in said


def test_a_workload_with_a_think_time_has_no_ramp_and_the_others_keep_theirs(tmp_path: Path) -> None:
    """Fio would count what it did in the ramp."""
    thinking = SMALL_SUITE.replace("rw: read, ", "rw: read, options: {thinktime: 2000}, ")
    assert thinking != SMALL_SUITE
    plan = make_plan(make_lab(tmp_path, suite=thinking))
    ramps = {
        (launch["point"].partition("[")[0], launch["request"]["fio"]["ramp_s"])
        for block in plan.batches
        for launch in block["turns"]
    }
    assert ramps == {("seq_read", 0.0), ("rand_write", 0.5)}


def test_a_virtual_section_is_for_virtual_benches(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 4, "mpt": 4}, kind="hardware")
    said = problems(make_lab(tmp_path, hosts=hosts, candidate={"virtual": {"panic_at_boot": True}}))
    assert "`virtual` is for virtual benches only, and bench b1 is hardware" in said


def test_a_criterion_that_no_planned_point_answers_is_an_error(tmp_path: Path) -> None:
    suite = SMALL_SUITE.replace("profiles:", "  - {id: far, metric: iops, adapters: nvme, margin: 5%}\nprofiles:")
    said = problems(make_lab(tmp_path, suite=suite))
    assert "small.suite.yml:7: far applies to no planned point" in said


def test_peers_need_a_second_adapter(tmp_path: Path) -> None:
    suite = SMALL_SUITE.replace("against: baseline", "against: peers")
    assert "iops is judged against peers; this needs at least two adapters" in problems(
        make_lab(tmp_path, suite=suite, hosts=lab_hosts({"sym": 4}))
    )


def test_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 4})
    hosts["b1"]["storqual_kind"] = "metal"
    said = problems(
        make_lab(
            tmp_path,
            hosts=hosts,
            baseline={"drvier": {}},
            candidate={"drive": {"WCE": 9}},
            suite=SMALL_SUITE.replace("rw: read,", "rw: raed,"),
        )
    )
    for word in ("'metal'", "'drvier'", "WCE: 9", "'raed'"):
        assert word in said


def test_a_plan_that_cannot_see_its_margin_says_so(tmp_path: Path) -> None:
    suite = SMALL_SUITE.replace("quick: {", "quick: {noise: 4%, ")
    campaign = make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=OTHER, suite=suite))
    assert "this plan detects losses of" in campaign.warnings[0]
    one = make_plan(
        make_lab(tmp_path, baseline=KERNEL, candidate=OTHER, suite=suite.replace("sessions: 4", "sessions: 2"))
    )
    assert "cannot detect any loss" in one.warnings[0]
    assert one.document["plan"]["detectable"] is None


def test_benches_are_planned_side_by_side(tmp_path: Path) -> None:
    hosts = {**lab_hosts({"sym": 4, "mpt": 4}), **lab_hosts({"sym": 4, "mpt": 4}, bench="b2")}
    campaign = make_plan(make_lab(tmp_path, hosts=hosts, baseline=KERNEL, candidate=OTHER))
    one = make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=OTHER))
    assert {block["block"].split("-")[0] for block in campaign.batches} == {"b1", "b2"}
    assert math.isclose(campaign.document["plan"]["expected_seconds"], one.document["plan"]["expected_seconds"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"benches": {"hosts": []}}', "1: no host is in the group `benches`; put the test servers under `benches:`"),
        ('{"benches": null}', "1: no host is in the group `benches`; put"),
        ('{"benches":\n {"hosts":\n{"b1": null}}}', "3: key 'storqual_kind' is missing"),
    ],
)
def test_an_inventory_without_a_bench_or_what_is_known_of_it_is_bad_input(
    tmp_path: Path, text: str, said: str
) -> None:
    request = make_lab(tmp_path)
    (tmp_path / "hosts.json").write_text(text, encoding="utf-8")
    assert f"hosts.json:{said}" in problems(request)


def test_nothing_of_the_inventory_but_ours_is_copied(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 4, "mpt": 4})
    hosts["b1"]["snmp_community"] = "canary-7f3a"
    campaign = make_plan(make_lab(tmp_path, hosts=hosts))
    assert all(b"canary" not in file.data for file in campaign.inputs.values())


def test_a_list_made_before_can_be_limited(tmp_path: Path) -> None:
    hosts = {**lab_hosts({"sym": 4}), **lab_hosts({"sym": 4}, bench="b2")}
    assert [plan.bench.name for plan in make_plan(make_lab(tmp_path, hosts=hosts, limit="b2")).benches] == ["b2"]


def test_a_module_that_drives_nothing_is_an_error(tmp_path: Path) -> None:
    """A misspelt driver drop would qualify nothing and pass."""
    drop = {"driver": {"dkms": {"package": "x.deb", "module": "syn_driver", "version": "1"}}}
    said = problems(make_lab(tmp_path, candidate=drop))
    assert (
        "module 'syn_driver' drives no adapter of b1 (did you mean 'sym_driver'?); expected one of "
        "mpt_driver, sym_driver"
    ) in said


def test_a_package_with_a_driver_is_there_and_the_only_build(tmp_path: Path) -> None:
    lab = make_lab(tmp_path, candidate={"driver": {"kmod": {"files": ["gone.rpm"], "module": "syn_driver"}}})
    said = problems(lab)
    assert "module 'syn_driver' drives no adapter" in said
    assert "gone.rpm' does not exist" in said
    both = {
        "kmod": {"files": ["x.rpm"], "module": "sym_driver"},
        "dkms": {"package": "x.deb", "module": "sym_driver"},
    }
    assert "dkms and kmod are builds of a driver each; name one" in problems(
        make_lab(tmp_path / "both", candidate={"driver": both})
    )


def test_a_point_is_planned_alone_whatever_the_profile_chooses(tmp_path: Path) -> None:
    whole = make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=OTHER))
    name = whole.document["plan"]["points"][-1]["point"]
    campaign = make_plan(make_lab(tmp_path, baseline=KERNEL, candidate=OTHER, points=[name]))
    assert {point["point"] for point in campaign.document["plan"]["points"]} == {name}
    assert {launch["point"] for batch in campaign.batches for launch in batch["turns"]} == {name}
    assert f"only {name} is measured, as asked by --point" in campaign.warnings
    assert not any("--point" in warning for warning in whole.warnings)


def test_a_point_that_the_suite_does_not_have_is_refused(tmp_path: Path) -> None:
    told = problems(make_lab(tmp_path, baseline=KERNEL, candidate=OTHER, points=["nonsense[bs=4k]"]))
    assert "has no point 'nonsense[bs=4k]'" in told


SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")


def plan(folder: Path, *, vary: str = "", suite: str = SUITE, **request: Any) -> PlannedCampaign:
    """The plan of a lab with one adapter and no baseline; `vary` is what stands between the braces."""
    hosts = request.pop("hosts", None) or lab_hosts({"sym": 4})
    lab = make_lab(folder, hosts=hosts, suite=suite.replace("VARY", vary), run="r", **request)
    return make_plan(replace(lab, baseline=""))


def test_one_arm_has_one_session_and_no_baseline(tmp_path: Path) -> None:
    campaign = plan(tmp_path)
    document = campaign.document
    assert set(document["arms"]) == {"candidate"}
    assert document["plan"]["design"] == "single"
    assert [session["arms"] for session in document["plan"]["sessions"]] == [["candidate"]]
    assert {launch["arm"] for block in campaign.batches for launch in block["turns"]} == {"candidate"}
    assert document["plan"]["detectable"] is None
    assert campaign.warnings == ()


def test_drives_per_port_balance_the_ports(tmp_path: Path) -> None:
    points = {point["point"]: point for point in plan(tmp_path).document["plan"]["points"]}
    assert len(points["seq_read[bs=4k,drives_per_port=2,ports=1]"]["drives"]) == 2
    assert len(points["seq_read[bs=4k,drives_per_port=2,ports=2]"]["drives"]) == 4


def test_a_profile_measures_its_own_levels_only(tmp_path: Path) -> None:
    names = [point["point"] for point in plan(tmp_path).document["plan"]["points"]]
    assert not any("drives_per_port=1" in name for name in names)
    assert len([name for name in names if name.startswith("seq_read")]) == 4


def test_what_an_emulation_cannot_stand_for_is_skipped_with_the_reason(tmp_path: Path) -> None:
    points = {point["workload"]: point for point in plan(tmp_path).document["plan"]["points"]}
    assert points["emulation_cannot"]["skipped"] == "needs hardware: it has no cache"
    real = plan(tmp_path, hosts=lab_hosts({"sym": 4}, kind="hardware"))
    assert {point["skipped"] for point in real.document["plan"]["points"]} == {""}


def test_instant_settings_are_switched_inside_the_session(tmp_path: Path) -> None:
    campaign = plan(tmp_path, vary="drive.nomerges: [0, 2]")
    assert len(campaign.document["plan"]["sessions"]) == 1
    (block,) = campaign.batches
    assert any(launch["request"]["switch"] for launch in block["turns"])
    assert {step["setting"] for launch in block["turns"] for step in launch["request"]["switch"]} == {"nomerges"}


def test_dear_settings_are_visited_there_and_back(tmp_path: Path) -> None:
    campaign = plan(tmp_path, vary="os.cpus: [2, 4]")
    sessions = campaign.document["plan"]["sessions"]
    assert [session["configuration"] for session in sessions] == [
        *("candidate[os.cpus=2]", "candidate[os.cpus=4]", "candidate[os.cpus=4]", "candidate[os.cpus=2]")
    ]
    assert [session["change"] for session in sessions] == ["reboot", "reboot", "none", "reboot"]


def test_a_profile_may_vary_other_settings(tmp_path: Path) -> None:
    campaign = plan(tmp_path, vary="os.cpus: [2, 4]", profile="other")
    assert {name for point in campaign.document["plan"]["points"] for name in point["varied"]} == {"drive.nomerges"}


def test_a_criterion_against_nobody_is_refused(tmp_path: Path) -> None:
    """A suite that compares with a baseline says so before a bench is touched."""
    suite = SUITE.replace("against: absolute, max: 0", "against: baseline")
    with pytest.raises(BadInputError, match="is judged against the baseline; name a baseline drop"):
        plan(tmp_path, suite=suite)


def test_levels_of_a_profile_that_no_workload_has_are_told(tmp_path: Path) -> None:
    with pytest.raises(
        BadInputError, match=r"no workload has drives_per_port 3, as profile quick asks; their levels: 1, 2"
    ):
        plan(tmp_path, suite=SUITE.replace("drives_per_port: [2]", "drives_per_port: [2, 3]"))


TEAM = Path(__file__).with_suffix(".team").read_text(encoding="utf-8")


def test_adapters_of_one_driver_work_as_a_team(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 4, "symb": 4})
    for adapter in hosts["b1"]["storqual_adapters"].values():
        adapter["driver"] = "sym53c8xx"
    points = {
        (point["adapter"], point["point"]): point
        for point in plan(tmp_path, suite=TEAM, hosts=hosts).document["plan"]["points"]
    }
    assert len(points["sym", "cards[adapters=1,drives_per_port=2]"]["drives"]) == 4
    assert len(points["sym", "cards[adapters=2,drives_per_port=2]"]["drives"]) == 8
    assert points["symb", "cards[adapters=2,drives_per_port=2]"]["skipped"] == "measured together with sym"
    first, third = (set(points["sym", f"ports[drives_per_port=2,ports={n}]"]["drives"]) for n in (2, 3))
    own = {drive["wwn"] for drive in hosts["b1"]["storqual_adapters"]["sym"]["drives"]}
    assert first == own
    assert len(third - own) == 2


def needs(folder: Path, candidate: dict[str, Any], *, suite: str = SMALL_SUITE, **adapter: Any) -> dict[str, str]:
    """What is needed, by the first name of each program."""
    hosts = lab_hosts({"sym": 4, "mpt": 4}, kind="hardware")
    hosts["b1"]["storqual_adapters"]["sym"] |= adapter
    campaign = make_plan(make_lab(folder, hosts=hosts, baseline=candidate, candidate=candidate, suite=suite))
    needed = campaign.document["plan"]["needs"]["b1"]
    return {need["programs"][0] if need["programs"] else "boots": need["for"] for need in needed}


def test_launches_need_fio_alone(tmp_path: Path) -> None:
    assert needs(tmp_path, {}) == {"fio": "launches"}
    plan = make_plan(make_lab(tmp_path, hosts=lab_hosts({"sym": 4}, kind="hardware"))).document["plan"]
    launches = [need for each in plan["needs"].values() for need in each if need["for"] == "launches"]
    assert [need["one_disk"] for need in launches] == [True]


def test_settings_volumes_and_file_systems_need_their_programs(tmp_path: Path) -> None:
    volume = {"on": {"adapter": "sym"}, "level": "1", "members": ["B1SYM0000", "B1SYM0001"]}
    suite = SMALL_SUITE.replace("drives: [1, 2], iodepth: [1, 8]", "drives: [1], target: [raw, xfs]").replace(
        "cells: 8, ", "cells: all, file: 24MiB, "
    )
    found = needs(tmp_path, {"drive": {"WCE": 1}, "raid": volume}, suite=suite)
    assert set(found) == {"fio", "mkfs.xfs", "sg_wr_mode", "mdadm"}
    assert found["mdadm"] == "the volumes of adapter sym"


def test_a_raid_controller_needs_the_tool_of_its_vendor(tmp_path: Path) -> None:
    volume = {"on": {"adapter": "sym"}, "level": "1", "members": ["B1SYM0000", "B1SYM0001"]}
    nvram = {"on": {"adapter": "sym"}, "boot_rom": 1}
    found = needs(tmp_path, {"raid": volume, "nvram": nvram}, tool="storcli", driver="megaraid_sas")
    assert found["storcli64"] == "the volumes of adapter sym"
    assert "mdadm" not in found


def test_the_write_cache_of_an_nvme_drive_needs_nvme_cli(tmp_path: Path) -> None:
    found = needs(tmp_path, {"drive": {"on": {"adapter": "sym"}, "WCE": 1}}, driver="nvme")
    assert found == {"fio": "launches", "nvme": "the write cache of NVMe drives"}


def test_a_kernel_of_a_drop_needs_a_bench_that_can_be_booted_with_it(tmp_path: Path) -> None:
    found = needs(tmp_path, {"driver": {"kernel": {"package": "linux-image-x", "version": "6.12.1-1"}}})
    assert found == {"fio": "launches", "boots": "the kernel of the drop"}


def test_a_driver_package_needs_rpm_and_a_bench_that_can_be_booted_with_it(tmp_path: Path) -> None:
    (tmp_path / "drops").mkdir(exist_ok=True)
    (tmp_path / "drops" / "x.rpm").touch()
    found = needs(tmp_path, {"driver": {"kmod": {"files": ["x.rpm"], "module": "sym_driver"}}})
    assert found == {
        "fio": "launches",
        "rpm": "the driver package of the drop",
        "boots": "the driver build of the drop",
    }


def test_files_that_were_planned_with_before_are_not_composed_again(tmp_path: Path) -> None:
    """The names in a gate are looked for in all suites, of which there are more every year."""
    gate = tmp_path / "gate.yml"
    gate.write_text("required: [iops]\n", encoding="utf-8")
    request = replace(make_lab(tmp_path), gate=gate)
    make_plan(request)
    composed = yaml_file._nodes.cache_info().misses
    make_plan(request)
    assert yaml_file._nodes.cache_info().misses == composed
