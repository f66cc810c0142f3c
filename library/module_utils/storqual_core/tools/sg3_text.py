# SPDX-License-Identifier: Apache-2.0
"""sg3_utils for people: all mode pages of a device at once (sg_modes -a), its INQUIRY (sg_inq), a VPD page as hex.

`sg3` writes, by bytes; this reads what a fact set wants, one command per device. Pages are kept as bytes, because the
headings differ between releases and device types, and the bytes do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping

from ..kit.command import Completed, Runner
from ..kit.errors import ToolError
from .sg3 import check_page, parse_hex_bytes, printed_number, status_sentence

_TIMEOUT = 60.0
_UNIT_ATTENTION = 6
_HEX_LINE = re.compile(r"^\s*[0-9a-f]{2,4}\s{3,}([0-9a-f]{2}(?: {1,2}[0-9a-f]{2})*)\s*$")
_PAGE = re.compile(r"^>> (.*?), page_control: (\w+)\s*$")
_IDENTITY = re.compile(r"^\s{2,}(\S.*?)\s+peripheral_type: (.+?)(?: \[0x[0-9a-f]+\])?\s*$")
_FLAG = re.compile(r"\[?\b([A-Za-z0-9][A-Za-z0-9_]*)=(0x[0-9a-fA-F]{1,8}|[0-9]{1,9})\b\]?")
_TYPE = re.compile(r"Peripheral device type: (.+?)\s*$")
_WORDS = {
    "Vendor identification": "vendor",
    "Product identification": "product",
    "Product revision level": "revision",
    "Unit serial number": "serial",
}


@dataclass(frozen=True)
class ModeSense:
    """A device's mode pages by (page, subpage), with the heading's title of each; lines of the header in `notes`."""

    identity: str
    kind: str
    pages: Mapping[tuple[int, int], bytes]
    titles: Mapping[tuple[int, int], str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inquiry:
    """Standard INQUIRY data: who a device is, its type, its flags by acronym, and lines that are none of these."""

    vendor: str = ""
    product: str = ""
    revision: str = ""
    serial: str = ""
    kind: str = ""
    flags: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def parse_mode_pages(text: str) -> ModeSense:
    """`sg_modes -a`. A page that is shorter than it says is a note; raises ToolError when no page is whole."""
    identity = kind = title = ""
    notes: list[str] = []
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        head, who, data = _PAGE.match(line), _IDENTITY.match(line), _HEX_LINE.match(line)
        if head:
            title = head.group(1)
            blocks.append((title, []))
        elif data and title:
            blocks[-1][1].append(data.group(1))
        elif who and not identity:
            identity, kind = " ".join(who.group(1).split()), who.group(2)
        elif line.strip():
            notes.append(line.strip())
    pages: dict[tuple[int, int], bytes] = {}
    titles: dict[tuple[int, int], str] = {}
    for name, lines in blocks:
        data_bytes = parse_hex_bytes(" ".join(lines))
        if not data_bytes:
            notes.append(f"{name}: no data")
            continue
        number = data_bytes[0] & 0x3F
        if number == 0:
            # the vendor's own page need not have the form of a page
            notes.append(f"{name}: {data_bytes.hex(' ')}")
            continue
        subpage = data_bytes[1] if data_bytes[0] & 0x40 and len(data_bytes) > 1 else 0
        try:
            pages[number, subpage] = check_page(data_bytes, number, subpage)
        except ToolError as problem:
            # one page that a drive does not send whole says nothing against the others
            notes.append(f"{name}: {problem}: {data_bytes.hex(' ')}")
        else:
            titles[number, subpage] = name
    if not pages:
        raise ToolError(f"sg_modes printed no mode page: {notes[-1][:200] if notes else 'nothing'}")
    return ModeSense(identity, kind, pages, titles, tuple(notes))


def parse_inquiry(text: str) -> Inquiry:
    """`sg_inq`. Raises ToolError when it does not say who the device is."""
    words: dict[str, str] = {}
    flags: dict[str, int] = {}
    kind = ""
    notes: list[str] = []
    for line in text.splitlines():
        key, colon, value = line.strip().partition(":")
        kind_match = _TYPE.search(line)
        if colon and key in _WORDS and _WORDS[key] not in words:
            words[_WORDS[key]] = value.strip()
            continue
        found = _FLAG.findall(line)
        flags.update({name: printed_number(number) for name, number in found})
        if kind_match:
            kind = kind_match.group(1)
        elif line.strip() and not found:
            notes.append(line.strip())
    if "vendor" not in words or "product" not in words:
        said = notes[-1][:200] if notes else "it printed nothing"
        raise ToolError(f"sg_inq does not identify the device: {said}")
    return Inquiry(**words, kind=kind, flags=flags, notes=tuple(notes))


def parse_hex_file(text: str) -> bytes:
    """Bytes as `sg_vpd -HHH` prints and `--inhex` reads them: two digits each, `#` begins a comment.

    What `-HH` prints in front of each line, further off, is the place of its first byte and none itself.
    """
    lines = [line.partition("#")[0] for line in text.splitlines()]
    placed = [(_HEX_LINE.match(line), line) for line in lines]
    data = parse_hex_bytes(" ".join(match.group(1) if match else line for match, line in placed), "sg_vpd")
    if not data:
        raise ToolError("there is no byte in this hexadecimal text")
    return data


def _ask(runner: Runner, argv: list[str], what: str) -> Completed:
    ended = runner(argv, timeout=_TIMEOUT)
    if ended.rc == _UNIT_ATTENTION:
        # the first command after a reset only delivers the news
        ended = runner(argv, timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ToolError(f"{what}: {status_sentence(ended.rc)}; command: {ended.line}")
    return ended


def read_mode_pages(runner: Runner, device: str) -> ModeSense:
    """All current mode pages of a device. Raises ToolError."""
    return parse_mode_pages(_ask(runner, ["sg_modes", "-a", device], f"the mode pages of {device}").stdout)


def read_inquiry(runner: Runner, device: str) -> Inquiry:
    """Who a device is that is no disk, so that the kernel does not keep its serial number. Raises ToolError."""
    return parse_inquiry(_ask(runner, ["sg_inq", device], f"the identity of {device}").stdout)


def read_vpd_page(runner: Runner, device: str, page: int) -> bytes:
    """A raw VPD page, for kernels that do not show it in sysfs (before 3.15). Raises ToolError."""
    ended = _ask(runner, ["sg_vpd", "-HHH", f"--page=0x{page:02x}", device], f"VPD page 0x{page:02x} of {device}")
    return parse_hex_file(ended.stdout)
