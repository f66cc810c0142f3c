# SPDX-License-Identifier: Apache-2.0
"""The JSON of storcli, perccli and their successors: one answer per controller, and what it means when they fail.

Neither the exit status nor `Status` alone says whether a command worked: `Failure` may come with complete data, and
data with a status of 0 may say that nothing was found. Sections are objects of a dozen shapes by release; what is
not read into a field is kept under its path, as printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Callable, Iterator, Mapping, Sequence

from ...host.identity import printed_wwn
from ...kit.command import Completed
from ...kit.errors import ToolError
from ...kit.json_text import as_int, as_list, as_mapping, as_text, the_object
from ...kit.labelled_text import pci_of, plain_label, printed_size, size_range
from ..capabilities import AdapterFacts, DriveFacts, EnclosureFacts, PortFacts, ToolFacts
from .storcli_keys import OVERVIEWS, check_counts, same_names
from .storcli_text import controllers_of

_NOTHING = re.compile(
    r"No Controllers? (?:was |were )?found|Controller \S+ not found"
    r"|\bNo (?:VD|PD|JBOD|drive|enclosure|virtual drive|physical drive)s?\b",
    re.IGNORECASE,
)
_PCI = re.compile(r"\A([0-9a-f]{2,4}):([0-9a-f]{2}):([0-9a-f]{2}):([0-9a-f]{1,2})\Z", re.IGNORECASE)
_DRIVE = re.compile(r"\ADrive /c\d+(?:/e(\d+))?/s(\d+)\Z", re.IGNORECASE)
_DETAILED = re.compile(r" - Detailed Information\Z", re.IGNORECASE)
_SECTORS = re.compile(r"\[0x([0-9a-f]{1,16}) Sectors\]", re.IGNORECASE)
_SIZE = re.compile(r"\A([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([KMGTP]?)(?:i?B|bytes)?\Z", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(?![0-9.]) ?%?")
_TABLES = ("VD LIST", "PD LIST", "JBOD LIST", "LU/NS LIST", "TOPOLOGY", "Physical Device Information")
_ENCLOSURES = ("Enclosure LIST", "Enclosure Information")
_SUCCESS = ("success", "succeeded", "-", "")


@dataclass(frozen=True)
class Answer:
    """What was said of one controller: its index (empty where none is named), the rows of its status, its data."""

    controller: str
    success: bool
    description: str
    rows: Sequence[Mapping[str, Any]]
    data: Mapping[str, Any]

    @property
    def complaints(self) -> list[str]:
        """What went wrong, a sentence each; empty when nothing did."""
        said = [
            f"{row_says} (code {as_text(row.get('ErrCd'))})"
            for row in self.rows
            if as_text(row.get("Status")).lower() not in _SUCCESS
            for row_says in [as_text(row.get("ErrMsg") or row.get("Description")) or "failed"]
        ]
        if not said and not self.success:
            said.append(self.description if self.description not in ("", "None") else "failed without a reason")
        return said

    @property
    def nothing(self) -> bool:
        """Whether it says that what was asked for does not exist: no controller, no volume, no drive."""
        counted = as_int(self.data.get("Number of Controllers"))
        said = [self.description, *self.complaints]
        return counted == 0 or (not self.data and any(_NOTHING.search(line) for line in said))


def answers_of(text: str, tool: str) -> list[Answer]:
    """Every controller's answer, of JSON or plain text. Raises ToolError when it is neither."""
    try:
        entries = as_list(the_object(text, tool, "Controllers")["Controllers"])
    except ToolError:
        entries = controllers_of(text)
        if not entries:
            raise
    answers = []
    for entry in as_list(same_names(entries)):
        status = as_mapping(as_mapping(entry).get("Command Status"))
        if not status:
            raise ToolError(f"{tool} printed a controller without a command status")
        answers.append(
            Answer(
                controller=as_text(status.get("Controller")),
                success=as_text(status.get("Status")).lower() == "success",
                description=as_text(status.get("Description")),
                rows=[row for row in as_list(status.get("Detailed Status")) if isinstance(row, dict)],
                data=_data(as_mapping(entry).get("Response Data")),
            )
        )
    return answers


def _data(body: object) -> Mapping[str, Any]:
    """Sections by name; what is asked of drives is answered with a list that has none."""
    return {"Response Data": body} if isinstance(body, list) else as_mapping(body)


def data_of(text: str, tool: str) -> list[Answer]:
    """The answers to a reading command: those with data, none for what does not exist.

    Raises ToolError when a controller failed and gave no data.
    """
    found = []
    for answer in answers_of(text, tool):
        if answer.nothing:
            continue
        if not answer.data and answer.complaints:
            raise ToolError(f"{tool} could not read: {'; '.join(answer.complaints)}")
        check_counts(answer.data, tool)
        found.append(answer)
    return found


def carried_out(ended: Completed, tool: str, what: str, remedy: str = "") -> None:
    """Raise ToolError unless every status and every row of a changing command says success, and the exit status 0."""
    complaints = [line for answer in answers_of(ended.stdout, tool) for line in answer.complaints]
    if not complaints and ended.rc != 0:
        complaints = [f"{tool} ended with status {ended.rc}"]
    if complaints:
        hint = f"; {remedy}" if remedy else ""
        raise ToolError(f"{what}: {'; '.join(complaints)[:400]}; command: {ended.line}{hint}")


def flat(data: Mapping[str, Any], *, without: Sequence[str] = _TABLES + _ENCLOSURES) -> dict[str, str]:
    """Every scalar by its path (`Status / Controller Status`); tables of names and values by the name."""
    found: dict[str, str] = {}

    def walk(value: object, path: tuple[str, ...]) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if path or key not in without:
                    walk(inner, (*path, str(key).strip()))
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                row = as_mapping(inner)
                name = as_text(row.get("Policy")) or str(number)
                walk(row.get("Current") if "Policy" in row else inner, (*path, name))
        else:
            found[" / ".join(path)] = as_text(value).strip()

    walk(data, ())
    return found


def first(settings: Mapping[str, str], *names: str) -> str:
    """The value of the first name that is there and not a blank, at any depth: `Model` matches `Basics / Model`."""
    told = [(_plain_path(path), value) for path, value in settings.items() if value not in ("", "N/A", "NA", "None")]
    for wanted in map(_plain_path, names):
        for path, value in told:
            if path[-len(wanted) :] == wanted:
                return value
    return ""


@lru_cache(maxsize=4096)
def _plain_path(path: str) -> tuple[str, ...]:
    """A path as it is compared: without regard to case, spacing and units."""
    return tuple(plain_label(part) for part in path.split(" / "))


def size_of(text: str) -> int | None:
    """Bytes of an exact size such as `256 KB`; prefixes are binary. None for a rounded one such as `16.370 TB`."""
    match = _SIZE.match(text.strip())
    if match is None:
        return None
    power = 1024 ** " KMGTP".index(match.group(2).upper() or " ")
    size = float(match.group(1)) * power
    return int(size) if size.is_integer() and (power < 1024**3 or "." not in match.group(1)) else None


def percent_of(text: object) -> float | None:
    """The number of `12%` or `30 %`; None where there is none."""
    match = _PERCENT.match(as_text(text).strip())
    return float(match.group(1)) if match else None


def _pci(text: str) -> str:
    """`0000:65:00.0` for `00:65:00:00`, all of it hexadecimal."""
    match = _PCI.match(text.strip())
    if match is None:
        return ""
    domain, bus, device, function = (int(part, 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def adapter_of(answer: Answer, firmware: Mapping[str, Sequence[str]]) -> AdapterFacts:
    """The adapter itself; `firmware` gives the names of each component's version, the preferred one first."""
    settings = flat(answer.data)
    if not {"basics", "productname", "adaptertype"} & {plain_label(key) for key in answer.data}:
        raise ToolError(
            f"the answer of controller {answer.controller or '?'} says nothing about the controller itself"
        )
    versions = {component: first(settings, *names) for component, names in firmware.items()}
    enclosures = [as_mapping(row) for name in _ENCLOSURES for row in as_list(answer.data.get(name))]
    return AdapterFacts(
        index=answer.controller,
        model=first(settings, "Basics / Model", "Product Name"),
        vendor=first(settings, "OEMID", "OEM"),
        serial=first(settings, "Serial Number"),
        pci=_pci(first(settings, "PCI Address"))
        or pci_of(settings, "Bus Number", "Device Number", "Function Number", "Domain ID")
        # the words of the first releases, which tell no domain
        or pci_of(settings, "PCI Bus Number", "PCI Device Number", "PCI Function Number"),
        driver=first(settings, "Driver Name"),
        driver_version=first(settings, "Driver Version"),
        # a package of zeros is what HBAs say that have none
        firmware={name: value for name, value in versions.items() if value and value.strip("0.") != ""},
        health=first(settings, "Controller Status", "Controller status"),
        settings=settings,
        ports=tuple(PortFacts("host", wwn=wwn) for wwn in [printed_wwn(first(settings, "SAS Address"))] if wwn),
        enclosures=tuple(
            EnclosureFacts(as_text(row.get("EID")), "", as_text(row.get("ProdID")), as_int(row.get("Slots")), state)
            for row in enclosures
            for state in [as_text(row.get("State"))]
        ),
    )


def is_overview(answer: Answer) -> bool:
    """Whether an answer lists controllers and tells nothing more of each."""
    return any(name in answer.data for name in OVERVIEWS)


def overview_of(answer: Answer) -> list[AdapterFacts]:
    """The controllers of an overview (`show` without a controller): number, model, health. Raises ToolError."""
    found = []
    for row in (row for name in OVERVIEWS for row in as_list(answer.data.get(name))):
        words = {str(key): as_text(value).strip() for key, value in as_mapping(row).items()}
        index = first(words, "Ctl", "Ctrl")
        if not index:
            raise ToolError("the overview lists a controller without its number")
        wwn = printed_wwn(first(words, "SASAddress", "SAS Address").lower())
        for unwell in map(as_mapping, as_list(answer.data.get(f"Controller {index}"))):
            place = as_text(unwell.get("EID:Slt") or unwell.get("DG/VD")).strip()
            words[f"Need Attention / {place}"] = as_text(unwell.get("State")).strip()
        found.append(
            AdapterFacts(
                index,
                model=first(words, "Product Name", "Model"),
                pci=_pci(first(words, "PCI Address")),
                serial=first(words, "SerialNumber"),
                health=first(words, "Hlth", "Health", "Status"),
                settings=words,
                ports=(PortFacts("host", wwn=wwn),) if wwn else (),
            )
        )
    return found


def drives_of(answer: Answer, state: Callable[[Mapping[str, Any]], str]) -> tuple[DriveFacts, ...]:
    """Every drive of an answer, from the list and from the details, whichever are there; `state` reads a row's."""
    rows: dict[str, Mapping[str, Any]] = {}
    details: dict[str, Mapping[str, Any]] = {}
    for name in ("PD LIST", "JBOD LIST", "Drive Information"):
        listed = [as_mapping(row) for row in as_list(answer.data.get(name))]
        if len({_position(row) for row in listed}) != len(listed):
            raise ToolError(f"the answer of controller {answer.controller} lists two drives in one place ({name})")
        for row in listed:
            rows.setdefault(_position(row), row)
    for entry in map(as_mapping, as_list(answer.data.get("Drives List"))):
        # 96xx and PERC 12: one object a drive
        row = as_mapping(entry.get("Drive Information"))
        rows[_position(row)], details[_position(row)] = row, as_mapping(entry.get("Drive Detailed Information"))
    for key, value in _deep(answer.data):
        place = _DRIVE.match(_DETAILED.sub("", key))
        if place is None:
            continue
        position = f"{place.group(1) or ''}:{place.group(2)}"
        if isinstance(value, list) and value:
            rows.setdefault(position, as_mapping(value[0]))
        elif isinstance(value, dict):
            details[position] = value
    if "" in rows:
        raise ToolError(f"the answer of controller {answer.controller} lists a drive without its place")
    return tuple(_drive(position, row, details.get(position, {}), state) for position, row in rows.items())


def drives_told(text: str, tool: str, state: Callable[[Mapping[str, Any]], str]) -> tuple[DriveFacts, ...]:
    """The drives of `/cN/eall/sall show [all]`; none where there is none.

    Raises ToolError, also for an answer that tells nothing of drives.
    """
    found: list[DriveFacts] = []
    for answer in data_of(text, tool):
        drives = drives_of(answer, state)
        if not drives:
            raise ToolError(f"the answer of controller {answer.controller or '?'} says nothing about drives")
        found += drives
    return tuple(found)


def drives_behind(facts: ToolFacts, node: str) -> tuple[str, ...]:
    """The members of the volume at a block device, by WWN, serial or place; empty when no adapter has it."""
    for adapter in facts.adapters:
        for volume in adapter.volumes:
            if volume.device == node:
                known = {drive.position: drive.wwn or drive.serial for drive in adapter.drives}
                return tuple(known.get(position) or position for position in volume.members)
    return ()


def _deep(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of the data, and of the one section that drives may stand in."""
    yield from data.items()
    yield from as_mapping(data.get("Physical Device Information")).items()


def _position(row: object) -> str:
    """`252:4`; an adapter without enclosures leaves the first number blank."""
    return as_text(as_mapping(row).get("EID:Slt")).strip()


def _known(row: Mapping[str, Any], name: str) -> str:
    """What a column says; empty for `-`, which is all that is printed of a drive that does not answer."""
    said = as_text(row.get(name)).strip()
    return "" if said == "-" else said


def _drive(
    position: str,
    row: Mapping[str, Any],
    detail: Mapping[str, Any],
    state: Callable[[Mapping[str, Any]], str],
) -> DriveFacts:
    said = flat(detail, without=())
    words = {key: as_text(value).strip() for key, value in row.items()}
    size, sizes = _capacity(said, as_text(row.get("SeSz")))
    counters = {
        name: count
        for name in ("Media Error Count", "Other Error Count", "Predictive Failure Count", "Shield Counter")
        if (count := as_int(first(said, name))) is not None
    }
    return DriveFacts(
        position=position,
        wwn=printed_wwn(first(said, "WWN")),
        serial=first(said, "SN", "Serial Number"),
        vendor=first(said, "Manufacturer Id", "Manufacturer Identification", "Vendor"),
        model=first(said, "Model Number") or _known(row, "Model"),
        revision=first(said, "Firmware Revision", "Firmware Revision Level"),
        size=size,
        size_range=sizes,
        state=state(row),
        media=_known(row, "Med"),
        counters=counters,
        settings={**words, **said},
    )


def _capacity(said: Mapping[str, str], sector: str) -> tuple[int | None, tuple[int, int] | None]:
    """Bytes, from the number of sectors, since the sizes in words are rounded; or what they can be."""
    printed = first(said, "Raw size")
    words, match = printed.partition("[")[0], _SECTORS.search(printed)
    unit = size_of(first(said, "Logical Sector Size", "Sector Size") or sector)
    if match is None:
        return None, size_range(words, base=1024)
    sectors, told = int(match.group(1), 16), as_int(first(said, "Number of Blocks"))
    # where an HBA repeats the number as `Number of Blocks`, it is the last block's, as READ CAPACITY gives it
    size = blocks_size(sectors + (told == sectors), unit, words)
    if size is None:
        return None, size_range(words, base=1024)
    # newer releases do not repeat it; few drives have an odd number of sectors, and a last block is nearly always odd
    return (None, (size, size + size // sectors)) if sectors % 2 and told is None else (size, None)


def blocks_size(blocks: int, unit: int | None, printed: str) -> int | None:
    """Bytes of so many blocks of `unit` bytes, which the rounded size printed beside them must bear out.

    Where no unit is printed, or the one printed beside them is that of something else, the printed size tells whether
    they are of 512 or 4096 bytes; None when it does not. Raises ToolError when number and printed size contradict
    each other.
    """
    words = printed_size(printed, base=1024)
    if not words:
        return blocks * unit if unit else None
    for candidate in (unit, 512, 4096):
        # some builds round decimally, and some units of the last digit off; the block sizes are eight times apart
        if candidate and abs(blocks * candidate - words) <= max(words // 8, 1 << 20):
            return blocks * candidate
    raise ToolError(f"{blocks} blocks are said to be {printed.strip()}, which they are in no known block size")
