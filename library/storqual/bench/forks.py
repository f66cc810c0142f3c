# SPDX-License-Identifier: Apache-2.0
"""How many benches Ansible serves at once: a measuring task holds its worker for a whole campaign."""

from __future__ import annotations

import os
import re
from pathlib import Path

_WORKER_BYTES = 96 * 2**20
"""What one worker takes beyond the pages that it shares with its parent, generously."""
_WORKERS_A_PROCESSOR = 64
"""A worker sleeps between two looks at its bench: a campaign of a minute takes it four seconds of processor."""
_LEAST = 8
_MEMORY = Path("/proc/meminfo")


def forks(available: int | None = None, processors: int | None = None) -> int:
    """The most workers that memory (`available` bytes) and processors of the control node permit, at least 8.

    Ansible starts no more of them than there are benches. Both are read from this machine without an argument.
    """
    free = _available() if available is None else available
    by_processors = _WORKERS_A_PROCESSOR * (processors or os.cpu_count() or 1)
    return max(_LEAST, min(free // _WORKER_BYTES, by_processors))


def _available() -> int:
    """Bytes that programs can still have; 0 where the kernel does not say."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", _MEMORY.read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return 0
    return int(found.group(1)) * 1024 if found else 0
