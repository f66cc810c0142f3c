# SPDX-License-Identifier: Apache-2.0
"""Fabrics of a virtual bench: each LUN over a disk that QEMU limits, and the commands that serve it."""

import json
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from storqual.virtual_bench.description import BenchDescription, describe, from_plain
from storqual.virtual_bench.fabric_setup import setup
from storqual.virtual_bench.fabrics import served_wwn
from storqual.virtual_bench.limits import wanted_limits
from storqual.virtual_bench.qemu import Acceleration, machine_argv
from storqual_core.kit.errors import BadInputError
from tests.support.fake_qemu import emulated_machine

WWN = "0x6001405fca0000001000000000000000"


TARGETS = ("0x2000020000000002", "0x2000020000000102")
ROUTES = [{"initiator": f"0x200002000000{port}01", "target": target} for port in ("00", "01") for target in TARGETS]
FOUR: dict[str, Any] = {"port": ROUTES[0], "paths": ROUTES[1:]}


def lun(number: int, port: object, **changes: Any) -> dict[str, Any]:
    serial = f"FCA000000{number}"
    plain = {"wwn": served_wwn(serial), "serial": serial, "model": "FCLUN", "size": "1GiB", "port": port}
    return {**plain, "virtual": {"iops": 150}, **changes}


def bench(*drives: dict[str, Any], device: str = "fc", pseudo: str = "fcoe", **virtual: Any) -> BenchDescription:
    adapters = {"fc": {"pseudo": pseudo, "drives": list(drives)}, "sym": {"pci": "0000:00:1f.0", "drives": []}}
    devices = {"fc": {"device": device, "channels": 2, **virtual}, "sym": {"device": "lsi53c895a"}}
    return describe("vfabric", adapters, {"adapters": devices})


def problems(*drives: dict[str, Any], **words: Any) -> str:
    with pytest.raises(BadInputError) as raised:
        bench(*drives, **words)
    return "\n".join(raised.value.problems)


def arguments(description: BenchDescription, option: str = "-device") -> list[dict[str, Any]]:
    argv = machine_argv(description, emulated_machine(network=Path("/run/vfc")), Acceleration("tcg", ""))
    return [json.loads(value) for name, value in pairwise(argv) if name == option and value.startswith("{")]


def test_a_lun_rests_on_a_disk_that_does_not_have_its_names() -> None:
    """The guest sees both: with the same serial they would be taken for two paths of one drive."""
    made = bench(lun(1, 0), lun(2, 1))
    disks = [device for device in arguments(made) if device["driver"] == "scsi-hd"]
    assert [disk["serial"] for disk in disks] == ["fc-0", "fc-1"]
    assert not [disk for disk in disks if "wwn" in disk or "FCA" in json.dumps(disk)]
    assert made.devices == 4
    assert from_plain(made.plain()) == made


def test_disks_of_a_port_have_a_controller_of_their_own_in_a_slot_that_no_adapter_has() -> None:
    controllers = [
        device for device in arguments(bench(lun(1, 0), lun(2, 1))) if device["driver"] == "virtio-scsi-pci"
    ]
    assert [controller["addr"] for controller in controllers] == ["1e.0", "1e.1"]


def test_a_lun_is_limited_by_its_own_name() -> None:
    """A port that is five percent slower is its LUNs that are."""
    limits = wanted_limits(bench(lun(1, 0), lun(2, 1)), {WWN: 142}, {})
    assert {name: limit.iops for name, limit in limits.items()} == {WWN: 142, served_wwn("FCA0000002"): 150}


def test_all_luns_are_served_before_a_port_is_made() -> None:
    """An initiator that logs in to a port without LUNs is never told of them."""
    script = setup(bench(lun(1, 0), lun(2, 1), lun(3, 0, model="A 'quoted' $(x)")))
    lines = [shlex.split(line) for line in script.splitlines() if line.startswith(("fc_drive ", "fc_port "))]
    assert [line[:2] for line in lines] == [
        *(["fc_drive", "0:0"], ["fc_drive", "1:1"], ["fc_drive", "0:0"], ["fc_port", "0"], ["fc_port", "1"])
    ]
    assert lines[0][2:6] == ["fc-0", "0000:00:1e.0", "0", "FCA0000001"]
    assert lines[2][7] == "A 'quoted' $(x)"
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert script.splitlines()[-1] == "end"


def test_a_lun_of_four_paths_rests_on_one_disk_and_is_served_by_every_port() -> None:
    made = bench(lun(1, **FOUR), lun(2, 1))
    assert made.devices == 2 + 4 + 1
    assert [drive.routes for drive in made.drives] == ["0:0 0:1 1:0 1:1", "1:1"]
    assert from_plain(json.loads(json.dumps(made.plain()))).drives == made.drives
    lines = [shlex.split(line) for line in setup(made).splitlines() if line.startswith(("fc_", "mesh"))]
    assert [line[:2] for line in lines if line[0].endswith("_drive")] == [
        ["fc_drive", "0:0 0:1 1:0 1:1"],
        ["fc_drive", "1:1"],
    ]
    assert lines[-3:] == [["mesh=yes"], ["fc_port", "0"], ["fc_port", "1"]]
    assert "mesh=yes" not in setup(bench(lun(1, 0), lun(2, 1)))


def test_networks_of_two_ports_are_apart_but_for_fc() -> None:
    portals = [{"initiator": "iqn.2026-11.storqual:initiator", "target": f"10.53.{port}.2:3260"} for port in (0, 1)]
    made = bench(lun(1, portals[0], paths=portals[1:]), device="iscsi", pseudo="iscsi_tcp")
    assert [drive.routes for drive in made.drives] == ["0:0 1:1"]
    assert "mesh=yes" not in setup(made)


def test_a_bench_without_fabrics_is_handed_no_commands() -> None:
    adapters = {"sym": {"pci": "0000:00:05.0", "drives": []}}
    assert not setup(describe("vbench", adapters, {"adapters": {"sym": {"device": "lsi53c895a"}}}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"wwn": "0x6001405fca0000002000000000000000"}, f"drives[0].wwn: a target makes {WWN} of the serial"),
        ({"model": None}, "drives[0].model: is missing"),
        ({"paths": ["sym"]}, "drives[0].paths: expected `port` and `paths` between ports of this bench"),
        ({**FOUR, "port": ROUTES[1] | {"target": TARGETS[0][:-1] + "9"}}, "drives[0].paths: expected `port` and"),
        ({"virtual": {"service_time": "4ms"}}, "drives[0].virtual: a drive of a fabric takes"),
        ({"port": 2}, "drives[0].port: expected 0 to 1, found 2"),
    ],
)
def test_what_a_target_cannot_make_is_refused(changes: dict[str, Any], words: str) -> None:
    assert words in problems({**lun(1, 0), **changes})


def test_a_namespace_is_known_by_the_uuid_that_its_target_is_given() -> None:
    uuid = "uuid.cbee35b7-fb92-5256-855f-6856218310e4"
    made = bench(lun(1, 0, wwn=uuid), device="nvme_tcp", pseudo="nvme_tcp")
    assert f"FCLUN 0001 {uuid}" in setup(made)
    assert "expected uuid. and a UUID" in problems(lun(1, 0), device="nvme_tcp", pseudo="nvme_tcp")


def test_a_fabric_has_no_card_and_a_bench_has_one_of_each() -> None:
    assert "expected `pseudo: fcoe` and no `pci`" in problems(lun(1, 0), pseudo="iscsi_tcp")
    adapters = {name: {"pseudo": "fcoe", "drives": [lun(number, 0)]} for number, name in enumerate(("a", "b"), 1)}
    with pytest.raises(BadInputError, match="a is fc already, a bench has one"):
        describe("vfabric", adapters, {"adapters": {name: {"device": "fc"} for name in adapters}})


def apart(*drives: dict[str, Any]) -> tuple[BenchDescription, BenchDescription]:
    """A bench whose targets are in a guest of their own, and that guest."""
    made = bench(*(drives or (lun(1, 0), lun(2, 1))), targets="apart")
    assert made.targets is not None
    return made, made.targets


def test_targets_that_are_apart_have_the_disks_and_their_initiator_the_luns() -> None:
    made, targets = apart()
    assert [drive.device for drive in targets.drives] == ["fc-0", "fc-1"]
    assert (made.drives, made.devices, targets.devices, targets.targets) == ((), 2, 2, None)
    assert wanted_limits(made.whole, {WWN: 142}, {})[WWN].iops == 142
    assert from_plain(json.loads(json.dumps(made.plain()))) == made
    disks = [[each["id"] for each in arguments(guest) if each["driver"] == "scsi-hd"] for guest in (made, targets)]
    assert disks == [[], ["fc-0", "fc-1"]]
    assert bench(lun(1, 0)).targets is None


def test_each_port_has_a_network_of_its_own_to_the_guest_with_its_target() -> None:
    initiator, target = (
        {each["id"]: each for each in arguments(guest, "-netdev") if each.get("type") == "dgram"} for guest in apart()
    )
    assert initiator.keys() == target.keys() == {"fc", "fc-c1"}
    assert all(
        (end["local"], end["remote"]) == (target[name]["remote"], target[name]["local"])
        for name, end in initiator.items()
    )
    assert len({end["local"]["path"] for ends in (initiator, target) for end in ends.values()}) == 4
    cards = [{each["mac"] for each in arguments(guest) if "mac" in each} for guest in apart()]
    assert cards == [{f"02:00:00:00:0{port}:0{end}" for port in (0, 1)} for end in (1, 2)]
    addresses = [each["addr"] for each in arguments(apart()[1]) if "addr" in each]
    assert len(set(addresses)) == len(addresses)


def test_what_a_target_serves_is_complete_before_its_port_and_its_initiator_serves_nothing() -> None:
    made, targets = (
        [
            line.split()[0:2]
            for line in setup(guest).splitlines()
            if line.startswith(("apart ", "fc_drive ", "fc_port "))
        ]
        for guest in apart()
    )
    ports = [["fc_port", "0"], ["fc_port", "1"]]
    assert made == [["apart", "initiator"], *ports]
    assert targets == [["apart", "target"], ["fc_drive", "0:0"], ["fc_drive", "1:1"], *ports]
    ends = [setup(guest).splitlines()[-1] for guest in apart()]
    assert ends == ["end", "restart_when_hung"]


def test_what_cannot_be_apart_is_refused() -> None:
    portal = {"device": "iscsi", "pseudo": "iscsi_tcp"}
    assert "adapters.fc.targets: only targets of fc can be apart" in problems(lun(1, 0), targets="apart", **portal)
    assert "expected at most 6 ports" in problems(lun(1, 0), targets="apart", channels=8)
    assert "drives[0].paths: each port" in problems(lun(1, **FOUR), targets="apart")
    assert "found 'elsewhere' in storqual_virtual.adapters.fc.targets" in problems(lun(1, 0), targets="elsewhere")
