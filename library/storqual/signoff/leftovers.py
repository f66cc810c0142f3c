# SPDX-License-Identifier: Apache-2.0
"""What a sign-off that was killed leaves: files half written, or a statement without its signature."""

from __future__ import annotations

import re
from pathlib import Path

from storqual.signoff.beside import named_signatures, signature_files
from storqual.signoff.manifest import MANIFEST

_HALF = re.compile(r"\.(signoff\.[A-Za-z0-9_.-]+|verdict\.json|waivers\.yml)\.[a-z0-9_]{8}\Z")
"""A file that is written beside its place before it takes it (`storqual.run.layout.write_bytes`)."""


def clear_leftovers(run: Path) -> None:
    """Remove them, so that signing again writes what it would have written. A whole signature stays."""
    for folder in (run, *run.glob("judgements/*"), *run.glob("annex/judgements/*")):
        for file in folder.glob(".*") if folder.is_dir() and not folder.is_symlink() else ():
            if _HALF.match(file.name) and file.is_file() and not file.is_symlink():
                file.unlink()
    names = signature_files(run)
    signed, _ = named_signatures(names)
    for name in names:
        statement = name.removesuffix(".sig")
        alone = name.endswith(".statement.json.sig") and statement not in names
        if alone or (name == MANIFEST and not signed):
            (run / name).unlink()
