# SPDX-License-Identifier: Apache-2.0
"""Whose packages a bench's kernels are: the one of dpkg and rpm that installs, asks and removes on it."""

from __future__ import annotations

from contextlib import suppress

from ..kit.command import Runner, find_program
from ..kit.errors import StorqualError
from ..kit.machine import Machine
from ..tools import TOOLS
from ..tools.capabilities import Packages

_LISTS = "/var/lib/dpkg/info"
_PROGRAMS = {"rpm": "rpm", "dpkg": "dpkg-query"}


def package_manager(machine: Machine, runner: Runner, release: str) -> tuple[str, str]:
    """`dpkg` or `rpm`, whose package the image of the running kernel is from, and the evidence. Raises nothing.

    Where it is from no package, the name is empty, and the evidence is what was looked at.
    """
    places = [f"/boot/vmlinuz-{release}", f"/lib/modules/{release}/vmlinuz", f"/usr/lib/modules/{release}/vmlinuz"]
    images = [place for place in places if machine.exists(place)]
    # a list of files lies beside each package of dpkg, so that it need not be asked
    for name in machine.names(_LISTS):
        if name.endswith(".list") and release and release in name:
            owned = sorted(set(images).intersection(machine.lines(f"{_LISTS}/{name}")))
            if owned:
                return "dpkg", f"{owned[0]} is from package {name[: -len('.list')]}"
    for tool, program in _PROGRAMS.items():
        packages: Packages = TOOLS[tool]()
        for image in images if find_program(machine, program) else ():
            with suppress(StorqualError):
                package = packages.owner(runner, image)
                if package:
                    return tool, f"{image} is from package {package}"
    return "", f"{', '.join(images or places)} {'is from no package of rpm or dpkg' if images else 'are not there'}"


def packages_of(machine: Machine, runner: Runner, release: str) -> Packages:
    """What installs packages on this bench; with a kernel that is from no package, the one that is installed."""
    name, _ = package_manager(machine, runner, release)
    alone = find_program(machine, "rpm") and not find_program(machine, "dpkg-query")
    tool: Packages = TOOLS[name or ("rpm" if alone else "dpkg")]()
    return tool
