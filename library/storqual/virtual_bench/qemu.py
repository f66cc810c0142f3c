# SPDX-License-Identifier: Apache-2.0
"""The QEMU command line of a bench, as a pure function of its description; nothing is ever read by a shell."""

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual.virtual_bench.description import DEVICES, BenchDescription, EmulatedAdapter, EmulatedDrive
from storqual.virtual_bench.fabrics import INITIATOR, TARGET
from storqual.virtual_bench.image import BenchImage
from storqual.virtual_bench.places import cache_folder
from storqual_core.kit.command import run
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import BadInputError

PROGRAM = "qemu-system-x86_64"
GUEST_ADDRESS = "10.0.2.15"
_TRANSLATION_CACHE_MIB = 256
_PSTORE_BYTES = 1 << 20
_NETWORK_SLOT = 4
_NS_PER_INSTRUCTION_LOG2 = 2
"""4 ns for each instruction: a processor of 250 million a second, about what an emulator on a host of today runs."""


@dataclass(frozen=True)
class Acceleration:
    """How the guest's instructions are run, `kvm` or `tcg`, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class EmulatedMachine:
    """All files one running bench needs; `handed` are the further ones that the guest is given, by name.

    `network` is the folder of the sockets through which it reaches the guest with its targets, where that is another.
    """

    image: BenchImage
    overlay: Path
    variables: Path
    drives: Path
    console: Path
    serial: Path
    netconsole: Path
    pstore: Path
    monitor: Path
    pidfile: Path
    host_key: Path
    authorized_keys: Path
    host_name: Path
    handed: Mapping[str, Path] = field(default_factory=dict)
    network: Path = Path()


def option_value(text: object) -> str:
    """A value inside a comma-separated QEMU option: a comma is written twice."""
    return str(text).replace(",", ",,")


def _json(**fields: object) -> str:
    """One object as `-device`, `-blockdev` and `-netdev` take it: commas and quotes in values cannot end it."""
    return json.dumps({name.replace("_", "-"): value for name, value in fields.items()}, ensure_ascii=True)


def _address(slot: int, function: int = 0) -> str:
    return f"{slot:x}.{function:x}"


def channel_id(adapter: EmulatedAdapter, channel: int) -> str:
    """The QEMU id of an adapter's channel, or of a port's network; the first has the adapter's own name."""
    return adapter.alias if channel == 0 else f"{adapter.alias}-c{channel}"


def device_arguments(adapter: EmulatedAdapter, drive: EmulatedDrive) -> dict[str, Any]:
    index, node = adapter.drives.index(drive), f"{drive.first or drive.device}-file"
    if DEVICES[adapter.device].namespaces:
        namespace = {"driver": "nvme-ns", "id": drive.device, "bus": adapter.alias, "drive": node}
        eui = {"eui64": int(drive.wwn.removeprefix("eui."), 16)} if drive.wwn else {}
        return {**namespace, "nsid": index + 1, **eui, **_block(drive)}
    device: dict[str, Any] = {
        "driver": "scsi-hd",
        "id": drive.device,
        "bus": f"{channel_id(adapter, drive.channel)}.0",
        "drive": node,
        "scsi-id": drive.target,
        "rotation_rate": drive.rotation_rate,
        **_block(drive),
    }
    if drive.fua:
        device["dpofua"] = True
    if DEVICES[adapter.device].controller:
        # what the inventory says of it is said by the LUN over it. LIO promises writes through the cache (FUA) even
        # over a disk that has none, and then drops the request
        names = {"vendor": "STORQUAL", "product": f"behind {adapter.device}", "serial": drive.device}
        return {**device, **names, "dpofua": True}
    texts = {"vendor": drive.vendor, "product": drive.model, "ver": drive.revision, "serial": drive.serial}
    device.update({name: value for name, value in texts.items() if value})
    if drive.wwn:
        device["wwn"] = int(drive.wwn, 16)
    if drive.paths > 1:
        device["share-rw"] = True
    return device


def _block(drive: EmulatedDrive) -> dict[str, int]:
    """The size of a drive's blocks, where it is not what QEMU has without it."""
    return {} if drive.block == 512 else {"logical_block_size": drive.block, "physical_block_size": drive.block}


def _adapter_device(adapter: EmulatedAdapter, channel: int) -> dict[str, Any]:
    driver = DEVICES[adapter.device].controller or adapter.device
    device: dict[str, Any] = {"driver": driver, "id": channel_id(adapter, channel), "bus": "pci.0"}
    device["addr"] = _address(adapter.slot, adapter.function + channel)
    if adapter.channels > 1 and channel == 0:
        device["multifunction"] = True
    if DEVICES[adapter.device].namespaces:
        device["serial"] = adapter.drives[0].serial if adapter.drives else adapter.alias
    return device


def _file_node(name: str, file: Path, **fields: object) -> str:
    return _json(driver="raw", node_name=name, file={"driver": "file", "filename": str(file)}, **fields)


def _drive_node(machine: EmulatedMachine, drive: EmulatedDrive) -> str:
    name = f"{drive.device}-file"
    if drive.service_time:
        # The one driver of QEMU that lets a flush take its time too; it keeps nothing and reads zeros. Writes through
        # (FUA) it takes like any others; a quorum of one knows none such and has a flush follow each.
        wait = {"driver": "null-co", "latency-ns": round(drive.service_time * 1e9), "read-zeroes": True}
        return _json(driver="quorum", node_name=name, vote_threshold=1, children=[{**wait, "size": drive.size}])
    return _file_node(name, machine.drives / f"{drive.device}.img", discard="unmap")


def _root_nodes(machine: EmulatedMachine) -> list[str]:
    """The shared image is opened read-only and named here, so that the overlay may outlive a move of the cache."""
    base = _file_node("image", machine.image.root, read_only=True)
    overlay = _json(
        driver="qcow2",
        node_name="system-file",
        discard="unmap",
        file={"driver": "file", "filename": str(machine.overlay)},
        backing="image",
    )
    return ["-blockdev", base, "-blockdev", overlay]


def started_from(image: BenchImage, variables: Path | None = None) -> list[str]:
    """What the machine finds its loader by: the boot disc, or UEFI with `variables`; without, it forgets them."""
    if image.firmware is None:
        argv = ["-blockdev", _file_node("boot-disc", image.disc, read_only=True)]
        return [*argv, "-device", _json(driver="ide-cd", id="cd", drive="boot-disc", bootindex=0)]
    code, first = image.firmware
    argv = ["-blockdev", _file_node("firmware", code, read_only=True)]
    argv += ["-blockdev", _file_node("efi-variables", variables or first, read_only=variables is None)]
    return [*argv, "-machine", "pflash0=firmware,pflash1=efi-variables"]


def _base(description: BenchDescription, acceleration: Acceleration) -> list[str]:
    name, megabytes = option_value(description.name), description.memory // 2**20
    argv = [PROGRAM, "-name", f"guest={name}", "-no-user-config", "-nodefaults", "-display", "none"]
    argv += ["-machine", "pc", "-m", f"{megabytes}M", "-smp", str(description.cpus), "-rtc", "base=utc"]
    if description.counts_instructions:
        argv += ["-icount", f"shift={_NS_PER_INSTRUCTION_LOG2}"]
    if acceleration.name == "kvm":
        return [*argv, "-accel", "kvm", "-cpu", "host"]
    # One thread for all guest CPUs: with a thread each, a boot in seventeen failed. A modest CPU: what `max` offers
    # (AVX, AES, virtualisation) is slower emulated than done without, and has the guest load drivers for it; with it
    # a bench of 23 drives took 50 s to be ready, with this one 35 s.
    return [*argv, "-accel", f"tcg,thread=single,tb-size={_TRANSLATION_CACHE_MIB}", "-cpu", "Nehalem"]


def _ports_apart(adapter: EmulatedAdapter, network: Path) -> list[str]:
    """A network card for each port, on a network of its own to the other guest.

    Datagrams: a stream would not come back after one of the guests was started again. By Unix sockets, where a sender
    waits for its receiver: UDP drops what is too much at once, as a long read is, and FC loses no frames. The first
    card stays the user network's, since the guest numbers them in this order.
    """
    argv: list[str] = []
    for port in range(adapter.channels):
        name, number = channel_id(adapter, port), 2 if adapter.end == TARGET else 1
        ends = [{"type": "unix", "path": str(network / f"port{port}.{end}")} for end in (INITIATOR, TARGET)]
        local, remote = ends[:: -1 if adapter.end == TARGET else 1]
        argv += ["-netdev", _json(type="dgram", id=name, local=local, remote=remote)]
        card = {"driver": "virtio-net-pci", "id": f"{name}-card", "netdev": name, "romfile": ""}
        address, mac = _address(_NETWORK_SLOT, 1 + port), f"02:00:00:00:{port:02x}:{number:02x}"
        argv += ["-device", _json(**card, addr=address, mac=mac)]
    return argv


def machine_argv(description: BenchDescription, machine: EmulatedMachine, acceleration: Acceleration) -> list[str]:
    """The whole command line of a bench. It starts stopped (`-S`): limits are set before the first instruction."""
    argv = _base(description, acceleration)
    argv += ["-S", "-daemonize", "-pidfile", str(machine.pidfile)]
    # a listener may come and go, and type; whether one is there or not, the file has all that was said
    line = f"socket,id=console,path={option_value(machine.serial)},server=on,wait=off,telnet=on"
    argv += ["-chardev", f"{line},logfile={option_value(machine.console)},logappend=on", "-serial", "chardev:console"]
    argv += ["-chardev", f"socket,id=monitor,server=on,wait=off,path={option_value(machine.monitor)}"]
    argv += ["-mon", "chardev=monitor,mode=control"]
    for name, file in (
        ("ssh_host_ed25519_key", machine.host_key),
        ("authorized_keys", machine.authorized_keys),
        ("hostname", machine.host_name),
        *machine.handed.items(),
    ):
        argv += ["-fw_cfg", f"name=opt/storqual/{name},file={option_value(file)}"]
    argv += _root_nodes(machine)
    argv += [
        "-device",
        _json(driver="virtio-blk-pci", id="system", drive="system-file", serial="system", addr="3", bootindex=1),
    ]
    argv += started_from(machine.image, machine.variables)
    forward = f"tcp:127.0.0.1:0-{GUEST_ADDRESS}:22"
    argv += ["-netdev", f"user,id=network,restrict=on,ipv6=off,hostfwd={forward}"]
    card: dict[str, object] = {"driver": "virtio-net-pci", "romfile": ""}
    several = description.netconsole or any(adapter.end for adapter in description.adapters)
    argv += ["-device", _json(**card, netdev="network", addr=_address(_NETWORK_SLOT), multifunction=several)]
    if description.netconsole:
        # Unix sockets: no port that another bench could have, and only this user reaches them
        ends = {"local": machine.netconsole.with_suffix(".bench"), "remote": machine.netconsole}
        sockets = {end: {"type": "unix", "path": str(path)} for end, path in ends.items()}
        argv += ["-netdev", _json(type="dgram", id="messages", **sockets)]
        argv += ["-device", _json(**card, netdev="messages", addr=_address(_NETWORK_SLOT, 7))]
    argv += ["-device", _json(driver="virtio-rng-pci", addr="2.0", multifunction=True)]
    # what ends a guest that hangs; armed in boots on trial. The slots from 5 on are for adapters
    argv += ["-device", _json(driver="i6300esb", addr="2.1"), "-action", "watchdog=reset"]
    # firmware keeps what a kernel says in a panic (ERST), in a file that can be read while the bench is off; its slot
    # is the chipset's, since each of the others may be an adapter's
    store = {"qom_type": "memory-backend-file", "id": "erst", "size": _PSTORE_BYTES}
    argv += ["-object", _json(**store, mem_path=str(machine.pstore), share=True)]
    argv += ["-device", _json(driver="acpi-erst", memdev="erst", addr=_address(1, 4))]
    for adapter in description.adapters:
        if adapter.end:
            argv += _ports_apart(adapter, machine.network)
        if adapter.end == INITIATOR:
            continue
        for channel in range(adapter.channels):
            argv += ["-device", json.dumps(_adapter_device(adapter, channel))]
        for drive in adapter.drives:
            # QEMU opens all files before it makes a device: the one of another path may stand with a later adapter
            argv += [] if drive.first else ["-blockdev", _drive_node(machine, drive)]
            argv += ["-device", json.dumps(device_arguments(adapter, drive))]
    return argv


_KVM = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PROBE_S = 10.0
SIGN_OF_LIFE = "storqual: bench start"
"""What the guest writes to its console as soon as its first unit runs."""


def _probe_argv(image: BenchImage) -> list[str]:
    """A guest of the bench image that writes nothing back, with its console on our pipe."""
    options = "-no-user-config -nodefaults -display none -machine pc -m 512M -no-reboot -accel kvm -cpu host"
    argv = [PROGRAM, *options.split(), "-serial", "stdio"]
    argv += ["-blockdev", _file_node("root", image.root, read_only=True)]
    argv += ["-device", "virtio-blk-pci,drive=root,bootindex=1"]
    return argv + started_from(image)


def _probe(image: BenchImage) -> Acceleration:
    """Boot the image under KVM and watch its console for ten seconds."""
    began = time.monotonic()
    seen, more = b"", b"."
    with tempfile.TemporaryFile() as problems:
        with child.start(_probe_argv(image), stdin=child.DEVNULL, stdout=subprocess.PIPE, stderr=problems) as guest:
            assert guest.stdout is not None  # noqa: S101 - it is a pipe, for mypy
            while more and (left := _PROBE_S - (time.monotonic() - began)) > 0 and SIGN_OF_LIFE.encode() not in seen:
                if select.select([guest.stdout], [], [], left)[0]:
                    seen += (more := os.read(guest.stdout.fileno(), 65536))
            guest.kill()
        seconds = time.monotonic() - began
        problems.seek(0)
        lines = problems.read().decode("utf-8", "replace").strip().splitlines()
    if SIGN_OF_LIFE.encode() in seen:
        return Acceleration("kvm", f"a guest booted under KVM in {seconds:.1f} s")
    if lines:
        return Acceleration("tcg", f"KVM does not run a guest here: {lines[0]}")
    if "Linux version" in seen.decode("utf-8", "replace"):
        return Acceleration("tcg", f"a guest under KVM started its kernel and was not up within {_PROBE_S:g} s")
    return Acceleration("tcg", f"a guest under KVM gave no sign of life within {_PROBE_S:g} s")


def choose_acceleration(image: BenchImage, counts_instructions: bool = False) -> Acceleration:
    """KVM when it was seen to work since this machine was started, else TCG; `STORQUAL_ACCELERATION` overrides.

    A bench whose clock counts instructions is always emulated: KVM does not count them. Raises BadInputError when KVM
    is asked for all the same, or something unknown.
    """
    forced = os.environ.get("STORQUAL_ACCELERATION", "")
    if counts_instructions and forced in {"", "tcg"}:
        return Acceleration("tcg", "the clock of this bench counts instructions")
    if counts_instructions and forced == "kvm":
        raise BadInputError(["STORQUAL_ACCELERATION is kvm, and a clock that counts instructions needs tcg"])
    if forced in {"kvm", "tcg"}:
        return Acceleration(forced, "set by STORQUAL_ACCELERATION")
    if forced:
        raise BadInputError([f"STORQUAL_ACCELERATION is {forced!r}; expected kvm or tcg"])
    if not _KVM.exists():
        return Acceleration("tcg", f"{_KVM} does not exist")
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return Acceleration("tcg", f"{_KVM} may not be opened by this user")
    version = run([PROGRAM, "--version"]).expect().stdout.splitlines()[0]
    key = f"{_BOOT_ID.read_text(encoding='ascii').strip()} {version}"
    store = cache_folder() / "acceleration.json"
    try:
        known = json.loads(store.read_text(encoding="utf-8"))
        if known["key"] == key:
            return Acceleration(known["name"], known["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # never probed, or by another version: probe again
    choice = _probe(image)
    replace_file(store, json.dumps({"key": key, "name": choice.name, "reason": choice.reason}) + "\n")
    return choice
