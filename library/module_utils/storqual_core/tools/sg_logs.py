# SPDX-License-Identifier: Apache-2.0
"""sg_logs (sg3_utils): a SCSI drive's log pages, all of them (`-a`): error counters, temperature, phys, self-tests.

A page begins with its title and number in brackets (`Write error counter page  [0x2]`); below it stand names and
values, with `=` or a colon between them. Names that come again in a page (phys, self-tests) are kept with a number.
What a phy tells of events comes twice, as counters and as descriptors of events, which are kept by another name. Some
pages have no number in their title; these are counted down from -1, and their values are no other page's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Mapping

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import Fields
from .sg3 import status_sentence

_TIMEOUT = 120.0
_UNIT_ATTENTION = 6
_TITLE = re.compile(
    r"^(?P<title>\S.*?)\s+\[0x(?P<page>[0-9a-f]{1,2})(?:,\s*0x(?P<subpage>[0-9a-f]{1,2}))?\]:?\s*$", re.I
)
_UNDECODED = re.compile(
    r"^(?:No ascii information for|Unable to decode) page ?= ?0x(?P<page>[0-9a-f]{1,2})"
    r"(?:,\s*subpage ?= ?0x(?P<subpage>[0-9a-f]{1,2}))?",
    re.IGNORECASE,
)
_UNNUMBERED = re.compile(
    r"^(?:\S[^=:]*\bpages?\b[^=:]*:?|\S[^=:]*\bpage\b[^=:]*, subpage=\d+\S*|Unable to decode \S.*)\s*$", re.IGNORECASE
)
_EVENTS = re.compile(r"^\s*Phy event descriptors\s*:", re.IGNORECASE)
# a label may compare (`commands whose size <= segment size = 5`)
_VALUE = re.compile(r"^(?P<label>(?:[<>]=|[^=:])+?)\s*(?<![<>])[=:]\s*(?P<value>.*)$")
_PAIR = re.compile(r",\s+(?=[A-Za-z][^,=]*=)")
_SUPPORTED = re.compile(r"^\s*0x(?P<page>[0-9a-f]{1,2})(?:,0x(?P<subpage>[0-9a-f]{1,2}))?\s+\S", re.IGNORECASE)
_COUNT = re.compile(r"^[0-9]{1,20}\b(?!\s*[./:])")
_PHYS = re.compile(r"^\s*number of phys\s*=\s*([0-9]{1,9})\s*$", re.IGNORECASE | re.MULTILINE)
_PHY = re.compile(r"^\s*phy identifier\s*=", re.IGNORECASE | re.MULTILINE)
_ERROR_PAGES = {0x02: "write", 0x03: "read", 0x04: "read_reverse", 0x05: "verify", 0x06: "non_medium"}


_PORTS = 0x18
_LINK = re.compile(r"invalid dword|running disparity error|loss of dword sync|phy reset problem", re.IGNORECASE)


@dataclass(frozen=True)
class LogPage:
    """One page: title, values by name as printed, and its lines that have no value."""

    title: str
    values: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def parse_log_pages(text: str) -> dict[tuple[int, int], LogPage]:
    """The pages of `sg_logs -a`, or of one page, by number and subpage.

    Raises ToolError when there is no page, or when another number of phys is told than listed.
    """
    found: dict[tuple[int, int], LogPage] = {}
    body: dict[tuple[int, int], tuple[str, Fields, list[str]]] = {}
    number: tuple[int, int] | None = None
    # how far the descriptors of a phy's events are indented at least
    events: int | None = None
    for line in text.splitlines():
        title = _TITLE.match(line) or _UNDECODED.match(line)
        indent = len(line) - len(line.lstrip())
        if title is not None:
            number = int(title.group("page"), 16), int(title.group("subpage") or "0", 16)
            body.setdefault(number, (title.groupdict().get("title") or line.strip(), Fields(), []))
        elif _UNNUMBERED.match(line):
            number = min(-1, *(page - 1 for page, _ in body)) if body else -1, 0
            body[number] = line.strip(), Fields(), []
        elif line.strip() and number is not None:
            _, fields, notes = body[number]
            events = (
                indent + 1 if _EVENTS.match(line) else events if events is not None and indent >= events else None
            )
            _take(line.strip(), fields, notes, "Phy event: " if events is not None else "")
    told = sum(int(count) for count in _PHYS.findall(text))
    if told != len(_PHY.findall(text)) and told:
        raise ToolError(f"sg_logs reports {told} phys and lists {len(_PHY.findall(text))}")
    for key, (heading, fields, notes) in body.items():
        found[key] = LogPage(heading, fields.printed(), tuple(notes))
    if not found:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise ToolError(f"sg_logs printed no log page: {said[:200]}")
    return found


def _take(line: str, fields: Fields, notes: list[str], before: str) -> None:
    """One line below a title: values, their names with `before` in front, a supported page's name, or a note."""
    if _SUPPORTED.match(line):
        notes.append(line)
        return
    for part in _PAIR.split(line) if line.count("=") > 1 else [line]:
        match = _VALUE.match(part)
        if match is None:
            notes.append(part)
        else:
            fields.add(before + match.group("label"), match.group("value").strip())


def error_counters(pages: Mapping[tuple[int, int], LogPage]) -> dict[str, int]:
    """The whole numbers of the pages that count errors, by kind and name (`write.Total uncorrected errors`)."""
    return {
        f"{_ERROR_PAGES[page]}.{name}": int(match.group(0))
        for (page, subpage), found in pages.items()
        if page in _ERROR_PAGES and not subpage
        for name, value in found.values.items()
        for match in [_COUNT.match(value)]
        if match
    }


def link_counters(pages: Mapping[tuple[int, int], LogPage]) -> dict[str, int]:
    """What the drive counts of errors on its links, all of its phys together (`link.Invalid DWORD count`)."""
    found: dict[str, int] = {}
    for name, value in (pages[_PORTS, 0].values if (_PORTS, 0) in pages else {}).items():
        label = re.sub(r" #\d+\Z", "", name)
        match = _COUNT.match(value)
        if match and _LINK.match(label):
            found[f"link.{label}"] = found.get(f"link.{label}", 0) + int(match.group(0))
    return found


def read_log_pages(runner: Runner, device: str) -> dict[tuple[int, int], LogPage]:
    """All log pages of a drive. Raises ToolError."""
    argv = ["sg_logs", "-a", device]
    ended = runner(argv, timeout=_TIMEOUT)
    if ended.rc == _UNIT_ATTENTION:
        # the first command after a reset only delivers the news
        ended = runner(argv, timeout=_TIMEOUT)
    if ended.rc != 0:
        raise ToolError(f"the log pages of {device}: {status_sentence(ended.rc)}; command: {ended.line}")
    return parse_log_pages(ended.stdout)
