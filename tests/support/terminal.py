# SPDX-License-Identifier: Apache-2.0
"""Terminals: a stream that says that it is one, and a person at one who types what a program waits for."""

import fcntl
import io
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

INTERRUPT = "\x03"
"""Ctrl-C, which the terminal turns into SIGINT for its foreground processes."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_terminal(
    argv: Sequence[str],
    typed: Sequence[tuple[str | Path, str]],
    *,
    env: Mapping[str, str] | None = None,
    limit_s: float = 120.0,
) -> tuple[int, str]:
    """Exit status and screen of a program; each text is typed once its prompt stands there, or its file is there."""
    screen, after, end = "", 0, time.monotonic() + limit_s
    prompts = list(typed)
    terminal, side = pty.openpty()
    program = subprocess.Popen(
        list(argv),
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        env={**os.environ, **(env or {})},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - it only makes a call of the kernel
    )
    os.close(side)
    try:
        while time.monotonic() < end:
            prompt = prompts[0][0] if prompts else ""
            if prompts and (prompt.exists() if isinstance(prompt, Path) else prompt in screen[after:]):
                after = len(screen)
                os.write(terminal, prompts.pop(0)[1].encode())
            if not select.select([terminal], [], [], 0.5)[0]:
                continue
            try:
                screen += os.read(terminal, 1 << 16).decode("utf-8", "replace")
            except OSError:
                # nobody has the terminal open any more
                return program.wait(max(end - time.monotonic(), 1.0)), screen
        raise AssertionError(f"it did not end within {limit_s:g} s, with on its screen: {screen}")
    finally:
        program.kill()
        program.wait()
        os.close(terminal)
