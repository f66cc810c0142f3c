# SPDX-License-Identifier: Apache-2.0
"""Names of RPM packages: name, epoch, version, release and architecture, in one word or in several."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Sequence

VERSION = r"[A-Za-z0-9_][A-Za-z0-9_.+~^]*"
RELEASE = r"[A-Za-z0-9][A-Za-z0-9_.+~-]*"  # of a kernel: a folder of that name is removed with it
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}")
ARCHITECTURE = re.compile(
    r"x86_64(?:_v2)?|i[3-6]86|ia64|aarch64|armv[67]hl|ppc(?:64(?:le)?)?|s390x?|riscv64|loongarch64|noarch|(?:no)?src"
)
_NEVRA = re.compile(rf"({NAME.pattern})-(?:([0-9]{{1,9}}):)?({VERSION})-({VERSION})")


@dataclass(frozen=True)
class Nevra:
    """One package by what names it; `installed` is seconds since 1970, `source` the package that it is built from."""

    name: str
    version: str
    release: str
    architecture: str = ""
    epoch: int = 0
    installed: int | None = None
    source: str = ""

    @property
    def evr(self) -> str:
        """Version and release, with the epoch where there is one."""
        return f"{self.epoch}:{self.version}-{self.release}" if self.epoch else f"{self.version}-{self.release}"

    @property
    def label(self) -> str:
        """As rpm takes it: no other package that is installed has it."""
        return f"{self.name}-{self.version}-{self.release}{'.' if self.architecture else ''}{self.architecture}"


def split_nevra(word: str) -> Nevra | None:
    """`kernel-core-0:5.14.0-427.el9.x86_64`, with epoch and architecture or without; None for another word."""
    bare, _, last = word.rpartition(".")
    architecture = last if ARCHITECTURE.fullmatch(last) else ""
    match = _NEVRA.fullmatch(bare if architecture else word)
    if match is None:
        return None
    name, epoch, version, release = match.groups()
    # without an architecture nothing but the digits tells a package from other words with dashes
    if not all(re.search("[0-9]", part) for part in (version, release)) or not (
        architecture or version[0].isdigit() or name == "gpg-pubkey"
    ):
        return None
    return Nevra(name, version, release, architecture, int(epoch or 0))


_BESIDE = re.compile(r".+-(?:devel|headers|modules(?:-\w+)?|debuginfo|tools|firmware)|linux-(?:headers|modules)-.+")


def split_file(name: str) -> Nevra | None:
    """What the name of a package file (.rpm, .deb) says is in it; None where it follows no rule."""
    deb = re.fullmatch(r"([^_/]+)_([^_/]+)_([a-z0-9]+)\.deb", name)
    if deb:
        return Nevra(deb.group(1), deb.group(2), "", deb.group(3))
    return split_nevra(name[: -len(".rpm")]) if name.endswith(".rpm") else None


def kernel_problem(packages: Sequence[Nevra]) -> str:
    """Why packages are not one kernel with what belongs to it; empty where they are."""
    releases = sorted({f"{each.version}-{each.release}".rstrip("-") for each in packages})
    machines = sorted({each.architecture for each in packages} - {"noarch", "all"})
    for values in (releases, machines):
        if len(values) > 1:
            return f"the packages are of several releases or architectures: {', '.join(values)}"
    names = [each.name for each in packages]
    if all(map(_BESIDE.fullmatch, names)):
        return f"no kernel is among {', '.join(names)}"
    for name in names:
        stem, core, _ = name.rpartition("-core")
        if core and not stem.endswith("-modules") and not {f"{stem}-modules", f"{stem}-modules-core"} & set(names):
            return f"{name} comes without its modules; name {stem}-modules (and {stem}-modules-core) too"
    return ""
