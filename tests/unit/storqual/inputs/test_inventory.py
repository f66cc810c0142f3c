# SPDX-License-Identifier: Apache-2.0
"""Benches of host variables: one name for one thing, and strings that are only ever text."""

import copy
from pathlib import Path
from typing import Any

import pytest

from storqual.inputs import inventory_from_hostvars, load_inventory
from storqual.inputs.inventory import Route, slip_of
from storqual.plan.points import Pattern, drives_for
from storqual_core.kit.errors import BadInputError

DRIVE = {
    "wwn": "0x5000C50015EA71A0",
    "serial": "SYM0000001",
    "vendor": "SEAGATE",
    "model": "ST336607LW",
    "size": "1GiB",
    "claim": True,
}
BENCH: dict[str, Any] = {
    "ansible_host": "192.0.2.1",
    "storqual_kind": "hardware",
    "storqual_adapters": {"sym": {"model": "Symbios 53C895A", "pci": "05:00.0", "drives": [DRIVE]}},
}


def bench(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(BENCH), **{f"storqual_{name}": value for name, value in changes.items()}}


def drives(*entries: dict[str, Any], kind: str = "hardware", **more: Any) -> dict[str, Any]:
    """A bench of `kind` with these drives on one adapter."""
    return bench(kind=kind, adapters={"sym": {"model": "x", "drives": list(entries)}}, **more)


def problems(**hosts: dict[str, Any]) -> str:
    with pytest.raises(BadInputError) as caught:
        inventory_from_hostvars(hosts)
    return "\n".join(caught.value.problems)


def test_names_take_one_form() -> None:
    adapter = inventory_from_hostvars({"b1": BENCH}).benches["b1"].adapters["sym"]
    assert adapter.pci == "0000:05:00.0"
    assert (adapter.drives[0].id, adapter.drives[0].size) == ("0x5000c50015ea71a0", 1 << 30)


def test_an_unquoted_wwn_is_the_same_drive() -> None:
    """YAML 1.1 makes a number of it."""
    host = drives({**DRIVE, "wwn": 0x5000C50015EA71A0})
    assert inventory_from_hostvars({"b1": host}).benches["b1"].drive("0x5000c50015ea71a0") is not None


def test_a_drive_without_wwn_is_named_by_its_serial() -> None:
    host = drives({name: value for name, value in DRIVE.items() if name != "wwn"})
    assert inventory_from_hostvars({"b1": host}).benches["b1"].drive("SYM0000001") is not None


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "{{ 7*7 }}", "=1+1", "${HOME}"])
def test_a_hostile_model_is_text(text: str) -> None:
    host = drives({**DRIVE, "model": text})
    assert text == inventory_from_hostvars({"b1": host}).benches["b1"].adapters["sym"].drives[0].model


def test_two_drives_with_one_serial_are_refused() -> None:
    said = problems(b1=drives(DRIVE, {**DRIVE, "wwn": "0x5000c50015ea71b0"}))
    assert "serial 'SYM0000001' is already used at inventory, host b1:1 (adapter sym, drive 1 of b1)" in said
    assert "adapter sym, drive 1 of b1" in said


def test_a_wwn_on_two_benches_is_refused() -> None:
    said = problems(b1=drives(DRIVE), b2=drives({**DRIVE, "wwn": "5000c50015ea71a0", "serial": "OTHER"}))
    assert "inventory, host b2:1: WWN '0x5000c50015ea71a0' is already used at" in said


def test_unknown_keys_are_told_with_the_nearest_known_one() -> None:
    host = drives({**DRIVE, "claimed": True}, adaptors={})
    said = problems(b1=host)
    assert "unknown variable 'storqual_adaptors'" in said
    assert "did you mean 'storqual_adapters'?" in said
    assert "unknown key 'claimed'" in said
    assert "did you mean 'claim'?" in said


def test_a_drive_of_several_paths_stands_once_and_names_the_other_adapters() -> None:
    def host(paths: Any) -> dict[str, Any]:
        entry = {**DRIVE, "paths": paths}
        return bench(
            adapters={alias: {"model": "x", "drives": [entry][: alias == "one"]} for alias in ("one", "two")}
        )

    read = inventory_from_hostvars({"b1": host(["two"])}).benches["b1"]
    assert read.adapters["one"].drives[0].paths == ("two",)
    assert "b1 has no adapter 'three'" in problems(b1=host(["three"]))
    for wrong in (["one"], ["two", "two"]):
        assert "must name each other adapter or path once" in problems(b1=host(wrong))
    file = {"file": "/var/lib/d.img", "size": "1GiB", "claim": True, "paths": ["two"]}
    assert "is a file, which has no `paths`" in problems(b1=drives(file, kind="local"))


def test_virtual_parts_are_for_virtual_benches() -> None:
    said = problems(b1=drives({**DRIVE, "virtual": {"iops": 1}}, virtual={"cpus": 2}))
    assert "storqual_virtual is for virtual benches only, and this bench is hardware" in said
    assert "has `virtual`, which is for virtual benches only" in said


def test_a_claim_names_the_whole_drive() -> None:
    said = problems(b1=drives({"wwn": DRIVE["wwn"], "claim": True}))
    assert "claimed without serial, model, size" in said


def test_an_unclaimed_drive_needs_a_name_only() -> None:
    """It is known so that it can be watched."""
    assert inventory_from_hostvars({"b1": drives({"wwn": DRIVE["wwn"]})}).benches["b1"].adapters["sym"].claimed == ()


def test_local_benches_have_files_and_others_have_none() -> None:
    said = problems(b1=drives(DRIVE, kind="local"), b2=drives({"file": "/x", "size": "1m", "claim": True}))
    assert "has no `file`; the drives of a local bench are files" in said
    assert "is a file, which only a local bench can have; name the drive by `wwn` and `serial`" in said


@pytest.mark.parametrize(
    "template",
    ["{{ inventory_dir | dirname }}/t/targets/d0", "{{inventory_dir|dirname}}/t/targets/d0", "../t/targets/d0"],
)
def test_files_lie_beside_the_inventory(template: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """`{{ inventory_dir }}` means for us what it means for Ansible, and only in paths."""
    monkeypatch.chdir(tmp_path)
    host = drives({"file": template, "size": "1m", "claim": True}, kind="local", state_dir="../t")
    read = inventory_from_hostvars({"b1": host}).benches["b1"]
    assert str(tmp_path.parent / "t" / "targets" / "d0") == read.adapters["sym"].drives[0].id
    assert str(tmp_path.parent / "t") == read.state_dir


def test_a_path_of_many_benches_has_the_name_of_each() -> None:
    entry = {"file": "/s/{{ inventory_hostname }}/targets/d0", "size": "1m", "claim": True}
    host = drives(entry, kind="local", state_dir="/s/{{inventory_hostname}}")
    for name, read in inventory_from_hostvars({"b1": host, "b2": host}).benches.items():
        assert (read.state_dir, read.adapters["sym"].drives[0].file) == (f"/s/{name}", f"/s/{name}/targets/d0")


def test_a_path_with_another_template_is_refused() -> None:
    entry = {"file": "{{ storqual_state_dir }}/d0", "size": "1m", "claim": True}
    said = problems(b1=drives(entry, kind="local", state_dir="/s/{{ lab }}"))
    assert "may hold no template but `{{ inventory_dir }}` at its start and `{{ inventory_hostname }}`" in said
    assert said.count("may hold no template but") == 2


def test_a_rate_may_be_decimal_or_binary() -> None:
    host = bench(adapters={"sym": {"model": "x", "drives": [DRIVE], "ceiling": {"slot": "133MB", "link": "24MiB/s"}}})
    ceiling = inventory_from_hostvars({"b1": host}).benches["b1"].adapters["sym"].ceiling
    assert (ceiling.slot, ceiling.link) == (133_000_000, 24 << 20)


def test_a_file_may_be_paced_like_the_drive_it_stands_for() -> None:
    entry = {
        "file": "/var/lib/storqual/targets/d0",
        "size": "1m",
        "claim": True,
        "paced": {"iops": 400, "bandwidth": "32MiB"},
    }
    pace = inventory_from_hostvars({"b1": drives(entry, kind="local")}).benches["b1"].adapters["sym"].drives[0].paced
    assert pace is not None
    assert [pace.rate(size) for size in (4096, 65536, 1 << 20)] == [400, 400, 32]
    assert "has `paced`, which is for files of local benches only" in problems(
        b1=drives({**DRIVE, "paced": {"iops": 1}})
    )


RULE = {"kind": "timeout", "pattern": "^acme: stuck", "example": "acme: stuck", "source": "its manual"}


def test_a_bench_has_rules_of_its_own_for_the_kernels_log() -> None:
    found = inventory_from_hostvars({"b1": bench(kernel_rules=[RULE])}).benches["b1"].kernel_rules
    assert [(rule.kind, rule.severity) for rule in found] == [("timeout", "error")]
    assert "the example does not fit the pattern" in problems(b1=bench(kernel_rules=[{**RULE, "example": "other"}]))


PSEUDO: dict[str, Any] = {"model": "x", "driver": "scsi_debug", "pseudo": "adapter0", "drives": [DRIVE]}


def test_an_adapter_without_hardware_is_known_by_its_place_on_a_virtual_bench() -> None:
    found = inventory_from_hostvars({"b1": bench(kind="virtual", adapters={"debug": PSEUDO})})
    assert found.benches["b1"].adapters["debug"].address == "pseudo/adapter0"


@pytest.mark.parametrize("kind", ["hardware", "local"])
def test_an_adapter_without_hardware_is_refused_on_any_other_bench(kind: str) -> None:
    said = problems(b1=bench(kind=kind, adapters={"debug": PSEUDO}))
    assert f"debug has `pseudo` on a {kind} bench: it tests no hardware and is for virtual benches only" in said


def test_an_adapter_is_either_on_pci_or_without_hardware() -> None:
    wrong = {**PSEUDO, "pci": "05:00.0", "driver": "mptsas"}
    said = problems(b1=bench(kind="virtual", adapters={"debug": wrong}))
    assert "debug has both `pseudo` and `pci`; give one of them" in said
    assert "with driver 'mptsas'; its driver must be scsi_debug" in said
    twice = {"debug": PSEUDO, "other": {**PSEUDO, "drives": []}}
    assert "address 'pseudo/adapter0' is already used at" in problems(b1=bench(kind="virtual", adapters=twice))
    for word in ("0000:05:00.0", "adapter", "host0", 0):
        said = problems(b1=bench(kind="virtual", adapters={"debug": {**PSEUDO, "pseudo": word}}))
        assert "a host of scsi_debug as the kernel names it, such as adapter0" in said


def test_a_software_initiator_is_named_by_its_driver() -> None:
    fabric = {**PSEUDO, "pseudo": "fcoe"}
    assert "with driver 'scsi_debug'; its driver must be fcoe" in problems(
        b1=bench(kind="virtual", adapters={"fc": fabric})
    )
    found = inventory_from_hostvars({"b1": bench(kind="virtual", adapters={"fc": {**fabric, "driver": "fcoe"}})})
    assert found.benches["b1"].adapters["fc"].address == "pseudo/fcoe"


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("state", "'state' is a relative path; name a folder of its own, such as /var/lib/storqual"),
        ("/", "is the root of the file system"),
        ("//", "is the root of the file system"),
        ("/srv/..", "is the root of the file system"),
        ("/dev/sda", "'/dev/sda' is in a folder of devices or of the kernel"),
        ("/proc", "'/proc' is in a folder of devices or of the kernel"),
    ],
)
def test_a_bench_keeps_its_state_in_a_folder_of_its_own(folder: str, words: str) -> None:
    assert f"storqual_state_dir {words}" in problems(b1=bench(state_dir=folder))


@pytest.mark.parametrize("folder", ["/var/lib/storqual", "/device/storqual", "{{ lab_state }}/storqual"])
def test_other_folders_are_taken(folder: str) -> None:
    """What a template means on a bench, only Ansible knows."""
    assert inventory_from_hostvars({"b1": bench(state_dir=folder)}).benches["b1"].state_dir == folder


def test_names_that_no_driver_and_no_tool_has_are_refused() -> None:
    adapter = {"model": "x", "driver": "megaraid", "tool": "storcly", "drives": [DRIVE]}
    said = problems(b1=bench(adapters={"sas": adapter}))
    assert "no driver is called 'megaraid' (did you mean 'megaraid_sas'?); write the module that `lspci -k`" in said
    assert "unknown tool 'storcly' (did you mean 'storcli'?)" in said


def test_a_serial_number_that_became_a_number_is_told_to_need_quotes() -> None:
    said = problems(b1=drives({**DRIVE, "serial": 5349}))
    assert "expected text in quotes; digits without quotes become a number, with a leading 0 an octal one" in said


@pytest.mark.slow
def test_what_else_lies_in_the_folder_of_a_lab_is_no_inventory(tmp_path: Path) -> None:
    """Ansible would take hosts from a file that stands in for a drive, whoever wrote it."""
    hosts = "benches: {hosts: {%s: {storqual_kind: local, storqual_state_dir: '{{ inventory_dir }}/state', %s}}}\n"
    drives = "[{file: '{{ inventory_dir }}/state/targets/drive0', size: 1MiB, claim: true}]"
    adapters = f"storqual_adapters: {{files: {{model: files, drives: {drives}}}}}"
    for name in ("hosts.yml", "drops/next.yml", "state/targets/drive0", "gate.yml", "keys.yml", "waivers.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(hosts % (Path(name).stem, adapters), encoding="utf-8")
    assert list(load_inventory([tmp_path]).benches) == ["hosts"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("megaraid", "megaraid_sas"),
        ("megaraid-sass", "megaraid_sas"),
        ("mpt3sass", "mpt3sas"),
        ("qla2xx", "qla2xxx"),
        ("smartqpi", "smartpqi"),
        ("virtio", "virtio_scsi"),
    ],
)
def test_a_name_that_no_driver_has_and_that_looks_like_one_is_a_slip(written: str, meant: str) -> None:
    assert slip_of(written) == meant


@pytest.mark.parametrize(
    "name",
    [
        *("megaraid_sas", "megaraid-sas", "mpt3sas_oem", "megaraid_sas_x", "mpt4sas", "mpi4mr", "leapraid"),
        *("scsi_mod", "nvme_core", "x"),
        "",
    ],
)
def test_a_driver_and_a_name_that_may_be_one_are_none(name: str) -> None:
    """A vendor's build has more behind the driver's name, a next generation other digits."""
    assert slip_of(name) == ""


ROUTE = {"initiator": "21:00:00:0e:1e:00:00:01", "target": "0x5006016000000001"}
OTHER = {"initiator": "0x2100000e1e000002", "target": 0x5006016800000001, "adapter": "fc1"}


def fabric(*entries: dict[str, Any]) -> dict[str, Any]:
    """A bench with an adapter whose drives these are, and another one."""
    adapters = {"fc0": {"model": "x", "drives": list(entries)}, "fc1": {"model": "y", "drives": []}}
    return bench(adapters=adapters)


def test_a_lun_names_its_paths_by_the_ports_at_both_ends() -> None:
    inventory = inventory_from_hostvars({"b1": fabric({**DRIVE, "port": ROUTE, "paths": [OTHER]})})
    adapter = inventory.benches["b1"].adapters["fc0"]
    (drive,) = adapter.drives
    assert drive.port == Route(initiator="0x2100000e1e000001", target="0x5006016000000001")
    assert drive.paths is not None
    assert drive.paths[0] == Route(initiator="0x2100000e1e000002", target="0x5006016800000001", adapter="fc1")
    assert inventory.benches["b1"].reached_by("fc1") == [drive]


def test_ports_of_a_fabric_are_numbered_as_they_appear() -> None:
    """A workload takes drives of an adapter round-robin over its ports."""
    second = {**ROUTE, "initiator": "0x2100000e1e000002"}
    listed = [
        {**DRIVE, "wwn": f"0x5000C50015EA71A{number}", "serial": f"S{number}", "port": port}
        for number, port in enumerate([ROUTE, ROUTE, second, {**ROUTE, "target": "0x5006016900000001"}])
    ]
    adapter = inventory_from_hostvars({"b1": fabric(*listed)}).benches["b1"].adapters["fc0"]
    assert [adapter.port_of(drive) for drive in adapter.drives] == [0, 0, 1, 0]
    dealt = drives_for(adapter, Pattern({"drives": 3, "ports": None, "target": "raw"}, {}))
    assert [drive.serial for drive in dealt] == ["S0", "S2", "S1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"port": ROUTE, "paths": [ROUTE]}, "once"),
        ({"port": ROUTE, "paths": [OTHER, OTHER]}, "once"),
        ({"port": ROUTE, "paths": [{**OTHER, "adapter": "fc9"}]}, "no adapter 'fc9'"),
        ({"port": {**ROUTE, "adapter": "fc1"}}, "belongs to `paths`"),
        ({"port": {"initiator": "0x2100000e1e000001"}}, "target"),
        ({"port": {**ROUTE, "lun": 3}}, "lun"),
        ({"port": -1}, "port"),
    ],
)
def test_paths_that_cannot_be_are_refused(change: dict[str, Any], said: str) -> None:
    assert said in problems(b1=fabric({**DRIVE, **change}))
