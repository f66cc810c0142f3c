# SPDX-License-Identifier: Apache-2.0
"""Settings that live in a drive: mode-page fields, an NVMe drive's write cache, the highest rate of a SAS link.

All fields of a page go in one MODE SELECT. A field that a drive does not let be changed is found before any write.
`<name>.saved` is the field in the drive's saved page, which holds after the next power-on. A write cache is shown in
effect by single writes, which take longer without it.

The phys are those that face the drive, on the adapter or on the last expander. A write has the link negotiated
afresh, so it is waited for. Drivers that cannot set it (without set_phy_speed of the transport class) show the
attribute read-only.
"""

from __future__ import annotations

import mmap
import os
import random
import stat
import time
from pathlib import Path
from statistics import median
from typing import Any, Iterable, Mapping, Sequence

from ..host.block_stack import DriveTarget
from ..host.counters import read_phys
from ..kit.command import Runner
from ..kit.direct_reads import open_direct
from ..kit.errors import ToolError
from ..kit.machine import Machine, read_attribute, write_attribute
from ..kit.settings import LINK_RATES, ModeField, find
from ..tools import nvme, sg3
from .engine import Proof

WRITE_CACHE = "WCE"
SAVED = ".saved"


def plain(name: str) -> str:
    """The name of the field, whether its current or its saved value is meant."""
    return name[: -len(SAVED)] if name.endswith(SAVED) else name


def field_of(name: str) -> ModeField | None:
    """Where a field lives; None for a setting that is no field of a mode page. Raises BadInputError."""
    return find("drive", plain(name)).field


class ModePages:
    """How fields are read and written; with `save` an NVMe drive keeps its write cache over a power-on, too."""

    def __init__(self, runner: Runner, *, save: bool = False, sysfs: str = "/sys") -> None:
        self._runner = runner
        self._save = save
        self._sysfs = sysfs
        self._pages: dict[tuple[str, object], bytes] = {}
        self._changeable: dict[tuple[str, object], bytes] = {}

    def read(self, target: DriveTarget, names: Sequence[str]) -> dict[str, Any]:
        """The values of `names` as the drive has them now. Raises ToolError."""
        if names and target.nvme:
            return self._read_nvme(target, names)
        values: dict[str, Any] = {}
        for place, fields in _by_page(names).items():
            data = sg3.read_page(self._runner, target.device, *place)
            self._pages[target.device, place] = data
            values.update({name: sg3.get_field(data, field) for name, field in fields.items()})
        return {name: values[name] for name in names}

    def _read_nvme(self, target: DriveTarget, names: Sequence[str]) -> dict[str, Any]:
        others = [name for name in names if name != WRITE_CACHE]
        if others:
            raise ToolError(
                f"is an NVMe drive: it has no mode pages, of these settings only WCE, not {', '.join(others)}"
            )
        return {WRITE_CACHE: nvme.read_write_cache(self._runner, target.device)}

    def objections(self, target: DriveTarget, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """The fields that the drive does not let be changed; its mask is asked for when something must change."""
        problems = []
        for place, fields in {} if target.nvme else _by_page(wanted).items():
            if all(now[name] == wanted[name] for name in fields):
                continue
            page, subpage, _ = place
            mask = self._changeable.get((target.device, (page, subpage)))
            if mask is None:
                mask = sg3.read_page(self._runner, target.device, page, subpage, sg3.CHANGEABLE)
                self._changeable[target.device, (page, subpage)] = mask
            changes = {name: (field, wanted[name]) for name, field in fields.items()}
            problems += [
                f"{name} is {now[name]} and not changeable on this drive (its changeable mask says so), "
                f"{wanted[name]} is declared"
                for name in sg3.plan_page(self._pages[target.device, place], mask, changes).unchangeable
            ]
        return problems

    def write(self, target: DriveTarget, values: Mapping[str, Any]) -> list[str]:
        """Write fields of one page, and have the kernel look at the drive's cache again; what was done."""
        if target.nvme:
            nvme.write_write_cache(self._runner, target.device, values[WRITE_CACHE], save=self._save)
            return [f"{target.id}: write cache set to {values[WRITE_CACHE]}"]
        ((place, fields),) = _by_page(values).items()
        page, subpage, control = place
        changes = {name: (field, values[name]) for name, field in fields.items()}
        # what can be changed was asked before the first write
        everything = b"\xff" * len(self._pages[target.device, place])
        plan = sg3.plan_page(self._pages[target.device, place], everything, changes)
        saving = control == sg3.SAVED
        sg3.write_page(self._runner, target.device, page, subpage, plan.contents, plan.mask, save=saving)
        steps = [f"{target.id}: mode page 0x{page:02x} written{' and saved' if saving else ''}"]
        if WRITE_CACHE in map(plain, values):
            # without this the kernel would go on flushing, or not flushing, by what it read when it found the drive
            for disk in target.disks:
                write_attribute(Path(self._sysfs) / "block" / disk / "device" / "rescan", 1)
            steps.append(f"{target.id}: kernel asked to read the cache type again")
            self._refuse_other_belief(
                target, *(value for name, value in values.items() if plain(name) == WRITE_CACHE)
            )
        return steps

    def _refuse_other_belief(self, target: DriveTarget, value: int) -> None:
        for kernel in self._cache_types(target):
            if kernel.startswith("write back") != bool(value):
                raise ToolError(
                    f"{target.id}: WCE is {value}, and the kernel goes by '{kernel}' also after it looked again"
                )

    def evidence(self, target: DriveTarget, name: str) -> str:
        """How a value is known; the kernel's cache type is told beside WCE."""
        if plain(name) != WRITE_CACHE or target.nvme:
            return ""
        return f"the kernel says {' and '.join(self._cache_types(target)) or 'nothing'}"

    def _cache_types(self, target: DriveTarget) -> list[str]:
        """What the kernel believes, each once: `write back` or `write through`; none where it does not say."""
        block = Path(self._sysfs) / "block"
        files = (path for disk in target.disks for path in (block / disk).glob("device/scsi_disk/*/cache_type"))
        return sorted({read_attribute(path) or "" for path in files} - {""})


def _by_page(names: Iterable[str]) -> dict[tuple[int, int, int], dict[str, ModeField]]:
    pages: dict[tuple[int, int, int], dict[str, ModeField]] = {}
    for name in names:
        field = field_of(name)
        if field is None:
            raise ToolError(f"drive.{name} is not a mode-page field")
        control = sg3.SAVED if name.endswith(SAVED) else sg3.CURRENT
        pages.setdefault((field.page, field.subpage, control), {})[name] = field
    return pages


_WRITES = 40
_FEW = 20
_BYTES = 4096


def write_latencies(path: str, offset: int, size: int) -> list[int]:
    """How long single direct writes of 4 KiB at random places of a batch's window take (ns). Raises ToolError."""
    latencies = []
    try:
        # direct I/O wants aligned memory; an anonymous mapping is
        with open_direct(path, os.O_WRONLY) as handle, mmap.mmap(-1, _BYTES) as memory:
            for _ in range(_WRITES):
                place = offset + random.randrange(max(size // _BYTES, 1)) * _BYTES  # noqa: S311 - an offset
                began = time.perf_counter_ns()
                os.pwritev(handle, [memory], place)
                latencies.append(time.perf_counter_ns() - began)
    except OSError as problem:
        raise ToolError(f"{path} cannot be written: {problem.strerror}") from problem
    return latencies


def judge_write_cache(
    on_ns: Sequence[float], off_ns: Sequence[float], *, least: float = 1.2
) -> tuple[bool | None, str]:
    """Whether WCE is in effect: the median write latency without the cache is `least` times that with it.

    Both are latencies of single writes in ns. None when there is too little, or no difference: an emulated drive, or
    one with a protected cache, may be as fast without.
    """
    if min(len(on_ns), len(off_ns)) < _FEW:
        return None, f"{len(on_ns)} and {len(off_ns)} writes are too few to compare"
    on, off = median(on_ns), median(off_ns)
    facts = f"median write latency {on / 1000:.0f} us with the cache, {off / 1000:.0f} us without"
    if on > 0 and off >= least * on:
        return True, facts
    return None, f"{facts}: no difference that shows the setting"


NAME = "link_rate"
_LIMIT_S, _STEADY_S, _POLL_S = 20.0, 2.0, 0.1
"""How long a link may take to come back; how long a lower rate than allowed must last to be taken for its rate."""


class LinkRates:
    """How the rate of a drive's link is read, refused, set and shown."""

    def __init__(self, sysfs: str = "/sys", machine: Machine | None = None) -> None:
        self._machine = machine or Machine(str(Path(sysfs).parent))

    def read(self, target: DriveTarget, names: Sequence[str]) -> dict[str, Any]:
        """The highest rate allowed now; a drive on no SAS link has none."""
        now = self._texts(target, "maximum_linkrate") if NAME in names else []
        return {NAME: ", ".join(now)} if now else {}

    def _texts(self, target: DriveTarget, attribute: str) -> list[str]:
        phys = read_phys(self._machine, target.node)
        return sorted({text for text in (self._machine.text(f"{phy}/{attribute}") for phy in phys) if text})

    def objections(self, target: DriveTarget, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """No SAS link, phys that nobody can set or that cannot run at that rate, others on the same link."""
        rate = wanted.get(NAME)
        if rate is None:
            return []
        if NAME not in now:
            sentence = f"{target.node} is on no SAS link, {rate} is declared"
            return [f"{sentence}; a Fibre Channel port has its rate from its driver (lpfc: lpfc_link_speed)"]
        if now[NAME] == rate:
            return []
        if now[NAME] not in LINK_RATES:
            return [f"the phys of {target.node} have highest rates that could not be put back: {now[NAME]}"]
        phys = read_phys(self._machine, target.node)
        problems = []
        files = (Path(self._machine.path(f"{phy}/maximum_linkrate")) for phy in phys)
        if not all(file.stat().st_mode & stat.S_IWUSR for file in files):
            problems.append(
                f"the driver of {target.node} does not let the rate of its link be changed (maximum_linkrate is "
                f"read-only), {rate} is declared"
            )
        for attribute in ("minimum_linkrate", "minimum_linkrate_hw", "maximum_linkrate_hw"):
            for text in self._texts(target, attribute):
                above, below = _place(rate) > _place(text), _place(rate) < _place(text)
                if text in LINK_RATES and (below if attribute.startswith("minimum") else above):
                    problems.append(f"{rate} is declared, and {attribute} of the phys of {target.node} is {text}")
        sharing = [
            name
            for name in self._machine.names("/sys/block")
            if name != target.node and read_phys(self._machine, name) == phys
        ]
        if sharing:
            problems.append(f"the link of {target.node} also carries {', '.join(sharing)}, which would lose it too")
        return problems

    def write(self, target: DriveTarget, values: Mapping[str, Any]) -> list[str]:
        """Write, and wait for the link. Raises ToolError when it does not come back, or not below that rate."""
        rate = str(values[NAME])
        for phy in read_phys(self._machine, target.node):
            write_attribute(self._machine.path(f"{phy}/maximum_linkrate"), rate)
        return [f"{target.id}: {NAME} set to {rate}, the link came back at {self._came_back(target, rate)}"]

    def _came_back(self, target: DriveTarget, rate: str) -> str:
        """The rate that the link has when it has that rate, or a lower one for a while (a slower drive or cable)."""
        waited = steady = 0.0
        before = ""
        while True:
            seen = self._texts(target, "negotiated_linkrate")
            state = self._machine.text(f"/sys/block/{target.node}/device/state")
            text = ", ".join(seen)
            ready = len(seen) == 1 and text in LINK_RATES and state in ("", "running")
            if ready and text == rate:
                return text
            steady = steady + _POLL_S if ready and text == before and _place(text) < _place(rate) else 0.0
            if steady >= _STEADY_S:
                return text
            if waited >= _LIMIT_S:
                raise ToolError(
                    f"{target.id}: {waited:.0f} s after {rate} was set its link is at {text or 'no rate'}, the drive "
                    f"{state or 'gone'}"
                )
            before = text
            self._machine.wait(_POLL_S)
            waited += _POLL_S

    def prove(self, target: DriveTarget, value: object) -> Proof:
        seen = self._texts(target, "negotiated_linkrate")
        finding = f"negotiated_linkrate is {', '.join(seen) or 'not shown'}"
        if not seen or not all(text in LINK_RATES for text in (*seen, str(value))):
            return None, finding
        if any(_place(text) > _place(str(value)) for text in seen):
            return False, finding
        return (True, finding) if seen == [value] else (None, f"{finding}: the drive or the cable is slower")


def _place(rate: str) -> int:
    return LINK_RATES.index(rate) if rate in LINK_RATES else -1
