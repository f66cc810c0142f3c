# SPDX-License-Identifier: Apache-2.0
"""Drives and adapters are read from sysfs alone: SCSI, NVMe with and without multipath, virtio."""

from pathlib import Path

import pytest

from storqual_core.host.counters import hexadecimal, read_error_counters, read_link
from storqual_core.host.sysfs import SysfsAdapter, SysfsDrive, pci_address, read_adapters, read_drives
from storqual_core.kit.machine import Machine
from tests.support.bench_tree import SIZE, BenchTree, vpd_page


def drive(tree: BenchTree, name: str) -> SysfsDrive:
    return next(drive for drive in read_drives(tree.machine) if drive.name == name)


def adapter(tree: BenchTree, pci: str) -> SysfsAdapter:
    return next(adapter for adapter in read_adapters(tree.machine) if adapter.identity.pci == pci)


def test_a_scsi_drive(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sda", hctl="2:0:4:0")
    tree.write("/sys/block/sda/device/vpd_pgb1", vpd_page(0xB1, (10000).to_bytes(2, "big") + bytes(58)))
    found = drive(tree, "sda")
    assert (found.identity.wwn, found.identity.serial) == ("0x5000c50000000001", "SER1")
    assert (found.identity.vendor, found.identity.model, found.identity.revision) == ("SEAGATE", "ST336607LW", "0007")
    assert (found.identity.size, found.identity.rotation) == (SIZE, 10000)
    assert (found.hctl, found.sg, found.adapter, found.host, found.state) == (
        *("2:0:4:0", "/dev/sg0", "0000:00:05.0", "host2", "running"),
    )
    assert found.id == "0x5000c50000000001"


def test_a_drive_without_a_wwn_is_named_by_its_serial_and_one_without_either_by_its_kernel_name(
    tmp_path: Path,
) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sda", wwn="").scsi("sdb", wwn="", serial="")
    assert drive(tree, "sda").id == "SER1"
    assert drive(tree, "sdb").id == "sdb"


def test_the_wwid_of_sysfs_serves_where_the_page_is_missing(tmp_path: Path) -> None:
    """Older kernels do not show the raw page."""
    tree = BenchTree(tmp_path).adapter().scsi("sda")
    (tmp_path / "sys/block/sda/device/vpd_pg83").unlink()
    assert drive(tree, "sda").id == "0x5000c50000000001"


def test_an_nvme_namespace(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter("0000:00:09.0", driver="nvme", pci_class="0x010802").nvme()
    found = drive(tree, "nvme0n1")
    assert (found.id, found.identity.serial, found.identity.model) == (
        "eui.0011223344556677",
        "NVME1",
        "QEMU NVMe Ctrl",
    )
    assert (found.transport, found.adapter, found.identity.vendor) == ("nvme", "0000:00:09.0", "")


def test_a_hidden_nvme_path_is_left_out(tmp_path: Path) -> None:
    """Its head stands for it; counted twice, its writes would be too."""
    tree = BenchTree(tmp_path).adapter().scsi("sda")
    tree.write("/sys/block/sda/hidden", "1\n")
    assert [drive.name for drive in read_drives(tree.machine)] == ["vda"]


def test_a_virtio_disk(tmp_path: Path) -> None:
    """It has a serial and nothing else."""
    found = drive(BenchTree(tmp_path), "vda")
    assert (found.transport, found.id, found.identity.model) == ("virtio", "root-disk", "virtio-blk")
    assert found.adapter == "0000:00:01.0"


def test_what_is_made_of_other_devices_is_no_drive(tmp_path: Path) -> None:
    tree = (
        BenchTree(tmp_path).adapter().scsi("sda").stacked("md0", ["sda"]).stacked("dm-0", ["md0"]).loop("loop0", "/x")
    )
    assert [drive.name for drive in read_drives(tree.machine)] == ["sda", "vda"]


def test_an_adapter_with_its_driver_link_and_hosts(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter(
        current_link_speed="8.0 GT/s PCIe",
        current_link_width="4",
        max_link_speed="16.0 GT/s PCIe",
        max_link_width="8",
    )
    tree.scsi("sda")
    host = "/sys/devices/pci0000:00/0000:00:05.0/host2/scsi_host/host2"
    for name, text in {"can_queue": "128", "version_fw": "01.33.00.00", "proc_name": "sym53c8xx"}.items():
        tree.write(f"{host}/{name}", text + "\n")
    tree.link("/sys/class/scsi_host/host2", host)
    for vector in ("31", "32"):
        tree.write(f"/sys/devices/pci0000:00/0000:00:05.0/msi_irqs/{vector}", "msix\n")
    found = adapter(tree, "0000:00:05.0")
    assert (found.identity.vendor, found.identity.device) == ("1000", "0012")
    assert (found.driver, found.module, found.module_version, found.srcversion) == (
        *("sym53c8xx", "sym53c8xx", "2.2.3", "ABCDEF0123456789"),
    )
    assert (found.link_speed, found.link_width, found.link_speed_max, found.link_width_max) == (
        "8.0 GT/s PCIe",
        4,
        "16.0 GT/s PCIe",
        8,
    )
    assert found.irqs == (31, 32)
    assert found.firmware == "01.33.00.00"
    assert found.hosts[0]["can_queue"] == 128


def test_what_lies_between_an_adapter_and_its_pci_root(tmp_path: Path) -> None:
    """A root port, both ports of a switch, and the adapter; the link to the device is what sysfs has."""
    tree = BenchTree(tmp_path).adapter()
    assert (adapter(tree, "0000:00:05.0").root, adapter(tree, "0000:00:05.0").bridges) == ("0000:00", ())
    place = "/sys/devices/pci0000:80"
    listed = []
    for pci, width in (("0000:80:01.0", 16), ("0000:81:00.0", 8), ("0000:82:08.0", None)):
        place = f"{place}/{pci}"
        if width:
            tree.write(f"{place}/current_link_speed", "8.0 GT/s PCIe\n")
            tree.write(f"{place}/current_link_width", f"{width}\n")
        tree.link(f"/sys/bus/pci/devices/{pci}", place)
        listed.append({"pci": pci, "speed": "8.0 GT/s PCIe" if width else "", "width": width})
    tree.write(f"{place}/0000:83:00.0/class", "0x010700\n")
    tree.link("/sys/bus/pci/devices/0000:83:00.0", f"{place}/0000:83:00.0")
    found = adapter(tree, "0000:83:00.0")
    assert (found.root, found.bridges) == ("0000:80", tuple(listed))


def test_the_boot_code_of_an_adapter_and_the_cd_roms_behind_it(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().adapter("0000:00:06.0", driver="mptsas").scsi("sda")
    place = "/sys/devices/pci0000:00/0000:00:05.0"
    tree.write(f"{place}/rom", "")
    tree.write(f"{place}/host2/scsi_host/host2/version_bios", "06.04.00\n")
    tree.link("/sys/class/scsi_host/host2", f"{place}/host2/scsi_host/host2")
    for name, kind in (("2:0:4:0", "5"), ("2:0:5:0", "0")):
        tree.write(f"{place}/host2/target{name[:-2]}/{name}/type", kind + "\n")
        tree.link(f"/sys/bus/scsi/devices/{name}", f"{place}/host2/target{name[:-2]}/{name}")
    found = adapter(tree, "0000:00:05.0")
    assert (found.rom, found.boot_code, found.cdroms) == (True, "06.04.00", 1)
    other = adapter(tree, "0000:00:06.0")
    assert (other.rom, other.boot_code, other.cdroms) == (False, "", 0)


def test_virtios_own_driver_is_the_adapters_driver(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter("0000:00:08.0", driver="virtio-pci")
    tree.write("/sys/module/virtio_scsi/srcversion", "FEED\n")
    tree.link("/sys/bus/virtio/drivers/virtio_scsi/module", "/sys/module/virtio_scsi")
    tree.link("/sys/devices/pci0000:00/0000:00:08.0/virtio3/driver", "/sys/bus/virtio/drivers/virtio_scsi")
    found = adapter(tree, "0000:00:08.0")
    assert (found.driver, found.srcversion) == ("virtio_scsi", "FEED")


def test_an_adapter_without_a_driver_is_still_there(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter()
    (tmp_path / "sys/devices/pci0000:00/0000:00:05.0/driver").unlink()
    assert adapter(tree, "0000:00:05.0").driver == ""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/sys/devices/pci0000:00/0000:00:05.0/host2/target2:0:0/2:0:0:0", "0000:00:05.0"),
        ("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/host7/rport-7:0-1", "0000:3b:00.1"),
        ("/sys/devices/pci10000:00/10000:00:02.0/nvme/nvme0", "10000:00:02.0"),
        ("/sys/devices/virtual/block/loop0", ""),
    ],
)
def test_the_last_pci_function_of_a_path_is_the_adapter(path: str, expected: str) -> None:
    assert pci_address(path) == expected


def test_a_host_of_scsi_debug_is_an_adapter_without_ids_and_has_its_drives(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().debug_host().scsi("sda", above="pseudo_0/adapter0", hctl="3:0:0:0")
    tree.link("/sys/class/scsi_host/host3", "/sys/devices/pseudo_0/adapter0/host3")
    first, debug = read_adapters(tree.machine)
    assert (first.identity.pci, first.hosts) == ("0000:00:05.0", ())
    assert (debug.identity.pci, debug.identity.vendor, debug.driver, debug.module) == (
        "pseudo/adapter0",
        "",
        "scsi_debug",
        "scsi_debug",
    )
    assert [host["host"] for host in debug.hosts] == ["host3"]
    assert drive(tree, "sda").adapter == "pseudo/adapter0"


def test_a_software_initiator_is_one_adapter_with_all_its_ports(tmp_path: Path) -> None:
    """FC over Ethernet below a network device, iSCSI below no device at all; a card's own host is not among them."""
    tree = BenchTree(tmp_path).adapter()
    for name, above, host, driver in (
        ("sda", "virtual/net/fc0/ctlr_1", "host9", "fcoe"),
        ("sdb", "virtual/net/fc1/ctlr_3", "host11", "fcoe"),
        ("sdc", "platform", "host6", "iscsi_tcp"),
        ("sdd", "pci0000:00/0000:00:05.0", "host2", "sym53c8xx"),
    ):
        tree.scsi(name, above=above, hctl=f"{host[4:]}:0:0:0", wwn="", serial=name)
        tree.write(f"/sys/devices/{above}/{host}/scsi_host/{host}/proc_name", driver + "\n")
        tree.link(f"/sys/class/scsi_host/{host}", f"/sys/devices/{above}/{host}/scsi_host/{host}")
    assert [drive(tree, name).adapter for name in ("sda", "sdb", "sdc", "sdd")] == [
        *("pseudo/fcoe", "pseudo/fcoe", "pseudo/iscsi_tcp", "0000:00:05.0")
    ]
    found = {one.identity.pci: (one.driver, one.module) for one in read_adapters(tree.machine)}
    assert found["pseudo/fcoe"] == ("fcoe", "fcoe")
    assert set(found) == {"0000:00:05.0", "pseudo/fcoe", "pseudo/iscsi_tcp"}
    assert [host["host"] for host in adapter(tree, "pseudo/fcoe").hosts] == ["host11", "host9"]


def test_a_namespace_behind_a_fabric_is_on_the_initiator_of_its_transport(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).nvme()
    tree.link("/sys/block/nvme1n1", "/sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1")
    subsystem, controller = (
        "/sys/devices/virtual/nvme-subsystem/nvme-subsys1",
        "/sys/devices/virtual/nvme-fabrics/ctl/nvme1",
    )
    tree.write(f"{controller}/transport", "tcp\n")
    tree.write(f"{subsystem}/nvme1n1/size", "2048\n")
    tree.link(f"{subsystem}/nvme1n1/device", subsystem)
    tree.link(f"{subsystem}/nvme1", controller)
    tree.link("/sys/class/nvme/nvme1", controller)
    tree.link("/sys/class/nvme-fabrics/ctl", "/sys/devices/virtual/nvme-fabrics/ctl")
    assert drive(tree, "nvme1n1").adapter == "pseudo/nvme_tcp"
    assert drive(tree, "nvme0n1").adapter == "0000:00:09.0"
    assert "pseudo/nvme_tcp" in [one.identity.pci for one in read_adapters(tree.machine)]


HOST = "/sys/devices/pci0000:00/0000:00:06.0/host2"


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench on which the test puts drives."""
    return BenchTree(tmp_path)


def linked_drive(tree: BenchTree, name: str, ports: str, phys: dict[str, dict[str, str]]) -> Machine:
    """A disk behind these ports (`port-2:3`), whose last has these phys with their attributes."""
    place = f"{HOST}/{ports}"
    for phy, attributes in phys.items():
        for attribute, text in attributes.items():
            tree.write(f"{place}/{phy}/sas_phy/{phy}/{attribute}", f"{text}\n")
    tree.disk(name, f"{place}/end_device-2:3/target2:0:3/2:0:3:0")
    return tree.machine


def test_a_drive_of_a_sas_port_has_its_port_rate_and_width(tree: BenchTree) -> None:
    phy = {"negotiated_linkrate": "3.0 Gbit", "maximum_linkrate": "6.0 Gbit"}
    machine = linked_drive(tree, "sda", "port-2:3", {"phy-2:3": phy})
    assert read_link(machine, "sda") == {"port": 3, "rate": "3.0 Gbit", "rate_max": "6.0 Gbit", "width": 1}


def test_behind_an_expander_the_port_is_the_adapters_and_the_rate_the_expanders(tree: BenchTree) -> None:
    machine = linked_drive(
        tree, "sda", "port-2:0/expander-2:0/port-2:0:7", {"phy-2:0:7": {"negotiated_linkrate": "1.5 Gbit"}}
    )
    assert (read_link(machine, "sda")["port"], read_link(machine, "sda")["rate"]) == (0, "1.5 Gbit")


def test_a_wide_port_shows_every_rate_that_its_phys_have(tree: BenchTree) -> None:
    phys = {f"phy-2:{number}": {"negotiated_linkrate": f"{rate} Gbit"} for number, rate in enumerate("6633")}
    link = read_link(linked_drive(tree, "sda", "port-2:0", phys), "sda")
    assert (link["rate"], link["width"]) == ("3 Gbit, 6 Gbit", 4)


def test_without_the_sas_transport_nothing_is_known(tree: BenchTree) -> None:
    tree.disk("sda", f"{HOST}/target2:0:3/2:0:3:0")
    for name in ("sda", "sdz"):
        assert read_link(tree.machine, name) == {"port": None, "rate": "", "rate_max": "", "width": None}
        assert read_error_counters(tree.machine, name) == {}


def test_error_counters_of_the_drive_and_of_all_its_phys(tree: BenchTree) -> None:
    phys = {f"phy-2:{number}": {"invalid_dword_count": "7", "phy_reset_problem_count": "?"} for number in range(2)}
    machine = linked_drive(tree, "sda", "port-2:0", phys)
    tree.write(f"{HOST}/port-2:0/end_device-2:3/target2:0:3/2:0:3:0/ioerr_cnt", "0x1f\n")
    assert read_error_counters(machine, "sda") == {"ioerr_cnt": 31, "invalid_dword_count": 14}


@pytest.mark.parametrize(("text", "value"), [("0x1f", 31), ("12", 12), ("", None), ("0xzz", None)])
def test_counters_are_read_as_the_kernel_writes_them(text: str, value: int | None) -> None:
    """Hexadecimal with its sign; anything else is no number."""
    assert hexadecimal(text) == value
