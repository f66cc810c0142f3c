# SPDX-License-Identifier: Apache-2.0
"""Follow one block that a bench runs by itself: start it, fetch what it finished, tell how far it is.

The bench is reached by short shell commands only. A slow bench (an emulated one above all) must not spend its
processor on answering questions while it measures, and a Python start-up a second would be just that.
"""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from storqual_core.errors import StorqualError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BlockEnd", "BlockPaths", "Progress", "Shell", "UnreachableError", "follow"]

_MARK = "--storqual--"
_REFUSED = 4


class UnreachableError(StorqualError):
    """The bench does not answer right now; what it measures goes on."""


class Shell(Protocol):
    """One way to run a command on the bench."""

    def __call__(self, command: str) -> tuple[int, str, str]:
        """Return exit status, stdout, stderr. Raises UnreachableError when the connection is lost."""


@dataclass(frozen=True)
class BlockPaths:
    """Where a block lives on its bench."""

    program: str
    block_file: str
    spool: str
    progress: str
    lock: str
    python: str = "python3"


@dataclass(frozen=True)
class Progress:
    """How far a block is, as its bench last said."""

    block: str
    index: int
    of: int
    point: str
    iops_now: float | None
    eta_s: float | None


@dataclass(frozen=True)
class BlockEnd:
    """How a block ended: `outcome` is done, refused, stopped or died."""

    outcome: str
    message: str
    samples: int


def _parse_progress(text: str) -> Progress | None:
    """The bench's progress file; None while there is none or it is being replaced."""
    try:
        body: Mapping[str, object] = json.loads(text)
    except ValueError:
        return None
    iops, eta = body.get("iops_now"), body.get("eta_s")
    return Progress(
        block=str(body.get("block", "")),
        index=int(str(body.get("index", 0))),
        of=int(str(body.get("of", 0))),
        point=str(body.get("point", "")),
        iops_now=float(iops) if isinstance(iops, (int, float)) else None,
        eta_s=float(eta) if isinstance(eta, (int, float)) else None,
    )


def follow(
    shell: Shell,
    paths: BlockPaths,
    *,
    collect: Callable[[str], int],
    show: Callable[[Progress | None, str], None],
    poll_s: float = 2.0,
    patience_s: float = 900.0,
    tick: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> BlockEnd:
    """Start or attach to the block, collect its spool line by line, and return how it ended.

    `collect` takes complete spool lines and returns how many samples were new; `show` is told about progress and
    connection trouble; `tick` is called on every turn. A bench that is silent for `patience_s` seconds raises
    UnreachableError. Starting a block that runs already attaches to it; one that is finished is only collected.
    """
    started = False
    why = "the bench program ended without finishing its block"
    offset = samples = 0
    rest = ""
    silent_since: float | None = None
    command = " ".join(shlex.quote(word) for word in (paths.python, paths.program, "start", paths.block_file))
    spool, progress, lock = (shlex.quote(path) for path in (paths.spool, paths.progress, paths.lock))
    while True:
        try:
            if not started:
                rc, out, err = shell(command)
                if rc == _REFUSED:
                    return BlockEnd("refused", (err or out).strip(), samples)
                if rc != 0:
                    # what an earlier boot spooled is collected all the same
                    why = (err or out).strip()
                started = True
            # the lock is asked first: a block that ends between the two questions has then written its last line
            # the bench waits for the end itself: nobody sleeps while a block is over, and no processor time is spent
            rc, out, err = shell(
                f"flock -w {poll_s:g} {lock} true && echo free || echo held; cat {progress} 2>/dev/null; "
                f"echo {_MARK}; tail -c +{offset + 1} {spool} 2>/dev/null"
            )
            silent_since = None
        except UnreachableError as problem:
            silent_since = silent_since if silent_since is not None else clock()
            if clock() - silent_since > patience_s:
                raise
            show(None, f"bench does not answer ({problem}); it goes on by itself, trying again")
            wait(poll_s)
            continue
        head, _, tail = out.partition(_MARK + "\n")
        held, _, said = head.partition("\n")
        offset += len(tail.encode())
        lines, newline, rest_now = (rest + tail).rpartition("\n")
        rest = rest_now
        if newline:
            samples += collect(lines + "\n")
            end = _end_of(lines)
            if end is not None:
                return BlockEnd(end[0], end[1], samples)
        show(_parse_progress(said), "")
        tick()
        if held == "free":
            return BlockEnd("died", why, samples)


def _end_of(lines: str) -> tuple[str, str] | None:
    """Outcome and message of the spool's last line, when it is an end."""
    last = json.loads(lines.rsplit("\n", 1)[-1])
    if last.get("kind") != "end":
        return None
    return str(last.get("outcome", "done")), str(last.get("message") or "")
