# SPDX-License-Identifier: Apache-2.0
"""nvme-cli: namespaces, health, and the volatile write cache (feature 6), which stands for the caching page's WCE.

`list` has had three shapes (1.x and 2.x verbose, 2.3 flat, 2.11 a tree below the host), and numbers of `smart-log`
have been integers, floats, texts and objects. Text output is localised (linux-nvme/nvme-cli#2061) and refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping

from ..command import Runner
from ..errors import ToolError
from ..json_text import as_int, as_list, as_mapping, as_text, the_object

__all__ = [
    "Namespace",
    "SmartLog",
    "parse_feature",
    "parse_list",
    "parse_smart_log",
    "read_namespaces",
    "read_smart_log",
    "read_write_cache",
    "write_write_cache",
]

_WRITE_CACHE = 6
_TIMEOUT = 60.0
# nvme-cli 1.x and 2.x: `get-feature:0x06 (Volatile Write Cache), Current value:0x00000001`; digits and blanks vary
_FEATURE = re.compile(r"get-feature:\s*(0x[0-9a-f]+|\d+).*?value:\s*(0x[0-9a-f]+|[0-9a-f]+)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Namespace:
    """One namespace: its node, the controller's name, PCI address and identity, and its sizes in bytes."""

    node: str
    controller: str = ""
    pci: str = ""
    model: str = ""
    serial: str = ""
    firmware: str = ""
    size: int | None = None
    used: int | None = None
    sector: int | None = None


@dataclass(frozen=True)
class SmartLog:
    """SMART information (log page 2) by nvme-cli's names: counts, kelvin, percent; what is no number stands apart."""

    values: Mapping[str, int]
    others: Mapping[str, str] = field(default_factory=dict)


def parse_list(text: str) -> tuple[Namespace, ...]:
    """The namespaces of `nvme list -o json` and `nvme list -v -o json`, each once. Raises ToolError."""
    body = the_object(text, "nvme", "Devices")
    found: dict[str, Namespace] = {}
    for namespace in _walk(body["Devices"], {}):
        found.setdefault(namespace.node, namespace)
    return tuple(found.values())


def _walk(entries: object, above: Mapping[str, Any], depth: int = 4) -> Iterator[Namespace]:
    """Hosts, subsystems and controllers hold each other in an order that changes; the inherited keys do not."""
    for entry in (as_mapping(each) for each in as_list(entries)):
        known = {**above, **{key: value for key, value in entry.items() if not isinstance(value, (list, dict))}}
        for inner in ("Subsystems", "Controllers", "Namespaces") if depth else ():
            yield from _walk(entry.get(inner), known, depth - 1)
        node = _node(entry)
        if node:
            yield Namespace(
                node=node,
                controller=as_text(known.get("Controller")) or re.sub(r"n\d+\Z", "", node[len("/dev/") :]),
                pci=as_text(known.get("Address")).lower(),
                model=as_text(known.get("ModelNumber")),
                serial=as_text(known.get("SerialNumber")),
                firmware=as_text(known.get("Firmware")),
                size=as_int(entry.get("PhysicalSize")),
                used=as_int(entry.get("UsedBytes")),
                sector=as_int(entry.get("SectorSize")),
            )


def _node(entry: Mapping[str, Any]) -> str:
    """A namespace's node: `DevicePath` in the flat shape; in the others `NameSpace` is its name, not its number."""
    path, name = as_text(entry.get("DevicePath")), as_text(entry.get("NameSpace"))
    return path if path.startswith("/dev/") else f"/dev/{name}" if name.startswith("nvme") else ""


def parse_smart_log(text: str) -> SmartLog:
    """`nvme smart-log -o json`. Raises ToolError when it is no health information."""
    body = the_object(text, "nvme")
    if "media_errors" not in body:
        raise ToolError(f"nvme printed an object that is no SMART log: {', '.join(list(body)[:5])}"[:300])
    values: dict[str, int] = {}
    others: dict[str, str] = {}
    for name, value in _flat(body):
        number = as_int(value)
        if number is None:
            others[name] = as_text(value) or str(value)[:200]
        else:
            values[name] = number
    return SmartLog(values, others)


def _flat(body: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for key, value in body.items():
        # releases up to 1.x have a slip of the pen here
        name = "critical_warning" if key == "critical_warrning" else str(key)
        if isinstance(value, dict):
            yield from ((name if part == "value" else f"{name}.{part}", inner) for part, inner in value.items())
        elif isinstance(value, list):
            yield from ((f"{name}.{place}", inner) for place, inner in enumerate(value, 1))
        else:
            yield name, value


def read_namespaces(runner: Runner) -> tuple[Namespace, ...]:
    """Every namespace of the machine. Raises ToolError."""
    ended = runner(["nvme", "list", "--verbose", "--output-format=json"], timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ended.failure("NVMe namespaces cannot be listed")
    # releases up to 1.x say nothing where there is nothing
    return parse_list(ended.stdout) if ended.stdout.strip() else ()


def read_smart_log(runner: Runner, device: str) -> SmartLog:
    """The health information of a controller. Raises ToolError."""
    ended = runner(["nvme", "smart-log", device, "--output-format=json"], timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ended.failure(f"the health information of {device} cannot be read")
    return parse_smart_log(ended.stdout)


def parse_feature(text: str, feature: int) -> int:
    """The value that `nvme get-feature` printed for `feature`. Raises ToolError when it did not."""
    for line in text.splitlines():
        match = _FEATURE.search(line)
        if match and int(match.group(1), 0) == feature:
            return int(match.group(2), 16)
    said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    raise ToolError(f"nvme printed no value of feature {feature}: {said[:200]}")


def read_write_cache(runner: Runner, device: str) -> int:
    """1 when the controller's volatile write cache is on, else 0. Raises ToolError when it has none."""
    ended = runner(["nvme", "get-feature", device, f"--feature-id={_WRITE_CACHE}"], timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ended.failure(f"{device} has no volatile write cache that can be read")
    return parse_feature(ended.stdout, _WRITE_CACHE) & 1


def write_write_cache(runner: Runner, device: str, value: int, *, save: bool = False) -> None:
    """Switch the controller's volatile write cache. Raises ToolError."""
    argv = ["nvme", "set-feature", device, f"--feature-id={_WRITE_CACHE}", f"--value={value}"]
    ended = runner([*argv, "--save"] if save else argv, timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ended.failure(f"the volatile write cache of {device} could not be changed")
