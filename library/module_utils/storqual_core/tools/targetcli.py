# SPDX-License-Identifier: Apache-2.0
"""targetcli (targetcli-fb, and the older targetcli): what this machine serves to others by the kernel's own target.

`targetcli ls` is a tree of stores, fabrics, targets, their groups, initiators (acls), LUNs and portals. In brackets
is what each is, or how many are below it: `[TPGs: 1]`, before 2.1 `[1 TPG]`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK, first_line

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NODE = re.compile(r"(?P<margin>(?:\| |  )*)[o+]- (?P<name>\S+) \.*\s*\[(?P<summary>.*)\]")
_COUNT = re.compile(r"(?:.*, )?[A-Z][A-Za-z ]*: (?P<new>[0-9]{1,9})|(?P<old>[0-9]{1,9}) [A-Z][A-Za-z ]*")
# a store that no LUN leads to is `deactivated`, and well
_UNWELL = re.compile(r"ERROR|BROKEN .*|INVALID .*|disabled")


@dataclass(frozen=True)
class TargetNode:
    """One node by its path (`/iscsi/iqn…/tpg1/luns/lun0`) and what it says of itself."""

    path: str
    summary: str

    @property
    def unwell(self) -> bool:
        """Whether nobody can use it."""
        return _UNWELL.fullmatch(self.summary) is not None


def parse_tree(text: str) -> tuple[tuple[TargetNode, ...], tuple[str, ...]]:
    """The nodes of `targetcli ls`, and the lines that are none.

    Raises ToolError for a text without a node, a node that comes twice or hangs on none, and for one that counts
    more or fewer nodes than are below it.
    """
    nodes: list[TargetNode] = []
    notes: list[str] = []
    above: list[str] = []
    for line in filter(str.strip, _COLOUR.sub("", text.lstrip(BYTE_ORDER_MARK)).splitlines()):
        row = _NODE.fullmatch(line.rstrip())
        if row is None:
            notes.append(line.strip())
            continue
        depth = len(row["margin"]) // 2
        if depth > len(above) or (nodes and not depth):
            raise ToolError(f"targetcli lists {row['name']} below nothing")
        above[depth:] = [row["name"].strip("/")]
        nodes.append(TargetNode("/".join(above) or "/", row["summary"]))
    if not nodes:
        raise ToolError(f"targetcli printed no tree: {first_line(text)}")
    below = Counter(node.path.rpartition("/")[0] for node in nodes[1:])
    for path, times in Counter(node.path for node in nodes).items():
        if times > 1:
            raise ToolError(f"targetcli lists {path} twice")
    for node in nodes:
        count = _COUNT.fullmatch(node.summary)
        if count and int(count["new"] or count["old"]) != below[node.path]:
            raise ToolError(f"targetcli says {node.summary!r} of {node.path}, and lists {below[node.path]}")
    return tuple(nodes), tuple(notes)


def read_tree(runner: Runner) -> tuple[tuple[TargetNode, ...], tuple[str, ...]]:
    """What this machine serves. It loads the modules of the kernel's target where they are not. Raises ToolError."""
    return parse_tree(runner(["targetcli", "ls"], timeout=60.0).expect().stdout)
