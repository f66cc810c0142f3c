# SPDX-License-Identifier: Apache-2.0
"""The kernel's queue of each drive: queue depth, I/O scheduler, queued requests and their kin, in sysfs.

And the timers of a drive behind a fabric: the kernel keeps them for the remote port, session or controller that leads
to it, so all drives behind that have the same; that two were to have different ones is seen when they are read back.

A driver may ignore what it stored, so a queue depth can be shown in effect: more reads than the depth are offered,
which destroy nothing, and the drive's in-flight count is watched.
"""

from __future__ import annotations

import re
import stat
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from ..host.block_stack import DriveTarget
from ..kit.direct_reads import random_reads
from ..kit.errors import ToolError
from ..kit.machine import read_attribute, selected_word, write_attribute
from ..kit.quantities import is_whole

_TIMERS: Mapping[str, str] = {
    "dev_loss_tmo": "fc_remote_ports",
    "fast_io_fail_tmo": "fc_remote_ports",
    "recovery_tmo": "iscsi_session",
    "ctrl_loss_tmo": "",
    "reconnect_delay": "",
}
"""The class in sysfs that keeps each timer of a SCSI drive; those of an NVMe controller are among its attributes."""
_ABOVE = re.compile(r"(?:rport-[0-9:-]+|session\d+)\Z")
_CONTROLLER = re.compile(r"nvme\d+\Z")
_OFF = ("off", "-1")
_AND = " and "
"""Between the values of paths that differ."""
_BLOCKED_S = 600
"""The longest time that the kernel keeps the drives of a remote port blocked."""


class Queues:
    """How the attributes are read and written."""

    def __init__(self, sysfs: str = "/sys") -> None:
        self._sysfs = sysfs

    def _files(self, target: DriveTarget, name: str) -> list[Path]:
        """Where the kernel keeps a setting of a drive: in one place, or in one for each path to it."""
        block = Path(self._sysfs) / "block"
        if name in _TIMERS:
            keepers = [keeper for disk in target.disks for keeper in self._keepers(disk, name)]
            return [keeper / name for keeper in dict.fromkeys(keepers)]
        if name == "queue_depth":
            return [block / disk / "device" / name for disk in target.disks]
        return [block / target.node / "queue" / name]

    def _keepers(self, disk: str, name: str) -> list[Path]:
        """The remote port, session or controllers that keep a timer; the drive itself where there is no such."""
        place = (Path(self._sysfs) / "block" / disk / "device").resolve()
        if disk.startswith("nvme"):
            # with native multipath a subsystem has the controllers in it
            below = sorted(entry for entry in place.glob("nvme*") if _CONTROLLER.match(entry.name))
            return below or [place]
        above = next((folder.name for folder in place.parents if _ABOVE.match(folder.name)), "")
        return [Path(self._sysfs) / "class" / _TIMERS[name] / above if above and _TIMERS[name] else place]

    def read(self, target: DriveTarget, names: Sequence[str]) -> dict[str, Any]:
        """The values the kernel has now; a name the drive's driver does not have is left out. Raises ToolError.

        Where the paths to a drive differ, the value is a text with that of each.
        """
        readings = {name: [self._value(file, name) for file in self._files(target, name)] for name in names}
        return {
            name: values[0] if len(set(values)) == 1 else _AND.join(map(str, values))
            for name, values in readings.items()
            if None not in values
        }

    @staticmethod
    def _value(file: Path, name: str) -> int | str | None:
        text = read_attribute(file)
        if text is None or (name == "queue_depth" and not is_whole(text)):
            return None
        if name == "scheduler":
            return selected_word(text)
        if name in _TIMERS and text in _OFF:
            return _OFF[0]
        try:
            return int(text)
        except ValueError:
            raise ToolError(f"{file} holds {text[:40]!r} where a number was expected") from None

    def objections(self, target: DriveTarget, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """Attributes that are not there or cannot be written, a depth that is more than the adapter takes."""
        problems = [
            f"the driver of {target.node} has no {name}, {value} is declared"
            for name, value in wanted.items()
            if name not in now
        ]
        problems += [
            f"{name} is {now[name]}, and the driver of {target.node} does not let it be changed (the attribute is "
            f"read-only), {value} is declared"
            for name, value in wanted.items()
            if now.get(name, value) != value and self._read_only(target, name)
        ]
        problems += self._timer_objections(target, wanted)
        depth, limit = wanted.get("queue_depth"), self._can_queue(target.disks[0])
        if depth is not None and limit is not None and int(depth) > limit:
            problems.append(f"queue depth {depth} is declared, its adapter takes {limit} commands in total")
        return problems

    def _timer_objections(self, target: DriveTarget, wanted: Mapping[str, Any]) -> list[str]:
        """What the kernel does not take of the two timers of a remote port, the one that is not declared included."""
        pair = ("dev_loss_tmo", "fast_io_fail_tmo")
        timers = {**self.read(target, pair), **{name: wanted[name] for name in pair if name in wanted}}
        lost, fails = (timers.get(name) for name in pair)
        if not isinstance(lost, int) or fails is None or not set(pair) & set(wanted):
            # there is no remote port, which is told of each name by itself
            return []
        if fails == _OFF[0]:
            sentence = f"dev_loss_tmo {lost} is declared, above {_BLOCKED_S} it needs a fast_io_fail_tmo"
            return [sentence] if lost > _BLOCKED_S else []
        if fails < min(lost, _BLOCKED_S + 1):
            return []
        above = f"must be below dev_loss_tmo, which is {lost}, and at most {_BLOCKED_S}"
        return [f"fast_io_fail_tmo {fails} {above}"]

    def _read_only(self, target: DriveTarget, name: str) -> bool:
        """Whether the driver has no way to change the attribute: then not even root may write it."""
        return not all(file.stat().st_mode & stat.S_IWUSR for file in self._files(target, name))

    def _can_queue(self, node: str) -> int | None:
        """What the adapter takes in all: the highest queue depth the kernel accepts for one of its drives."""
        device = (Path(self._sysfs) / "block" / node / "device").resolve()
        for folder in device.parents:
            if folder.name.startswith("host"):
                text = read_attribute(folder / "scsi_host" / folder.name / "can_queue")
                return int(text) if text and is_whole(text) else None
        return None

    def write(self, target: DriveTarget, values: Mapping[str, Any]) -> list[str]:
        """Write the attributes; what was done. Raises ToolError at the first refusal."""
        for name, value in values.items():
            files = self._files(target, name)
            each = str(value).split(_AND) if _AND in str(value) else [value] * len(files)
            if len(each) != len(files):
                raise ToolError(f"{target.id}: {name} was {value}, and it has {len(files)} paths now")
            for file, word in zip(files, each):
                # an NVMe controller takes a number only
                write_attribute(file, -1 if word == _OFF[0] and target.nvme else word)
        return [f"{target.id}: {name} set to {value}" for name, value in values.items()]


_SAMPLE_S = 0.001
_FEW = 20
_NOT_IN_EFFECT = 0.05
"""Share of looks above the depth from which it counts as exceeded."""
_STRAY = 10
"""A depth in effect is found this many times as often as more than it."""


@dataclass(frozen=True)
class InFlight:
    """What was seen: how many looks found how many requests in the drive, and the reads that were offered."""

    looks: Mapping[int, int]
    offered: int

    @property
    def highest(self) -> int:
        return max(self.looks, default=0)

    @property
    def samples(self) -> int:
        return sum(self.looks.values())

    def above(self, depth: int) -> int:
        """The number of looks that found more than `depth` requests."""
        return sum(times for requests, times in self.looks.items() if requests > depth)


def observe_in_flight(node: str, offered: int, seconds: float, sysfs: str = "/sys", dev: str = "/dev") -> InFlight:
    """Keep `offered` random direct 4 KiB reads going on `node` (`sda`) for `seconds`, and sample its in-flight count.

    The count is that of requests handed to the drive's driver; what waits in the scheduler is not in it.
    Raises ToolError when the drive cannot be read.
    """
    path = f"{dev}/{node}"
    with random_reads([path], offered) as tally:
        looks = _look(f"{sysfs}/block/{node}/inflight", seconds)
    if tally.failures:
        raise ToolError(f"reading {dev}/{node} failed while its queue was watched: {tally.failures[0]}")
    return InFlight(looks, offered)


def _look(path: str, seconds: float) -> Mapping[int, int]:
    looks: Counter[int] = Counter()
    with open(path, "rb", buffering=0) as stream:  # noqa: PTH123 - unbuffered, so that each look asks the kernel
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            stream.seek(0)
            looks[sum(int(word) for word in stream.read().split())] += 1
            time.sleep(_SAMPLE_S)
    return looks


def judge_queue_depth(depth: int, seen: InFlight) -> tuple[bool | None, str]:
    """Whether a queue depth is in effect: reached, and exceeded in no more than stray looks. None: not shown.

    The kernel adds the counters of its processors one after another: a request that ends on one while the next
    starts on another is counted twice in that look. A depth that is not in effect is exceeded in nearly all.
    """
    above = seen.above(depth)
    facts = f"{seen.highest} in flight at most in {seen.samples} looks while {seen.offered} reads were offered"
    if above > _NOT_IN_EFFECT * seen.samples:
        return False, f"{facts}: more than the depth of {depth} in {above} of them"
    if seen.samples < _FEW or seen.offered <= depth:
        return None, f"{facts}: too little to tell"
    if seen.highest < depth:
        return None, f"{facts}: the drive is too fast to fill a queue of {depth}"
    if above and above * _STRAY > seen.looks.get(depth, 0):
        return None, f"{facts}: more than the depth of {depth} in {above} of them, too few to tell"
    if above:
        return True, f"{facts}: the depth of {depth} was reached; {above} looks counted a request twice"
    return True, f"{facts}: the depth of {depth} was reached and not exceeded"
