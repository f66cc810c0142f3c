# SPDX-License-Identifier: Apache-2.0
"""sg3_utils: mode pages as bytes (sg_modes), one masked MODE SELECT (sg_wr_mode), blocks marked as unreadable.

Text output of sg_modes is for people and differs between releases; the bytes do not (JSON came after 1.48 and not
for this tool). Exit statuses are those of the sg3_utils manual page, which sdparm shares.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import Mapping, Sequence

from ..kit.command import Completed, Runner
from ..kit.errors import ToolError
from ..kit.settings import ModeField

_SUBPAGE_FORMAT = 0x40
_PROTOCOL_PAGES = (0x18, 0x19)


@dataclass(frozen=True)
class PagePlan:
    """One MODE SELECT: the page with the wanted values, the mask of the bits that change, and what cannot be."""

    contents: bytes
    mask: bytes
    unchangeable: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Nothing to write."""
        return not any(self.mask)


def check_page(data: bytes, page: int, subpage: int) -> bytes:
    """`data` cut to the length the page states. Raises ToolError when it is another page or incomplete."""
    name = f"mode page 0x{page:02x}" + (f"/0x{subpage:02x}" if subpage else "")
    if len(data) < 2:
        raise ToolError(f"{name}: only {len(data)} bytes came back")
    if data[0] & 0x3F != page:
        raise ToolError(f"{name}: the drive answered with page 0x{data[0] & 0x3F:02x}")
    if data[0] & _SUBPAGE_FORMAT:
        if len(data) < 4 or data[1] != subpage:
            raise ToolError(f"{name}: the drive answered with subpage 0x{data[1]:02x}")
        length = 4 + int.from_bytes(data[2:4], "big")
    else:
        if subpage:
            raise ToolError(f"{name}: the drive answered with the page itself, not its subpage")
        length = 2 + data[1]
    if len(data) < length:
        raise ToolError(f"{name}: {len(data)} of {length} bytes came back")
    return data[:length]


def _span(data: bytes, field: ModeField) -> tuple[int, int, int]:
    """First byte, byte count and right shift of a field. Raises ToolError when the page ends before it."""
    last_bit = 7 - field.bit + field.length
    count = (last_bit + 7) // 8
    if field.byte + count > len(data):
        raise ToolError(
            f"mode page 0x{field.page:02x} of this drive has {len(data)} bytes, the field needs {field.byte + count}"
        )
    if field.protocol is not None and field.page in _PROTOCOL_PAGES:
        place = 5 if data[0] & _SUBPAGE_FORMAT else 2
        found = data[place] & 0x0F if place < len(data) else -1
        if found != field.protocol:
            raise ToolError(
                f"mode page 0x{field.page:02x} of this drive is SCSI protocol {found}'s, the field {field.protocol}'s"
            )
    return field.byte, count, count * 8 - last_bit


def get_field(data: bytes, field: ModeField) -> int:
    """The field's value. Raises ToolError when the page is too short or of another transport."""
    first, count, shift = _span(data, field)
    return (int.from_bytes(data[first : first + count], "big") >> shift) & ((1 << field.length) - 1)


def put_field(data: bytes, field: ModeField, value: int) -> bytes:
    """The page with the field set to `value`, every other bit as it was. Raises ToolError, ValueError (too large)."""
    first, count, shift = _span(data, field)
    ones = (1 << field.length) - 1
    if not 0 <= value <= ones:
        raise ValueError(f"{value} does not fit into {field.length} bits")
    word = int.from_bytes(data[first : first + count], "big")
    word = (word & ~(ones << shift)) | (value << shift)
    return data[:first] + word.to_bytes(count, "big") + data[first + count :]


def plan_page(current: bytes, changeable: bytes, wanted: Mapping[str, tuple[ModeField, int]]) -> PagePlan:
    """What one MODE SELECT must carry so that every field in `wanted` (name to place and value) is as wanted.

    Where one field must change the others go with it as they should be: the drive saves a page as a whole. A field
    that must change, of which the drive lets not every bit that must change be changed, is listed as unchangeable;
    then nothing should be written.
    """
    contents, mask = current, bytes(len(current))
    unchangeable = []
    for name, (field, value) in wanted.items():
        if (get_field(current, field) ^ value) & ~changeable_bits(changeable, field):
            unchangeable.append(name)
            continue
        contents = put_field(contents, field, value)
        mask = put_field(mask, _anywhere(field), (1 << field.length) - 1)
    return PagePlan(contents, mask if contents != current else bytes(len(current)), tuple(unchangeable))


def _anywhere(field: ModeField) -> ModeField:
    """The same place without the transport check: a mask has no protocol identifier."""
    return ModeField(field.page, field.subpage, field.byte, field.bit, field.length)


def changeable_bits(changeable: bytes, field: ModeField) -> int:
    """The bits of a field that a drive lets be changed, by its mask of a page; none where the mask ends before it."""
    return get_field(changeable, _anywhere(field)) if len(changeable) > field.byte else 0


CURRENT, CHANGEABLE, DEFAULT, SAVED = range(4)
"""Page control of MODE SENSE."""

_TIMEOUT = 60.0
_UNIT_ATTENTION = 6
_OPCODE_UNSUPPORTED = 9
_NOT_CHANGEABLE = (5, 19)
_OS_ERROR = 50
_OS_ERROR_END = 97

_SENTENCES = {
    1: "the command line was not understood",
    2: "the drive is not ready",
    3: "the drive reports a medium or hardware error",
    5: "the drive refused the request (illegal request)",
    6: "the drive reports a unit attention (it was reset, or something changed) again after a retry",
    7: "the drive is write protected",
    9: "the drive does not know this command",
    11: "the drive aborted the command",
    12: "the drive's port is in standby",
    13: "the drive's port is unavailable",
    14: "the data compared were different",
    15: "a file could not be used",
    16: "the drive is busy with a format, sanitize or rebuild",
    17: "done, with information in the sense data",
    18: "done, with information in the sense data",
    19: "the drive refused a field of the parameter list",
    22: "the block address is out of range",
    24: "another initiator holds a reservation on the drive",
    26: "the drive is busy",
    27: "the drive's task set is full",
    31: "the options given contradict each other",
    33: "the command timed out",
    35: "the transport (adapter, cable or driver) failed",
    36: "the answer is no",
    40: "protection information did not match",
    41: "protection information did not match",
}
_HEX = re.compile(r"^[0-9a-fA-F]{1,2}$")


def status_sentence(status: int) -> str:
    """What an exit status of sg3_utils or sdparm means, in words."""
    if status in _SENTENCES:
        return _SENTENCES[status]
    if _OS_ERROR < status < _OS_ERROR_END:
        code = status - _OS_ERROR
        return f"the operating system refused: {os.strerror(code)} ({errno.errorcode.get(code, code)})"
    if status > 128:
        return f"the tool was ended by signal {status - 128}"
    if status < 0:
        return f"the tool was ended by signal {-status}"
    return f"the tool ended with status {status}, which its manual does not explain"


def parse_hex_bytes(text: str, tool: str = "sg_modes") -> bytes:
    """The bytes of `sg_modes -R`: one or two hexadecimal digits per word. Raises ToolError for anything else."""
    words = text.split()
    wrong = [word for word in words if not _HEX.match(word)]
    if wrong:
        raise ToolError(f"{tool} printed {wrong[0][:40]!r} where a byte was expected")
    return bytes(int(word, 16) for word in words)


def printed_number(text: str) -> int:
    """A number as these tools print it: `0x1f`, `31`, `-1`, `031` (which is decimal)."""
    return int(text, 16 if text.lower().startswith("0x") else 10)


def _ask(runner: Runner, argv: Sequence[str]) -> Completed:
    """Run once, and once more after a unit attention: the first command after a reset only delivers the news."""
    ended = runner(argv, timeout=_TIMEOUT)
    return runner(argv, timeout=_TIMEOUT) if ended.rc == _UNIT_ATTENTION else ended


def _failure(ended: Completed, what: str) -> ToolError:
    said = ended.stderr.strip().splitlines()
    detail = f" ({said[-1].strip()[:200]})" if said else ""
    return ToolError(f"{what}: {status_sentence(ended.rc)}{detail}; command: {ended.line}")


def read_page(runner: Runner, device: str, page: int, subpage: int = 0, control: int = CURRENT) -> bytes:
    """One mode page as bytes. Falls back to the 6-byte command for drives that know no other. Raises ToolError."""
    argv = ["sg_modes", "-R", f"--control={control}", f"--page=0x{page:x},0x{subpage:x}", device]
    ended = _ask(runner, argv)
    if ended.rc == _OPCODE_UNSUPPORTED:
        ended = _ask(runner, [*argv[:1], "--six", *argv[1:]])
    if ended.rc != 0:
        raise _failure(ended, f"reading mode page 0x{page:02x} of {device}")
    return check_page(parse_hex_bytes(ended.stdout), page, subpage)


def write_page(
    runner: Runner, device: str, page: int, subpage: int, contents: bytes, mask: bytes, *, save: bool = False
) -> None:
    """Set the bits of `mask` to those of `contents` in one MODE SELECT; with `save` also for the next power-on.

    The mask is as long as the contents, because sg_wr_mode takes contents beyond a shorter mask unmasked.
    Raises ToolError; a drive that refuses a field is said to have refused, never retried in smaller pieces.
    """
    if len(contents) != len(mask):
        raise ValueError("contents and mask differ in length")
    argv = ["sg_wr_mode", f"--page={page:x},{subpage:x}" if subpage else f"--page={page:x}"]
    if save:
        argv.append("--save")
    argv += [f"--contents={contents.hex(',')}", f"--mask={mask.hex(',')}", device]
    ended = _ask(runner, argv)
    if ended.rc == _OPCODE_UNSUPPORTED:
        ended = _ask(runner, [*argv[:1], "--six", *argv[1:]])
    if ended.rc in _NOT_CHANGEABLE:
        raise _failure(
            ended, f"the drive at {device} says mode page 0x{page:02x} is changeable, yet refused the change"
        )
    if ended.rc != 0:
        raise _failure(ended, f"writing mode page 0x{page:02x} of {device}")


_ASKED, _GIVEN = 252, 8
_RECEIVED = re.compile(r"^Received ([0-9]{1,9}) bytes of data:", re.MULTILINE)


def received_of_short_command(runner: Runner, node: str) -> dict[str, int]:
    """READ CAPACITY(10) with room for more than its eight bytes: `asked`, `given`, `received` by the driver's word.

    A driver tells by the residual of a command how much less came than was asked for. Raises ToolError.
    """
    words = ["sg_raw", "-t", "10", "-r", str(_ASKED), node, "25", *["00"] * 9]
    done = runner(words, timeout=30.0).expect()
    found = _RECEIVED.search(done.stderr) or _RECEIVED.search(done.stdout)
    if found is None:
        raise ToolError(f"`{done.line}` does not say how many bytes it received: {done.last_words()}")
    return {"asked": _ASKED, "given": _GIVEN, "received": int(found.group(1))}


def mark_uncorrectable(runner: Runner, node: str, lba: int) -> None:
    """WRITE LONG with WR_UNCOR: a read of this logical block ends with a medium error until it is written again.

    What the block held is lost. Raises ToolError, also where the drive does not know the command.
    """
    longer = ["--16"] if lba >= 1 << 32 else []
    ended = _ask(runner, ["sg_write_long", *longer, "--wr_uncor", f"--lba={lba}", node])
    if ended.rc != 0:
        raise _failure(ended, f"marking block {lba} as unreadable")
