# SPDX-License-Identifier: Apache-2.0
"""Foreign configurations, backup batteries, and what drives are to a volume, as storcli and its kin tell them.

The first two are asked for by commands that call a normal state a failure: no foreign configuration at all, and a
cachevault where a battery was asked for.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, Sequence

from ...kit.errors import ToolError
from ...kit.json_text import as_int, as_list, as_mapping, as_text
from ...kit.labelled_text import plain_label
from ..capabilities import VolumeFacts
from .storcli_answer import Answer, answers_of, percent_of

_NO_FOREIGN = re.compile(r"(?:no|couldn't find any|there (?:is|are) no) foreign config", re.IGNORECASE)
# locked drives are foreign as well, and belong to no drive group
_FOREIGN_DRIVES = ("totalforeignpds", "totallockedforeignpds")
_INCOMPLETE = re.compile(r"incomplete foreign config", re.IGNORECASE)
_ASK_CV = re.compile(r"use /c(?:x|\d+)/cv", re.IGNORECASE)
_NO_BACKUP = re.compile(
    r"\b(?:bbu|battery|cachevault|cv|energy ?pack)\b.*\b(?:absent|not (?:present|found|supported))", re.IGNORECASE
)
_VOLUME = re.compile(r"\A/c\d+/v\d+\Z", re.IGNORECASE)
_SECTIONS = ("BBU_Info", "Cachevault_Info")
# a spare that is shielded, sanitised or degraded is still one: `HSPShld`, `DHSDgrd`
_SPARES = ("DHS", "GHS", "HSP")
# `Background Initialization (3%), Consistency Check (36%)`; of some only the name is told
_OPERATION = re.compile(r"([a-z][a-z /-]*[a-z])\s*(?:\(\s*([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%\s*\))?", re.IGNORECASE)
_TASKS = {
    "init": "initialise",
    "background": "initialise",
    "bgi": "initialise",
    "cc": "check",
    "consist": "check",
    "copyback": "copyback",
    "cpybck": "copyback",
    "expan": "reshape",
    "migrat": "reshape",
    "rbld": "rebuild",
    "rebuild": "rebuild",
    "recon": "reshape",
}


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
        counted = [as_int(value) for name, value in answer.data.items() if plain_label(name) in _FOREIGN_DRIVES]
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
        elif any(count != 0 for count in counted):
            told = {key: as_text(value).strip() for key, value in answer.data.items()}
            found.append({"State": "Foreign drives without a configuration", "Importable": "no", **told})
        elif not counted and not _NO_FOREIGN.search(_said(answer)) and not answer.nothing:
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


def volumes_apart(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Row, drives and properties of each volume, which are sections apart in plain text and in JSON before 96xx."""
    named = {plain_label(key): value for key, value in data.items()}
    return [
        {"VD Info": row, "PDs": named.get(f"pdsforvd{number}"), "VD Properties": named.get(f"vd{number}properties")}
        for key, value in data.items()
        if _VOLUME.match(key)
        for row in map(as_mapping, as_list(value))
        for number in [as_text(row.get("DG/VD", row.get("VD"))).rpartition("/")[2].strip()]
    ]


def with_foreign(state: str, row: Mapping[str, Any]) -> str:
    """The state of a drive, with what its drive group `F` means: it has the configuration of another controller."""
    return f"{state} foreign" if as_text(row.get("DG")).strip() == "F" else state


def places(
    drives: Sequence[tuple[str, str, str]], failed: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Members, spares and those that failed among drives, which are given by place, state and status.

    Spares of every volume (`GHS`) are none of one volume's.
    """
    return (
        tuple(place for place, state, _ in drives if not state.startswith(_SPARES)),
        tuple(place for place, state, _ in drives if state.startswith(_SPARES) and not state.startswith("GHS")),
        tuple(place for place, _, status in drives if status in failed),
    )


def under_way(operations: str, drives: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """Percent by task of `Consistency Check (36%)` and of what drives are in: 0 where no percentage is told."""
    found = {task: 0.0 for task in (_task(status) for _, _, status in drives) if task}
    for name, percent in _OPERATION.findall(operations):
        found[_task(name) or name] = float(percent or 0)
    return found


def _task(name: str) -> str:
    """The task that a name begins with; empty for another."""
    return next((task for word, task in _TASKS.items() if name.lower().startswith(word)), "")


def path_of(position: str) -> str:
    """`/e252/s4` of `252:4`."""
    enclosure, _, slot = position.rpartition(":")
    return f"/e{enclosure}/s{slot}" if enclosure else f"/s{slot}"


def tasks_of(ask: Callable[[str], str], index: str, volume: VolumeFacts) -> dict[str, float]:
    """Percent by task on a volume and on the drives in it: of several drives the one with the longest way to go.

    `ask` runs one command of the tool and returns what it printed. Raises ToolError.
    """
    found: dict[str, float] = {}
    for words in ("init", "bgi", "cc", "migrate"):
        for answer in answers_of(ask(f"/c{index}/v{volume.id} show {words}"), "storcli"):
            for row in map(as_mapping, as_list(answer.data.get("VD Operation Status"))):
                percent, task = percent_of(row.get("Progress%")), _task(as_text(row.get("Operation")))
                if task and percent is not None:
                    found[task] = percent
    members = {f"/c{index}{path_of(member)}" for member in volume.members}
    for task in ("rebuild", "copyback"):
        for answer in answers_of(ask(f"/c{index}/eall/sall show {task}"), "storcli"):
            for row in map(as_mapping, as_list(answer.data.get("Response Data"))):
                percent = percent_of(row.get("Progress%"))
                if as_text(row.get("Drive-ID")) in members and percent is not None:
                    found[task] = min(percent, found.get(task, percent))
    return found
