# SPDX-License-Identifier: Apache-2.0
r"""multipath (multipath-tools): maps, the paths of each, and the state of each path, from `multipath -ll`.

Two layouts are read: the tree with `|-+-` and quoted values (0.4.9 and later), and the former one in brackets with
`\_`. From the documentation and public outputs; multipath-tools was not run here. Nothing printed means that there
is no map.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK, size_range

_TIMEOUT = 60.0
# `create: ` or `reload: ` stands in front of what a command has just changed
_MAP = re.compile(
    r"^(?:(?P<action>[a-z][a-z ]{0,30}): )?(?P<name>[^\s():,|`\\\[]+)(?:\s+\((?P<wwid>[^()\s]+)\))?\s+"
    r"(?P<node>dm-\d{1,7}|undef)\s*(?P<product>[^\[]*?)\s*(?P<rest>(?:size=|\[size=).*)?$"
)
_VALUE = re.compile(r"(?P<name>size|features|hwhandler|wp)=(?P<value>'[^']*'|[^\s\]]+(?:(?<=\d) [^\]=]+(?=\]))?)")
_GROUP = re.compile(
    r"^[\s|`]*-\+-\s+(?:policy|selector)='(?P<policy>[^']*)'\s+\[?prio=(?P<prio>-?\d{1,9}|undef)\]?"
    r"(?:\s*\[?status=(?P<status>[a-z]+)\]?)?\s*$"
    r"|^\s*\\_\s+(?P<old_policy>[a-z][a-z-]*(?: \d+)?)\s+(?:\[prio=(?P<old_prio>-?\d{1,9})\])?\s*"
    r"(?:\[(?P<old_status>\w+)\s*\])?\s*$"
)
_PATH = re.compile(
    r"^[\s|`\\_-]*(?P<place>\d{1,7}:\d{1,7}:\d{1,7}:\d{1,20}|#:#:#:#)\s+(?P<device>[^\s\[\]]+)\s+"
    r"(?P<number>\d{1,7}:\d{1,7}|[#-]:[#-]|-)\s*(?P<states>[\[a-z].*)$"
)
_LOGGED = re.compile(r"^(?:[A-Z][a-z]{2} \d{1,2} \d{2}:\d{2}:\d{2}|\d+\.\d+) ?\|")
_KERNEL_STATES = ("active", "failed", "undef")
_UP = ("ready", "ghost", "undef", "unchecked")


@dataclass(frozen=True)
class MultipathPath:
    """One path: `place` is host:channel:target:lun, `number` the device number, states by who says so.

    `kernel` is active or failed, `checker` multipathd's own word (ready, faulty, ghost …), `device` running or
    offline; empty where it is not told.
    """

    place: str
    device: str
    number: str
    kernel: str = ""
    checker: str = ""
    online: str = ""
    priority: int | None = None
    group: str = ""

    @property
    def usable(self) -> bool:
        """Whether I/O may go through it, as far as anybody says."""
        return self.kernel != "failed" and not self.online.endswith("offline") and self.checker in ("", *_UP)


@dataclass(frozen=True)
class MultipathMap:
    """One map: its name (the WWID where it has no alias), its dm device, policy of its active group, and its paths.

    `size_range` is what the rounded size can mean, in bytes; `notes` are lines of it that were not understood.
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


def parse_maps(text: str) -> tuple[MultipathMap, ...]:
    """The maps of `multipath -ll` and `-l`, none for an empty text.

    Raises ToolError for a text that does not begin with a map, and for a map that comes twice.
    """
    maps: list[MultipathMap] = []
    group: tuple[str, int | None, str] = ("", None, "")
    for line in text.lstrip(BYTE_ORDER_MARK).splitlines():
        if not line.strip() or _LOGGED.match(line):
            continue
        path, of_group, mapped = _PATH.match(line), _GROUP.match(line), _MAP.match(line)
        if mapped is not None and path is None:
            maps.append(_map(mapped))
            group = ("", None, "")
        elif not maps:
            raise ToolError(f"multipath printed no map first, but: {line.strip()[:200]}")
        elif of_group is not None:
            words = of_group.groupdict()
            prio = words["prio"] or words["old_prio"] or ""
            status = words["status"] or words["old_status"] or ""
            group = (
                words["policy"] or words["old_policy"] or "",
                None if prio in ("", "undef") else int(prio),
                status,
            )
            if status == "active" or not maps[-1].policy:
                maps[-1] = replace(maps[-1], policy=group[0])
        elif path is not None:
            maps[-1] = replace(maps[-1], paths=(*maps[-1].paths, _path(path, group)))
        elif _VALUE.search(line):
            maps[-1] = _with_values(maps[-1], line)
        else:
            maps[-1] = replace(maps[-1], notes=(*maps[-1].notes, line.strip()))
    names = [each.wwid for each in maps]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise ToolError(f"multipath lists the map {twice} twice")
    return tuple(maps)


def _map(match: re.Match[str]) -> MultipathMap:
    words = match.groupdict()
    node = words["node"]
    vendor, comma, model = words["product"].partition(",")
    product = f"{vendor.strip()} {model.strip()}".strip() if comma else words["product"].strip()
    made = MultipathMap(words["name"], words["wwid"] or words["name"], "" if node == "undef" else node, product)
    return _with_values(made, words["rest"]) if words["rest"] else made


def _with_values(made: MultipathMap, line: str) -> MultipathMap:
    words = {match.group("name"): match.group("value").strip("'") for match in _VALUE.finditer(line)}
    return replace(
        made,
        size_range=size_range(words.get("size", ""), base=1024) or made.size_range,
        features=words.get("features", made.features),
        handler=words.get("hwhandler", made.handler),
    )


def _path(match: re.Match[str], group: tuple[str, int | None, str]) -> MultipathPath:
    words = match.groupdict()
    bracketed = re.findall(r"\[([^\]]*)\]", words["states"])
    states = [word.strip() for word in bracketed] if bracketed else words["states"].split()
    if not bracketed and len(states) > 3:
        # the checker's word may be two (`i/o pending`)
        states = [states[0], " ".join(states[1:-1]), states[-1]]
    if len(states) > 1 and states[0] not in _KERNEL_STATES and states[1] in _KERNEL_STATES:
        # the first releases told the checker's word first
        states[:2] = states[1], states[0]
    kernel, checker, online = (*states, "", "", "")[:3]
    _, priority, status = group
    return MultipathPath(
        words["place"],
        words["device"],
        "" if words["number"] in ("-", "-:-", "#:#") else words["number"],
        kernel,
        checker,
        online,
        priority,
        status,
    )


def read_maps(runner: Runner) -> tuple[MultipathMap, ...]:
    """Every map of the machine. Raises ToolError."""
    ended = runner(["multipath", "-ll"], timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ended.failure("the multipath maps cannot be listed")
    return parse_maps(ended.stdout)
