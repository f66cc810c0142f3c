# SPDX-License-Identifier: Apache-2.0
"""Whole-system counters around a window: processor time, interrupts, context switches, disks; and their differences.

Processor time is read from idle time and blurred by the clock's ticks and its changes of frequency. Unhalted cycles
are counted by the processor itself, in user, kernel and interrupt alike, so a launch of seconds can tell what an I/O
costs. An emulated processor has no such counter. Structure and calls: perf_event_open(2), its attributes' version 0.

Names are those of a sample's primitives. A counter that this kernel does not have, or that went backwards, is left
out: missing is not zero.

About processor time: the columns user, nice, system, irq and softirq of `/proc/stat` are sampled by the timer tick on
most kernels, and miss work that is locked to timers by a factor of two to four. The idle and iowait columns are
measured, not sampled, wherever the tick stops in idle (NO_HZ, every distribution's kernel). So
`cpu_count * wall - (idle + iowait + steal)` is exact to a tick even without cpuidle residency, and agrees with it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
import time
from collections import Counter
from contextlib import suppress
from operator import sub
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence, Tuple

from ..kit.machine import Machine
from ..kit.quantities import is_whole
from .fabric import hidden_paths, path_disks, statistics_files

_PORT = re.compile(r"/port-\d+(?::\d+)+(?=/)")


def read_phys(machine: Machine, name: str) -> list[str]:
    """The folders of the phys that a drive is linked through, on adapter or last expander; none without SAS."""
    place = machine.link(f"/sys/block/{name}")
    ports = list(_PORT.finditer(place))
    if not ports:
        return []
    # the link's text is relative to /sys/block; the last port of the path is the one the drive itself is on
    folder = "/sys/" + place[: ports[-1].end()].replace("../", "")
    return [f"{folder}/{phy}/sas_phy/{phy}" for phy in machine.names(folder) if phy.startswith("phy-")]


def read_link(machine: Machine, name: str) -> dict[str, Any]:
    """`port` (number on the adapter), `rate`, `rate_max` (of the adapter's or expander's phys) and `width` in phys.

    A wide port whose phys run at different rates shows all of them; what is not shown is empty or None.
    """
    port = _PORT.search(machine.link(f"/sys/block/{name}"))
    phys = read_phys(machine, name)
    return {
        "port": int(port.group(0).split(":")[1]) if port else None,
        "rate": _texts(machine, phys, "negotiated_linkrate"),
        "rate_max": _texts(machine, phys, "maximum_linkrate"),
        "width": len(phys) or None,
    }


def _texts(machine: Machine, phys: list[str], name: str) -> str:
    texts = {machine.text(f"{phy}/{name}") for phy in phys}
    return ", ".join(sorted(text for text in texts if text))


_SCSI = ("ioerr_cnt", "iotmo_cnt")
_PHY = ("invalid_dword_count", "running_disparity_error_count", "loss_of_dword_sync_count", "phy_reset_problem_count")
_FC = (
    "link_failure_count",
    "loss_of_sync_count",
    "loss_of_signal_count",
    "prim_seq_protocol_err_count",
    "invalid_tx_word_count",
    "invalid_crc_count",
    "fcp_packet_aborts",
)
ERROR_WORDS: Mapping[str, str] = {
    "ioerr_cnt": "commands that ended with an error",
    "iotmo_cnt": "commands that timed out",
    "invalid_dword_count": "invalid dwords on the link",
    "running_disparity_error_count": "running disparity errors on the link",
    "loss_of_dword_sync_count": "losses of dword synchronisation",
    "phy_reset_problem_count": "failed resets of the phy",
    "link_failure_count": "failures of the FC link",
    "loss_of_sync_count": "losses of synchronisation of the FC link",
    "loss_of_signal_count": "losses of signal of the FC link",
    "prim_seq_protocol_err_count": "primitive sequence errors of the FC link",
    "invalid_tx_word_count": "invalid transmission words on the FC link",
    "invalid_crc_count": "frames with a wrong CRC on the FC link",
    "fcp_packet_aborts": "FCP commands that the FC port aborted",
    "iscsi_digest_err": "digests of the iSCSI session that did not fit",
    "iscsi_timeout_err": "timeouts of the iSCSI session",
    "iscsi_eh_abort_cnt": "commands that the iSCSI session aborted",
}
"""What each counter counts, in words."""


def hexadecimal(text: str) -> int | None:
    """A counter of the SCSI layer, which shows them as `0x1f`; None for what is no number."""
    try:
        return int(text, 0)
    except ValueError:
        return None


def error_files(machine: Machine, name: str) -> dict[str, list[str]]:
    """The files of the error counters of the drive with this kernel name, of a wide port's phys, of its FC port."""
    files = {}
    for counter in _SCSI:
        path = f"/sys/block/{name}/device/{counter}"
        if hexadecimal(machine.text(path)) is not None:
            files[counter] = [machine.path(path)]
    phys = read_phys(machine, name)
    for counter in _PHY:
        paths = [machine.path(f"{phy}/{counter}") for phy in phys if machine.number(f"{phy}/{counter}") is not None]
        if paths:
            files[counter] = paths
    for counter, path in statistics_files(machine, name, _FC).items():
        files[counter] = [machine.path(path)]
    return files


def read_error_counters(machine: Machine, name: str) -> dict[str, int]:
    """The counters of the drive with this kernel name, a wide port's added up; what is not kept is left out."""
    return {
        counter: sum(hexadecimal(Path(path).read_text(encoding="ascii").strip()) or 0 for path in paths)
        for counter, paths in error_files(machine, name).items()
    }


_CALLS = {"aarch64": 241, "armv7l": 364, "i686": 336, "ppc64le": 319, "riscv64": 241, "s390x": 331, "x86_64": 298}
"""The number of perf_event_open by machine (Linux: arch/*/syscalls)."""
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
_READ = struct.Struct("=QQQ")
_TOTAL_TIMES = 1 | 2
_CLOSE_ON_EXEC = 8
_ALL_TASKS = -1
_NO_COUNTER = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL)
_FORBIDDEN = (errno.EACCES, errno.EPERM)

Open = Callable[[int], int]
"""From a processor's number to the descriptor of its counter of cycles. Raises OSError."""


class CycleCounter:
    """Counts from now on. `reason` says why it does not; it is empty while it does."""

    def __init__(self, root: Path = Path("/"), open_counter: Open | None = None) -> None:
        self.reason = ""
        self._handles: list[int] = []
        try:
            opener = open_counter or _opener()
            for cpu in online(root):
                self._handles.append(opener(cpu))
        except OSError as problem:
            self._give_up(_why(problem, root))
        if not self._handles and not self.reason:
            self.reason = "the kernel does not say which processors it has"

    def read(self) -> int | None:
        """Cycles of all processors since the start; None when they are not counted, or were not all the time."""
        total = 0
        for handle in self._handles:
            try:
                data = os.read(handle, _READ.size)
            except OSError:
                data = b""
            if len(data) != _READ.size:
                self._give_up("a processor was switched off while its cycles were counted")
                return None
            count, enabled_ns, running_ns = _READ.unpack(data)
            if running_ns < enabled_ns:
                self._give_up("another program used the processors' counters at the same time")
                return None
            total += count
        return total if self._handles else None

    def close(self) -> None:
        for handle in self._handles:
            os.close(handle)
        self._handles = []

    def _give_up(self, reason: str) -> None:
        self.close()
        self.reason = reason


def online(root: Path = Path("/")) -> list[int]:
    """The numbers of the processors in use (`0-3,8`); none where the kernel does not say."""
    try:
        text = (root / "sys/devices/system/cpu/online").read_text(encoding="ascii").strip()
        ranges = [part.partition("-") for part in text.split(",") if part]
        return [cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)]
    except (OSError, ValueError):
        return []


def _opener() -> Open:
    """The system call of this machine. Raises OSError where none is known."""
    number = _CALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, "no such call is known")
    # a process of 32 bits has other numbers
    if ctypes.sizeof(ctypes.c_void_p) == 4 and platform.machine() == "x86_64":
        number = _CALLS["i686"]
    call = ctypes.CDLL(None, use_errno=True).syscall

    def opened(cpu: int) -> int:
        attributes = ctypes.create_string_buffer(
            _ATTRIBUTES.pack(0, _ATTRIBUTES.size, 0, 0, 0, _TOTAL_TIMES, 0, 0, 0, 0), _ATTRIBUTES.size
        )
        words = (ctypes.c_int(_ALL_TASKS), ctypes.c_int(cpu), ctypes.c_int(-1), ctypes.c_ulong(_CLOSE_ON_EXEC))
        handle = int(call(ctypes.c_long(number), attributes, *words))
        if handle < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return handle

    return opened


def _why(problem: OSError, root: Path) -> str:
    if problem.errno in _NO_COUNTER:
        return "its processors have no cycle counter that the kernel can use, which is usual for emulated processors"
    if problem.errno in _FORBIDDEN:
        try:
            level = (root / "proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii").strip()
        except OSError:
            level = "not readable"
        return f"the kernel does not allow it (kernel.perf_event_paranoid is {level})"
    if problem.errno == errno.ENOSYS:
        return "its kernel has no performance events"
    return f"the kernel opened no counter of cycles ({problem.strerror})"


CLASSES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
IDLE_CLASSES = ("idle", "iowait", "steal")
"""Classes of time in which this machine's processors did nothing; the first is never missing."""
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
"""A tick of this machine."""
_CPU = re.compile(r"cpu\d+\Z")
_KICK_AT_MOST = 256
_CLOCKS_AT_MOST = 64
_TICKS = tuple((name, f"stat_{name}_ticks") for name in CLASSES)


# named tuples: judging a run makes millions of both, and a data class takes four times as long
class DiskCounters(NamedTuple):
    """Completed I/Os, sectors of 512 bytes, and I/Os under way, of one block device since it appeared."""

    read_ios: int
    read_sectors: int
    write_ios: int
    write_sectors: int
    in_flight: int

    @property
    def ios(self) -> int:
        return self.read_ios + self.write_ios


_COUNTED = tuple(
    (name, DiskCounters._fields.index(name)) for name in ("read_sectors", "write_sectors", "read_ios", "write_ios")
)


class CounterSnapshot(NamedTuple):
    """All counters at one moment (`time_ns`, monotonic); None where the kernel has no such counter."""

    time_ns: int
    cpu_count: int
    ticks: Mapping[str, int]
    context_switches: int | None
    interrupts: int | None
    cpuidle_ns: int | None
    adapter_interrupts: int | None
    disks: Mapping[str, DiskCounters] = MappingProxyType({})
    thermal_throttles: int | None = None
    cpu_khz: int | None = None
    own_cpu_ns: int = 0
    members: Mapping[str, DiskCounters] = MappingProxyType({})
    """Drives behind the volumes among `disks`."""
    errors: Mapping[str, int] = MappingProxyType({})
    """Error counters of all disks and members together, by name; one that a disk of them lost is left out."""
    cycles: int | None = None
    """Cycles that all processors worked."""
    paths: Mapping[str, DiskCounters] = MappingProxyType({})
    """Paths to multipath devices among `disks`, each `DRIVE INITIATOR to TARGET`."""


def parse_proc_stat(text: str) -> tuple[int, dict[str, int], int | None, int | None]:
    """Processors, ticks by class, context switches and interrupts from `/proc/stat` (proc(5))."""
    cpus = 0
    ticks: dict[str, int] = {}
    context_switches = interrupts = None
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "cpu":
            ticks = {name: int(word) for name, word in zip(CLASSES, words[1:]) if is_whole(word)}
        elif _CPU.match(words[0]):
            cpus += 1
        elif words[0] == "ctxt" and len(words) > 1 and is_whole(words[1]):
            context_switches = int(words[1])
        elif words[0] == "intr" and len(words) > 1 and is_whole(words[1]):
            interrupts = int(words[1])
    return cpus, ticks, context_switches, interrupts


def parse_interrupts(text: str, vectors: Iterable[str]) -> int | None:
    """The count of `vectors` (numbers as text) over all processors, from `/proc/interrupts`; None without any."""
    counted = interrupts_by_cpu(text, vectors)
    return sum(sum(counts.values()) for counts in counted.values()) if counted else None


def interrupts_by_cpu(text: str, vectors: Iterable[str]) -> dict[str, dict[int, int]]:
    """The counts of those of `vectors` that `/proc/interrupts` has, by processor."""
    labels = set(vectors)
    lines = text.splitlines()
    head = lines[0].split() if lines else []
    cpus = [int(word[3:]) for word in head if word.startswith("CPU") and is_whole(word[3:])]
    by_vector: dict[str, dict[int, int]] = {}
    for line in lines[1:]:
        label, colon, counts = line.partition(":")
        if colon and label.strip() in labels:
            words = counts.split(None, len(cpus))[: len(cpus)]
            by_vector[label.strip()] = {cpu: int(word) for cpu, word in zip(cpus, words) if is_whole(word)}
    return by_vector


def parse_block_stat(text: str) -> DiskCounters | None:
    """The counters in `/sys/block/*/stat` (kernel Documentation/block/stat.rst); None when not understood."""
    words = text.split()
    if len(words) < 9 or not all(is_whole(word) for word in words[:9]):
        return None
    numbers = [int(word) for word in words[:9]]
    return DiskCounters(numbers[0], numbers[2], numbers[4], numbers[6], numbers[8])


def adapter_vectors(addresses: Iterable[str], root: Path = Path("/sys")) -> tuple[str, ...]:
    """The interrupt numbers of PCI functions: their MSI vectors, else their line (which others may share)."""
    vectors: list[str] = []
    for address in addresses:
        device = root / "bus" / "pci" / "devices" / address
        with suppress(OSError):
            vectors += sorted(entry.name for entry in (device / "msi_irqs").iterdir())
            continue
        with suppress(OSError):
            line = (device / "irq").read_text(encoding="ascii").strip()
            vectors += [line] if line not in ("", "0") else []
    return tuple(dict.fromkeys(vectors))


def differences(
    before: CounterSnapshot, after: CounterSnapshot, prefix: str = "", *, tick_ns: int = TICK_NS
) -> dict[str, int]:
    """What happened between two snapshots, as primitives whose names begin with `prefix`.

    `tick_ns` is the tick of the machine that they were read on.
    """
    delta: dict[str, int | None] = {
        "cpu_count": after.cpu_count if after.cpu_count == before.cpu_count else None,
        "wall_ns": after.time_ns - before.time_ns,
        "tick_ns": tick_ns,
        "cpuidle_ns": _less(after.cpuidle_ns, before.cpuidle_ns),
        "interrupts": _less(after.interrupts, before.interrupts),
        "adapter_interrupts": _less(after.adapter_interrupts, before.adapter_interrupts),
        "context_switches": _less(after.context_switches, before.context_switches),
        "cycles": _less(after.cycles, before.cycles),
        "own_cpu_ns": _less(after.own_cpu_ns, before.own_cpu_ns),
        "thermal_throttles": _less(after.thermal_throttles, before.thermal_throttles),
        "cpu_khz_before": before.cpu_khz,
        "cpu_khz_after": after.cpu_khz,
    }
    ticks, ticks_before = after.ticks, before.ticks
    for name, primitive in _TICKS:
        delta[primitive] = _less(ticks.get(name), ticks_before.get(name))
    delta.update(_summed("disk", before.disks, after.disks))
    delta.update(_summed("member", before.members, after.members))
    if not prefix:
        delta.update({f"error_{name}": _less(value, before.errors.get(name)) for name, value in after.errors.items()})
    return {prefix + name: value for name, value in delta.items() if value is not None}


def _summed(
    what: str, before: Mapping[str, DiskCounters], after: Mapping[str, DiskCounters]
) -> dict[str, int | None]:
    """Sectors and I/Os of some disks together; nothing where there are none, or not the same ones."""
    if not before or before.keys() != after.keys():
        return {}
    changed = [tuple(map(sub, now, before[disk])) for disk, now in after.items()]
    sums: dict[str, int | None] = {}
    for name, at in _COUNTED:
        parts = [change[at] for change in changed]
        sums[f"{what}_{name}"] = None if min(parts) < 0 else sum(parts)
    return sums


def path_counts(before: CounterSnapshot | None, after: CounterSnapshot | None) -> dict[str, dict[str, int]]:
    """I/Os and bytes of each path by its ends, those of all drives together; none where paths came or went."""
    if before is None or after is None or not before.paths or before.paths.keys() != after.paths.keys():
        return {}
    counts: dict[str, Counter[str]] = {"path_ios": Counter(), "path_bytes": Counter()}
    for name, now in after.paths.items():
        change, ends = DiskCounters(*map(sub, now, before.paths[name])), name.partition(" ")[2]
        counts["path_ios"][ends] += change.ios
        counts["path_bytes"][ends] += 512 * (change.read_sectors + change.write_sectors)
    backwards = any(number < 0 for each in counts.values() for number in each.values())
    return {} if backwards else {name: dict(each) for name, each in counts.items()}


def idle_window(before: CounterSnapshot, after: CounterSnapshot, *, tick_ns: int = TICK_NS) -> dict[str, int]:
    """What the idle bench does by itself, as `idle_*` primitives."""
    constant = ("idle_cpu_count", "idle_tick_ns", "idle_cpu_khz_before", "idle_cpu_khz_after")
    delta = differences(before, after, "idle_", tick_ns=tick_ns)
    return {name: value for name, value in delta.items() if name not in constant}


def _less(after: int | None, before: int | None) -> int | None:
    """A difference; None when a counter is missing or went backwards."""
    if after is None or before is None or after < before:
        return None
    return after - before


def ticks_are_measured(kernel: str, root: Path = Path("/")) -> bool | None:
    """Whether this kernel measures user and system time instead of sampling it; None when nobody can tell.

    Reads `/boot/config-<kernel>` for CONFIG_VIRT_CPU_ACCOUNTING_GEN or CONFIG_IRQ_TIME_ACCOUNTING.
    """
    with suppress(OSError):
        text = (root / "boot" / f"config-{kernel}").read_text(encoding="utf-8", errors="replace")
        return bool(re.search(r"^CONFIG_(VIRT_CPU_ACCOUNTING_GEN|IRQ_TIME_ACCOUNTING)=y$", text, re.MULTILINE))
    return None


class Meter:
    """Reads snapshots. Files are opened once and read again in place: looking up paths is most of what reading costs.

    `aim` says whose disks and interrupts the next snapshots hold.
    """

    def __init__(self, root: Path = Path("/"), cycles: CycleCounter | None = None) -> None:
        self._cycles = cycles
        self._handles: dict[str, int] = {}
        self._vectors: tuple[str, ...] = ()
        self._disks: dict[str, list[str]] = {}
        self._members: dict[str, list[str]] = {}
        self._paths: dict[str, list[str]] = {}
        self._errors: dict[str, list[str]] = {}
        self._error_files: dict[str, Mapping[str, Sequence[str]]] = {}
        self._machine = Machine(str(root))
        self._stat = str(root / "proc/stat")
        self._interrupts = str(root / "proc/interrupts")
        cpus = root / "sys/devices/system/cpu"
        self._idle = sorted(map(str, cpus.glob("cpu[0-9]*/cpuidle/state[0-9]*/time")))
        # x86 counts here how often a processor slowed down because it was hot
        self._hot = sorted(map(str, cpus.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")))
        self._clocks = sorted(map(str, cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")))[:_CLOCKS_AT_MOST]

    def aim(
        self, disks: Mapping[str, Path], vectors: Sequence[str], members: Mapping[str, Path] | None = None
    ) -> None:
        """Look at `disks` and `members` (id to the folder of a block device in sysfs), and at interrupt numbers."""
        self._disks = {name: self._stats_of(folder) for name, folder in disks.items()}
        self._members = {name: self._stats_of(folder) for name, folder in (members or {}).items()}
        self._paths = {
            f"{name} {ends}": [self._machine.path(f"/sys/block/{disk}/stat")]
            for name, folder in disks.items()
            for ends, disk in path_disks(self._machine, folder.name).items()
        }
        self._errors = {}
        for folder in {**disks, **(members or {})}.values():
            for counter, files in self._files_of(folder.name).items():
                known = self._errors.setdefault(counter, [])
                # drives behind one FC port share its counters
                known += [file for file in files if file not in known]
        self._vectors = tuple(vectors)

    def _stats_of(self, folder: Path) -> list[str]:
        """What counts a drive's I/Os: itself, or (an NVMe drive with multipath, before Linux 6.4) its paths alone."""
        hidden = hidden_paths(self._machine, folder.name)
        return [str(folder / "stat"), *(self._machine.path(f"/sys/block/{path}/stat") for path in hidden)]

    def _files_of(self, disk: str) -> Mapping[str, Sequence[str]]:
        if disk not in self._error_files:
            self._error_files[disk] = error_files(self._machine, disk)
        return self._error_files[disk]

    def close(self) -> None:
        for handle in self._handles.values():
            os.close(handle)
        self._handles.clear()

    def snapshot(self) -> CounterSnapshot:
        """All counters now. Raises nothing: what cannot be read is None, a disk that is gone is left out."""
        self._wake_idle_processors()
        now = time.monotonic_ns()
        cpus, ticks, context_switches, interrupts = parse_proc_stat(self._read(self._stat))
        idle = self._numbers(self._idle)
        hot = self._numbers(self._hot)
        clocks = self._numbers(self._clocks)
        vectors = parse_interrupts(self._read(self._interrupts), self._vectors) if self._vectors else None
        return CounterSnapshot(
            time_ns=now,
            cpu_count=cpus,
            ticks=ticks,
            context_switches=context_switches,
            interrupts=interrupts,
            cpuidle_ns=sum(idle) * 1000 if idle else None,
            adapter_interrupts=vectors,
            disks=self.disks(),
            own_cpu_ns=time.process_time_ns(),
            members=self._counted(self._members),
            errors=self._counted_errors(),
            thermal_throttles=sum(hot) if hot else None,
            cpu_khz=sum(clocks) // len(clocks) if clocks else None,
            cycles=None if self._cycles is None else self._cycles.read(),
            paths=self._counted(self._paths),
        )

    def _counted_errors(self) -> dict[str, int]:
        """Each error counter over all disks; one of which a file cannot be read is left out."""
        counts = {}
        for counter, paths in self._errors.items():
            values = [hexadecimal(self._read(path).strip()) for path in paths]
            if None not in values:
                counts[counter] = sum(value for value in values if value is not None)
        return counts

    def _numbers(self, paths: Sequence[str]) -> list[int]:
        """One number of each file; none of them when any is unreadable."""
        texts = [self._read(path).strip() for path in paths]
        return [int(text) for text in texts] if all(is_whole(text) for text in texts) else []

    def disks(self) -> dict[str, DiskCounters]:
        return self._counted(self._disks)

    def _counted(self, stats: Mapping[str, Sequence[str]]) -> dict[str, DiskCounters]:
        disks = {}
        for name, files in stats.items():
            own, *paths = (parse_block_stat(self._read(file)) for file in files)
            # what a path counted that is gone is in no other's number
            if own is not None and (own.ios or None not in paths):
                disks[name] = DiskCounters(*(max(count, sum(of)) for count, *of in zip(own, *filter(None, paths))))
        return disks

    def _wake_idle_processors(self) -> None:
        """Visit each processor once: the time of a sleep that is not over yet is in no residency counter.

        Without this a window over an idle machine is wrong by the length of those sleeps, in both directions.
        """
        if not self._idle:
            return
        with suppress(OSError):
            allowed = os.sched_getaffinity(0)
            if len(allowed) > _KICK_AT_MOST:
                return
            try:
                for cpu in allowed:
                    os.sched_setaffinity(0, {cpu})
            finally:
                os.sched_setaffinity(0, allowed)

    def _read(self, path: str) -> str:
        """A whole small file, from its start; empty when it cannot be read."""
        try:
            handle = self._handles.get(path)
            if handle is None:
                handle = self._handles[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            chunks: list[bytes] = []
            offset = 0
            while True:
                chunk = os.pread(handle, 65536, offset)
                if not chunk:
                    return b"".join(chunks).decode("ascii", "replace")
                chunks.append(chunk)
                offset += len(chunk)
        except OSError:
            return ""


Window = Tuple[CounterSnapshot, CounterSnapshot]
MOST_WINDOWS = 5
QUIET = 0.15
"""Share of the processors' time that an idle bench may use without being looked at again."""


def watch_idle(read: Callable[[], CounterSnapshot], wait: Callable[[float], None], seconds: float) -> Window:
    """The quietest of at most `MOST_WINDOWS` windows of so many seconds; the first that is `QUIET` ends the search.

    As long again passes first: the start of the batch (a login, Python's own start) is not the idle bench. What a
    boot or a timer still does may fill a whole window too, and would be subtracted from every launch.
    """
    wait(seconds)
    windows: list[Window] = []
    while len(windows) < MOST_WINDOWS:
        before = read()
        wait(seconds)
        windows.append((before, read()))
        share = busy_share(windows[-1])
        if share is None or share <= QUIET:
            return windows[-1]
    return min(windows, key=lambda window: busy_share(window) or 0.0)


def busy_share(window: Window) -> float | None:
    """Share of the processors' time that was used, 0 to 1; None where the kernel counts no idle time."""
    delta = differences(*window)
    total = delta["wall_ns"] * delta.get("cpu_count", 0)
    if total <= 0:
        return None
    if "cpuidle_ns" in delta:
        return 1.0 - delta["cpuidle_ns"] / total
    ticks = [delta.get(f"stat_{name}_ticks") for name in IDLE_CLASSES]
    if ticks[0] is None:
        return None
    return 1.0 - sum(tick or 0 for tick in ticks) * delta["tick_ns"] / total
