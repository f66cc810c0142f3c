# SPDX-License-Identifier: Apache-2.0
"""What makes an initramfs: update-initramfs (Debian and its kin) or dracut (the others)."""

from __future__ import annotations

from ..kit.command import Runner
from ..kit.errors import MissingToolError

_MAKERS = ("update-initramfs", "dracut")
# packing one under emulation takes minutes
_TIMEOUT = 1800.0


def rebuild(runner: Runner, release: str, image: str) -> str:
    """Make the initramfs of kernel `release`, which is the file `image`, anew; the command as a sentence's part.

    Raises ToolError; MissingToolError when the bench has neither program.
    """
    commands = (["update-initramfs", "-u", "-k", release], ["dracut", "--force", image, release])
    for command in commands:
        try:
            ended = runner(command, timeout=_TIMEOUT)
        except MissingToolError:
            continue
        return ended.expect().line
    raise MissingToolError(f"none of {', '.join(_MAKERS)} is installed: {image} cannot be made anew")
