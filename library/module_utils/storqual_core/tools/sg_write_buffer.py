# SPDX-License-Identifier: Apache-2.0
"""sg_write_buffer (sg3_utils): firmware of SCSI and SAS drives with WRITE BUFFER, segment by segment.

Each segment is a command of its own, so that what was transferred is known, and so that a unit attention in the
middle costs one segment only: a drive that tells one has not done the command (SAM), so it is given again. A drive
says `Microcode has been changed` (3Fh/01h, or 3Fh/16h without a reset) when the image runs.
"""

from __future__ import annotations

import os
import re
import time
from typing import Mapping

from ..kit.command import Completed, Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import first_line
from .capabilities import FirmwareImage
from .sg3 import succeeded

SEGMENT = 4096
"""Bytes of a segment: what sg3_utils' own help recommends, drives differ in how much more they take."""

_TIMEOUT = 600.0
_UNIT_ATTENTION = 6
_ATTEMPTS = 3
_WAIT_S = 60.0
_POLL_S = 1.0
_REVISION = re.compile(r"^\s*Product revision level:\s*(?P<revision>.*?)\s*$", re.MULTILINE)
_CHANGED = re.compile(r"microcode has been changed", re.IGNORECASE)
# SPC-4: download microcode with offsets and save, then start it at the end, or when told, or at a power cycle
_AT_ONCE, _DEFER, _ACTIVATE = "dmc_offs_save", "dmc_offs_defer", "activate_mc"


def parse_revision(text: str) -> str:
    """The revision level that `sg_inq` printed. Raises ToolError when it did not."""
    match = _REVISION.search(text)
    if match is None:
        raise ToolError(f"sg_inq printed no revision level: {first_line(text)}")
    return match.group("revision")


def changed_microcode(text: str) -> bool:
    return bool(_CHANGED.search(text))


def read_versions(runner: Runner, index: str) -> Mapping[str, str]:
    """The drive's revision level, asked of the drive: what the kernel shows is from when it found the drive."""
    ended = _give(runner, ["sg_inq", index], f"the revision of {index} could not be read")
    return {"firmware": parse_revision(ended.stdout)}


def _give(runner: Runner, argv: list[str], what: str, answers: list[str] | None = None) -> Completed:
    """Give a command, and again after a unit attention, whose text goes to `answers`. Raises ToolError."""
    for _ in range(_ATTEMPTS):
        ended = runner(argv, timeout=_TIMEOUT)
        if ended.rc != _UNIT_ATTENTION:
            break
        if answers is not None:
            answers.append(ended.stdout + ended.stderr)
    return succeeded(ended, what)


def download(runner: Runner, index: str, image: FirmwareImage) -> tuple[str, ...]:
    """Transfer all segments: started by the last one with activation `none`, else saved for later. Raises ToolError.

    The error says how many bytes the drive took; a drive does not run half an image, it runs its old one.
    """
    size = os.stat(image.path).st_size  # noqa: PTH116 - one call, on a bench
    if size == 0 or size % 4:
        raise ToolError(f"{image.path} has {size} bytes; an image is some multiple of 4 bytes long")
    mode = _AT_ONCE if image.activation == "none" else _DEFER
    answers: list[str] = []
    for offset in range(0, size, SEGMENT):
        length = min(SEGMENT, size - offset)
        place = [f"--offset={offset}", f"--skip={offset}", f"--length={length}", f"--in={image.path}"]
        argv = ["sg_write_buffer", "--verbose", f"--mode={mode}", *place, index]
        _give(runner, argv, f"{index} took {offset} of {size} bytes of {image.path}", answers)
    if mode == _AT_ONCE:
        answers += _until_ready(runner, index, image)
    seen = [f"{index}: {-(-size // SEGMENT)} segments, {size} bytes transferred"]
    return (
        (*seen, f"{index}: it says that its microcode has been changed")
        if any(map(changed_microcode, answers))
        else tuple(seen)
    )


def activation(runner: Runner, index: str, image: FirmwareImage) -> str:
    """`none` when the last segment started the image, or the drive runs its version; else `reset`."""
    if image.activation == "none":
        return "none"
    return "none" if read_versions(runner, index)["firmware"] == image.version else "reset"


def activate(runner: Runner, index: str, image: FirmwareImage) -> None:
    """Have the drive start what it saved, and wait until it is ready. Raises ToolError.

    It must say that its microcode changed, or run the image's version: a drive that does neither ignored the order.
    """
    ended = runner(["sg_write_buffer", "--verbose", f"--mode={_ACTIVATE}", index], timeout=_TIMEOUT)
    if ended.rc != _UNIT_ATTENTION:
        succeeded(ended, f"{index} did not start the image {image.version}")
    answers = [ended.stdout + ended.stderr, *_until_ready(runner, index, image)]
    if not any(map(changed_microcode, answers)) and read_versions(runner, index)["firmware"] != image.version:
        raise ToolError(f"{index} did not say that its microcode changed, and it does not run {image.version}")


def _until_ready(runner: Runner, index: str, image: FirmwareImage) -> list[str]:
    """Ask until the drive is ready, a minute at most: it may answer nothing at all while it starts. What it told."""
    answers: list[str] = []
    deadline = time.monotonic() + _WAIT_S
    while True:
        ready = runner(["sg_turs", "--verbose", index], timeout=_TIMEOUT)
        answers.append(ready.stdout + ready.stderr)
        if ready.rc == 0:
            return answers
        if time.monotonic() >= deadline:
            succeeded(ready, f"{index} is not ready {_WAIT_S:g} s after it was given {image.version}")
        if ready.rc != _UNIT_ATTENTION:
            # a drive sends no event when it is back
            time.sleep(_POLL_S)
