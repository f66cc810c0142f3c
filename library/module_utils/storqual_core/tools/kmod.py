# SPDX-License-Identifier: Apache-2.0
"""Kernel modules: which build is loaded, which lies on disk, which is in the initramfs.

A build is named by `srcversion` (a digest of its sources) and, where its authors give one, `version`. The kernel
package alone does not tell two drivers apart: the same sources may be in many of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.machine import read_attribute

_ONCE = ("filename", "name")
_KEY = re.compile(r"^([a-z_]+):(?:\s+(.*))?$")


@dataclass(frozen=True)
class Build:
    """One build of a module; a field that its file does not have is empty. A built-in module has `builtin`."""

    srcversion: str = ""
    version: str = ""
    vermagic: str = ""
    filename: str = ""
    builtin: bool = False


def parse_modinfo(text: str) -> list[dict[str, list[str]]]:
    """`modinfo` of one module or several: for each its keys to their values in order.

    `parm` and `signature` go on in lines that have no key. A module's record starts with `filename`, that of a
    built-in one with `name`; both come once in a record. Raises ToolError for a text that starts with neither.
    """
    records: list[dict[str, list[str]]] = []
    last = ""
    for line in dedent(text).splitlines():
        match = _KEY.match(line)
        if match:
            last = match.group(1)
            if not records and last not in _ONCE:
                raise ToolError(f"modinfo printed {line[:80]!r} of a module that it does not name")
            if not records or (last in _ONCE and last in records[-1]):
                records.append({})
            records[-1].setdefault(last, []).append((match.group(2) or "").strip())
        elif last and line.strip():
            records[-1][last][-1] += "\n" + line.strip()
    if not records and text.strip():
        raise ToolError(f"modinfo printed {text.strip()[:80]!r}, which is of no module")
    return records


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


def on_disk(runner: Runner, names: Sequence[str], kernel: str) -> dict[str, Build | None]:
    """The modules that `modprobe` would load under `kernel` (a release), in one call; None for one that is not there.

    Raises ToolError when modinfo fails for another reason than a missing module.
    """
    if not names:
        return {}
    ended = runner(["modinfo", "-k", kernel, *names], timeout=60.0)
    others = [line for line in ended.stderr.splitlines() if line.strip() and "not found" not in line]
    if ended.rc != 0 and (others or not ended.stderr.strip()):
        message = (others or ["no message"])[0].strip()[:200]
        raise ToolError(f"`{ended.line}` ended with status {ended.rc}: {message}")
    builds: dict[str, Build | None] = dict.fromkeys(names)
    by_module = {name.replace("-", "_"): name for name in names}
    for record in parse_modinfo(ended.stdout):
        values = {key: texts[0] for key, texts in record.items()}
        filename = values.get("filename", "")
        module = values.get("name") or Path(filename).name.partition(".")[0]
        name = by_module.get(module.replace("-", "_"))
        if name is not None:
            builds[name] = Build(
                srcversion=values.get("srcversion", ""),
                version=values.get("version", ""),
                vermagic=values.get("vermagic", ""),
                filename=filename,
                builtin=filename == "(builtin)",
            )
    return builds


def parameters(runner: Runner, name: str, kernel: str) -> dict[str, str]:
    """The parameters that a module says it has, each with what it says of it. Raises ToolError.

    `parm` may stand twice for one parameter: once with its meaning, once with its type alone.
    """
    ended = runner(["modinfo", "-k", kernel, name], timeout=60.0).expect()
    meanings: dict[str, str] = {}
    for record in parse_modinfo(ended.stdout):
        for text in record.get("parm", ()):
            parameter, _, meaning = text.partition(":")
            meanings[parameter.strip()] = meanings.get(parameter.strip()) or meaning.strip()
    return meanings


def loaded_parameter(name: str, parameter: str, sysfs: str = "/sys") -> str | None:
    """A parameter's value as the loaded module shows it; None where it does not show it, or is not loaded."""
    return read_attribute(Path(sysfs) / "module" / name.replace("-", "_") / "parameters" / parameter)


def show_config(runner: Runner) -> str:
    """All configuration of modprobe, the words of the kernel's command line included. Raises ToolError."""
    return runner(["modprobe", "--showconfig"], timeout=120.0).expect().stdout
