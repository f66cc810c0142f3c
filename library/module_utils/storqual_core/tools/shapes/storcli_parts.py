# SPDX-License-Identifier: Apache-2.0
"""Foreign configurations and backup batteries, as storcli and perccli tell them.

Both are asked for by commands that call a normal state a failure: no foreign configuration at all, and a cachevault
where a battery was asked for.
"""

from __future__ import annotations

import re
from typing import Callable, Mapping

from ...kit.errors import ToolError
from ...kit.json_text import as_list, as_mapping, as_text
from .storcli_answer import Answer, answers_of

_NO_FOREIGN = re.compile(r"(?:no|couldn't find any|there (?:is|are) no) foreign config", re.IGNORECASE)
_INCOMPLETE = re.compile(r"incomplete foreign config", re.IGNORECASE)
_ASK_CV = re.compile(r"use /c(?:x|\d+)/cv", re.IGNORECASE)
_NO_BACKUP = re.compile(
    r"\b(?:bbu|battery|cachevault|cv|energy ?pack)\b.*\b(?:absent|not (?:present|found|supported))", re.IGNORECASE
)
_SECTIONS = ("BBU_Info", "Cachevault_Info")


def _said(answer: Answer) -> str:
    return "; ".join([answer.description, *answer.complaints])


def parse_foreign(text: str, tool: str = "storcli") -> tuple[Mapping[str, str], ...]:
    """The foreign drive groups of `/cN/fall show [all]`, a row each, none where there is none.

    `Importable` says whether a row can be imported: of an incomplete configuration the tool tells that it is there,
    and not of what. Raises ToolError.
    """
    found: list[Mapping[str, str]] = []
    for answer in answers_of(text, tool):
        rows = [as_mapping(row) for row in as_list(answer.data.get("FOREIGN CONFIGURATION"))]
        incomplete = bool(_INCOMPLETE.search(_said(answer)))
        if rows:
            importable = "no" if incomplete else "yes"
            found += [
                {**{key: as_text(value).strip() for key, value in row.items()}, "Importable": importable}
                for row in rows
            ]
        elif incomplete:
            # a release may write its labels in capitals
            told = {key.capitalize(): as_text(value).strip() for key, value in answer.data.items()}
            found.append({"State": "Incomplete foreign configuration", "Importable": "no", **told})
        elif not _NO_FOREIGN.search(_said(answer)) and not answer.nothing:
            raise ToolError(f"{tool} does not tell whether there is a foreign configuration: {_said(answer)[:200]}")
    return tuple(found)


def parse_backup(text: str, tool: str = "storcli") -> Mapping[str, str]:
    """What backs the cache, of `/cN/bbu show all` or `/cN/cv show all`; empty where nothing does.

    Raises ToolError.
    """
    found: dict[str, str] = {}
    for answer in answers_of(text, tool):
        section = next((name for name in _SECTIONS if as_list(answer.data.get(name))), "")
        if not section and not _NO_BACKUP.search(_said(answer)) and not answer.nothing:
            raise ToolError(f"{tool} does not tell what backs the cache: {_said(answer)[:200]}")
        for row in map(as_mapping, as_list(answer.data.get(section))):
            if "Property" in row:
                found[as_text(row.get("Property")).strip()] = as_text(row.get("Value")).strip()
            else:
                found.update({key: as_text(value).strip() for key, value in row.items()})
        for name, rows in answer.data.items():
            # its firmware, its gauge and so on
            told = [as_mapping(row) for row in as_list(rows)] if name != section else []
            found.update(
                {
                    f"{name} / {as_text(row['Property']).strip()}": as_text(row.get("Value")).strip()
                    for row in told
                    if "Property" in row
                }
            )
    return found


def more_settings(ask: Callable[[str], str], index: str, notes: list[str]) -> dict[str, str]:
    """Foreign configurations and what backs the cache, as settings of a controller; what is not told is a note.

    `ask` runs one command of the tool and returns what it printed.
    """
    found: dict[str, str] = {}
    try:
        foreign = parse_foreign(ask(f"/c{index}/fall show"))
        found["Foreign Configurations"] = str(len(foreign))
        for number, row in enumerate(foreign):
            found.update({f"Foreign Configuration {number} / {key}": value for key, value in row.items()})
    except ToolError as problem:
        notes.append(str(problem))
    try:
        said = ask(f"/c{index}/bbu show all")
        if any(_ASK_CV.search(_said(answer)) for answer in answers_of(said, "storcli")):
            said = ask(f"/c{index}/cv show all")
        found.update({f"Backup / {key}": value for key, value in parse_backup(said).items()})
    except ToolError as problem:
        notes.append(str(problem))
    return found
