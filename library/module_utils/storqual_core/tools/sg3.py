# SPDX-License-Identifier: Apache-2.0
"""sg3_utils: mode pages as bytes (sg_modes), one masked MODE SELECT (sg_wr_mode), blocks marked as unreadable.

A page begins with its title and number in brackets (`Write error counter page  [0x2]`); below it stand names and
values, with `=` or a colon between them. Names that come again in a page (phys, self-tests) are kept with a number.
What a phy tells of events comes twice, as counters and as descriptors of events, which are kept by another name. Some
pages have no number in their title; these are counted down from -1, and their values are no other page's.

`sg3` writes, by bytes; this reads what a fact set wants, one command per device. Pages are kept as bytes, because the
headings differ between releases and device types, and the bytes do not.

The text tells the same thing three times (last block, number of blocks, bytes), in every release the same way but for
the first label; where the three do not agree the text is refused.

Text output of sg_modes is for people and differs between releases; the bytes do not (JSON came after 1.48 and not
for this tool). Exit statuses are those of the sg3_utils manual page, which sdparm shares.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass, field
from typing import Mapping, Sequence

from ..kit.command import Completed, Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import Fields, first_line, read_lines
from ..kit.settings import ModeField

_LOG_TIMEOUT = 120.0
_UNIT_ATTENTION = 6
_TITLE = re.compile(
    r"^(?P<title>\S.*?)\s+\[0x(?P<page>[0-9a-f]{1,2})(?:,\s*0x(?P<subpage>[0-9a-f]{1,2}))?\]:?\s*$", re.I
)
_UNDECODED = re.compile(
    r"^(?:No ascii information for|Unable to decode) page ?= ?0x(?P<page>[0-9a-f]{1,2})"
    r"(?:,\s*subpage ?= ?0x(?P<subpage>[0-9a-f]{1,2}))?",
    re.IGNORECASE,
)
_UNNUMBERED = re.compile(
    # a page of an enclosure, of a drive's modes, or of an adapter's configuration, is no log page
    r"^(?!.*\b(?:diagnostic|mode page|Unit Page \d))"
    r"(?:\S[^=:]*\bpages?\b[^=:]*:?|\S[^=:]*\bpage\b[^=:]*, subpage=\d+\S*|Unable to decode \S.*)\s*$",
    re.IGNORECASE,
)
_EVENTS = re.compile(r"^\s*Phy event descriptors\s*:", re.IGNORECASE)
# a label may compare (`commands whose size <= segment size = 5`)
_VALUE = re.compile(r"^(?P<label>(?:[<>]=|[^=:])+?)\s*(?<![<>])[=:]\s*(?P<value>.*)$")
_PAIR = re.compile(r",\s+(?=[A-Za-z][^,=]*=)")
_SUPPORTED = re.compile(r"^\s*0x(?P<page>[0-9a-f]{1,2})(?:,0x(?P<subpage>[0-9a-f]{1,2}))?\s+\S", re.IGNORECASE)
_COUNT = re.compile(r"^[0-9]{1,20}\b(?!\s*[./:])")
_PHYS = re.compile(r"^\s*number of phys\s*=\s*([0-9]{1,9})\s*$", re.IGNORECASE | re.MULTILINE)
_PHY = re.compile(r"^\s*phy identifier\s*=", re.IGNORECASE | re.MULTILINE)
_ERROR_PAGES = {0x02: "write", 0x03: "read", 0x04: "read_reverse", 0x05: "verify", 0x06: "non_medium"}


_PORTS = 0x18
_LINK = re.compile(r"invalid dword|running disparity error|loss of dword sync|phy reset problem", re.IGNORECASE)


@dataclass(frozen=True)
class LogPage:
    """One page: title, values by name as printed, its lines without a value; `unread` is why it is not whole."""

    title: str
    values: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unread: str = ""


def parse_log_pages(text: str) -> dict[tuple[int, int], LogPage]:
    """The pages of `sg_logs -a`, or of one page, by number and subpage.

    A page that tells another number of phys than it lists is `unread`. Raises ToolError when there is no page.
    """
    pages: dict[tuple[int, int], LogPage] = {}
    body: dict[tuple[int, int], tuple[str, Fields, list[str]]] = {}
    number: tuple[int, int] | None = None
    counted: dict[tuple[int, int], list[int]] = {}
    # how far the descriptors of a phy's events are indented at least
    events: int | None = None
    for line in text.splitlines():
        title = _TITLE.match(line) or _UNDECODED.match(line)
        indent = len(line) - len(line.lstrip())
        if title is not None:
            number = int(title.group("page"), 16), int(title.group("subpage") or "0", 16)
            body.setdefault(number, (title.groupdict().get("title") or line.strip(), Fields(), []))
        elif _UNNUMBERED.match(line):
            number = min(-1, *(page - 1 for page, _ in body)) if body else -1, 0
            body[number] = line.strip(), Fields(), []
        elif line.strip() and number is not None:
            _, fields, notes = body[number]
            phys = counted.setdefault(number, [0, 0])
            phys[0] += sum(map(int, _PHYS.findall(line)))
            phys[1] += len(_PHY.findall(line))
            events = (
                indent + 1 if _EVENTS.match(line) else events if events is not None and indent >= events else None
            )
            _take(line.strip(), fields, notes, "Phy event: " if events is not None else "")
    for key, (heading, fields, notes) in body.items():
        total, listed = counted.get(key, (0, 0))
        odd = f"sg_logs reports {total} phys and lists {listed}" if total and total != listed else ""
        pages[key] = LogPage(heading, fields.printed(), tuple(notes), odd)
    if not pages:
        raise ToolError(f"sg_logs printed no log page: {first_line(text)}")
    return pages


def _take(line: str, fields: Fields, notes: list[str], before: str) -> None:
    """One line below a title: values, their names with `before` in front, a supported page's name, or a note."""
    if _SUPPORTED.match(line):
        notes.append(line)
        return
    for part in _PAIR.split(line) if line.count("=") > 1 else [line]:
        match = _VALUE.match(part)
        if match is None:
            notes.append(part)
        else:
            fields.add(before + match.group("label"), match.group("value").strip())


def error_counters(pages: Mapping[tuple[int, int], LogPage]) -> dict[str, int]:
    """The whole numbers of the pages that count errors, by kind and name (`write.Total uncorrected errors`)."""
    return {
        f"{_ERROR_PAGES[page]}.{name}": int(match.group(0))
        for (page, subpage), log in pages.items()
        if page in _ERROR_PAGES and not subpage
        for name, value in log.values.items()
        for match in [_COUNT.match(value)]
        if match
    }


def link_counters(pages: Mapping[tuple[int, int], LogPage]) -> dict[str, int]:
    """What the drive counts of errors on its links, all of its phys together (`link.Invalid DWORD count`)."""
    counters: dict[str, int] = {}
    page = pages.get((_PORTS, 0))
    for name, value in (page.values if page is not None and not page.unread else {}).items():
        label = re.sub(r" #\d+\Z", "", name)
        match = _COUNT.match(value)
        if match and _LINK.match(label):
            counters[f"link.{label}"] = counters.get(f"link.{label}", 0) + int(match.group(0))
    return counters


def read_log_pages(runner: Runner, device: str) -> dict[tuple[int, int], LogPage]:
    """All log pages of a drive. Raises ToolError."""
    argv = ["sg_logs", "-a", device]
    return parse_log_pages(answer(runner, argv, f"the log pages of {device}", timeout=_LOG_TIMEOUT).stdout)


_TIMEOUT = 60.0
_HEX_LINE = re.compile(r"^\s*[0-9a-f]{2,4}\s{3,}([0-9a-f]{2}(?: {1,2}[0-9a-f]{2})*)\s*$")
_PAGE = re.compile(r"^>> (.*?), page_control: (\w+)\s*$")
_IDENTITY = re.compile(r"^\s{2,}(\S.*?)\s+peripheral_type: (.+?)(?: \[0x[0-9a-f]+\])?\s*$")
_NAMED_NUMBER = re.compile(r"\[?\b([A-Za-z0-9][A-Za-z0-9_]*)=(0x[0-9a-fA-F]{1,8}|[0-9]{1,9})\b\]?")
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
    for line in (each.text for each in read_lines(text)):
        key, colon, value = line.strip().partition(":")
        kind_match = _TYPE.search(line)
        if colon and key in _WORDS and _WORDS[key] not in words:
            words[_WORDS[key]] = value.strip()
            continue
        numbers = _NAMED_NUMBER.findall(line)
        flags.update({name: printed_number(number) for name, number in numbers})
        if kind_match:
            kind = kind_match.group(1)
        elif line.strip() and not numbers:
            notes.append(line.strip())
    if "vendor" not in words or "product" not in words:
        note = notes[-1][:200] if notes else "it printed nothing"
        raise ToolError(f"sg_inq does not identify the device: {note}")
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


def read_mode_pages(runner: Runner, device: str) -> ModeSense:
    """All current mode pages of a device. Raises ToolError."""
    return parse_mode_pages(answer(runner, ["sg_modes", "-a", device], f"the mode pages of {device}").stdout)


def read_inquiry(runner: Runner, device: str) -> Inquiry:
    """Who a device is that is no disk, so that the kernel does not keep its serial number. Raises ToolError."""
    return parse_inquiry(answer(runner, ["sg_inq", device], f"the identity of {device}").stdout)


def read_vpd_page(runner: Runner, device: str, page: int) -> bytes:
    """A raw VPD page, for kernels that do not show it in sysfs (before 3.15). Raises ToolError."""
    ended = answer(runner, ["sg_vpd", "-HHH", f"--page=0x{page:02x}", device], f"VPD page 0x{page:02x} of {device}")
    return parse_hex_file(ended.stdout)


_LAST = re.compile(
    r"Last (?:LBA|(?:logical )?block address)\s*=\s*([0-9]{1,20})\b(?: \(0x([0-9a-f]{1,16})\))?", re.IGNORECASE
)
_BLOCKS = re.compile(r"Number of (?:logical )?blocks\s*=\s*([0-9]{1,20})\b", re.IGNORECASE)
_LENGTH = re.compile(r"(?:Logical block length|\bBlock size)\s*=\s*([0-9]{1,20}) bytes", re.IGNORECASE)
_BYTES = re.compile(r"Device size\s*:\s*([0-9]{1,20}) bytes", re.IGNORECASE)
_EXPONENT = re.compile(r"Logical blocks per physical block exponent\s*=\s*([0-9]{1,2})\b", re.IGNORECASE)
_PHYSICAL = re.compile(r"physical block length\s*=\s*([0-9]{1,20}) bytes", re.IGNORECASE)
_ALIGNED = re.compile(r"Lowest aligned (?:LBA|logical block address)\s*=\s*([0-9]{1,20})\b", re.IGNORECASE)
_FLAG = re.compile(
    r"\b(prot_en|p_type|p_i_exponent|lbpme|lbprz|tpe|tprz|rc_basis)\s*=\s*([0-9]{1,20})\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Capacity:
    """Bytes of a drive and of its logical and physical blocks (None: not told), alignment, flags by acronym."""

    size: int
    block: int
    physical_block: int | None = None
    lowest_aligned: int | None = None
    flags: Mapping[str, int] = field(default_factory=dict)


def parse_capacity(text: str) -> Capacity:
    """`sg_readcap` or `sg_readcap --long`. Raises ToolError when it tells no size, or two."""
    last, length = _LAST.search(text), _LENGTH.search(text)
    if last is None or length is None:
        raise ToolError(f"sg_readcap tells no size: {first_line(text)}")
    blocks, block = int(last.group(1)) + 1, int(length.group(1))
    hexadecimal, counted, total = last.group(2), _BLOCKS.search(text), _BYTES.search(text)
    if not block or blocks in (1 << 32, 1 << 64):
        # the answer of a command that is too short for the drive, and of one without a medium
        raise ToolError(f"sg_readcap tells no size: {blocks} blocks of {block} bytes")
    if (
        (hexadecimal and int(hexadecimal, 16) + 1 != blocks)
        or (counted and int(counted.group(1)) != blocks)
        or (total and int(total.group(1)) != blocks * block)
    ):
        raise ToolError(f"sg_readcap tells sizes that are not one: {blocks} blocks of {block} bytes and another")
    exponent, physical, aligned = (pattern.search(text) for pattern in (_EXPONENT, _PHYSICAL, _ALIGNED))
    if exponent and physical and block << int(exponent.group(1)) != int(physical.group(1)):
        raise ToolError(f"sg_readcap reports two physical block lengths: {exponent.group(0)}, {physical.group(0)}")
    return Capacity(
        size=blocks * block,
        block=block,
        physical_block=block << int(exponent.group(1)) if exponent else None,
        lowest_aligned=int(aligned.group(1)) if aligned else None,
        flags={name.lower(): int(value) for name, value in _FLAG.findall(text)},
    )


def read_capacity(runner: Runner, device: str) -> Capacity:
    """What a drive says of its size. Raises ToolError."""
    argv = ["sg_readcap", "--long", device]
    return parse_capacity(answer(runner, argv, f"the size of {device}").stdout)


_SUBPAGE_FORMAT = 0x40
_PROTOCOL_PAGES = (0x18, 0x19)


@dataclass(frozen=True)
class PagePlan:
    """One MODE SELECT: the page with the wanted values, the mask of the bits that change, and what cannot be."""

    contents: bytes
    mask: bytes
    unchangeable: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not any(self.mask)


def check_page(data: bytes, page: int, subpage: int) -> bytes:
    """`data` cut to the length the page states. Raises ToolError when it is another page or incomplete."""
    name = f"mode page 0x{page:02x}" + (f"/0x{subpage:02x}" if subpage else "")
    if len(data) < 2:
        raise ToolError(f"{name}: only {len(data)} bytes came back")
    if data[0] & 0x3F != page:
        raise ToolError(f"{name}: the drive answered with page 0x{data[0] & 0x3F:02x}")
    if data[0] & _SUBPAGE_FORMAT:
        if len(data) < 4 or data[1] != subpage:
            raise ToolError(f"{name}: the drive answered with subpage 0x{data[1]:02x}")
        length = 4 + int.from_bytes(data[2:4], "big")
    else:
        if subpage:
            raise ToolError(f"{name}: the drive answered with the page itself, not its subpage")
        length = 2 + data[1]
    if len(data) < length:
        raise ToolError(f"{name}: {len(data)} of {length} bytes came back")
    return data[:length]


def _span(data: bytes, field: ModeField) -> tuple[int, int, int]:
    """First byte, byte count and right shift of a field. Raises ToolError when the page ends before it."""
    last_bit = 7 - field.bit + field.length
    count = (last_bit + 7) // 8
    if field.byte + count > len(data):
        raise ToolError(
            f"mode page 0x{field.page:02x} of this drive has {len(data)} bytes, the field needs {field.byte + count}"
        )
    if field.protocol is not None and field.page in _PROTOCOL_PAGES:
        place = 5 if data[0] & _SUBPAGE_FORMAT else 2
        value = data[place] & 0x0F if place < len(data) else -1
        if value != field.protocol:
            raise ToolError(
                f"mode page 0x{field.page:02x} of this drive is SCSI protocol {value}'s, the field {field.protocol}'s"
            )
    return field.byte, count, count * 8 - last_bit


def get_field(data: bytes, field: ModeField) -> int:
    """The field's value. Raises ToolError when the page is too short or of another transport."""
    first, count, shift = _span(data, field)
    return (int.from_bytes(data[first : first + count], "big") >> shift) & ((1 << field.length) - 1)


def put_field(data: bytes, field: ModeField, value: int) -> bytes:
    """The page with the field set to `value`, every other bit as it was. Raises ToolError, ValueError (too large)."""
    first, count, shift = _span(data, field)
    ones = (1 << field.length) - 1
    if not 0 <= value <= ones:
        raise ValueError(f"{value} does not fit into {field.length} bits")
    word = int.from_bytes(data[first : first + count], "big")
    word = (word & ~(ones << shift)) | (value << shift)
    return data[:first] + word.to_bytes(count, "big") + data[first + count :]


def plan_page(current: bytes, changeable: bytes, wanted: Mapping[str, tuple[ModeField, int]]) -> PagePlan:
    """What one MODE SELECT must carry so that every field in `wanted` (name to place and value) is as wanted.

    Where one field must change the others go with it as they should be: the drive saves a page as a whole. A field
    that must change, of which the drive lets not every bit that must change be changed, is listed as unchangeable;
    then nothing should be written.
    """
    contents, mask = current, bytes(len(current))
    unchangeable = []
    for name, (bits, value) in wanted.items():
        if (get_field(current, bits) ^ value) & ~changeable_bits(changeable, bits):
            unchangeable.append(name)
            continue
        contents = put_field(contents, bits, value)
        mask = put_field(mask, _anywhere(bits), (1 << bits.length) - 1)
    return PagePlan(contents, mask if contents != current else bytes(len(current)), tuple(unchangeable))


def _anywhere(field: ModeField) -> ModeField:
    return ModeField(field.page, field.subpage, field.byte, field.bit, field.length)


def changeable_bits(changeable: bytes, field: ModeField) -> int:
    """The bits of a field that a drive lets be changed, by its mask of a page; none where the mask ends before it."""
    return get_field(changeable, _anywhere(field)) if len(changeable) > field.byte else 0


CURRENT, CHANGEABLE, DEFAULT, SAVED = range(4)
"""Page control of MODE SENSE."""

_OPCODE_UNSUPPORTED = 9
_NOT_CHANGEABLE = (5, 19)
_OS_ERROR = 50
_OS_ERROR_END = 97

_SENTENCES = {
    1: "the command line was not understood",
    2: "the drive is not ready",
    3: "the drive reports a medium or hardware error",
    5: "the drive refused the request (illegal request)",
    6: "the drive reports a unit attention (it was reset, or something changed) again after a retry",
    7: "the drive is write protected",
    9: "the drive does not know this command",
    11: "the drive aborted the command",
    12: "the drive's port is in standby",
    13: "the drive's port is unavailable",
    14: "the data compared were different",
    15: "a file could not be used",
    16: "the drive is busy with a format, sanitize or rebuild",
    **dict.fromkeys((17, 18), "done, with information in the sense data"),
    19: "the drive refused a field of the parameter list",
    22: "the block address is out of range",
    24: "another initiator holds a reservation on the drive",
    26: "the drive is busy",
    27: "the drive's task set is full",
    31: "the options given contradict each other",
    33: "the command timed out",
    35: "the transport (adapter, cable or driver) failed",
    36: "the answer is no",
    **dict.fromkeys((40, 41), "protection information did not match"),
}
_HEX = re.compile(r"^[0-9a-fA-F]{1,2}$")


def status_sentence(status: int) -> str:
    """What an exit status of sg3_utils or sdparm means, in words."""
    if status in _SENTENCES:
        return _SENTENCES[status]
    if _OS_ERROR < status < _OS_ERROR_END:
        code = status - _OS_ERROR
        return f"the operating system refused: {os.strerror(code)} ({errno.errorcode.get(code, code)})"
    if status > 128:
        return f"the tool was ended by signal {status - 128}"
    if status < 0:
        return f"the tool was ended by signal {-status}"
    return f"the tool ended with status {status}, which its manual does not explain"


def parse_hex_bytes(text: str, tool: str = "sg_modes") -> bytes:
    """The bytes of `sg_modes -R`: one or two hexadecimal digits per word. Raises ToolError for anything else."""
    words = text.split()
    wrong = [word for word in words if not _HEX.match(word)]
    if wrong:
        raise ToolError(f"{tool} printed {wrong[0][:40]!r} where a byte was expected")
    return bytes(int(word, 16) for word in words)


def printed_number(text: str) -> int:
    """A number as these tools print it: `0x1f`, `31`, `-1`, `031` (which is decimal)."""
    return int(text, 16 if text.lower().startswith("0x") else 10)


def ask(runner: Runner, argv: Sequence[str], *, timeout: float = _TIMEOUT) -> Completed:
    """Run once, and once more after a unit attention: the first command after a reset only delivers the news."""
    ended = runner(argv, timeout=timeout)
    return runner(argv, timeout=timeout) if ended.rc == _UNIT_ATTENTION else ended


def answer(runner: Runner, argv: Sequence[str], what: str, *, timeout: float = _TIMEOUT) -> Completed:
    """The same with a status of 0. Raises ToolError that says `what` could not be had."""
    return succeeded(ask(runner, argv, timeout=timeout), what)


def succeeded(ended: Completed, what: str) -> Completed:
    """Itself with a status of 0. Raises ToolError that says `what` was not so, and what the tool said last."""
    lines = ended.stderr.strip().splitlines()
    detail = f" ({lines[-1].strip()[:200]})" if lines else ""
    if ended.rc != 0:
        raise ToolError(f"{what}: {status_sentence(ended.rc)}{detail}; command: {ended.line}")
    return ended


def _ask_for_page(runner: Runner, argv: Sequence[str]) -> Completed:
    ended = ask(runner, argv)
    return ask(runner, [*argv[:1], "--six", *argv[1:]]) if ended.rc == _OPCODE_UNSUPPORTED else ended


def read_page(runner: Runner, device: str, page: int, subpage: int = 0, control: int = CURRENT) -> bytes:
    """One mode page as bytes. Falls back to the 6-byte command for drives that know no other. Raises ToolError."""
    argv = ["sg_modes", "-R", f"--control={control}", f"--page=0x{page:x},0x{subpage:x}", device]
    ended = succeeded(_ask_for_page(runner, argv), f"reading mode page 0x{page:02x} of {device}")
    return check_page(parse_hex_bytes(ended.stdout), page, subpage)


def write_page(
    runner: Runner, device: str, page: int, subpage: int, contents: bytes, mask: bytes, *, save: bool = False
) -> None:
    """Set the bits of `mask` to those of `contents` in one MODE SELECT; with `save` also for the next power-on.

    The mask is as long as the contents, because sg_wr_mode takes contents beyond a shorter mask unmasked.
    Raises ToolError; a drive that refuses a field is said to have refused, never retried in smaller pieces.
    """
    if len(contents) != len(mask):
        raise ValueError("contents and mask differ in length")
    argv = ["sg_wr_mode", f"--page={page:x},{subpage:x}" if subpage else f"--page={page:x}"]
    if save:
        argv.append("--save")
    argv += [f"--contents={contents.hex(',')}", f"--mask={mask.hex(',')}", device]
    ended = _ask_for_page(runner, argv)
    refused = f"the drive at {device} says mode page 0x{page:02x} is changeable, yet refused the change"
    succeeded(ended, refused if ended.rc in _NOT_CHANGEABLE else f"writing mode page 0x{page:02x} of {device}")


_ASKED, _GIVEN = 252, 8
_RECEIVED = re.compile(r"^Received ([0-9]{1,9}) bytes of data:", re.MULTILINE)


def received_of_short_command(runner: Runner, node: str) -> dict[str, int]:
    """READ CAPACITY(10) with room for more than its eight bytes: `asked`, `given`, `received` by the driver's word.

    A driver tells by the residual of a command how much less came than was asked for. Raises ToolError.
    """
    words = ["sg_raw", "-t", "10", "-r", str(_ASKED), node, "25", *["00"] * 9]
    done = runner(words, timeout=30.0).expect()
    match = _RECEIVED.search(done.stderr) or _RECEIVED.search(done.stdout)
    if match is None:
        raise ToolError(f"`{done.line}` does not say how many bytes it received: {done.last_words()}")
    return {"asked": _ASKED, "given": _GIVEN, "received": int(match.group(1))}


def mark_uncorrectable(runner: Runner, node: str, lba: int) -> None:
    """WRITE LONG with WR_UNCOR: a read of this logical block ends with a medium error until it is written again.

    What the block held is lost. Raises ToolError, also where the drive does not know the command.
    """
    words = ["sg_write_long", *["--16"] * (lba >= 1 << 32), "--wr_uncor", f"--lba={lba}", node]
    answer(runner, words, f"marking block {lba} as unreadable")
