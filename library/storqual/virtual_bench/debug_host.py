# SPDX-License-Identifier: Apache-2.0
"""The kernel's scsi_debug on a virtual bench: an adapter without hardware, with one drive in the bench's memory.

QEMU hands the module's parameters over at power-on, and the bench loads it at every boot, whatever kernel that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storqual_core.kit.quantities import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEVICE = "scsi_debug"
"""What the inventory calls it among the devices that QEMU emulates."""
_HOST = "adapter0"
_WWN, _SERIAL = "0x33333330000007d0", "2000"
"""What the module calls the first drive of a host whose number it leaves out of its names (`vpd_use_hostno=0`)."""
_MIB = 1 << 20
_LEAST, _MOST = 8 * _MIB, 512 * _MIB


@dataclass(frozen=True)
class DebugHost:
    """The one host of scsi_debug that a bench may have; `size` is that of its drive, in bytes."""

    alias: str
    size: int

    @property
    def parameters(self) -> str:
        """The module's parameters. More drives would lie in the same memory: what is written to one is in all."""
        return f"add_host=1 num_tgts=1 max_luns=1 vpd_use_hostno=0 dev_size_mb={self.size // _MIB}"


def debug_aliases(adapters: Mapping[str, Any], devices: Mapping[str, Any]) -> list[str]:
    """The adapters that are scsi_debug, by what `storqual_virtual.adapters` says of them."""
    listed = {alias: devices.get(alias) for alias in adapters}
    return [alias for alias, one in listed.items() if isinstance(one, dict) and one.get("device") == DEVICE]


def declared_debug_host(
    adapters: Mapping[str, Any], aliases: Sequence[str], complain: Callable[[str, str], None]
) -> DebugHost | None:
    """The host that `aliases` name, one at most; what the module cannot make is told to `complain`."""
    for alias in aliases[1:]:
        complain(f"storqual_virtual.adapters.{alias}.device", f"{aliases[0]} is {DEVICE} already, a bench has one")
    if not aliases:
        return None
    alias = aliases[0]
    entry = adapters[alias] if isinstance(adapters[alias], dict) else {}
    where = f"storqual_adapters.{alias}"
    if entry.get("pseudo") != _HOST:
        complain(f"{where}.pseudo", f"expected {_HOST}, the only host of {DEVICE}, found {entry.get('pseudo')!r}")
    drives = entry.get("drives")
    drive = drives[0] if isinstance(drives, list) and len(drives) == 1 and isinstance(drives[0], dict) else None
    if drive is None:
        complain(f"{where}.drives", f"expected one drive: all drives of {DEVICE} would lie in the same memory")
        return DebugHost(alias, _LEAST)
    made = {"wwn": _WWN, "serial": _SERIAL}
    for key, value in made.items():
        if str(drive.get(key)).lower() != value:
            complain(f"{where}.drives[0].{key}", f"{DEVICE} makes {value}, found {drive.get(key)!r}")
    for key in ("virtual", "paths"):
        if drive.get(key):
            complain(f"{where}.drives[0].{key}", f"{DEVICE} has none")
    size = _size(drive.get("size"))
    if size % _MIB or not _LEAST <= size <= _MOST:
        most = f"{_LEAST // _MIB} to {_MOST // _MIB} MiB, which are taken from the bench's memory"
        complain(f"{where}.drives[0].size", f"expected whole MiB, {most}, found {drive.get('size')!r}")
    return DebugHost(alias, size)


def _size(value: object) -> int:
    """Bytes; 0 for what is no size."""
    try:
        return parse_size(value if isinstance(value, int) else str(value))
    except ValueError:
        return 0
