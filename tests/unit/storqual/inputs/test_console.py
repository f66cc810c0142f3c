# SPDX-License-Identifier: Apache-2.0
"""`storqual_console`: exactly one way to the console of a bench; its password is written nowhere."""

from pathlib import Path
from typing import Any

import pytest

from storqual.inputs import inventory_from_hostvars, load_inventory
from storqual_core.kit.errors import BadInputError
from tests.unit.storqual.inputs.test_inventory import bench, problems

SOL = {"host": "bmc07.lab", "user": "storqual", "password": "canary-7Qx"}
NET = {"listen": "192.0.2.10", "sender": "192.0.2.57"}


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ({"ipmi_sol": SOL}, "bmc07.lab"),
        ({"telnet": "console1.lab:7001"}, "console1.lab:7001"),
        ({"telnet": "[fd00::1]:7001"}, "[fd00::1]:7001"),
        ({"ssh": {"host": "port7@console1.lab"}}, "port7@console1.lab"),
        ({"conserver": {"server": "console1.lab", "name": "bench07"}}, "bench07"),
        ({"labgrid": {"place": "bench07"}}, "bench07"),
        ({"netconsole": NET}, "192.0.2.10"),
        ({"telnet": "console1.lab:7001", "netconsole": NET}, "7001 and netconsole to 192.0.2.10, port 6666"),
    ],
)
def test_each_way_is_read(way: dict[str, Any], words: str) -> None:
    read = inventory_from_hostvars({"b1": bench(console=way)}).benches["b1"].console_way
    assert read is not None
    assert read.name == next(iter(way))
    assert words in read.words


@pytest.mark.parametrize(
    "way",
    [
        {},
        {"telnet": "console1.lab"},
        {"telnet": "console1.lab:0"},
        {"telnet": "console1.lab:70000"},
        {"telnet": "-oProxyCommand=x:22"},
        {"telnet": None},
        {"telnet": "a:1", "labgrid": {"place": "b"}},
        {"ssh": {"host": "-oProxyCommand=x"}},
        {"conserver": {"server": "-x", "name": "b"}},
        {"conserver": {"server": "x", "name": "-b"}},
        {"labgrid": {"place": "-p"}},
        {"ipmi_sol": {"host": "bmc", "user": "-U"}},
        {"serial": "/dev/ttyS0"},
        {"netconsole": {"listen": "192.0.2.10"}},
        {"netconsole": {**NET, "sender": "bench07.lab"}},
        {"netconsole": {**NET, "port": 0}},
        {"telnet": "a:1", "ssh": {"host": "b"}, "netconsole": NET},
        {"virtual": True, "netconsole": NET},
        {"virtual": True},
        {"virtual": False},
    ],
)
def test_what_is_no_way_is_refused_at_its_line(way: dict[str, Any]) -> None:
    assert "inventory, host b1:1: " in problems(b1=bench(console=way))


@pytest.mark.parametrize("password", ["{{ vault_bmc }}", {"__ansible_vault": "$ANSIBLE_VAULT;1.1;AES256\n6231\n"}])
def test_a_password_may_be_a_variable_of_a_vault_or_stand_there_encrypted(password: object) -> None:
    """As `ansible-inventory --list` shows it; only a playbook can fill it."""
    way = {"ipmi_sol": {"host": "bmc", "user": "storqual", "password": password}}
    read = inventory_from_hostvars({"b1": bench(console=way)}).benches["b1"].console_way
    assert read is not None
    assert read.ipmi_sol is not None
    assert read.ipmi_sol.password is not None


def test_all_mistakes_are_told_at_once_with_file_and_line(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yml"
    hosts.write_text(
        "benches:\n  hosts:\n    b1:\n      storqual_kind: hardware\n      storqual_adapters: {a: {model: m}}\n"
        "      storqual_console:\n        ipmi_sol:\n          host: bmc\n          user: storqual\n"
        "          port: 0\n          ciphre: 3\n"
    )
    with pytest.raises(BadInputError) as caught:
        load_inventory([hosts])
    assert [line.split(": ")[0] for line in caught.value.problems] == [f"{hosts}:10", f"{hosts}:11"]


def test_a_virtual_bench_has_a_console_without_the_key_and_another_bench_has_none() -> None:
    benches = inventory_from_hostvars({"b1": bench(), **_virtual()}).benches
    assert benches["b1"].console_way is None
    assert benches["v1"].console_way is not None
    assert benches["v1"].console_way.virtual


def _virtual() -> dict[str, Any]:
    host = bench(kind="virtual", adapters={"sym": {"model": "x", "pci": "05:00.0"}})
    return {"v1": host}


def test_a_virtual_bench_takes_no_other_console() -> None:
    host = _virtual()["v1"] | {"storqual_console": {"telnet": "a:1"}}
    assert "not virtual, and this bench is virtual" in problems(v1=host)


def test_a_password_is_in_no_dump_and_no_message() -> None:
    described = inventory_from_hostvars({"b1": bench(console={"ipmi_sol": SOL})}).benches["b1"]
    assert described.console is not None
    assert described.console.ipmi_sol is not None
    password = described.console.ipmi_sol.password
    assert password is not None
    assert password.get_secret_value() == SOL["password"]
    assert SOL["password"] not in described.model_dump_json() + repr(described) + str(described.model_dump())
    for wrong in (7133742, "two\nlines-7133742", ["7133742"]):
        assert "7133742" not in problems(b1=bench(console={"ipmi_sol": {**SOL, "password": wrong}}))
