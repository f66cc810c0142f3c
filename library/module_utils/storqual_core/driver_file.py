# SPDX-License-Identifier: Apache-2.0
"""A prebuilt kernel module: is it the file that was declared, for this kernel, and will this kernel take it.

Everything is decided from the file and the running kernel before the file is copied anywhere.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from .command import Runner
from .errors import ToolError
from .machine import Machine
from .tools import kmod

__all__ = ["ModuleFile", "objections", "place_of", "read_module_file"]

FOLDER = "updates/storqual"


@dataclass(frozen=True)
class ModuleFile:
    """What a module file says of itself, and its digest; `signer` is empty for one that is not signed.

    `needs`: the modules that must be loaded before it.
    """

    path: str
    name: str
    sha256: str
    build: kmod.Build
    signer: str
    needs: tuple[str, ...] = ()


def read_module_file(runner: Runner, path: str) -> ModuleFile:
    """Read a module file. Raises ToolError when it cannot be read or is no kernel module."""
    try:
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem
    records = kmod.parse_modinfo(runner(["modinfo", path], timeout=60.0).expect().stdout)
    values = {key: texts[0] for key, texts in records[0].items()} if records else {}
    if not values.get("vermagic"):
        raise ToolError(f"{path} is no kernel module: it has no vermagic")
    name = values.get("name") or Path(path).name.partition(".")[0]
    build = kmod.Build(values.get("srcversion", ""), values.get("version", ""), values["vermagic"], path)
    needs = tuple(word for word in values.get("depends", "").split(",") if word)
    return ModuleFile(path, name.replace("-", "_"), digest, build, values.get("signer", "").strip(), needs)


def objections(file: ModuleFile, sha256: str, machine: Machine, release: str, native: kmod.Build | None) -> list[str]:
    """Every reason against loading a module file. `native`: the kernel's own build, whose vermagic must agree."""
    found = []
    if sha256 and file.sha256 != sha256.lower():
        found.append(f"{file.path}: its SHA-256 is {file.sha256}, {sha256} is declared")
    words = file.build.vermagic.split()
    if words[0] != release:
        found.append(f"{file.path} is built for kernel {words[0]}, kernel {release} is to load it")
    elif native is not None and native.vermagic and native.vermagic.split() != words:
        found.append(f"{file.path} is built as '{file.build.vermagic}', this kernel as '{native.vermagic}'")
    if not file.build.srcversion:
        found.append(
            f"{file.path} has no srcversion, so that it could not be told from another build once it is loaded: "
            "build it with MODULE_VERSION, or with CONFIG_MODULE_SRCVERSION_ALL"
        )
    why = _enforced(machine)
    if why and not file.signer:
        found.append(f"{file.path} is not signed, and this kernel loads signed modules only ({why})")
    return found


def _enforced(machine: Machine) -> str:
    """Why the kernel wants signatures, as part of a sentence; empty when it does not."""
    if machine.text("/sys/module/module/parameters/sig_enforce") == "Y":
        return "module.sig_enforce"
    chosen = [word for word in machine.text("/sys/kernel/security/lockdown").split() if word.startswith("[")]
    return f"lockdown {chosen[0]}" if chosen and chosen[0] != "[none]" else ""


def place_of(file: ModuleFile, release: str) -> str:
    """Where a prebuilt module is put: depmod searches `updates` before the kernel's own modules (depmod.d(5))."""
    suffix = "".join(Path(file.path).suffixes[-2:]) if file.path.endswith((".xz", ".zst", ".gz")) else ".ko"
    return f"/lib/modules/{release}/{FOLDER}/{file.name}{suffix}"
