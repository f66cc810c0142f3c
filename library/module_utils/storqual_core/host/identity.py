# SPDX-License-Identifier: Apache-2.0
"""Who a drive and an adapter are: names that stay when the device moves to another slot or gets another node.

What a device says is hostile text: it is kept byte for byte (one Latin-1 character each), only blanks and NULs at
its end are cut, and it is never interpreted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Mapping

_HEX = re.compile(r"[0-9a-f]{16}(?:[0-9a-f]{8}){0,2}\Z")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_NOTHING = re.compile(r"(?:0x|eui\.|uuid\.)[0-]+\Z")
_PREFIX = re.compile(r"(?:nvme-|wwn-|scsi-3)", re.IGNORECASE)
_MAKER = re.compile(r"0x[56]([0-9a-f]{6})")
_TRAILING = b" \0\n"
# old EMC Symmetrix: a NAA name stands in the page without a designator before it, as sg_inq knows as well
_BARE_NAA = b"\x00\x83\x00\x10\x60\x06\x04\x80"


@dataclass(frozen=True)
class DriveIdentity:
    """What a drive says of itself; `wwn` is normalised, sizes are bytes, `rotation` is rpm (0 or 1: solid state)."""

    wwn: str
    serial: str
    vendor: str
    model: str
    revision: str
    size: int
    rotation: int | None

    @property
    def id(self) -> str:
        return self.wwn or self.serial


@dataclass(frozen=True)
class AdapterIdentity:
    """An adapter's place, its kind (ids as four hex digits each), and its serial where it has one.

    `pci` is its PCI address. What rests on no card of its own has no ids, and there `pseudo/adapter0` (scsi_debug)
    or `pseudo/iscsi_tcp` (an initiator that works through network cards, all its ports together).
    """

    pci: str
    vendor: str
    device: str
    subsystem_vendor: str
    subsystem_device: str
    serial: str


SOFTWARE_INITIATORS = (
    *("fcoe", "iscsi_tcp", "nvme_tcp", "nvme_rdma", "nvme_fc", "nvme_loop"),
    *("ib_iser", "bnx2fc", "bnx2i", "cxgb3i", "cxgb4i"),
)
"""Drivers of fabrics that have no storage function on the PCI bus; all ports of one are one adapter, by its name."""


def pseudo_address(name: str) -> str:
    """The address of a host of scsi_debug, by its name on the kernel's bus `pseudo`, or of a software initiator."""
    return f"pseudo/{name}"


def declared_address(declared: Mapping[str, Any]) -> str:
    """The address that an inventory gives an adapter, as the bench names it; `` when it gives none."""
    if declared.get("pseudo"):
        return pseudo_address(str(declared["pseudo"]))
    pci, driver = str(declared.get("pci") or "").lower(), str(declared.get("driver") or "").replace("-", "_")
    if not pci and driver in SOFTWARE_INITIATORS:
        return pseudo_address(driver)
    return f"0000:{pci}" if pci.count(":") == 1 else pci


def normalise_wwn(text: str) -> str:
    """One spelling for one name: `0x5000c500…` (NAA), `eui.…`, `uuid.…`, `t10.…`. `` stays ``.

    Accepts the spellings of sysfs, udev links and vendor tools. Raises ValueError for a text that is no such name.
    """
    plain = _PREFIX.sub("", text.strip(), count=1)
    if not plain:
        return ""
    lower = plain.lower()
    if lower.startswith("t10."):
        return lower
    if lower.startswith("iqn."):
        return lower
    for prefix in ("eui.", "nguid."):
        if lower.startswith(prefix):
            return "eui." + _hexadecimal(lower[len(prefix) :], text)
    if lower.startswith("uuid."):
        lower = lower[len("uuid.") :]
        if _UUID.match(lower) is None:
            raise ValueError(f"{text!r} is not a UUID")
    if _UUID.match(lower):
        return "uuid." + lower
    for prefix in ("naa.", "0x"):
        if lower.startswith(prefix):
            lower = lower[len(prefix) :]
            break
    return "0x" + _hexadecimal(lower, text)


def _hexadecimal(digits: str, text: str) -> str:
    plain = digits.replace(":", "").replace("-", "").replace(" ", "")
    if _HEX.match(plain) is None:
        raise ValueError(f"{text!r} is not a WWN of 16 or 32 hexadecimal digits, as in 0x5000c50015ea71a0")
    return plain


def wwn_of_wwid(text: str) -> str:
    """The normalised name in a sysfs `wwid` (SCSI or NVMe); `` for a text that the kernel made up from the serial."""
    return "" if text.lower().startswith("nvme.") else printed_wwn(text)


def printed_wwn(text: str) -> str:
    """The normalised name in what a tool prints; `` for a text that is none: masked, not available, all zeros."""
    try:
        name = normalise_wwn(text)
    except ValueError:
        return ""
    return "" if _NOTHING.match(name) else name


def port_name(value: object) -> str:
    """The name of a port of a fabric: a WWPN in one spelling; an iSCSI name or an address as it is written."""
    # YAML 1.1, as Ansible reads it, makes a number of an unquoted WWPN
    plain = f"0x{value:016x}" if isinstance(value, int) else str(value or "").strip()
    return printed_wwn(plain) or plain


def names_namespace(name: str) -> bool:
    """Whether a normalised WWN is of the kind that NVMe namespaces have; several of a controller share its serial."""
    return name.startswith(("eui.", "uuid."))


def same_maker(name: str, other: str) -> bool:
    """Whether two normalised WWNs (NAA 5 or 6) were given by one maker: a controller's names are no drive's."""
    made = [_MAKER.match(each) for each in (name, other)]
    return None not in made and len({match.group(1) for match in made if match}) == 1


def designators(page: bytes) -> list[tuple[int, int, bytes]]:
    """(association, type, value) of each complete designator of a raw VPD page 0x83; a cut-off one is left out."""
    if len(page) < 4 or page[1] != 0x83:
        return []
    end = min(len(page), 4 + int.from_bytes(page[2:4], "big"))
    entries = []
    place = 4
    while place + 4 <= end:
        length = page[place + 3]
        if place + 4 + length > end:
            break
        kind = page[place + 1]
        entries.append(((kind >> 4) & 3, kind & 0x0F, bytes(page[place + 4 : place + 4 + length])))
        place += 4 + length
    return entries


def wwn_of_page(page: bytes) -> str:
    """The best name of the logical unit in a raw VPD page 0x83: NAA, EUI-64, UUID, SCSI name, T10; `` for none."""
    if page[:8] == _BARE_NAA and len(page) >= 20:
        return "0x" + page[4:20].hex()
    names: dict[int, str] = {}
    for association, kind, value in designators(page):
        if association == 0 and any(value):
            name = _name_of_designator(kind, value)
            if name:
                order = {3: 0, 2: 1, 10: 2, 8: 3, 1: 4}[kind]
                # of several of one kind the longest is the most particular, as the kernel has it
                if order not in names or len(name) > len(names[order]):
                    names[order] = name
    return names[min(names)] if names else ""


def _name_of_designator(kind: int, value: bytes) -> str:
    if kind == 3 and len(value) in (8, 16):
        return "0x" + value.hex()
    if kind == 2 and len(value) in (8, 12, 16):
        return "eui." + value.hex()
    if kind == 10 and len(value) == 18:
        text = value[2:].hex()
        return f"uuid.{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    if kind == 8:
        return wwn_of_wwid(value.rstrip(_TRAILING).decode("latin-1"))
    if kind == 1:
        text = value.rstrip(_TRAILING).decode("latin-1")
        return f"t10.{text.lower()}" if text else ""
    return ""


def unit_serial(page: bytes) -> str:
    """The serial number in a raw VPD page 0x80, `` when the page is not one."""
    if len(page) < 4 or page[1] != 0x80:
        return ""
    length = int.from_bytes(page[2:4], "big")
    return bytes(page[4 : 4 + length]).rstrip(_TRAILING).decode("latin-1")


def same_text(written: str, read: str) -> bool:
    """Whether an inventory's text is what the device said: equal as bytes, whether written as UTF-8 or Latin-1."""
    cut = written.rstrip(" \0")
    return cut == read or cut.encode("utf-8", "surrogateescape") == read.encode("latin-1", "replace")
