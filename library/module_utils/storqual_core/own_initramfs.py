# SPDX-License-Identifier: Apache-2.0
"""Initramfs images of our own in /boot, beside those of the distribution: their names, and which one was booted.

The name tells the kernel and the build, so that a bench that booted it runs what is declared; the command line names
it, because nothing else of a running system tells which initramfs it came from.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from pathlib import Path
from typing import Collection, Iterator, Sequence

from .durable import copy_file, fsync_folder

__all__ = ["WORD", "booted_image", "image_name", "own_images", "put_native_back", "remove_images", "unchanged"]

WORD = "storqual.initramfs="
_PREFIX = "initrd.storqual-"
_DIGITS = 12
_ASIDE = "initrd-before-package"


def image_name(release: str, module: bytes) -> str:
    """The file in /boot for a kernel with a build of a module, which is told by the digest of its file."""
    return f"{_PREFIX}{release}-{hashlib.sha256(module).hexdigest()[:_DIGITS]}"


def booted_image(arguments: Sequence[str]) -> str:
    """The image of ours that a command line names; empty for the distribution's own."""
    return next((word[len(WORD) :] for word in arguments if word.startswith(WORD)), "")


def own_images(boot: str) -> list[str]:
    """All images of ours, by name."""
    return sorted(path.name for path in Path(boot).glob(f"{_PREFIX}*") if not path.name.endswith(".part"))


def remove_images(boot: str, keep: Collection[str]) -> list[str]:
    """Remove the images of ours that are not in `keep`; their names."""
    gone = [name for name in own_images(boot) if name not in keep]
    for name in gone:
        (Path(boot) / name).unlink()
    if gone:
        fsync_folder(Path(boot))
    return gone


@contextmanager
def unchanged(native: Path, state_dir: str, steps: list[str]) -> Iterator[None]:
    """Have the distribution's initramfs `native` be afterwards what it was; in `steps` that it had to be put back.

    A package's own script may make it anew, with a build that nobody has seen boot. A copy lies in `state_dir` until
    then, so that `put_native_back` can end what was cut short.
    """
    steps += put_native_back(native, state_dir)
    copy_file(native, Path(state_dir) / _ASIDE)
    try:
        yield
    finally:
        steps += put_native_back(native, state_dir)


def put_native_back(native: Path, state_dir: str) -> list[str]:
    """Put back the copy that `unchanged` left, where there is one; what was done."""
    aside = Path(state_dir) / _ASIDE
    if not aside.exists():
        return []
    differs = native.read_bytes() != aside.read_bytes()
    if differs:
        copy_file(aside, native)
    aside.unlink()
    return [f"/boot/{native.name} put back as it was before the package"] if differs else []
