# SPDX-License-Identifier: Apache-2.0
"""smartctl (smartmontools): a drive's own account of its health, from JSON (7.0 and later).

The exit status is a mask of eight bits (smartctl(8)); bit 2 alone is common behind RAID and no fault of the drive.
Keys moved between releases (`model_name`, then `scsi_model_name`), so each fact is looked for under all its names.
Text output is localised and refused: only JSON is the same everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

from ..host.identity import printed_wwn
from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import as_int, as_list, as_mapping, as_text, the_object

_TIMEOUT = 120.0
_CANNOT = 0b11

_BITS = (
    "the command line was not understood",
    "the device could not be opened, or is in standby",
    "a command to the drive failed, or a checksum is wrong",
    "the drive says that it is failing",
    "an attribute of the pre-fail kind is at or below its threshold",
    "an attribute was at or below its threshold in the past",
    "the drive's error log has entries",
    "the drive's self-test log has failures",
)


# what `-d` is for disks behind a controller, and behind a chip that mirrors (`jmb39x,1+sat`)
_BEHIND = re.compile(r"(?:sat\+)?(?:megaraid|cciss|aacraid|areca|3ware|hpt|sssraid|jmb39x(?:-q2?)?|jms56x),")


_GIGABYTES = re.compile(r"([0-9]{1,17})\.([0-9]{3})\Z")


@dataclass(frozen=True)
class ScannedDevice:
    """A device of `--scan`: its name alone is no identity, for all disks behind a controller share one."""

    name: str
    kind: str
    protocol: str

    @property
    def hidden(self) -> bool:
        """Whether it is a disk behind a controller, which only its number there names (`megaraid,8`)."""
        return bool(_BEHIND.match(self.kind))


@dataclass(frozen=True)
class Health:
    """What a drive says: identity, verdict (None: it gives none), degrees Celsius, hours, counters, and complaints.

    `trip` is the temperature that the drive itself names as its limit, None where it names none.
    `counters` has the drive's own names, with the group in front (`read.total_uncorrected_errors`, `attribute.5`).
    """

    vendor: str = ""
    model: str = ""
    serial: str = ""
    firmware: str = ""
    wwn: str = ""
    protocol: str = ""
    size: int | None = None
    passed: bool | None = None
    temperature: int | None = None
    trip: int | None = None
    hours: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    complaints: tuple[str, ...] = ()


def status_sentences(status: int) -> tuple[str, ...]:
    return tuple(sentence for bit, sentence in enumerate(_BITS) if status >> bit & 1)


def _document(text: str) -> Mapping[str, Any]:
    """Smartctl's object. Raises ToolError when there is none, or when it says that nothing could be read."""
    body = as_mapping(_in_small_letters(the_object(text, "smartctl", "smartctl")))
    about = as_mapping(body["smartctl"])
    status = as_int(about.get("exit_status")) or 0
    if status & _CANNOT:
        messages = (as_text(as_mapping(entry).get("string")) for entry in as_list(about.get("messages")))
        said = "; ".join(message for message in messages if message) or "no message"
        raise ToolError(f"smartctl: {', '.join(status_sentences(status & _CANNOT))} (status {status}): {said[:300]}")
    return body


def _in_small_letters(value: object) -> object:
    """The same value with all names in small letters, as every release so far prints them."""
    if isinstance(value, list):
        return [_in_small_letters(inner) for inner in value]
    return (
        {key.lower(): _in_small_letters(inner) for key, inner in value.items()} if isinstance(value, dict) else value
    )


def parse_scan(text: str) -> tuple[ScannedDevice, ...]:
    """The devices of `smartctl --scan -j`. Raises ToolError, also for an answer about one drive."""
    body = _document(text)
    if "device" in body:
        raise ToolError("smartctl printed an answer about one drive where a list of devices was expected")
    entries = (as_mapping(entry) for entry in as_list(body.get("devices")))
    return tuple(
        ScannedDevice(as_text(entry.get("name")), as_text(entry.get("type")), as_text(entry.get("protocol")))
        for entry in entries
        if entry.get("name")
    )


def parse_health(text: str) -> Health:
    """The drive that `smartctl --json -a` looked at. Raises ToolError when it could not be read."""
    body = _document(text)
    if not body.get("device"):
        raise ToolError("smartctl printed JSON without a device: it is no answer about a drive")

    def first(*names: str) -> str:
        return next((found for found in (as_text(body.get(name)) for name in names) if found), "")

    passed = as_mapping(body.get("smart_status")).get("passed")
    status = as_int(as_mapping(body["smartctl"]).get("exit_status")) or 0
    return Health(
        vendor=first("scsi_vendor", "vendor"),
        model=first("scsi_model_name", "model_name", "scsi_product", "product"),
        serial=first("serial_number"),
        firmware=first("firmware_version", "scsi_revision", "revision"),
        wwn=_wwn(body),
        protocol=as_text(as_mapping(body.get("device")).get("protocol")),
        size=_size(body),
        passed=passed if isinstance(passed, bool) else None,
        temperature=_temperature(body),
        trip=_trip(body) or None,
        hours=as_int(as_mapping(body.get("power_on_time")).get("hours")),
        counters=dict(_counters(body)),
        complaints=status_sentences(status),
    )


def _size(body: Mapping[str, Any]) -> int | None:
    """Bytes of the drive: of an NVMe drive with several namespaces, `user_capacity` is one namespace's."""
    one, whole = as_int(as_mapping(body.get("user_capacity")).get("bytes")), as_int(body.get("nvme_total_capacity"))
    several = max(as_int(body.get("nvme_number_of_namespaces")) or 0, len(as_list(body.get("nvme_namespaces")))) > 1
    return whole if whole and (several or one is None) else one


def _trip(body: Mapping[str, Any]) -> int | None:
    """The temperature that the drive names as its limit; 7.3 and later know two places for it."""
    told = (as_int(as_mapping(body.get(name)).get("drive_trip")) for name in ("temperature", "scsi_temperature"))
    return next((trip for trip in told if trip is not None), None)


def _temperature(body: Mapping[str, Any]) -> int | None:
    """Degrees Celsius; SCSI drives without the page print 0 and a trip of 0, some of them another page's reading."""
    current = as_int(as_mapping(body.get("temperature")).get("current"))
    if current == 0 and _trip(body) == 0:
        reports = as_mapping(body.get("scsi_environmental_reports"))
        current = as_int(as_mapping(reports.get("temperature_1")).get("current"))
    return current


def _wwn(body: Mapping[str, Any]) -> str:
    """The logical unit's name: SCSI prints it whole, ATA in its three parts (NAA 5: 4, 24 and 36 bits).

    An NVMe drive's is that of its only namespace (EUI-64: 24 and 40 bits); one of several is no name of the drive.
    """
    whole = as_text(body.get("logical_unit_id"))
    parts = [as_int(as_mapping(body.get("wwn")).get(name)) for name in ("naa", "oui", "id")]
    naa, oui, number = parts
    if naa is not None and oui is not None and number is not None:
        whole = whole or f"0x{naa:x}{oui:06x}{number:09x}"
    namespaces = as_list(body.get("nvme_namespaces"))
    if len(namespaces) == 1 and not whole:
        name = as_mapping(as_mapping(namespaces[0]).get("eui64"))
        oui, number = as_int(name.get("oui")), as_int(name.get("ext_id"))
        whole = f"eui.{oui:06x}{number:010x}" if oui is not None and number is not None else ""
    return printed_wwn(whole)


def _counters(body: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Every count of errors, wear and use, by a name that is the same in every release."""
    for group, prefix in (
        ("scsi_error_counter_log", ""),
        ("nvme_smart_health_information_log", "nvme"),
        ("scsi_start_stop_cycle_counter", "cycles"),
        ("endurance_used", "endurance_used"),
        ("spare_available", "spare_available"),
    ):
        yield from _numbers(as_mapping(body.get(group)), prefix)
    for kind, counted in as_mapping(body.get("scsi_error_counter_log")).items():
        # printed in thousands of megabytes with three places, as a text
        amount = _GIGABYTES.match(as_text(as_mapping(counted).get("gigabytes_processed")))
        if amount:
            yield f"{kind}.megabytes_processed", int(amount.group(1) + amount.group(2))
    for name in sorted(name for name in body if re.match(r"scsi_sas_port_\d+\Z", name)):
        yield from _numbers(as_mapping(body[name]), name[len("scsi_") :])
    for entry in as_list(as_mapping(body.get("ata_smart_attributes")).get("table")):
        number, value = as_int(as_mapping(entry).get("id")), as_mapping(as_mapping(entry).get("raw")).get("value")
        if number is not None and (count := as_int(value)) is not None:
            yield f"attribute.{number}", count
    # with -x the extended log is printed in place of the summary
    logs = as_mapping(body.get("ata_smart_error_log"))
    logged = next((as_mapping(logs[name]).get("count") for name in ("extended", "summary") if name in logs), None)
    for name, value in (
        ("grown_defects", body.get("scsi_grown_defect_list")),
        ("power_cycles", body.get("power_cycle_count")),
        ("logged_errors", logged),
        ("pending_defects", as_mapping(body.get("ata_pending_defects_log")).get("count")),
        ("pending_defects", as_mapping(body.get("scsi_pending_defects")).get("count")),
        ("endurance_used.current_percent", body.get("scsi_percentage_used_endurance_indicator")),
    ):
        if (count := as_int(value)) is not None:
            yield name, count


def _numbers(values: Mapping[str, Any], prefix: str, depth: int = 3) -> Iterator[tuple[str, int]]:
    """The whole numbers below an object, named by their path; those of a list by their place, from 1."""
    for name, value in values.items():
        path = f"{prefix}.{name}" if prefix else str(name)
        if isinstance(value, dict) and depth:
            yield from _numbers(value, path, depth - 1)
        elif isinstance(value, list) and depth:
            yield from _numbers({str(place): inner for place, inner in enumerate(value, 1)}, path, depth - 1)
        elif isinstance(value, (int, float)) and (count := as_int(value)) is not None:
            yield path, count


def read_scan(runner: Runner) -> tuple[ScannedDevice, ...]:
    """What smartctl can look at, disks behind RAID controllers included. Raises ToolError."""
    return parse_scan(runner(["smartctl", "--json", "--scan"], timeout=_TIMEOUT).stdout)


def read_health(runner: Runner, node: str, kind: str = "") -> Health:
    """One drive; `kind` is smartctl's `-d` for a disk behind a controller. Raises ToolError."""
    argv = ["smartctl", "--json", "-a", *(["-d", kind] if kind else []), node]
    return parse_health(runner(argv, timeout=_TIMEOUT).stdout)
