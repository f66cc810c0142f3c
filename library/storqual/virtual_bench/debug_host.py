# SPDX-License-Identifier: Apache-2.0
"""The kernel's scsi_debug on a virtual bench: an adapter without hardware, with one drive in the bench's memory.

QEMU hands the module's parameters over at power-on, and the bench loads it at every boot, whatever kernel that is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storqual.inputs.inventory import Adapter

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


def declared_debug_host(adapters: Mapping[str, Adapter], complain: Callable[[str, str], None]) -> DebugHost | None:
    """The host that `adapters` declare, one at most; what the module cannot make is told to `complain`."""
    for alias in list(adapters)[1:]:
        complain(
            f"storqual_virtual.adapters.{alias}.device",
            f"{next(iter(adapters))} is {DEVICE} already, a bench has one",
        )
    if not adapters:
        return None
    alias, adapter = next(iter(adapters.items()))
    where = f"storqual_adapters.{alias}"
    if adapter.pseudo != _HOST:
        complain(f"{where}.pseudo", f"expected {_HOST}, the only host of {DEVICE}, found {adapter.pseudo!r}")
    if len(adapter.drives) != 1:
        complain(f"{where}.drives", f"expected one drive: all drives of {DEVICE} would lie in the same memory")
        return DebugHost(alias, _LEAST)
    (drive,) = adapter.drives
    for key, value in {"wwn": _WWN, "serial": _SERIAL}.items():
        if getattr(drive, key) != value:
            complain(f"{where}.drives[0].{key}", f"{DEVICE} makes {value}, found {getattr(drive, key)!r}")
    for key in ("virtual", "paths"):
        if getattr(drive, key):
            complain(f"{where}.drives[0].{key}", f"{DEVICE} has none")
    size = drive.size or 0
    if size % _MIB or not _LEAST <= size <= _MOST:
        most = f"{_LEAST // _MIB} to {_MOST // _MIB} MiB, which are taken from the bench's memory"
        complain(f"{where}.drives[0].size", f"expected whole MiB, {most}, found {drive.size!r}")
    return DebugHost(alias, size)
