# SPDX-License-Identifier: Apache-2.0
"""sdparm: every mode-page field of a drive with whether it can be changed, its default and its saved value.

`sdparm --all --long` costs one command for a whole drive, which is what facts want; a setting is written by bytes
(`sg3`), not by this tool. A page is a heading that ends in `mode page:`, a field a line `WCE  0  [cha: y, …]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import BYTE_ORDER_MARK
from .sg3 import answer, printed_number

_TIMEOUT = 120.0
_HEAD = re.compile(r"^\s*(/dev/\S+): (.*)$")
_PAGE = re.compile(r"^\s*(\S.* mode page)(?: \[[^\]]*\])?:\s*$")
_NUMBER = r"(0x[0-9a-fA-F]{1,16}|-?[0-9]{1,20})"
_FIELD = re.compile(
    r"^\s+([A-Z][A-Z0-9_]*(?:\.[0-9]+)?)\s+"
    + _NUMBER
    # a drive need not tell all three: `[cha: y]`, `[ sav:  1]`
    + rf"(?:\s+\[ ?(?:cha: ([yn])(?:, |\]))?(?:def:\s*{_NUMBER}(?:, |\]))?(?:sav:\s*{_NUMBER}\])?)?(?:\s|$)"
)
_MALFORMED = re.compile(r"^>>> warning: mode page seems malformed", re.IGNORECASE)
# the drive answered with another page: what follows are other bytes than the fields' own
_OTHER_PAGE = re.compile(r"page number field should be (0x[0-9a-f]+|\d+), but is (?!\1\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Field:
    """One field: its value now and, where told, whether it can change, its default and its saved value."""

    value: int
    changeable: bool | None = None
    default: int | None = None
    saved: int | None = None


@dataclass(frozen=True)
class SdparmPages:
    """A drive's fields by page heading and acronym, and lines that are neither."""

    device: str
    identity: str
    pages: Mapping[str, Mapping[str, Field]]
    notes: tuple[str, ...] = ()

    def field(self, acronym: str) -> Field | None:
        """The field of that name, on whichever page it is; None when the drive has none."""
        return next((fields[acronym] for fields in self.pages.values() if acronym in fields), None)


def parse_fields(text: str) -> SdparmPages:
    """`sdparm --all --long`. Raises ToolError when there is no field in the text, or a field before any page.

    The fields of a page in whose place another one came are notes; what sdparm calls malformed without that is read,
    and the warning kept as a note.
    """
    device = identity = page = ""
    malformed: set[str] = set()
    pages: dict[str, dict[str, Field]] = {}
    notes: list[str] = []
    for line in text.lstrip(BYTE_ORDER_MARK).splitlines():
        head, title, match = _HEAD.match(line), _PAGE.match(line), _FIELD.match(line)
        if head and not device:
            device, identity = head.group(1), head.group(2).rstrip()
        elif title:
            page = title.group(1)
            pages.setdefault(page, {})
        elif page and (_MALFORMED.match(line.strip()) or _OTHER_PAGE.search(line)):
            malformed |= {page} if _OTHER_PAGE.search(line) else set()
            notes.append(f"{page}: {line.strip()}")
        elif match and page in malformed:
            notes.append(f"{page}: {line.strip()}")
        elif match and match.group(1) not in pages.get(page, {}):
            if not page:
                raise ToolError(f"sdparm printed the field {match.group(1)} outside of any mode page")
            pages[page][match.group(1)] = _field(match)
        elif line.strip():
            notes.append(line.strip())
    if not any(pages.values()):
        raise ToolError(f"sdparm printed no mode page field: {notes[-1][:200] if notes else 'nothing'}")
    return SdparmPages(device, identity, pages, tuple(notes))


def _field(match: re.Match[str]) -> Field:
    _, value, changeable, default, saved = match.groups()
    return Field(
        printed_number(value),
        None if changeable is None else changeable == "y",
        None if default is None else printed_number(default),
        None if saved is None else printed_number(saved),
    )


def read_fields(runner: Runner, device: str) -> SdparmPages:
    """Every mode-page field of a drive. Raises ToolError, in the words of its exit status."""
    argv = ["sdparm", "--all", "--long", device]
    return parse_fields(answer(runner, argv, f"the mode pages of {device} cannot be read", timeout=_TIMEOUT).stdout)
