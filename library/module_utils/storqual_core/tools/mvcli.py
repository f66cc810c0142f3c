# SPDX-License-Identifier: Apache-2.0
"""mvcli and mnv_cli: Marvell RAID controllers, Dell BOSS cards among them.

mvcli drives the SATA cards and prints noise before its tables; mnv_cli drives the NVMe ones, whose first line has no
colon. What is known: `info` (recorded), `create`, `delete` and the NVMe flash (documented: other people's code runs
them). A question that `delete` may ask finds no answer here, and the read-back shows that nothing was deleted.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Mapping

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner
from ..kit.errors import MissingToolError, ToolError, refuse_for
from ..kit.labelled_text import plain_label, printed_size, printed_value, read_lines, size_range, whole_number
from ..kit.machine import visible
from .capabilities import (
    AdapterFacts,
    DriveFacts,
    FirmwareImage,
    PortFacts,
    ToolFacts,
    VolumeFacts,
    VolumeRequest,
    all_but_odd,
)

PROGRAMS = ("mvcli", "mnv_cli")

_TIMEOUT = 120.0
_FLASH_TIMEOUT = 1800.0
_CONTROLLERS = 4
_FLASHED = "Flash NVMe Controller firmware success"
_FIRST = re.compile(r"^(?P<label>NVMe Controller ID|(?:NVMe )?(?:PD|VD) ID)\s{2,}(?P<value>\d+)$")
# one label of mnv_cli has no colon either: `SMART Critical                No`
_BARE = re.compile(r"^(?P<label>[A-Za-z]\S*(?: \S+)*)\s{2,}(?P<value>\S+)$")
_TITLE = re.compile(r"^(?:Virtual Disk|Physical Disk|Adapter|Hardware|Block Disk) Information$", re.IGNORECASE)
_RULE = re.compile(r"^-{4,}$")
# a shell's, the driver's and the program's own lines, which have colons as well
_NOISE = re.compile(r"^(?:ls|cli|sudo|bash|CLI Version|SG driver version|Usage|Error)\b", re.IGNORECASE)
_NONE = re.compile(
    r"^\s*(?:no|0) [a-z ]*(?:disks?|drives?|[vp]ds?|volumes?|adapters?|controllers?)\b|^\s*Total # of .*:\s*0\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_TOTAL = re.compile(r"^Total # of ")
_LISTS = ("pd raid setup", "pds", "block ids")
_ITEMS = re.compile(r"[0-9]+(?:[\s,]+[0-9]+)*,?")
_COUNTS = ("# of PDs", "PD Count", "Number of PDs")
# what only the records of one command have
_MARKS = {
    "a drive": re.compile(r"^\s*(?:Physical Disk Information|(?:NVMe )?PD ID\b|PD valid size\s*:)", re.I | re.M),
    "a volume": re.compile(r"^\s*(?:Virtual Disk Information|(?:NVMe )?VD ID\b|RAID mode\s*:)", re.I | re.M),
    "a card": re.compile(
        r"^\s*(?:(?:Adapter|Hardware) Information|(?:Adapter|(?:NVMe )?Controller) ID\b)", re.I | re.M
    ),
    "a block of a disk": re.compile(r"^\s*(?:Block Disk Information|Block id\s*:)", re.I | re.M),
}
_STARTS = ("id", "adapter id", "controller id", "nvme controller id", "vd id", "pd id", "nvme pd id", "nvme vd id")
# the first line of a drive of mvcli, in front of its id
_CARD_OF = "adapter"
_SIZE = re.compile(r"^(?P<number>\d+)\s*(?P<prefix>[KMGT])$")
_PERCENT = re.compile(r"(?<![0-9.])(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%")
_VOLUME_LABELS = (
    *("id", "name", "status", "vd status", "bga status", "bga progress", "stripe size", "stripe block size"),
    *("size", "raid mode", "pd raid setup", "pds"),
)
_DRIVE_LABELS = (
    "id",
    "serial",
    "serial number",
    "model",
    "firmware version",
    "wwn",
    "status",
    "pd status",
    "ssd type",
)
_GOOD = ("functional", "optimal", "normal")
_ERROR = re.compile(r"\b(?:error|fail(?:ed|ure)?|invalid)\b", re.IGNORECASE)
_IDLE = ("", "not running", "n/a", "none")
_BACKGROUND = {"rebuild": "rebuild", "init": "initialise", "migrat": "reshape", "check": "check"}

Record = Mapping[str, str]


def parse_records(text: str) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The records of an `info` command, labels in lower case, and every line that is no part of one (noise).

    A record begins with its id. A label that comes again in one (links of a card) gets a number: `link width.2`.
    Raises ToolError when another number of records is told than listed, and for labels where no record begins.
    """
    records: list[dict[str, str]] = []
    notes: list[str] = []
    before: dict[str, str] = {}
    homeless: list[str] = []
    last = ""
    for line in read_lines(text):
        if _RULE.match(line.text) or _TITLE.match(line.text):
            continue
        if _TOTAL.match(line.text):
            count = whole_number(line.value)
            if count is not None and count != len(records):
                raise ToolError(f"{line.text[:80]!r} is told, and {len(records)} are listed")
            continue
        if records and last in _LISTS and (line.label.lower() == last or _ITEMS.fullmatch(line.text)):
            records[-1][last] = f"{records[-1][last]} {line.value or line.text}"
            continue
        first = _FIRST.match(line.text) or (_BARE.match(line.text) if records and not line.labelled else None)
        name, value = (first.group("label"), first.group("value")) if first else (line.label, line.value)
        label = last = name.lower()
        if label in _STARTS:
            records.append({"id": value, **before})
            before = {}
        elif label == _CARD_OF:
            before = {label: value}
        elif label and before:
            before[label] = value
        elif label and records:
            number = 2
            name = label
            while name in records[-1]:
                name, number = f"{label}.{number}", number + 1
            records[-1][name] = value
        else:
            notes.append(line.text)
            homeless += [line.label] if label and not _NOISE.match(line.text) else []
    if homeless and not records:
        raise ToolError(f"a listing without the id of what it lists: {', '.join(homeless)[:120]}")
    return tuple(records), tuple(notes)


def _records_of(text: str, kind: str) -> tuple[Record, ...]:
    """The records of a text. Raises ToolError for those of another command, and where nothing is told of any."""
    marks = [mark for mark, pattern in _MARKS.items() if pattern.search(text)]
    records, notes = parse_records(text)
    if records and not marks:
        raise ToolError(f"the answer says nothing of {kind}: {visible(', '.join(records[0]))[:120]}")
    if marks and kind not in marks:
        raise ToolError(f"this is the record of {' and of '.join(marks)} where that of {kind} was expected")
    messages = [line for line in notes if not _NOISE.match(line) or line.lower().startswith(("usage", "error"))]
    if not records and messages and not _NONE.search(text):
        raise ToolError(f"the answer says nothing of {kind}: {visible(messages[0])[:200]}")
    return records


def parse_cards(text: str, index: str = "mvcli") -> tuple[AdapterFacts, ...]:
    """The cards of `info -o hba`. Raises ToolError for the answer to another command."""
    return all_but_odd([_controller(record, index) for record in _records_of(text, "a card")])


def parse_volumes(text: str) -> tuple[VolumeFacts, ...]:
    """The volumes of `info -o vd`. Raises ToolError for the answer to another command."""
    return all_but_odd([_volume(record) for record in _records_of(text, "a volume")])


def parse_drives(text: str) -> tuple[DriveFacts, ...]:
    """The drives of `info -o pd`. Raises ToolError for the answer to another command."""
    return all_but_odd([_drive(record) for record in _records_of(text, "a drive")])


def _strange(record: Record, known: bool, kind: str) -> str:
    """Why a record cannot be read: it is of something else, or of two; empty when it can."""
    if known and not any(label.endswith(".2") for label in record):
        return ""
    return f"record {record['id']} is no {kind}, or of two {kind}s: {', '.join(record)[:120]}"


def _value(record: Record, *labels: str) -> str:
    """The value under the first of `labels` that has one: the two tools and their releases space them differently."""
    plain = {plain_label(label): value for label, value in record.items()}
    return next((plain[label] for label in map(plain_label, labels) if plain.get(label)), "")


def _controller(record: Record, index: str) -> AdapterFacts:
    version = record.get("firmware version", "")
    place = re.match(r"([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-9a-fA-F]{1,2})$", record.get("bus device fun", ""))
    ports = [label for label in record if label.startswith("link width")]
    speeds = sum(label.startswith("pcie speed") for label in record)
    odd = f"card {record['id']} reports {len(ports)} links and {speeds} speeds of links"
    return AdapterFacts(
        index=index,
        # the product of some cards is told as PCI ids
        model=_value(record, "Model number", "Product", "SUBNQN"),
        vendor="Marvell",
        serial=_value(record, "Serial no", "Serial number"),
        pci=f"0000:{place.group(1)}:{place.group(2)}.{int(place.group(3), 16):x}".lower() if place else "",
        firmware={"firmware": version} if version else {},
        settings=dict(record),
        ports=tuple(
            PortFacts(
                name=str(number), link=record[label], speed=record.get(label.replace("link width", "pcie speed"), "")
            )
            for number, label in enumerate(ports)
        ),
        unread="" if speeds in (0, len(ports)) else odd,
    )


def _drive(record: Record) -> DriveFacts:
    size, sizes = _sizes(record.get("size", ""))
    blocks, block = whole_number(_value(record, "LBA")), whole_number(_value(record, "Sector size"))
    return DriveFacts(
        position=record["id"],
        wwn=printed_wwn(_value(record, "WWN")),
        serial=_value(record, "Serial", "Serial number"),
        model=_value(record, "Model"),
        revision=_value(record, "Firmware version"),
        size=blocks * block if blocks and block else size,
        size_range=None if blocks and block else sizes,
        state=_value(record, "Status", "PD status"),
        media=_value(record, "SSD type"),
        settings={label: value for label, value in record.items() if label not in _DRIVE_LABELS},
        unread=_strange(record, bool(_value(record, "Model", "Serial", "Serial number")), "drive"),
    )


def _sizes(text: str) -> tuple[int | None, tuple[int, int] | None]:
    """`228818 M`, `128KB` and `894 GB` count in powers of 1024 and are rounded: the figure, and what it can mean."""
    match = _SIZE.match(text)
    plain = f"{match.group('number')} {match.group('prefix')}B" if match else text
    size = printed_size(plain, base=1024)
    # of what does not answer 0 is printed
    return (size, size_range(plain, base=1024)) if size else (None, None)


def _volume(record: Record) -> VolumeFacts:
    states = [record[label] for label in ("status", "vd status") if record.get(label)]
    # mvcli tells two: whether the card can use it, and how it is
    state = next((each for each in states if each.lower() not in _GOOD), "".join(states[:1]))
    unread = [value.lower() for label, value in record.items() if label not in _VOLUME_LABELS]
    sound = not any(value.startswith(("running", "in progress", "rebuild", "init", "degraded")) for value in unread)
    strip = _value(record, "Stripe size", "Stripe block size")
    size, sizes = _sizes(record.get("size", ""))
    under_way = _progress(_value(record, "BGA status").lower(), _value(record, "BGA progress").lower())
    listed, count = _value(record, "PD RAID setup", "PDs"), whole_number(_value(record, *_COUNTS))
    members = tuple(listed.replace(",", " ").split())
    odd = _strange(record, bool({"raid mode", "status", "vd status"} & set(record)), "volume")
    # what is missing of a volume that is not well may have one number
    twice = state.lower() in _GOOD and len(set(members)) != len(members)
    if not odd and (twice or count not in (None, len(members))):
        odd = f"volume {record['id']} is said to have {count} drives, and lists {', '.join(members) or 'none'}"
    return VolumeFacts(
        id=record["id"],
        name=record.get("name", ""),
        level=record.get("raid mode", "").upper().replace("RAID", "").strip(),
        state=state,
        size=size,
        size_range=sizes,
        # mvcli prints KiB without a unit
        strip=int(strip) * 1024 if re.fullmatch(r"[0-9]{1,6}", strip) else _sizes(strip)[0],
        members=members,
        progress=under_way,
        healthy=None if odd or not printed_value(state) else state.lower() in _GOOD and not under_way and sound,
        settings={label: value for label, value in record.items() if label not in _VOLUME_LABELS},
        unread=odd,
    )


def _progress(status: str, progress: str) -> dict[str, float]:
    """Percent by task; mnv_cli tells how far a task is, and nothing when there is none."""
    if status in _IDLE and (status or progress in _IDLE):
        return {}
    text = f"{status} {progress}"
    percent = _PERCENT.search(text)
    task = next((name for word, name in _BACKGROUND.items() if word in text), status or progress)
    return {task: float(percent.group("percent")) if percent else 0.0}


def _ask(runner: Runner, index: str, *words: str, timeout: float = _TIMEOUT) -> Completed:
    """`index` is `mvcli` (which knows one card) or `mnv_cli 0`."""
    return runner([*index.split(" "), *words], timeout=timeout)


def _info(runner: Runner, index: str, what: str) -> str:
    ended = _ask(runner, index, "info", "-o", what)
    if ended.rc != 0 and not parse_records(ended.stdout)[0]:
        raise ended.failure(f"{index} could not be asked for {what}")
    return ended.stdout


def read_facts(runner: Runner) -> ToolFacts:
    """The card of mvcli and those of mnv_cli, where these are installed. Raises ToolError."""
    adapters: list[AdapterFacts] = []
    notes: list[str] = []
    missing: list[MissingToolError] = []
    for index in ("mvcli", *(f"mnv_cli {number}" for number in range(_CONTROLLERS))):
        try:
            text = _info(runner, index, "hba")
        except MissingToolError as problem:
            missing.append(problem)
            continue
        except ToolError:
            if index == "mvcli":
                raise
            # numbers beyond the last card are answered with an error
            break
        notes += parse_records(text)[1]
        cards = parse_cards(text, index)
        notes += [f"{index} lists {len(cards)} cards, of which the first is read"] if cards[1:] else []
        for card in cards[:1]:
            listed = _info(runner, index, "pd")
            volumes = read_volumes(runner, index)
            adapters.append(replace(card, drives=parse_drives(listed), volumes=volumes))
            notes += parse_records(listed)[1]
    if len(missing) > _CONTROLLERS:
        raise missing[0]
    return ToolFacts(tuple(adapters), tuple(notes))


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """The firmware version. Raises ToolError."""
    cards = parse_cards(_info(runner, index, "hba"), index)
    if not cards:
        raise ToolError(f"{index} shows no controller")
    return cards[0].firmware


def firmware_objections(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:  # noqa: ARG001
    known = index.startswith("mnv_cli")
    return () if known else ("how mvcli flashes a card is not verified; flash it with the vendor's own package",)


def download(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Flash an NVMe RAID card. Raises ToolError."""
    ended = _ask(runner, index, "flash", "-o", "hba", "-t", "raw", "-f", image.path, timeout=_FLASH_TIMEOUT)
    if _FLASHED not in ended.stdout:
        raise ended.failure(f"{index} did not accept {image.path}", of="stdout")


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:  # noqa: ARG001 - the capability's arguments
    return "reboot"


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """All volumes of a card. Raises ToolError."""
    return parse_volumes(_info(runner, index, "vd"))


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """What the tool cannot be told; it makes RAID 0 and 1, with strips of 32 and 64 KiB."""
    unknown = [f"RAID {request.level}"] if request.level not in ("0", "1") else []
    unknown += request.asks("policies", "spares", "initialisation")
    refusal = f"mvcli cannot be told {', '.join(unknown)} of a new volume; leave it out of the drop"
    wrong = request.strip_objection(32 << 10, 64 << 10)
    return (*((refusal,) if unknown else ()), *((wrong,) if wrong else ()))


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make a RAID 0 or 1. Raises ToolError, for what `objections` says too."""
    refuse_for(objections(request))
    words = ["-n", request.name] if request.name else []
    words += ["-b", str(request.strip // 1024)] if request.strip is not None else []
    _change(runner, index, "create", "-o", "vd", "-r", request.level, "-d", ",".join(request.members), *words)


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Delete a volume; read back that it is gone. Raises ToolError."""
    _change(runner, index, "delete", "-o", "vd", "-i", volume.id)
    if any(entry.id == volume.id for entry in read_volumes(runner, index)):
        raise ToolError(f"volume {volume.id} of {index} is still there: the tool may have asked; delete it by hand")


def _change(runner: Runner, index: str, *words: str) -> None:
    ended = _ask(runner, index, *words)
    complaint = [line for line in ended.stdout.splitlines() if _ERROR.search(line) and "SG device" not in line]
    if ended.rc != 0 or complaint:
        reason = complaint[-1].strip()[:200] if complaint else ended.last_words()
        raise ToolError(f"{index} refused: {reason}; command: {ended.line}")
