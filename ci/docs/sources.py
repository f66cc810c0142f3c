# SPDX-License-Identifier: Apache-2.0
"""Pages of the site that are written elsewhere in the project: READMEs and the change log, taken as they are."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
NAMED_FILE = re.compile(r"`(?:ci|library|roles|tests)/[^\s`]+`")
OF_SOURCE = "Paths that begin with `ci/`, `library/`, `roles/` or `tests/` are files of the project's source."
"""For a reader of the site alone, who does not have these files."""


@dataclass(frozen=True)
class Source:
    """One page: the file, the section of it that is wanted (empty: all of it), a new title, and an introduction."""

    file: str
    section: str = ""
    title: str = ""
    introduction: str = ""


SOURCES: Mapping[str, Source] = {
    "reference/suites.md": Source("suites/README.md", title="Suites and checks"),
    "reference/labs.md": Source("inventories/README.md", title="Labs, drops, gates, waivers and keys"),
    "reference/glossary.md": Source("library/README.md", "Glossary"),
    "reference/exit-codes.md": Source(
        "README.md",
        "Exit codes",
        introduction="Every command exits with one of these codes. `storqual qualify` and `storqual judge` exit with "
        "the code of the verdict, so a pipeline needs nothing else.",
    ),
    "concepts/error-rates.md": Source("library/storqual/judge/README.md", title="How often the gate is wrong"),
    "how-to/driver-developer/add-a-vendor-tool.md": Source("CONTRIBUTING.md", "Adding a vendor tool"),
    "concepts/security.md": Source("SECURITY.md", title="What it guarantees about writes"),
    "reference/provisioning.md": Source("roles/provision/README.md", title="What provisioning does"),
    "upgrade.md": Source(
        "CHANGELOG.md",
        title="Releases",
        introduction="Run directories of older releases can still be judged, displayed and verified. Before you "
        "upgrade the control node, finish its campaigns or restore their benches; afterwards print the "
        "[schemas for your editor](reference/configuration.md#check-files-while-you-write-them) again.",
    ),
}


def page(source: Source) -> str:
    """The text of a page in Markdown. Raises ValueError when the section is not there."""
    text = (PROJECT / source.file).read_text(encoding="utf-8")
    if source.section:
        text = section(text, source.section)
    text = _linked(text, next(path for path, other in SOURCES.items() if other is source))
    title, _, body = text.partition("\n")
    if not title.startswith("# "):
        raise ValueError(f"{source.file} does not begin with a title")
    # the picture of an attribute block of ours is a file name that only the project's own test reads
    body = re.sub(r"^```(python|text|yaml) \S+$", r"```\1", body, flags=re.MULTILINE)
    told = [source.introduction, OF_SOURCE if NAMED_FILE.search(body) else ""]
    introduction = "".join(f"\n{words}\n" for words in told if words)
    return f"# {source.title or title.removeprefix('# ')}\n{introduction}{body}"


def _linked(text: str, page_path: str) -> str:
    """Links in the place of names of files that are pages of the site: its reader does not have the files."""
    for path, source in SOURCES.items():
        if not source.section and path != page_path:
            link = posixpath.relpath(path, posixpath.dirname(page_path))
            text = text.replace(f"`{source.file}`", f"[{source.title}]({link})")
    return text


def section(text: str, heading: str) -> str:
    """One section of a page as a page of its own. Raises ValueError when there is none of that heading."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"there is no section {heading!r}")
    return f"# {heading}\n{found[1]}"
