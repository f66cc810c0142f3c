# SPDX-License-Identifier: Apache-2.0
"""Fabrics in a synthetic bench: FC ports and LUNs, iSCSI sessions, NVMe over fabrics, as sysfs has them."""

from __future__ import annotations

from pathlib import Path

from tests.support.bench_tree import SIZE, BenchTree

INITIATOR, TARGET = "0x2100000e1e000001", "0x5006016000000001"
LUN = "0x60060160a1b2c3d4e5f60718293a4b5c"


class FabricTree(BenchTree):
    """A bench whose drives are reached through fabrics. Every method adds one thing."""

    def text_files(self, place: str, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            self.write(f"{place}/{name}", text + "\n")

    def scsi_host(self, number: int, above: str, proc_name: str) -> str:
        """A SCSI host below a place in the device tree; where it is."""
        place = f"/sys/devices/{above}/host{number}"
        self.write(f"{place}/scsi_host/host{number}/proc_name", proc_name + "\n")
        self.link(f"/sys/class/scsi_host/host{number}", f"{place}/scsi_host/host{number}")
        return place

    def fc_port(
        self,
        number: int = 2,
        *,
        wwpn: str = INITIATOR,
        above: str = "pci0000:00/0000:00:05.0",
        driver: str = "qla2xxx",
        state: str = "Online",
        speed: str = "16 Gbit",
        **statistics: str,
    ) -> FabricTree:
        place = self.scsi_host(number, above, driver)
        self.text_files(
            f"{place}/fc_host/host{number}",
            {
                "port_name": wwpn,
                "node_name": wwpn.replace("0x21", "0x20"),
                "port_id": "0x010200",
                "port_type": "NPort (fabric via point-to-point)",
                "port_state": state,
                "speed": speed,
                "supported_speeds": "4 Gbit, 8 Gbit, 16 Gbit",
                "fabric_name": "0x100000051e000001",
                "symbolic_name": "QLE2672 FW:v8.08.05 DVR:v10.02",
                "max_npiv_vports": "254",
                "statistics/link_failure_count": "0x2",
                "statistics/loss_of_sync_count": "0x0",
                "statistics/loss_of_signal_count": "0xffffffffffffffff",
                "statistics/invalid_tx_word_count": "0x0",
                "statistics/invalid_crc_count": "0x1",
                **{f"statistics/{name}": text for name, text in statistics.items()},
            },
        )
        self.link(f"/sys/class/fc_host/host{number}", f"{place}/fc_host/host{number}")
        return self

    def remote_port(
        self,
        name: str = "rport-2:0-1",
        *,
        wwpn: str = TARGET,
        roles: str = "FCP Target",
        state: str = "Online",
        target: int = 0,
    ) -> FabricTree:
        host = f"host{name.split('-')[1].split(':', maxsplit=1)[0]}"
        place = f"{self._host(host)}/{name}"
        texts = {
            "port_name": wwpn,
            "node_name": wwpn.replace("0x5006016", "0x5006017"),
            "port_id": "0x010300",
            "roles": roles,
            "port_state": state,
            "scsi_target_id": str(target),
            "dev_loss_tmo": "30",
            "fast_io_fail_tmo": "off",
        }
        self.text_files(f"{place}/fc_remote_ports/{name}", texts)
        self.link(f"/sys/class/fc_remote_ports/{name}", f"{place}/fc_remote_ports/{name}")
        return self

    def _host(self, host: str) -> str:
        return self.machine.real(f"/sys/class/scsi_host/{host}").rpartition("/scsi_host/")[0]

    def lun(
        self,
        name: str,
        *,
        through: str = "rport-2:0-1",
        hctl: str = "2:0:0:0",
        wwn: str = LUN,
        serial: str = "APM1",
        access: str = "active/optimized",
        preferred: str = "1",
        size: int = SIZE,
    ) -> FabricTree:
        above = f"{self._host('host' + hctl.split(':', maxsplit=1)[0]).removeprefix('/sys/devices/')}/{through}"
        device = f"/sys/devices/{above}/target{hctl.rpartition(':')[0]}/{hctl}"
        # the tree's own disk makes hostN below what it is told; here it hangs on a port of the host
        self.scsi(name, hctl=hctl, wwn=wwn, serial=serial, vendor="DGC", model="VRAID", size=size, device=device)
        self.text_files(device, {"access_state": access, "preferred_path": preferred} if access else {})
        return self

    def session(
        self,
        number: int = 1,
        *,
        host: int = 3,
        target: str = "iqn.2003-01.org.example:t1",
        address: str = "192.0.2.1",
        state: str = "LOGGED_IN",
    ) -> FabricTree:
        place = f"{self.scsi_host(host, 'platform', 'iscsi_tcp')}/session{number}"
        self.text_files(
            f"{place}/iscsi_session/session{number}",
            {
                "state": state,
                "targetname": target,
                "initiatorname": "iqn.2004-01.org.example:bench",
                "tpgt": "1",
                "recovery_tmo": "120",
                "first_burst_len": "65536",
                "username": "chap-name",
                "password": "chap-secret",
            },
        )
        self.link(f"/sys/class/iscsi_session/session{number}", f"{place}/iscsi_session/session{number}")
        connection = f"{place}/connection{number}:0/iscsi_connection/connection{number}:0"
        texts = {"address": address, "port": "3260", "header_digest": "0", "data_digest": "1"}
        self.text_files(connection, texts)
        self.link(f"/sys/class/iscsi_connection/connection{number}:0", connection)
        return self

    def nvme_fabric(
        self, *controllers: tuple[str, str, str], name: str = "nvme0n1", state: str = "live"
    ) -> FabricTree:
        """A namespace of a subsystem with native multipath: (transport, address, ANA state) of each controller."""
        subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0"
        self.text_files(
            subsystem,
            {"subsysnqn": "nqn.2014-08.org.example:s1", "iopolicy": "numa", "serial": "NV1", "model": "Linux"},
        )
        self.link("/sys/class/nvme-subsystem/nvme-subsys0", subsystem)
        for number, (transport, address, access) in enumerate(controllers):
            place = f"/sys/devices/virtual/nvme-fabrics/ctl/nvme{number}"
            texts = {
                "transport": transport,
                "address": address,
                "state": state,
                "cntlid": str(number + 1),
                "hostnqn": "nqn.2014-08.org.example:bench",
                "ctrl_loss_tmo": "600",
                "reconnect_delay": "10",
                "queue_count": "3",
                f"nvme0c{number}n1/ana_state": access,
            }
            self.text_files(place, texts)
            self.link(f"/sys/class/nvme/nvme{number}", place)
            self.link(f"{subsystem}/nvme{number}", place)
        place = f"{subsystem}/{name}"
        texts = {"wwid": "uuid.11111111-2222-3333-4444-555555555555", "nsid": "1", "dev": "259:9"}
        self.text_files(place, {**texts, "size": str(SIZE // 512), "ro": "0", "stat": " ".join(["0"] * 17)})
        self.link(f"{place}/device", subsystem)
        for folder in ("slaves", "holders"):
            (self.root / place.lstrip("/") / folder).mkdir()
        for folder in ("/sys/block", "/sys/class/block"):
            self.link(f"{folder}/{name}", place)
        self.node(name, "block", "259:9", place, SIZE)
        return self


def fc_bench(root: Path) -> FabricTree:
    """One FC adapter with one port, one target port and one LUN as sda."""
    tree = FabricTree(root)
    tree.adapter(driver="qla2xxx", pci_class="0x0c0400")
    tree.fc_port().remote_port().lun("sda")
    return tree
