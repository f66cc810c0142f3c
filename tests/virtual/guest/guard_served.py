# SPDX-License-Identifier: Apache-2.0
"""States of drives that are served to others, or used in ways that a node's path or a label does not tell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from guard_state import EXT4, NVME, State
from guard_tools import MOUNT, Bench, CannotMakeError, kept_open, loaded, private_node, put, run, wait_for

from storqual_core.host.sysfs import read_drives
from storqual_core.kit.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from storqual_core.guard.claims import Claim

_SCSI = "it is served to other machines by a SCSI target"
_NVME = "it is served to other machines by an NVMe target"
_LOST = "which leads to nothing now"
_CORE = "/sys/kernel/config/target/core"


def _configfs(module: str, place: str) -> None:
    loaded(module)
    if not Path(place).exists():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config", check=False)


def _folders(bench: Bench, *folders: str) -> None:
    for folder in folders:
        Path(folder).mkdir()
        bench.later("rmdir", folder)


def _file_backstore(bench: Bench, node: str) -> str:
    """The SCSI target's store for files, given a device: it opens it as anybody, and exclusively for nobody."""
    _configfs("target_core_file", "/sys/kernel/config/target")
    place = f"{_CORE}/fileio_7/sqguard"
    _folders(bench, f"{_CORE}/fileio_7", place)
    put(f"{place}/control", f"fd_dev_name={node},fd_dev_size={bench.claims['a'].size}")
    put(f"{place}/enable", "1")
    return place


def _served_as_a_file(bench: Bench) -> None:
    _file_backstore(bench, bench.node())


def _served_by_a_removed_node(bench: Bench) -> None:
    node = private_node(bench)
    _file_backstore(bench, node)
    Path(node).unlink()


def _served_without_a_note(bench: Bench) -> None:
    _configfs("target_core_iblock", "/sys/kernel/config/target")
    place = f"{_CORE}/iblock_8/sqguard"
    _folders(bench, f"{_CORE}/iblock_8", place)
    put(f"{place}/control", f"udev_path={bench.node()}")
    put(f"{place}/enable", "1")


def _back_as_a_scsi_drive(bench: Bench) -> None:
    """The drive comes back as a second SCSI drive of this very machine, through the target's loop."""
    place = _file_backstore(bench, bench.node())
    loaded("tcm_loop")
    target = "/sys/kernel/config/target/loopback/naa.5000c500aaaaaaaa/tpgt_1"
    _folders(bench, "/sys/kernel/config/target/loopback", target.rpartition("/")[0], target, f"{target}/lun/lun_0")
    put(f"{target}/nexus", "naa.5000c500bbbbbbbb")
    Path(f"{target}/lun/lun_0/store").symlink_to(place)
    bench.undo.append(Path(f"{target}/lun/lun_0/store").unlink)


def _to_a_virtual_machine(bench: Bench) -> None:
    """vhost-scsi: a virtual machine's kernel thread writes, and no program has the drive open."""
    place = _file_backstore(bench, bench.node())
    loaded("vhost_scsi")
    target = "/sys/kernel/config/target/vhost/naa.5000c500cccccccc/tpgt_1"
    _folders(bench, "/sys/kernel/config/target/vhost", target.rpartition("/")[0], target, f"{target}/lun/lun_0")
    put(f"{target}/nexus", "naa.5000c500dddddddd")
    Path(f"{target}/lun/lun_0/store").symlink_to(place)
    bench.undo.append(Path(f"{target}/lun/lun_0/store").unlink)


def _iscsi(bench: Bench) -> None:
    place = _file_backstore(bench, bench.node())
    loaded("iscsi_target_mod")
    target = "/sys/kernel/config/target/iscsi/iqn.2026-11.test:sqguard/tpgt_1"
    _folders(bench, "/sys/kernel/config/target/iscsi", target.rpartition("/")[0], target, f"{target}/lun/lun_0")
    Path(f"{target}/lun/lun_0/store").symlink_to(place)
    bench.undo.append(Path(f"{target}/lun/lun_0/store").unlink)


def _usb_stick(bench: Bench) -> None:
    """A USB gadget that is a stick with the drive in it."""
    _configfs("usb_f_mass_storage", "/sys/kernel/config/usb_gadget")
    place = "/sys/kernel/config/usb_gadget/sqguard"
    _folders(bench, place, f"{place}/functions/mass_storage.0")
    put(f"{place}/functions/mass_storage.0/lun.0/file", bench.node())


def _namespace(bench: Bench, *, buffered: bool = False, node: str = "") -> str:
    _configfs("nvmet", "/sys/kernel/config/nvmet")
    place = "/sys/kernel/config/nvmet/subsystems/sqtcp"
    _folders(bench, place, f"{place}/namespaces/1")
    put(f"{place}/attr_allow_any_host", "1")
    put(f"{place}/namespaces/1/device_path", node or bench.node())
    if buffered:
        put(f"{place}/namespaces/1/buffered_io", "1")
    put(f"{place}/namespaces/1/enable", "1")
    bench.undo.append(lambda: put(f"{place}/namespaces/1/enable", "0"))
    return place


def _served_through_the_cache(bench: Bench) -> None:
    _namespace(bench, buffered=True)


def _served_through_the_cache_by_a_removed_node(bench: Bench) -> None:
    node = private_node(bench)
    _namespace(bench, buffered=True, node=node)
    Path(node).unlink()


def _passed_on(bench: Bench) -> None:
    _configfs("nvmet", "/sys/kernel/config/nvmet")
    place = "/sys/kernel/config/nvmet/subsystems/sqpass"
    _folders(bench, place)
    if not Path(f"{place}/passthru").exists():
        raise CannotMakeError(f"the kernel {os.uname().release} was built without NVMe passthrough targets")
    controller = bench.name("n").rpartition("n")[0]
    put(f"{place}/passthru/device_path", f"/dev/{controller}")
    put(f"{place}/passthru/enable", "1")
    bench.undo.append(lambda: put(f"{place}/passthru/enable", "0"))


def _over_tcp(bench: Bench, ports: int) -> str:
    """The drive as an NVMe namespace of this machine, over TCP on loopback, with one path for each port."""
    place = _namespace(bench)
    loaded("nvmet-tcp")
    loaded("nvme-tcp")
    run("ip", "link", "set", "lo", "up")
    before = set(os.listdir("/sys/block"))  # noqa: PTH208 - names only
    for number in range(ports):
        port = f"/sys/kernel/config/nvmet/ports/{20 + number}"
        _folders(bench, port)
        for name, text in {
            "trtype": "tcp",
            "adrfam": "ipv4",
            "traddr": "127.0.0.1",
            "trsvcid": str(4420 + number),
        }.items():
            put(f"{port}/addr_{name}", text)
        link = Path(f"{port}/subsystems/sqtcp")
        link.symlink_to(place)
        bench.undo.append(link.unlink)
    bench.later("nvme", "disconnect", "-n", "sqtcp")
    for number in range(ports):
        run("nvme", "connect", "-t", "tcp", "-n", "sqtcp", "-a", "127.0.0.1", "-s", str(4420 + number))

    def heads() -> list[str]:
        new = set(os.listdir("/sys/block")) - before  # noqa: PTH208 - names only
        return sorted(name for name in new if "c" not in name and Path(f"/dev/{name}").is_block_device())

    wait_for(lambda: bool(heads()), "the namespace")
    return heads()[0]


def _namespace_claim(bench: Bench) -> list[Claim]:
    drive = next(drive.identity for drive in read_drives(Machine()) if drive.identity.model == "Linux")
    texts = {name: getattr(drive, name) for name in ("wwn", "serial", "vendor", "model", "size")}
    return [bench.claim(id=drive.wwn or drive.serial, **texts)]


def _several_ways(use: Callable[[Bench, str], None]) -> Callable[[Bench], str]:
    """A namespace with two paths, in some use; it is what is claimed."""

    def arrange(bench: Bench) -> str:
        head = _over_tcp(bench, 2)
        use(bench, head)
        return f"/dev/{head}"

    return arrange


def _head_mounted(bench: Bench, head: str) -> None:
    bench.made(*EXT4, f"/dev/{head}", "65536k")
    bench.mount(f"/dev/{head}", "-o", "noinit_itable")


def _controller_open(bench: Bench, head: str) -> None:
    """The management node of one of its controllers, which is below no namespace."""
    index = head.removeprefix("nvme").partition("n")[0]
    path = next(Path("/sys/class/nvme").glob(f"nvme*/nvme{index}c*n*"))
    kept_open(f"/dev/{path.parent.name}", os.O_RDWR, bench)


def _generic_open(bench: Bench, head: str) -> None:
    kept_open(f"/dev/ng{head.removeprefix('nvme')}", os.O_RDONLY, bench)


def _by_a_server_of_nbd(bench: Bench) -> None:
    """A server of network block devices is a program that has the drive open, here under its stable number."""
    kept_open(f"/dev/block/{Path(f'/sys/block/{bench.name()}/dev').read_text().strip()}", os.O_RDWR, bench)


SERVED = [
    State("served by a SCSI target as a file", _SCSI, _served_as_a_file),
    State("served by a SCSI target through a node that was removed", _LOST, _served_by_a_removed_node),
    State("served by a SCSI target, its tool's note missing", _SCSI, _served_without_a_note),
    State("back as another SCSI drive of the same machine", _SCSI, _back_as_a_scsi_drive),
    State("served to a virtual machine by vhost", _SCSI, _to_a_virtual_machine),
    State("served over iSCSI", _SCSI, _iscsi),
    State("served by a USB gadget", "it is served to other machines by a USB gadget", _usb_stick),
    State("served by an NVMe target through the cache", _NVME, _served_through_the_cache),
    State(
        "served by an NVMe target through a node that was removed", _LOST, _served_through_the_cache_by_a_removed_node
    ),
    State("controller passed on by an NVMe target", _NVME, _passed_on, NVME),
    State("below an NVMe namespace over TCP", _NVME, lambda b: f"/dev/{_over_tcp(b, 1)}"),
    State(
        "NVMe namespace with two paths, mounted",
        f"it is mounted on {MOUNT} (ext4)",
        _several_ways(_head_mounted),
        _namespace_claim,
    ),
    State(
        "NVMe namespace with two paths, a controller of it open",
        "it is open for writing in python3",
        _several_ways(_controller_open),
        _namespace_claim,
    ),
    State(
        "NVMe namespace with two paths, open for commands",
        "it is open for commands in python3",
        _several_ways(_generic_open),
        _namespace_claim,
    ),
    State(
        "open for commands through its sg node, for reading",
        "it is open for commands in python3",
        lambda b: kept_open(b.drives["a"].sg, os.O_RDONLY, b),
    ),
    State(
        "open for commands through its bsg node, for reading",
        "it is open for commands in python3",
        lambda b: kept_open(f"/dev/bsg/{b.drives['a'].hctl}", os.O_RDONLY, b),
    ),
    State(
        "NVMe controller open for reading",
        "it is open for commands in python3",
        lambda b: kept_open(f"/dev/{b.name('n').rpartition('n')[0]}", os.O_RDONLY, b),
        NVME,
    ),
    State("open by its number, as a server of NBD has it", "it is open for writing in python3", _by_a_server_of_nbd),
    State(
        "held open with O_EXCL for writing",
        "it is open for writing in python3",
        lambda b: kept_open(b.node(), os.O_RDWR | os.O_EXCL, b),
    ),
]
