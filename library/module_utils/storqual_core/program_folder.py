# SPDX-License-Identifier: Apache-2.0
"""The bench program unpacked: a zip file is compiled anew by every process that runs it, a folder once."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from .durable import fsync_folder

__all__ = ["unpacked"]


def unpacked(program: Path, state_dir: Path) -> Path:
    """The folder of `program`, beside it or in `state_dir`; `program` itself where that is no zip file.

    A folder has its name only when all of it is on the disk: after a power cut its files would be empty, and a
    program of empty files ends at once, says nothing, and is there for the next block too.
    """
    program = program.resolve()
    if not zipfile.is_zipfile(program):
        return program
    folder = (program.parent if os.access(str(program.parent), os.W_OK) else state_dir) / program.stem
    if folder.is_dir():
        return folder
    part = Path(tempfile.mkdtemp(prefix=".core-", dir=str(folder.parent)))
    with zipfile.ZipFile(str(program)) as archive:
        archive.extractall(str(part))
    part.chmod(0o755)
    os.sync()
    try:
        part.rename(folder)
    except OSError:
        # another process was as far in the same moment
        shutil.rmtree(str(part))
    fsync_folder(folder.parent)
    return folder
