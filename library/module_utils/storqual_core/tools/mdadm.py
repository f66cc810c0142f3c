# SPDX-License-Identifier: Apache-2.0
"""mdadm: Linux software RAID. Its volumes are md arrays, its positions are device nodes, it has one index, `md`.

The kernel's drivers/md/md.c prints it; sizes are KiB. How many members there should be and are stands in brackets
(`[3/2] [UU_]`), once as numbers and once as letters.

`--detail` is read as text: `--export` leaves out chunk size, state and progress. Sizes there are KiB. An array is
made with metadata 1.2, whose superblock lies 4 KiB behind the start of each member, and with a UUID that the caller
chose, so that what an interrupted run made is known again.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError, refuse_for
from ..kit.labelled_text import Fields, size_range, whole_number
from ..kit.quantities import parse_size
from .capabilities import DELAYED_TASK, AdapterFacts, ToolFacts, Value, VolumeFacts, VolumeRequest, all_but_odd

_FILE = "/proc/mdstat"
_FIRST = re.compile(r"^Personalities\s*:", re.MULTILINE)
_PERSONALITIES = re.compile(r"^(?:\s+\[[a-z0-9]+\])+\s*$")
_LAST = re.compile(r"^unused devices\s*:", re.MULTILINE)
_ARRAY = re.compile(r"^(?P<name>md[\w./-]*)\b(?: : (?P<rest>\S.*)$)?")
_RUN_STATES = ("active", "inactive", "broken")
_MEMBER = re.compile(r"^(?P<name>[^\s\[\]]+)\[(?P<number>[0-9]{1,9})\](?P<flags>(?:\([A-Z]\))*)$")
_REMARK = re.compile(r"^\([a-z-]+\)$")
_BLOCKS = re.compile(r"^\s+(?P<kib>[0-9]{1,19}) blocks\b(?P<rest>.*)$")
_CHUNK = re.compile(r"\b(?P<size>[0-9]{1,15}k) (?:chunks?|rounding)\b", re.IGNORECASE)
_COUNTS = re.compile(r"\[(?P<wanted>[0-9]{1,9})/(?P<there>[0-9]{1,9})\]\s+\[(?P<letters>[A-Z_]+)\]")
# failed, spare, journal, only written, to take a member's place; a NAS's own kernel has others, for drives in error
_FLAGS = {"", "F", "S", "J", "W", "R"}
# the array of metadata that hardware made: it holds arrays, and is never started itself
_CONTAINER = re.compile(r"\bsuper external:(?![/-])")
# the rest of a line that was wrapped: devices below the first line, counts below that of the size
_DEVICES = re.compile(r"^(?:\s+[^\s\[\]]+\[[0-9]{1,9}\](?:\([A-Z]\))*)+\s*$")
_BEGINS = re.compile(
    r"^\s+(?:[0-9]{1,19} blocks\b|bitmap:|\[[=>.]*\]|[a-z]+\s*=|resync|recovery|reshape|check|repair)"
)
_TASK = re.compile(
    r"\b(?P<task>resync|recovery|reshape|check|repair)\s*=\s*(?:(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,9})?)%|(?P<word>[A-Z]+))"
)
# the kernel calls whatever waits for another array a resync
_DELAYED = "DELAYED"
_KERNEL_TASKS = {
    "resync": "initialise",
    "recovery": "rebuild",
    "reshape": "reshape",
    **dict.fromkeys(("check", "repair"), "check"),
}


def parse_arrays(text: str) -> tuple[VolumeFacts, ...]:
    """The arrays of /proc/mdstat, none where there is none.

    An array of which a line is not understood, or whose counts do not agree, is told as unread. Raises ToolError when
    it is no such text or not all of it, for a line that belongs to no array, and when every array is unread.
    """
    begin = _FIRST.search(text)
    if begin is None or _LAST.search(text) is None:
        raise ToolError(f"{_FILE} does not begin with personalities or does not end with unused devices")
    arrays: list[list[str]] = []
    for line in text[begin.start() :].splitlines():
        if _ARRAY.match(line):
            arrays.append([line])
        elif line[:1].isspace() and line.strip() and not arrays:
            if not _PERSONALITIES.match(line):
                raise ToolError(f"{_FILE} has a line that belongs to no array: {line.strip()[:100]!r}")
        elif line[:1].isspace() and line.strip():
            wrapped = _DEVICES.match(line) if len(arrays[-1]) == 1 else not _BEGINS.match(line)
            if wrapped:
                arrays[-1][-1] += f" {line.strip()}"
            else:
                arrays[-1].append(line)
        elif line.strip() and not _FIRST.match(line) and not _LAST.match(line):
            # it may be an array that is called otherwise
            arrays.append([line])
    return all_but_odd([_read_array(lines) for lines in arrays])


def _read_array(lines: Sequence[str]) -> VolumeFacts:
    """An array of its lines, those that were wrapped as one."""
    name, rest = re.split(r"\s", lines[0], maxsplit=1)[0], lines[0].partition(" : ")[2]
    try:
        volume = _array(name if rest else lines[0].strip(), rest.split() if _ARRAY.match(lines[0]) else ())
        for line in lines[1:]:
            volume = _more(volume, line)
        return _checked(volume)
    except ToolError as problem:
        node = f"/dev/{name}"
        return VolumeFacts(
            node, state=rest.partition(" ")[0], device=node, settings={"line": lines[0][:300]}, unread=str(problem)
        )


def _array(name: str, words: Sequence[str]) -> VolumeFacts:
    """The first line of an array: state, remarks in brackets, level (none when it is not running), devices."""
    if not words:
        raise ToolError(f"{_FILE} has a line that is not understood: {name[:100]!r}")
    state, *rest = words
    known = state in _RUN_STATES
    remarks = [word.strip("()") for word in rest if _REMARK.match(word)]
    rest = [word for word in rest if not _REMARK.match(word)]
    level = rest.pop(0) if rest and not _MEMBER.match(rest[0]) else ""
    members: dict[str, list[tuple[int, str]]] = {"": [], "S": [], "F": [], "J": []}
    odd: dict[str, str] = {}
    for word in rest:
        match = _MEMBER.match(word)
        if match is None:
            raise ToolError(f"{_FILE} lists the device {word[:60]!r} of {name}, which is not understood")
        flags = match.group("flags")
        # a journal is no member, and what is to take a member's place (R) is none yet
        spare = "(R)" in flags or ("(S)" in flags and state != "inactive")
        kind = "F" if "(F)" in flags else "J" if "(J)" in flags else "S" if spare else ""
        path = f"/dev/{match.group('name').replace('!', '/')}"
        members[kind].append((int(match.group("number")), path))
        if not set(re.split(r"[()]+", flags)) <= _FLAGS:
            odd[f"Device {path}"] = flags
    if len({path for kind in members.values() for _, path in kind}) != sum(map(len, members.values())):
        raise ToolError(f"{_FILE} lists a device of {name} twice: {' '.join(rest)[:200]}")
    placed, spares, failed, journals = (
        tuple(path for _, path in sorted(members[kind])) for kind in ("", "S", "F", "J")
    )
    return VolumeFacts(
        f"/dev/{name}",
        level=level.replace("raid", ""),
        state=", ".join([state, *remarks]),
        members=placed,
        spares=spares,
        failed=failed,
        device=f"/dev/{name}",
        # of a state that nobody knew nothing is known
        healthy=state == "active" and not failed and not odd if known else None,
        settings={**odd, **({"journal": " ".join(journals)} if journals else {})},
    )


def _more(volume: VolumeFacts, line: str) -> VolumeFacts:
    """A further line of an array: size and counts, a task, or something that is kept."""
    blocks, task, chunk = _BLOCKS.match(line), _TASK.search(line), _CHUNK.search(line)
    counts = _COUNTS.search(line)
    number = sum(name.startswith("line ") for name in volume.settings) + 1
    settings = {**volume.settings, f"line {number}": line.strip()}
    if counts is not None:
        settings["members"] = " ".join(counts.groups())
    volume = replace(volume, settings=settings, healthy=None if _CONTAINER.search(line) else volume.healthy)
    if blocks is not None:
        strip = parse_size(chunk.group("size")) if chunk else None
        volume = replace(volume, size=int(blocks.group("kib")) * 1024, strip=strip)
    if task is not None:
        name = DELAYED_TASK if task.group("word") == _DELAYED else _KERNEL_TASKS[task.group("task")]
        volume = replace(volume, progress={**volume.progress, name: float(task.group("percent") or 0.0)})
    return volume


def _checked(volume: VolumeFacts) -> VolumeFacts:
    """An array with its health. Raises ToolError when numbers and letters, or they and the devices, do not agree."""
    counts = volume.settings.get("members", "").split()
    # the kernel counts them of every level with redundancy
    if not counts and volume.healthy and volume.level.isdigit() and volume.level != _NO_REDUNDANCY:
        raise ToolError(f"{_FILE} does not tell how many members of {volume.id} are there")
    if not counts:
        return volume
    wanted, there, letters = int(counts[0]), int(counts[1]), counts[2]
    if len(letters) != wanted or wanted - letters.count("_") != there or len(volume.members) < there:
        raise ToolError(
            f"{_FILE} reports {volume.id} that {there} of {wanted} members are there ([{letters}]), and lists "
            f"{len(volume.members)}"
        )
    states = [volume.state] if wanted == there else [volume.state, "degraded"]
    # a member that failed may have been replaced already
    sound = volume.state.startswith("active") and letters == "U" * wanted
    known = volume.state.split(", ", maxsplit=1)[0] in _RUN_STATES
    return replace(volume, state=", ".join(states), healthy=sound if known or wanted != there else None)


PROGRAMS = ("mdadm",)
INDEX = "md"
"""The one index: the kernel's md driver."""

_TIMEOUT = 60.0
_MAKE_TIMEOUT = 600.0
_KEY = re.compile(r"\A\s*([A-Za-z][A-Za-z /-]*?) +: ?(.*)\Z")
_IN_BRACKETS = re.compile(r"\(([0-9.]+ [KMGTP]iB)\b")
_ROW = re.compile(r"\A\s*([0-9]{1,9}|-)\s+([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9}|-)\s+(\S.*?)\s*\Z")
_PERCENT = re.compile(r"(?<![0-9.])([0-9]{1,3}(?:\.[0-9]{1,9})?)%")
_NODE = re.compile(r"(?:\A|\s)/\S+\s*\Z")
_HEADING = re.compile(r"\A\s*Number\s+Major\s+Minor\s+RaidDevice(?:\s+State)?\s*\Z")
_SCAN = re.compile(r"\A(?:INACTIVE-)?ARRAY (\S+)(?: |\Z)")
_TASKS = {"Resync": "initialise", "Rebuild": "rebuild", "Reshape": "reshape", "Check": "check"}
_STATES = {"resyncing": "initialise", "recovering": "rebuild", "reshaping": "reshape", "checking": "check"}
_WAITS = "resyncing (delayed)"
_ILL = {"degraded", "failed", "broken", "inactive", "not started"}
_WELL = {"clean", "active", "active-idle", "write-pending", "read-auto", "readonly", "suspended", *_STATES}
_READ = ("Raid Level", "Array Size", "Chunk Size", "State", "Name", "UUID", "Intent Bitmap")
_FEWER = re.compile(r"-([0-9]{1,9})\b")
_IN_SYNC = re.compile(r"active sync(?: set-\w)?\Z")
# in place of the node of a device that the kernel does not have any more
_GONE = "missing"
_NOT_RUNNING = {"inactive", "not started"}
_NO_STRIP = "1"
_NO_REDUNDANCY = "0"
_LEVELS = {"0": 2, "1": 2, "5": 3, "6": 4, "10": 2}


def parse_scan(text: str) -> tuple[str, ...]:
    """The nodes in `mdadm --detail --scan`, inactive arrays too. Raises ToolError for a line that is not known."""
    nodes = []
    begun = False
    for line in text.splitlines():
        match = _SCAN.match(line)
        begun = begun or match is not None
        if match and "=" in match.group(1):
            # a container that the kernel has not made has no node, only its metadata
            continue
        if match:
            nodes.append(match.group(1))
        elif line.strip() and not (begun and line.startswith((" ", "\t"))):
            raise ToolError(f"mdadm printed {line.strip()[:120]!r} where an ARRAY line was expected")
    return tuple(nodes)


def parse_details(text: str) -> tuple[VolumeFacts, ...]:
    """All arrays of one `mdadm --detail`, each below the line of its node; one that is refused is told as unread.

    Raises ToolError as for one when all are refused, and for what stands before the first and names no array.
    """
    parts = re.split(r"^(?=[ \t]*/dev/\S+:\s*$|mdadm: )", text, flags=re.MULTILINE)
    # what stands before the first node is no array, and is refused as one
    volumes = all_but_odd([_detail_or_why(part) for part in parts if part.strip() or len(parts) == 1])
    again = [volume.id for volume in volumes if [each.id for each in volumes].count(volume.id) > 1]
    if again:
        raise ToolError(f"mdadm --detail shows {again[0]} twice")
    return volumes


def _detail_or_why(text: str) -> VolumeFacts:
    # `mdadm: cannot open /dev/md1: No such file or directory` stands in place of that array
    node = re.match(r"\s*(?:mdadm: .*?)?(/dev/[^\s:]+)", text)
    try:
        return parse_detail(text)
    except ToolError as problem:
        if node is None:
            raise
        state = re.search(r"^\s*State : (.*?)\s*$", text, re.MULTILINE)
        return VolumeFacts(node[1], state=state.group(1) if state else "", device=node[1], unread=str(problem))


def parse_detail(text: str) -> VolumeFacts:
    """One array of `mdadm --detail`. What has no field of its own is in `settings`, as printed.

    Raises ToolError when it is no such text, or when a line belongs to nothing.
    """
    lines = text.splitlines()
    node = next((line for line in lines if line.strip()), "")
    if not re.match(r"\A\s*/dev/\S+:\s*\Z", node):
        raise ToolError(f"mdadm printed {node.strip()[:120]!r} where `/dev/...:` was expected")
    words = Fields()
    rows: list[tuple[str, str, str]] = []
    last = value = before = ""
    place = 0
    for line in map(str.expandtabs, lines[lines.index(node) + 1 :]):
        rest = before and line.strip() and not any(map(re.Pattern.match, (_ROW, _KEY, _HEADING), [line] * 3))
        before, wrapped = "", f"{before} {line.strip()}" if rest else ""
        row, key = _ROW.match(wrapped or line), _KEY.match(line)
        indent = len(line) - len(line.lstrip())
        if not line.strip() or _HEADING.match(line):
            words, last = _kept(words, last, value), ""
        elif row:
            if wrapped:
                rows.pop()
            rows.append((row.group(4), *_device(row)))
            # a row without its node may go on in the next line
            before = "" if _NODE.search(line) else (wrapped or line).rstrip()
        elif last and value and not key and indent > place:
            value = f"{value} {line.strip().lstrip(': ')}"
        elif key:
            place = indent
            words = _kept(words, last, value)
            last, value = key.group(1).strip(), key.group(2).strip()
        elif last and line.lstrip().startswith("("):
            # a long value goes on in the next line, in brackets
            value = f"{value} {line.strip()}"
        else:
            raise ToolError(f"mdadm --detail printed a line that belongs to nothing: {line.strip()[:120]!r}")
    words = _kept(words, last, value)
    if "Magic" in words:
        raise ToolError(f"this is mdadm --examine of the member {node.strip()}, and says nothing about the array")
    if "Raid Level" not in words and "State" not in words:
        raise ToolError(f"mdadm --detail of {node.strip()} names neither level nor state")
    volume = _volume(node.strip().rstrip(":"), words, rows)
    _check_counts(volume, words, rows)
    return volume


def _device(row: re.Match[str]) -> tuple[str, str]:
    """State and node of a row; older releases print nothing in place of a node that is gone."""
    state, _, path = row.group(5).rpartition(" ")
    if path.startswith("/") or path == _GONE:
        return state.strip(), path
    return row.group(5), _GONE if (row.group(2), row.group(3)) != ("0", "0") else ""


def _kept(words: Fields, label: str, value: str) -> Fields:
    if label:
        words.add(label, value)
    return words


def _check_counts(volume: VolumeFacts, words: Fields, rows: list[tuple[str, str, str]]) -> None:
    """Raise ToolError when another number of devices is told than listed, or two sizes that cannot be one."""
    listed = {
        "Total Devices": sum(path.startswith("/") or path == _GONE for _, _, path in rows),
        "Failed Devices": sum("faulty" in state for _, state, _ in rows),
        "Raid Devices": len({place for place, _, _ in rows if place != "-"}),
    }
    # an array that becomes narrower tells the members that it will have, and may list those that leave
    leaving = _FEWER.match(words.get("Delta Devices"))
    leave = int(leaving.group(1)) if leaving else 0
    counts = {label: whole_number(words.get(label)) for label in listed}
    # a failed device that the kernel does not have any more is counted, and only its place is listed, as removed
    uncounted = (counts["Failed Devices"] or 0) - listed["Failed Devices"]
    gone = max(0, min(uncounted, sum(state == "removed" for _, state, _ in rows)))
    for label, count in listed.items():
        more = leave if label == "Raid Devices" else -gone
        # an array that is not started places nothing
        if counts[label] not in (None, count, count - more) and not (
            label != "Total Devices" and "inactive" in volume.state
        ):
            raise ToolError(f"mdadm --detail of {volume.id} reports {counts[label]} ({label}) and lists {count}")
    printed = _IN_BRACKETS.search(words.get("Array Size"))
    if volume.size and printed:
        low, high = size_range(printed.group(1), base=1024) or (0, 0)
        # releases up to 3.x rounded what a hundredth of a MiB is, and print sizes below 2 GiB a little too large
        if not low * 4999 // 5000 <= volume.size <= high:
            raise ToolError(f"mdadm --detail of {volume.id} reports two sizes: {words.get('Array Size')[:80]}")


def _volume(node: str, words: Fields, rows: list[tuple[str, str, str]]) -> VolumeFacts:
    states = [word.strip() for word in words.get("State").split(",") if word.strip()]
    kib = words.get("Array Size").split(" ")[0]
    there = [(place, state, path) for place, state, path in rows if path.startswith("/")]
    failed = tuple(path for _, state, path in there if "faulty" in state)
    # what is to take a member's place is none yet
    spares = tuple(
        path
        for place, state, path in there
        if path not in failed and ("replacement" in state or (place == "-" and state.startswith("spare")))
    )
    placed = sorted((int(place), path) for place, _, path in there if place != "-" and path not in (*failed, *spares))
    level = _level(words, states)
    # an array that is not started tells no places
    unplaced = tuple(path for place, state, path in there if place == "-" and not state)
    return VolumeFacts(
        id=node,
        # the host that made it stands before a colon, and in brackets behind it
        name=words.get("Name").split(" ")[0].rpartition(":")[2],
        level=level,
        state=", ".join(states),
        size=int(kib) * 1024 if re.fullmatch("[0-9]{1,19}", kib) else None,
        strip=_chunk(words.get("Chunk Size")),
        members=(*(path for _, path in placed), *unplaced),
        spares=spares,
        failed=failed,
        policies={} if not states or _NOT_RUNNING & {state.lower() for state in states} else _bitmap(words),
        progress=_progress(words, states),
        device=node,
        uuid=_uuid(words.get("UUID")),
        healthy=_health({state.lower().partition(" (")[0] for state in states}),
        settings={
            **{key: value for key, value in words.without(*_READ).items() if not key.endswith(" Status")},
            **({} if level else {"Raid Level": words.get("Raid Level")}),
            # a journal, and members that are only written
            **{f"Device {path}": state for _, state, path in there if state and not _IN_SYNC.match(state)},
        },
    )


def _health(states: set[str]) -> bool | None:
    """Whether all states are good ones; unknown for a state of a release that is not known."""
    if _ILL & states:
        return False
    return True if states and states <= _WELL else None


def _level(words: Fields, states: list[str]) -> str:
    """The level; nothing for an array that is not started and is called raid0, as mdadm calls each of those."""
    level = words.get("Raid Level").lower().replace("raid", "")
    return "" if level == _NO_REDUNDANCY and (not states or "inactive" in states) else level


def _bitmap(words: Fields) -> dict[str, Value]:
    """Whether there is a write-intent bitmap; nothing for one in a file, which is neither of the two values."""
    # older releases name no policy
    policy = (words.get("Intent Bitmap") or words.get("Consistency Policy")).lower()
    if policy.startswith("/"):
        return {}
    return {"bitmap": "internal" if policy.startswith(("internal", "bitmap")) else "none"}


def _chunk(text: str) -> int | None:
    try:
        return parse_size(text) if text else None
    except ValueError:
        raise ToolError(f"mdadm --detail says a chunk of {text[:40]!r}, which is not a size") from None


def _uuid(text: str) -> str:
    """`efd17549:2c32fcf9:8f51c79c:001ace3c` with dashes, as blkid and the kernel write it; empty for none."""
    digits = text.partition(" ")[0].replace(":", "").lower()
    if not re.match(r"\A[0-9a-f]{32}\Z", digits):
        return ""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _progress(words: Fields, states: list[str]) -> dict[str, float]:
    """Percent by task; a task that waits for its turn is at 0."""
    begun = [state.lower() for state in states]
    # what waits for another array is called a resync, whatever it is
    tasks = [DELAYED_TASK if state == _WAITS else _STATES.get(state.split(" ")[0], "") for state in begun]
    percents = {task: 0.0 for task in tasks if task}
    if "Reshape Status" in words:
        # releases up to 3.1 call an array that is reshaped a recovering one
        percents.pop("rebuild", None)
    for word, task in _TASKS.items():
        match = _PERCENT.search(words.get(f"{word} Status"))
        if match:
            # old releases call a resync a rebuild here
            resync = task == "rebuild" and list(percents) == ["initialise"]
            percents["initialise" if resync else task] = float(match.group(1))
    return percents


def _ask(runner: Runner, what: str, *words: str, timeout: float = _TIMEOUT, remedy: str = "") -> str:
    ended = runner(["mdadm", *words], timeout=timeout)
    message = "; ".join(line.strip() for line in (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-3:])
    if ended.rc != 0:
        raise ToolError(f"{what}: {message[:400] or 'no message'} (status {ended.rc}); command: {ended.line}{remedy}")
    return ended.stdout


def read_volumes(runner: Runner, index: str) -> tuple[VolumeFacts, ...]:
    """Every array that the kernel has, running or not. Raises ToolError."""
    nodes = parse_scan(_ask(runner, f"the arrays of {index} cannot be listed", "--detail", "--scan"))
    return _read(runner, *nodes) if nodes else ()


def _read(runner: Runner, *nodes: str) -> tuple[VolumeFacts, ...]:
    volumes = parse_details(_ask(runner, f"array {', '.join(nodes)} cannot be read", "--detail", *nodes))
    if len(volumes) != len(nodes):
        raise ToolError(f"mdadm --detail was asked for {len(nodes)} arrays and shows {len(volumes)}")
    return volumes


def read_facts(runner: Runner) -> ToolFacts:
    """The arrays, as volumes of one adapter without a slot; no adapter when there is no array."""
    volumes = read_volumes(runner, INDEX)
    return ToolFacts((AdapterFacts(INDEX, model="Linux md", driver="md", volumes=volumes),) if volumes else ())


def objections(request: VolumeRequest) -> tuple[str, ...]:
    """What md has nothing for, or cannot make of so many members."""
    flaws = []
    if request.level not in _LEVELS:
        flaws.append(f"md makes no RAID {request.level}, only {', '.join(_LEVELS)}")
    elif len(request.members) < _LEVELS[request.level]:
        flaws.append(f"RAID {request.level} needs {_LEVELS[request.level]} members, {len(request.members)} are named")
    for name, instead in (
        ("read_policy", "drive.read_ahead_kb is the kernel's read-ahead"),
        ("write_policy", "md writes through"),
        ("io_policy", "fio's direct I/O bypasses the page cache"),
        ("disk_cache", "a drop's enable or disable is drive.WCE of the members"),
        ("rebuild_rate", "md knows rates in KiB/s, not shares"),
    ):
        if name in request.policies:
            flaws.append(f"md has no {name}: {instead}")
    if request.policies.get("bitmap") == "internal" and request.level == _NO_REDUNDANCY:
        flaws.append("RAID 0 has nothing to write an intent bitmap for")
    if request.spares and request.level == _NO_REDUNDANCY:
        flaws.append("RAID 0 cannot use hot spares")
    if request.initialisation == "fast":
        flaws.append("md initialises a volume fully or not at all")
    wrong = request.strip_objection(4 << 10, 1 << 30)
    return (*flaws, wrong) if wrong else tuple(flaws)


def create(runner: Runner, index: str, request: VolumeRequest) -> None:
    """Make an array and start it; levels with redundancy begin to initialise at once unless they are not to.

    Raises ToolError: for what `objections` says, and when mdadm fails.
    """
    refuse_for(objections(request))
    argv = ["--create", request.device, "--run", "--metadata=1.2", f"--level={request.level}"]
    argv += [f"--raid-devices={len(request.members)}"]
    if request.spares:
        argv.append(f"--spare-devices={len(request.spares)}")
    if request.strip is not None and request.level != _NO_STRIP:
        argv.append(f"--chunk={request.strip // 1024}K")
    if request.level != _NO_REDUNDANCY:
        argv.append(f"--bitmap={request.policies.get('bitmap', 'none')}")
        # without force RAID 5 is made degraded and rebuilt onto its last member
        argv.append("--assume-clean" if request.initialisation == "none" else "--force")
    # an array of host `any` is taken for this machine's own after every boot, whatever the machine is called
    argv += ["--homehost=any", f"--name={request.name}", f"--uuid={request.uuid}", *request.members, *request.spares]
    _ask(runner, f"array {request.name} could not be made on {index}", *argv, timeout=_MAKE_TIMEOUT)


def delete(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Stop an array. Its superblocks stay: clearing the members is for who holds them.

    Raises ToolError when it is in use.
    """
    what = f"array {volume.id} of {index} could not be stopped"
    _ask(runner, what, "--stop", volume.id, timeout=_MAKE_TIMEOUT, remedy="; stop what uses it")


def set_policy(runner: Runner, index: str, volume: VolumeFacts, name: str, value: Value) -> None:
    """Add or remove the write-intent bitmap of a running array, the only policy that md has. Raises ToolError."""
    if name != "bitmap":
        raise ToolError(f"{index} has no {name} that can be set")
    what = f"the bitmap of {volume.id} could not be set to {value}"
    _ask(runner, what, "--grow", volume.id, f"--bitmap={value}", timeout=_MAKE_TIMEOUT)


def resume(runner: Runner, index: str, volume: VolumeFacts) -> None:
    """Have an array that waits for its first write go on with what it had under way. Raises ToolError."""
    _ask(runner, f"array {volume.id} of {index} does not continue", "--readwrite", volume.id)


def progress(runner: Runner, index: str, volume: VolumeFacts) -> Mapping[str, float]:  # noqa: ARG001 - a capability
    """Percent done by task; empty when the array is idle. Raises ToolError."""
    (array,) = _read(runner, volume.id)
    if array.unread:
        raise ToolError(array.unread)
    return array.progress
