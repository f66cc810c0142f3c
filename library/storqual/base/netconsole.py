# SPDX-License-Identifier: Apache-2.0
"""Datagrams of netconsole as lines: those that a kernel writes, and the extended form, which numbers its messages."""

import re
import socket

LOST = "did not come by netconsole: "
"""What the note begins with that says how many messages of the kernel are missing."""
_PORT = 6666
"""Where a kernel sends to unless it was told another one; frames of a virtual bench for others are not read."""
_REORDERED = 32
"""A number so far behind the last one was overtaken on its way."""
_US = 1_000_000
# [release,]level,number,microseconds,flags[,more];text
_EXTENDED = re.compile(rb"(?:[^,;\s]{1,64},)?[0-9]{1,4},([0-9]{1,20}),([0-9]{1,20}),[^;\n]{1,200};(.*)", re.DOTALL)


def datagram_of(frame: bytes) -> bytes:
    """What an Ethernet frame carries over IPv4 and UDP to netconsole's port; empty for any other frame."""
    packet = frame[14:]
    if frame[12:14] != b"\x08\x00" or len(packet) < 28 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_UDP:
        return b""
    udp = packet[4 * (packet[0] & 15) :]
    port, length = int.from_bytes(udp[2:4]), int.from_bytes(udp[4:6])
    # a kernel sends pieces that need not be cut on the way
    whole = not int.from_bytes(packet[6:8]) & 0x3FFF
    return udp[8:length] if port == _PORT and whole else b""


class NetconsoleText:
    """The text of datagrams in the order in which they came.

    Of the extended form also which messages did not come. They are no proof of a loss: a kernel sends none below its
    log level, and counts them.
    """

    def __init__(self) -> None:
        self._number, self._us = -1, 0

    def take(self, datagram: bytes) -> tuple[str, bytes]:
        """What is to be noted ahead of it, and its lines, each with its end."""
        match = _EXTENDED.fullmatch(datagram)
        note = "" if match is None else self._missing(int(match[1]), int(match[2]))
        # the time as the kernel writes it where it sends lines
        stamp = b"" if match is None else b"[%5d.%06d] " % divmod(int(match[2]), _US)
        text = (datagram if match is None else match[3]).rstrip(b"\n")
        return note, stamp + text + b"\n" if text else b""

    def _missing(self, number: int, us: int) -> str:
        last, boots = self._number, us + _US < self._us
        if not boots and last - _REORDERED < number <= last:
            return ""
        self._number, self._us = number, us
        missing = 0 if boots or last < 0 else number - last - 1
        return f"{LOST}{missing} messages ahead of number {number}" if missing > 0 else ""
