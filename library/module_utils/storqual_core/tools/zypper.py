# SPDX-License-Identifier: Apache-2.0
"""zypper: what a transaction would change and what it did, its exit codes, and libzypp's history."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import first_line, line_error, numbered_lines
from ..kit.machine import visible
from ..kit.package_names import split_nevra
from .dnf import DNF_ALONE, ZYPPER_ALONE, RpmLines, Transaction, told_by

EXIT_CODES: Mapping[int, str] = {
    1: "an error of zypper itself",
    **dict.fromkeys((2, 3), "wrong arguments"),
    4: "libzypp found a problem",
    5: "the caller is not root",
    6: "no repository is defined",
    7: "another program holds the package lock",
    8: "the transaction broke off",
    104: "a package or what it needs is not known",
    105: "a signal ended it",
    106: "a repository was left out",
    107: "a script of a package failed",
}
"""What ends with these is not done (zypper(8)); 100 to 103 tell of updates and of a restart that is due."""

_KINDS = {
    "installed": "install",
    "upgraded": "upgrade",
    "downgraded": "downgrade",
    "reinstalled": "reinstall",
    "removed": "remove",
}
_HEAD = re.compile(
    r"The following (?:([0-9]{1,6}) )?(?:NEW )?(package|product|patch|pattern|application)(?:e?s)? (?:is|are) "
    r"going to be (\w+)(?: *\([^()]*\))?:"
)
_SUMMARY = re.compile(
    r"[0-9]+ (?:new )?(?:source )?(?:packages?|products?|patch(?:es)?|patterns?) (?:to \w+)?.*\."
    r"|[0-9]+ (?:new|to \w+).*\."
)
_COUNT = re.compile(r"([0-9]{1,6}) (new\b)?(?: ?(packages?|products?|patch(?:es)?|patterns?))?(?: ?to (\w+))?[^,]*")
_STEP = re.compile(
    r"(?:\(\d+/\d+\) )?(Installing|Removing|Upgrading):? (\S+?)[ ,.]*(?:\[[. ]*(done|error|not found)[^\]]*\]?)?"
)
_KNOWN = re.compile(
    r"Reading installed packages\.\.\.|Loading repository data\.\.\.|Resolving package dependencies\.\.\."
    r"|Retrieving.*|Refreshing service .*|Checking for file conflicts:.*|(?:Overall|Package) download size: .*"
    r"|Continue\? .*|Computing distribution upgrade\.\.\.|'.*' is already installed\.|In cache .*|Backend: .*"
)
_PROBLEM = re.compile(
    r"(?:Problem(?: [0-9]+)?: |Error|File conflicts|No provider of|Installation of .* failed|Removal of .* failed|"
    r"Subprocess failed|There are some running|Root privileges|Signature verification failed|"
    r"Package .* (?:is not signed|failed)|'.*' not found|Warning: The gpg key).*",
    re.IGNORECASE,
)
_OF_ANYBODY = re.compile("Error|Warning", re.IGNORECASE)
# `--details` where nobody looks at a terminal: a package's name, and below it each of its columns
_BLOCK = re.compile(r"^\S+(?:\n  .*)+$", re.MULTILINE)


def parse_transaction(text: str) -> Transaction:
    """What zypper said of a transaction, dry or not.

    Raises ToolError for a text with no line of zypper or rpm, or of dnf, and for a list that is not as long as
    zypper says.
    """
    text = _BLOCK.sub(lambda block: "  " + block.group().replace("\n", ""), text)
    own = told_by("zypper", ZYPPER_ALONE, text, other=DNF_ALONE)
    rpm, reader, number = RpmLines(), _Reader(), 0
    for number, line in numbered_lines(text):
        if reader.rows is not None and line.startswith("  ") and number == reader.last + 1:
            reader.rows.append(line.strip())
        else:
            reader.close_list(number)
            if not rpm.take(line.strip()):
                reader.take(number, line.strip())
        reader.last = number
    reader.close_list(number)
    if not (own or reader.known or rpm.failures or rpm.lock or rpm.space):
        # any program may say `Error: `
        answer = visible((*reader.problems, first_line(text))[0])
        raise ToolError(f"zypper printed no line of a transaction: {answer}")
    for verb in {*reader.planned, *reader.counts} if reader.counts else ():
        listed, total = len(reader.planned.get(verb, ())), reader.counts.get(verb, 0)
        if listed != total:
            raise ToolError(f"zypper lists {listed} packages to {verb}, and its summary says {total}")
    planned, done = (
        {verb: tuple(dict.fromkeys(names)) for verb, names in packages.items()}
        for packages in (reader.planned, reader.done)
    )
    end, problems, notes = reader.end, tuple(reader.problems), tuple(reader.notes)
    return Transaction(planned, done, end, tuple(rpm.failures), problems, rpm.lock, rpm.space, notes)


_VERBS = {"Installing": "install", "Removing": "remove", "Upgrading": "upgrade"}


class _Reader:
    """The lines of zypper itself; `rows` are those below a heading, as long as they follow one another."""

    def __init__(self) -> None:
        self.planned: dict[str, list[str]] = {}
        self.done: dict[str, list[str]] = {}
        self.counts: dict[str, int] = {}
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.end, self.known, self.last = "", 0, 0
        self.rows: list[str] | None = None
        self._head = ""

    def close_list(self, number: int) -> None:
        head = _HEAD.fullmatch(self._head)
        verb = _KINDS.get(head.group(3).lower(), "") if head else ""
        if head and verb and head.group(2) == "package":
            count = int(head.group(1) or 0) or (1 if " is going " in self._head else None)
            names = _names(self.rows or [], count, number, self._head)
            self.planned.setdefault(verb, []).extend(names)
        self.rows, self._head = None, ""

    def take(self, number: int, line: str) -> None:
        step = _STEP.fullmatch(line)
        self.known += 1
        if line.startswith("The following ") and line.endswith(":"):
            self.rows, self._head = [], line
        elif step:
            if step.group(3) == "done" and split_nevra(step.group(2)):
                self.done.setdefault(_VERBS[step.group(1)], []).append(step.group(2))
            elif step.group(3) in ("error", "not found"):
                self.problems.append(line)
        elif line == "Nothing to do.":
            self.end = "nothing"
        elif _SUMMARY.fullmatch(line):
            _count(self.counts, line, number)
        elif _PROBLEM.match(line):
            self.problems.append(line)
            self.known -= bool(_OF_ANYBODY.match(line))
        elif not _KNOWN.fullmatch(line):
            self.notes.append(line)
            self.known -= 1


def _names(rows: Sequence[str], count: int | None, number: int, head: str) -> list[str]:
    """The packages below a heading: names side by side, or with `--details` one with its columns in each line.

    Old releases count one alone, the others only in their summary.
    """
    columns = [re.split(r"\s{2,}", row) for row in rows]
    if len(rows) == (count or len(rows)) and all(len(row) >= 3 for row in columns):
        # `old -> new` where one goes for the other
        return [f"{name}-{edition.rpartition(' -> ')[2]}" for name, edition, *_ in columns]
    names = [name for row in rows for name in row.split()]
    if len(names) != (count or len(names)):
        raise line_error("zypper", number, head, f"followed by as many packages ({len(names)} are listed)")
    return names


def _count(counts: dict[str, int], line: str, number: int) -> None:
    """The packages of a summary by what happens to them; products, patches and patterns are counted by themselves."""
    kind = "package"
    for part in line.rstrip(".").split(", "):
        match = _COUNT.fullmatch(part.strip())
        if match is None:
            raise line_error("zypper", number, line, "a summary of numbers and what happens to them")
        amount, new, what, to = match.groups()
        kind = (what or kind).rstrip("s")
        verb = to if to in _KINDS.values() else "install" if new else ""
        if verb and kind == "package":
            counts[verb] = counts.get(verb, 0) + int(amount)


@dataclass(frozen=True)
class HistoryEntry:
    """One line of `/var/log/zypp/history`; name, edition and architecture are those of a package, or empty."""

    time: str
    action: str
    name: str = ""
    edition: str = ""
    architecture: str = ""
    words: tuple[str, ...] = ()


_ENTRY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})\|([a-z]+) *\|(.*)")


def parse_history(text: str) -> tuple[HistoryEntry, ...]:
    """Libzypp's history in the order of its lines; what scripts printed stands behind `#` and is left out.

    Raises ToolError with the line that is no entry, or that is cut.
    """
    entries = []
    for number, line in numbered_lines(text):
        if line.startswith("#"):
            continue
        match = _ENTRY.fullmatch(line)
        words = tuple(match.group(3).split("|")) if match else ()
        package = bool(match) and match is not None and match.group(2) in ("install", "remove")
        if match is None or (package and (len(words) < 4 or not all(words[:3]))):
            raise line_error("zypp history", number, line, "an entry: time, action, and what it was done to")
        name, edition, architecture = words[:3] if package else ("", "", "")
        entries.append(HistoryEntry(match.group(1), match.group(2), name, edition, architecture, words))
    if not entries:
        raise ToolError(f"zypp history has no entry: {first_line(text)}")
    return tuple(entries)


def failure(text: str, status: int) -> str:
    """Why a transaction that ended with `status` cannot be taken as done, part of a sentence; empty when it can."""
    why = EXIT_CODES.get(status, "" if status in (0, 100, 101, 102, 103) else f"status {status}")
    try:
        transaction = parse_transaction(text)
    except ToolError as problem:
        return f"{why}: {problem}" if why else str(problem)
    if transaction.end == "nothing" and not why and not transaction.reasons:
        return "it had nothing to do"
    return ": ".join(part for part in (why, "; ".join(transaction.reasons[:3])) if part)


def preview(runner: Runner, words: Sequence[str]) -> Transaction:
    """What a call of zypper (`install`, names or files) would change; nothing is. Raises ToolError."""
    command, *rest = words
    ended = runner(["zypper", "--non-interactive", command, "--dry-run", "--details", *rest], timeout=600.0)
    return parse_transaction(f"{ended.stdout}\n{ended.stderr}")
