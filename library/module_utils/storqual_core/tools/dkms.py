# SPDX-License-Identifier: Apache-2.0
"""DKMS: drivers that are built on the bench from a package of sources, for each kernel it has headers of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..command import Runner
from ..errors import ToolError

__all__ = ["State", "built_for", "last_build_words", "parse_status", "status"]

# dkms 3 writes `module/version, kernel, arch: state`, dkms 2 `module, version, kernel, arch: state`
_LINE = re.compile(r"^([\w.+-]+)(?:/|, )([^,:]+?)(?:, ([^,:]+), ([^,:]+))?: ([a-z]+)(.*)$")
_BUILDS = "/var/lib/dkms"
_LAST_LINES = 5


@dataclass(frozen=True)
class State:
    """One line of `dkms status`: `state` `added`, `built` or `installed`, `kernel` empty where it is only added."""

    module: str
    version: str
    kernel: str
    state: str
    remark: str = ""


def parse_status(text: str) -> list[State]:
    """`dkms status`. Raises ToolError for a line that is not understood: it may be about the driver that is meant."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith(("Deprecated feature:", "Warning:")):
            continue
        match = _LINE.match(line.strip())
        if match is None:
            raise ToolError(f"dkms status printed {line[:120]!r}, which is not understood")
        module, version, kernel, _, state, remark = match.groups()
        found.append(State(module, version.strip(), (kernel or "").strip(), state, remark.strip()))
    return found


def status(runner: Runner) -> list[State]:
    """What DKMS has. Raises ToolError; MissingToolError when it is not installed."""
    return parse_status(runner(["dkms", "status"], timeout=60.0).expect().stdout)


def built_for(states: list[State], version: str, kernel: str) -> list[State]:
    """The drivers of a version that are installed for a kernel."""
    return [each for each in states if (each.version, each.kernel, each.state) == (version, kernel, "installed")]


def last_build_words(builds: str = _BUILDS) -> str:
    """The end of the newest build log, for the sentence that a build failed; empty when there is none."""
    logs = sorted(Path(builds).glob("*/*/build/make.log"), key=lambda path: path.stat().st_mtime)
    if not logs:
        return ""
    lines = logs[-1].read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"{logs[-1]}: " + "; ".join(line.strip() for line in lines[-_LAST_LINES:])[:500]
