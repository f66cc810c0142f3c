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

_NO_LENGTH = slice(0)
ENQUIRIES: Mapping[str, tuple[bytes, int, slice]] = {
    "TEST UNIT READY": (bytes(6), 0, _NO_LENGTH),
    "REQUEST SENSE": (bytes((0x03, 0, 0, 0, 0, 0)), 252, slice(4, 5)),
    "INQUIRY": (bytes((0x12, 0, 0, 0, 0, 0)), 96, slice(3, 5)),
    "INQUIRY of page 83h": (bytes((0x12, 1, 0x83, 0, 0, 0)), 252, slice(3, 5)),
    "MODE SENSE(6)": (bytes((0x1A, 0, 0x3F, 0, 0, 0)), 252, slice(4, 5)),
    "MODE SENSE(10)": (bytes((0x5A, 0, 0x3F, 0, 0, 0, 0, 0, 0, 0)), 512, slice(7, 9)),
    "LOG SENSE": (bytes((0x4D, 0, 0x40, 0, 0, 0, 0, 0, 0, 0)), 512, slice(7, 9)),
    "READ CAPACITY(10)": (bytes((0x25, *bytes(9))), 8, _NO_LENGTH),
    "READ CAPACITY(16)": (bytes((0x9E, 0x10, *bytes(14))), 32, slice(10, 14)),
    "REPORT LUNS": (bytes((0xA0, *bytes(11))), 256, slice(6, 10)),
}
"""Command block, bytes of the answer at most, and where the block has them (its allocation length)."""
ORDER = tuple(ENQUIRIES)
"""An enquiry is told by its place in it, where a read has its sector."""
_CHANGING = ("REQUEST SENSE", "LOG SENSE")
"""Of these a drive answers otherwise from one moment to the next."""
_HEAD = 8
_LEAST = 16
"""Bytes that each of these commands must be able to give room for; REPORT LUNS has the most."""


class Enquirer:
    """Asks a SCSI drive by SG_IO. Each is asked once before there is any load: what cannot be sent then is lacking.

    `lack` takes what is lacking and why. That a drive refuses a command is an answer too, which must stay; without
    `refused` what it refuses is not asked again.
    """

    def __init__(self, descriptor: int, lack: Callable[[str, str], None], *, refused: bool = True) -> None:
        self._descriptor = descriptor
        self._answers: dict[str, tuple[bytes, bool]] = {}
        for name in ENQUIRIES:
            try:
                answer = self._answer(name)
            except OSError as problem:
                lack(name, problem.strerror or str(problem))
                continue
            if refused or not answer[1]:
                self._answers[name] = answer

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._answers)

    def ask(self, name: str) -> None:
        """Raises OSError where it fails, and with OTHER_DATA for an answer that differs from the first one."""
        if self._answer(name) != self._answers[name] and name not in _CHANGING:
            raise OSError(OTHER_DATA[OTHER_ANSWER], f"{name} was answered otherwise than before")

    def ask_shorter(self, name: str) -> None:
        """With room for less than the whole answer, which has to be its beginning (SPC-5, 4.2.5.6).

        Such a transfer ends within a sector, a word or a segment. The head, in which some drives say the length that
        they were given room for, is not compared. Raises OSError as `ask` does.
        """
        whole, is_refused = self._answers[name]
        if is_refused or ENQUIRIES[name][2] == _NO_LENGTH or name in _CHANGING:
            return
        # an adapter that tells no residual leaves zeros behind what came
        end = len(whole.rstrip(bytes(1)))
        for size in sorted({end - 1, end - 2, end * 2 // 3 | 1, end // 2 | 1}):
            if size < _LEAST:
                continue
            answer, is_refused = self._answer(name, size)
            if not is_refused and (len(answer) < size or answer[_HEAD:] != whole[_HEAD:size]):
                raise OSError(OTHER_DATA[OTHER_ANSWER], f"{name} of {size} bytes is not the beginning of the whole")

    def _answer(self, name: str, room: int | None = None) -> tuple[bytes, bool]:
        """The answer, and whether it is a refusal."""
        block, size, length = ENQUIRIES[name]
        size = size if room is None else room
        command = bytearray(block)
        if length != _NO_LENGTH:
            command[length] = size.to_bytes(length.stop - length.start, "big")
        data = memoryview(bytearray(size))

        def sent() -> CommandEnd:
            return send(self._descriptor, bytes(command), [data] if size else [], reads=True)

        end = sent()
        if end.key == UNIT_ATTENTION:
            end = sent()
        if end.status == CHECK_CONDITION and end.key == ILLEGAL_REQUEST:
            return end.description.encode(), True
        if end.status or end.host:
            raise OSError(errno.EIO, end.description)
        return bytes(data[: size - max(0, end.residual)]), False
