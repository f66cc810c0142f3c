# SPDX-License-Identifier: Apache-2.0
"""Files that we write have the SELinux type of their place: a module of another type may not be loaded.

A file that is made in its folder gets the folder's type, which is not always that of its path; one that is moved
there keeps the one it had.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Sequence

from ..kit.command import Runner
from ..kit.errors import MissingToolError, StorqualError, ToolError
from ..kit.machine import Machine
from ..tools import matchpathcon, sestatus

ENFORCE = "/sys/fs/selinux/enforce"
_OWN_CONTEXT = "/proc/self/attr/current"


def has_policy(machine: Machine) -> bool:
    """Whether a policy is loaded: a kernel that has SELinux and was given none leaves every process as `kernel`."""
    return machine.exists(ENFORCE) and machine.text(_OWN_CONTEXT) != "kernel"


_CONTEXT = "security.selinux"


def check_types(machine: Machine, runner: Runner, paths: Sequence[str]) -> None:
    """Give files, by their paths on the machine, the types of the policy, and prove it. Raises ToolError."""
    if not paths or not has_policy(machine):
        return
    where = [machine.path(path) for path in paths]
    with suppress(MissingToolError):
        # what has its type already is left alone
        runner(["restorecon", *where], timeout=120.0)
    wrong = [each for each in matchpathcon.verify(runner, where) if not each.agrees]
    if wrong:
        listing = "; ".join(
            f"{each.path} {each.problem or f'has type {each.type_of(each.has)}, expected {each.type_of(each.wants)}'}"
            for each in wrong
        )
        raise ToolError(f"SELinux: {listing}")


def denials(machine: Machine, runner: Runner, path: str) -> str:
    """What SELinux denied of late about a file, as the end of a sentence; empty where nothing tells of it."""
    if not has_policy(machine):
        return ""
    with suppress(StorqualError):
        output = runner(["ausearch", "-m", "AVC", "-ts", "recent"], timeout=60.0).stdout
        own = [each for each in sestatus.parse_denials(output) if each.path == path and not each.permissive]
        for each in own[-1:]:
            return f" (SELinux denied {' '.join(each.permissions)} to {each.program}: {path} has type {each.target})"
    return ""


def read_context(path: Path) -> str:
    """The context of a file itself; empty where there are none."""
    try:
        return os.getxattr(path, _CONTEXT, follow_symlinks=False).rstrip(b"\0").decode("ascii", "replace")
    except OSError:
        return ""


def write_context(path: Path, context: str) -> None:
    """Have a file have this context, where it has another one. Raises ToolError."""
    if context and read_context(path) != context:
        try:
            os.setxattr(path, _CONTEXT, context.encode() + b"\0", follow_symlinks=False)
        except OSError as problem:
            raise ToolError(f"{path} cannot be given its context {context} again: {problem.strerror}") from problem
