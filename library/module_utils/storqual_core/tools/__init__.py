# SPDX-License-Identifier: Apache-2.0
"""The rooms for tools, one file each; every tool is imported here by name, so that it is shipped to the bench.

The imports stand inside functions: what is shipped is found by reading the source, but a bench compiles only the
tools that a step uses, which matters where Python starts slowly.
"""

from __future__ import annotations

from types import ModuleType
from typing import Callable, Mapping

__all__ = ["TOOLS"]


def _dpkg() -> ModuleType:
    from . import dpkg  # noqa: PLC0415

    return dpkg


def _grub() -> ModuleType:
    from . import grub  # noqa: PLC0415

    return grub


def _kmod() -> ModuleType:
    from . import kmod  # noqa: PLC0415

    return kmod


def _mdadm() -> ModuleType:
    from . import mdadm  # noqa: PLC0415

    return mdadm


def _nvme() -> ModuleType:
    from . import nvme  # noqa: PLC0415

    return nvme


def _sg3() -> ModuleType:
    from . import sg3  # noqa: PLC0415

    return sg3


TOOLS: Mapping[str, Callable[[], ModuleType]] = {
    "dpkg": _dpkg,
    "grub": _grub,
    "kmod": _kmod,
    "mdadm": _mdadm,
    "nvme": _nvme,
    "sg3": _sg3,
}
"""Every tool of this folder by its name; calling the value imports it."""
