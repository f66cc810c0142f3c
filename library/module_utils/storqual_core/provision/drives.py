# SPDX-License-Identifier: Apache-2.0
"""Settings of drives: the nodes that the guard lets be changed, what is remembered, and what a setting visibly does.

A setting without a function here is read back, and its effect is not shown. Every observation stops when its time is
over; where it cannot tell, it says so, and nothing is shown.

And a part of a drive that only the kernel knows of: the window that fio has of it, as a device for a file system. No
partition table is written, so the guard's stamps at both ends stay, and at every moment, a power cut included, the
drive is recognised as scratch. The part goes when its batch ends, with the next boot, or with the restore.
"""

from __future__ import annotations

import mmap
import os
import random
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Callable, Collection, ContextManager, Iterable, Iterator, Mapping, Sequence

from ..guard import hold
from ..guard.claims import Claim, claims_of_adapters
from ..guard.signatures import AREA, own_volumes
from ..host.block_stack import DriveTarget, node_of, partitions, target_of
from ..kit.command import Runner, run
from ..kit.direct_reads import READ_BYTES, latencies, open_direct, read_once
from ..kit.errors import BadInputError, ToolError
from ..kit.lock import read_saved
from ..kit.machine import Machine, read_attribute
from ..kit.quantities import is_whole
from ..kit.results import Provisioned
from ..kit.settings import find, section_of
from ..tools import util_linux
from .engine import Proof, StepOutcome, apply, declared_by_owner, lock_for, plan, saver
from .logins import Sessions
from .mode_pages import NAME, SAVED, LinkRates, ModePages, field_of, plain
from .queue import Queues, judge_queue_depth, observe_in_flight

_SECTOR = 512
_EXTRA_READS = 8
_FLUSHES = 15
"""The place of completed flushes in /sys/block/*/stat (since Linux 5.5)."""


class Watched:
    """One drive while it is watched: its counters, its attributes, and reads of it."""

    def __init__(self, target: DriveTarget, seconds: float, sysfs: str = "/sys", dev: str = "/dev") -> None:
        self.target = target
        self.seconds = seconds
        self.sysfs, self.dev = sysfs, dev
        self.path = f"{dev}/{target.node}"
        self._block = Path(sysfs) / "block" / target.node

    def counters(self) -> list[int]:
        """The numbers of its `stat`. Raises ToolError when there are none."""
        words = (read_attribute(self._block / "stat") or "").split()
        if len(words) < 11 or not all(is_whole(word) for word in words):
            raise ToolError(f"{self._block / 'stat'} holds no counters")
        return [int(word) for word in words]

    def number(self, name: str) -> int | None:
        text = read_attribute(self._block / name) or ""
        return int(text) if is_whole(text) else None

    def names(self, name: str) -> list[str]:
        folder = self._block / name
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def mean_read_bytes(self, reads: Callable[[], None]) -> float | None:
        """The mean size of the requests that `reads` became; None when they became none."""
        before = self.counters()
        reads()
        after = self.counters()
        count = after[0] - before[0]
        return (after[2] - before[2]) * _SECTOR / count if count > 0 else None


def queue_depth(drive: Watched, depth: Any) -> Proof:  # noqa: ANN401 - a value of a drop
    """At most `depth` commands are in flight while more are offered, and that many were seen."""
    offered = min(2 * depth, depth + _EXTRA_READS)
    seen = observe_in_flight(drive.target.disks[0], offered, drive.seconds, drive.sysfs, drive.dev)
    return judge_queue_depth(depth, seen)


def nr_requests(drive: Watched, count: Any) -> Proof:  # noqa: ANN401 - as above
    """At most `count` requests are in flight, where nothing below it is the limit."""
    queues = len(drive.names("mq"))
    if queues > 1:
        return None, f"the drive has {queues} hardware queues, each with so many requests"
    depth = drive.number("device/queue_depth")
    if depth is not None and depth <= count:
        return None, f"its queue depth of {depth} is reached first"
    return queue_depth(drive, count)


_SERVED = 4
_ATTRIBUTES = {"mq-deadline": "fifo_batch", "kyber": "read_lat_nsec", "bfq": "slice_idle"}
"""One attribute that only the scheduler itself brings to `queue/iosched`."""


def scheduler(drive: Watched, name: Any) -> Proof:  # noqa: ANN401 - as above
    """While reads are served, the queue has the attributes of that scheduler, or of none."""
    with open_direct(drive.path) as handle:
        blocks = max(os.lseek(handle, 0, os.SEEK_END) // READ_BYTES, 1)
        places = [random.randrange(blocks) for _ in range(_SERVED)]  # noqa: S311 - offsets
        looks = []
        for place in places:
            latencies(handle, [place], drive.seconds)
            looks.append(drive.names("queue/iosched"))
    own = looks[0]
    if any(look != own for look in looks):
        return None, "the attributes of its scheduler changed while it was watched"
    served = f"{len(looks)} reads were served"
    if name == "none":
        return not own, f"{served} {'by a scheduler with ' + ', '.join(own) if own else 'without a scheduler'}"
    if name not in _ATTRIBUTES:
        return None, f"nothing is known that only scheduler {name} shows"
    if _ATTRIBUTES[name] in own:
        return True, f"{served} with {_ATTRIBUTES[name]} of {name} in place (queue/iosched)"
    return False, f"{served}, and nothing of {name} is in place (queue/iosched: {', '.join(own) or 'empty'})"


def write_cache(drive: Watched, value: Any) -> Proof:  # noqa: ANN401 - as above
    """A flush that is asked for reaches a drive whose cache is on, and is not needed by one whose cache is off."""
    if drive.target.nvme:
        return None, "an NVMe drive is sent flushes whether its cache is on or off"
    before = drive.counters()
    if len(before) <= _FLUSHES:
        return None, "this kernel does not count flushes"
    handle = os.open(drive.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        began = time.perf_counter()
        os.fsync(handle)
        took = time.perf_counter() - began
    finally:
        os.close(handle)
    sent = drive.counters()[_FLUSHES] - before[_FLUSHES]
    if value and sent:
        return True, f"a flush was requested, sent to the drive, and completed in {1000 * took:.1f} ms"
    if value:
        return False, "a flush was requested and the kernel did not send it, so the cache would not be emptied"
    return (None, "a flush was sent nevertheless") if sent else (True, "a flush was requested and none was needed")


def max_sectors_kb(drive: Watched, kib: Any) -> Proof:  # noqa: ANN401 - as above
    size = kib * 1024
    if 4 * size > _MOST_BYTES:
        return None, f"a read of {4 * kib} KiB is too large to watch"
    mean = drive.mean_read_bytes(lambda: read_once(drive.path, 4 * size))
    if mean is None:
        return None, "no request was counted"
    finding = f"a read of {4 * kib} KiB became requests of {mean / 1024:.0f} KiB"
    if mean > size:
        return False, finding
    return (True, finding) if mean == size else (None, f"{finding}: something else limits them")


_MOST_BYTES = 32 << 20
_WARM, _MEASURED = 4, 8
_ALIKE = 0.1


def read_ahead_kb(drive: Watched, kib: Any) -> Proof:  # noqa: ANN401 - as above
    """Small buffered reads in a row become requests of the read-ahead's size; of their own size without one."""
    page = mmap.PAGESIZE
    limit = drive.number("queue/max_sectors_kb") or kib
    expected = max(min(kib, limit) * 1024, page)
    window = max(kib * 1024, page)
    if (_WARM + _MEASURED) * window > _MOST_BYTES:
        return None, f"a read-ahead of {kib} KiB is too large to watch"
    handle = os.open(drive.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        length = (_WARM + _MEASURED) * window
        start = os.lseek(handle, 0, os.SEEK_END) // 2 // length * length
        os.posix_fadvise(handle, start, 2 * length, os.POSIX_FADV_DONTNEED)
        _read_pages(handle, start, start + _WARM * window, page)
        mean = drive.mean_read_bytes(lambda: _read_pages(handle, start + _WARM * window, start + length, page))
        os.posix_fadvise(handle, start, 2 * length, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
    if mean is None:
        return None, "no request was counted"
    finding = f"reads of {page // 1024} KiB in a row became requests of {mean / 1024:.0f} KiB"
    return (True if abs(mean / expected - 1) <= _ALIKE else None), finding


def read_cache_disabled(drive: Watched, value: Any) -> Proof:  # noqa: ANN401 - as above
    return _faster(drive, value, "one block again and again", lambda _number, first: first)


def read_ahead_disabled(drive: Watched, value: Any) -> Proof:  # noqa: ANN401 - as above
    return _faster(drive, value, "blocks in a row", lambda number, first: first + number)


_READS = 20
_FEW = 10
_TIMES = 2.0


def _faster(drive: Watched, disabled: Any, what: str, block: Callable[[int, int], int]) -> Proof:  # noqa: ANN401
    with open_direct(drive.path) as handle:
        blocks = max(os.lseek(handle, 0, os.SEEK_END) // READ_BYTES - _READS, 1)
        first = random.randrange(blocks)  # noqa: S311 - an offset
        places = [random.randrange(blocks) for _ in range(_READS)]  # noqa: S311 - offsets
        scattered = latencies(handle, places, drive.seconds / 2)
        # the first of a pattern is as slow as any
        pattern = latencies(handle, [block(number, first) for number in range(_READS)], drive.seconds / 2)[1:]
    return judge_read_pattern(scattered, pattern, disabled=bool(disabled), what=what)


def judge_read_pattern(scattered: Sequence[int], pattern: Sequence[int], *, disabled: bool, what: str) -> Proof:
    """Reads of a pattern (ns) that take less than half as long as random ones show a cache that is on.

    They do not accuse a drive whose cache is declared off: flash is quicker at its neighbours by itself.
    """
    if min(len(scattered), len(pattern)) < _FEW:
        return None, f"{len(scattered)} and {len(pattern)} reads are too few to compare"
    slow, quick = median(scattered), median(pattern)
    finding = f"median of random reads {slow / 1000:.0f} us, of {what} {quick / 1000:.0f} us"
    if quick * _TIMES <= slow:
        return (None, f"{finding}: faster nevertheless") if disabled else (True, finding)
    return None, f"{finding}: no difference that shows the setting"


def _read_pages(handle: int, start: int, end: int, page: int) -> None:
    for place in range(start, end, page):
        os.pread(handle, page, place)


EFFECTS: Mapping[str, Callable[[Watched, Any], Proof]] = {
    "WCE": write_cache,
    "scheduler": scheduler,
    "max_sectors_kb": max_sectors_kb,
    "read_ahead_kb": read_ahead_kb,
    "queue_depth": queue_depth,
    "nr_requests": nr_requests,
    "RCD": read_cache_disabled,
    "DRA": read_ahead_disabled,
}
"""What shows a drive setting in effect, by its name; the cheapest first."""


def effect_of(drive: Watched, name: str, value: Any) -> Proof:  # noqa: ANN401 - as above
    """What was seen of a setting in `EFFECTS`; what could not be watched is not shown, and why."""
    try:
        return EFFECTS[name](drive, value)
    except (OSError, ToolError) as problem:
        return None, f"it could not be watched: {problem}"


def claims_for(adapters: Mapping[str, Any], drives: Iterable[str], *, routes: bool = False) -> tuple[Claim, ...]:
    """The claims on `drives`, in the order asked for; `routes` as `claims_of_adapters` has it.

    Raises BadInputError for a drive nobody claimed, or a file.
    """
    files = any("file" in drive for adapter in adapters.values() for drive in adapter.get("drives") or ())
    kind = "local" if files else "hardware"
    by_id = {claim.id: claim for claim in claims_of_adapters(adapters, kind, routes=routes)}
    wanted = list(drives)
    problems = [
        f"{drive}: no adapter of this bench has a claim on it: check the id, and `claim: true` in the inventory"
        for drive in wanted
        if drive not in by_id
    ]
    problems += [
        f"{drive}: is a file; only a real drive has mode pages, a queue, or a place in a volume"
        for drive in wanted
        if drive in by_id and by_id[drive].file
    ]
    if problems:
        raise BadInputError(problems)
    return tuple(by_id[drive] for drive in wanted)


def claim_record(claim: Claim) -> dict[str, Any]:
    """The claim as it is remembered, so that a restore needs no inventory: what is not known is left out."""
    return {key: value for key, value in asdict(claim).items() if value not in (None, "") and key != "id"}


@contextmanager
def usable_drives(claims: tuple[Claim, ...], state_dir: str, run_id: str) -> Iterator[dict[str, DriveTarget]]:
    """The claimed drives as targets, once the guard lets their settings be changed. Raises GuardRefusalError.

    A drive in a volume that storqual made is reached beside the volume, which is held in its place.
    """
    volumes = own_volumes(Machine(), state_dir, claims)
    members = {member for volume in volumes for member in volume.members}
    with hold.hold(claims, purpose="settings", state_dir=Path(state_dir), run=run_id, volumes=volumes) as held:
        yield {
            claim.id: target_of(
                claim.id, held.member(claim.id) if claim.id in members else held[claim.id], paths=held.paths(claim.id)
            )
            for claim in claims
        }


Access = Callable[[Any, str, str], ContextManager[Mapping[str, DriveTarget]]]

ALL, MODE_PAGES, QUEUE, LOGIN = "all", "mode_pages", "queue", "login"
"""What drives keep themselves, what the kernel keeps for each of them, or both; or what a session is made with."""
LOGINS = frozenset(name for name, setting in section_of("drive").items() if setting.cost == "reload")


class DriveSettings:
    """Every setting of a drive: the names of mode-page fields, and the others, which are the kernel's."""

    section = "drive"
    owned_by = "drive"
    watched: Sequence[str] = tuple(EFFECTS)

    def __init__(self, runner: Runner = run, *, save: bool = False, sysfs: str = "/sys", dev: str = "/dev") -> None:
        self._pages = ModePages(runner, save=save, sysfs=sysfs)
        self._queues = Queues(sysfs)
        self._links = LinkRates(sysfs)
        self._sysfs, self._dev = sysfs, dev

    def read(self, target: DriveTarget, names: Sequence[str]) -> dict[str, Any]:
        """The values now. Raises ToolError."""
        values = self._pages.read(target, [name for name in names if is_page(name)])
        values.update(self._queues.read(target, [name for name in names if not is_page(name) and name != NAME]))
        values.update(self._links.read(target, names))
        return {name: values[name] for name in names if name in values}

    def objections(self, target: DriveTarget, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
        """What the drive, its driver or its adapter does not allow. Raises ToolError."""
        kinds: tuple[ModePages | Queues | LinkRates, ...] = (self._pages, self._queues, self._links)
        parts = ({name: value for name, value in wanted.items() if self._of(name) is kind} for kind in kinds)
        return [problem for kind, part in zip(kinds, parts) for problem in kind.objections(target, part, now)]

    def _of(self, name: str) -> ModePages | Queues | LinkRates:
        """What keeps a setting: the drive itself, the kernel's queue of it, or its link."""
        return self._pages if is_page(name) else self._links if name == NAME else self._queues

    def disturbs(self, name: str) -> Collection[str]:
        """As the vocabulary says; a saved page that is written is the current one, too."""
        return (plain(name),) if name.endswith(SAVED) else find("drive", name).disturbs

    def together(self, name: str) -> object:
        field = field_of(name)
        return name if field is None else (field.page, field.subpage, name.endswith(SAVED))

    def write(self, target: DriveTarget, values: Mapping[str, Any]) -> list[str]:
        """Write what goes together. Raises ToolError."""
        return self._of(next(iter(values))).write(target, values)

    def prove(self, target: DriveTarget, name: str, value: object) -> tuple[bool | None, str]:
        """How a value is known; what it does is not measured here."""
        if name == NAME:
            return self._links.prove(target, value)
        return None, self._pages.evidence(target, name) if is_page(name) else ""

    def watch(self, target: DriveTarget, name: str, value: Any, seconds: float) -> Proof:  # noqa: ANN401 - of a drop
        return effect_of(Watched(target, seconds, self._sysfs, self._dev), name, value)


def is_page(name: str) -> bool:
    return field_of(name) is not None


@dataclass(frozen=True)
class DriveRequest:
    """What a module was asked: declared settings by drive, the bench's adapters, its state, the run.

    `as_found`: settings by drive that must have the value that was remembered, where one was (what only the other arm
    of a campaign declares). `part`: only what drives keep themselves, or only the kernel's queue. `save`: have drives
    keep it over a power-on. `prove_s`: seconds of reads per drive and setting that show it in effect.
    """

    drives: Mapping[str, Mapping[str, object]]
    adapters: Mapping[str, Any]
    state_dir: str
    run: str
    check: bool = False
    as_found: Mapping[str, Collection[str]] = field(default_factory=dict)
    part: str = ALL
    save: bool = False
    prove_s: float = 0.0


def provision_drives(
    request: DriveRequest, *, runner: Runner = run, sysfs: str = "/sys", access: Access = usable_drives
) -> dict[str, Any]:
    """Make the drives as declared; the module's result. Raises StorqualError of all kinds (see `engine.apply`).

    `access` is the guard, an argument for tests.
    """
    declared = _chosen(request)
    if not declared:
        return StepOutcome([], []).result()
    claims = claims_for(request.adapters, declared, routes=True)
    subsystem = DriveSettings(runner, save=request.save, sysfs=sysfs)
    with ExitStack() as stack:
        lock = stack.enter_context(
            lock_for(request.state_dir, request.run, "settings of drives", check=request.check)
        )
        targets = stack.enter_context(access(claims, request.state_dir, request.run))
        saved = read_saved(Path(request.state_dir))
        plans = [
            plan(subsystem, drive, targets[drive], _with_saved(values, targets[drive], save=request.save), saved)
            for drive, values in declared.items()
        ]
        return apply(
            subsystem,
            plans,
            save=saver(lock),
            also=lambda each: claim_memory(claims, each.owner),
            prove_s=request.prove_s,
        ).result()


def _chosen(request: DriveRequest) -> dict[str, dict[str, Any]]:
    """The declared values of the part that is asked for, checked, by drive; drives without any are left out.

    All names are checked, so that a misspelt one is refused and not passed over by both parts.
    """
    declared = declared_by_owner("drive", request.drives, request.as_found, request.state_dir)
    parts = (MODE_PAGES, QUEUE) if request.part == ALL else (request.part,)
    chosen = {
        drive: {name: value for name, value in values.items() if _part_of(name) in parts}
        for drive, values in declared.items()
    }
    return {drive: values for drive, values in chosen.items() if values}


def _part_of(name: str) -> str:
    return LOGIN if name in LOGINS else MODE_PAGES if is_page(name) else QUEUE


def provision_sessions(request: DriveRequest, runner: Runner, machine: Machine, access: Access) -> dict[str, Any]:
    """Make sessions anew that are not as declared, as `provision_drives`; a drive that we hold would be in use."""
    declared = _chosen(replace(request, part=LOGIN))
    if not declared:
        return StepOutcome([], []).result()
    claims = claims_for(request.adapters, declared, routes=True)
    subsystem = Sessions(runner, machine, request.state_dir)
    with lock_for(request.state_dir, request.run, "sessions of a fabric", check=request.check) as lock:
        with access(claims, request.state_dir, request.run):
            pass
        plans = [plan(subsystem, drive, drive, values) for drive, values in declared.items()]
        outcome = apply(subsystem, plans, save=saver(lock), also=lambda each: claim_memory(claims, each.owner))
        with access(claims, request.state_dir, request.run):
            return outcome.result()


def _with_saved(values: Mapping[str, Any], target: DriveTarget, *, save: bool) -> dict[str, Any]:
    """The same with the saved pages of a SCSI drive, which have what is declared."""
    if not save or target.nvme:
        return dict(values)
    saved = {f"{name}{SAVED}": value for name, value in values.items() if is_page(name) and value is not None}
    return {**values, **saved}


def claim_memory(claims: Iterable[Claim], drive: str) -> dict[str, Any]:
    """What is remembered with a drive's old values: the claim that allowed the change."""
    return {f"claim@{claim.id}": claim_record(claim) for claim in claims if claim.id == drive}


MEMORY = "file_system"
"""In saved.json, `file_system@<drive>`, or `@<UUID>` of a volume: null, because it has no part when it is found."""
_PART = 1


def make_part(runner: Runner, machine: Machine, disk: str, size: int) -> str:
    """Make the part of the drive with kernel name `disk`, `size` bytes from the guard's area on; its kernel name.

    Raises ToolError where the kernel makes none (a device-mapper device has no parts).
    """
    drop_part(runner, machine, disk)
    util_linux.add_part(runner, _node(machine, disk), _PART, AREA, size)
    names = partitions(machine, disk)
    if len(names) != 1:
        raise ToolError(f"{disk} shows parts {', '.join(names) or 'none'} after one was made, expected one")
    return names[0]


def drop_part(runner: Runner, machine: Machine, disk: str) -> list[str]:
    """Have the kernel forget the part that was made here, where there is one; its name. The guard holds the drive.

    Raises ToolError for a part that is somebody else's: nothing is done then.
    """
    names = partitions(machine, disk)
    for name in names:
        number, start = (machine.number(f"/sys/class/block/{name}/{what}") for what in ("partition", "start"))
        if (number, start) != (_PART, AREA // _SECTOR):
            raise ToolError(
                f"part {name} of {disk} was not made by storqual; remove it from the kernel yourself (delpart)"
            )
    for _ in names:
        util_linux.delete_part(runner, _node(machine, disk), _PART)
    return names


def restore_part(runner: Runner, machine: Machine, drive: str, disk: str, *, check: bool) -> Provisioned:
    """Take away what a batch that was killed left of its part; the record of it. Raises ToolError."""
    before = ", ".join(partitions(machine, disk)) or None
    if not check:
        drop_part(runner, machine, disk)
    now = ", ".join(partitions(machine, disk)) or None
    return Provisioned(MEMORY, None, before, now, drive=drive, changed=before != now)


def restore_part_of_volume(
    runner: Runner, machine: Machine, claims: Sequence[Claim], state_dir: str, run_id: str, uuid: str, *, check: bool
) -> Provisioned:
    """The same of a volume that storqual made, by its UUID; one that is gone took its part with it.

    Raises ToolError, GuardRefusalError.
    """
    volume = next((array for array in own_volumes(machine, state_dir, claims) if array.uuid == uuid), None)
    if volume is None:
        return Provisioned(MEMORY, None, None, None, drive=uuid)
    members = [claim for claim in claims if claim.id in volume.members]
    with hold.hold(
        members, purpose="settings", state_dir=state_dir, run=run_id, volumes=[volume], machine=machine, runner=runner
    ):
        return restore_part(runner, machine, uuid, volume.id, check=check)


def _node(machine: Machine, disk: str) -> str:
    node = node_of(machine, disk)
    if not node:
        raise ToolError(f"the device node of {disk} is missing or is another device: repair /dev (udev)")
    return node
