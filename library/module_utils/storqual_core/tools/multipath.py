# SPDX-License-Identifier: Apache-2.0
r"""multipath-tools: maps with the paths of each, from multipathd or from `multipath -ll`, and the configuration.

The daemon tells more (counters, what checks a path) and may not run; the tree with `|-+-` is that of 0.4.9 and later,
former releases have brackets. Read from the documentation and public outputs of 0.4.5 to 0.11, and run with 0.9.4.
Nothing printed means that there is no map.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from textwrap import dedent
from typing import Any, Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import MissingToolError, ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK, as_int, as_list, as_mapping, as_text, size_range, the_object

_TIMEOUT = 60.0
_NAME = r"[^\s():,|`\\\[]+"
# `create: ` or `reload: ` stands in front of what a command has just changed; T10 names hold blanks, old releases
# print no device, or no blank before it
_MAP = re.compile(
    rf"^(?:[a-z][a-z ]{{0,30}}: )?(?P<name>{_NAME}(?: {{2,}}{_NAME})*)(?:\s+\((?P<wwid>[^()]+)\))?"
    r"(?:(?:\s+|(?<=\b3[0-9a-f]{32}))(?P<node>dm-\d{1,7}|undef|\[nvme\]:nvme\w+)\b|(?<=[0-9a-f]{16}\))$)"
    r"\s*(?P<product>[^\[]*?)\s*(?P<rest>size=.*)?$"
)
_OLD_VALUE = re.compile(r'\[(size|features|hwhandler|prio|status)="?([^\]"]*)"?\]')
_VALUE = re.compile(r"(?P<name>size|features|hwhandler|wp)=(?P<value>'[^']*'|\S+)")
_GROUP = re.compile(
    r"^[\s|`]*(?:-\+-|\\_)\s+(?:(?:policy|selector)='(?P<policy>[^']*)'|(?P<old>[\w-]+ \d+))"
    r"(?:\s+prio='?(?P<prio>-?\d{1,9}|undef)\b'?)?(?:\s*(?:status='?|\[)(?P<status>[a-z-]+)['\]]?)?\s*$"
)
_PATH = re.compile(
    r"^[\s|`\\_-]*(?:\d{1,7}:\d{1,7}:\d{1,20}(?::\d{1,20})?|#:#:#:#)\s+(?P<device>[^\s\[\]]+)\s+"
    r"(?P<number>\d{1,7}:\d{1,7}|[#-]:[#-]|-)\s*(?P<states>[\[a-z].*)$"
)
_LOGGED = re.compile(r"^(?:[A-Z][a-z]{2} \d{1,2} \d{2}:\d{2}:\d{2}|\d+\.\d+) ?\|")
# what NVMe says of a path (ANA) and of its controller stands with the words for SCSI
_UP = ("ready", "ghost", "undef", "unchecked", "optimized", "non-optimized")
_AWAY = ("offline", "connecting", "resetting", "deleting", "dead")
_OPENED = re.compile(r"\s*(?P<section>\w+) \{\s*")
_ATTRIBUTE = re.compile(r'\s*(?P<name>\w+) (?:"(?P<quoted>.*)"|(?P<plain>\S+))\s*')


@dataclass(frozen=True)
class MultipathPath:
    """One path, its device number, and its states by who says so.

    `kernel` is active or failed, `checker` the last word of what checks it (ready, faulty, ghost …), which is
    `checked_by` (tur, directio …), `online` running or offline; empty where it is not told.
    """

    device: str
    number: str
    kernel: str = ""
    checker: str = ""
    online: str = ""
    priority: int | None = None
    group: str = ""
    checked_by: str = ""

    @property
    def usable(self) -> bool:
        """Whether I/O may go through it, as far as anybody says."""
        return self.kernel != "failed" and not self.online.endswith(_AWAY) and self.checker in ("", *_UP)


@dataclass(frozen=True)
class MultipathMap:
    """One map: its name (the WWID where it has no alias), its dm device, policy of its active group, and its paths.

    `size_range` is what the rounded size can mean, in bytes; `queueing` is what becomes of I/O without a path (`off`,
    `on`, `12 chk`); `path_faults` and `queue_timeouts` count lost paths, and ends of the wait for one; `notes` are
    lines of it that were not understood.
    """

    name: str
    wwid: str
    node: str = ""
    product: str = ""
    size_range: tuple[int, int] | None = None
    features: str = ""
    handler: str = ""
    policy: str = ""
    paths: tuple[MultipathPath, ...] = ()
    notes: tuple[str, ...] = ()
    queueing: str = ""
    path_faults: int | None = None
    queue_timeouts: int | None = None


def parse_topology(text: str) -> tuple[MultipathMap, ...]:
    """The maps of `multipathd show maps json`. Raises ToolError, also for fewer groups or paths than it counts."""
    maps = []
    for body in map(as_mapping, as_list(the_object(text, "multipathd", "maps")["maps"])):
        groups = [as_mapping(group) for group in as_list(body.get("path_groups"))]
        listed = [(as_mapping(path), group) for group in groups for path in as_list(group.get("paths"))]
        paths = tuple(_listed_path(*each) for each in listed)
        vendor, model = _value(body, "vend"), _value(body, "prod")
        name, counted = as_text(body.get("name")), as_int(body.get("paths"))
        wwid = as_text(body.get("uuid"))
        numbers = [as_int(group.get("group")) for group in groups]
        # the device of a path that is gone is a dash
        if not name or not wwid or not all(as_text(path.get("dev")) for path, _ in listed):
            raise ToolError(f"multipathd lists a map or a path without a name{f' ({name[:100]})' if name else ''}")
        if numbers != list(range(1, len(groups) + 1)) or counted is None or counted > len(paths):
            raise ToolError(
                f"multipathd counts {counted} paths of {name}, and lists {len(paths)} in groups {numbers}"
            )
        policies = {as_text(group.get("dm_st")): as_text(group.get("selector")) for group in reversed(groups)}
        maps.append(
            MultipathMap(
                name,
                wwid,
                _value(body, "sysfs"),
                f"{vendor} {model}" if vendor and model else "",
                features=_value(body, "features"),
                handler=_value(body, "hwhandler"),
                policy=policies.get("active") or next(iter(reversed(policies.values())), ""),
                paths=paths,
                queueing=_value(body, "queueing"),
                path_faults=as_int(body.get("path_faults")),
                queue_timeouts=as_int(body.get("q_timeouts")),
            )
        )
    return _each_once(maps)


def _value(body: Mapping[str, Any], name: str) -> str:
    text = as_text(body.get(name)).strip()
    return "" if text in ("-", "[undef]", "undef", "##", "#:#") else text


def _listed_path(path: Mapping[str, Any], group: Mapping[str, Any]) -> MultipathPath:
    device, number, kernel, checker, online, by = (
        _value(path, name) for name in ("dev", "dev_t", "dm_st", "chk_st", "dev_st", "checker")
    )
    return MultipathPath(device, number, kernel, checker, online, as_int(path.get("pri")), _value(group, "dm_st"), by)


def _each_once(maps: Sequence[MultipathMap]) -> tuple[MultipathMap, ...]:
    names = [each.wwid for each in maps]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise ToolError(f"multipath lists the map {twice} twice")
    return tuple(maps)


def parse_maps(text: str) -> tuple[MultipathMap, ...]:
    """The maps of `multipath -ll` and `-l`, none for an empty text; messages before the first are notes of that.

    Raises ToolError for a text without a map, for a part of one before the first, and for a map that comes twice.
    """
    maps: list[MultipathMap] = []
    before: list[str] = []
    group: tuple[int | None, str] = (None, "")
    for printed in dedent(text.lstrip(BYTE_ORDER_MARK)).splitlines():
        line = _OLD_VALUE.sub(r"\1='\2' ", printed.replace("'n/a'", "''")).rstrip()
        if not line or _LOGGED.match(line):
            continue
        path, of_group, mapped = _PATH.match(line), _GROUP.match(line), _MAP.match(line)
        if mapped is not None and path is None:
            maps.append(replace(_map(mapped), notes=tuple(before)))
            before, group = [], (None, "")
        elif not maps and (path or of_group or _VALUE.match(line)):
            raise ToolError(f"multipath printed no map first, but: {line.strip()[:200]}")
        elif not maps:
            before.append(line.strip())
        elif of_group is not None:
            policy, old, prio, status = of_group.group("policy", "old", "prio", "status")
            group = (None if prio in (None, "undef") else int(prio), status or "")
            if status == "active" or not maps[-1].policy:
                maps[-1] = replace(maps[-1], policy=policy or old or "")
        elif path is not None:
            maps[-1] = replace(maps[-1], paths=(*maps[-1].paths, _path(path, group)))
        elif _VALUE.match(line) and maps[-1].size_range:
            raise ToolError(f"multipath tells two sizes of {maps[-1].name}: a map below it is not understood")
        elif _VALUE.match(line):
            maps[-1] = _with_values(maps[-1], line)
        else:
            maps[-1] = replace(maps[-1], notes=(*maps[-1].notes, printed.strip()))
    if before:
        raise ToolError(f"multipath printed no map first, but: {before[0][:200]}")
    return _each_once(maps)


def _map(match: re.Match[str]) -> MultipathMap:
    words = match.groupdict()
    # `##,##` of a map without paths is none
    product = " ".join(words["product"].replace("#", "").replace(",", " ", 1).split())
    node = (words["node"] or "").replace("undef", "").replace("[nvme]:", "")
    made = MultipathMap(words["name"], words["wwid"] or words["name"], node, product)
    return _with_values(made, words["rest"]) if words["rest"] else made


def _with_values(made: MultipathMap, line: str) -> MultipathMap:
    words = {match.group("name"): match.group("value").strip("'") for match in _VALUE.finditer(line)}
    return replace(
        made,
        size_range=size_range(words.get("size", ""), base=1024) or made.size_range,
        features=words.get("features", made.features),
        handler=words.get("hwhandler", made.handler),
    )


def _path(match: re.Match[str], group: tuple[int | None, str]) -> MultipathPath:
    device, number, text = match.group("device", "number", "states")
    states = text.replace("[", " ").replace("]", " ").replace("n/a", "-").split()
    if len(states) > 3:
        # the checker's word may be two (`i/o pending`)
        states = [states[0], " ".join(states[1:-1]), states[-1]]
    kernel, checker, online = (word.strip("-") for word in (*states, "", "", "")[:3])
    number = "" if number in ("-", "-:-", "#:#") else number
    return MultipathPath(device.strip("-"), number, kernel, checker, online, *group)


def read_maps(runner: Runner) -> tuple[MultipathMap, ...]:
    """Every map of the machine, as the daemon knows them where it answers. Raises ToolError."""
    with suppress(MissingToolError):
        answer = runner(["multipathd", "show", "maps", "json"], timeout=_TIMEOUT)
        if answer.rc == 0 and "{" in answer.stdout:
            return parse_topology(answer.stdout)
    ended = runner(["multipath", "-ll"], timeout=_TIMEOUT).expect(what="the multipath maps cannot be listed")
    # those of NVMe itself are none of the device mapper, and the daemon does not list them either
    return tuple(each for each in parse_maps(ended.stdout) if not each.node.startswith("nvme"))


def parse_overrides(text: str) -> dict[str, str]:
    """The section `overrides` of `multipathd show config` without what it says of single protocols.

    Raises ToolError for a text that is no whole configuration.
    """
    overrides: dict[str, str] = {}
    opened: list[str] = []
    sections = set()
    for line in text.lstrip(BYTE_ORDER_MARK).splitlines():
        section, attribute = _OPENED.fullmatch(line), _ATTRIBUTE.fullmatch(line)
        if section is not None:
            opened.append(section.group("section"))
            sections.add(opened[0])
        elif line.strip() == "}" and opened:
            opened.pop()
        elif attribute is not None and opened == ["overrides"]:
            overrides[attribute.group("name")] = attribute.group("quoted") or attribute.group("plain") or ""
        elif line.strip() and attribute is None:
            raise ToolError(f"multipathd printed {line.strip()[:100]!r} in its configuration")
    if opened or "defaults" not in sections:
        raise ToolError("multipathd printed no whole configuration")
    return overrides


def read_overrides(runner: Runner) -> dict[str, str]:
    """What the daemon's configuration says of all devices. Raises ToolError, also when the daemon does not run."""
    ended = runner(["multipathd", "show", "config"], timeout=_TIMEOUT)
    if ended.rc != 0 or not ended.stdout.strip():
        raise ended.failure("multipathd does not answer (start it with `systemctl start multipathd`)")
    return parse_overrides(ended.stdout)


def reconfigure(runner: Runner) -> None:
    """Have the daemon read its files again, and make its maps by them. Raises ToolError."""
    ended = runner(["multipathd", "reconfigure"], timeout=_TIMEOUT)
    if ended.rc != 0 or ended.stdout.split() != ["ok"]:
        raise ended.failure("multipathd did not take its configuration", of="stdout")
