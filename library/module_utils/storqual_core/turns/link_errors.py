# SPDX-License-Identifier: Apache-2.0
"""Errors of PCI Express reported of the adapter under test: the kernel's own injector, and what the kernel counted.

The injector (module aer_inject, CONFIG_PCIEAER_INJECT) shows the error in the adapter's registers and raises the
interrupt of the port above it. The kernel then reports, counts and recovers as it would for an error of the link; the
hardware itself sees none.
"""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass
from typing import Callable

from ..kit.errors import ToolError
from ..kit.quantities import is_whole
from .aim import Aim, Tell

INJECTOR = "/dev/aer_inject"
# bus, device and function; uncorrectable and correctable status; four words of a header; domain: as the kernel's
# drivers/pci/pcie/aer_inject.c lays it out
_REQUEST = struct.Struct("=3Bx2I4II")
_LOOK_S = 0.05


@dataclass(frozen=True)
class LinkError:
    """One error by its bits in the registers of PCI Express, and the kernel's file that counts errors of its kind."""

    uncorrectable: int
    correctable: int
    counter: str

    def request(self, pci: str) -> bytes:
        """What the injector takes for the PCI function `pci` (`0000:3b:00.0`)."""
        domain, bus, place = pci.split(":")
        device, function = place.split(".")
        where = (int(bus, 16), int(device, 16), int(function, 16))
        return _REQUEST.pack(*where, self.uncorrectable, self.correctable, 0, 0, 0, 0, int(domain, 16))


CORRECTED = LinkError(0, 0x1, "aer_dev_correctable")
"""Receiver error."""
NOT_FATAL = LinkError(0x4000, 0, "aer_dev_nonfatal")
"""Completion timeout."""
FATAL = LinkError(0x10, 0, "aer_dev_fatal")
"""Data link protocol error: the kernel resets the link."""


def counted(aim: Aim, error: LinkError) -> int:
    """How many errors of that kind the kernel has counted of the adapter. Raises ToolError when it does not count."""
    place = f"/sys/bus/pci/devices/{aim.drive.adapter}/{error.counter}"
    for line in aim.machine.lines(place):
        name, _, number = line.strip().rpartition(" ")
        if name.startswith("TOTAL_ERR_") and is_whole(number):
            return int(number)
    raise ToolError(f"{place} has no line TOTAL_ERR_ with a number: the kernel counts no such errors of the adapter")


def inject(error: LinkError) -> Callable[[Aim, Tell], None]:
    """The way that reports `error` of the adapter, once."""

    def way(aim: Aim, tell: Tell) -> None:
        before, request = counted(aim, error), error.request(aim.drive.adapter)
        try:
            descriptor = os.open(aim.machine.path(INJECTOR), os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, request)
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise ToolError(f"the kernel does not inject into {aim.drive.adapter}: {problem.strerror}") from problem
        tell("injected", f"the kernel took an error of {aim.drive.adapter}")
        end = time.monotonic() + aim.limit_s
        while (now := counted(aim, error)) <= before:
            if time.monotonic() > end:
                raise ToolError(f"{error.counter} of {aim.drive.adapter} stayed at {before} for {aim.limit_s:g} s")
            time.sleep(_LOOK_S)
        tell("counted", f"{error.counter} of {aim.drive.adapter} was {before}, is {now}")

    return way
