# SPDX-License-Identifier: Apache-2.0
"""Ansible's connection to a bench, for what outlasts one command: a stream that is followed, acts beside it, a cut.

The words of each command are those of Ansible's connection plugin, so there is one configuration of SSH, one master
connection, and one place where a lab says how its benches are reached.
"""

from __future__ import annotations

import posixpath
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from storqual.base import child
from storqual_core.kit.errors import StorqualError

_COMMAND_S = 60.0
_OF_SSH = 255
"""The exit status of ssh itself."""


class ConnectionLostError(StorqualError):
    """The bench did not answer, or a command on it failed."""


@dataclass
class Connection:
    """One bench; safe from several threads. `words` makes of a shell command what is run here to have it run there.

    `parting` is what ends the connection without a word to what runs on the bench, `greeting` a line that comes
    before the output of every command (of sudo, by Ansible).
    """

    host: str
    words: Callable[[str], Sequence[str]]
    parting: Sequence[str]
    greeting: str = ""
    _lasting: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def call(self, command: str, *, data: bytes = b"", limit_s: float = _COMMAND_S) -> tuple[int, str]:
        """Exit status of a shell command on the bench, and what it printed, or its complaint where it failed.

        Raises ConnectionLostError when it does not end in time, or the connection is lost.
        """
        try:
            ended = child.run(list(self.words(command)), input=data, capture_output=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise ConnectionLostError(f"{self.host} did not end `{command[:80]}` within {limit_s:g} s") from None
        complaint = ended.stderr.decode("utf-8", "replace").strip()
        if ended.returncode == _OF_SSH:
            last = complaint.splitlines() or ["no message"]
            raise ConnectionLostError(f"`{command[:80]}` on {self.host} ended with {_OF_SSH}: {last[-1]}")
        said = ended.stdout.decode("utf-8", "replace").removeprefix(f"{self.greeting}\n" if self.greeting else "")
        return ended.returncode, complaint or said if ended.returncode else said

    def run(self, command: str, *, data: bytes = b"", limit_s: float = _COMMAND_S) -> str:
        """What a shell command on the bench prints. Raises ConnectionLostError, also when it fails."""
        status, said = self.call(command, data=data, limit_s=limit_s)
        if status:
            last = said.splitlines() or ["no message"]
            raise ConnectionLostError(f"`{command[:80]}` on {self.host} ended with {status}: {last[-1]}")
        return said

    def put(self, data: bytes, path: str) -> None:
        """Write a file on the bench; its name has all of it, also after a power cut. Raises ConnectionLostError."""
        quoted, folder = shlex.quote(path), shlex.quote(posixpath.dirname(path))
        self.run(
            f"mkdir -p {folder} && cat > {quoted}.part && sync {quoted}.part && mv {quoted}.part {quoted}", data=data
        )

    def boot_id(self, *, limit_s: float = _COMMAND_S) -> str:
        """Which boot the bench runs. Raises ConnectionLostError."""
        return self.run("cat /proc/sys/kernel/random/boot_id", limit_s=limit_s).strip()

    def cut(self) -> None:
        """End the connection as a lost one ends: without a word to what runs on the bench."""
        child.run(list(self.parting), capture_output=True, timeout=_COMMAND_S)
        if self._lasting is not None:
            self._lasting.kill()

    @contextmanager
    def lasting(self, command: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that runs there until it is left, or the connection is cut; its output comes by a pipe."""
        self._lasting = child.start(
            list(self.words(command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield self._lasting
        finally:
            self._lasting.kill()
            self._lasting.wait()
