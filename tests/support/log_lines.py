# SPDX-License-Identifier: Apache-2.0
"""Lines of the kernel's log with their kinds, from files.

Each line of a file is a kind (`none` for what is ordinary), a tab, and the line as dmesg prints it without its stamp,
with numbers and names of our own. A remark names the source of the kernel that prints the lines below it.
"""

import lzma
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "unit" / "storqual_core" / "host" / "log_lines"


def read_all() -> list[tuple[str, str]]:
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, tab, text = line.partition("\t")
            assert line.startswith("# ") or (kind and tab and text), (path.name, line)
            if tab and not line.startswith("# "):
                found.append((kind, text))
    return found


def read_faults() -> list[tuple[set[str], str, str]]:
    """Acceptable kinds, half (`rules` or `held-out`) and text of each fault line that was collected from outside."""
    rows = [line.split("\t") for line in (FOLDER.parent / "fault_lines.tsv").read_text("utf-8").splitlines()[1:]]
    return [(set(kinds.split("|")), half, text) for kinds, _, half, text in rows]


def read_ordinary() -> list[str]:
    """Lines without trouble of whole boot logs, each once up to its numbers, serial numbers replaced."""
    return lzma.decompress((FOLDER.parent / "ordinary_lines.txt.xz").read_bytes()).decode().splitlines()
