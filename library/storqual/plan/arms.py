# SPDX-License-Identifier: Apache-2.0
"""What differs between two configurations of a bench, what a change costs, how a bench switches by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.plan.resolve import Resolved
from storqual_core.kit.settings import COSTS, SETTINGS

_SYSFS = {
    # drive.* settings that are one attribute of the kernel's block device; {name} is its kernel name
    "queue_depth": "/sys/block/{name}/device/queue_depth",
    "scheduler": "/sys/block/{name}/queue/scheduler",
    "nr_requests": "/sys/block/{name}/queue/nr_requests",
    "read_ahead_kb": "/sys/block/{name}/queue/read_ahead_kb",
    "max_sectors_kb": "/sys/block/{name}/queue/max_sectors_kb",
    "nomerges": "/sys/block/{name}/queue/nomerges",
    "rq_affinity": "/sys/block/{name}/queue/rq_affinity",
}

_READ_FIELD = 'printf "[%s]" $(sdparm --quiet --get="$1=1" "$2")'
"""`=1`: the current value alone; without it, sdparm ends with status 5 where a drive keeps no saved pages."""
_READ_KERNELS = (
    '; case $(cat /sys/block/"$3"/device/scsi_disk/*/cache_type) in '
    '"write back"*) printf "[kernel][1]" ;; *) printf "[kernel][0]" ;; esac'
)
"""What the kernel believes of a drive's write cache, as WCE says it."""

_FIRMWARE_COSTS = {"none": "reload", "reset": "reload", "reboot": "reboot", "power cycle": "reboot"}


@dataclass(frozen=True)
class Difference:
    """One setting that two configurations declare differently; None where one of them does not declare it."""

    section: str
    owner: str
    name: str
    first: Any
    second: Any

    @property
    def cost(self) -> str:
        """What changing it costs: instant, reload, rebuild, reboot."""
        if self.section == "firmware":
            return _FIRMWARE_COSTS.get(self.name.rpartition("/")[2], "reboot")
        setting = SETTINGS.get(f"{self.section}.{self.name}")
        return setting.cost if setting is not None else "rebuild"

    @property
    def switchable(self) -> bool:
        """Whether a bench can change it both ways between two launches: a drive's setting that both declare."""
        if self.section != "drive" or self.first is None or self.second is None:
            return False
        return self.name in _SYSFS or (SETTINGS[f"drive.{self.name}"].field is not None and _is_scsi(self.owner))

    @property
    def between_blocks(self) -> bool:
        """Whether the control node can change it both ways between two blocks: what QEMU grants to drives.

        An arm that does not declare it has what the inventory says, so there is always something to change back to.
        """
        return (self.section, self.name) == ("virtual", "iops_limit")


def differences(first: Resolved, second: Resolved) -> list[Difference]:
    """Everything that two configurations of one bench declare differently, in a fixed order."""
    one, two = dict(first.settings()), dict(second.settings())
    keys = dict.fromkeys([*one, *two])
    return [Difference(*key, one.get(key), two.get(key)) for key in keys if one.get(key) != two.get(key)]


def change_cost(found: Iterable[Difference]) -> str:
    """The dearest change; `none` when nothing differs."""
    return max((difference.cost for difference in found), key=COSTS.index, default="none")


def interleavable(found: Sequence[Difference]) -> bool:
    """Whether arms can alternate inside a session: they are equal, or differ in what is switched in an instant."""
    return all(difference.switchable or difference.between_blocks for difference in found)


def switched_between_blocks(found: Iterable[Difference]) -> bool:
    """Whether arms that interleave do so block by block: a bench cannot reach what the control node switches."""
    return any(difference.between_blocks for difference in found)


def switch_steps(before: Resolved, after: Resolved, drives: Iterable[str]) -> list[dict[str, Any]]:
    """How the bench gets from one configuration to another: argv, read-back, and what that must show.

    `{drive:<id>}` stands for the device node and `{name:<id>}` for the kernel name of a drive: only the bench knows
    them. `expect` must be in the read-back's output, runs of blanks taken as one.
    """
    wanted = set(drives)
    return [
        _step(difference.owner, difference.name, difference.second)
        for difference in differences(before, after)
        if difference.owner in wanted and difference.switchable
    ]


def _step(drive: str, name: str, value: object) -> dict[str, Any]:
    if name in _SYSFS:
        path = _SYSFS[name].replace("{name}", f"{{name:{drive}}}")
        # the value is an argument of the shell's script, never part of it
        write = ["sh", "-c", 'printf %s "$1" > "$2"', "storqual", str(value), path]
        # the read-back is in brackets: 4 is not 64; the scheduler in use has brackets of its own
        read = ["sh", "-c", 'printf "[%s]" "$(cat "$1")"', "storqual", path]
        return {"argv": write, "read_back": read, "expect": f"[{value}]"}
    node, kernels = f"{{drive:{drive}}}", f"{{name:{drive}}}"
    if name == "WCE":
        # the kernel would go on flushing, or not flushing, by what it read when it last looked at the drive
        script = 'sdparm --set="WCE=$1" "$2" && printf 1 > "/sys/block/$3/device/rescan"'
        return {
            "argv": ["sh", "-c", script, "storqual", str(value), node, kernels],
            "read_back": ["sh", "-c", _READ_FIELD + _READ_KERNELS, "storqual", name, node, kernels],
            "expect": f"[WCE][{value}][kernel][{value}]",
        }
    return {
        "argv": ["sdparm", f"--set={name}={value}", node],
        "read_back": ["sh", "-c", _READ_FIELD, "storqual", name, node],
        "expect": f"[{name}][{value}]",
    }


def _is_scsi(drive: str) -> bool:
    """Whether a drive's id is not that of an NVMe namespace, which has no mode pages."""
    return not drive.startswith(("eui.", "uuid.", "nguid.", "nvme.", "/"))


def undeclared(own: Resolved, other: Resolved) -> Mapping[str, Mapping[str, list[str]]]:
    """Settings that only the other arm declares: here they are to be as they were found. By section and owner."""
    mine = dict(own.settings())
    found: dict[str, dict[str, list[str]]] = {}
    for (section, owner, name), _ in other.settings():
        if (section, owner, name) not in mine:
            found.setdefault(section, {}).setdefault(owner, []).append(name)
    return found
