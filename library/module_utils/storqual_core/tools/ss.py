# SPDX-License-Identifier: Apache-2.0
"""ss (iproute2): what TCP connections carried, among them those of the kernel's own initiators (ss(8))."""

from __future__ import annotations

import re

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import first_line

_ACKNOWLEDGED = re.compile(r"^\s.*\bbytes_acked:(\d{1,20})\b", re.MULTILINE)
_TIMEOUT = 30.0


def parse_acknowledged(text: str) -> int:
    """`ss --tcp --info --no-header`: bytes acknowledged, of all connections. Raises ToolError where a count lacks."""
    connections = [line for line in text.splitlines() if line[:1].strip()]
    counts = [int(count) for count in _ACKNOWLEDGED.findall(text)]
    if not counts or len(counts) != len(connections):
        raise ToolError(f"ss counts the bytes of {len(counts)} of {len(connections)} connections: {first_line(text)}")
    return sum(counts)


def read_acknowledged(runner: Runner, peer: str) -> int:
    """The same of all connections to `peer`, an address with its port (`192.0.2.7:4420`). Raises ToolError."""
    words = ["--tcp", "--info", "--numeric", "--no-header", "state", "established", "dst", peer]
    return parse_acknowledged(runner(["ss", *words], timeout=_TIMEOUT).expect().stdout)
