# SPDX-License-Identifier: Apache-2.0
"""Ansible's connection to a bench, for what outlasts one command: a stream that is followed, acts beside it, a cut.

The words of each command are those of Ansible's connection plugin, so there is one configuration of SSH, one master
connection, and one place where a lab says how its benches are reached.
"""

from __future__ import annotations

import json
import posixpath
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from storqual.base import child
from storqual_core.kit.errors import StorqualError

_COMMAND_S = 60.0
SILENCE_S = 0.5
"""After so long without a line a stream says that it is silent."""
_AGAIN_S = 1.0
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
    _follower: subprocess.Popen[bytes] | None = field(default=None, init=False)

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
        if self._follower is not None:
            self._follower.kill()

    def lines(self, path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
        """The JSON lines of a growing file as they come, None in every half second of silence.

        A connection that is lost is made again, and goes on behind the last whole line. Ends with a line of kind
        `end`, with `limit_s` seconds, or when the caller stops asking.
        """
        offset, end = 0, time.monotonic() + limit_s
        while time.monotonic() < end:
            self._follower = child.start(
                list(self.words(f"tail -c +{offset + 1} -f {shlex.quote(path)}")),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            try:
                for line in _of_follower(self._follower, end):
                    if line is None:
                        yield None
                        continue
                    if self.greeting and line.decode("utf-8", "replace").strip() == self.greeting:
                        continue
                    offset += len(line)
                    body = json.loads(line)
                    yield body
                    if body.get("kind") == "end":
                        return
            finally:
                self._follower.kill()
                self._follower.wait()
            yield None
            time.sleep(_AGAIN_S)


def _of_follower(follower: subprocess.Popen[bytes], end: float) -> Iterator[bytes | None]:
    """Whole lines of one connection; ends when it does."""
    assert follower.stdout is not None  # noqa: S101 - it was started with a pipe
    rest = b""
    while time.monotonic() < end:
        ready, _, _ = select.select([follower.stdout], [], [], SILENCE_S)
        if not ready:
            yield None
            continue
        data = follower.stdout.read1(1 << 16)  # type: ignore[attr-defined]
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line + b"\n"
