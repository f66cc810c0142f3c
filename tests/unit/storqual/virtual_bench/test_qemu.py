# SPDX-License-Identifier: Apache-2.0
"""The command line of a bench says exactly what the inventory says, whatever characters are in it."""

import asyncio
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual.virtual_bench.description import BenchDescription, describe, from_plain
from storqual.virtual_bench.image import BenchImage
from storqual.virtual_bench.limits import Limit, plug, read_limits, unplug
from storqual.virtual_bench.qemu import (
    Acceleration,
    choose_acceleration,
    device_arguments,
    machine_argv,
    option_value,
    started_from,
)
from storqual_core.kit.errors import BadInputError
from tests.support.fake_qemu import FakeQemu
from tests.support.fake_qemu import emulated_machine as machine_in

PRINTABLE = st.characters(min_codepoint=0x20, max_codepoint=0x7E)
TCG = Acceleration("tcg", "told so")


def _bench(**drive: Any) -> BenchDescription:
    entry = {"wwn": "0x5000c50015ea0000", "serial": "SYM1", "size": 2**20, **drive}
    return describe(
        "vbench",
        {"sym": {"pci": "0000:00:05.0", "drives": [entry]}, "nvme": {"pci": "0000:00:0a.0", "drives": []}},
        {"adapters": {"sym": {"device": "lsi53c895a"}, "nvme": {"device": "nvme"}}},
    )


def _values(argv: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(argv) if name == option]


def _devices(argv: list[str]) -> list[dict[str, Any]]:
    return [json.loads(value) for value in _values(argv, "-device")]


@given(
    vendor=st.text(PRINTABLE, min_size=1, max_size=8).filter(str.strip),
    model=st.text(PRINTABLE, min_size=1, max_size=16).filter(str.strip),
    revision=st.text(PRINTABLE, min_size=1, max_size=4).filter(str.strip),
    serial=st.text(PRINTABLE, min_size=1, max_size=36).filter(str.strip),
)
def test_any_printable_text_of_a_drive_reaches_qemu_unchanged(
    vendor: str, model: str, revision: str, serial: str
) -> None:
    bench = _bench(vendor=vendor, model=model, revision=revision, serial=serial)
    disks = [device for device in _devices(machine_argv(bench, machine_in(), TCG)) if device["driver"] == "scsi-hd"]
    assert len(disks) == 1
    told = {key: disks[0].get(key, "") for key in ("vendor", "product", "ver", "serial")}
    assert told == {"vendor": vendor, "product": model, "ver": revision, "serial": serial}


@given(folder=st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_any_folder_name_stays_one_value(folder: str) -> None:
    machine = machine_in(f"/x/{folder}")
    argv = machine_argv(_bench(), machine, TCG)
    console = next(value for value in _values(argv, "-chardev") if "id=console" in value)
    for key, file in (("path", machine.serial), ("logfile", machine.console)):
        assert f",{key}={option_value(str(file))}," in console
    (store,) = map(json.loads, _values(argv, "-object"))
    assert store["mem-path"] == str(machine.pstore)
    assert {json.loads(node)["file"]["filename"] for node in _values(argv, "-blockdev")} >= {
        str(machine.image.root),
        str(machine.overlay),
        str(machine.image.disc),
    }


@given(text=st.text())
def test_a_value_never_ends_an_option_early(text: str) -> None:
    assert not re.search(r"(?<!,)(?:,,)*,(?!,)", option_value(text))
    assert option_value(text).replace(",,", ",") == text


def test_a_bench_with_firmware_keeps_its_variables_and_shares_what_is_code(tmp_path: Path) -> None:
    firmware = tmp_path / "image/kept/OVMF"
    firmware.mkdir(parents=True)
    (firmware / "OVMF_CODE_4M.fd").write_bytes(b"")
    machine = machine_in(str(tmp_path))
    argv = machine_argv(_bench(), machine, TCG)
    nodes = {node["node-name"]: node for node in map(json.loads, _values(argv, "-blockdev"))}
    flash = dict(word.split("=") for word in _values(argv, "-machine")[-1].split(","))
    code, variables = (nodes[flash[name]] for name in ("pflash0", "pflash1"))
    assert (code["file"]["filename"], code["read-only"]) == (str(firmware / "OVMF_CODE_4M.fd"), True)
    assert (variables["file"]["filename"], variables["read-only"]) == (str(machine.variables), False)
    assert not [device for device in _devices(argv) if device["driver"] == "ide-cd"]
    # a guest that only tries the acceleration has those of the image, which all benches start with
    assert all(json.loads(node)["read-only"] for node in _values(started_from(machine.image), "-blockdev"))


def test_the_bench_starts_stopped_and_listens_on_loopback_only() -> None:
    argv = machine_argv(_bench(), machine_in(), TCG)
    assert "-S" in argv
    network = next(value for value in _values(argv, "-netdev"))
    assert "restrict=on" in network
    assert "hostfwd=tcp:127.0.0.1:0-" in network
    assert "-vnc" not in argv
    assert _values(argv, "-display") == ["none"]


def test_a_card_for_netconsole_is_on_sockets_of_the_bench_alone_and_comes_when_it_is_asked_for() -> None:
    cards = [device["addr"] for device in _devices(machine_argv(_bench(), machine_in(), TCG)) if "netdev" in device]
    assert cards == ["4.0"]
    argv = machine_argv(replace(_bench(), netconsole=True), machine_in("/x,y"), TCG)
    assert [device["addr"] for device in _devices(argv) if "netdev" in device] == ["4.0", "4.7"]
    network, messages = _values(argv, "-netdev")
    assert "restrict=on" in network
    assert json.loads(messages)["remote"] == {"type": "unix", "path": "/x,y/netconsole"}


@pytest.mark.parametrize(("counts", "shift"), [(False, []), (True, ["shift=2"])])
def test_instructions_are_counted_where_the_bench_says_so(counts: bool, shift: list[str]) -> None:
    argv = machine_argv(replace(_bench(), counts_instructions=counts), machine_in(), TCG)
    assert _values(argv, "-icount") == shift


def test_the_watchdog_resets_a_guest_and_takes_no_slot_of_an_adapter() -> None:
    argv = machine_argv(_bench(), machine_in(), TCG)
    devices = {device["driver"]: device for device in _devices(argv)}
    assert _values(argv, "-action") == ["watchdog=reset"]
    assert devices["i6300esb"]["addr"].partition(".")[0] == devices["virtio-rng-pci"]["addr"].partition(".")[0] == "2"


@pytest.mark.parametrize("name", ["tcg,thread=single,tb-size=256", "kvm"])
def test_kvm_is_used_only_when_told_and_emulation_has_one_thread_for_all_cpus(name: str) -> None:
    argv = machine_argv(_bench(), machine_in(), Acceleration(name.partition(",")[0], "a guest booted"))
    assert _values(argv, "-accel") == [name]


def test_adapters_are_at_the_addresses_of_the_inventory() -> None:
    devices = {device.get("id"): device for device in _devices(machine_argv(_bench(), machine_in(), TCG))}
    assert (devices["sym"]["addr"], devices["nvme"]["addr"]) == ("5.0", "a.0")


def test_the_wwn_is_a_number_and_the_root_disk_is_named_system() -> None:
    devices = {device.get("id"): device for device in _devices(machine_argv(_bench(), machine_in(), TCG))}
    assert devices["sym-0"]["wwn"] == 0x5000C50015EA0000
    assert devices["system"]["serial"] == "system"


def test_a_plugged_drive_is_the_same_device_as_the_one_it_was_at_power_on() -> None:
    bench = _bench()
    adapter = next(adapter for adapter in bench.adapters if adapter.alias == "sym")
    assert device_arguments(adapter, adapter.drives[0]) in _devices(machine_argv(bench, machine_in(), TCG))


def test_a_drive_with_a_service_time_takes_it_for_every_command_and_keeps_nothing() -> None:
    """The name of its node is that of any other drive's, so that it can be unplugged, plugged and limited."""
    nodes = [
        json.loads(node)
        for node in _values(machine_argv(_bench(virtual={"service_time": "4ms"}), machine_in(), TCG), "-blockdev")
    ]
    (node,) = [node for node in nodes if node["node-name"] == "sym-0-file"]
    assert (node["driver"], node["vote-threshold"]) == ("quorum", 1)
    assert node["children"] == [{"driver": "null-co", "latency-ns": 4_000_000, "read-zeroes": True, "size": 2**20}]


def test_a_controller_without_a_drive_has_a_serial_all_the_same() -> None:
    devices = {device.get("id"): device for device in _devices(machine_argv(_bench(), machine_in(), TCG))}
    assert devices["nvme"]["serial"] == "nvme"


def test_a_card_of_two_channels_is_two_functions_of_one_slot() -> None:
    drives = [{"wwn": f"0x5000c50015ea00{port}0", "size": "1MiB", "port": port} for port in (0, 1)]
    adapters = {"sym": {"pci": "0000:00:05.0", "drives": drives}}
    bench = describe("vbench", adapters, {"adapters": {"sym": {"device": "lsi53c895a", "channels": 2}}})
    devices = {device.get("id"): device for device in _devices(machine_argv(bench, machine_in(), TCG))}
    assert (devices["sym"]["addr"], devices["sym"]["multifunction"]) == ("5.0", True)
    assert (devices["sym-c1"]["addr"], "multifunction" in devices["sym-c1"]) == ("5.1", False)
    assert [(devices[name]["bus"], devices[name]["scsi-id"]) for name in ("sym-0", "sym-1")] == [
        ("sym.0", 0),
        ("sym-c1.0", 0),
    ]


NOWHERE = BenchImage(Path("/nowhere"))


@pytest.mark.parametrize("forced", ["", "tcg"])
def test_a_bench_that_counts_instructions_is_emulated_whatever_kvm_can(
    forced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORQUAL_ACCELERATION", forced)
    chosen = choose_acceleration(NOWHERE, counts_instructions=True)
    assert (chosen.name, chosen.reason) == ("tcg", "the clock of this bench counts instructions")


@pytest.mark.parametrize(("forced", "why"), [("kvm", "needs tcg"), ("xen", "expected kvm or tcg")])
def test_a_bench_that_counts_instructions_cannot_be_forced(
    forced: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORQUAL_ACCELERATION", forced)
    with pytest.raises(BadInputError, match=why):
        choose_acceleration(NOWHERE, counts_instructions=True)


DRIVE: dict[str, Any] = {"wwn": "0x33333330000007d0", "serial": "2000", "size": "64MiB"}
SYM = {"pci": "0000:00:05.0", "drives": [{"wwn": "0x5000c50015ea0000", "size": "1GiB"}]}


def bench(**changes: Any) -> BenchDescription:
    entry = {"pseudo": "adapter0", "drives": [DRIVE], **changes}
    devices = {"sym": {"device": "lsi53c895a"}, "debug": {"device": "scsi_debug"}}
    return describe("vbench", {"sym": SYM, "debug": entry}, {"adapters": devices})


def problems(**changes: Any) -> list[str]:
    with pytest.raises(BadInputError) as raised:
        bench(**changes)
    return raised.value.problems


def argv(description: BenchDescription) -> list[str]:
    handed = {"scsi_debug": Path("/state/scsi_debug")} if description.debug else {}
    return machine_argv(description, replace(machine_in(), handed=handed), Acceleration("tcg", ""))


def test_the_module_gets_parameters_that_give_its_drive_the_declared_names_and_size() -> None:
    made = bench()
    assert made.debug is not None
    assert made.debug.parameters == "add_host=1 num_tgts=1 max_luns=1 vpd_use_hostno=0 dev_size_mb=64"
    assert from_plain(made.plain()) == made


def test_the_guest_sees_one_drive_more_than_qemu_has() -> None:
    made = bench()
    assert ([drive.identity for drive in made.drives], made.devices) == (["0x5000c50015ea0000"], 2)
    words = argv(made)
    assert "name=opt/storqual/scsi_debug,file=/state/scsi_debug" in words
    assert not [word for word in words if "33333330" in word or "debug-0" in word]
    with pytest.raises(BadInputError, match="vbench has no drive"):
        made.drive(DRIVE["wwn"])


def test_a_bench_without_it_is_handed_no_parameters() -> None:
    made = describe("vbench", {"sym": SYM}, {"adapters": {"sym": {"device": "lsi53c895a"}}})
    assert (made.debug, made.devices) == (None, 1)
    assert not [word for word in argv(made) if "scsi_debug" in word]
    former = {name: value for name, value in made.plain().items() if name != "debug"}
    assert from_plain(former) == made


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pseudo": "adapter1"}, "debug.pseudo: expected adapter0"),
        ({"pseudo": None, "pci": "0000:00:06.0"}, "debug.pseudo: expected adapter0"),
        ({"drives": []}, "expected one drive: all drives of scsi_debug would lie in the same memory"),
        ({"drives": [DRIVE, DRIVE]}, "expected one drive"),
        ({"drives": [{**DRIVE, "wwn": "0x5000c50015ea0001"}]}, "wwn: scsi_debug makes 0x33333330000007d0"),
        ({"drives": [{**DRIVE, "serial": "2001"}]}, "serial: scsi_debug makes 2000"),
        ({"drives": [{**DRIVE, "virtual": {"iops": 100}}]}, "virtual: scsi_debug has none"),
        ({"drives": [{**DRIVE, "paths": ["sym"]}]}, "paths: scsi_debug has none"),
        ({"drives": [{**DRIVE, "size": "1GiB"}]}, "expected whole MiB, 8 to 512 MiB"),
        ({"drives": [{**DRIVE, "size": 64 * 2**20 + 4096}]}, "expected whole MiB"),
        ({"drives": [{**DRIVE, "size": "large"}]}, "drives[0].size"),
    ],
)
def test_what_the_module_cannot_make_is_refused(changes: dict[str, Any], told: str) -> None:
    assert any(told in problem for problem in problems(**changes))


def test_a_bench_has_one_such_adapter() -> None:
    entry = {"pseudo": "adapter0", "drives": [DRIVE]}
    with pytest.raises(BadInputError, match="first is scsi_debug already, a bench has one"):
        describe(
            "vbench",
            {"first": entry, "second": entry},
            {"adapters": {name: {"device": "scsi_debug"} for name in ("first", "second")}},
        )


SHARED, OWN = "0x5000c5001f2d0000", "0x5000c5001f2d0010"
DEVICES = {"left": {"device": "mptsas1068"}, "right": {"device": "virtio-scsi-pci"}}


def adapters(**shared: Any) -> dict[str, Any]:
    drive = {"wwn": SHARED, "serial": "PTH1", "size": 2**20, "paths": ["right"], **shared}
    own = {"wwn": OWN, "serial": "PTH2", "size": 2**20}
    return {"left": {"pci": "0000:00:05.0", "drives": [drive]}, "right": {"pci": "0000:00:06.0", "drives": [own]}}


def bench_of_paths() -> BenchDescription:
    return describe("vbench", adapters(), {"adapters": DEVICES})


def test_a_drive_of_two_paths_is_one_file_and_a_device_on_each_adapter() -> None:
    argv = machine_argv(bench_of_paths(), machine_in(), TCG)
    files = [json.loads(value)["node-name"] for name, value in pairwise(argv) if name == "-blockdev"]
    assert [name for name in files if name.startswith(("left", "right"))] == ["left-0-file", "right-0-file"]
    told = [json.loads(value) for name, value in pairwise(argv) if name == "-device"]
    paths = {device["id"]: device for device in told if device["driver"] == "scsi-hd"}
    assert [paths[name]["drive"] for name in ("left-0", "right-0", "right-1")] == [
        "left-0-file",
        "right-0-file",
        "left-0-file",
    ]
    assert (paths["right-1"]["bus"], paths["right-1"]["scsi-id"]) == ("right.0", 1)
    for name in ("wwn", "serial", "share-rw"):
        assert paths["left-0"][name] == paths["right-1"][name]
    assert "share-rw" not in paths["right-0"]


def test_it_is_one_drive_that_the_guest_sees_twice() -> None:
    described = bench_of_paths()
    assert [drive.identity for drive in described.drives] == [SHARED, OWN]
    assert described.devices == 3
    assert described.drive(SHARED).device == "left-0"
    assert from_plain(json.loads(json.dumps(described.plain()))).devices == 3


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"paths": ["middle"]}, "[0].paths: expected other adapters of this bench with SCSI drives, found 'middle'"),
        ({"paths": ["left"]}, "[0].paths: expected other adapters of this bench with SCSI drives, found 'left'"),
        ({"paths": "right"}, "found 'right' in storqual_adapters.left.drives[0].paths, expected a list"),
        ({"paths": [{}]}, "found an empty mapping in storqual_adapters.left.drives[0].paths[0], expected text"),
        ({"virtual": {"iops": 200}}, "drives[0].paths: a drive of several paths has a WWN, and no `virtual`"),
        ({"wwn": None}, "drives[0].paths: a drive of several paths has a WWN, and no `virtual`"),
    ],
)
def test_paths_that_cannot_be_built_are_told(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadInputError) as raised:
        describe("vbench", adapters(**changes), {"adapters": DEVICES})
    assert any(problem in told for told in raised.value.problems), raised.value.problems


@pytest.mark.parametrize("alias", ["left", "right"])
def test_a_path_of_or_to_a_namespace_cannot_be_built(alias: str) -> None:
    devices = {**DEVICES, alias: {"device": "nvme"}}
    entries = adapters()
    entries["right"]["drives"] = []
    entries["left"]["drives"][0].update({"wwn": "eui.0011223344556677"} if alias == "left" else {})
    with pytest.raises(BadInputError, match=r"\.paths: expected other adapters"):
        describe("vbench", entries, {"adapters": devices})


def test_paths_count_for_the_room_of_an_adapter() -> None:
    entries = adapters()
    entries["right"]["drives"] = [
        {"wwn": f"0x5000c5001f2e{number:04x}", "serial": f"R{number}", "size": 2**20} for number in range(8)
    ]
    with pytest.raises(BadInputError, match=r"mptsas1068 has room for 8 drives, found 9"):
        describe("vbench", entries, {"adapters": {**DEVICES, "right": {"device": "mptsas1068"}}})


def test_a_path_is_pulled_and_put_back_and_the_other_stays() -> None:
    qemu: Any = FakeQemu()
    qemu.limits = {"left-0": (0, 0), "right-0": (0, 0), "right-1": (0, 0)}
    described = bench_of_paths()
    assert asyncio.run(unplug(qemu, described, SHARED, "right"))
    assert sorted(qemu.limits) == ["left-0", "right-0"]
    assert not asyncio.run(unplug(qemu, described, SHARED, "right"))
    assert SHARED in asyncio.run(read_limits(qemu, described))
    assert asyncio.run(plug(qemu, described, SHARED, Limit(), "right"))
    assert not asyncio.run(plug(qemu, described, SHARED, Limit(), "right"))
    assert asyncio.run(unplug(qemu, described, SHARED))
    assert sorted(qemu.limits) == ["right-0", "right-1"]
    with pytest.raises(BadInputError, match="left has no path to"):
        asyncio.run(unplug(qemu, replace(described, name="b"), OWN, "left"))
