# SPDX-License-Identifier: Apache-2.0
"""Kernel modules: which build is loaded, which lies on disk, which is in the initramfs.

A build is named by `srcversion` (a digest of its sources) and, where its authors give one, `version`. The kernel
package alone does not tell two drivers apart: the same sources may be in many of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..command import Runner
from ..errors import ToolError

__all__ = ["Build", "loaded", "on_disk", "parse_modinfo"]

_KEY = re.compile(r"^([a-z_]+):(?:\s+(.*))?$")


@dataclass(frozen=True)
class Build:
    """One build of a module; a field that its file does not have is empty. A built-in module has `builtin`."""

    srcversion: str = ""
    version: str = ""
    vermagic: str = ""
    filename: str = ""
    builtin: bool = False


def parse_modinfo(text: str) -> dict[str, list[str]]:
    """Keys of `modinfo` to their values in order; `parm` and `signature` go on in lines that have no key."""
    values: dict[str, list[str]] = {}
    last = ""
    for line in text.splitlines():
        match = _KEY.match(line)
        if match:
            last = match.group(1)
            values.setdefault(last, []).append((match.group(2) or "").strip())
        elif last and line.strip():
            values[last][-1] += "\n" + line.strip()
    return values


def loaded(name: str, sysfs: str = "/sys") -> Build | None:
    """The module as the running kernel has it, or None when it is not loaded (or built in without a trace)."""
    folder = Path(sysfs) / "module" / name.replace("-", "_")
    if not folder.is_dir():
        return None

    def text(attribute: str) -> str:
        try:
            return (folder / attribute).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    return Build(srcversion=text("srcversion"), version=text("version"), builtin=not (folder / "initstate").exists())


def on_disk(runner: Runner, name: str, kernel: str) -> Build | None:
    """The module that `modprobe` would load under `kernel` (a release), or None when there is none."""
    ended = runner(["modinfo", "-k", kernel, name], timeout=60.0)
    if ended.rc != 0:
        if "not found" in ended.stderr:
            return None
        raise ToolError(f"`{ended.line}` ended with status {ended.rc}: {ended.stderr.strip()[:200] or 'no message'}")
    values = parse_modinfo(ended.stdout)

    def first(key: str) -> str:
        return values.get(key, [""])[0]

    filename = first("filename")
    return Build(first("srcversion"), first("version"), first("vermagic"), filename, filename == "(builtin)")
