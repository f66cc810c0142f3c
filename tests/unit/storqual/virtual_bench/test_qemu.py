# SPDX-License-Identifier: Apache-2.0
"""The command line of a bench says exactly what the inventory says, whatever characters are in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from storqual.virtual_bench.description import BenchDescription, describe
from storqual.virtual_bench.qemu import Acceleration, EmulatedMachine, device_arguments, machine_argv, option_value

PRINTABLE = st.characters(min_codepoint=0x20, max_codepoint=0x7E)
TCG = Acceleration("tcg", "told so")


def _machine(folder: str = "/state") -> EmulatedMachine:
    place = Path(folder)
    return EmulatedMachine(
        image_root=place / "root.ext4",
        boot_disc=place / "boot.iso",
        overlay=place / "system.qcow2",
        drives=place / "drives",
        console=place / "console.log",
        monitor=place / "monitor",
        pidfile=place / "pid",
        host_key=place / "host",
        authorized_keys=place / "client.pub",
        host_name=place / "hostname",
        debug_host=place / "scsi_debug",
    )


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
    disks = [device for device in _devices(machine_argv(bench, _machine(), TCG)) if device["driver"] == "scsi-hd"]
    assert len(disks) == 1
    told = {key: disks[0].get(key, "") for key in ("vendor", "product", "ver", "serial")}
    assert told == {"vendor": vendor, "product": model, "ver": revision, "serial": serial}


@given(folder=st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_any_folder_name_stays_one_value(folder: str) -> None:
    machine = _machine(f"/x/{folder}")
    argv = machine_argv(_bench(), machine, TCG)
    console = next(value for value in _values(argv, "-chardev") if "id=console" in value)
    assert console.split("path=", 1)[1].replace(",,", ",") == str(machine.console)
    assert {json.loads(node)["file"]["filename"] for node in _values(argv, "-blockdev")} >= {
        str(machine.image_root),
        str(machine.overlay),
        str(machine.boot_disc),
    }


@given(text=st.text())
def test_a_value_never_ends_an_option_early(text: str) -> None:
    assert not re.search(r"(?<!,)(?:,,)*,(?!,)", option_value(text))
    assert option_value(text).replace(",,", ",") == text


def test_the_bench_starts_stopped_and_listens_on_loopback_only() -> None:
    argv = machine_argv(_bench(), _machine(), TCG)
    assert "-S" in argv
    network = next(value for value in _values(argv, "-netdev"))
    assert "restrict=on" in network
    assert "hostfwd=tcp:127.0.0.1:0-" in network
    assert "-vnc" not in argv
    assert _values(argv, "-display") == ["none"]


def test_instructions_are_counted_where_the_bench_says_so() -> None:
    assert "-icount" not in machine_argv(_bench(), _machine(), TCG)
    counting = replace(_bench(), counts_instructions=True)
    assert _values(machine_argv(counting, _machine(), TCG), "-icount") == ["shift=2"]


def test_emulation_uses_one_thread_for_all_cpus() -> None:
    argv = machine_argv(_bench(), _machine(), TCG)
    assert "thread=single" in _values(argv, "-accel")[0]


def test_kvm_is_used_only_when_told() -> None:
    """Whether it works is found out elsewhere."""
    argv = machine_argv(_bench(), _machine(), Acceleration("kvm", "a guest booted"))
    assert _values(argv, "-accel") == ["kvm"]


def test_adapters_are_at_the_addresses_of_the_inventory() -> None:
    devices = {device.get("id"): device for device in _devices(machine_argv(_bench(), _machine(), TCG))}
    assert (devices["sym"]["addr"], devices["nvme"]["addr"]) == ("5.0", "a.0")


def test_the_wwn_is_a_number_and_the_root_disk_is_named_system() -> None:
    devices = {device.get("id"): device for device in _devices(machine_argv(_bench(), _machine(), TCG))}
    assert devices["sym-0"]["wwn"] == 0x5000C50015EA0000
    assert devices["system"]["serial"] == "system"


def test_a_plugged_drive_is_the_same_device_as_the_one_it_was_at_power_on() -> None:
    bench = _bench()
    adapter = next(adapter for adapter in bench.adapters if adapter.alias == "sym")
    assert device_arguments(adapter, adapter.drives[0]) in _devices(machine_argv(bench, _machine(), TCG))


def test_a_drive_with_a_service_time_takes_it_for_every_command_and_keeps_nothing() -> None:
    """The name of its node is that of any other drive's, so that it can be unplugged, plugged and limited."""
    nodes = [
        json.loads(node)
        for node in _values(machine_argv(_bench(virtual={"service_time": "4ms"}), _machine(), TCG), "-blockdev")
    ]
    (node,) = [node for node in nodes if node["node-name"] == "sym-0-file"]
    assert (node["driver"], node["vote-threshold"]) == ("quorum", 1)
    assert node["children"] == [{"driver": "null-co", "latency-ns": 4_000_000, "read-zeroes": True, "size": 2**20}]


def test_a_controller_without_a_drive_has_a_serial_all_the_same() -> None:
    devices = {device.get("id"): device for device in _devices(machine_argv(_bench(), _machine(), TCG))}
    assert devices["nvme"]["serial"] == "nvme"


def test_a_card_of_two_channels_is_two_functions_of_one_slot() -> None:
    drives = [{"wwn": f"0x5000c50015ea00{port}0", "size": "1MiB", "port": port} for port in (0, 1)]
    adapters = {"sym": {"pci": "0000:00:05.0", "drives": drives}}
    bench = describe("vbench", adapters, {"adapters": {"sym": {"device": "lsi53c895a", "channels": 2}}})
    devices = {device.get("id"): device for device in _devices(machine_argv(bench, _machine(), TCG))}
    assert (devices["sym"]["addr"], devices["sym"]["multifunction"]) == ("5.0", True)
    assert (devices["sym-c1"]["addr"], "multifunction" in devices["sym-c1"]) == ("5.1", False)
    assert [(devices[name]["bus"], devices[name]["scsi-id"]) for name in ("sym-0", "sym-1")] == [
        ("sym.0", 0),
        ("sym-c1.0", 0),
    ]
