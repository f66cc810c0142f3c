# SPDX-License-Identifier: Apache-2.0
"""What was covered and written, accepted failures, what was done to drives before, and what counters counted."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storqual.base.figures import DASH, NONE, ShownNumber, count, percent, quantity, seconds
from storqual.base.table import LinkedCell, Table
from storqual.metrics.rates import MB, TB
from storqual.report.criterion import JudgedCriterion, adapter_name
from storqual.report.material import ARMS, Material
from storqual.report.view import KeyValue
from storqual.run import planned_session
from storqual.run.measurements import PATH_COUNTS
from storqual.statistics.counts import most_events
from storqual_core.host.counters import ERROR_WORDS
from storqual_core.host.kernel_log import UNCLASSIFIED


@dataclass(frozen=True)
class SkippedRow:
    """A planned point that was not measured; without a reason it is a hole."""

    where: str
    reason: str
    hole: bool


@dataclass(frozen=True)
class CoverageLedger:
    """The ledger: planned x measured x skipped, in total, per adapter, and what is missing."""

    table: Table
    skipped: tuple[SkippedRow, ...]


@dataclass(frozen=True)
class Guard:
    """What was written, where; `applies` is false for files on this machine."""

    applies: bool
    sectors: ShownNumber
    disks: Table


def coverage_of(material: Material) -> CoverageLedger:
    benches = list(material.run.benches)
    covered = material.verdict.get("coverage") or {}
    missing = {
        (str(entry["bench"]), str(entry["adapter"]), str(entry["point"])): str(entry.get("reason") or "")
        for entry in covered.get("skipped") or ()
    }
    counted: dict[tuple[str, str], Counter[str]] = {}
    for key, data in material.points.items():
        group = counted.setdefault((adapter_name(benches, *key[:2]), data.planned.workload), Counter())
        reason = missing.get(key)
        state = "measured" if reason is None else "skipped" if reason else "hole"
        group.update({"planned": 1, state: 1, "launches": sum(map(len, data.launches.values()))})
    rows: list[tuple[ShownNumber | str, ...]] = []
    for (adapter, workload), group in counted.items():
        where = f"count:coverage:{adapter}:{workload}"
        numbers = (group[state] for state in ("planned", "measured", "skipped", "hole", "launches"))
        rows.append((f"{adapter} {workload}", *(count(number, f"{where}:{at}") for at, number in enumerate(numbers))))
    heads = ("Adapter and workload", "Planned", "Measured", "Skipped", "Unexplained", "Launches")
    skipped = tuple(
        SkippedRow(
            f"{adapter_name(benches, key[0], key[1])} {key[2]}".strip(),
            reason or "no reason was recorded",
            not reason,
        )
        for key, reason in missing.items()
    )
    return CoverageLedger(
        Table("Coverage ledger", heads, tuple(rows)), tuple(sorted(skipped, key=lambda row: not row.hole))
    )


def guard_of(material: Material) -> Guard:
    """The guard's last layer: sectors written to every disk, and how many of them nobody allowed."""
    guard = material.document.get("guard") or {}
    applies = bool(guard.get("applies", True))
    value = material.verdict.get("sectors_written_outside_claims")
    disks = [disk for disk in guard.get("disks") or () if isinstance(disk, dict)]
    rows: list[tuple[ShownNumber | str, ...]] = []
    for number, disk in enumerate(disks):
        written = disk.get("sectors_written")
        shown = count(written, f"run:/guard/disks/{number}/sectors_written") if isinstance(written, int) else NONE
        wwn = str(disk.get("wwn") or DASH)
        rows.append((str(disk.get("disk") or DASH), str(disk.get("bench") or ""), wwn, _role(disk), shown))
    heads = ("Disk", "Bench", "WWN", "Role", "Sectors written")
    return Guard(
        applies=applies,
        sectors=count(value if isinstance(value, int) else None, "verdict:/sectors_written_outside_claims"),
        disks=Table("Disks of the bench", heads, tuple(rows)),
    )


def waivers_of(rows: Sequence[JudgedCriterion]) -> Table:
    lines = []
    for row in rows:
        waiver = row.fields.get("waiver")
        if isinstance(waiver, dict):
            texts = [str(waiver.get(name) or DASH) for name in ("owner", "reason", "reference", "expiry")]
            name = " ".join(filter(None, (row.text(part) for part in ("id", "adapter", "point"))))
            lines.append((LinkedCell(name, f"#{row.ident}"), *texts))
    heads = ("Criterion", "Owner", "Reason", "Reference", "Expires")
    return Table("Accepted failures (waivers)", heads, tuple(lines))


_HEADS = ("Stage", "Result", "Rounds", "Drift", "from", "to", "SNIA range", "SNIA excursion")
_NOTHING = (DASH,) * 6

Row = tuple[ShownNumber | str, ...]


def preconditioning_of(material: Material, bench: str) -> Table:
    """The table of a bench; without rows where nothing was done."""
    rows: list[Row] = []
    for at, entry in enumerate(material.document.get("preconditioned") or ()):
        if entry["bench"] == bench:
            rows += _rows(entry["report"], f"run:/preconditioned/{at}/report")
    return Table("Drives before the first launch", _HEADS, tuple(rows))


def _rows(report: dict[str, Any], source: str) -> Iterator[Row]:
    for drive, done in (report.get("purge") or {}).items():
        yield (f"Purge of {drive}", str(done), *_NOTHING)
    for drive in report.get("as_found") or ():
        yield (f"{drive}, no flash", "measured as it was found: SNIA's PTS is for flash", *_NOTHING)
    fill = report.get("fill")
    if fill:
        yield ("Fill", seconds(fill["seconds"], f"{source}/fill/seconds"), *_NOTHING)
    steady = report.get("steady")
    if steady:
        at = f"{source}/steady"
        drift = steady.get("drift") or (None, None, None)
        snia = steady.get("snia") or {}
        yield (
            "Steady state",
            "steady" if steady.get("steady") else "not steady",
            count(steady["rounds"], f"{at}/rounds"),
            *(_share(value, f"{at}/drift/{drive}") for drive, value in enumerate(drift)),
            *(_share(snia.get(name), f"{at}/snia/{name}") for name in ("range", "excursion")),
        )


def _share(value: float | None, source: str) -> ShownNumber:
    return percent(None if value is None else 100 * value, source)


@dataclass(frozen=True)
class ErrorCounters:
    """Error counters that moved; `watched` is how many drives have any, None where none were recorded.

    `per_tb` are all of them by what was moved, `silent` what drives do not answer about themselves.
    """

    watched: ShownNumber | None
    table: Table
    per_tb: Table
    silent: tuple[KeyValue, ...]


_NODE = re.compile(r"(?:^smartctl: (?=smartctl:))| of /dev/[^\s:;]+|/dev/[^\s:;]+")
_BOTH = "both"


def error_counters_of(material: Material) -> ErrorCounters:
    """A row for every counter that moved; sessions that measured both arms have a column of their own."""
    arms = _session_arms(material)
    sums: dict[tuple[str, str, str, str], Counter[str]] = {}
    watched: set[tuple[str, str]] = set()
    used: set[str] = set()
    for bench, name, arm, disk in _batch_disks(material, arms):
        if disk.get("errors"):
            watched.add((bench, name))
            used.add(arm)
        for counter, number in (disk.get("errors") or {}).items():
            if number:
                sums.setdefault((bench, name, _role(disk), str(counter)), Counter())[arm] += int(number)
    columns = [arm for arm in (*ARMS, _BOTH) if arm in used]
    rows: list[tuple[ShownNumber | str, ...]] = [
        (
            name,
            bench,
            role,
            ERROR_WORDS.get(counter, counter),
            *(count(sums_by_arm[arm], f"count:errors:{bench}:{name}:{counter}:{arm}") for arm in columns),
        )
        for (bench, name, role, counter), sums_by_arm in sums.items()
    ]
    heads = ("Drive", "Bench", "Role", "Counted", *(_heading(arm) for arm in columns))
    return ErrorCounters(
        watched=count(len(watched), "count:errors:watched") if watched else None,
        table=Table("Error counters that moved while batches ran", heads, tuple(rows)),
        per_tb=_per_tb(material, arms),
        silent=tuple(_silent(material)),
    )


def paths_of(material: Material) -> tuple[Table, Table]:
    """What each path to a LUN carried at each point, and each port that paths begin or end at; by arm."""
    paths: list[tuple[ShownNumber | str, ...]] = []
    ports: list[tuple[ShownNumber | str, ...]] = []
    for key, data in material.points.items():
        where = f"{adapter_name(list(material.run.benches), *key[:2])}: {key[2]}"
        for arm in (each for each in ARMS if data.paths.get(each)):
            counts, at = data.paths[arm], f"samples:paths:{'/'.join(key)}:{arm}"
            seconds_of, listed = counts["", "ns"] / 1e9, list(dict.fromkeys(ends for ends, _ in counts if ends))
            sides = [{ends: [ends] for ends in listed}, {}, {}]
            for ends in listed:
                for side, port in zip(sides[1:], ends.partition(" to ")[::2], strict=True):
                    side.setdefault(port, []).append(ends)
            for number, side in enumerate(sides):
                rows = paths if number == 0 else ports
                for name, through in side.items() if seconds_of and len(side) > 1 else ():
                    ios, moved = (sum(counts[ends, what] for ends in through) for what in PATH_COUNTS)
                    every = sum(counts[ends, PATH_COUNTS[0]] for ends in listed)
                    rate = quantity(ios / seconds_of, "IOPS", f"{at}:{name}:iops")
                    mb_s = quantity(moved / MB / seconds_of, "MB/s", f"{at}:{name}:mb_s")
                    share = percent(100 * ios / every if every else None, f"{at}:{name}:share", signed=False)
                    rows.append((where, arm.capitalize(), name, rate, mb_s, share))
    heads = ("Point", "Arm", "Path", "IOPS", "Throughput", "Share of I/Os")
    return Table("Paths", heads, tuple(paths)), Table(
        "Ports of paths", (*heads[:2], "Port", *heads[3:]), tuple(ports)
    )


def _batch_disks(
    material: Material, arms: Mapping[tuple[str, str], str]
) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """The disks of each batch: bench, name, the arm that was measured, and what was counted."""
    for event in material.run.events_of("block_finished"):
        bench = str(event.bench or "")
        arm = arms.get((bench, planned_session(event.text("session"))), _BOTH)
        for node, disk in ((event.fields.get("end") or {}).get("disks") or {}).items():
            yield bench, str(disk.get("id") or disk.get("wwn") or node), arm, disk


def _role(disk: Mapping[str, Any]) -> str:
    return "claimed" if disk.get("claimed") else "system" if disk.get("system") else "unclaimed"


def _session_arms(material: Material) -> dict[tuple[str, str], str]:
    return {
        (session.bench, session.id): session.arms[0] if len(session.arms) == 1 else _BOTH
        for session in material.run.plan.sessions
    }


_NUMBERS = re.compile(r"\b(?:0x)?[0-9a-f]*[0-9][0-9a-f]*\b", re.IGNORECASE)


def unclassified_of(material: Material) -> Table:
    measured = {
        launch.id: arm for data in material.points.values() for arm in data.launches for launch in data.launches[arm]
    }
    sessions = _session_arms(material)
    lines: dict[str, str] = {}
    sums: dict[str, Counter[str]] = {}
    for event in material.run.events_of("block_finished"):
        session = (str(event.bench or ""), planned_session(event.text("session")))
        for finding in event.fields.get("findings") or ():
            if isinstance(finding, dict) and finding.get("kind") == UNCLASSIFIED:
                launch = f"{event.text('block')}/{finding.get('launch')}"
                line = str(finding.get("line") or "")
                same = _NUMBERS.sub("#", line)
                lines.setdefault(same, line)
                arm = measured.get(launch, sessions.get(session, _BOTH))
                sums.setdefault(same, Counter())[arm] += int(finding.get("count") or 1)
    columns = [arm for arm in (*ARMS, _BOTH) if arm in ARMS or any(by_arm[arm] for by_arm in sums.values())]
    rows = tuple(
        (line, *(count(sums[same][arm], f"count:log:{number}:{arm}") for arm in columns))
        for number, (same, line) in enumerate(lines.items())
    )
    heads = ("First line", *(_heading(arm) for arm in columns))
    return Table("Kernel log lines of storage drivers that no rule knows", heads, rows)


def _heading(arm: str) -> str:
    return "Both arms in turn" if arm == _BOTH else arm.capitalize()


Counted = dict[tuple[str, str], tuple[int, set[tuple[str, str]]]]
"""By counter and arm: how often it counted, and the drives (bench, drive) that keep it."""
_LOGGED = ("error", "defect", "invalid_dword", "loss_of_dword", "phy_reset", "disparity", "attribute.")
_MOVED = "throughput_mb_s"


def _per_tb(material: Material, arms: Mapping[tuple[str, str], str]) -> Table:
    """Each error counter with the drives that keep it, how often it counted, and what that excludes."""
    moved = _bytes_moved(material, arms)
    rows: list[tuple[ShownNumber | str, ...]] = []
    for (counter, arm), (counted, drives) in sorted({**_of_batches(material, arms), **_of_logs(material)}.items()):
        amount = sum(
            value for (bench, drive, of), value in moved.items() if (bench, drive) in drives and arm in (of, _ALL)
        )
        if not amount:
            continue
        at = f"count:per-tb:{counter}:{arm}"
        terabytes = amount / TB
        rows.append(
            (
                ERROR_WORDS.get(counter, counter.replace("_", " ")),
                _ARMS.get(arm, arm.capitalize()),
                count(len(drives), f"{at}:drives"),
                count(counted, f"{at}:counted"),
                quantity(terabytes, "", f"{at}:tb"),
                quantity(counted / terabytes, "", f"{at}:rate"),
                quantity(most_events(counted, 0.05) / terabytes, "", f"{at}:most"),
            )
        )
    heads = ("Counted", "While", "Drives", "Errors", "TB moved", "Errors per TB", "At most, at 95 %")
    return Table("Errors per TB moved", heads, tuple(rows))


_ALL = "all"
_ARMS = {_BOTH: "Both arms in turn", _ALL: "The whole campaign"}


def _of_batches(material: Material, arms: Mapping[tuple[str, str], str]) -> Counted:
    """What the kernel counted of claimed drives and their links while batches ran."""
    counted: Counted = {}
    for bench, name, arm, disk in _batch_disks(material, arms):
        for counter, grown in (disk.get("errors") or {}).items() if disk.get("claimed") else ():
            before, drives = counted.get((counter, arm), (0, set()))
            counted[counter, arm] = (before + int(grown), drives | {(bench, name)})
    return counted


def _of_logs(material: Material) -> Counted:
    """What drives counted themselves between the first look and the last; a counter that went back says nothing."""
    looks: defaultdict[tuple[str, str], list[Mapping[str, int]]] = defaultdict(list)
    for event in material.run.events_of("environment"):
        for drive, log in (event.fields.get("logs") or {}).items():
            looks[str(event.bench or ""), drive].append(log.get("counters") or {})
    counted: Counted = {}
    for drive, readings in looks.items():
        first, last = readings[0], readings[-1]
        for counter in first if len(readings) > 1 else ():
            if any(word in counter for word in _LOGGED) and last.get(counter, -1) >= first[counter]:
                before, drives = counted.get((counter, _ALL), (0, set()))
                counted[counter, _ALL] = (before + last[counter] - first[counter], drives | {drive})
    return counted


def _bytes_moved(material: Material, arms: Mapping[tuple[str, str], str]) -> dict[tuple[str, str, str], float]:
    """Bytes that launches moved, by bench, drive and arm; a launch's are spread evenly over its drives."""
    moved: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for data in material.points.values():
        for launch in data.every():
            rate = launch.number(_MOVED)
            arm = arms.get((launch.bench, planned_session(launch.session)), _BOTH)
            for drive in data.planned.drives if rate else ():
                share = (rate or 0.0) * 1e6 * launch.runtime_s / len(data.planned.drives)
                moved[launch.bench, drive, arm] += share
    return dict(moved)


def _silent(material: Material) -> Iterator[KeyValue]:
    """What drives did not answer about themselves, and tools that a bench does not have: one line each."""
    drives_by_sentence: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for event in material.run.events_of("environment"):
        for drive, log in (event.fields.get("logs") or {}).items():
            for tool in log.get("missing") or ():
                drives_by_sentence[f"{tool} is not installed on {event.bench}"].setdefault(drive)
            for sentence in log.get("unread") or ():
                drives_by_sentence[_without_node(sentence)].setdefault(drive)
            if not any(log.get(name) for name in ("counters", "unread", "missing")):
                drives_by_sentence["responds, but reports no counter"].setdefault(drive)
    yield from (KeyValue(sentence, tuple(drives)) for sentence, drives in drives_by_sentence.items())


def _without_node(sentence: str) -> str:
    """A sentence without the kernel's name of the drive, so that drives which answer alike are told together."""
    return _NODE.sub("", sentence.partition("; command:")[0]).replace("  ", " ").strip()
