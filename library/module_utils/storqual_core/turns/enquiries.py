# SPDX-License-Identifier: Apache-2.0
"""Commands by which monitoring asks a drive for its state while it works, and what the drive answers to them.

A driver or a drive may lose what it is working on when such a command comes between, or give one's answer to another.
Command blocks are as SPC-5 and SBC-4 have them.
"""

from __future__ import annotations

import errno
from typing import Callable, Mapping

from .integrity_load import OTHER_ANSWER, OTHER_DATA
from .scsi_command import CHECK_CONDITION, ILLEGAL_REQUEST, UNIT_ATTENTION, CommandEnd, send

ENQUIRIES: Mapping[str, tuple[bytes, int]] = {
    "TEST UNIT READY": (bytes(6), 0),
    "REQUEST SENSE": (bytes((0x03, 0, 0, 0, 252, 0)), 252),
    "INQUIRY": (bytes((0x12, 0, 0, 0, 96, 0)), 96),
    "INQUIRY of page 83h": (bytes((0x12, 1, 0x83, 0, 252, 0)), 252),
    "MODE SENSE(6)": (bytes((0x1A, 0, 0x3F, 0, 252, 0)), 252),
    "MODE SENSE(10)": (bytes((0x5A, 0, 0x3F, 0, 0, 0, 0, 2, 0, 0)), 512),
    "LOG SENSE": (bytes((0x4D, 0, 0x40, 0, 0, 0, 0, 2, 0, 0)), 512),
    "READ CAPACITY(10)": (bytes((0x25, *bytes(9))), 8),
    "READ CAPACITY(16)": (bytes((0x9E, 0x10, *bytes(11), 32, 0, 0)), 32),
    "REPORT LUNS": (bytes((0xA0, *bytes(7), 1, 0, 0, 0)), 256),
}
"""Command block, and bytes of the answer at most."""
ORDER = tuple(ENQUIRIES)
"""An enquiry is told by its place in it, where a read has its sector."""
_CHANGING = ("REQUEST SENSE", "LOG SENSE")
"""Of these a drive answers otherwise from one moment to the next."""


class Enquirer:
    """Asks a SCSI drive by SG_IO. Each is asked once before there is any load: what cannot be sent then is lacking.

    `lack` takes what is lacking and why. That a drive refuses a command is an answer too, which must stay; without
    `refused` what it refuses is not asked again.
    """

    def __init__(self, descriptor: int, lack: Callable[[str, str], None], *, refused: bool = True) -> None:
        self._descriptor = descriptor
        self._answers: dict[str, bytes] = {}
        for name in ENQUIRIES:
            try:
                answer, is_refusal = self._answer(name)
            except OSError as problem:
                lack(name, problem.strerror or str(problem))
                continue
            if refused or not is_refusal:
                self._answers[name] = answer

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._answers)

    def ask(self, name: str) -> None:
        """Raises OSError where it fails, and with OTHER_DATA for an answer that differs from the first one."""
        if self._answer(name)[0] != self._answers[name] and name not in _CHANGING:
            raise OSError(OTHER_DATA[OTHER_ANSWER], f"{name} was answered otherwise than before")

    def _answer(self, name: str) -> tuple[bytes, bool]:
        """The answer, and whether it is a refusal."""
        command, size = ENQUIRIES[name]
        data = memoryview(bytearray(size))

        def sent() -> CommandEnd:
            return send(self._descriptor, command, [data] if size else [], reads=True)

        end = sent()
        if end.key == UNIT_ATTENTION:
            end = sent()
        if end.status == CHECK_CONDITION and end.key == ILLEGAL_REQUEST:
            return end.told.encode(), True
        if end.status or end.host:
            raise OSError(errno.EIO, end.told)
        return bytes(data[: size - max(0, end.residual)]), False
