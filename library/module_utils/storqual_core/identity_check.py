# SPDX-License-Identifier: Apache-2.0
"""Whether a bench is the bench that its inventory describes: adapters, drivers, drives. All problems at once.

A pure function of a fact set and the inventory variable `storqual_adapters`. It runs on the bench, in the same call
that reads the facts, because a second call would cost an emulated bench seconds.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Collection, Iterator, Mapping, Sequence

from .identity import normalise_wwn, same_text
from .machine import visible
from .quantities import parse_size

__all__ = ["behind", "compare"]

_Facts = Mapping[str, Any]


def compare(facts: _Facts, adapters: Mapping[str, _Facts], *, kind: str = "hardware") -> list[str]:
    """One sentence for each difference between a bench and its inventory; none when they agree.

    On a bench of kind `local` drives are files, which the guard knows; there is nothing to compare.
    """
    if kind == "local":
        return []
    problems = [*_twice_declared(adapters)]
    taken = {_text(declared, "pci").lower() for declared in adapters.values()}
    for alias, declared in adapters.items():
        found = _adapter(alias, declared, facts["adapters"], problems)
        for place, drive in enumerate(declared.get("drives") or ()):
            where = f"adapter {alias}, drive {place + 1}"
            problems.extend(_drive(where, drive, found, facts["drives"], taken))
    problems.extend(_one_name_twice(facts, adapters))
    return problems


def _text(declared: _Facts, key: str) -> str:
    value = declared.get(key)
    if key == "wwn" and isinstance(value, int):
        # YAML 1.1, as Ansible reads it, makes a number of an unquoted 0x5000c500…
        return f"0x{value:016x}"
    return "" if value is None else str(value)


def _wwn(declared: _Facts) -> str:
    """The normalised WWN; a text that is none stays what it is, and no drive will have it."""
    text = _text(declared, "wwn")
    try:
        return normalise_wwn(text)
    except ValueError:
        return text


def _adapter(alias: str, declared: _Facts, present: Sequence[_Facts], problems: list[str]) -> _Facts | None:
    """The adapter that an alias means; what is wrong with it is added to `problems`."""
    pci, driver = _text(declared, "pci").lower(), _text(declared, "driver")
    pci = f"0000:{pci}" if pci.count(":") == 1 else pci
    if pci:
        found = next((adapter for adapter in present if adapter["pci"] == pci), None)
        if found is None:
            known = (
                ", ".join(f"{adapter['pci']} ({adapter['driver'] or 'no driver'})" for adapter in present) or "none"
            )
            problems.append(f"adapter {alias}: there is no storage adapter at {pci}; this bench has {known}")
            return None
    else:
        candidates = [adapter for adapter in present if driver in (adapter["driver"], adapter["module"]["name"])]
        if not driver or len(candidates) != 1:
            problems.append(
                f"adapter {alias}: the inventory gives no PCI address, and {len(candidates)} adapters have its driver"
            )
            return None
        found = candidates[0]
    if driver and driver.replace("-", "_") not in (
        found["driver"].replace("-", "_"),
        found["module"]["name"].replace("-", "_"),
    ):
        has = found["driver"] or "no driver"
        problems.append(f"adapter {alias} at {found['pci']}: its driver is {has}, the inventory says {driver}")
    for key in ("subsystem", "serial"):
        written = _text(declared, key)
        if written and written.lower() != str(found[key]).lower():
            has = visible(str(found[key])) or "not shown"
            problems.append(f"adapter {alias} at {found['pci']}: its {key} is {has}, the inventory says {written}")
    return found


def behind(address: str, adapter: str, taken: Collection[str]) -> bool:
    """Whether a drive at a PCI address is on an adapter: at its own, or at another function of its card.

    A card of several channels is several functions in one slot; one that is declared by itself is another adapter.
    """
    return address == adapter or (address.partition(".")[0] == adapter.partition(".")[0] and address not in taken)


def _drive(
    where: str, declared: _Facts, adapter: _Facts | None, present: Sequence[_Facts], taken: Collection[str]
) -> Iterator[str]:
    wwn, serial = _wwn(declared), _text(declared, "serial")
    if wwn:
        found = [drive for drive in present if drive["wwn"] == wwn]
    else:
        found = [drive for drive in present if serial and drive["serial"] == serial]
    name = f"{where} ({visible(wwn or serial)})"
    if not found:
        others = [drive for drive in present if serial and drive["serial"] == serial]
        hint = (
            f"; {others[0]['name']} has its serial, with WWN {visible(others[0]['wwn']) or 'none'}" if others else ""
        )
        yield f"{name}: no drive of this bench has {'that WWN' if wwn else 'that serial'}{hint}"
        return
    drive = found[0]
    for key, word in (("serial", "serial"), ("model", "model"), ("vendor", "vendor")):
        written = _text(declared, key)
        if written and drive[key] and not same_text(written, drive[key]):
            yield f"{name}: its {word} is '{visible(drive[key])}', the inventory says '{visible(written)}'"
    if declared.get("size") is not None:
        try:
            size = parse_size(declared["size"])
        except ValueError as problem:
            yield f"{name}: {problem}"
        else:
            if size != drive["size"]:
                yield f"{name}: its size is {drive['size']} bytes, the inventory says {size}"
    if adapter is not None and not behind(drive["adapter"], adapter["pci"], taken):
        yield f"{name}: it is on the adapter at {drive['adapter'] or 'no PCI address'}, not on {adapter['pci']}"


def _twice_declared(adapters: Mapping[str, _Facts]) -> Iterator[str]:
    """Names that the inventory gives to two drives or adapters."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for alias, declared in adapters.items():
        if _text(declared, "pci"):
            places["PCI address", _text(declared, "pci").lower()].append(f"adapter {alias}")
        for place, drive in enumerate(declared.get("drives") or ()):
            where = f"adapter {alias}, drive {place + 1}"
            if _wwn(drive):
                places["WWN", _wwn(drive)].append(where)
            if _text(drive, "serial"):
                places["serial", f"{_text(drive, 'vendor')} {_text(drive, 'serial')}".strip()].append(where)
    for (what, name), found in places.items():
        if len(found) > 1:
            yield f"{what} {visible(name)} stands twice in the inventory: {'; '.join(found)}"


def _one_name_twice(facts: _Facts, adapters: Mapping[str, _Facts]) -> Iterator[str]:
    """Names of the inventory that two drives of the bench answer to, when they are not paths of one drive."""
    one_drive = [set(volume["members"]) for volume in facts["volumes"] if volume["kind"] == "multipath"]
    for declared in adapters.values():
        for drive in declared.get("drives") or ():
            for key, name in (("wwn", _wwn(drive)), ("serial", _text(drive, "serial"))):
                found = [other for other in facts["drives"] if name and other[key] == name]
                if key == "serial":
                    # namespaces of one NVMe controller share its serial, and tell themselves apart by WWN
                    found = [other for other in found if other["transport"] != "nvme" or not other["wwn"]]
                    vendor = _text(drive, "vendor")
                    found = [other for other in found if not vendor or same_text(vendor, other["vendor"])]
                names = ", ".join(other["name"] for other in found)
                together = any({other["id"] for other in found} <= members for members in one_drive)
                if len(found) > 1 and not together:
                    yield f"{len(found)} drives of this bench have {key} {visible(name)}: {names}"
