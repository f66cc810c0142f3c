# SPDX-License-Identifier: Apache-2.0
"""lsinitrd: what an initramfs of dracut says it is made of. The image itself is read by `provision.initramfs`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..kit.errors import ToolError
from ..kit.labelled_text import first_line, line_error, numbered_lines

_RULE = re.compile(r"={20,}")
_IMAGE = re.compile(r"Image: (.+?): ([0-9.]+[KMGT]?)")
_MODE = r"[-dlcbps][-rwxsStT]{9}[.+@]?"
_FILE = re.compile(
    rf"{_MODE}\s+[0-9]+\s+\S+\s+\S+\s+(?:[0-9]+,\s*)?[0-9]+\s+\S+\s+[0-9]+\s+(?:[0-9]{{4}}|[0-9]+:[0-9]+) (.+?)"
)
# unsquashfs, for the part of an image that is packed a second time
_SQUASHED = re.compile(rf"{_MODE} \S+/\S+\s+(?:[0-9]+,\s*)?[0-9]+ [0-9-]{{10}} [0-9:]{{5}} (?:squashfs-root/?)?(.*)")
_MODULE_NAME = re.compile(r"[\w+.-]+")


@dataclass(frozen=True)
class ImageListing:
    """`early` are the files in front (microcode), `modules` those of dracut; a link is named without its target."""

    image: str
    size: str
    version: str
    arguments: str
    modules: tuple[str, ...]
    early: tuple[str, ...]
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()


def parse_listing(text: str) -> ImageListing:
    """`lsinitrd IMAGE`. Raises ToolError for another text, and for one without the line that closes it."""
    head: dict[str, str] = {}
    lists: dict[str, list[str]] = {"modules": [], "early": [], "files": [], "notes": []}
    part, last = "", ""
    for number, line in numbered_lines(text):
        last = line
        image, word = _IMAGE.fullmatch(line), line.strip()
        file = _FILE.fullmatch(line) or _SQUASHED.fullmatch(line)
        if image and not head:
            head.update(image=image.group(1), size=image.group(2))
        elif image or not head:
            raise line_error("lsinitrd", number, line, "the only line `Image: <file>: <size>`, at the beginning")
        elif _RULE.fullmatch(line):
            part = "files" if part == "modules" else "early" if part == "early head" else part
        elif word in ("Early CPIO image", "dracut modules:"):
            part = "early head" if word.startswith("Early") else "modules"
        elif file and part == "modules":
            raise line_error("lsinitrd", number, line, "a module of dracut, or the line that ends their list")
        elif file:
            part = part if part == "early" else "files"
            lists[part].append(file.group(1).partition(" -> ")[0])
        elif line.startswith(("Version:", "Arguments:")):
            label, _, value = line.partition(":")
            part, head[label.lower()] = "head", value.strip()
        elif part == "modules" and _MODULE_NAME.fullmatch(word):
            lists["modules"].append(word)
        elif part == "files" and lists["files"] and not word.startswith("Squash"):
            raise line_error("lsinitrd", number, line, "a file of the image, as `ls -l` lists it")
        else:
            lists["notes"].append(word)
    if not lists["files"] or not _RULE.fullmatch(last):
        closing = "files or the closing line are missing" if head else first_line(text)
        raise ToolError(f"lsinitrd did not list an image to its end: {closing}")
    kept: dict[str, Any] = {name: tuple(values) for name, values in lists.items()}
    kept.update({"version": "", "arguments": "", **head})
    return ImageListing(**kept)
