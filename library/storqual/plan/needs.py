# SPDX-License-Identifier: Apache-2.0
"""The programs that a plan will run on a bench: the preflight asks for them before packages, volumes and boots."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from storqual.plan.bench_plan import BenchPlan
from storqual_core.kit.settings import SETTINGS
from storqual_core.provision.firmware.subject import FIRMWARE_TOOLS
from storqual_core.provision.nvram import TOOL_OF_DRIVER
from storqual_core.tools import TOOLS

_WRITE_CACHE = "WCE"
_LAUNCHES = "launches"


def needed_programs(plan: BenchPlan) -> list[dict[str, Any]]:
    """Each as `programs`, of which one is enough, and what it is `for`; the first use is named.

    A kernel or driver that the bench is to be booted with is one of no programs, with `boots`. Launches have
    `one_disk`: fio is given one disk for each drive, where a trial has a multipath device made over several.
    """
    uses: dict[tuple[str, ...], str] = {}
    for programs, use in (*_of_batches(plan.batches), *_of_drops(plan)):
        uses.setdefault(tuple(programs), use)
    drivers = [spec["driver"] or {} for spec in plan.specs.values()]
    boots = {
        f"the {what} of the drop": None for driver in drivers for key, what in _BOOTED.items() if driver.get(key)
    }
    return [
        *(
            {"programs": list(programs), "for": use, **({"one_disk": True} if use == _LAUNCHES else {})}
            for programs, use in uses.items()
        ),
        *({"programs": [], "for": use, "boots": True} for use in boots),
    ]


_BOOTED = {"kernel": "kernel", "dkms": "driver build", "kmod": "driver build", "module": "driver build"}


def _of_batches(batches: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Sequence[str], str]]:
    for batch in batches:
        for turn in batch["turns"]:
            if turn["kind"] != "launch":
                continue
            yield ("fio",), _LAUNCHES
            kind = (turn["request"].get("file_system") or {}).get("kind")
            if kind:
                yield (f"mkfs.{kind}",), f"the {kind} file systems that the suite measures"


def _of_drops(plan: BenchPlan) -> Iterator[tuple[Sequence[str], str]]:
    adapters = plan.bench.adapters
    nvme = {drive.id for adapter in adapters.values() if adapter.driver == "nvme" for drive in adapter.drives}
    for spec in plan.specs.values():
        for volume in spec["raid"]:
            yield _programs(volume["tool"]), f"the volumes of adapter {volume['adapter']}"
        for alias in spec["nvram"]:
            tool = adapters[alias].tool or TOOL_OF_DRIVER.get(adapters[alias].driver or "", "")
            yield _programs(tool), f"the NVRAM of adapter {alias}"
        for image in spec["firmware"]:
            owners = " and ".join([*(image.get("adapters") or ()), *(image.get("drives") or ())])
            yield _programs(FIRMWARE_TOOLS.get(image["tool"], "")), f"the firmware of {owners}"
        if (spec["driver"] or {}).get("dkms"):
            yield ("dkms",), "the driver build of the drop"
        if (spec["driver"] or {}).get("kmod"):
            yield ("rpm",), "the driver package of the drop"
        for drive, settings in spec["drive"].items():
            if drive in nvme and _WRITE_CACHE in settings:
                yield ("nvme",), "the write cache of NVMe drives"
            elif drive not in nvme and any(SETTINGS[f"drive.{name}"].field for name in settings):
                yield ("sg_wr_mode",), "the mode pages of drives"


def _programs(tool: str) -> Sequence[str]:
    """The names under which a tool is installed; none for one that is no program."""
    load = TOOLS.get(tool)
    return getattr(load(), "PROGRAMS", (tool,) if tool in _PLAIN else ()) if load is not None else ()


_PLAIN = ("nvme", "sg_write_buffer")
"""Tools that are one program of their name."""
