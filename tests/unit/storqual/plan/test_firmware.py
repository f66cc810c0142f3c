# SPDX-License-Identifier: Apache-2.0
"""Firmware in drops: checked before a bench is touched, resolved for a bench, handed to the roles."""

import base64
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from storqual.campaign.declared import declared_document
from storqual.cli import storqual
from storqual.plan import make_plan
from storqual_core.kit.errors import BadInputError
from tests.support.make_lab import lab_hosts, make_lab


def image(folder: Path, version: str, **more: Any) -> dict[str, Any]:
    """An image beside the manifest; what leads back is always the other version."""
    (folder / "drops").mkdir(exist_ok=True)
    (folder / "drops" / f"fw-{version}.bin").write_text(version)
    digest = hashlib.sha256(version.encode()).hexdigest()
    return {"file": f"fw-{version}.bin", "sha256": digest, "version": version, **more}


def lab(folder: Path, **more: Any) -> Any:
    one, two = (image(folder, version, tool="storcli", on={"adapter": "sym"}) for version in ("1.0", "2.0"))
    two["rollback"] = image(folder, "1.0")
    one["from"] = ["2.0"]
    given = {"baseline": {"firmware": one}, "candidate": {"firmware": {**two, **more}}}
    return make_lab(folder, **given)


def problems(request: Any) -> list[str]:
    with pytest.raises(BadInputError) as caught:
        make_plan(request)
    return caught.value.problems


@pytest.mark.parametrize(
    ("activation", "cost"), [("none", "reload"), ("reset", "reload"), ("reboot", "reboot"), ("power cycle", "reboot")]
)
def test_what_starts_an_image_is_what_a_change_costs(tmp_path: Path, activation: str, cost: str) -> None:
    request = lab(tmp_path, activation=activation)
    manifest = json.loads((tmp_path / "drops" / "baseline.yml").read_text())
    manifest["firmware"]["activation"] = activation
    (tmp_path / "drops" / "baseline.yml").write_text(json.dumps(manifest))
    campaign = make_plan(request)
    assert {session["change"] for session in campaign.document["plan"]["sessions"]} == {cost}


def test_a_bench_gets_files_to_bring_and_where_they_will_be(tmp_path: Path) -> None:
    campaign = make_plan(lab(tmp_path))
    spec = campaign.document["provision"]["b1"]["candidate"]
    inputs = declared_document(spec)
    (entry,) = inputs["firmware"]
    new, old = (hashlib.sha256(version.encode()).hexdigest() for version in ("2.0", "1.0"))
    assert entry["adapters"] == ["sym"]
    drops, own = tmp_path / "drops", {"subsystem": "firmware"}
    assert inputs["files"] == [
        {**own, "from": str(drops / "fw-2.0.bin"), "to": f"firmware/{new}/fw-2.0.bin", "sha256": new},
        {**own, "from": str(drops / "fw-1.0.bin"), "to": f"firmware/{old}/fw-1.0.bin", "sha256": old},
    ]
    firmware = entry["firmware"]
    assert (firmware["path"], firmware["version"], firmware["tool"]) == (
        f"firmware/{new}/fw-2.0.bin",
        "2.0",
        "storcli",
    )
    assert firmware["rollback"][0]["path"] == f"firmware/{old}/fw-1.0.bin"
    assert (firmware["component"], firmware["activation"], firmware["from"]) == ("firmware", "reset", [])


def test_a_tool_for_drives_means_the_drives_of_the_adapter(tmp_path: Path) -> None:
    hosts = lab_hosts({"sym": 2, "mpt": 1})
    drives = [drive["wwn"] for drive in hosts["b1"]["storqual_adapters"]["sym"]["drives"]]
    arms = {
        arm: {"firmware": image(tmp_path, version, tool="sg_write_buffer", on={"adapter": "sym"})}
        for arm, version in (("baseline", "1.0"), ("candidate", "2.0"))
    }
    campaign = make_plan(make_lab(tmp_path, hosts=hosts, **arms))
    inputs = declared_document(campaign.document["provision"]["b1"]["candidate"])
    assert [entry["drives"] for entry in inputs["firmware"]] == [drives]


@pytest.mark.parametrize(
    ("more", "words"),
    json.loads(Path(__file__).with_name("firmware_mistakes.json").read_text(encoding="utf-8")),
    ids=["file", "digest", "version", "tool", "part", "rollback", "signature"],
)
def test_what_is_wrong_with_an_image_is_told_before_a_bench_is_touched(
    tmp_path: Path, more: dict[str, Any], words: str
) -> None:
    told = problems(lab(tmp_path, **more))
    assert any("candidate.yml:" in problem and words in problem for problem in told), told


def test_firmware_of_one_arm_alone_is_refused(tmp_path: Path) -> None:
    request = lab(tmp_path)
    (tmp_path / "drops" / "baseline.yml").write_text("{}")
    (told,) = problems(request)
    assert "drop baseline declares no firmware; both drops must declare theirs" in told


def test_resolve_shows_the_firmware_of_each_owner(tmp_path: Path) -> None:
    lab(tmp_path)
    words = ["resolve", "-i", str(tmp_path / "hosts.json"), "--bench", "b1", "--drop", "candidate"]
    shown = CliRunner().invoke(storqual, words)
    assert shown.exit_code == 0, shown.output
    assert "sym firmware version=2.0 tool=storcli activation=reset" in " ".join(shown.output.split())


def options(folder: Path, driver: dict[str, Any], *modules: str) -> dict[str, Any]:
    hosts = lab_hosts(dict.fromkeys((f"a{number}" for number in range(len(modules))), 2))
    for adapter, module in zip(hosts["b1"]["storqual_adapters"].values(), modules, strict=True):
        adapter["driver"] = module
    campaign = make_plan(replace(make_lab(folder, hosts=hosts, candidate={"driver": driver}), baseline="candidate"))
    found: dict[str, Any] = campaign.document["provision"]["b1"]["candidate"]["driver"]["options"]
    return found


def test_it_becomes_the_option_of_each_driver_beside_those_that_are_declared(tmp_path: Path) -> None:
    declared = {"can_queue": 64, "options": {"mpt3sas": {"max_sectors": 128}}}
    assert options(tmp_path, declared, "mpt3sas", "vmw_pvscsi") == {
        "mpt3sas": {"max_sectors": "128", "max_queue_depth": "64"},
        "vmw_pvscsi": {"ring_pages": "2"},
    }


@pytest.mark.parametrize(
    ("driver", "module", "told"),
    [
        ({"can_queue": 64}, "sym53c8xx", r"sym53c8xx has no parameter for the commands of an adapter .*mpt3sas"),
        ({"can_queue": 48}, "vmw_pvscsi", r"vmw_pvscsi takes 32 to 1024 in steps of 32"),
        ({"can_queue": 16}, "lpfc", r"lpfc takes 32 to 8192$"),
        (
            {"can_queue": 64, "options": {"lpfc": {"lpfc_hba_queue_depth": 32}}},
            "lpfc",
            r"means lpfc\.lpfc_hba_queue_depth=64, but the drop declares 32",
        ),
    ],
)
def test_what_a_driver_cannot_have_is_refused_before_a_bench_is_touched(
    tmp_path: Path, driver: dict[str, Any], module: str, told: str
) -> None:
    with pytest.raises(BadInputError, match=told):
        options(tmp_path, driver, module)


WAIVER = "waivers: [{%s, owner: me, reason: known, reference: X-1, expiry: 2035-01-01}]\n"


def warnings(folder: Path, **request: Any) -> str:
    return "\n".join(make_plan(make_lab(folder, candidate={"drive": {"WCE": 1}}, **request)).warnings)


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        (
            "required: [iopps]",
            "gate.yml:1: `required` names 'iopps', and no suite has such a criterion (did you mean",
        ),
        ("informative: [tail_p99]", "`informative` names 'tail_p99'"),
    ],
)
def test_a_gate_that_names_what_no_suite_has_is_told_with_its_line(gate: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "gate.yml").write_text(gate, encoding="utf-8")
    assert told in warnings(tmp_path)


@pytest.mark.parametrize("gate", ["required: [iops]", "required: ['io*']", "informative: [trials.device_reset]"])
def test_what_a_suite_or_a_check_may_have_is_no_reason_to_warn(gate: str, tmp_path: Path) -> None:
    (tmp_path / "gate.yml").write_text(gate, encoding="utf-8")
    assert "gate.yml" not in warnings(tmp_path)


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        ("criterion: flor", "waivers.yml:1: this waiver accepts nothing: no suite has a criterion 'flor'"),
        ("criterion: iops, bench: b2", "there is no bench 'b2'"),
        ("criterion: iops, adapter: symm", "there is no adapter 'symm' (did you mean 'sym'?)"),
        ("criterion: iops, suite: other", "there is no suite 'other'"),
        ("criterion: iops, adapter: s*", ""),
        ("criterion: test_mine.py::test_it", ""),
    ],
)
def test_a_waiver_that_accepts_nothing_is_told_with_its_line(scope: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "waivers.yml").write_text(WAIVER % scope, encoding="utf-8")
    said = warnings(tmp_path)
    assert told in said
    assert bool(told) == ("waivers.yml" in said)


def test_a_role_that_no_trusted_key_has_is_told(tmp_path: Path) -> None:
    key = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
    trusted = f"keys: [{{name: A, role: release-manager, public: ssh-ed25519 {key}, expires: 2035-01-01}}]\n"
    (tmp_path / "keys.yml").write_text(trusted, encoding="utf-8")
    (tmp_path / "gate.yml").write_text("signatures: [release-manger]\n", encoding="utf-8")
    said = warnings(tmp_path)
    assert "gate.yml:1: a signature as release-manger is asked for, and no key in" in said
    assert "did you mean 'release-manager'?" in said


def test_a_drop_with_another_name_than_its_file_is_told_with_the_name_that_counts(tmp_path: Path) -> None:
    request = make_lab(tmp_path, candidate={"name": "next", "drive": {"WCE": 1}})
    (told,) = [told for told in make_plan(request).warnings if "candidate.yml" in told]
    assert "this drop is called 'next': so runs, reports and waivers call it, and commands 'candidate'" in told


def test_a_drop_with_the_name_of_its_file_is_not_told(tmp_path: Path) -> None:
    request = make_lab(tmp_path, candidate={"name": "candidate", "drive": {"WCE": 1}})
    assert not [told for told in make_plan(request).warnings if "candidate.yml" in told]
