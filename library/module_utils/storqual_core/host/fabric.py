# SPDX-License-Identifier: Apache-2.0
"""Fabrics as sysfs shows them: Fibre Channel ports, iSCSI sessions, NVMe over fabrics, and the paths of a drive.

Attributes are those of the kernel's transport classes (scsi_transport_fc, scsi_transport_iscsi, nvme-fabrics). Names
and secrets of CHAP are never read.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, Sequence

from ..kit.machine import Machine
from .identity import printed_wwn

_FC_HOSTS, _REMOTE_PORTS, _VPORTS = "/sys/class/fc_host", "/sys/class/fc_remote_ports", "/sys/class/fc_vports"
_SESSIONS, _CONNECTIONS = "/sys/class/iscsi_session", "/sys/class/iscsi_connection"
_CONTROLLERS, _SUBSYSTEMS = "/sys/class/nvme", "/sys/class/nvme-subsystem"
_REMOTE_PORT = re.compile(r"/(rport-(\d+):\d+-\d+)/")
_SESSION = re.compile(r"/host\d+/(session\d+)/")
_HOST = re.compile(r"/(host\d+)(?=/|$)")
_NVME_CONTROLLER = re.compile(r"nvme\d+\Z")
_NVME_SPACE = re.compile(r"nvme(\d+)n(\d+)\Z")
_CONNECTION = re.compile(r"connection(\d+):\d+\Z")
_SPEED = re.compile(r"(\d+) Gbit")
_NOT_KEPT = 0xFFFFFFFFFFFFFFFF

_OF_HOSTS = {
    "fcoe": "fcoe",
    "bnx2fc": "bnx2fc",
    "iscsi_tcp": "iscsi_tcp",
    "iscsi_iser": "ib_iser",
    "bnx2i": "bnx2i",
    "cxgb3i": "cxgb3i",
    "cxgb4i": "cxgb4i",
}
"""Drivers whose hosts are reached through a network card, by the name that their SCSI hosts have in sysfs."""
_OF_CONTROLLERS = {"tcp": "nvme_tcp", "rdma": "nvme_rdma", "fc": "nvme_fc", "loop": "nvme_loop"}

# line rate in 10^9 bits per second (FC-PI-7; FC at 10 Gbit is Ethernet's, as are 20, 25, 40, 50 and 100), what
# the line code and forward error correction leave of it
_EIGHT_OF_TEN, _WIDE, _CORRECTED = 8 / 10, 64 / 66, 256 / 257 * 514 / 544
_FC_LINES: Mapping[int, tuple[float, float]] = {
    1: (1.0625, _EIGHT_OF_TEN),
    2: (2.125, _EIGHT_OF_TEN),
    4: (4.25, _EIGHT_OF_TEN),
    8: (8.5, _EIGHT_OF_TEN),
    10: (10.3125, _WIDE),
    16: (14.025, _WIDE),
    20: (20.625, _WIDE),
    25: (25.78125, _WIDE),
    32: (28.05, _WIDE),
    40: (41.25, _WIDE),
    50: (51.5625, _WIDE),
    64: (57.8, _CORRECTED),
    100: (103.125, _WIDE),
    128: (112.2, _CORRECTED),
}


def fc_gbit(text: str) -> list[int]:
    """The speeds in a text of the FC transport: `8 Gbit, 16 Gbit` is 8 and 16; none in `Unknown`."""
    return [int(speed) for speed in _SPEED.findall(text)]


def fc_bytes_per_second(speed: str) -> int | None:
    """What a port at this speed (`32 Gbit`) carries in one direction after its line code; None where not known."""
    known = [_FC_LINES[gbit] for gbit in fc_gbit(speed) if gbit in _FC_LINES]
    return round(known[0][0] * known[0][1] * 1e9 / 8) if len(known) == 1 else None


def host_driver(machine: Machine, path: str) -> str:
    """The driver of SOFTWARE_INITIATORS whose SCSI host a sysfs path passes or ends at; empty for any other."""
    host = _HOST.search(path)
    return _OF_HOSTS.get(machine.text(f"/sys/class/scsi_host/{host.group(1)}/proc_name"), "") if host else ""


def controller_driver(machine: Machine, controller: str) -> str:
    """The driver of an NVMe controller (`nvme0`) that is reached through a fabric; empty for one on the PCI bus."""
    return _OF_CONTROLLERS.get(machine.text(f"{_CONTROLLERS}/{controller}/transport"), "")


def fabric_drivers(machine: Machine) -> list[str]:
    """The drivers of SOFTWARE_INITIATORS that have a host or a controller on this machine, by name."""
    drivers = {host_driver(machine, f"/{host}") for host in machine.names("/sys/class/scsi_host")}
    drivers |= {controller_driver(machine, name) for name in machine.names(_CONTROLLERS)}
    return sorted(drivers - {""})


def fc_host_of(machine: Machine, port_name: str) -> str:
    """The SCSI host of an FC port by its WWPN; empty where there is none."""
    for host in machine.names(_FC_HOSTS):
        if port_name and _wwn(machine, f"{_FC_HOSTS}/{host}/port_name") == port_name:
            return host
    return ""


def _wwn(machine: Machine, path: str) -> str:
    text = machine.text(path).strip()
    return printed_wwn(text) or text


def read_fc_port(machine: Machine, host: str) -> dict[str, Any] | None:
    """The FC port of a SCSI host with its statistics, NPIV ports and remote ports; None for any other host.

    `statistics` has the counters that the driver keeps.
    """
    place = f"{_FC_HOSTS}/{host}"
    name = _wwn(machine, f"{place}/port_name")
    if not name:
        return None
    number = host.replace("host", "", 1)
    return {
        "port_name": name,
        "node_name": _wwn(machine, f"{place}/node_name"),
        "port_id": machine.text(f"{place}/port_id"),
        "type": machine.text(f"{place}/port_type"),
        "state": machine.text(f"{place}/port_state"),
        "speed": machine.text(f"{place}/speed"),
        "supported_speeds": machine.text(f"{place}/supported_speeds"),
        "fabric_name": _wwn(machine, f"{place}/fabric_name"),
        "symbolic_name": machine.text(f"{place}/symbolic_name"),
        "npiv_most": machine.number(f"{place}/max_npiv_vports"),
        "npiv": [
            {
                "port_name": _wwn(machine, f"{_VPORTS}/{vport}/port_name"),
                "node_name": _wwn(machine, f"{_VPORTS}/{vport}/node_name"),
                "state": machine.text(f"{_VPORTS}/{vport}/vport_state"),
            }
            for vport in machine.names(_VPORTS)
            if vport.startswith(f"vport-{number}:")
        ],
        "statistics": _statistics(machine, f"{place}/statistics"),
        "remote_ports": [
            _remote_port(machine, port)
            for port in machine.names(_REMOTE_PORTS)
            if port.startswith(f"rport-{number}:")
        ],
    }


def _statistics(machine: Machine, place: str) -> dict[str, int]:
    counts = {}
    for name in machine.names(place):
        try:
            count = int(machine.text(f"{place}/{name}"), 0)
        except ValueError:
            # reset_statistics can only be written
            continue
        if count != _NOT_KEPT:
            counts[name] = count
    return counts


def statistics_files(machine: Machine, name: str, counters: Sequence[str]) -> dict[str, str]:
    """The files of those of `counters` that the FC port of the drive with this kernel name keeps."""
    port = _REMOTE_PORT.search(machine.link(f"/sys/block/{name}"))
    place = f"{_FC_HOSTS}/host{port.group(2)}/statistics" if port else ""
    kept = _statistics(machine, place) if place else {}
    return {counter: f"{place}/{counter}" for counter in counters if counter in kept}


def _remote_port(machine: Machine, port: str) -> dict[str, Any]:
    place = f"{_REMOTE_PORTS}/{port}"
    target = machine.number(f"{place}/scsi_target_id")
    return {
        "name": port,
        "port_name": _wwn(machine, f"{place}/port_name"),
        "node_name": _wwn(machine, f"{place}/node_name"),
        "port_id": machine.text(f"{place}/port_id"),
        "roles": machine.text(f"{place}/roles"),
        "state": machine.text(f"{place}/port_state"),
        # the kernel writes -1 for a port that is no target
        "target_id": None if target is None or target < 0 else target,
        "dev_loss_tmo": machine.number(f"{place}/dev_loss_tmo"),
        # `off` is a value of it
        "fast_io_fail_tmo": machine.text(f"{place}/fast_io_fail_tmo"),
    }


_OF_SESSION = (
    "state",
    "targetname",
    "targetalias",
    "tpgt",
    "initiatorname",
    "ifacename",
    "recovery_tmo",
    "abort_tmo",
    "lu_reset_tmo",
    "tgt_reset_tmo",
    "fast_abort",
    "initial_r2t",
    "immediate_data",
    "first_burst_len",
    "max_burst_len",
    "max_outstanding_r2t",
    "data_pdu_in_order",
    "data_seq_in_order",
    "erl",
)
_ENDS = ("address", "port", "persistent_address", "persistent_port")
# ISCSI_PARAM_HDRDGST_EN and ISCSI_PARAM_DATADGST_EN: whether it is on, and there is but one kind
_DIGESTED, _DIGESTS = ("header_digest", "data_digest"), {"0": "None", "1": "CRC32C"}
_OF_CONNECTION = ("state", *_ENDS, *_DIGESTED, "max_recv_dlength", "max_xmit_dlength", "ping_tmo", "recv_tmo")


def read_iscsi_sessions(machine: Machine) -> list[dict[str, Any]]:
    """Every iSCSI session with its negotiated parameters as the kernel shows them, and its connections."""
    connections: dict[str, list[dict[str, Any]]] = {}
    for name in machine.names(_CONNECTIONS):
        session = _CONNECTION.match(name)
        if session:
            facts = {key: machine.text(f"{_CONNECTIONS}/{name}/{key}") for key in _OF_CONNECTION}
            facts.update({key: _DIGESTS.get(facts[key], facts[key]) for key in _DIGESTED})
            connections.setdefault(f"session{session.group(1)}", []).append({"name": name, **facts})
    sessions = []
    for name in machine.names(_SESSIONS):
        host = _HOST.search(machine.link(f"{_SESSIONS}/{name}"))
        sessions.append(
            {
                "name": name,
                "host": host.group(1) if host else "",
                **{key: machine.text(f"{_SESSIONS}/{name}/{key}") for key in _OF_SESSION},
                "connections": connections.get(name, []),
            }
        )
    return sessions


def portal(connection: Mapping[str, Any]) -> str:
    """`192.0.2.1:3260`, with brackets around an IPv6 address."""
    address = str(connection["address"] or connection.get("persistent_address", ""))
    port = str(connection["port"] or connection.get("persistent_port", ""))
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}" if address else ""


_MANAGEMENT = 15  # commands of a session that libiscsi keeps for itself (ISCSI_MGMT_CMDS_MAX)
_SOFTWARE_ISCSI = ("iscsi_tcp", "ib_iser")


def session_ends(machine: Machine, session: str) -> tuple[str, str]:
    """Name of the target and portal of an iSCSI session, as open-iscsi keeps its record: before a redirection."""
    place = f"{_CONNECTIONS}/{session.replace('session', 'connection')}:0"
    kept = {key: machine.text(f"{place}/persistent_{key}") for key in ("address", "port")}
    end = portal(kept) or portal(_first_connection(machine, session))
    return machine.text(f"{_SESSIONS}/{session}/targetname"), end


def login_values(machine: Machine, way: str) -> dict[str, int | str]:
    """What an iSCSI session (`session1`) or NVMe controller (`nvme0`) of a fabric was made with, by settings' names.

    Counts, seconds, and digests as they were negotiated; what the kernel does not show is left out. Of NVMe/TCP these
    are the digest of data alone, for which it keeps the pages of a write as they are (`stable_writes`, since 5.10).
    """
    values: dict[str, int | str | None] = {}
    if _NVME_CONTROLLER.match(way) and controller_driver(machine, way):
        queues, last = (machine.number(f"{_CONTROLLERS}/{way}/{name}") for name in ("queue_count", "sqsize"))
        values["nr_io_queues"] = None if queues is None else queues - 1
        values["queue_size"] = None if last is None else last + 1
        values["keep_alive_tmo"] = machine.number(f"{_CONTROLLERS}/{way}/kato")
        if controller_driver(machine, way) == "nvme_tcp":
            spaces = [name for name in machine.names(f"{_CONTROLLERS}/{way}") if name.startswith("nvme")]
            shown = {machine.text(f"{_CONTROLLERS}/{way}/{name}/queue/stable_writes") for name in spaces}
            values["data_digest"] = _DIGESTS.get(" ".join(shown))
    elif way in machine.names(_SESSIONS):
        link = machine.link(f"{_SESSIONS}/{way}")
        if host_driver(machine, link) in _SOFTWARE_ISCSI and (host := _HOST.search(link)):
            most = machine.number(f"/sys/class/scsi_host/{host.group(1)}/can_queue")
            values["cmds_max"] = None if most is None else most + _MANAGEMENT
        place = f"{_CONNECTIONS}/{way.replace('session', 'connection')}:0"
        values.update({name: _DIGESTS.get(machine.text(f"{place}/{name}")) for name in _DIGESTED})
        values["noop_out_interval"] = machine.number(f"{place}/recv_tmo")
        values["noop_out_timeout"] = machine.number(f"{place}/ping_tmo")
        ends = session_ends(machine, way)
        values["nr_sessions"] = sum(session_ends(machine, name) == ends for name in machine.names(_SESSIONS))
    return {name: value for name, value in values.items() if value not in (None, "")}


# what a new controller would have anew, and a drop may have set beside what it is connected with
_OF_CONNECT = ("transport", "subsysnqn", "hostnqn", "hostid", "ctrl_loss_tmo", "reconnect_delay", "fast_io_fail_tmo")


def connect_words(machine: Machine, controller: str) -> dict[str, int | str]:
    """What a controller was connected with, in the words that the kernel takes for it; no secret is among them."""
    place = f"{_CONTROLLERS}/{controller}"
    address = nvme_address(machine.text(f"{place}/address"))
    address.pop("src_addr", None)
    shown = {name.replace("subsys", ""): machine.text(f"{place}/{name}") for name in _OF_CONNECT}
    words = {name: "-1" if text == "off" else text for name, text in shown.items() if text}
    return {**words, **address, **login_values(machine, controller)}


_OF_CONTROLLER = ("state", "transport", "address", "cntlid", "hostnqn", "cntrltype")
_NUMBERS = ("queue_count", "sqsize", "ctrl_loss_tmo", "reconnect_delay", "fast_io_fail_tmo", "kato")


def read_nvme_subsystems(machine: Machine) -> list[dict[str, Any]]:
    """Each NVMe subsystem with a controller that is reached through a fabric, with all of its controllers.

    `ctrl_loss_tmo` and `fast_io_fail_tmo` are seconds, -1 or None where they are off.
    """
    subsystems = []
    for name in machine.names(_SUBSYSTEMS):
        place = f"{_SUBSYSTEMS}/{name}"
        controllers = [controller for controller in machine.names(place) if _NVME_CONTROLLER.match(controller)]
        if any(controller_driver(machine, controller) for controller in controllers):
            subsystems.append(
                {
                    "name": name,
                    "nqn": machine.text(f"{place}/subsysnqn"),
                    "policy": machine.text(f"{place}/iopolicy"),
                    "controllers": [_controller(machine, controller) for controller in controllers],
                }
            )
    return subsystems


def _controller(machine: Machine, name: str) -> dict[str, Any]:
    place = f"{_CONTROLLERS}/{name}"
    return {
        "name": name,
        **{key: machine.text(f"{place}/{key}") for key in _OF_CONTROLLER},
        **{key: machine.number(f"{place}/{key}") for key in _NUMBERS},
    }


def nvme_address(text: str) -> dict[str, str]:
    """The parts of a controller's address: `traddr=192.0.2.1,trsvcid=4420,src_addr=192.0.2.9`."""
    parts = (part.partition("=") for part in text.split(","))
    return {name.strip(): value.strip() for name, equals, value in parts if equals}


def port_key(port: object) -> object:
    """What tells ports of an adapter apart in an inventory's `port`: its number, or the initiator of a path."""
    return str(port.get("initiator")) if isinstance(port, Mapping) else port or 0


def port_words(port: Mapping[str, Any]) -> str:
    """An FC port in words: `0x2100000e1e000001 Online, 16 Gbit`."""
    return f"{port['port_name']} {', '.join(port[name] for name in ('state', 'speed') if port[name])}".strip()


def path_words(path: Mapping[str, Any]) -> str:
    """A path in words: from where to where, which LUN, and how the target rates it."""
    target = f"{path['target']} at {path['portal']}" if path["portal"] else path["target"]
    access = f", {path['access']}" if path["access"] else ""
    return f"{path['initiator']} to {target}, LUN {path['lun'] or 'not known'}{access}"


def path_disks(machine: Machine, name: str) -> dict[str, str]:
    """The disk of each path to a multipath device or NVMe namespace, by the path's ends; none without several."""
    below = machine.names(f"/sys/block/{name}/slaves")
    if below and not machine.text(f"/sys/block/{name}/dm/uuid").startswith("mpath-"):
        return {}
    paths = [path for disk in below or [name] for path in read_drive_paths(machine, disk)]
    disks = {f"{path['initiator']} to {path['portal'] or path['target']}": str(path["device"]) for path in paths}
    return disks if len(disks) > 1 else {}


def hidden_paths(machine: Machine, name: str) -> list[str]:
    """The hidden disks of an NVMe drive with native multipath, one for each controller."""
    drive = _NVME_SPACE.match(name)
    if drive is None:
        return []
    path = re.compile(rf"nvme{drive.group(1)}c\d+n{drive.group(2)}\Z")
    return [entry for entry in machine.names("/sys/block") if path.match(entry)]


def fabric_of(machine: Machine, name: str) -> str:
    """The fabric through which a disk is reached: fc, iscsi, nvme; empty for one that no fabric is in front of."""
    place = machine.link(f"/sys/block/{name}")
    if _REMOTE_PORT.search(place):
        return "fc"
    if _SESSION.search(place):
        return "iscsi"
    return "nvme" if any(controller_driver(machine, each) for each in _controllers_of(machine, name)) else ""


def controllers_of_fabric(machine: Machine, name: str) -> list[str]:
    """The controllers of an NVMe namespace that are reached through a fabric."""
    return [each for each in _controllers_of(machine, name) if controller_driver(machine, each)]


def _controllers_of(machine: Machine, name: str) -> list[str]:
    """The controllers of an NVMe namespace, as they are numbered; with native multipath it hangs on a subsystem."""
    if not _NVME_SPACE.match(name):
        return []
    device = machine.real(f"/sys/block/{name}/device")
    own = device.rsplit("/", 1)[-1]
    listed = [own] if _NVME_CONTROLLER.match(own) else machine.names(device)
    return sorted((each for each in listed if _NVME_CONTROLLER.match(each)), key=lambda each: (len(each), each))


def read_drive_paths(machine: Machine, name: str, hctl: str = "") -> list[dict[str, Any]]:
    """The paths to a disk: one for a SCSI disk, one for each controller of an NVMe namespace; none without a fabric.

    `initiator` and `target` are WWPNs, iSCSI names, or the NQN of the host and the transport address; `portal` is the
    address of an iSCSI target; `through` is the remote port, session or controller by its kernel name. `access` is
    the ALUA or ANA state, `preferred` whether the target prefers this path; empty or None where it does not tell.
    """
    place = machine.link(f"/sys/block/{name}")
    device = f"/sys/block/{name}/device"
    lun = hctl.rpartition(":")[2]
    port, session = _REMOTE_PORT.search(place), _SESSION.search(place)
    if port:
        rport, host = port.groups()
        ends = {
            "initiator": _wwn(machine, f"{_FC_HOSTS}/host{host}/port_name"),
            "target": _wwn(machine, f"{_REMOTE_PORTS}/{rport}/port_name"),
            "portal": "",
            "state": machine.text(f"{_REMOTE_PORTS}/{rport}/port_state"),
        }
        return [_path(machine, name, "fc", rport, lun, device, ends)]
    if session:
        connection = _first_connection(machine, session.group(1))
        ends = {
            "initiator": machine.text(f"{_SESSIONS}/{session.group(1)}/initiatorname"),
            "target": machine.text(f"{_SESSIONS}/{session.group(1)}/targetname"),
            "portal": portal(connection),
            "state": machine.text(f"{_SESSIONS}/{session.group(1)}/state"),
        }
        return [_path(machine, name, "iscsi", session.group(1), lun, device, ends)]
    return list(_nvme_paths(machine, name))


def _first_connection(machine: Machine, session: str) -> Mapping[str, str]:
    """The leading connection: Linux has one in each session."""
    place = f"{_CONNECTIONS}/{session.replace('session', 'connection')}:0"
    return {key: machine.text(f"{place}/{key}") for key in _ENDS}


def _path(
    machine: Machine, name: str, fabric: str, through: str, lun: str, device: str, ends: Mapping[str, str]
) -> dict[str, Any]:
    preferred = machine.text(f"{device}/preferred_path")
    return {
        "device": name,
        "fabric": fabric,
        "through": through,
        "lun": lun,
        **ends,
        "access": machine.text(f"{device}/access_state"),
        "preferred": {"1": True, "0": False}.get(preferred),
    }


def _nvme_paths(machine: Machine, name: str) -> Iterator[dict[str, Any]]:
    space = _NVME_SPACE.match(name)
    for controller in controllers_of_fabric(machine, name):
        place = f"{_CONTROLLERS}/{controller}"
        text = machine.text(f"{place}/address")
        address = nvme_address(text)
        target, service = address.get("traddr", ""), address.get("trsvcid", "")
        hidden = f"nvme{space.group(1)}c{controller[4:]}n{space.group(2)}" if space else name
        device = hidden if machine.exists(f"{place}/{hidden}") else name
        yield {
            "device": device,
            "fabric": f"nvme {machine.text(f'{place}/transport')}",
            "through": controller,
            "lun": machine.text(f"/sys/block/{name}/nsid"),
            "initiator": address.get("host_traddr") or machine.text(f"{place}/hostnqn"),
            "target": f"{target}:{service}" if service else target,
            "portal": "",
            "state": machine.text(f"{place}/state"),
            "access": machine.text(f"{place}/{device}/ana_state"),
            "preferred": None,
        }
