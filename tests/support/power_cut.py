# SPDX-License-Identifier: Apache-2.0
"""Pull the plug of a program between any two of its side effects, and see what the next run makes of it.

A side effect is a command, or a file below the bench's folder that is opened for writing, renamed, removed, cut or
made; Python's audit events tell of them before they happen. Once the plug is pulled nothing happens any more, not
even what stands in a `finally`.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from storqual_core.kit.command import Completed

_LIMIT = 400
B = TypeVar("B")


class PowerCut(BaseException):
    """The program is gone; nothing may catch this."""


@dataclass
class Mains:
    """The mains of a bench whose files are below `root`; the plug is pulled before side effect number `cut`."""

    root: Path
    cut: int
    seen: int = 0
    dead: bool = False
    inside: bool = False

    def effect(self) -> None:
        """One side effect is about to happen; what a command itself does is the command's, and whole."""
        if self.inside:
            return
        self.seen += 1
        if self.dead or self.seen > self.cut:
            self.dead = True
            raise PowerCut

    def runner(self, runner: Callable[..., Completed]) -> Callable[..., Completed]:
        """The same runner, each of whose commands is a side effect."""

        def run(argv: Sequence[str], **options: Any) -> Completed:
            self.effect()
            self.inside = True
            try:
                return runner(argv, **options)
            finally:
                self.inside = False

        return run

    def concerns(self, path: object) -> bool:
        """Whether a path, or an open file, is the bench's."""
        if isinstance(path, int):
            path = Path(f"/proc/self/fd/{path}").readlink()
        return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(f"{self.root}/")


_on: list[Mains] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _on or event not in ("open", "os.rename", "os.remove", "os.truncate", "os.mkdir", "os.link", "os.symlink"):
        return
    if event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
        return
    for mains in _on:
        if mains.concerns(arguments[0]):
            mains.effect()


@contextmanager
def _supplied_by(mains: Mains) -> Iterator[None]:
    if _hook not in _installed:
        # an audit hook cannot be taken away again; without mains it does nothing
        sys.addaudithook(_hook)
        _installed.append(_hook)
    _on.append(mains)
    try:
        yield
    finally:
        _on.remove(mains)


_installed: list[object] = []


def every_cut(folder: Path, make: Callable[[Path], B], work: Callable[[B, Mains], Any]) -> Iterator[B]:
    """Play a scenario once for each place where the plug can be pulled; yields its bench after each cut.

    `make(root)` gives a fresh bench below `root`, `work(bench, mains)` is what is cut. The last yield is after the
    work that ended without a cut, so that the caller sees that one, too.
    """
    for cut in range(_LIMIT):
        root = folder / f"cut{cut}"
        root.mkdir()
        bench = make(root)
        mains = Mains(root, cut)
        try:
            with _supplied_by(mains):
                work(bench, mains)
        except PowerCut:
            yield bench
        else:
            assert not mains.dead, "something went on after the plug was pulled"
            assert cut > 1, "no side effect was seen"
            yield bench
            return
    raise AssertionError(f"no end after {_LIMIT} side effects")
