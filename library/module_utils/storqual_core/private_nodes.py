# SPDX-License-Identifier: Apache-2.0
"""Device nodes that udev does not watch, for what opens a disk for writing while something is measured.

udev watches the nodes that it made: whenever one that was open for writing is closed, it looks at the disk for
partitions and file systems again. fio does that while it starts, so each write launch met udev's probing half a
second in: on an emulated bench 125 ms in which nothing else ran. A second node of the same device is not watched.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator, Mapping

__all__ = ["private_nodes"]

FOLDER = Path("/dev/storqual")


@contextmanager
def private_nodes(
    nodes: Mapping[str, str], folder: Path = FOLDER, make: Callable[[Path, int, int], None] = os.mknod
) -> Iterator[Mapping[str, str]]:
    """Paths by the same names that lead to the same block devices, and are gone afterwards.

    A path that is no block device stays what it is, and so do all where nobody may make nodes (a container): what is
    measured is then as disturbed as it would be with any other tool, and no worse. Raises nothing.
    """
    shutil.rmtree(folder, ignore_errors=True)  # of a program that was killed
    made: dict[str, str] = dict(nodes)
    try:
        with suppress(OSError):
            folder.mkdir(mode=0o700)
            for number, (name, node) in enumerate(nodes.items()):
                status = Path(node).stat()
                if stat.S_ISBLK(status.st_mode):
                    path = folder / f"disk{number}"
                    make(path, stat.S_IFBLK | 0o600, status.st_rdev)
                    made[name] = str(path)
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)
