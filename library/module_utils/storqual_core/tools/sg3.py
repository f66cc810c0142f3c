# SPDX-License-Identifier: Apache-2.0
"""sg3_utils: mode pages as bytes (sg_modes) and one masked MODE SELECT (sg_wr_mode); exit statuses as sentences.

Text output of sg_modes is for people and differs between releases; the bytes do not (JSON came after 1.48 and not
for this tool). Exit statuses are those of the sg3_utils manual page, which sdparm shares.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Sequence

from ..command import Completed, Runner
from ..errors import ToolError
from ..mode_page import check_page

__all__ = [
    "CHANGEABLE",
    "CURRENT",
    "DEFAULT",
    "SAVED",
    "parse_hex_bytes",
    "printed_number",
    "read_page",
    "status_sentence",
    "write_page",
]

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
