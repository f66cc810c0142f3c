# SPDX-License-Identifier: Apache-2.0
"""lspci (pciutils): what a PCI function says of itself beyond sysfs: vital product data, link, errors, slot.

Two outputs: `-vmmk` for programs (lspci(8)), records of `Tag: value` with blank lines between, a tag may repeat;
and `-vvv`, which alone shows vital product data, link and error status, for people and indented in a way that mail
and pages change. Nothing of it is dropped: what has no field of its own stands in `lines`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK

_TIMEOUT = 120.0
_ADDRESS = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_SLOT = re.compile(rf"{_ADDRESS}\Z")
_HEAD = re.compile(rf"^({_ADDRESS}) ([^:]+): (.*?)(?: \(rev ([0-9a-f]+)\))?(?: \(prog-if .*\))?$")
# the rest of a function's line that mail wrapped
_WRAPPED = re.compile(r"^[^:]* \(rev [0-9a-f]+\)(?: \(prog-if .*\))?$")
_TAG = re.compile(r"^([A-Z][A-Za-z]{1,15}):(?:\s+(.*))?$")
_KNOWN = ("Slot", "Class", "Vendor", "Device", "SVendor", "SDevice", "Rev", "Driver", "Module", "PhySlot", "NUMANode")
_LINK = re.compile(r"^Lnk(Cap|Sta)\s*:.*?\bSpeed ([0-9.]+ ?GT/s|unknown)(?: \([^)]*\))?, Width x(\d+)\b", re.I)
_VPD = re.compile(r"^\[([A-Z0-9]{2})\] ([^:]+?)\s*:(?: (.*))?$")
_STATUS = re.compile(r"^(UESta|CESta|DevSta)\s*:\s+(.*)$", re.IGNORECASE)
_REGISTERS = {name.lower(): name for name in ("UESta", "CESta", "DevSta")}
_LONG = re.compile(
    r"(?:Subsystem|Kernel (?:driver in use|modules)|Physical Slot|Lnk(?:Cap|Sta)|(?:Dev|UE|CE)Sta|\[\w{2}\] [^:]+):",
    re.IGNORECASE,
)
# since pciutils 3.10 the flags go on in lines of their own
_MORE_FLAGS = re.compile(r"^[A-Za-z_0-9]+[+-](?: [A-Za-z_0-9]+[+-])*$")


@dataclass(frozen=True)
class PciFunction:
    """A PCI function. `address` with its domain; link speeds as printed (`8GT/s`, `unknown`); VPD by keyword (`SN`).

    `unread` is why a record cannot be read, whose address is then empty.
    `errors`: flags that are set, as `UESta UnsupReq`. `lines`: everything that has no field here.
    """

    address: str
    kind: str = ""
    name: str = ""
    revision: str = ""
    subsystem: str = ""
    driver: str = ""
    modules: tuple[str, ...] = ()
    slot: str = ""
    numa_node: str = ""
    link_speed: str = ""
    link_width: int | None = None
    link_speed_max: str = ""
    link_width_max: int | None = None
    vpd: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    unread: str = ""


def _full(address: str) -> str:
    """With its domain: lspci leaves out 0000 unless it is asked for it."""
    return address if address.count(":") == 2 else f"0000:{address}"


def parse_records(text: str) -> tuple[PciFunction, ...]:
    """`lspci -vmmk[n]`. A record with a line that is no `Tag: value`, or without its Slot, is told as unread.

    Raises ToolError when none can be read.
    """
    functions: list[PciFunction] = []
    lines = "\n".join(text.lstrip(BYTE_ORDER_MARK).splitlines()).strip("\n")
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", lines):
        functions += _record_or_why(paragraph)
    if functions and all(each.unread for each in functions):
        raise ToolError(functions[0].unread)
    return tuple(functions)


def _record_or_why(paragraph: str) -> list[PciFunction]:
    """The function of a record, or why it cannot be read: that says nothing against the others."""
    try:
        tags = _tags(paragraph.split("\n"))
        return [_of_tags(tags)] if tags else []
    except ToolError as problem:
        return [PciFunction("", lines=(paragraph[:300],), unread=str(problem))]


def _tags(lines: list[str]) -> dict[str, list[str]]:
    """The values of a record by tag, a value that is wrapped as one. Raises ToolError for a line that is none."""
    tags: dict[str, list[str]] = {}
    last: list[str] = []
    for line in lines:
        match = _TAG.match(line.rstrip())
        if match is not None:
            last = tags.setdefault(match.group(1), [])
            last.append((match.group(2) or "").strip())
        elif line.strip() and last and line[0] in " \t":
            last[-1] = f"{last[-1]} {line.strip().lstrip(': ')}"
        elif line.strip():
            raise ToolError(f"lspci -vmm printed {line.strip()[:80]!r} where `Tag: value` was expected")
    return tags


def _of_tags(tags: Mapping[str, list[str]]) -> PciFunction:
    once = {tag: values[0] for tag, values in tags.items()}
    if len(tags.get("Slot", ())) > 1:
        raise ToolError(f"lspci -vmm printed a record of several functions: {', '.join(tags['Slot'])[:200]}")
    # very old releases print `Device:` for the slot; they cannot be told apart safely, so they are refused
    address = once.get("Slot", "")
    if _SLOT.match(address) is None:
        raise ToolError(f"lspci -vmm printed a record without the address of its function: {once}"[:300])
    return PciFunction(
        address=_full(address),
        kind=once.get("Class", ""),
        name=" ".join(once[tag] for tag in ("Vendor", "Device") if once.get(tag)),
        revision=once.get("Rev", ""),
        subsystem=" ".join(once[tag] for tag in ("SVendor", "SDevice") if once.get(tag)),
        driver=once.get("Driver", ""),
        modules=tuple(tags.get("Module", ())),
        slot=once.get("PhySlot", ""),
        numa_node=once.get("NUMANode", ""),
        lines=tuple(f"{tag}: {value}" for tag, values in tags.items() if tag not in _KNOWN for value in values),
    )


def parse_verbose(text: str) -> tuple[tuple[PciFunction, ...], tuple[str, ...]]:
    """`lspci -k` and `lspci -v` to `-vvv`: the functions, and lines that stand before the first of them.

    Raises ToolError when there is no function.
    """
    notes: list[str] = []
    before = ""
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for line in dedent(text.lstrip(BYTE_ORDER_MARK)).splitlines():
        head = _HEAD.match(line.rstrip())
        if blocks and not blocks[-1][1] and _WRAPPED.match(line.strip()):
            head = _HEAD.match(f"{blocks.pop()[0].string} {line.strip()}")
        if head:
            blocks.append((head, []))
        elif line.strip() and blocks and blocks[-1][1] and _unended(blocks[-1][1][-1], before, line):
            blocks[-1][1][-1] += f" {line.strip().lstrip(': ')}"
        elif line.strip():
            (blocks[-1][1] if blocks else notes).append(line.strip())
            before = line
    if not blocks:
        raise ToolError(f"lspci shows no PCI function: {notes[0][:200] if notes else 'it printed nothing'}")
    return tuple(_of_block(head, lines) for head, lines in blocks), tuple(notes)


def _unended(last: str, before: str, line: str) -> bool:
    """Whether a line is the rest of the one before it: further in, behind a comma or within brackets."""
    indents = [len(each) - len(each.lstrip()) for each in (before.expandtabs(), line.expandtabs())]
    unended = last.endswith(",") or last.count("(") > last.count(")")
    return indents[1] > indents[0] and (unended or bool(_LONG.match(last)))


def _of_block(head: re.Match[str], lines: list[str]) -> PciFunction:
    words = {"subsystem": "", "kernel driver in use": "", "kernel modules": "", "physical slot": "", "numa node": ""}
    links: dict[str, tuple[str, int]] = {}
    vpd: dict[str, str] = {}
    errors: list[str] = []
    rest: list[str] = []
    register = ""
    for line in lines:
        key, colon, value = line.partition(":")
        key = key.strip().lower()
        before, register = register, ""
        link, product, status = _LINK.match(line), _VPD.match(line), _STATUS.match(line)
        if colon and key in words and not words[key]:
            words[key] = value.strip()
        elif link and link.group(1).lower() not in links:
            links[link.group(1).lower()] = (link.group(2), int(link.group(3)[:6]))
        elif product and product.group(1) not in vpd:
            vpd[product.group(1)] = (product.group(3) or "").strip()
        elif status or (before and _MORE_FLAGS.match(line)):
            register, printed = (_REGISTERS[key], status.group(2)) if status else (before, line)
            flags = (word[:-1] for word in printed.split() if word.endswith("+"))
            errors += [f"{register} {flag}" for flag in flags if flag not in ("AuxPwr", "TransPend")]
        else:
            rest.append(line)
    speed, width = links.get("sta", ("", None))
    speed_max, width_max = links.get("cap", ("", None))
    return PciFunction(
        address=_full(head.group(1)),
        kind=head.group(2),
        name=head.group(3),
        revision=head.group(4) or "",
        subsystem=words["subsystem"],
        driver=words["kernel driver in use"],
        modules=tuple(word.strip() for word in words["kernel modules"].split(",") if word.strip()),
        slot=words["physical slot"],
        numa_node=words["numa node"],
        link_speed=speed,
        link_width=width,
        link_speed_max=speed_max,
        link_width_max=width_max,
        vpd=vpd,
        errors=tuple(errors),
        lines=tuple(rest),
    )


def read_functions(runner: Runner) -> tuple[PciFunction, ...]:
    """Every PCI function of the machine; vital product data only as root. Raises ToolError."""
    return parse_verbose(runner(["lspci", "-D", "-vvv"], timeout=_TIMEOUT).expect().stdout)[0]


def read_records(runner: Runner) -> tuple[PciFunction, ...]:
    """Every PCI function by numeric ids, in little text. Raises ToolError."""
    return parse_records(runner(["lspci", "-D", "-vmmkn"], timeout=_TIMEOUT).expect().stdout)
