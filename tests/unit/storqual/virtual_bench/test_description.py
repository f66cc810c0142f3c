# SPDX-License-Identifier: Apache-2.0
"""A virtual bench is described completely, or every problem of its inventory entry is told at once."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from storqual.virtual_bench.description import describe, from_plain
from storqual.virtual_bench.qemu import device_arguments
from storqual_core.kit.errors import BadInputError


def _drive(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "wwn": f"0x5000c50015ea{number:04x}",
        "serial": f"SYM{number:07d}",
        "vendor": "SEAGATE",
        "model": "ST336607LW",
        "revision": "0007",
        "size": "1GiB",
        "rotation_rate": 10000,
        "virtual": {"iops": 200, "bandwidth": "12MiB"},
        **changes,
    }


def _bench(*drives: dict[str, Any], pci: str = "0000:00:05.0", device: str = "lsi53c895a") -> tuple[Any, Any]:
    return {"sym": {"pci": pci, "drives": list(drives)}}, {"adapters": {"sym": {"device": device}}}


def _problems(adapters: Any, virtual: Any) -> list[str]:
    with pytest.raises(BadInputError) as raised:
        describe("vbench", adapters, virtual)
    return raised.value.problems


def test_sizes_and_limits_become_numbers() -> None:
    bench = describe("vbench", *_bench(_drive(1)))
    drive = bench.drives[0]
    assert (drive.size, drive.iops, drive.bandwidth) == (2**30, 200, 12 * 2**20)
    assert (drive.identity, drive.device) == ("0x5000c50015ea0001", "sym-0")


def test_a_service_time_is_in_seconds_and_one_that_no_command_takes_is_refused() -> None:
    """A slip of the unit would leave a bench that never answers."""
    assert describe("vbench", *_bench(_drive(1, virtual={"service_time": "4ms"}))).drives[0].service_time == 0.004
    for wrong in ("4 furlongs", "1m", -1, True, float("nan")):
        (problem,) = _problems(*_bench(_drive(1, virtual={"service_time": wrong})))
        assert "storqual_adapters.sym.drives[0].virtual.service_time" in problem


def test_a_drive_without_a_wwn_is_known_by_its_serial_in_lower_case() -> None:
    assert describe("vbench", *_bench(_drive(1, wwn=None))).drives[0].identity == "sym0000001"


def test_a_drive_is_found_by_wwn_and_by_serial_whatever_the_case() -> None:
    bench = describe("vbench", *_bench(_drive(1)))
    assert bench.drive("0x5000C50015EA0001") == bench.drive("sym0000001") == bench.drives[0]


def test_a_drive_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInputError, match="0x5000c50015eaffff"):
        describe("vbench", *_bench(_drive(1))).drive("0x5000c50015eaffff")


def test_the_order_of_adapters_in_the_inventory_means_nothing() -> None:
    adapters = {"a": {"pci": "0000:00:06.0", "drives": []}, "b": {"pci": "0000:00:05.0", "drives": []}}
    virtual = {"adapters": {"a": {"device": "mptsas1068"}, "b": {"device": "lsi53c895a"}}}
    turned = {"b": adapters["b"], "a": adapters["a"]}
    assert describe("vbench", adapters, virtual) == describe("vbench", turned, virtual)


def test_a_description_survives_json() -> None:
    bench = describe("vbench", *_bench(_drive(1), _drive(2)))
    assert from_plain(bench.plain()) == bench


def test_every_problem_is_told_at_once() -> None:
    unread = _problems(*_bench(_drive(1, size="1 furlong"), _drive(4, virtual={"iops": -1, "speed": 3})))
    unbuilt = _problems(
        *_bench(
            _drive(2, wwn="eui.0011223344556601"),
            _drive(3, model="a model name that is too long for INQUIRY"),
            _drive(5, serial="SYM0000006"),
            _drive(6),
        )
    )
    for part in ("furlong", "iops", "speed"):
        assert any(part in problem for problem in unread), part
    for part in ("16 hex digits", "too long for INQUIRY", "SYM0000006 is used 2"):
        assert any(part in problem for problem in unbuilt), part


def test_time_is_the_hosts_unless_the_bench_counts_instructions() -> None:
    adapters, virtual = _bench(_drive(1))
    assert not describe("vbench", adapters, virtual).counts_instructions
    assert not describe("vbench", adapters, {**virtual, "clock": "host"}).counts_instructions
    counting = describe("vbench", adapters, {**virtual, "clock": "instructions"})
    assert counting.counts_instructions
    assert from_plain(counting.plain()) == counting


def test_a_bench_of_a_former_version_has_what_it_was_started_with() -> None:
    adapters, virtual = _bench(_drive(1))
    plain = describe("vbench", adapters, virtual).plain()
    del plain["counts_instructions"], plain["netconsole"]
    assert from_plain(plain) == describe("vbench", adapters, virtual)
    assert describe("vbench", adapters, {**virtual, "netconsole": True}).netconsole


@pytest.mark.parametrize(
    ("changes", "words"), [({"clock": "tsc"}, "found 'tsc'"), ({"clock": "instructions", "cpus": 2}, "one processor")]
)
def test_a_clock_that_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    adapters, virtual = _bench(_drive(1))
    assert any(words in problem for problem in _problems(adapters, {**virtual, **changes}))


@pytest.mark.parametrize("size", [0, -4096, 1000, "511"])
def test_a_size_that_is_no_whole_number_of_blocks_is_refused(size: object) -> None:
    assert any(".size" in problem for problem in _problems(*_bench(_drive(1, size=size))))


def test_more_drives_than_the_emulated_bus_has_ids_are_refused() -> None:
    """QEMU itself would say it later and less clearly."""
    problems = _problems(*_bench(*(_drive(number) for number in range(8))))
    assert any("room for 7 drives, found 8" in problem for problem in problems)


@pytest.mark.parametrize("pci", ["", "0000:00:02.0", "0000:01:05.0", "5", "0000:00:25.0"])
def test_a_slot_that_is_taken_or_absent_is_refused(pci: str) -> None:
    """Slots up to 4 belong to the machine, its root disk and its network."""
    assert any(".pci" in problem for problem in _problems(*_bench(_drive(1), pci=pci)))


def test_a_device_that_is_not_emulated_is_refused_with_those_that_are() -> None:
    """There is no mpt3sas card in QEMU, and the message says what there is."""
    assert any("megasas-gen2" in problem for problem in _problems(*_bench(device="mpt3sas")))


def test_an_adapter_needs_both_its_hardware_and_its_device() -> None:
    adapters, virtual = _bench(_drive(1))
    assert _problems(adapters, {"adapters": {}})
    assert _problems({}, virtual)


def test_two_drives_with_one_wwn_are_refused() -> None:
    assert any("WWN" in problem for problem in _problems(*_bench(_drive(1), _drive(1, serial="X"))))


def test_a_host_name_that_could_be_an_option_is_refused() -> None:
    adapters, virtual = _bench(_drive(1))
    with pytest.raises(BadInputError):
        describe("-oProxyCommand=x", adapters, virtual)


def _channels(
    *ports: int, channels: int = 2, pci: str = "0000:00:05.0", device: str = "lsi53c895a"
) -> tuple[Any, Any]:
    adapters, virtual = _bench(
        *(_drive(number, port=port) for number, port in enumerate(ports)), pci=pci, device=device
    )
    virtual["adapters"]["sym"]["channels"] = channels
    return adapters, virtual


def test_drives_hang_on_the_channel_of_their_port() -> None:
    bench = describe("vbench", *_channels(0, 1, 1, 0))
    assert [(drive.channel, drive.target) for drive in bench.drives] == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert bench.adapters[0].channels == 2


def test_with_one_channel_ports_are_names_only() -> None:
    adapters, virtual = _bench(_drive(1, port=3), _drive(2, port=5))
    assert [(drive.channel, drive.target) for drive in describe("vbench", adapters, virtual).drives] == [
        (0, 0),
        (0, 1),
    ]


def test_each_channel_has_room_for_itself() -> None:
    assert len(describe("vbench", *_channels(*([0] * 7 + [1] * 7))).drives) == 14
    assert "room for 7 drives on channel 0, found 8" in _problems(*_channels(*([0] * 8)))[0]


def test_a_port_without_a_channel_is_told() -> None:
    """Nothing is wired somewhere else."""
    assert "port: expected 0 to 1, found 2" in _problems(*_channels(0, 2))[0]


def test_a_namespace_has_no_channels() -> None:
    """Only SCSI adapters at function 0 have more than one."""
    assert "has one channel" in _problems(*_channels(device="nvme"))[0]
    assert "has one channel" in _problems(*_channels(0, pci="0000:00:05.1"))[0]


def test_a_channel_takes_the_next_function_of_the_slot() -> None:
    adapters, virtual = _channels(0, 1)
    adapters["other"] = {"pci": "0000:00:05.1", "drives": []}
    virtual["adapters"]["other"] = {"device": "lsi53c895a"}
    assert "05.1 is used 2 times" in " ".join(_problems(adapters, virtual))


def test_the_bench_for_the_cost_of_a_driver_counts_instructions() -> None:
    inventory = Path(__file__).resolve().parents[4] / "inventories" / "virtual_rate" / "hosts.yml"
    entry = yaml.safe_load(inventory.read_text(encoding="utf-8"))["benches"]["hosts"]["vrate"]
    assert describe("vrate", entry["storqual_adapters"], entry["storqual_virtual"]).counts_instructions


def _namespaces(*drives: dict[str, Any]) -> tuple[Any, Any]:
    entries = [{"serial": "N1", "size": 2**20, **drive} for drive in drives]
    return {"nvme": {"pci": "0000:00:0a.0", "drives": entries}}, {"adapters": {"nvme": {"device": "nvme"}}}


def test_namespaces_of_one_controller_share_its_serial_and_differ_by_wwn() -> None:
    one, other = {"wwn": "eui.0011223344556601"}, {"wwn": "eui.0011223344556602"}
    bench = describe("vbench", *_namespaces(one, other))
    assert [drive.identity for drive in bench.drives] == [one["wwn"], other["wwn"]]
    (adapter,) = bench.adapters
    made = [device_arguments(adapter, drive) for drive in adapter.drives]
    assert [(each["driver"], each["bus"], each["nsid"]) for each in made] == [
        ("nvme-ns", "nvme", 1),
        ("nvme-ns", "nvme", 2),
    ]
    assert "one serial" in _problems(*_namespaces(one, {**other, "serial": "N2"}))[0]
    assert "needs a WWN" in _problems(*_namespaces(one, {}))[0]
    assert "used 2 times" in _problems(*_namespaces(one, one))[0]


def test_a_write_through_the_cache_is_refused_where_the_emulation_fails_it() -> None:
    through = _drive(1, virtual={"fua": True})
    assert describe("vbench", *_bench(through)).drives[0].fua
    (problem,) = _problems(*_bench(through, device="megasas-gen2"))
    assert "storqual_adapters.sym.drives[0].virtual.fua" in problem
