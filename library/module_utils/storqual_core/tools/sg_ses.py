# SPDX-License-Identifier: Apache-2.0
"""sg_ses (sg3_utils): the elements of a shelf: slots and the drive in each, power supplies, fans, temperatures.

Elements are told of by `--join` (all pages together), by the enclosure status page and by the additional element
status page. One reader takes all three: a heading begins an element, and everything until the next heading is of it.
sg_ses 1.46 decoded written pages for the tests (`--inhex`); older and newer forms are from its documentation and from
public outputs. No shelf was at hand.

An overall element (index -1) describes a type and is left out. An element that is not there or not monitored has no
reading, whatever number stands beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator, Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import first_line
from .sg3 import answer

_TIMEOUT = 120.0
_JOINED = re.compile(
    r"^(?P<name>.*?)\[(?:(?P<type>\d{1,5}),(?P<index>-?\d{1,5})|(?P<overall>ov)?(?P<old>\d{1,5}))\]"
    r"\s+Element type:\s*(?P<kind>\S.*)$",
    re.IGNORECASE,
)
_JOINED_UNNAMED = re.compile(
    r"^\s*(?P<overall>Overall|Element) index (?P<old>\d{1,5})\s+Element type:\s*(?P<kind>\S.*)$", re.IGNORECASE
)
_TYPE = re.compile(
    r"^\s*Element type:(?P<kind>[^,\n]+),\s*subenclosure id:\s*\d{1,5}(?:.*\[ti=(?P<type>\d{1,5})\])?",
    re.IGNORECASE,
)
_DESCRIPTOR = re.compile(
    r"^\s*(?:(?P<overall>Overall descriptor)|Element\s+(?P<index>\d{1,5})\s+descriptor"
    r"|Element index:?\s*(?P<ei>\d{1,5}))\b[:\s]*(?:eiioe\s*=\s*\d+)?\s*(?P<name>.*)$",
    re.IGNORECASE,
)
_ENCLOSURE = re.compile(r"enclosure logical identifier\s*\(hex\)\s*:\s*(?P<id>[0-9a-f]{16})\b", re.IGNORECASE)
_PRODUCT = re.compile(
    r"enclosure vendor:(?P<vendor>.*?)product:(?P<model>.*?)rev:\s*(?P<revision>\S*)", re.IGNORECASE
)
_COUNT = re.compile(r"number of possible elements:\s*(?P<count>\d{1,5})", re.IGNORECASE)
_STATUSES = (
    *("OK", "Critical", "Noncritical", "Unrecoverable", "Not installed", "Not available", "No access allowed"),
    *("Unsupported", "Unknown"),
)
_SECTION = re.compile(r"\b(?:Enclosure|Additional\s+Element)\s+status:", re.IGNORECASE)
_KNOWN = "|".join(_STATUSES).replace(" ", r"\s+")
_STATUS = re.compile(rf"\bstatus:\s*(?:(?P<known>{_KNOWN})\b|(?P<other>[^,\n]*))", re.IGNORECASE)
# a label may be broken at a blank where a terminal or a mail wrapped the line
_FLAG = re.compile(
    r"(?:^|,)\s*(?P<label>[A-Za-z][A-Za-z/]*(?:\s+[A-Za-z/]+){0,5})\s*=\s*(?P<value>0x[0-9a-f]{1,8}|\d{1,9})\b",
    re.IGNORECASE | re.MULTILINE,
)
_TEMPERATURE = re.compile(r"\bTemperature\s*[=:]\s*(-?\d{1,3})\s+C\b", re.IGNORECASE)
_SPEED = re.compile(r"\bActual\s+speed\s*[=:]\s*(\d{1,6})\s+rpm\b", re.IGNORECASE)
_SLOT_NUMBER = re.compile(r"\b(?:device\s+slot|bay)\s+number\s*[:=]\s*(\d{1,5})\b", re.IGNORECASE)
_SLOT = re.compile(r"\b(?:device\s+slot\s+number|bay\s+number|slot\s+address)\s*[:=]\s*(\d{1,5})\b", re.IGNORECASE)
_PHYS = re.compile(r"\bnumber\s+of\s+phys\s*[:=]\s*(\d{1,3})\b", re.IGNORECASE)
_PHY = re.compile(r"^\s*phy\s+index\s*[:=]\s*\d+", re.IGNORECASE | re.MULTILINE)
_ADDRESS = re.compile(r"\bSAS\s+address\s*[:=]\s*0x([0-9a-f]{1,16})\b", re.IGNORECASE)
_ATTACHED = re.compile(r"\battached\s+SAS\s+address", re.IGNORECASE)
_UNTOLD = ("unsupported", "not installed", "not available", "unknown", "no access allowed")
"""States in which the numbers of an element mean nothing."""

_WRONG = (
    *("predicted failure", "disabled", "fail", "fault sensed", "fault reqstd", "ot failure", "ot warning"),
    *("ut failure", "ut warning", "dc overvoltage", "dc undervoltage", "dc overcurrent", "overtmp fail"),
    *("temperature warn", "ac fail", "dc fail", "warn over", "warn under", "crit over", "crit under"),
    *("failure indication", "warning indication", "in failed array", "in crit array", "device off", "oc"),
)
"""Bits of an element that say that something is wrong with it, as sg_ses names them, in small letters.

`fault reqstd` is the fault light that somebody, or the adapter, has switched on.
"""


@dataclass(frozen=True)
class ShelfElement:
    """One element: `kind` as printed, `type_index` and `index` its place, `status` as printed.

    `slot` is the device slot number and `sas_address` (`5000c500…`) that of the drive's port in it, where the shelf
    tells them. `temperature` is in degrees Celsius, `speed` in revolutions per minute, None if not measured.
    `flags` are its bits by sg_ses's names in small letters.
    """

    kind: str
    type_index: int
    index: int
    name: str = ""
    status: str = ""
    slot: int | None = None
    sas_address: str = ""
    temperature: int | None = None
    speed: int | None = None
    flags: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_slot(self) -> bool:
        return self.kind.lower().endswith("device slot")

    @property
    def where(self) -> str:
        """It in words: `power supply 1 (PSU B)`."""
        number = self.slot if self.is_slot and self.slot is not None else self.index
        kind = "slot" if self.is_slot else self.kind if self.kind[:2].isupper() else self.kind.lower()
        return f"{kind} {number}" + (f" ({self.name})" if self.name else "")

    @property
    def complaints(self) -> tuple[str, ...]:
        """What is wrong with it, as words; empty for one that is well, not there, or not monitored."""
        state = self.status.lower()
        if state in _UNTOLD:
            return ()
        bits = tuple(name for name in _WRONG if self.flags.get(name))
        return (*(() if state in ("ok", "") else (f"status {self.status}",)), *bits)


@dataclass(frozen=True)
class Shelf:
    """A shelf by its logical identifier, and its elements; `notes` are sentences about what could not be read."""

    id: str = ""
    vendor: str = ""
    model: str = ""
    revision: str = ""
    elements: tuple[ShelfElement, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Head:
    """The heading of an element; index -1 for what describes a whole type."""

    kind: str
    type_index: int
    index: int
    name: str


def parse_elements(text: str) -> Shelf:
    """The elements of `--join`, `--page=es` or `--page=aes`. Raises ToolError for none and for two in one place."""
    elements: dict[tuple[int, int], ShelfElement] = {}
    notes: list[str] = []
    for head, body in _blocks(text):
        for mark in (_STATUS, _SLOT_NUMBER, _PHYS):
            if len(mark.findall(_SECTION.sub("", body))) > 1:
                raise ToolError(f"sg_ses tells of two elements below one heading: {head.kind} {head.index}")
        if head.index < 0:
            continue
        place = (head.type_index, head.index)
        if place in elements:
            raise ToolError(f"sg_ses lists two elements in one place: {head.kind} {head.index}")
        elements[place] = _element(head, body, notes)
    if not elements:
        raise ToolError(f"sg_ses printed no element of a shelf: {first_line(text)}")
    named = _ENCLOSURE.search(text)
    return Shelf(id=named.group("id").lower() if named else "", elements=tuple(elements.values()), notes=tuple(notes))


def _blocks(text: str) -> Iterator[tuple[_Head, str]]:
    """Each element with the lines below its heading."""
    head: _Head | None = None
    lines: list[str] = []
    kind, type_index, types = "", -1, 0
    # the forms without a number for the type: elements count within it, and a smaller one begins the next type
    for line in text.splitlines():
        following: _Head | None = None
        joined = _JOINED.match(line) or _JOINED_UNNAMED.match(line)
        of_type = None if joined else _TYPE.match(line)
        below = None if joined or of_type else _DESCRIPTOR.match(line)
        if joined is not None:
            fields = joined.groupdict()
            same = head is not None and head.kind == fields["kind"].strip()
            types += not same
            overall = (fields["overall"] or "").lower() in ("ov", "overall")
            following = _Head(
                fields["kind"].strip(),
                int(fields["type"] or types - 1),
                -1 if overall else int(fields["index"] or fields["old"]),
                (fields.get("name") or "").strip(),
            )
            kind = ""
        elif of_type is not None:
            kind, types = of_type.group("kind").strip(), types + 1
            type_index = int(of_type.group("type") or types - 1)
        elif below is not None:
            if not kind:
                raise ToolError(f"sg_ses lists an element without its type: {line.strip()[:100]}")
            index = below.group("index") or below.group("ei")
            following = _Head(kind, type_index, int(index) if index else -1, below.group("name").strip())
        if (following is not None or of_type is not None) and head is not None:
            yield head, "\n".join(lines)
            head = None
        if following is not None:
            head, lines = following, []
        elif head is not None:
            lines.append(line)
        elif _SLOT_NUMBER.search(line) or _STATUS.search(_SECTION.sub("", line)):
            raise ToolError(f"sg_ses tells of an element without its heading: {line.strip()[:100]}")
    if head is not None:
        yield head, "\n".join(lines)


def _element(head: _Head, body: str, notes: list[str]) -> ShelfElement:
    named = _STATUS.search(_SECTION.sub("", body))
    status = " ".join((named.group("known") or named.group("other") or "").split()) if named else ""
    flags: dict[str, int] = {}
    for match in _FLAG.finditer(body):
        *above, last = (" ".join(part.split()) for part in match.group("label").split("\n"))
        # words that stand alone at a line's end (`Fan stopped`) are no part of the next line's label
        label = last if above and last[:1].isupper() else " ".join([*above, last])
        value = match.group("value").lower()
        flags[label.lower()] = int(value, 16) if value.startswith("0x") else int(value)
    there = bool(status) and status.lower() not in _UNTOLD
    element = ShelfElement(
        kind=head.kind,
        type_index=head.type_index,
        index=head.index,
        name=head.name,
        status=status,
        slot=_number(_SLOT.search(body)),
        sas_address=_address(head, body, notes),
        temperature=_number(_TEMPERATURE.search(body)) if there else None,
        speed=_number(_SPEED.search(body)) if there else None,
        flags=flags,
    )
    # the page of additional status has none, and describes phys
    if not named and not _PHYS.search(body):
        notes.append(f"{element.where}: sg_ses tells no status of it")
    return element


def _number(match: re.Match[str] | None) -> int | None:
    return int(match.group(1)) if match else None


def _address(head: _Head, body: str, notes: list[str]) -> str:
    """The address of the drive's port: of several phys that of the first with a device.

    With another number of phys than it says, it is not known which are missing, so no drive is named.
    """
    count, listed = _PHYS.search(body), len(_PHY.findall(body))
    if count and listed and int(count.group(1)) != listed:
        notes.append(f"{head.kind} {head.index}: sg_ses reports {count.group(1)} phys and lists {listed}")
        return ""
    addresses = (match.group(1).lower() for match in _ADDRESS.finditer(_ATTACHED.sub("attached to", body)))
    return next((address.zfill(16) for address in addresses if address.strip("0")), "")


def parse_configuration(text: str) -> tuple[Shelf, tuple[tuple[str, int], ...]]:
    """The shelf of `--page=cf`, and kind and number of the elements of each type in their order.

    Raises ToolError when a type has no number, or when there is none at all.
    """
    types: list[tuple[str, int | None]] = []
    for line in text.splitlines():
        heading, count = _TYPE.match(line), _COUNT.search(line)
        if heading is not None:
            types.append((heading.group("kind").strip(), None))
        if count is not None and types:
            types[-1] = (types[-1][0], int(count.group("count")))
    counts = tuple((kind, count) for kind, count in types if count is not None)
    if not types or len(counts) != len(types):
        raise ToolError(f"sg_ses printed no whole configuration of a shelf: {first_line(text)}")
    named, product = _ENCLOSURE.search(text), _PRODUCT.search(text)
    vendor, model, revision = map(str.strip, product.groups()) if product else ("", "", "")
    return Shelf(named.group("id").lower() if named else "", vendor, model, revision), counts


def read_shelf(runner: Runner, device: str) -> Shelf:
    """The shelf behind a node (`/dev/sg3`), with `notes` for each type of which not all elements were told.

    Raises ToolError.
    """
    about, types = parse_configuration(_ask(runner, ["--page=cf", device]))
    joined = parse_elements(_ask(runner, ["--join", device]))
    notes = list(joined.notes)
    for place, (kind, count) in enumerate(types):
        listed = sum(element.type_index == place for element in joined.elements)
        if listed != count:
            notes.append(f"sg_ses reports {count} elements of the type {kind} and lists {listed}")
    return Shelf(about.id or joined.id, about.vendor, about.model, about.revision, joined.elements, tuple(notes))


def _ask(runner: Runner, words: list[str]) -> str:
    return answer(runner, ["sg_ses", *words], f"the shelf at {words[-1]} cannot be read", timeout=_TIMEOUT).stdout


def same_port(address: str, wwn: str) -> bool:
    """Whether a drive of this WWN (`0x5000c500…`) has the port of that address.

    The makers of SAS drives give each drive four names in a row, for its ports, the logical unit and the device.
    """
    numbers = [int(name, 16) for name in (address, wwn[2:]) if re.match(r"[0-9a-f]{16}\Z", name)]
    return len(numbers) == 2 and numbers[0] >> 2 == numbers[1] >> 2
