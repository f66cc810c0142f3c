# SPDX-License-Identifier: Apache-2.0
"""Attributes of the kernel in sysfs: read one, write one, with errors as sentences."""

from __future__ import annotations

from pathlib import Path

from .errors import ToolError

__all__ = ["read_attribute", "selected_word", "write_attribute"]


def read_attribute(path: str | Path) -> str | None:
    """The attribute's text without the line end, None when this kernel or device does not have it."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem


def write_attribute(path: str | Path, value: object) -> None:
    """Write the attribute. Raises ToolError: the kernel says no more than an error number, and so does this."""
    try:
        with Path(path).open("w", encoding="ascii") as stream:
            stream.write(f"{value}\n")
    except OSError as problem:
        raise ToolError(f"the kernel refused {value!r} for {path}: {problem.strerror}") from problem


def selected_word(text: str) -> str:
    """The choice in brackets of `none [mq-deadline] bfq`; the text itself when there are no brackets."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return text.strip()
