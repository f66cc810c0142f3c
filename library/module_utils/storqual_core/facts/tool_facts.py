# SPDX-License-Identifier: Apache-2.0
"""What tools know of drives (health, error and link counters) and of adapters, joined to what the kernel shows.

An NVMe drive is asked by nvme-cli, a SCSI drive by smartctl and by its log pages (sg_logs), which count what smartctl
does not print: non-medium errors, and errors of the link as the drive sees it. What is not answered is a sentence.

A tool is asked when it offers facts and one of its programs is installed. An adapter is joined by PCI address, else
by serial number, else by the name of a port; a tool's own index is no identity. What a tool says is kept whole under
its name, joined or not.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from ..kit.command import Runner, find_program, run
from ..kit.errors import MissingToolError, ToolError
from ..kit.machine import Machine
from ..tools import TOOLS
from ..tools.capabilities import AdapterFacts, VolumeFacts, offers


@dataclass(frozen=True)
class DriveLog:
    """A drive's own account; degrees Celsius, hours, counters by names that are the same whatever tool was asked.

    `trip` is the temperature that the drive names as its limit, `answered` are the tools that it answered, `unread`
    sentences on those that it did not, `missing` tools that the bench does not have.
    """

    passed: bool | None = None
    temperature: int | None = None
    trip: int | None = None
    hours: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    complaints: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def health(self) -> dict[str, Any] | None:
        """What it says of its health; None where it answered nobody."""
        if not self.answered:
            return None
        known = ("passed", "temperature", "trip", "hours", "counters", "complaints")
        return {name: value for name, value in self.record().items() if name in known}

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "complaints": list(self.complaints)}


def read_drive_log(drive: Mapping[str, Any], runner: Runner) -> DriveLog:
    """The log of one drive of `read_facts`. Raises nothing."""
    fields: dict[str, Any] = {}
    counters: dict[str, int] = {}
    answered, unread, missing = [], [], []
    for tool, ask in _asks(drive, runner):
        try:
            answer = ask()
        except MissingToolError:
            missing.append(tool)
            continue
        except ToolError as problem:
            unread.append(str(problem))
            continue
        answered.append(tool)
        # the first tool that knows a counter has it
        counters = {**answer.pop("counters"), **counters}
        unread += answer.pop("unread", ())
        fields = {**answer, **fields}
        if tool == "nvme":
            break
    return DriveLog(
        **fields, counters=counters, answered=tuple(answered), unread=tuple(unread), missing=tuple(missing)
    )


def _asks(drive: Mapping[str, Any], runner: Runner) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    node, transport = str(drive["node"]), drive.get("transport")
    if transport == "nvme":
        yield "nvme", lambda: _nvme(node, runner)
    if transport in ("scsi", "nvme"):
        yield "smartctl", lambda: _smartctl(node, runner)
    if transport == "scsi":
        yield "sg_logs", lambda: _log_pages(str(drive.get("sg") or node), runner)


def _nvme(node: str, runner: Runner) -> dict[str, Any]:
    from ..tools import nvme  # noqa: PLC0415 - compiled only on a bench that asks it

    values = dict(nvme.read_smart_log(runner, node).values)
    warning, kelvin = values.get("critical_warning"), values.get("temperature")
    counters = {f"nvme.{name}": count for name, count in values.items()}
    # few drives have the page of the Open Compute Project, and an older nvme-cli does not know it
    with suppress(ToolError):
        more = nvme.read_ocp_log(runner, node)
        counters.update({f"ocp.{name}": count for name, count in (more.values if more else {}).items()})
    return {
        "passed": None if warning is None else warning == 0,
        # no kelvin at all is what a drive without a sensor reports
        "temperature": kelvin - 273 if kelvin else None,
        "hours": values.get("power_on_hours"),
        "counters": counters,
    }


def _smartctl(node: str, runner: Runner) -> dict[str, Any]:
    from ..tools import smartctl  # noqa: PLC0415 - as above

    return health_fields(smartctl.read_health(runner, node))


def health_fields(health: Any) -> dict[str, Any]:  # noqa: ANN401 - smartctl.Health, which is imported when it is needed
    names = ("passed", "temperature", "trip", "hours")
    known = {name: getattr(health, name) for name in names}
    return {**known, "counters": dict(health.counters), "complaints": list(health.complaints)}


def _log_pages(node: str, runner: Runner) -> dict[str, Any]:
    from ..tools import sg3  # noqa: PLC0415 - as above

    pages = sg3.read_log_pages(runner, node)
    counters = {**sg3.error_counters(pages), **sg3.link_counters(pages)}
    unread = [page.unread for page in pages.values() if page.unread]
    return {"counters": {_name(name): count for name, count in counters.items()}, "unread": unread}


def _name(printed: str) -> str:
    """A label of a log page as smartctl's JSON spells it: `read.total_uncorrected_errors`."""
    group, _, label = printed.partition(".")
    return f"{group}.{re.sub(r'[^a-z0-9]+', '_', label.lower()).strip('_')}"


ON_RECORD = re.compile(
    r"(?:read|write|verify)\.total_uncorrected_errors|grown_defects|nvme\.(?:media_errors|critical_warning)"
    # reallocated, reported uncorrectable, pending and offline uncorrectable sectors, CRC errors (ATA attributes)
    r"|attribute\.(?:5|187|197|198|199)"
    r"|ocp\.(?:uncorrectable_read_errors|end_to_end_detected_errors|media_dies_offline)"
)
"""Counters that healthy use never raises: one that grows during a campaign is evidence against its points."""


def read_drive_logs(drives: Iterable[Mapping[str, Any]], *, runner: Runner = run) -> dict[str, dict[str, Any]]:
    """The log of each of these drives of `read_facts` by its id, as JSON carries it. Raises nothing."""
    return {str(drive["id"]): read_drive_log(drive, runner).record() for drive in drives}


def errors_on_record(logs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """The counters of `ON_RECORD` by drive; a drive that keeps none is left out."""
    errors = {
        drive: {name: count for name, count in sorted(log["counters"].items()) if ON_RECORD.fullmatch(name)}
        for drive, log in logs.items()
    }
    return {drive: counters for drive, counters in errors.items() if counters}


FAMILIES = ("Debian, Ubuntu", "EL, Oracle, Fedora", "SUSE")
PACKAGES: Mapping[str, Sequence[str]] = {
    **{name: (name, name, name) for name in ("fio", "sdparm", "mdadm", "lsscsi", "dmidecode", "dkms")},
    "sg_modes": ("sg3-utils", "sg3_utils", "sg3_utils"),
    "smartctl": ("smartmontools",) * 3,
    "nvme": ("nvme-cli",) * 3,
    "lvm": ("lvm2",) * 3,
    "multipath": ("multipath-tools", "device-mapper-multipath", "multipath-tools"),
    "lspci": ("pciutils",) * 3,
    "fwupdmgr": ("fwupd",) * 3,
    "sg_wr_mode": ("sg3-utils", "sg3_utils", "sg3_utils"),
    "sg_write_buffer": ("sg3-utils", "sg3_utils", "sg3_utils"),
    "mkfs.xfs": ("xfsprogs",) * 3,
    "mkfs.ext4": ("e2fsprogs",) * 3,
}
"""Programs with the package that brings each, by family; vendor tools come without one. EL has dkms in EPEL."""

# run, and not asked for their version
_UNASKED = ("sg_wr_mode", "sg_write_buffer", "mkfs.xfs", "mkfs.ext4", "dkms")
_STATUS = "/var/lib/dpkg/status"


def parse_status(text: str) -> dict[str, str]:
    """Versions of installed packages in dpkg's status file (RFC 822 paragraphs; deb-control(5))."""
    versions = {}
    for paragraph in text.split("\n\n"):
        name = re.search(r"^Package: (\S+)$", paragraph, re.MULTILINE)
        version = re.search(r"^Version: (\S+)$", paragraph, re.MULTILINE)
        if name and version and re.search(r"^Status: \S+ ok installed$", paragraph, re.MULTILINE):
            versions[name.group(1)] = version.group(1)
    return versions


def _family(machine: Machine) -> int:
    if machine.read(_STATUS) is not None:
        return 0
    return 2 if find_program(machine, "zypper") else 1 if find_program(machine, "rpm") else 0


def package_of(program: str, machine: Machine) -> str:
    """The package that brings a program on this distribution; `` for a vendor's."""
    return PACKAGES[program][_family(machine)] if program in PACKAGES else ""


def tool_versions(machine: Machine, runner: Runner) -> dict[str, dict[str, str]]:
    """Each tool that is there: its path and version. A fio that no package brought is asked itself."""
    paths = {tool: path for tool in PACKAGES if tool not in _UNASKED and (path := find_program(machine, tool))}
    packages = {tool: package_of(tool, machine) for tool in paths}
    versions = _versions(machine, runner, set(packages.values()))
    tools = {tool: {"path": path, "version": versions.get(packages[tool], "")} for tool, path in paths.items()}
    if "fio" in tools and (not tools["fio"]["version"] or "/local/" in tools["fio"]["path"]):
        try:
            version = runner(["fio", "--version"], timeout=30.0).expect().stdout.strip()
        except ToolError as problem:
            version = f"does not run: {problem}"
        tools["fio"]["version"] = version
    return tools


def _versions(machine: Machine, runner: Runner, packages: set[str]) -> dict[str, str]:
    status = machine.read(_STATUS)
    if status:
        return parse_status(status.decode("utf-8", "replace"))
    if not packages or not find_program(machine, "rpm"):
        return {}
    from ..tools import rpm  # noqa: PLC0415 - compiled only on a bench of RPM packages

    try:
        return {each.name: each.evr for each in rpm.listing(runner, ["--", *sorted(packages)]).packages}
    except ToolError:
        return {}


def tools_with_facts(machine: Machine) -> Iterator[tuple[str, ModuleType, dict[str, str]]]:
    """Each tool that offers facts and is installed: its name, its room, and the path of each of its programs."""
    for name, load in TOOLS.items():
        tool = load()
        if "facts" in offers(tool):
            paths = {program: find_program(machine, program) for program in tool.PROGRAMS}
            if any(paths.values()):
                yield name, tool, {program: path for program, path in paths.items() if path}


def add_vendor_facts(facts: dict[str, Any], machine: Machine, runner: Runner) -> None:
    """Ask every installed tool, keep what it says under `tool_facts`, and join it to adapters, drives and volumes."""
    facts["tool_facts"] = {}
    for name, tool, paths in tools_with_facts(machine):
        facts["tools"].update({program: {"path": path, "version": ""} for program, path in paths.items()})
        try:
            data = tool.read_facts(runner)
        except MissingToolError:
            continue
        except ToolError as problem:
            facts["unread"].append(f"{name}: {problem}")
            continue
        facts["tool_facts"][name] = {"adapters": [asdict(each) for each in data.adapters], "notes": list(data.notes)}
        for adapter in data.adapters:
            facts["unread"] += [f"{name}: {why}" for why in adapter.unreadable()]
            entry = _adapter(facts, adapter)
            if entry is not None:
                _join(facts, entry, name, adapter)


def _adapter(facts: Mapping[str, Any], report: AdapterFacts) -> dict[str, Any] | None:
    """The adapter of the fact set that a tool means; None when it cannot be told, or could be several."""
    ports = {port.wwn for port in report.ports if port.wwn}
    for same in (
        lambda adapter: bool(report.pci) and adapter["pci"] == report.pci.lower(),
        lambda adapter: bool(report.serial) and adapter["serial"] == report.serial,
        lambda adapter: any((host.get("fc_port") or {}).get("port_name") in ports for host in adapter["hosts"]),
    ):
        matches = [adapter for adapter in facts["adapters"] if same(adapter)]
        if len(matches) == 1:
            adapter: dict[str, Any] = matches[0]
            return adapter
    return None


def _join(facts: dict[str, Any], adapter: dict[str, Any], tool: str, report: AdapterFacts) -> None:
    """Add what a tool says of one adapter; what the kernel says stays."""
    adapter["serial"] = adapter["serial"] or report.serial
    adapter["board"] = adapter["board"] or report.model
    adapter["firmware"] = adapter["firmware"] or report.firmware.get("firmware", "")
    adapter.setdefault("versions", {}).update(report.firmware)
    adapter.setdefault("tools", []).append(tool)
    adapter["health"] = report.health or adapter.get("health", "")
    names = {}
    for drive in report.drives:
        names[drive.position] = drive.wwn or drive.serial or drive.position
        for there in facts["drives"]:
            if (drive.wwn and there["wwn"] == drive.wwn) or (drive.serial and there["serial"] == drive.serial):
                there["position"] = drive.position
    facts["volumes"] += [_volume(facts, adapter["pci"], tool, names, volume) for volume in report.volumes]
    facts["enclosures"] += [{**asdict(each), "adapter": adapter["pci"], "tool": tool} for each in report.enclosures]


def _volume(
    facts: Mapping[str, Any], pci: str, tool: str, names: Mapping[str, str], volume: VolumeFacts
) -> dict[str, Any]:
    """A controller's volume in the shape of the kernel's ones; members are drives by WWN or serial where told."""
    nodes = [drive["node"] for drive in facts["drives"] if volume.wwn and drive["wwn"] == volume.wwn]
    return {
        "kind": "controller",
        "tool": tool,
        "adapter": pci,
        "name": volume.id,
        "title": volume.name,
        "uuid": "",
        "wwn": volume.wwn,
        "level": volume.level,
        "state": volume.state,
        "healthy": volume.healthy,
        "size": volume.size,
        "chunk": volume.strip,
        "node": nodes[0] if nodes else volume.device,
        "members": [names.get(member, member) for member in volume.members],
        "policies": dict(volume.policies),
        "progress": dict(volume.progress),
    }
