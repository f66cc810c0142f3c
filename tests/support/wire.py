# SPDX-License-Identifier: Apache-2.0
"""What the kernel handed to a SCSI host, as its own tracepoint recorded it: commands, addresses, lengths, flags."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_TRACE = "/sys/kernel/tracing"
RECORD = (
    f"[ -e {_TRACE}/tracing_on ] || mount -t tracefs nodev {_TRACE}; "
    f"echo 0 > {_TRACE}/tracing_on; echo > {_TRACE}/trace; echo 65536 > {_TRACE}/buffer_size_kb; "
    f"echo 1 > {_TRACE}/events/scsi/scsi_dispatch_cmd_start/enable; echo 1 > {_TRACE}/tracing_on"
)
STOP = f"echo 0 > {_TRACE}/tracing_on; echo 0 > {_TRACE}/events/scsi/scsi_dispatch_cmd_start/enable"
READ = f"grep -o 'host_no=.*raw=[0-9a-f ]*' {_TRACE}/trace"
_LINE = re.compile(r"host_no=(\d+) channel=(\d+) id=(\d+) lun=(\d+) .*data_sgl=(\d+) .*raw=([0-9a-f ]+)")
_FUA = 0x08


@dataclass(frozen=True)
class Dispatched:
    """One command: where to (`host:channel:id:lun`), opcode, first block, blocks, whether FUA, pieces of memory."""

    hctl: str
    code: int
    first: int
    blocks: int
    fua: bool
    segments: int


def _block(raw: bytes) -> tuple[int, int]:
    """First block and number of blocks of a command that has them."""
    group = raw[0] >> 5
    if group == 0:
        return int.from_bytes(raw[1:4], "big") & 0x1FFFFF, raw[4] or 256
    if group == 4:
        return int.from_bytes(raw[2:10], "big"), int.from_bytes(raw[10:14], "big")
    if group == 5:
        return int.from_bytes(raw[2:6], "big"), int.from_bytes(raw[6:10], "big")
    return int.from_bytes(raw[2:6], "big"), int.from_bytes(raw[7:9], "big")


def read_wire(text: str) -> list[Dispatched]:
    """The commands of a trace, in their order."""
    commands = []
    for line in text.splitlines():
        match = _LINE.search(line)
        if match:
            raw = bytes.fromhex(match[6].replace(" ", ""))
            first, blocks = _block(raw.ljust(16, b"\0"))
            fua = raw[0] in (0x2A, 0xAA, 0x8A) and bool(raw[1] & _FUA)
            commands.append(Dispatched(":".join(match.group(1, 2, 3, 4)), raw[0], first, blocks, fua, int(match[5])))
    return commands


def recorded(ask: Callable[[str], str], work: Callable[[], None]) -> list[Dispatched]:
    """What was dispatched while `work` was done; `ask` runs a command on the bench."""
    ask(RECORD)
    try:
        work()
    finally:
        ask(STOP)
    return read_wire(ask(READ))


def unseen(
    writes: Iterable[tuple[int, int]], commands: Iterable[Dispatched], codes: Iterable[int]
) -> list[tuple[int, int]]:
    """Writes (first block, blocks) of which no command of these codes went out."""
    wanted = set(codes)
    sent = Counter((one.first, one.blocks) for one in commands if one.code in wanted)
    return [write for write in writes if not sent[write]]
