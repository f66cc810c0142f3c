# SPDX-License-Identifier: Apache-2.0
"""smartctl (smartmontools): a drive's own account of its health, from JSON (7.0 and later), else from text.

The exit status is a mask of eight bits (smartctl(8)); bit 2 alone is common behind RAID and no fault of the drive.
Keys moved between releases (`model_name`, then `scsi_model_name`), so each fact is looked for under all its names.
Text is read of releases that know no JSON only, and only as the C locale prints it: with commas between thousands. A
number of another form is no reading. Its layout is from the documentation and from public outputs of 5.43 to 7.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

from ..host.identity import printed_wwn
from ..kit.command import Completed, Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import as_int, as_list, as_mapping, as_text, first_line, the_object

_TIMEOUT = 120.0
_CANNOT = 0b11

_BITS = (
    *("the command line was not understood", "the device could not be opened, or is in standby"),
    *("a command to the drive failed, or a checksum is wrong", "the drive says that it is failing"),
    "an attribute of the pre-fail kind is at or below its threshold",
    "an attribute was at or below its threshold in the past",
    *("the drive's error log has entries", "the drive's self-test log has failures"),
)
# what `-d` is for disks behind a controller, and behind a chip that mirrors (`jmb39x,1+sat`)
_BEHIND = re.compile(r"(?:sat\+)?(?:megaraid|cciss|aacraid|areca|3ware|hpt|sssraid|jmb39x(?:-q2?)?|jms56x),")
_SAYS_HEALTH = 0b11111000
_NO_SENSOR = (0, 255, -273)
"""What is printed of a temperature, or of a limit of it, that a drive does not have: 0 as a number, 0 K, 255."""

_LABEL = re.compile(r"\A\s*[^{}\n]*:(?=\{)")
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
    # 7.1 and 7.2 print a label in front of it (`  Pending defect count:{`)
    body = as_mapping(_in_small_letters(the_object(_LABEL.sub("", text), "smartctl", "smartctl")))
    about = as_mapping(body["smartctl"])
    status = as_int(about.get("exit_status")) or 0
    if status & _CANNOT:
        messages = (as_text(as_mapping(entry).get("string")) for entry in as_list(about.get("messages")))
        cause = "; ".join(message for message in messages if message) or "no message"
        raise ToolError(f"smartctl: {', '.join(status_sentences(status & _CANNOT))} (status {status}): {cause[:300]}")
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
    if not isinstance(body.get("devices"), list) and as_list(as_mapping(body["smartctl"]).get("argv"))[1:]:
        raise ToolError(f"smartctl printed no list of devices, only {', '.join(body)[:200]}")
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
        return next((value for value in (as_text(body.get(name)) for name in names) if value), "")

    passed = as_mapping(body.get("smart_status")).get("passed")
    status = as_int(as_mapping(body["smartctl"]).get("exit_status")) or 0
    health = Health(
        vendor=first("scsi_vendor", "vendor"),
        model=first("scsi_model_name", "model_name", "scsi_product", "product"),
        serial=first("serial_number"),
        firmware=first("firmware_version", "scsi_revision", "revision"),
        wwn=_wwn(body),
        protocol=as_text(as_mapping(body.get("device")).get("protocol")),
        size=_size(body),
        passed=passed if isinstance(passed, bool) else None,
        temperature=_temperature(body),
        trip=_trip(body),
        hours=as_int(as_mapping(body.get("power_on_time")).get("hours")),
        counters=dict(_counters(body)),
        complaints=status_sentences(status),
    )
    of_health = (health.passed, health.temperature, health.trip, health.hours)
    if of_health == (None,) * 4 and not health.counters and not status & _SAYS_HEALTH:
        command = " ".join(as_text(each) for each in as_list(as_mapping(body["smartctl"]).get("argv"))) or "smartctl"
        raise ToolError(f"there is no health in the answer of `{command[:120]}`, only {', '.join(body)[:200]}")
    return health


def _size(body: Mapping[str, Any]) -> int | None:
    """Bytes of the drive: of an NVMe drive with several namespaces, `user_capacity` is one namespace's."""
    part, whole = as_int(as_mapping(body.get("user_capacity")).get("bytes")), as_int(body.get("nvme_total_capacity"))
    several = max(as_int(body.get("nvme_number_of_namespaces")) or 0, len(as_list(body.get("nvme_namespaces")))) > 1
    return (whole if whole and (several or part is None) else part) or None


def _trip(body: Mapping[str, Any]) -> int | None:
    """The temperature that the drive names as its limit; 7.3 and later know two places for it."""
    trips = (as_int(as_mapping(body.get(name)).get("drive_trip")) for name in ("temperature", "scsi_temperature"))
    return next((trip for trip in trips if trip not in (None, *_NO_SENSOR)), None)


def _temperature(body: Mapping[str, Any]) -> int | None:
    """Degrees Celsius; SCSI drives without the page print 0, some of them another page's reading."""
    reports = as_mapping(body.get("scsi_environmental_reports"))
    places = (body.get("temperature"), reports.get("temperature_1"))
    degrees = (as_int(as_mapping(place).get("current")) for place in places)
    # what has a limit has a sensor as well, which may be cold
    none = _NO_SENSOR[1:] if _trip(body) else _NO_SENSOR
    return next((current for current in degrees if current not in (None, *none)), None)


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
        ("grown_defects", _grown_defects(body)),
        ("power_cycles", body.get("power_cycle_count")),
        ("logged_errors", logged),
        ("pending_defects", as_mapping(body.get("ata_pending_defects_log")).get("count")),
        ("pending_defects", as_mapping(body.get("scsi_pending_defects")).get("count")),
        ("endurance_used.current_percent", body.get("scsi_percentage_used_endurance_indicator")),
    ):
        if (count := as_int(value)) is not None:
            yield name, count


def _grown_defects(body: Mapping[str, Any]) -> int | None:
    """Entries of the list; 7.0 and 7.1 print its length in bytes, of which an entry has 8, in one old format 4."""
    listed = as_int(body.get("scsi_grown_defect_list"))
    release = as_list(as_mapping(body["smartctl"]).get("version"))
    return listed // (4 if listed % 8 else 8) if listed and release in ([7, 0], [7, 1]) else listed


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


_NO_JSON = re.compile(r"(?:unrecognized|invalid|unknown) option\b", re.IGNORECASE)


def _ask(runner: Runner, words: list[str]) -> tuple[Completed, bool]:
    """What smartctl answered, and whether it is JSON; a release before 7.0 is asked again for text."""
    ended = runner(["smartctl", "--json", *words], timeout=_TIMEOUT)
    if "{" in ended.stdout or not _NO_JSON.search(ended.stdout + ended.stderr):
        return ended, True
    return runner(["smartctl", *words], timeout=_TIMEOUT), False


def read_scan(runner: Runner) -> tuple[ScannedDevice, ...]:
    """What smartctl can look at, disks behind RAID controllers included. Raises ToolError."""
    ended, is_json = _ask(runner, ["--scan"])
    return parse_scan(ended.stdout) if is_json else parse_scan_text(ended.stdout)


def read_health(runner: Runner, node: str, kind: str = "") -> Health:
    """One drive; `kind` is smartctl's `-d` for a disk behind a controller. Raises ToolError."""
    ended, is_json = _ask(runner, ["-a", *(["-d", kind] if kind else []), node])
    return parse_health(ended.stdout) if is_json else parse_health_text(ended.stdout, ended.rc)


_HEADER = re.compile(r"^smartctl (?:version )?\d+\.\d+", re.MULTILINE)
_SCANNED = re.compile(r"^(?P<name>/dev/\S+) -d (?P<kind>\S+)\s*(?:#.*?,\s*(?P<protocol>\w+) device)?")
_LINE = re.compile(r"^ {0,2}(?P<label>[A-Za-z][^:\n]*?)\s*:\s*(?P<value>.*?)\s*$")
_GROUPED = re.compile(
    r"(0x[0-9a-f]{1,8}|[0-9]{1,3}(?:,[0-9]{3}){1,12}|[0-9]{1,19})(?:%|\Z|(?= +[^\s0-9]))", re.IGNORECASE
)
_FIRST_NUMBER = re.compile(r"-?[0-9]{1,19}(?![0-9]*[.,][0-9])")
_UPTIME = re.compile(
    r"^\s*(?:Accumulated power on time, hours:minutes|number of hours powered up =)\s*([0-9]{1,9})[.:]", re.IGNORECASE
)
_ERRORS = re.compile(
    r"^(?P<kind>read|write|verify):\s+"
    + r"\s+".join(rf"(?P<n{n}>[0-9]{{1,19}})" for n in range(5))
    + r"\s+(?P<amount>\S+)\s+(?P<n5>[0-9]{1,19})\s*$"
)
_ERROR_COLUMNS = (
    *("errors_corrected_by_eccfast", "errors_corrected_by_eccdelayed", "errors_corrected_by_rereads_rewrites"),
    *("total_errors_corrected", "correction_algorithm_invocations", "total_uncorrected_errors"),
)
# number, name, flags, three values that are 001 or ---, and the rest with the raw value as the last of it
_ATTRIBUTE = re.compile(
    r"^\s*(?P<id>[0-9]{1,3}) (?P<name>[A-Za-z_][\w/%.()+-]*)\s+(?P<flags>0x[0-9a-f]{4}|[POSRCK-]{6})\s+"
    r"(?:[0-9]{3}|---)\s+(?:[0-9]{3}|---)\s+(?:[0-9]{3}|---)\s+"
    r"(?:(?:Pre-fail|Old_age)\s+(?:Always|Offline)\s+)?(?:-|FAILING_NOW|In_the_past|NOW|Past)\s+(?P<raw>\S.*?)\s*$"
)
_EUI = re.compile(r"([0-9a-f]{6}) ([0-9a-f]{10})\Z", re.IGNORECASE)
_OF_NVME = (
    *("critical warning", "available spare", "available spare threshold", "percentage used", "data units read"),
    *("data units written", "controller busy time", "power cycles", "power on hours", "unsafe shutdowns"),
)
_TEXT_COUNTERS = {
    "elements in grown defect list": "grown_defects",
    "pending defect count": "pending_defects",
    "non-medium error count": "non_medium.non_medium_error_count",
    "ata error count": "logged_errors",
    "device error count": "logged_errors",
    "percentage used endurance indicator": "endurance_used.current_percent",
    "accumulated start-stop cycles": "cycles.accumulated_start_stop_cycles",
    "accumulated load-unload cycles": "cycles.accumulated_load_unload_cycles",
    "specified cycle count over device lifetime": "cycles.specified_cycle_count_over_device_lifetime",
    "specified load-unload count over device lifetime": "cycles.specified_load_unload_count_over_device_lifetime",
    **{label: f"nvme.{label.replace(' ', '_')}" for label in _OF_NVME},
    "host read commands": "nvme.host_reads",
    "host write commands": "nvme.host_writes",
    "media and data integrity errors": "nvme.media_errors",
    "error information log entries": "nvme.num_err_log_entries",
    "warning comp. temperature time": "nvme.warning_temp_time",
    "critical comp. temperature time": "nvme.critical_comp_time",
}
"""Labels of counts in small letters, each with its name in the JSON of 7.0 and later."""

_HOURS, _CYCLES, _TEMPERATURES = "9", "12", ("194", "190")
_CAPACITIES = ("user capacity", "total nvm capacity", "namespace 1 size/capacity")


def parse_scan_text(text: str) -> tuple[ScannedDevice, ...]:
    """The devices of `smartctl --scan` before 7.0; none for an empty text. Raises ToolError for another line."""
    devices = []
    for line in text.splitlines():
        match = _SCANNED.match(line)
        if match is not None:
            devices.append(ScannedDevice(match.group("name"), match.group("kind"), match.group("protocol") or ""))
        elif line.strip() and not line.lstrip().startswith("#"):
            raise ToolError(f"smartctl printed {line.strip()[:100]!r} where a list of devices was expected")
    return tuple(devices)


def parse_health_text(text: str, status: int = 0) -> Health:
    """The text of `smartctl -a`, with its exit status. Raises ToolError when it is none, or when it says nothing."""
    if not _HEADER.search(text):
        raise ToolError(f"smartctl did not print its name first, but: {first_line(text)}")
    fields: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            fields.setdefault(" ".join(match.group("label").lower().split()), match.group("value"))
    serials = re.findall(r"^Serial [Nn]umber:\s*(\S.*?)\s*$", text, re.MULTILINE)
    if len(set(serials)) > 1:
        raise ToolError(f"smartctl's text tells of several drives: {', '.join(serials)[:200]}")
    counters, raw = _text_counters(text, fields)
    verdict = fields.get("smart overall-health self-assessment test result") or fields.get("smart health status", "")
    # `PASSED`, `OK`; before 6.0 a verdict in words was printed for what is failing
    passed = verdict.split()[0].rstrip("!,").upper() in ("PASSED", "OK") if verdict else None
    trip = _degrees(fields.get("drive trip temperature", "")) or None
    degrees = [_degrees(fields.get("current drive temperature") or fields.get("temperature", ""))]
    degrees += [raw.get(name) for name in _TEMPERATURES]
    # SCSI drives without the page print 0 for both, SATA drives without a sensor as the attribute's value
    none = _NO_SENSOR[1:] if trip else _NO_SENSOR
    temperature = next((each for each in degrees if each not in (None, *none)), None)
    uptime = next((int(match.group(1)) for match in map(_UPTIME.match, text.splitlines()) if match), None)
    hours = [count for count in (uptime, counters.get("nvme.power_on_hours"), raw.get(_HOURS)) if count is not None]
    health = Health(
        vendor=fields.get("vendor", ""),
        # releases before 5.40 have a SCSI drive's whole name in one line
        model=_first(fields, "device model", "model number", "product")
        or fields.get("device", "").partition(" Version")[0],
        serial=fields.get("serial number", ""),
        firmware=_first(fields, "firmware version", "revision"),
        wwn=_text_wwn(fields),
        protocol=_protocol(fields),
        # a drive that does not tell its total says 0 there
        size=next(filter(None, (_grouped(fields.get(label, "")) for label in _CAPACITIES)), None),
        passed=passed,
        temperature=temperature,
        trip=trip,
        hours=hours[0] if hours else None,
        counters=counters,
        complaints=status_sentences(status & ~_CANNOT),
    )
    identified = bool(health.serial or health.model) and not status & _CANNOT
    if not identified and health.passed is None and not counters and temperature is None:
        lines = [line.strip() for line in text.splitlines()[2:] if line.strip() and not line.startswith("=== ")]
        raise ToolError(f"smartctl tells nothing of the drive (status {status}): {'; '.join(lines[:3])[:200]}")
    return health


def _first(fields: Mapping[str, str], *labels: str) -> str:
    return next((fields[label] for label in labels if fields.get(label)), "")


def _grouped(text: str) -> int | None:
    """The number that a value begins with: `600,127,266,816 bytes [600 GB]`, `0x04`, `12%`; None for another form."""
    match = _GROUPED.match(text)
    return int(match.group(1).replace(",", ""), 16 if text[:2].lower() == "0x" else 10) if match else None


def _degrees(text: str) -> int | None:
    """`28 C`, `34 Celsius`; None for `<not available>`."""
    match = re.match(r"(-?[0-9]{1,3}) (?:C|Celsius)\b", text)
    return int(match.group(1)) if match else None


def _text_wwn(fields: Mapping[str, str]) -> str:
    """`0x5000c500…` of SCSI, `5 000c50 0deadbeef` of ATA, `000cca 00602ba300` of the only NVMe namespace."""
    name = _first(fields, "logical unit id", "lu wwn device id")
    only = _EUI.match(fields.get("namespace 1 ieee eui-64", ""))
    if not name and only and fields.get("number of namespaces") == "1":
        return printed_wwn(f"eui.{only.group(1)}{only.group(2)}".lower())
    return printed_wwn(name.replace(" ", "").lower())


def _protocol(fields: Mapping[str, str]) -> str:
    if "smart health status" in fields or "transport protocol" in fields or "logical unit id" in fields:
        return "SCSI"
    return "NVMe" if "model number" in fields else "ATA" if "device model" in fields else ""


def _text_counters(text: str, fields: Mapping[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """Counts by the names of the JSON, and the first number of the raw value of each ATA attribute by its number."""
    counters: dict[str, int] = {}
    raw: dict[str, int] = {}
    for line in text.splitlines():
        errors, attribute = _ERRORS.match(line), _ATTRIBUTE.match(line)
        if errors is not None:
            kind = errors.group("kind")
            counters.update({f"{kind}.{name}": int(errors.group(f"n{n}")) for n, name in enumerate(_ERROR_COLUMNS)})
            amount = _GIGABYTES.match(errors.group("amount"))
            if amount:
                counters[f"{kind}.megabytes_processed"] = int(amount.group(1) + amount.group(2))
        elif attribute is not None:
            value = _FIRST_NUMBER.match(attribute.group("raw"))
            number = str(int(attribute.group("id")))
            if value is not None:
                raw[number] = int(value.group(0))
            if value is not None and value.group(0) == attribute.group("raw"):
                counters[f"attribute.{number}"] = int(value.group(0))
    for label, name in _TEXT_COUNTERS.items():
        count = _grouped(fields.get(label, ""))
        if count is not None:
            counters[name] = count
    if _CYCLES in raw:
        counters.setdefault("power_cycles", raw[_CYCLES])
    if "logged_errors" not in counters and re.search(r"^No Errors Logged\s*$", text, re.MULTILINE):
        counters["logged_errors"] = 0
    sensors = sorted(label for label in fields if re.match(r"temperature sensor [0-9]{1,2}\Z", label))
    for label in sensors:
        degrees = _degrees(fields[label])
        if degrees is not None:
            counters[f"nvme.temperature_sensors.{label.split()[-1]}"] = degrees
    return counters, raw
