# SPDX-License-Identifier: Apache-2.0
"""What drives have on record of themselves: health, error counters and link counters, by whatever tool they answer.

An NVMe drive is asked by nvme-cli, a SCSI drive by smartctl and by its log pages (sg_logs), which count what smartctl
does not print: non-medium errors, and errors of the link as the drive sees it. What is not answered is a sentence.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Iterable, Iterator, Mapping

from ..kit.command import Runner, run
from ..kit.errors import MissingToolError, ToolError


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
        """All of it, as JSON carries it."""
        return {**asdict(self), "complaints": list(self.complaints)}


def read_drive_log(drive: Mapping[str, Any], runner: Runner) -> DriveLog:
    """The log of one drive of `read_facts`. Raises nothing."""
    found: dict[str, Any] = {}
    counters: dict[str, int] = {}
    answered, unread, missing = [], [], []
    for tool, ask in _asks(drive, runner):
        try:
            said = ask()
        except MissingToolError:
            missing.append(tool)
            continue
        except ToolError as problem:
            unread.append(str(problem))
            continue
        answered.append(tool)
        # the first tool that knows a counter has it
        counters = {**said.pop("counters"), **counters}
        found = {**said, **found}
        if tool == "nvme":
            break
    return DriveLog(
        **found, counters=counters, answered=tuple(answered), unread=tuple(unread), missing=tuple(missing)
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
    return {
        "passed": None if warning is None else warning == 0,
        "temperature": None if kelvin is None else kelvin - 273,
        "hours": values.get("power_on_hours"),
        "counters": {f"nvme.{name}": count for name, count in values.items()},
    }


def _smartctl(node: str, runner: Runner) -> dict[str, Any]:
    from ..tools import smartctl  # noqa: PLC0415 - as above

    return told(smartctl.read_health(runner, node))


def told(said: Any) -> dict[str, Any]:  # noqa: ANN401 - smartctl.Health, which is imported when it is needed
    """What smartctl said of a drive's health."""
    names = ("passed", "temperature", "trip", "hours")
    known = {name: getattr(said, name) for name in names}
    return {**known, "counters": dict(said.counters), "complaints": list(said.complaints)}


def _log_pages(node: str, runner: Runner) -> dict[str, Any]:
    from ..tools import sg_logs  # noqa: PLC0415 - as above

    pages = sg_logs.read_log_pages(runner, node)
    counters = {**sg_logs.error_counters(pages), **sg_logs.link_counters(pages)}
    return {"counters": {_name(name): count for name, count in counters.items()}}


def _name(printed: str) -> str:
    """A label of a log page as smartctl's JSON spells it: `read.total_uncorrected_errors`."""
    group, _, label = printed.partition(".")
    return f"{group}.{re.sub(r'[^a-z0-9]+', '_', label.lower()).strip('_')}"


ON_RECORD = re.compile(
    r"(?:read|write|verify)\.total_uncorrected_errors|grown_defects|nvme\.(?:media_errors|critical_warning)"
    # reallocated, reported uncorrectable, pending and offline uncorrectable sectors, CRC errors (ATA attributes)
    r"|attribute\.(?:5|187|197|198|199)"
)
"""Counters that healthy use never raises: one that grows during a campaign is evidence against its points."""


def read_drive_logs(drives: Iterable[Mapping[str, Any]], *, runner: Runner = run) -> dict[str, dict[str, Any]]:
    """The log of each of these drives of `read_facts` by its id, as JSON carries it. Raises nothing."""
    return {str(drive["id"]): read_drive_log(drive, runner).record() for drive in drives}


def errors_on_record(logs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """The counters of `ON_RECORD` by drive; a drive that keeps none is left out."""
    found = {
        drive: {name: count for name, count in sorted(log["counters"].items()) if ON_RECORD.fullmatch(name)}
        for drive, log in logs.items()
    }
    return {drive: counters for drive, counters in found.items() if counters}
