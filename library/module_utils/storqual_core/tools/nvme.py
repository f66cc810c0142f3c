# SPDX-License-Identifier: Apache-2.0
"""nvme-cli: namespaces, health, and the volatile write cache (feature 6), which stands for the caching page's WCE.

`list` has had four shapes (1.x and 2.x verbose, 2.3 flat, 2.11 a tree below the host, 3 with controllers below a
namespace), and numbers of `smart-log` have been integers, floats, texts and objects. Text output is localised
(linux-nvme/nvme-cli#2061) and refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import as_int, as_list, as_mapping, as_text, first_line, plain_label, respelt, the_object
from .capabilities import FirmwareImage
from .sg_persist import Registrant, Reservations
from .ss import read_acknowledged

_WRITE_CACHE = 6
_TIMEOUT = 60.0
_AS_JSON = "--output-format=json"
_PATH = re.compile(r"\dc\d+n\d+\Z")
# nvme-cli 1.x and 2.x: `get-feature:0x06 (Volatile Write Cache), Current value:0x00000001`; digits and blanks vary
_FEATURE = re.compile(
    r"get-feature:\s*(0x[0-9a-f]{1,8}|[0-9]{1,9})\b.*?value:\s*(0x[0-9a-f]{1,16}|[0-9a-f]{1,16})\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Namespace:
    """One namespace: its node, the controller's name, PCI address and identity, and its sizes in bytes.

    `unread` is why its sizes are not known; empty when they could be read.
    """

    node: str
    controller: str = ""
    pci: str = ""
    model: str = ""
    serial: str = ""
    firmware: str = ""
    size: int | None = None
    used: int | None = None
    sector: int | None = None
    unread: str = ""


@dataclass(frozen=True)
class SmartLog:
    """SMART information (log page 2) by nvme-cli's names: counts, kelvin, percent; what is no number stands apart."""

    values: Mapping[str, int]
    others: Mapping[str, str] = field(default_factory=dict)


_NAMES = {
    plain_label(name): name
    for name in (
        *("Subsystems", "Controllers", "Namespaces", "Paths", "Controller", "Address", "ModelNumber", "Firmware"),
        *("SerialNumber", "MaximumLBA", "PhysicalSize", "UsedBytes", "SectorSize", "DevicePath", "NameSpace"),
    )
}


_HOLDERS = {"Subsystems", "Controllers", "Namespaces"}


def parse_list(text: str) -> tuple[Namespace, ...]:
    """The namespaces of `nvme list -o json` and `nvme list -v -o json`, each once. Raises ToolError."""
    body = the_object(text, "nvme", "Devices")
    namespaces: dict[str, Namespace] = {}
    devices = respelt(body["Devices"], _NAMES)
    for namespace in _walk(devices, {}):
        # releases 1.x list the hidden paths of multipath beside their namespaces
        if not _PATH.search(namespace.node):
            namespaces.setdefault(namespace.node, namespace)
    entries = [as_mapping(each) for each in as_list(devices)]
    if not namespaces and not all(_HOLDERS & set(each) for each in entries):
        raise ToolError("nvme lists devices in a shape that is not known")
    if not namespaces and re.search(r'"[^"]*(?:Path|Name ?Space)"\s*:\s*"[^"]*nvme\d', text, re.IGNORECASE):
        raise ToolError("nvme lists namespaces in a shape that is not known")
    return tuple(namespaces.values())


def _walk(entries: object, above: Mapping[str, Any], depth: int = 4) -> Iterator[Namespace]:
    """Hosts, subsystems and controllers hold each other in an order that changes; the inherited keys do not.

    A namespace that several controllers reach stands beside or above them, and has what all of them say alike.
    """
    for entry in (as_mapping(each) for each in as_list(entries)):
        known = {**above, **{key: value for key, value in entry.items() if not isinstance(value, (list, dict))}}
        for inner in ("Subsystems", "Controllers") if depth else ():
            yield from _walk(entry.get(inner), known, depth - 1)
        if depth:
            yield from _walk(entry.get("Namespaces"), {**known, **_alike(entry.get("Controllers"))}, depth - 1)
        node = _node(entry)
        if node:
            known.update(_alike(entry.get("Paths")))
            # the flat shape names no controller: its namespaces are named after theirs
            named = re.sub(r"n\d+\Z", "", node[len("/dev/") :]) if "DevicePath" in entry else ""
            size, used, unread = _sizes(entry, node)
            yield Namespace(
                node=node,
                controller=as_text(known.get("Controller", named)),
                pci=_pci(known.get("Address")),
                model=as_text(known.get("ModelNumber")),
                serial=as_text(known.get("SerialNumber")),
                firmware=as_text(known.get("Firmware")),
                size=size,
                used=used,
                sector=as_int(entry.get("SectorSize")),
                unread=unread,
            )


def _pci(address: object) -> str:
    """A controller's PCI address; none for the address of another transport (`traddr=192.0.2.1,trsvcid=4420`)."""
    text = as_text(address).lower()
    return "" if "=" in text else text


def _alike(controllers: object) -> dict[str, str]:
    """What all controllers of a subsystem say alike; empty where they differ, nothing that none of them says."""
    listed = [as_mapping(each) for each in as_list(controllers)]
    names = ("Controller", "Address", "ModelNumber", "SerialNumber", "Firmware")
    answers = {name: {as_text(each.get(name)) for each in listed} for name in names if any(name in x for x in listed)}
    return {name: values.pop() if len(values) == 1 else "" for name, values in answers.items()}


def _sizes(entry: Mapping[str, Any], node: str) -> tuple[int | None, int | None, str]:
    """Bytes of a namespace and of what is used of it, and why they are not known: its blocks tell another size.

    Early releases 2.x printed all three with 32 bits: nothing is known then, for the blocks may be cut as well.
    """
    size, used = as_int(entry.get("PhysicalSize")), as_int(entry.get("UsedBytes"))
    blocks, sector = as_int(entry.get("MaximumLBA")), as_int(entry.get("SectorSize"))
    whole = blocks * sector if blocks and sector else None
    if size is not None and size < 0:
        return None, None, ""
    if size and whole and size != whole:
        return None, None, f"nvme reports two sizes of {node}: {size} bytes, and {blocks} blocks of {sector}"
    # of what does not answer 0 is told
    return size or None, used if used is not None and used >= 0 and (used or size) else None, ""


def _node(entry: Mapping[str, Any]) -> str:
    """A namespace's node: `DevicePath` in the flat shape; in the others `NameSpace` is its name, not its number."""
    path, name = as_text(entry.get("DevicePath")), as_text(entry.get("NameSpace"))
    return path if path.startswith("/dev/") else f"/dev/{name}" if name.startswith("nvme") else ""


def parse_subsystems(text: str) -> dict[str, set[str]]:
    """`nvme list-subsys -o json`: the controllers by the NQN of their subsystem, which may have none.

    Releases 1.x list the paths behind their subsystem, releases 2.x in it, for each host. Raises ToolError.
    """
    # a list by itself is no object
    body = the_object(f'{{"hosts": {text}\n}}' if text.lstrip().startswith("[") else text, "nvme")
    hosts = [as_mapping(host) for host in as_list(body.get("hosts", [body]))]
    if not hosts or not all("Subsystems" in host for host in hosts):
        raise ToolError(f"nvme printed no list of subsystems: {first_line(text)}")
    subsystems: dict[str, set[str]] = {}
    for host in hosts:
        nqn = ""
        for entry in map(as_mapping, as_list(host["Subsystems"])):
            nqn = as_text(entry.get("NQN", "" if "Name" in entry else nqn))
            names = {as_text(as_mapping(path).get("Name")) for path in as_list(entry.get("Paths"))}
            if not nqn or "" in names or not entry.keys() & {"NQN", "Paths"}:
                raise ToolError("nvme lists a subsystem without an NQN, or a path without a controller")
            subsystems.setdefault(nqn, set()).update(names)
    return subsystems


def _ask(runner: Runner, what: str, *words: str, timeout: float = _TIMEOUT) -> str:
    return runner(["nvme", *words], timeout=timeout).expect(what=what).stdout


def read_subsystems(runner: Runner) -> dict[str, set[str]]:
    """The subsystems that nvme-cli sees. Raises ToolError."""
    text = _ask(runner, "NVMe subsystems cannot be listed", "list-subsys", _AS_JSON)
    # where there is nothing, releases say nothing, or print an empty list
    return {} if text.strip() in ("", "[]") else parse_subsystems(text)


def parse_smart_log(text: str) -> SmartLog:
    """`nvme smart-log -o json`. Raises ToolError when it is no health information."""
    printed = the_object(text, "nvme")
    body = {key.lower(): value for key, value in printed.items()}
    if "media_errors" not in body:
        raise ToolError(f"nvme printed an object that is no SMART log: {', '.join(list(printed)[:5])}"[:300])
    values: dict[str, int] = {}
    others: dict[str, str] = {}
    for name, value in _flat(body):
        number = as_int(value)
        if number is None:
            others[name] = as_text(value) or str(value)[:200]
        else:
            values[name] = number
    if not any(values.values()):
        raise ToolError("nvme printed a SMART log of zeros: the drive did not answer")
    return SmartLog(values, others)


def _flat(body: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for key, value in body.items():
        # releases up to 1.x have a slip of the pen here
        name = "critical_warning" if key == "critical_warrning" else str(key)
        if isinstance(value, dict):
            parts = ((str(part).lower(), inner) for part, inner in value.items())
            yield from ((name if part == "value" else f"{name}.{part}", inner) for part, inner in parts)
        elif isinstance(value, list):
            yield from ((f"{name}.{place}", inner) for place, inner in enumerate(value, 1))
        else:
            yield name, value


def read_namespaces(runner: Runner) -> tuple[Namespace, ...]:
    """Every namespace of the machine. Raises ToolError."""
    text = _ask(runner, "NVMe namespaces cannot be listed", "list", "--verbose", _AS_JSON)
    # releases up to 1.x say nothing where there is nothing
    return parse_list(text) if text.strip() else ()


def read_smart_log(runner: Runner, device: str) -> SmartLog:
    """The health information of a controller. Raises ToolError."""
    what = f"the health information of {device} cannot be read"
    return parse_smart_log(_ask(runner, what, "smart-log", device, _AS_JSON))


def parse_feature(text: str, feature: int) -> int:
    """The value that `nvme get-feature` printed for `feature`. Raises ToolError when it did not."""
    for line in text.splitlines():
        match = _FEATURE.search(line)
        if match and int(match.group(1), 16 if match.group(1)[:2].lower() == "0x" else 10) == feature:
            return int(match.group(2), 16)
    raise ToolError(f"nvme printed no value of feature {feature}: {first_line(text)}")


def read_write_cache(runner: Runner, device: str) -> int:
    """1 when the controller's volatile write cache is on, else 0. Raises ToolError when it has none."""
    what = f"{device} has no volatile write cache that can be read"
    return parse_feature(_ask(runner, what, "get-feature", device, f"--feature-id={_WRITE_CACHE}"), _WRITE_CACHE) & 1


def write_write_cache(runner: Runner, device: str, value: int, *, save: bool = False) -> None:
    """Switch the controller's volatile write cache. Raises ToolError."""
    words = ["set-feature", device, f"--feature-id={_WRITE_CACHE}", f"--value={value}", *["--save"] * save]
    _ask(runner, f"the volatile write cache of {device} could not be changed", *words)


_HOLD_FOR = ("", ", registrants only", ", all registrants")
# NVMe Base Specification 2.0, figure on reservation types: those of SCSI by other numbers
_RESERVATION_TYPES = {
    0: "",
    **{1 + 2 * number: f"Write Exclusive{who}" for number, who in enumerate(_HOLD_FOR)},
    **{2 + 2 * number: f"Exclusive Access{who}" for number, who in enumerate(_HOLD_FOR)},
}
_NO_COMMAND = re.compile(r"INVALID_OPCODE|Invalid Command Opcode", re.IGNORECASE)


def parse_reservations(text: str) -> Reservations:
    """`nvme resv-report --eds -o json`: registered hosts by their identifiers of 32 digits. Raises ToolError."""
    body = the_object(text, "nvme", "rtype")
    # release 3 has the words of NVMe 2.1
    lists = (body.get(name) for name in ("regctls", "regctlext", "registrants", "registrantext"))
    listed = [as_mapping(each) for each in as_list(next(filter(None, lists), None))]
    count, kind = as_int(body.get("regctl", body.get("regstrnt"))), as_int(body["rtype"])
    if count != len(listed) or kind is None:
        raise ToolError(f"nvme reports {count} registered controllers, and prints {len(listed)}")
    registrants = tuple(
        Registrant(
            key=hex(as_int(each.get("rkey")) or 0),
            initiator=as_text(each.get("hostid")).lower().replace("-", ""),
            holder=bool((as_int(each.get("rcsts")) or 0) & 1),
        )
        for each in listed
    )
    return Reservations(registrants, _RESERVATION_TYPES.get(kind, f"type {kind}"))


def read_reservations(runner: Runner, node: str) -> Reservations:
    """Which hosts are registered with a namespace; none where its controller knows no reservations.

    Raises ToolError.
    """
    ended = runner(["nvme", "resv-report", node, "--eds", _AS_JSON], timeout=_TIMEOUT)
    if ended.rc != 0 and _NO_COMMAND.search(ended.stdout + ended.stderr):
        return Reservations()
    return parse_reservations(ended.expect(what=f"the reservations of {node} cannot be read").stdout)


_FLASH_TIMEOUT = 120.0
_DOWNLOAD_TIMEOUT = 1800.0
_CAN_DOWNLOAD = 1 << 2
_ACTIVATE_AT_RESET, _ACTIVATE_NOW = 1, 3
# `3616727 (7.2)`: the eight bytes as a number, and as text; those of an empty slot are `0 (........)`
_SLOT = re.compile(r"^(?:0 \(\.*\)|\d+ \((?P<text>.*)\))$")
_SLOTS = re.compile(r"^Firmware Rev Slot (?P<slot>[0-7])$")
# release 3 says nothing of a success, or only whether updates overlapped
_COMMITTED = re.compile(r"\s*\Z|.*(?:Success (?:committing|activating) firmware|Multiple Update Detected)", re.DOTALL)


@dataclass(frozen=True)
class NvmeController:
    """What Identify Controller says: running revision, whether it takes images, slots, which are read-only."""

    revision: str
    downloads: bool
    slots: int
    first_read_only: bool
    without_reset: bool


@dataclass(frozen=True)
class Slots:
    """The firmware slots: the running one, the one that the next reset starts (0: the same), revisions by slot."""

    active: int
    following: int
    revisions: Mapping[int, str]


def parse_controller(text: str) -> NvmeController:
    """`nvme id-ctrl -o json`. Raises ToolError when it lacks what is needed."""
    body = the_object(text, "nvme", "fr")
    capabilities, slots = as_int(body.get("oacs")), as_int(body.get("frmw"))
    if capabilities is None or slots is None or not as_text(body.get("fr")).strip():
        raise ToolError("nvme printed no oacs, frmw and fr of the controller")
    return NvmeController(
        revision=as_text(body.get("fr")).strip(),
        downloads=bool(capabilities & _CAN_DOWNLOAD),
        slots=slots >> 1 & 7,
        first_read_only=bool(slots & 1),
        without_reset=bool(slots & 1 << 4),
    )


_FORMATS_ALL, _ERASES_ALL = 1 << 0, 1 << 1


def formats_alone(runner: Runner, index: str) -> bool:
    """Whether a format with secure erase is of the named namespace only, by FNA of Identify Controller.

    Either bit makes it one of every namespace of the subsystem. Raises ToolError when the controller does not say.
    """
    attributes = as_int(the_object(_json_of(runner, "id-ctrl", index, "the abilities"), "nvme", "fna").get("fna"))
    if attributes is None:
        raise ToolError(f"nvme printed no format attributes (fna) of {index}")
    return not attributes & (_FORMATS_ALL | _ERASES_ALL)


def parse_slots(text: str) -> Slots:
    """`nvme fw-log -o json`, whose object stands below the device's name. Raises ToolError."""
    outer = the_object(text, "nvme")
    inner: Mapping[str, Any] = next((body for body in map(as_mapping, outer.values()) if body), outer)
    place = as_int(inner.get("Active Firmware Slot (afi)"))
    if place is None or not place & 7:
        raise ToolError(f"nvme printed no active firmware slot, but {', '.join(inner)[:200]}")
    revisions = {}
    for name, value in inner.items():
        slot = _SLOTS.match(name)
        if slot is not None:
            shown = _SLOT.match(as_text(value))
            revisions[int(slot.group("slot"))] = ((shown.group("text") or "") if shown else as_text(value)).strip()
    if 0 in revisions:
        # the first releases counted from nought; there is no slot 0
        revisions = {slot + 1: revision for slot, revision in revisions.items()}
    return Slots(
        active=place & 7, following=place >> 4 & 7, revisions={slot: text for slot, text in revisions.items() if text}
    )


def _json_of(runner: Runner, command: str, index: str, what: str) -> str:
    return _ask(runner, f"{what} of {index} could not be read", command, index, _AS_JSON, timeout=_FLASH_TIMEOUT)


def read_controller(runner: Runner, index: str) -> NvmeController:
    """What the controller says of itself. Raises ToolError."""
    return parse_controller(_json_of(runner, "id-ctrl", index, "the abilities"))


COMMAND_BYTES = {"None": 8 + 64, "CRC32C": 8 + 64 + 4}
"""What a command that carries no data takes on a connection by its header digest: header, entry of the submission
queue, digest (NVMe/TCP Transport Specification 1.0, CapsuleCmd PDU), in bytes."""


def read_header_digest(runner: Runner, device: str, peer: str) -> str:
    """The header digest of an NVMe/TCP controller, by what commands take on the connections to its `peer`.

    Empty where that is not known: nvme-cli or ss do not answer, or the bytes fit no digest or both, because data were
    written meanwhile, or because controllers with the same peer differ.
    """
    try:
        before = read_acknowledged(runner, peer)
        read_controller(runner, device)
        sent = read_acknowledged(runner, peer) - before
    except ToolError:
        return ""
    digests = [digest for digest, length in COMMAND_BYTES.items() if sent > 0 and sent % length == 0]
    return digests[0] if len(digests) == 1 else ""


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """The running revision, and `firmware.pending` where the next reset starts another slot. Raises ToolError."""
    versions = {"firmware": read_controller(runner, index).revision}
    slots = parse_slots(_json_of(runner, "fw-log", index, "the firmware slots"))
    if slots.following and slots.following != slots.active:
        versions["firmware.pending"] = slots.revisions.get(slots.following, f"slot {slots.following}")
    return versions


def firmware_objections(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:
    """A controller without the commands, without a slot that may be written, or one that starts no image at once."""
    able = read_controller(runner, index)
    problems = []
    if not able.downloads:
        problems.append(
            f"{index} takes no firmware: its Identify data do not offer Firmware Commit and Image Download"
        )
    elif not _writable(able):
        problems.append(f"{index} has no firmware slot that may be written")
    elif image.activation == "none" and not able.without_reset:
        problems.append(f"{index} starts an image at a reset only; declare `activation: reset` for it")
    return tuple(problems)


def download(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:
    """Transfer an image and commit it to a slot, to be started at once (activation `none`) or by the next reset.

    Raises ToolError.
    """
    slots = parse_slots(_json_of(runner, "fw-log", index, "the firmware slots"))
    slot = _slot_for(index, read_controller(runner, index), slots)
    what = f"{index} did not accept {image.path}"
    _ask(runner, what, "fw-download", index, f"--fw={image.path}", timeout=_DOWNLOAD_TIMEOUT)
    action = _ACTIVATE_NOW if image.activation == "none" else _ACTIVATE_AT_RESET
    ended = runner(["nvme", "fw-commit", index, f"--slot={slot}", f"--action={action}"], timeout=_DOWNLOAD_TIMEOUT)
    if ended.rc != 0 or not _COMMITTED.match(ended.stdout):
        raise ended.failure(f"{index} did not commit {image.path} to slot {slot}")
    answer = next((line.strip() for line in ended.stdout.splitlines() if _COMMITTED.match(line)), "no message")
    return (f"{index}: image transferred and committed to slot {slot} ({answer[:200]})",)


def _writable(able: NvmeController) -> list[int]:
    return [slot for slot in range(able.slots, 0, -1) if not (slot == 1 and able.first_read_only)]


def _slot_for(index: str, able: NvmeController, slots: Slots) -> int:
    """A slot that may be written: another than the running one, the highest first; the running one if it is alone."""
    writable = _writable(able)
    others = [slot for slot in writable if slot != slots.active]
    if not writable:
        raise ToolError(f"{index} has no firmware slot that may be written")
    return others[0] if others else writable[0]


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """`none` when the commit started the image or the controller runs its version, else `reset`. Raises ToolError."""
    if image.activation == "none":
        return "none"
    return "none" if read_controller(runner, index).revision == image.version else "reset"


def activate(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Reset the controller; its namespaces stay. Raises ToolError."""
    _ask(runner, f"{index} could not be reset to start {image.version}", "reset", index, timeout=_FLASH_TIMEOUT)


def write_uncorrectable(runner: Runner, node: str, first: int, count: int) -> None:
    """Write Uncorrectable: reads of `count` blocks from block `first` fail until they are written again.

    What they held is lost. The caller holds the namespace: releases that refuse one that is open are told to go on.
    Raises ToolError, also where the controller does not know the command.
    """
    # the count goes into the command as it is, where 0 stands for one block
    words = ["nvme", "write-uncor", node, f"--start-block={first}", f"--block-count={count - 1}"]
    ended = runner(words, timeout=_TIMEOUT)
    if ended.rc != 0 and "--force" in ended.stdout + ended.stderr:
        ended = runner([*words, "--force"], timeout=_TIMEOUT)
    ended.expect(what=f"blocks of {node} cannot be marked as unreadable")


_OCP_GUID = "0xafd514c97c6f4f9ca4f2bfea2810afc5"
_OCP_MARK = "physical_media_units_written"
_OCP_TEXT = re.compile(
    r"^\s+(?P<label>\S.*?)(?:\s+-)?\s{2,}(?P<value>(?:0x[0-9a-f]{1,32}|[0-9]{1,40})(?: [0-9]{1,20})?)\s*$",
    re.IGNORECASE,
)
_OCP_NAMES = {
    # the names of the first form of the output, where they are not those of the second with blanks in them
    "uncorrectable_read_error_count": "uncorrectable_read_errors",
    "refresh_counts": "refresh_count",
    "max_user_data_erase_counts": "max_user_data_erase_count",
    "min_user_data_erase_counts": "min_user_data_erase_count",
    "number_of_thermal_throttling_events": "thermal_throttling_events",
    "pcie_correctable_error_count": "pcie_correctable_errors",
    "unaligned_i_o": "unaligned_io",
}
_OCP_ABSENT = {"capacitor_health": 0xFFFF}
"""Values that stand for none: a drive without a capacitor against the loss of power."""


def parse_ocp_log(text: str) -> SmartLog:
    """`nvme ocp smart-add-log` (log page C0h of the OCP specification), as JSON in both its forms or as text.

    Counts have the names of the second form of the JSON (`bad_user_nand_blocks_raw`); numbers of 128 bits, which are
    told in halves, are whole. Names are from nvme-cli's source, no drive with the page was at hand. Raises ToolError
    when it is another page, or another command's answer.
    """
    printed = _ocp_text(text) if "SMART Cloud Attributes" in text else the_object(text, "nvme")
    values: dict[str, int] = {}
    others: dict[str, str] = {}
    halves: dict[str, dict[str, int]] = {}
    for name, value in _flat({_ocp_name(str(key)): inner for key, inner in printed.items()}):
        number = as_int(value)
        half = re.match(r"(.*)[._](hi|lo)\Z", name)
        if number is None:
            others[name] = as_text(value) or str(value)[:200]
        elif half is not None:
            halves.setdefault(half.group(1), {})[half.group(2)] = number
        elif _OCP_ABSENT.get(name) != number:
            values[name] = number
    for name, parts in halves.items():
        if set(parts) != {"hi", "lo"}:
            raise ToolError(f"nvme tells one half of {name} only")
        values[name] = (parts["hi"] << 64) + parts["lo"]
    if _OCP_MARK not in values:
        raise ToolError(f"nvme printed an object that is no OCP health log: {', '.join(list(printed)[:5])}"[:300])
    guid = others.get("log_page_guid", "")
    if guid and guid.lower() != _OCP_GUID:
        raise ToolError(f"the drive's log page C0h is another vendor's, not that of OCP (GUID {guid[:40]})")
    return SmartLog(values, others)


def _ocp_name(printed: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", printed.lower()).strip("_")
    return _OCP_NAMES.get(name, name)


def _ocp_text(text: str) -> dict[str, Any]:
    """The labels of the text form, each with one number, or two that are halves of one."""
    labels: dict[str, Any] = {}
    for line in text.replace("\t", "  ").splitlines():
        match = _OCP_TEXT.match(line)
        if match is not None:
            high, blank, low = match.group("value").partition(" ")
            label = match.group("label")
            if label.lower().endswith("guid"):
                labels[label] = high
            else:
                labels[label] = {"hi": high, "lo": low} if blank else str(int(high, 16)) if "x" in high else high
    return labels


def read_ocp_log(runner: Runner, device: str) -> SmartLog | None:
    """The OCP health log of a controller; None where the drive, or this nvme-cli, does not have it.

    Raises ToolError for an answer that cannot be read.
    """
    ended = runner(["nvme", "ocp", "smart-add-log", device, _AS_JSON], timeout=_TIMEOUT)
    return parse_ocp_log(ended.stdout) if ended.rc == 0 and ended.stdout.strip() else None
