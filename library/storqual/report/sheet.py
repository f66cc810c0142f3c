# SPDX-License-Identifier: Apache-2.0
"""What a bench's sheet says: the inventory's statements beside what the bench shows of itself.

A drive may be destroyed when the inventory claims it, and for no other reason; everything else on the sheet says so
in words. What was not looked at is said to be so, never left blank.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.base.table import NUMBER, Table
from storqual.history.past_runs import LastResult
from storqual.inputs.inventory import Adapter, Bench, Drive, Route
from storqual.report.criterion import OutcomeBadge
from storqual.report.render import render_template
from storqual_core.facts.bench_kind import kind_words
from storqual_core.facts.preflight import compare
from storqual_core.host.fabric import path_words, port_words
from storqual_core.host.identity import same_text
from storqual_core.host.watchdog import watchdog_words
from storqual_core.kit.machine import selected_word

_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


_HEADS = ("place", "WWN", "serial number", "model", "firmware", "size", "settings", "state", "tests may")
_STYLES = {"WWN": "name", "serial number": "name", "size": NUMBER}
_MISSING = "MISSING"
_DESTROY = OutcomeBadge("DESTROY", "!", "destroy")
_Row = tuple[object, ...]


def drive_table(caption: str, rows: Sequence[_Row]) -> Table:
    """Drives: where each sits, who it is, how it is set, how it is, what may be done to it."""
    tones = {at: "missing" for at, row in enumerate(rows) if row[-2] == _MISSING}
    return Table(caption, _HEADS, tuple(rows), _STYLES, tones)


def _declared_row(drive: Drive, shown: Mapping[str, Any] | None, *, looked: bool, reference: str | None) -> _Row:
    """A drive of the inventory, with what the bench shows of it where it was looked at."""
    shown = shown or {}
    state = _state(shown) if shown else _MISSING if looked else "not read"
    if drive.file:
        state = "a file of this machine"
    if reference and reference in (drive.wwn, drive.serial, drive.id):
        state += "; reference drive"
    return (
        drive.position or shown.get("position") or _port(drive),
        drive.file or drive.wwn or shown.get("wwn") or "no WWN",
        drive.serial or shown.get("serial") or "",
        _words(drive.vendor or shown.get("vendor"), drive.model or shown.get("model")),
        shown.get("revision") or drive.revision or "",
        _size(drive.size or shown.get("size")),
        _settings(shown),
        state,
        _DESTROY if drive.claim else "not write",
    )


def _port(drive: Drive) -> str:
    return f"port {drive.port.initiator if isinstance(drive.port, Route) else drive.port}"


def _undeclared_row(shown: Mapping[str, Any], position: str, firmware: str, settings: str, state: str) -> _Row:
    """A drive that no inventory names, or a disk behind a RAID controller."""
    who = (shown["wwn"] or "no WWN", shown["serial"], _words(shown["vendor"], shown["model"]))
    return (position, *who, firmware, _size(shown["size"]), settings, state, "not write")


def _other_row(shown: Mapping[str, Any]) -> _Row:
    position = shown.get("position") or shown["hctl"] or shown["name"]
    return _undeclared_row(shown, position, shown["revision"], _settings(shown), shown["system"] or _state(shown))


def _hidden_row(shown: Mapping[str, Any]) -> _Row:
    return _undeclared_row(shown, shown["kind"], shown["firmware"], "", _state(shown))


def _size(size: int | None) -> str:
    """As the label of a drive has it: decimal units, three figures."""
    if not size:
        return ""
    for factor, unit in _UNITS:
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def _settings(shown: Mapping[str, Any]) -> str:
    queue = shown.get("queue") or {}
    words = [
        shown.get("cache", ""),
        f"depth {queue['queue_depth']}" if queue.get("queue_depth") else "",
        f"scheduler {selected_word(queue['scheduler'])}" if queue.get("scheduler") else "",
    ]
    return ", ".join(word for word in words if word)


def _state(shown: Mapping[str, Any]) -> str:
    """What the kernel calls it, and what the drive says of its own health."""
    health = shown.get("health") or {}
    words = [shown.get("state") or "present", *(path_words(path) for path in shown.get("paths") or ())]
    if health.get("passed") is False:
        words.append("reports that it is FAILING")
    if health.get("hours") is not None:
        words.append(f"{health['hours']} h")
    return ", ".join(words)


_ROOMY = 14


@dataclass(frozen=True)
class AdapterCard:
    """One adapter with its facts as (name, value) and its drives in inventory order."""

    alias: str
    model: str
    facts: tuple[tuple[str, str], ...]
    drives: Table


@dataclass(frozen=True)
class ManualTask:
    """What only a person can do at a bench; `seen` is what shows that it was done, empty where nothing does."""

    task: str
    seen: str = ""


@dataclass(frozen=True)
class Sheet:
    """One bench. `differences` None: the bench was not looked at; `drift` None: no drop was given to compare with."""

    bench: str
    kind: str
    made: str
    facts: tuple[tuple[str, str], ...]
    adapters: tuple[AdapterCard, ...]
    undeclared: Table
    hidden: Table
    claimed: int
    differences: tuple[str, ...] | None
    drop: str
    drift: tuple[str, ...] | None
    last: LastResult | None
    checklist: tuple[ManualTask, ...] = ()

    @property
    def dense(self) -> bool:
        """Whether so many drives are on the sheet that it needs small type to stay one page."""
        return (
            sum(len(table.rows) for table in (*(card.drives for card in self.adapters), self.undeclared, self.hidden))
            > _ROOMY
        )


def make_sheet(
    bench: Bench,
    facts: Mapping[str, Any] | None,
    *,
    made: str,
    drop: str = "",
    drift: Sequence[str] | None = None,
    last: LastResult | None = None,
) -> Sheet:
    """The sheet of a bench; `facts` None when it was not looked at, `made` is the time of the sheet in words."""
    declared = {
        alias: adapter.model_dump(mode="json", exclude_none=True) for alias, adapter in bench.adapters.items()
    }
    seen: list[Mapping[str, Any]] = []
    cards = tuple(_card(bench, alias, adapter, facts, seen) for alias, adapter in bench.adapters.items())
    undeclared = [drive for drive in _drives(facts) if bench.kind != "local" and drive not in seen]
    behind = (facts or {}).get("hidden_drives", ())
    return Sheet(
        bench=bench.name,
        kind=bench.kind,
        made=made,
        facts=tuple(_machine(bench, facts)),
        adapters=cards,
        undeclared=drive_table("Drives that the inventory does not name", list(map(_other_row, undeclared))),
        hidden=drive_table("Disks behind RAID controllers", list(map(_hidden_row, behind))),
        claimed=sum(len(adapter.claimed) for adapter in bench.adapters.values()),
        differences=None if facts is None else tuple(compare(facts, declared, kind=bench.kind)),
        drop=drop,
        drift=None if drift is None else tuple(drift),
        last=last,
        checklist=tuple(_checklist(bench, facts, declared)) if bench.kind == "hardware" else (),
    )


_SERIAL = re.compile(r"\bconsole=(tty(?!\d)\w+|hvc\d+)")
_LOADED = "loaded"


def _checklist(
    bench: Bench, facts: Mapping[str, Any] | None, declared: Mapping[str, Mapping[str, Any]]
) -> Iterator[ManualTask]:
    """BIOS and cabling, ticked by facts where facts can tell."""
    shown = facts or {}
    kernel = shown.get("kernel") or {}
    serial = _SERIAL.search(str(kernel.get("cmdline") or ""))
    watchdog = next((dog["identity"] for dog in shown.get("watchdogs", ()) if dog["hardware"]), "")
    agrees = facts is not None and not compare(facts, declared, kind=bench.kind)
    dumps = ((shown.get("kind") or {}).get("kdump") or {}).get("value") == _LOADED
    # a power cut shows it, and what the BIOS is set to it tells nobody
    yield ManualTask("BIOS: power on after a power loss")
    yield ManualTask("BIOS: the system's drive is first in the boot order, before the network")
    yield ManualTask("BIOS: the board's watchdog is switched on", f"the kernel has {watchdog}" if watchdog else "")
    yield ManualTask(
        "BIOS: the console is redirected to the serial port", f"the kernel writes to {serial[1]}" if serial else ""
    )
    yield ManualTask(
        "Cabling: each drive is where the inventory says",
        "adapters and drives are what the inventory says" if agrees else "",
    )
    yield ManualTask("Power: every supply of the bench is in the inventory")
    yield ManualTask("Memory is reserved for a crash kernel", "a crash kernel is loaded" if dumps else "")


def _drives(facts: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return facts["drives"] if facts is not None else ()


def _meant(drive: Drive, facts: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The drive on the bench that the inventory means: by WWN, else by serial number."""
    for shown in _drives(facts):
        if drive.wwn:
            if shown["wwn"] == drive.wwn:
                return shown
        elif drive.serial and same_text(drive.serial, shown["serial"]):
            return shown
    return None


def _card(
    bench: Bench, alias: str, adapter: Adapter, facts: Mapping[str, Any] | None, seen: list[Mapping[str, Any]]
) -> AdapterCard:
    """An adapter; drives of the bench that it names are added to `seen`."""
    card = next(
        (card for card in (facts or {}).get("adapters", ()) if adapter.address and card["pci"] == adapter.address),
        None,
    )
    rows = []
    for drive in adapter.drives:
        shown = _meant(drive, facts)
        if shown is not None:
            seen.append(shown)
        looked = facts is not None and bench.kind != "local"
        rows.append(_declared_row(drive, shown, looked=looked, reference=bench.reference))
    return AdapterCard(alias, adapter.model, tuple(_adapter(adapter, card)), drive_table(f"Drives of {alias}", rows))


def _machine(bench: Bench, facts: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    yield "kind", bench.kind
    if facts is None:
        yield "machine", "not read"
    else:
        machine = facts["machine"]
        yield "machine", _words(machine["sys_vendor"], machine["product_name"]) or "not shown"
        yield "serial number", machine["product_serial"] or "not shown"
        yield "firmware", _words(machine["bios_vendor"], machine["bios_version"], machine["bios_date"]) or "not shown"
        yield "processor", _words(facts["cpu"]["model"], f"({facts['cpu']['online']} online)")
        yield "kernel", facts["kernel"]["release"]
        yield "system", facts["os"]["name"] or "not shown"
        yield "watchdog", watchdog_words(facts["watchdogs"])
        yield "set up with", ", ".join(kind_words(facts["kind"])) or "not shown"
    yield "state folder", bench.state_dir


def _adapter(adapter: Adapter, seen: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Where an adapter sits and what runs it: as the bench shows it, else as the inventory says."""
    yield "PCI address", adapter.address or "not given"
    slot = (seen or {}).get("slot") or adapter.slot
    yield "slot", slot or "not given"
    if seen is None:
        yield "driver", f"{adapter.driver or 'not given'} (declared; not read)"
        if adapter.serial:
            yield "serial number", adapter.serial
        return
    yield "driver", _words(seen["driver"] or "none", seen["module"]["version"] or seen["module"]["srcversion"])
    versions = seen.get("versions") or {"firmware": seen["firmware"]}
    parts = ", ".join(f"{part} {version}" for part, version in sorted(versions.items()) if version)
    yield "firmware", parts or "not shown"
    yield "serial number", seen["serial"] or "not shown"
    link = seen["link"]
    if link["width"]:
        now, most = f"{link['speed']} x{link['width']}", f"{link['speed_max']} x{link['width_max']}"
        yield "link", now if now == most else f"{now}, possible {most}"
    for host in seen.get("hosts") or ():
        if "fc_port" in host:
            yield "FC port", port_words(host["fc_port"])
    if seen["numa_node"] is not None and seen["numa_node"] >= 0:
        yield "NUMA node", str(seen["numa_node"])


def _words(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def render_sheet(sheet: Sheet) -> str:
    return render_template("sheet.html.j2", "sheet.css", sheet=sheet)
