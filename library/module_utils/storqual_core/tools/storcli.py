# SPDX-License-Identifier: Apache-2.0
"""storcli and perccli: MegaRAID and PERC adapters up to the 95xx and PERC 11, and SAS HBAs of the same maker.

An answer begins with its status. Its body has `Name = value` lines, which a blank line ends, and sections with an
underlined title; a table has a rule above, between and below its head and its rows.

Releases write `Enclosure LIST` and `Enclosure List`, `PD LIST` and `PD List`: what is looked up by name gets the one
spelling of this table. A number that the answer tells of a list must be that of its rows.

Neither the exit status nor `Status` alone says whether a command worked: `Failure` may come with complete data, and
data with a status of 0 may say that nothing was found. Sections are objects of a dozen shapes by release; what is
not read into a field is kept under its path, as printed.

The first two are asked for by commands that call a normal state a failure: no foreign configuration at all, and a
cachevault where a battery was asked for.

Commands end in `J` (JSON) and `nolog`, or the tool leaves a log in the current folder. Reading was checked with
recorded outputs; the changing commands are those of published manuals and of programs in use, each read back by
whoever calls. The successors for 96xx and PERC 12 have another grammar: see `storcli2`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Callable, Dict, Iterator, Mapping, Sequence

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner, ToolAnswers, run_first
from ..kit.errors import ToolError, refuse_for
from ..kit.labelled_text import (
    as_int,
    as_list,
    as_mapping,
    as_text,
    pci_of,
    plain_label,
    printed_size,
    respelt,
    size_range,
    the_object,
)
from .capabilities import (
    AdapterEvent,
    AdapterFacts,
    BackgroundWork,
    DriveFacts,
    EnclosureFacts,
    FirmwareImage,
    PortFacts,
    Spelling,
    ToolFacts,
    Value,
    VolumeFacts,
    VolumeRequest,
    all_but_odd,
    read_or_why,
)

_HEAD = re.compile(
    r"^(?:CLI Version = .*\n)?(?:Operating system = .*\n)?(?:Controller = (?P<controller>.*)\n)?"
    r"(?:Status Code = .*\n)?Status = (?P<status>Success|Failure)\n(?:Description = (?P<description>.*)\n)?",
    re.MULTILINE | re.IGNORECASE,
)
_TITLE = re.compile(r"^(?P<title>\S.*?) ?:$")
_LABELLED = re.compile(r"^(?P<label>\S.*?)\s+=(?:\s+(?P<value>.*))?$")
_RULE = re.compile(r"^-{6,}$")
_OF_DRIVE = re.compile(r"Drive /c\d+(?:/e\d+)?/s\d+(?=(?P<part>.*))", re.IGNORECASE)
_DETAILED_TITLE = " - Detailed Information"
# tables whose rows are read: every head of theirs is one word, but for these; nobody reads the topology (DG Arr)
_OBJECTS = re.compile(r"\s*(?:ID\b|EID|DG(?!\s+Arr\b)|Ctrl?\b|VD\b|Drive-ID|Policy|Property)")
_HEADS = re.compile(
    r"Product Name|PCI Address|LU/NS Count|Estimated Time Left|Next Learn|Time Remaining|Adv S/W Opt|Negotiated Speed"
    r"|Num Phys/Lanes used|Link Speed|Media Type|SAS address"
)
_Entry = Dict[str, Any]


def controllers_of(text: str) -> list[_Entry]:
    """The entries that the JSON has under `Controllers`; none when the text has no status. Raises ToolError."""
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [_entry(head.groupdict(), text[head.end() : end].split("\n")) for head, end in zip(heads, ends)]


def _entry(head: dict[str, Any], lines: Sequence[str]) -> _Entry:
    data = _body(lines)
    status = {name.capitalize(): (value or "").strip() for name, value in head.items()}
    rows = data.pop("Detailed Status", [])
    # a table without a title is a list in the JSON
    response = data["Rows"] if set(data) == {"Rows"} else data
    return {"Command Status": {**status, "Detailed Status": rows}, "Response Data": response}


def _body(lines: Sequence[str]) -> _Entry:
    """Sections and labelled lines; a line that is neither is kept in `Lines`. Raises ToolError."""
    data: _Entry = {}
    around = section = data
    last = ""
    place = 0
    while place < len(lines):
        line, below = lines[place], "".join(lines[place + 1 : place + 2])
        title, labelled = _TITLE.match(line), _LABELLED.match(line)
        if title and below and not below.strip("="):
            name = title["title"].strip()
            around = _around(data, around, name)
            section = around if name.endswith(_DETAILED_TITLE) else around.setdefault(_fresh(around, name), {})
            place += 1
        elif _RULE.match(line):
            rows, place = _table(lines, place)
            if around is not data and any("EID:Slt" in row for row in rows):
                raise ToolError("drives are listed among the details of one of them: a title is not known")
            section.setdefault("", []).extend(rows)
        elif not line:
            # a table may stand apart from its title; what is not of a section is of what is around it
            section = around if section else section
        elif labelled and "|" not in line:
            # a table ends its section, also where the blank line behind it was left out
            section = around if "" in section else section
            last = _fresh(section, labelled["label"])
            section[last] = (labelled["value"] or "").strip()
        elif line[:1] in " \t" and "|" not in line and section.get(last):
            # a value that was wrapped
            section[last] = f"{section[last]} {line.strip()}"
        elif "|" not in line:
            data.setdefault("Lines", []).append(line)
        place += 1
    return {name or "Rows": _simple(value) for name, value in data.items()}


def _around(data: _Entry, around: _Entry, title: str) -> _Entry:
    """What a section stands in: the details of a drive begin with its name, and end where the next one is told of."""
    drive = _OF_DRIVE.match(title)
    if drive is None:
        return around
    details: _Entry = data.setdefault(f"{drive[0]}{_DETAILED_TITLE}", {}) if drive["part"] else data
    return details


def _fresh(section: _Entry, name: str) -> str:
    number = 1 + sum(key == name or key.startswith(f"{name} #") for key in section)
    return name if number == 1 else f"{name} #{number}"


def _simple(value: object) -> object:
    """A section of rows is a list, one of labelled lines an object; rows beside these are `Rows`."""
    if not isinstance(value, dict):
        return value
    if set(value) == {""}:
        return value[""]
    return {name or "Rows": _simple(inner) for name, inner in value.items()}


def _table(lines: Sequence[str], place: int) -> tuple[list[_Entry], int]:
    """The rows of the table whose upper rule is at `place`, and the place of its last rule. Raises ToolError."""
    rules = [number for number in range(place, len(lines)) if _RULE.match(lines[number])][:3]
    body = lines[place + 1 : rules[-1]]
    if len(rules) < 3 or rules[1] != place + 2 or not all(0 < len(line) <= len(lines[place]) for line in body):
        raise ToolError(f"a table is printed that is not whole: {' '.join(lines[place + 1 : place + 2])[:100]}")
    head, rows = body[0], body[2:]
    cells = list(_columns(_HEADS.sub(lambda match: match[0].replace(" ", "\0"), head), rows))
    if _OBJECTS.match(head) and any(len(name.split()) != 1 for name, _, _ in cells):
        raise ToolError(f"a table is printed that is not in columns: {head.strip()[:100]}")
    return [
        {name.strip().replace("\0", " "): row[start:end].strip() for name, start, end in cells} for row in rows
    ], rules[2]


def _columns(head: str, rows: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Head, start and end of each column: between columns no line has a letter."""
    lines = [head, *rows]
    width = max(map(len, lines))
    used = [any(line[place : place + 1].strip(" ") for line in lines) for place in range(width)]
    starts = [place for place in range(width) if used[place] and not (place and used[place - 1])]
    # blanks at one place in all values are no border where no head begins behind them
    starts = [start for start, end in zip(starts, [*starts[1:], width]) if head[start:end].strip(" ") or not start]
    for start, end in zip(starts, [*starts[1:], width]):
        yield head[start:end], start, end


_NAMES = {
    plain_label(name): name
    for name in (
        *("Command Status", "Controller", "Status", "Description", "Detailed Status", "ErrCd", "ErrMsg"),
        *("Response Data", "Number of Controllers", "System Overview", "IT System Overview", "IR System Overview"),
        *("IR3 System Overview", "VD LIST", "PD LIST", "JBOD LIST", "LU/NS LIST", "TOPOLOGY", "Enclosure LIST"),
        *("Enclosure Information", "Physical Device Information", "Virtual Drives", "Physical Drives", "JBOD Drives"),
        *("Drives List", "Drive Information", "Drive Detailed Information", "VD Info", "VD Properties", "PDs"),
        *("VD Operation Status", "FOREIGN CONFIGURATION", "Total foreign Drive Groups", "BBU_Info"),
        *("Cachevault_Info", "EID:Slt", "EID:Slot", "NoVDs", "DG/VD", "DG", "TYPE", "State", "Size", "Name", "Cache"),
        *("CurrentCache", "Model", "Med", "SeSz", "Ctl", "Ctrl", "Policy", "Property", "Current", "Value"),
        *("Operation", "EID", "Slots", "ProdID"),
    )
}
_NAMES[plain_label("Drive LIST")] = "PD LIST"  # as HPE's MR controllers call it
_LISTS = re.compile(
    r"(?:VD|PD|JBOD) LIST\Z|Virtual Drives\Z|Drives? /c\d+|/c\d+(?:/e\d+)?/[svd]\d+|PDs for VD|.*DRIVE LIST\Z"
    r"|Drive Information\Z",
    re.IGNORECASE,
)
# what needs attention, of an overview
_UNWELL = re.compile(r"Controller \d+\Z")
# enclosures are not among them: the tool counts some that it does not list
_COUNTS = (
    ("Virtual Drives", ("VD LIST",)),
    ("Physical Drives", ("PD LIST",)),
    ("JBOD Drives", ("JBOD LIST",)),
    ("Total foreign Drive Groups", ("FOREIGN CONFIGURATION",)),
)
# what an overview is called by the firmware that a controller has: MegaRAID, IT, IR
OVERVIEWS = ("System Overview", "IT System Overview", "IR System Overview", "IR3 System Overview")


def same_names(value: object) -> object:
    return respelt(value, _NAMES)


def check_counts(data: Mapping[str, Any], tool: str) -> None:
    """Raise ToolError when an answer tells another number of something than it lists, or lists it elsewhere."""
    for count, lists in _COUNTS:
        total = as_int(data.get(count))
        listed = max(len(as_list(data.get(name))) for name in lists)
        if total is not None and total != listed:
            raise ToolError(f"{tool} reports {total} ({count}) and lists {listed}: the answer is not whole")
    total, listed = as_int(data.get("Number of Controllers")), sum(len(as_list(data.get(name))) for name in OVERVIEWS)
    if total is not None and total != listed:
        raise ToolError(f"{tool} reports {total} controllers and lists {listed}: the answer is not whole")
    if as_int(data.get("Drive Groups")) and not (data.get("TOPOLOGY") or data.get("VD LIST")):
        raise ToolError(f"{tool} reports drive groups and shows none: the answer is not whole")
    inner = data.get("Physical Device Information")
    for name, value in [*data.items(), *(inner.items() if isinstance(inner, dict) else ())]:
        known = _LISTS.match(name) or (listed and _UNWELL.match(name))
        # rows beside labelled lines are no list, and nobody looks for them there
        for row in [*([] if known else as_list(value)), *as_list(as_mapping(value).get("Rows"))]:
            if isinstance(row, dict) and {"EID:Slt", "DG/VD"} & set(row):
                raise ToolError(f"{tool} lists drives or volumes under {name[:60]!r}, which is not known")


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
# what only a controller tells, of itself
_OF_CONTROLLER = {"basics", "productname", "adaptertype"}
_SUCCESS = ("success", "succeeded", "-", "")


@dataclass(frozen=True)
class ControllerAnswer:
    """What was said of one controller: its index (empty where none is named), the rows of its status, its data."""

    controller: str
    success: bool
    description: str
    rows: Sequence[Mapping[str, Any]]
    data: Mapping[str, Any]

    @property
    def complaints(self) -> list[str]:
        """What went wrong, a sentence each; empty when nothing did."""
        sentences = [
            f"{row_says} (code {as_text(row.get('ErrCd'))})"
            for row in self.rows
            if as_text(row.get("Status")).lower() not in _SUCCESS
            for row_says in [as_text(row.get("ErrMsg") or row.get("Description")) or "failed"]
        ]
        if not sentences and not self.success:
            sentences.append(self.description if self.description not in ("", "None") else "failed without a reason")
        return sentences

    @property
    def nothing(self) -> bool:
        """Whether it says that what was asked for does not exist: no controller, no volume, no drive."""
        counted = as_int(self.data.get("Number of Controllers"))
        sentences = [self.description, *self.complaints]
        return counted == 0 or (not self.data and any(_NOTHING.search(line) for line in sentences))


def answers_of(text: str, tool: str) -> list[ControllerAnswer]:
    """Every controller's answer, of JSON or plain text. Raises ToolError when it is neither."""
    try:
        entries = as_list(the_object(text, tool, "Controllers")["Controllers"])
    except ToolError:
        entries = controllers_of(text)
        if not entries:
            raise
    if not entries:
        raise ToolError(f"{tool} lists no controller, and does not say that there is none")
    answers = []
    for entry in as_list(same_names(entries)):
        status = as_mapping(as_mapping(entry).get("Command Status"))
        if not status:
            raise ToolError(f"{tool} printed a controller without a command status")
        answers.append(
            ControllerAnswer(
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


def data_of(text: str, tool: str) -> list[ControllerAnswer]:
    """The answers to a reading command: those with data, none for what does not exist.

    Raises ToolError when a controller failed and gave no data.
    """
    answers = [answer for answer in answers_of(text, tool) if not answer.nothing]
    for answer in answers:
        check_answer(answer, tool)
    return answers


def check_answer(answer: ControllerAnswer, tool: str) -> None:
    """Raise ToolError when a controller failed and gave no data, or lists another number of things than it says."""
    if not answer.data and answer.complaints:
        raise ToolError(f"{tool} could not read: {'; '.join(answer.complaints)}")
    check_counts(answer.data, tool)


def adapters_of(
    text: str,
    tool: str,
    firmware: Mapping[str, Sequence[str]],
    state: Callable[[Mapping[str, Any]], str],
    volume: Callable[[Mapping[str, Any], Mapping[str, Any]], VolumeFacts],
) -> tuple[AdapterFacts, ...]:
    """The controllers of an answer; one that cannot be read is told as unread. Raises ToolError when none can be.

    Of the overview of plain `show`: number, model and health of each. `firmware` are the labels of each version,
    `state` reads that of a drive's row, and `volume` a row of the list of volumes, beside the whole answer.
    """
    adapters: list[AdapterFacts] = []
    for answer in answers_of(text, tool):
        if answer.nothing:
            continue
        try:
            check_answer(answer, tool)
            if is_overview(answer):
                adapters += overview_of(answer)
                continue
            rows = map(as_mapping, as_list(answer.data.get("VD LIST")))
            volumes = all_but_odd(
                [volume_or_why(row, partial(volume, row, answer.data)) for row in rows], answer.data
            )
            adapters.append(replace(adapter_of(answer, firmware), drives=drives_of(answer, state), volumes=volumes))
        except ToolError as problem:
            adapters.append(AdapterFacts(answer.controller, unread=str(problem)))
    return all_but_odd(adapters)


def volume_or_why(row: Mapping[str, Any], read: Callable[[], VolumeFacts]) -> VolumeFacts:
    """The volume of a row of a list, or, with its number and state, why it cannot be read."""
    try:
        return read()
    except ToolError as problem:
        number = as_text(row.get("DG/VD", row.get("VD"))).rpartition("/")[2].strip()
        state = as_text(row.get("State")).strip()
        return VolumeFacts(number or "?", state=state, unread=f"volume {number or '?'}: {problem}")


def miscounted(words: Mapping[str, str], volume: VolumeFacts) -> str:
    """Why the drives of a volume that are listed are not all, by its spans; empty when they are.

    A volume that is degraded may list those alone that are there.
    """
    listed, spans = len(volume.members), as_int(first(words, "Span Depth"))
    each, all_of_it = as_int(first(words, "Number of Drives Per Span")), as_int(first(words, "Number of Drives"))
    counts = {each * spans} if each and spans else {all_of_it, all_of_it * (spans or 1)} if all_of_it else {listed}
    # what is missing has no place
    placed = [member for member in volume.members if member.strip("-: ")]
    if len(set(placed)) != len(placed):
        return f"volume {volume.id} lists a drive twice: {', '.join(volume.members)[:200]}"
    if listed in counts or (volume.healthy is False and listed < max(counts)):
        return ""
    return f"volume {volume.id} is said to have {max(counts)} drives, and lists {listed}"


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
    settings: dict[str, str] = {}

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
            settings[" / ".join(path)] = as_text(value).strip()

    walk(data, ())
    return settings


def first(settings: Mapping[str, str], *names: str) -> str:
    """The value of the first name that is there and not a blank, at any depth: `Model` matches `Basics / Model`."""
    pairs = [(_plain_path(path), value) for path, value in settings.items() if value not in ("", "N/A", "NA", "None")]
    for wanted in map(_plain_path, names):
        for path, value in pairs:
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


def adapter_of(answer: ControllerAnswer, firmware: Mapping[str, Sequence[str]]) -> AdapterFacts:
    """The adapter itself; `firmware` gives the names of each component's version, the preferred one first."""
    settings = flat(answer.data)
    if not _OF_CONTROLLER & {plain_label(key) for key in answer.data}:
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


def is_overview(answer: ControllerAnswer) -> bool:
    return any(name in answer.data for name in OVERVIEWS)


def overview_of(answer: ControllerAnswer) -> list[AdapterFacts]:
    """The controllers of an overview (`show` without a controller): number, model, health. Raises ToolError."""
    adapters = []
    for row in (row for name in OVERVIEWS for row in as_list(answer.data.get(name))):
        words = {str(key): as_text(value).strip() for key, value in as_mapping(row).items()}
        index = first(words, "Ctl", "Ctrl")
        if not index:
            odd = "the overview lists a controller without its number"
            adapters.append(AdapterFacts("?", settings=words, unread=odd))
            continue
        wwn = printed_wwn(first(words, "SASAddress", "SAS Address").lower())
        for unwell in map(as_mapping, as_list(answer.data.get(f"Controller {index}"))):
            place = as_text(unwell.get("EID:Slt") or unwell.get("DG/VD")).strip()
            words[f"Need Attention / {place}"] = as_text(unwell.get("State")).strip()
        adapters.append(
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
    return adapters


def drives_of(answer: ControllerAnswer, state: Callable[[Mapping[str, Any]], str]) -> tuple[DriveFacts, ...]:
    """Every drive of an answer, from the list and from the details, whichever are there; `state` reads a row's."""
    rows: dict[str, Mapping[str, Any]] = {}
    details: dict[str, Mapping[str, Any]] = {}
    odd: dict[str, str] = {}
    for name in ("PD LIST", "JBOD LIST", "Drive Information"):
        seen: set[str] = set()
        for row in map(as_mapping, as_list(answer.data.get(name))):
            place = _position(row)
            if place in seen:
                odd[place] = f"the answer of controller {answer.controller} lists two drives in one place ({name})"
            seen.add(place)
            rows.setdefault(place, row)
    for entry in map(as_mapping, as_list(answer.data.get("Drives List"))):
        # 96xx and PERC 12: one object a drive
        row = as_mapping(entry.get("Drive Information"))
        rows[_position(row)], details[_position(row)] = row, as_mapping(entry.get("Drive Detailed Information"))
    for key, value in _deep(answer.data):
        match = _DRIVE.match(_DETAILED.sub("", key))
        if match is None:
            continue
        position = f"{match.group(1) or ''}:{match.group(2)}"
        if isinstance(value, list) and value:
            rows.setdefault(position, as_mapping(value[0]))
        elif isinstance(value, dict):
            details[position] = value
    if "" in rows:
        odd[""] = f"the answer of controller {answer.controller} lists a drive without its place"
    drives = []
    for position, row in rows.items():
        read = partial(_drive, position, row, details.get(position, {}), state)
        drive = read_or_why(read, DriveFacts(position, state=as_text(row.get("State")).strip()))
        drives.append(replace(drive, unread=odd.get(position, drive.unread)))
    return tuple(drives)


def drives_told(text: str, tool: str, state: Callable[[Mapping[str, Any]], str]) -> tuple[DriveFacts, ...]:
    """The drives of `/cN/eall/sall show [all]`; none where there is none.

    Raises ToolError, also for an answer that tells nothing of drives.
    """
    all_drives: list[DriveFacts] = []
    for answer in data_of(text, tool):
        refuse_controller(answer, tool, "drives")
        drives = drives_of(answer, state)
        if not drives:
            raise ToolError(f"the answer of controller {answer.controller or '?'} says nothing about drives")
        all_drives += drives
    return all_but_odd(all_drives)


def refuse_controller(answer: ControllerAnswer, tool: str, wanted: str) -> None:
    """Raise ToolError for what a controller, or the overview, tells of itself where a list was asked for.

    What it lists of its drives and volumes beside that is less, and may be nothing.
    """
    if is_overview(answer) or _OF_CONTROLLER & {plain_label(key) for key in answer.data}:
        raise ToolError(f"{tool} printed what it shows of the controller itself where its {wanted} were asked for")


def drives_behind(facts: ToolFacts, node: str) -> tuple[str, ...]:
    """The members of the volume at a block device, by WWN, serial or place; empty when no adapter has it."""
    for adapter in facts.adapters:
        for volume in adapter.volumes:
            if volume.device == node and volume.unread:
                raise ToolError(volume.unread)
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


def _column(row: Mapping[str, Any], name: str) -> str:
    """What a column says; empty for `-`, which is all that is printed of a drive that does not answer."""
    value = as_text(row.get(name)).strip()
    return "" if value == "-" else value


def _drive(
    position: str, row: Mapping[str, Any], detail: Mapping[str, Any], state: Callable[[Mapping[str, Any]], str]
) -> DriveFacts:
    fields = flat(detail, without=())
    words = {key: as_text(value).strip() for key, value in row.items()}
    size, sizes = _capacity(fields, as_text(row.get("SeSz")))
    counters = {
        name: count
        for name in ("Media Error Count", "Other Error Count", "Predictive Failure Count", "Shield Counter")
        if (count := as_int(first(fields, name))) is not None
    }
    return DriveFacts(
        position=position,
        wwn=printed_wwn(first(fields, "WWN")),
        serial=first(fields, "SN", "Serial Number"),
        vendor=first(fields, "Manufacturer Id", "Manufacturer Identification", "Vendor"),
        model=first(fields, "Model Number") or _column(row, "Model"),
        revision=first(fields, "Firmware Revision", "Firmware Revision Level"),
        size=size,
        size_range=sizes,
        state=state(row),
        media=_column(row, "Med"),
        counters=counters,
        settings={**words, **fields},
    )


def _capacity(fields: Mapping[str, str], sector: str) -> tuple[int | None, tuple[int, int] | None]:
    """Bytes, from the number of sectors, since the sizes in words are rounded; or what they can be."""
    printed = first(fields, "Raw size")
    words, match = printed.partition("[")[0], _SECTORS.search(printed)
    unit = size_of(first(fields, "Logical Sector Size", "Sector Size") or sector)
    if match is None:
        return None, size_range(words, base=1024)
    sectors, blocks = int(match.group(1), 16), as_int(first(fields, "Number of Blocks"))
    # where an HBA repeats the number as `Number of Blocks`, it is the last block's, as READ CAPACITY gives it
    size = blocks_size(sectors + (blocks == sectors), unit, words)
    if size is None:
        return None, size_range(words, base=1024)
    # newer releases do not repeat it; few drives have an odd number of sectors, and a last block is nearly always odd
    return (None, (size, size + size // sectors)) if sectors % 2 and blocks is None else (size, None)


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


_NO_FOREIGN = re.compile(r"(?:no|couldn't find any|there (?:is|are) no) foreign config", re.IGNORECASE)
# locked drives are foreign as well, and belong to no drive group
_FOREIGN_DRIVES = ("totalforeignpds", "totallockedforeignpds")
_INCOMPLETE = re.compile(r"incomplete foreign config", re.IGNORECASE)
_ASK_CV = re.compile(r"use /c(?:x|\d+)/cv", re.IGNORECASE)
_NO_BACKUP = re.compile(
    r"\b(?:bbu|battery|cachevault|cv|energy ?pack)\b.*\b(?:absent|not (?:present|found|supported))", re.IGNORECASE
)
_VOLUME = re.compile(r"\A/c\d+/v\d+\Z", re.IGNORECASE)
_SECTIONS = ("BBU_Info", "Cachevault_Info")
# a spare that is shielded, sanitised or degraded is still one: `HSPShld`, `DHSDgrd`
_SPARES = ("DHS", "GHS", "HSP")
# `Background Initialization (3%), Consistency Check (36%)`; of some only the name is told
_STATE_WORD = re.compile(r"[A-Z][a-z]+")
_OPERATION = re.compile(r"([a-z][a-z /-]*[a-z])\s*(?:\(\s*([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%\s*\))?", re.IGNORECASE)
_TASKS = {
    **dict.fromkeys(("init", "background", "bgi"), "initialise"),
    **dict.fromkeys(("cc", "consist"), "check"),
    **dict.fromkeys(("copyback", "cpybck", "replac"), "copyback"),
    **dict.fromkeys(("expan", "migrat", "recon"), "reshape"),
    **dict.fromkeys(("rbld", "rebuild"), "rebuild"),
    **dict.fromkeys(("sanit", "sntz"), "sanitize"),
    "eras": "erase",
}


def _message(answer: ControllerAnswer) -> str:
    return "; ".join([answer.description, *answer.complaints])


def parse_foreign(text: str, tool: str = "storcli") -> tuple[Mapping[str, str], ...]:
    """The foreign drive groups of `/cN/fall show [all]`, a row each, none where there is none.

    `Importable` says whether a row can be imported: of an incomplete configuration the tool tells that it is there,
    and not of what. Raises ToolError.
    """
    groups: list[Mapping[str, str]] = []
    for answer in answers_of(text, tool):
        check_counts(answer.data, tool)
        rows = [as_mapping(row) for row in as_list(answer.data.get("FOREIGN CONFIGURATION"))]
        incomplete = bool(_INCOMPLETE.search(_message(answer)))
        counted = [as_int(value) for name, value in answer.data.items() if plain_label(name) in _FOREIGN_DRIVES]
        if rows:
            importable = "no" if incomplete else "yes"
            groups += [
                {**{key: as_text(value).strip() for key, value in row.items()}, "Importable": importable}
                for row in rows
            ]
        elif incomplete:
            # a release may write its labels in capitals
            fields = {key.capitalize(): as_text(value).strip() for key, value in answer.data.items()}
            groups.append({"State": "Incomplete foreign configuration", "Importable": "no", **fields})
        elif any(count != 0 for count in counted):
            fields = {key: as_text(value).strip() for key, value in answer.data.items()}
            groups.append({"State": "Foreign drives without a configuration", "Importable": "no", **fields})
        elif not counted and not _NO_FOREIGN.search(_message(answer)) and not answer.nothing:
            raise ToolError(f"{tool} tells of no foreign configuration, nor of none: {_message(answer)[:200]}")
    return tuple(groups)


def parse_backup(text: str, tool: str = "storcli") -> Mapping[str, str]:
    """What backs the cache, of `/cN/bbu show all` or `/cN/cv show all`; empty where nothing does.

    Raises ToolError.
    """
    backup: dict[str, str] = {}
    for answer in answers_of(text, tool):
        section = next((name for name in _SECTIONS if as_list(answer.data.get(name))), "")
        if not section and not _NO_BACKUP.search(_message(answer)) and not answer.nothing:
            raise ToolError(f"{tool} does not tell what backs the cache: {_message(answer)[:200]}")
        for row in map(as_mapping, as_list(answer.data.get(section))):
            if "Property" in row:
                backup[as_text(row.get("Property")).strip()] = as_text(row.get("Value")).strip()
            else:
                backup.update({key: as_text(value).strip() for key, value in row.items()})
        for name, rows in answer.data.items():
            # its firmware, its gauge and so on
            properties = [as_mapping(row) for row in as_list(rows)] if name != section else []
            backup.update(
                {
                    f"{name} / {as_text(row['Property']).strip()}": as_text(row.get("Value")).strip()
                    for row in properties
                    if "Property" in row
                }
            )
    return backup


def more_settings(ask: Callable[[str], str], index: str, notes: list[str]) -> dict[str, str]:
    """Foreign configurations and what backs the cache, as settings of a controller; what is not told is a note.

    `ask` runs one command of the tool and returns what it printed.
    """
    settings: dict[str, str] = {}
    try:
        foreign = parse_foreign(ask(f"/c{index}/fall show"))
        settings["Foreign Configurations"] = str(len(foreign))
        for number, row in enumerate(foreign):
            settings.update({f"Foreign Configuration {number} / {key}": value for key, value in row.items()})
    except ToolError as problem:
        notes.append(str(problem))
    try:
        output = ask(f"/c{index}/bbu show all")
        if any(_ASK_CV.search(_message(answer)) for answer in answers_of(output, "storcli")):
            output = ask(f"/c{index}/cv show all")
        settings.update({f"Backup / {key}": value for key, value in parse_backup(output).items()})
    except ToolError as problem:
        notes.append(str(problem))
    return settings


def volumes_apart(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Row, drives and properties of each volume, which are sections apart in plain text and in JSON before 96xx."""
    named = {plain_label(key): value for key, value in data.items()}
    return [
        {"VD Info": row, "PDs": named.get(f"pdsforvd{number}"), "VD Properties": named.get(f"vd{number}properties")}
        for key, value in data.items()
        if _VOLUME.match(key)
        for row in map(as_mapping, as_list(value))
        for number in [as_text(row.get("DG/VD", row.get("VD"))).rpartition("/")[2].strip()]
    ]


def with_foreign(state: str, row: Mapping[str, Any]) -> str:
    """The state of a drive, with what its drive group `F` means: it has the configuration of another controller."""
    return f"{state} foreign" if as_text(row.get("DG")).strip() == "F" else state


def places(
    drives: Sequence[tuple[str, str, str]], failed: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Members, spares and those that failed among drives, which are given by place, state and status.

    Spares of every volume (`GHS`) are none of one volume's.
    """
    return (
        tuple(place for place, state, _ in drives if not state.startswith(_SPARES)),
        tuple(place for place, state, _ in drives if state.startswith(_SPARES) and not state.startswith("GHS")),
        tuple(place for place, _, status in drives if status in failed),
    )


def under_way(operations: str, drives: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """Percent by task of `Consistency Check (36%)` and of what drives are in: 0 where no percentage is told."""
    percents = {task: 0.0 for _, *words in drives for task in map(task_of, words) if task}
    for name, percent in _OPERATION.findall(operations):
        percents[task_of(name) or name] = float(percent or 0)
    return percents


def task_of(name: str) -> str:
    """The task that a name begins with, or one of its words, as `UConfSntz Good` of 96xx; empty for another."""
    words = [name.lower(), *(word.lower() for word in _STATE_WORD.findall(name))]
    return next((task for begun, task in _TASKS.items() if any(word.startswith(begun) for word in words)), "")


def path_of(position: str) -> str:
    """`/e252/s4` of `252:4`."""
    enclosure, _, slot = position.rpartition(":")
    return f"/e{enclosure}/s{slot}" if enclosure else f"/s{slot}"


def tasks_of(ask: Callable[[str], str], index: str, volume: VolumeFacts) -> dict[str, float]:
    """Percent by task on a volume and on the drives in it: of several drives the one with the longest way to go.

    `ask` runs one command of the tool and returns what it printed. Raises ToolError.
    """
    percents: dict[str, float] = {}
    answered = False
    for words in ("init", "bgi", "cc", "migrate"):
        for answer in answers_of(ask(f"/c{index}/v{volume.id} show {words}"), "storcli"):
            rows = as_list(answer.data.get("VD Operation Status"))
            answered = answered or bool(rows)
            for row in map(as_mapping, rows):
                percent, task = percent_of(row.get("Progress%")), task_of(as_text(row.get("Operation")))
                if task and percent is not None:
                    percents[task] = percent
    if not answered:
        raise ToolError(f"storcli does not tell what is under way on volume {volume.id}")
    members = {f"/c{index}{path_of(member)}" for member in volume.members}
    for task in ("rebuild", "copyback"):
        for answer in answers_of(ask(f"/c{index}/eall/sall show {task}"), "storcli"):
            for row in map(as_mapping, as_list(answer.data.get("Response Data"))):
                percent = percent_of(row.get("Progress%"))
                if as_text(row.get("Drive-ID")) in members and percent is not None:
                    percents[task] = min(percent, percents.get(task, percent))
    return percents


PROGRAMS = ("storcli64", "storcli", "perccli64", "perccli")
SETTINGS: Mapping[str, Spelling] = {
    "rebuild_rate": Spelling("Rebuild Rate", "rebuildrate", "documented only"),
    "interrupt_coalescing_depth": Spelling("Interrupt Throttle Active Count", "", "recorded"),
    "interrupt_coalescing_timeout": Spelling("Interrupt Throttle Completion", "", "recorded"),
}
"""Canonical names, the words of the policies' table, and the word to set it by (none: only read)."""

FREE = ("UGood",)
_TOOL = "storcli"
_TIMEOUT = 180.0
_DOWNLOAD_TIMEOUT = 3600.0
_FIRMWARE = {
    "firmware": ("Firmware Version", "FW Version"),
    "package": ("Firmware Package Build", "FW Package Build"),
    "bios": ("Bios Version", "BIOS Version"),
    "nvdata": ("NVDATA Version",),
}
# `Ra` reads ahead when it finds a sequence; newer releases call always-write-back forced
_CACHE = re.compile(r"\A(NR|Ra|R)?(AWB|FWB|WB|WT)?([CD])?\Z")
_READ_POLICY = {"R": "ra", "NR": "nora"}
_WRITE_POLICY = {"FWB": "awb"}
_FAILED = ("Failed", "Offln", "UBad", "UBUnsp", "Msng")
_IO_POLICY = {"D": "direct", "C": "cached"}
_DISK_CACHE = {"disk's default": "default", "enabled": "enable", "disabled": "disable"}
_LEVELS = {"0": 1, "1": 2, "5": 3, "6": 4, "10": 4, "50": 6, "60": 8}
_SPANS = {"10": 2, "50": 2, "60": 2}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,15}\Z")
_DOWNLOADS = {"firmware": "", "package": "", "bios": "bios ", "efibios": "efibios "}
_WRITING = {
    # canonical name: the word of the command, and its values by the canonical ones
    "read_policy": ("rdcache", {"ra": "ra", "nora": "nora"}),
    "write_policy": ("wrcache", {"wb": "wb", "wt": "wt", "awb": "awb"}),
    "io_policy": ("iopolicy", {"direct": "direct", "cached": "cached"}),
    "disk_cache": ("pdcache", {"enable": "on", "disable": "off", "default": "default"}),
}


def _ask(runner: Runner, words: str, timeout: float = _TIMEOUT) -> Completed:
    return run_first(runner, PROGRAMS, [*words.split(" "), "J", "nolog"], timeout=timeout)


def read_facts(runner: Runner) -> ToolFacts:
    """Every controller with its drives and volumes; none when there is none. Raises ToolError."""
    facts = _whole(runner)
    notes = list(facts.notes)
    adapters = []
    for adapter in facts.adapters:
        more = more_settings(lambda words: _ask(runner, words).stdout, adapter.index, notes)
        adapters.append(replace(adapter, settings={**adapter.settings, **more}))
    return ToolFacts(tuple(adapters), tuple(notes))


def _whole(runner: Runner) -> ToolFacts:
    """Every controller with its drives and volumes. Raises ToolError."""
    adapters = []
    notes: list[str] = []
    for adapter in parse_adapters(_ask(runner, "/call show all").stdout):
        known = {drive.position: drive for drive in adapter.drives}
        refused: list[str] = []
        for words in (f"/c{adapter.index}/eall/sall show all", f"/c{adapter.index}/sall show all"):
            try:
                drives = parse_drives(_ask(runner, words).stdout)
            except ToolError as problem:
                # drives in enclosures and those without are asked for apart, and an adapter may know one way only
                refused.append(str(problem))
                continue
            known.update({drive.position: drive for drive in drives})
        volumes, unread = _volumes_or_why(runner, adapter.index)
        notes += refused
        # neither way told of drives, nor that there is none
        unread = unread or (refused[0] if len(refused) == 2 and not known else "")
        why = adapter.unread or unread
        adapters.append(replace(adapter, drives=tuple(known.values()), volumes=volumes, unread=why))
    return ToolFacts(all_but_odd(adapters), tuple(notes))


def _volumes_or_why(runner: Runner, index: str) -> tuple[tuple[VolumeFacts, ...], str]:
    """The volumes of a controller, or why they cannot be read: that says nothing against the others."""
    try:
        return read_volumes(runner, index), ""
    except ToolError as problem:
        return (), str(problem)


def parse_adapters(text: str) -> tuple[AdapterFacts, ...]:
    """The controllers of `/call show all` (or `show`), with the drives and volumes listed there.

    Raises ToolError.
    """
    return adapters_of(text, _TOOL, _FIRMWARE, _state, _listed)


def parse_drives(text: str) -> tuple[DriveFacts, ...]:
    """The drives of `/cN/eall/sall show all` or `/cN/sall show all`. Raises ToolError."""
    return drives_told(text, _TOOL, _state)


def _state(row: Mapping[str, Any]) -> str:
    if "State" not in row or "Status" in row:
        # state and status apart are storcli2's, whose words are others
        what = "without its state" if "State" not in row else "with a status beside its state, as storcli2 does"
        raise ToolError(f"{_TOOL} lists a drive ({as_text(row.get('EID:Slt'))}) {what}")
    return with_foreign(as_text(row.get("State")).strip("- "), row)


def _placed(drives: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Place and state of drives; the state is the status here."""
    return [(as_text(drive.get("EID:Slt")).strip(), state, state) for drive in drives for state in [_state(drive)]]


def _listed(row: object, data: Mapping[str, Any]) -> VolumeFacts:
    """One row of a list of volumes; its members are the drives of its group, where those are listed too."""
    words = {key: as_text(value).strip() for key, value in as_mapping(row).items()}
    # the volumes of IR firmware are of no group, and their drives name none
    group, _, number = words.get("DG/VD", words.get("VD", "")).rpartition("/")
    drives = [as_mapping(drive) for drive in as_list(data.get("PD LIST"))]
    placed = _placed([drive for drive in drives if as_text(drive.get("DG")).strip() == group != ""])
    cache = _CACHE.match(words.get("Cache", ""))
    read, write, through = cache.groups() if cache else (None, None, None)
    policies = {
        "read_policy": _READ_POLICY.get(read or "", ""),
        "write_policy": _WRITE_POLICY.get(write or "", (write or "").lower()),
        "io_policy": _IO_POLICY.get(through or "", ""),
    }
    return volume_of_row(number, words, policies, placed, _FAILED)


def volume_of_row(
    number: str,
    words: Mapping[str, str],
    policies: Mapping[str, str],
    placed: Sequence[tuple[str, str, str]],
    lost: Sequence[str],
) -> VolumeFacts:
    """A volume by its row in a list; `lost` are the states of members that failed."""
    members, spares, failed = places(placed, lost)
    state, printed = words.get("State", ""), words.get("Size", "")
    return VolumeFacts(
        id=number,
        name=words.get("Name", ""),
        level=words.get("TYPE", "").upper().replace("RAID", ""),
        state=state,
        size=printed_size(printed, base=1024),
        size_range=size_range(printed, base=1024, off=3),
        members=members,
        spares=spares,
        failed=failed,
        policies={name: value for name, value in policies.items() if value},
        progress=under_way("", placed),
        healthy=state == "Optl" if state.strip("-") else None,
        settings={name: value for name, value in words.items() if name not in ("DG/VD", "TYPE", "State", "Name")},
    )


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """The volumes of one controller, with strip, members and what is under way. Raises ToolError."""
    volumes = parse_volumes(_ask(runner, f"/c{index}/vall show all").stdout)
    return tuple(volume if volume.unread else _with_progress(runner, index, volume) for volume in volumes)


def _with_progress(runner: Runner, index: str, volume: VolumeFacts) -> VolumeFacts:
    if volume.settings.get("Active Operations", "") == "None" and not volume.progress:
        return replace(volume, progress={})
    try:
        return replace(volume, progress={**volume.progress, **progress(runner, index, volume)})
    except ToolError as problem:
        return replace(volume, healthy=None, unread=str(problem))


def parse_volumes(text: str) -> tuple[VolumeFacts, ...]:
    """The volumes of `/cN/vall show all` or, with less of each, of `/cN/vall show`; none where there is none.

    Raises ToolError, also for an answer that tells nothing of volumes.
    """
    volumes: list[VolumeFacts] = []
    for answer in data_of(text, _TOOL):
        refuse_controller(answer, _TOOL, "volumes")
        rows = [*as_list(answer.data.get("Virtual Drives")), *as_list(answer.data.get("VD LIST"))]
        listed = [volume_or_why(row, partial(_listed, row, answer.data)) for row in map(as_mapping, rows)]
        full = [
            volume_or_why(as_mapping(entry.get("VD Info")), partial(_detailed, entry))
            for entry in volumes_apart(answer.data)
        ]
        if not listed and not full:
            raise ToolError(f"the answer of controller {answer.controller or '?'} says nothing about volumes")
        if not all(volume.id for volume in (*listed, *full)):
            raise ToolError(f"the answer of controller {answer.controller or '?'} lists a volume without its number")
        volumes += full or listed
    return all_but_odd(volumes)


def _detailed(entry: Mapping[str, Any]) -> VolumeFacts:
    volume = _listed(entry.get("VD Info"), {})
    placed = _placed([as_mapping(drive) for drive in as_list(entry.get("PDs"))])
    words = properties_of(volume, entry)
    disk_cache = _DISK_CACHE.get(first(words, "Disk Cache Policy", "Drive Write Cache Policy").lower(), "")
    return with_properties(volume, words, placed, _FAILED, disk_cache, first(words, "Active Operations"))


def properties_of(volume: VolumeFacts, entry: Mapping[str, Any]) -> Mapping[str, str]:
    words = flat(as_mapping(entry.get("VD Properties")), without=())
    if not words:
        raise ToolError(f"volume {volume.id or '?'} is listed without its properties")
    return words


def with_properties(
    volume: VolumeFacts,
    words: Mapping[str, str],
    placed: Sequence[tuple[str, str, str]],
    lost: Sequence[str],
    disk_cache: str,
    doing: str,
) -> VolumeFacts:
    """A volume with what its properties and its drives tell."""
    members, spares, failed = places(placed, lost)
    blocks, unit = as_int(first(words, "Number of Blocks")), size_of(first(words, "Block Size"))
    printed = volume.settings.get("Size", "")
    device = first(words, "OS Drive Name")
    odd = miscounted(words, replace(volume, members=members))
    return replace(
        volume,
        wwn=printed_wwn(first(words, "SCSI NAA Id")),
        size=volume.size if blocks is None else blocks_size(blocks, unit, printed),
        size_range=volume.size_range if blocks is None else None,
        strip=size_of(first(words, "Strip Size")),
        members=members,
        spares=spares,
        failed=failed,
        policies={**volume.policies, **({"disk_cache": disk_cache} if disk_cache else {})},
        progress=under_way(doing, placed),
        device=f"/dev/{device.rpartition('/')[2]}" if device else "",
        settings={**volume.settings, **words},
        healthy=None if odd else volume.healthy,
        unread=odd,
    )


def progress(runner: Runner, index: str, volume: VolumeFacts) -> Mapping[str, float]:
    """Percent by task of what a controller does with a volume, and with the drives in it. Raises ToolError."""
    return tasks_of(lambda words: _ask(runner, words).stdout, index, volume)


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """What these controllers have nothing for, or cannot make of so many drives."""
    flaws = []
    if request.level not in _LEVELS:
        flaws.append(f"they make no RAID {request.level}, only {', '.join(_LEVELS)}")
    elif len(request.members) < _LEVELS[request.level]:
        flaws.append(f"RAID {request.level} needs {_LEVELS[request.level]} members, {len(request.members)} are named")
    elif request.level in _SPANS and len(request.members) % 2:
        flaws.append(f"RAID {request.level} needs an even number of members, {len(request.members)} are named")
    wrong = request.strip_objection(8 << 10, 1 << 20)
    flaws += [wrong] if wrong else []
    if "bitmap" in request.policies:
        flaws.append("the controller keeps its own journal: there is no bitmap to choose")
    if request.name and not _NAME.match(request.name):
        flaws.append("names have up to 15 letters, digits, dots, dashes and underscores")
    return tuple(flaws)


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a volume, then give it its spares; the order of the words matters to the tool. Raises ToolError."""
    refuse_for(objections(request))
    words = [f"/c{index}", "add", "vd", f"type=raid{request.level}", "size=all"]
    words += [f"name={request.name}"] if request.name else []
    words.append(f"drives={','.join(request.members)}")
    if request.level in _SPANS:
        per_span = 2 if request.level == "10" else len(request.members) // _SPANS[request.level]
        words.append(f"PDperArray={per_span}")
    for name in ("write_policy", "read_policy", "io_policy"):
        words += [_WRITING[name][1][str(request.policies[name])]] if name in request.policies else []
    words += [f"strip={request.strip // 1024}"] if request.strip is not None else []
    carried_out(_ask(runner, " ".join(words)), _TOOL, f"a volume on controller {index} could not be made")
    for position in request.spares:
        words = [f"/c{index}{path_of(position)}", "add", "hotsparedrive"]
        carried_out(_ask(runner, " ".join(words)), _TOOL, f"drive {position} could not be made a hot spare")


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Delete a volume with all that is on it. Raises ToolError."""
    ended = _ask(runner, f"/c{index}/v{volume.id} del force")
    carried_out(ended, _TOOL, f"volume {volume.id} of controller {index} could not be deleted", "stop what uses it")


def set_policy(runner: Runner, index: str, volume: VolumeFacts, name: str, value: Value) -> None:
    """Set a cache policy, the name, or the controller's rebuild rate. Raises ToolError."""
    if name == "rebuild_rate":
        write_setting(runner, index, name, value)
        return
    if name == "name":
        words = f"name={value}"
    elif name in _WRITING and str(value) in _WRITING[name][1]:
        words = f"{_WRITING[name][0]}={_WRITING[name][1][str(value)]}"
    else:
        raise ToolError(f"{_TOOL} knows no {name} of {value!r}")
    ended = _ask(runner, f"/c{index}/v{volume.id} set {words}")
    carried_out(ended, _TOOL, f"{name} of volume {volume.id} could not be set to {value}")


def initialise(runner: Runner, index: str, volume: VolumeFacts, kind: str) -> None:
    """Start writing zeros: to both ends (`fast`) or to all of the volume (`full`). Raises ToolError."""
    if kind not in ("fast", "full"):
        raise ToolError(f"{_TOOL} initialises fast or full, not {kind}")
    words = f"/c{index}/v{volume.id} start init {'full ' if kind == 'full' else ''}force"
    carried_out(_ask(runner, words), _TOOL, f"the initialisation of volume {volume.id} could not be started")


def _controller(runner: Runner, index: str) -> AdapterFacts:
    adapters = parse_adapters(_ask(runner, f"/c{index} show all").stdout)
    if len(adapters) != 1:
        raise ToolError(f"{_TOOL} finds no controller {index}")
    return adapters[0]


def read_settings(runner: Runner, index: str) -> Mapping[str, Value]:
    """The controller's properties that have a canonical name: shares in percent, counts, microseconds."""
    settings = _controller(runner, index).settings
    values: dict[str, Value] = {}
    for name, spelling in SETTINGS.items():
        number = percent_of(first(settings, spelling.read))
        if number is not None:
            values[name] = int(number)
    return values


def write_setting(runner: Runner, index: str, name: str, value: Value) -> None:
    """Set a property of the controller. Raises ToolError for one whose way of writing is not known."""
    spelling = SETTINGS.get(name)
    if spelling is None or not spelling.write:
        raise ToolError(f"how {_TOOL} sets {name} is not verified, so it is not tried; set it with the vendor's menu")
    ended = _ask(runner, f"/c{index} set {spelling.write}={value}")
    carried_out(ended, _TOOL, f"{name} of controller {index} could not be set to {value}")


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """Versions by component; an image that waits for a restart is `firmware.pending`."""
    adapter = _controller(runner, index)
    pending = first(adapter.settings, "Pending Images in Flash / Image name")
    waits = {"firmware.pending": pending} if pending and pending.lower() != "no pending images" else {}
    return {**adapter.firmware, **waits}


def download(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Put an image into the controller's flash. Raises ToolError; the caller reads the versions back."""
    if image.component not in _DOWNLOADS:
        raise ToolError(f"{_TOOL} downloads {', '.join(_DOWNLOADS)}, not {image.component}")
    words = [f"/c{index}", "download", *_DOWNLOADS[image.component].split(), f"file={image.path}"]
    ended = run_first(runner, PROGRAMS, [*words, "J", "nolog"], timeout=_DOWNLOAD_TIMEOUT)
    carried_out(ended, _TOOL, f"{image.component} of controller {index} could not be downloaded")


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """`reboot` while the image waits in flash, `none` when the controller runs it."""
    versions = read_versions(runner, index)
    return "none" if versions.get(image.component) == image.version else "reboot"


def resolve(runner: Runner, node: str) -> tuple[str, ...]:
    """The drives behind a volume's block device, by WWN or serial; empty when no controller has such a volume."""
    return drives_behind(_whole(runner), node)


# the controller's own log, which is text although JSON is asked for, and what it does beside the commands of the host
_EVENT = re.compile(r"^\s*seqNum\s*:\s*0x([0-9a-f]{1,16})\s*$", re.IGNORECASE | re.MULTILINE)
_EVENT_FIELD = re.compile(
    r"^\s*(Time|Seconds since last reboot|Code|Class|Locale|Event Description|Event Data)\s*:\s*(.*?)\s*$",
    re.IGNORECASE,
)
_OF_COMMAND = re.compile(r"^(?:CLI Version|Operating system|Events) = ", re.MULTILINE)
_EVENTS_TOLD = re.compile(r"\b(?:Total|Number of) events\s*[:=]\s*([0-9]{1,9})\b", re.IGNORECASE)
_NO_EVENT = re.compile(r"\bno events?\b|\bevents? (?:are|is|were|was) not found\b", re.IGNORECASE)
_CLASSES = {-2: "debug", -1: "progress", 0: "information", 1: "warning", 2: "critical", 3: "fatal", 4: "dead"}
"""Classes of the firmware (MFI) by number, in the words of the driver megaraid_sas."""

_LATEST = 300
"""More than a batch brings about; the whole log has tens of thousands."""
_STATE = re.compile(r"^(?:PR|CC) Current State\Z", re.IGNORECASE)
_ACTIVE = re.compile(r"^(?:active|running|in progress|started|aborting)\b\s*([0-9]{1,6})?", re.IGNORECASE)
_AT_REST = re.compile(r"^(?:stopped|ready|not (?:active|running)|inactive|disabled|-)?\Z", re.IGNORECASE)
_UNSUPPORTED = re.compile(r"un-?supported|not supported|not available", re.IGNORECASE)
_PROPERTIES = "Controller Properties"


def parse_events(text: str, tool: str = _TOOL) -> tuple[AdapterEvent, ...]:
    """The events of `/cN show events`, oldest first; none where it says that there is none.

    Their description may be continued in further lines. Raises ToolError for another answer, and when it tells
    another number of events than it lists. The layout is from public outputs; it was not recorded.
    """
    heads = list(_EVENT.finditer(text))
    if not heads:
        answers = answers_of(text, tool)
        message = "; ".join(_message(answer) for answer in answers)
        # the success of any other command has no data either
        named = all("Events" in str(each.data) and {"Events", _PROPERTIES}.issuperset(each.data) for each in answers)
        empty = named and all(answer.success for answer in answers)
        if not empty and not _NO_EVENT.search(message):
            raise ToolError(f"{tool} printed no event: {message[:200]}")
        return ()
    if any(map(_EVENT_FIELD.match, text[: heads[0].start()].splitlines())):
        raise ToolError(f"{tool} tells an event without its number before event 0x{heads[0].group(1)}")
    total = _EVENTS_TOLD.search(text)
    if total and int(total.group(1)) != len(heads):
        raise ToolError(f"{tool} reports {total.group(1)} events and lists {len(heads)}: the answer is not whole")
    # what the tool says of its own command may stand behind the events as well
    own = _OF_COMMAND.search(text, heads[-1].end())
    ends = [*(head.start() for head in heads[1:]), own.start() if own else len(text)]
    events = [_event(int(head.group(1), 16), text[head.end() : end]) for head, end in zip(heads, ends)]
    return tuple(sorted(events, key=lambda event: event.sequence or 0))


def _event(sequence: int, body: str) -> AdapterEvent:
    """One event; lines that are not understood stand in brackets behind its text. Raises ToolError for two in one."""
    fields: dict[str, list[str]] = {}
    others: list[str] = []
    last = others
    for line in body.splitlines():
        match = _EVENT_FIELD.match(line)
        if match is not None:
            name = match.group(1).lower()
            if name in fields:
                raise ToolError(f"event {sequence} is told with {match.group(1)!r} twice: two events in one")
            last = fields.setdefault(name, [match.group(2)])
        elif line.strip(" =\t"):
            # descriptions are continued in further lines, and nothing else is
            (last if "event description" in fields else others).append(line.strip())
    record = {name: " ".join(part for part in parts if part) for name, parts in fields.items()}
    since, number = record.get("seconds since last reboot", ""), as_int(record.get("class", ""))
    text = [record.get("event description", ""), *([f"[{'; '.join(others)}]"] if others else [])]
    return AdapterEvent(
        sequence,
        record.get("time", "") or (f"{since} s after a reboot" if since else ""),
        _CLASSES.get(number, str(number)) if number is not None else "",
        " ".join(part for part in text if part) or f"[{record.get('event data', '') or 'without a description'}]",
    )


def read_events(runner: Runner, index: str) -> tuple[AdapterEvent, ...]:
    """The latest events of a controller, oldest first. Raises ToolError."""
    words = [f"/c{index}", "show", "events", f"type=latest={_LATEST}", "nolog"]
    return parse_events(run_first(runner, PROGRAMS, words, timeout=_TIMEOUT).stdout)


def parse_properties(text: str, tool: str = _TOOL) -> Mapping[str, Mapping[str, str]]:
    """What `/call show patrolread` or `/call show cc` tells, by controller; nothing of one that does not support it.

    Raises ToolError for a controller that answers with something else, and for a property that comes twice.
    """
    properties: dict[str, Mapping[str, str]] = {}
    for answer in answers_of(text, tool):
        rows = [as_mapping(row) for row in as_list(answer.data.get(_PROPERTIES))]
        values = {as_text(row.get("Ctrl_Prop")).strip(): as_text(row.get("Value")).strip() for row in rows}
        if rows and (len(values) != len(rows) or "" in values):
            raise ToolError(f"{tool} tells a property of controller {answer.controller} twice, or without its name")
        if not rows and not answer.nothing and not _UNSUPPORTED.search(_message(answer)):
            raise ToolError(f"{tool} tells no property of controller {answer.controller}: {_message(answer)[:200]}")
        if rows:
            properties[answer.controller] = values
    return properties


def parse_patrol_read(text: str, tool: str = _TOOL) -> Mapping[str, str]:
    """The patrol read that is under way, as words, by controller; empty for one at rest. Raises ToolError.

    `Active 3`: the number is that of the drives that are done. A state that is not known counts as under way.
    """
    patrols = {}
    for controller, properties in parse_properties(text, tool).items():
        states = [value for name, value in properties.items() if _STATE.match(name)]
        if not states:
            raise ToolError(f"{tool} does not tell whether a patrol read runs on controller {controller}")
        active = _ACTIVE.match(states[0])
        done = f" ({active.group(1)} drives done)" if active and active.group(1) else ""
        unknown = f" ({states[0]})" if not active else ""
        patrols[controller] = "" if _AT_REST.match(states[0]) else f"a patrol read is under way{done or unknown}"
    return patrols


def read_background(runner: Runner) -> tuple[BackgroundWork, ...]:
    """What the controllers do beside the commands of the host: patrol read, rebuild, check, initialisation.

    Raises ToolError.
    """
    return background_of(lambda words: _ask(runner, words).stdout, parse_adapters, parse_volumes, _TOOL)


def background_of(
    ask: Callable[[str], str],
    adapters: Callable[[str], tuple[AdapterFacts, ...]],
    volumes: Callable[[str], tuple[VolumeFacts, ...]],
    tool: str,
) -> tuple[BackgroundWork, ...]:
    """The work of every controller; what one does not tell of itself hides nothing else of it. Raises ToolError.

    `ask` runs one command of the tool and returns what it printed, `adapters` and `volumes` read two of them.
    """
    return tuple(_work_of(adapter, ask, volumes, tool) for adapter in adapters(ask("/call show")))


def _work_of(
    adapter: AdapterFacts, ask: Callable[[str], str], read: Callable[[str], tuple[VolumeFacts, ...]], tool: str
) -> BackgroundWork:
    tasks, answers = [], ToolAnswers([adapter.unread] if adapter.unread else [])
    prefix = f"/c{adapter.index}"
    volumes = answers.ask("volumes", lambda: read(ask(f"{prefix}/vall show all"))) if adapter.volumes else ()
    for volume in volumes or ():
        answers.unread += [volume.unread] if volume.unread else []
        tasks += [
            f"volume {volume.name or volume.id}: {task} is under way" + (f" ({percent:g} %)" if percent else "")
            for task, percent in volume.progress.items()
        ]
    # a drive that belongs to no volume can be erased, or be the source of a copyback
    tasks += [f"drive {drive.position} is {drive.state}" for drive in adapter.drives if task_of(drive.state)]
    patrol = answers.ask("patrol read", lambda: parse_patrol_read(ask(f"{prefix} show patrolread"), tool))
    tasks += [work for work in [(patrol or {}).get(adapter.index)] if work]
    return BackgroundWork(adapter.index, adapter.pci, tuple(tasks), tuple(answers.unread))
