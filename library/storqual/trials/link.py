# SPDX-License-Identifier: Apache-2.0
"""The control node's connection to a bench while a trial runs: commands, files, and a stream that survives a cut."""

from __future__ import annotations

import json
import posixpath
import select
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storqual.base import child
from storqual_core.kit.errors import StorqualError

_COMMAND_S = 60.0
SILENCE_S = 0.5
"""After so long without a line a stream says that it is silent."""
_AGAIN_S = 1.0


class LinkError(StorqualError):
    """The bench did not answer, or a command on it failed."""


@dataclass
class Link:
    """SSH to one bench; `options` are ssh's own words, such as `-F <file>`. One master connection carries all."""

    host: str
    options: Sequence[str]
    control: Path
    _follower: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def _words(self) -> list[str]:
        shared = ["-o", "ControlMaster=auto", "-o", f"ControlPath={self.control}", "-o", "ControlPersist=600"]
        return [
            "ssh",
            "-o",
            "BatchMode=yes",
            "-o",
            "ServerAliveInterval=5",
            "-o",
            "ConnectTimeout=10",
            *self.options,
            *shared,
            self.host,
        ]

    def run(self, command: str, *, data: bytes = b"", limit_s: float = _COMMAND_S) -> str:
        """What a shell command on the bench prints. Raises LinkError when it fails or does not end in time."""
        try:
            ended = child.run([*self._words(), command], input=data, capture_output=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise LinkError(f"{self.host} did not end `{command[:80]}` within {limit_s:g} s") from None
        if ended.returncode:
            said = ended.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
            raise LinkError(f"`{command[:80]}` on {self.host} ended with {ended.returncode}: {said[-1]}")
        return str(ended.stdout, "utf-8", "replace")

    def put(self, data: bytes, path: str) -> None:
        """Write a file on the bench."""
        quoted, folder = shlex.quote(path), shlex.quote(posixpath.dirname(path))
        self.run(f"mkdir -p {folder} && cat > {quoted}.part && mv {quoted}.part {quoted}", data=data)

    def cut(self) -> None:
        """End the connection as a lost one ends: without a word to what runs on the bench."""
        child.run([*self._words()[:-1], "-O", "exit", self.host], capture_output=True, timeout=_COMMAND_S)
        if self._follower is not None:
            self._follower.kill()

    def lines(self, path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
        """The JSON lines of a growing file as they come, None in every half second of silence.

        A connection that is lost is made again, and goes on behind the last whole line. Ends with a line of kind
        `end`, with `limit_s` seconds, or when the caller stops asking.
        """
        offset, end = 0, time.monotonic() + limit_s
        while time.monotonic() < end:
            command = f"tail -c +{offset + 1} -f {shlex.quote(path)}"
            self._follower = child.start(
                [*self._words(), command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            try:
                for line in self._of_follower(self._follower, end):
                    if line is None:
                        yield None
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

    @staticmethod
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

    def close(self) -> None:
        """End the master connection."""
        self.cut()
