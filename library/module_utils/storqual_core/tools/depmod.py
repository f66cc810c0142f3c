# SPDX-License-Identifier: Apache-2.0
"""depmod's configuration: where it looks for modules, and which of several files of one module it takes.

depmod.d(5): `override MODULE KERNEL FOLDER` comes first, then the order of `search`, whose `built-in` is every folder
that no other word names. A link in `weak-updates` loses to the kernel's own driver where `built-in` stands before it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Sequence

from ..kit.machine import Machine

FOLDERS = ("/etc/depmod.d", "/run/depmod.d", "/usr/local/lib/depmod.d", "/lib/depmod.d", "/usr/lib/depmod.d")
OWN_ORDER = ("updates", "built-in")
"""depmod's order where no file has a line `search`."""
_BUILT_IN = "built-in"


def config_lines(machine: Machine, word: str) -> list[tuple[str, list[str]]]:
    """The lines of depmod's configuration that begin with a word, with the file of each, in depmod's order.

    A file hides those of the same name in folders further back.
    """
    files: dict[str, str] = {}
    for folder in FOLDERS:
        for name in machine.names(folder):
            files.setdefault(name, f"{folder}/{name}")
    return [
        (files[name], line.split()[1:])
        for name in sorted(files)
        if name.endswith(".conf")
        for line in machine.lines(files[name])
        if line.split()[:1] == [word]
    ]


def search_order(machine: Machine) -> tuple[str, ...]:
    """The folders of a kernel where a module is looked for; the first one that has it wins."""
    return tuple(word for _, words in config_lines(machine, "search") for word in words) or OWN_ORDER


@dataclass(frozen=True)
class Override:
    """A module whose place is named, whatever the order says; `file` is where that is written."""

    module: str
    kernel: str
    folder: str
    file: str

    @property
    def words(self) -> str:
        return f"override {self.module} {self.kernel} {self.folder}"

    def names(self, place: str, release: str) -> bool:
        """Whether it names the file at `place` (below the folder of kernel `release`)."""
        stem = module_stem(place)
        fits = self.kernel == "*"
        with suppress(re.error):
            fits = fits or bool(re.search(self.kernel, release))
        return fits and f"{self.folder}/{self.module}".replace("-", "_") == stem.replace("-", "_")


def module_stem(place: str) -> str:
    """The place of a module's file without its ending: `extra/hba/hba.ko.xz` is `extra/hba/hba`."""
    path = PurePosixPath(place)
    return str(path.with_name(path.name.partition(".ko")[0]))


def parse_overrides(text: str, file: str) -> tuple[Override, ...]:
    """The lines `override` of one file; others are not looked at."""
    rows = (line.split() for line in text.split("\n"))
    return tuple(
        Override(words[1], words[2], words[3], file) for words in rows if len(words) == 4 and words[0] == "override"
    )


def overrides(machine: Machine) -> tuple[Override, ...]:
    lines = config_lines(machine, "override")
    return tuple(Override(words[0], words[1], words[2], file) for file, words in lines if len(words) == 3)


def winner(places: Sequence[str], order: Sequence[str], named: Sequence[Override], release: str) -> str:
    """The one of several files of a module that depmod takes for a kernel; empty without any."""

    def rank(place: str) -> tuple[int, int]:
        override = next((number for number, each in enumerate(named) if each.names(place, release)), len(named))
        rest = order.index(_BUILT_IN) if _BUILT_IN in order else len(order)
        at = next((n for n, word in enumerate(order) if word != _BUILT_IN and place.startswith(f"{word}/")), rest)
        return override, at

    return min(places, key=rank, default="")
