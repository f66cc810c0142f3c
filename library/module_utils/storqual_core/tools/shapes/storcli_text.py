# SPDX-License-Identifier: Apache-2.0
"""The plain text of storcli and its kin in the shape of their JSON: some builds print it where JSON was asked for.

An answer begins with its status. Its body has `Name = value` lines, which a blank line ends, and sections with an
underlined title; a table has a rule above, between and below its head and its rows.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, Sequence

from ...kit.errors import ToolError

_HEAD = re.compile(
    r"^(?:CLI Version = .*\n)?(?:Operating system = .*\n)?(?:Controller = (?P<controller>.*)\n)?"
    r"(?:Status Code = .*\n)?Status = (?P<status>Success|Failure)\n(?:Description = (?P<description>.*)\n)?",
    re.MULTILINE | re.IGNORECASE,
)
_TITLE = re.compile(r"^(?P<title>\S.*?) ?:$")
_LABELLED = re.compile(r"^(?P<label>\S.*?)\s+=(?:\s+(?P<value>.*))?$")
_RULE = re.compile(r"^-{6,}$")
_OF_DRIVE = re.compile(r"Drive /c\d+(?:/e\d+)?/s\d+(?=(?P<part>.*))", re.IGNORECASE)
_DETAILED = " - Detailed Information"
# tables whose rows are read: every head of theirs is one word, but for these; nobody reads the topology (DG Arr)
_OBJECTS = re.compile(r"\s*(?:ID\b|EID|DG(?!\s+Arr\b)|Ctrl?\b|VD\b|Drive-ID|Policy|Property)")
_HEADS = re.compile(
    r"Product Name|PCI Address|LU/NS Count|Estimated Time Left|Next Learn|Time Remaining|Adv S/W Opt|Negotiated Speed"
    r"|Num Phys/Lanes used|Link Speed|Media Type|SAS address"
)
_Entry = Dict[str, Any]


def controllers_of(text: str) -> list[_Entry]:
    """The entries that the JSON has under `Controllers`; none when the text has no status. Raises ToolError."""
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [_entry(head.groupdict(), text[head.end() : end].split("\n")) for head, end in zip(heads, ends)]


def _entry(head: dict[str, Any], lines: Sequence[str]) -> _Entry:
    data = _body(lines)
    status = {name.capitalize(): (value or "").strip() for name, value in head.items()}
    rows = data.pop("Detailed Status", [])
    # a table without a title is a list in the JSON
    told = data["Rows"] if set(data) == {"Rows"} else data
    return {"Command Status": {**status, "Detailed Status": rows}, "Response Data": told}


def _body(lines: Sequence[str]) -> _Entry:
    """Sections and labelled lines; a line that is neither is kept in `Lines`. Raises ToolError."""
    data: _Entry = {}
    around = section = data
    place = 0
    while place < len(lines):
        line, below = lines[place], "".join(lines[place + 1 : place + 2])
        title, labelled = _TITLE.match(line), _LABELLED.match(line)
        if title and below and not below.strip("="):
            name = title["title"].strip()
            around = _around(data, around, name)
            section = around if name.endswith(_DETAILED) else around.setdefault(_fresh(around, name), {})
            place += 1
        elif _RULE.match(line):
            rows, place = _table(lines, place)
            if around is not data and any("EID:Slt" in row for row in rows):
                raise ToolError("drives are listed among the details of one of them: a title is not known")
            section.setdefault("", []).extend(rows)
        elif not line:
            # a table may stand apart from its title; what is not of a section is of what is around it
            section = around if section else section
        elif labelled and "|" not in line:
            # a table ends its section, also where the blank line behind it was left out
            section = around if "" in section else section
            section[_fresh(section, labelled["label"])] = (labelled["value"] or "").strip()
        elif "|" not in line:
            data.setdefault("Lines", []).append(line)
        place += 1
    return {name or "Rows": _simple(value) for name, value in data.items()}


def _around(data: _Entry, around: _Entry, title: str) -> _Entry:
    """What a section stands in: the details of a drive begin with its name, and end where the next one is told of."""
    drive = _OF_DRIVE.match(title)
    if drive is None:
        return around
    details: _Entry = data.setdefault(f"{drive[0]}{_DETAILED}", {}) if drive["part"] else data
    return details


def _fresh(section: _Entry, name: str) -> str:
    """The name, numbered when it is there already."""
    number = 1 + sum(key == name or key.startswith(f"{name} #") for key in section)
    return name if number == 1 else f"{name} #{number}"


def _simple(value: object) -> object:
    """A section of rows is a list, one of labelled lines an object; rows beside these are `Rows`."""
    if not isinstance(value, dict):
        return value
    if set(value) == {""}:
        return value[""]
    return {name or "Rows": _simple(inner) for name, inner in value.items()}


def _table(lines: Sequence[str], place: int) -> tuple[list[_Entry], int]:
    """The rows of the table whose upper rule is at `place`, and the place of its last rule. Raises ToolError."""
    rules = [number for number in range(place, len(lines)) if _RULE.match(lines[number])][:3]
    body = lines[place + 1 : rules[-1]]
    if len(rules) < 3 or rules[1] != place + 2 or not all(0 < len(line) <= len(lines[place]) for line in body):
        raise ToolError(f"a table is printed that is not whole: {' '.join(lines[place + 1 : place + 2])[:100]}")
    head, rows = body[0], body[2:]
    cells = list(_columns(_HEADS.sub(lambda match: match[0].replace(" ", "\0"), head), rows))
    if _OBJECTS.match(head) and any(len(name.split()) != 1 for name, _, _ in cells):
        raise ToolError(f"a table is printed that is not in columns: {head.strip()[:100]}")
    return [
        {name.strip().replace("\0", " "): row[start:end].strip() for name, start, end in cells} for row in rows
    ], rules[2]


def _columns(head: str, rows: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Head, start and end of each column: between columns no line has a letter."""
    lines = [head, *rows]
    width = max(map(len, lines))
    used = [any(line[place : place + 1].strip(" ") for line in lines) for place in range(width)]
    starts = [place for place in range(width) if used[place] and not (place and used[place - 1])]
    # blanks at one place in all values are no border where no head begins behind them
    starts = [start for start, end in zip(starts, [*starts[1:], width]) if head[start:end].strip(" ") or not start]
    for start, end in zip(starts, [*starts[1:], width]):
        yield head[start:end], start, end
