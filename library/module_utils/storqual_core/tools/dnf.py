# SPDX-License-Identifier: Apache-2.0
"""dnf 4, dnf 5 and yum: what a transaction would change, and what it did. "Complete!" proves nothing.

A script of a package that fails is a warning to RPM: dnf says "Complete!" and ends with 0. rpm's own lines in the
answer are read here for zypper too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Iterable, Mapping, Sequence

from ..kit.command import Runner
from ..kit.errors import ToolError
from ..kit.labelled_text import as_list, as_text, first_line, line_error, numbered_lines
from ..kit.machine import visible
from ..kit.package_names import ARCHITECTURE, split_nevra


@dataclass(frozen=True)
class Transaction:
    """A transaction of packages as it was told.

    `planned` and `done` are names of packages by `install`, `upgrade`, `downgrade`, `reinstall`, `remove`, as they
    were printed. `end` is `complete`, `nothing`, `aborted`, or empty where the text tells no end. `failures` are
    scripts and plugins that failed, `problems` what stopped it; `lock` is who holds the lock, `space` the bytes that
    a file system lacks. What is not understood is in `notes`.
    """

    planned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    done: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    end: str = ""
    failures: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    lock: str = ""
    space: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it cannot be taken as done, most telling first."""
        obstacles = [f"the package lock is held by {self.lock}"] if self.lock else []
        obstacles += [f"{place} lacks {size >> 20} MiB" for place, size in self.space.items()]
        return (*obstacles, *self.problems, *self.failures)


FRONT_END = re.compile(r"Last metadata expiration check: .*|Updating and loading repositories:|Repositories loaded\.")
"""What dnf prints in front of any answer."""
DNF_ALONE = re.compile(
    r"Dependencies resolved\.|Complete!|Running transaction(?: check| test)?|Transaction Summary:?|"
    r"Operation aborted.*|>>> (?:\[RPM\] |(?:Non-critical error|Running) .*scriptlet).*|"
    r"Transaction (?:check|test) succeeded\.|\(try to add '--.*|(?:Error: )?Transaction (?:check|test) error:?|"
    r"Error running transaction: .*|Transaction failed: .*|"
    r"(?:Error: )?(?:(?:Unable to find a match|No match for argument): |Failed to download metadata for repo ).*|"
    r"Failed to resolve the transaction:|(?:Error: )?There are no enabled repositories in .*|"
    r"(?:Error: )?This command has to be run with superuser privileges.*|Error: GPG check FAILED|"
    r"Waiting for process with pid [0-9]+ to finish\.?|Failed to obtain the transaction lock.*|"
    r"Another app is currently holding the yum lock.*|\[ *[0-9]+/[0-9]+\] .* [0-9]+% \|.*"
)
"""Lines of a transaction that dnf or yum prints, and no other tool that is read here."""
ZYPPER_ALONE = re.compile(
    r"Reading installed packages\.\.\.|Loading repository data\.\.\.|Resolving package dependencies\.\.\.|"
    r"The following .* going to be \w+(?: *\([^()]*\))?:|\([0-9]+/[0-9]+\) (?:Installing|Removing|Upgrading):? .*|"
    r"System management is locked by .*|Checking for file conflicts:.*|No provider of .* found\.|"
    r"Root privileges are required .*|Installation of .* failed.*|Removal of .* failed.*"
)
"""Lines of a transaction that zypper prints, and no other tool that is read here."""


def told_by(tool: str, own: re.Pattern[str], text: str, *, other: re.Pattern[str]) -> bool:
    """Whether a line is the tool's alone; what a package's script prints beside it may be any text.

    Raises ToolError with the first line of the other tool where none is this tool's.
    """
    lines = list(numbered_lines(text))
    if any(own.fullmatch(line.strip()) for _, line in lines):
        return True
    for number, line in lines:
        if other.fullmatch(line.strip()):
            raise line_error(tool, number, line, f"a line of {tool}")
    return False


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SPACE = re.compile(
    r"needs (?:at least )?([0-9]{1,9})([KMG]?)i?B (?:more space )?on the (/\S*) file ?system|"
    r"At least ([0-9]{1,9})([KMG]?)i?B more space needed on the (/\S*) file ?system"
)
# the words behind a script's package are in the user's language
_SCRIPT = re.compile(
    r"%(?:pre|post|preun|postun|pretrans|posttrans|preuntrans|postuntrans|\w*trigger\w*)\([^()\s]+\)\s+\S.*[0-9]+\s*"
)
_FAILED = re.compile(
    r".*\.install failed with exit status [0-9]+\.?|(?:Error|Non-fatal \w+|Non-critical error) .*scriptlet.*|"
    r"Error in \w+ scriptlet.*|dracut(?:\[[FE]\]|: FAILED|: FATAL).*|.*No space left on device.*|"
    r"depmod: (?:ERROR|FATAL).*"
)
_LOCKS = (
    re.compile(r"Waiting for process with pid ([0-9]+) to finish\.?"),
    re.compile(r"Existing lock /\S+: another copy is running as pid ([0-9]+)\.?"),
    re.compile(r"Another app is currently holding the yum lock.*"),
    re.compile(r"(?:error: )?can't create transaction lock on .*"),
    re.compile(r"Failed to obtain the transaction lock.*"),
    re.compile(r"System management is locked by the application with pid ([0-9]+) (\(.*?\))\.?"),
)


class RpmLines:
    """Lines that rpm and its helpers print among those of a front end: scripts that fail, room, locks."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.lock = ""
        self.space: dict[str, int] = {}

    def take(self, line: str) -> bool:
        """Whether the line was one of these."""
        space = list(_SPACE.finditer(line))
        for match in space:
            number, unit, place = (group for group in match.groups() if group is not None)
            self.space[place] = max(self.space.get(place, 0), int(number) * _UNITS[unit])
        lock = next((match for match in (shape.fullmatch(line) for shape in _LOCKS) if match), None)
        if lock:
            process, program = (*lock.groups(), "", "")[:2]
            self.lock = self.lock or (f"process {process} {program}".strip() if process else "another program")
        failed = bool(_SCRIPT.search(line) or _FAILED.fullmatch(line))
        self.failures += [line] if failed else []
        return failed or bool(space or lock)


_VERBS = {
    "install": ("Installing", "Installed", "Install", "Dependency Installed", "Installing dependencies"),
    "upgrade": ("Upgrading", "Upgraded", "Upgrade", "Updating", "Updated", "Update", "Dependency Updated"),
    "downgrade": ("Downgrading", "Downgraded", "Downgrade"),
    "reinstall": ("Reinstalling", "Reinstalled", "Reinstall"),
    "remove": ("Removing", "Removed", "Remove", "Erasing", "Dependency Removed"),
}
_VERB_OF = {word: verb for verb, words in _VERBS.items() for word in words}
_HEAD = re.compile(
    r"(Installing|Upgrading|Updating|Downgrading|Reinstalling|Removing)"
    r"(?: (?:for )?(?:weak |unused |dependent )?(?:dependencies|packages)| group/module packages| group packages)?:"
)
_RESULT = re.compile(
    r"((?:Dependency )?(?:Installed|Upgraded|Updated|Downgraded|Reinstalled|Removed)|Failed|Skipped|Replaced):"
)
_SUMMARY = re.compile(
    r"\s*(Install|Upgrade|Update|Downgrade|Reinstall|Remove|Installing|Upgrading|Downgrading|Reinstalling|Removing):?\s+"
    r"(?:([0-9]{1,6}) packages?(?:\(s\))?(?: +\(\+|$)|\( *)(?:([0-9]{1,6}) Dependent packages?\))?",
    re.IGNORECASE,
)
_ROW = re.compile(
    rf"\s+(\S+)\s+({ARCHITECTURE.pattern})\s+((?:[0-9]{{1,9}}:)?[\w.+~^]+-[\w.+~^]+)\s+(@?\S+)\s+"
    r"[0-9.,]+ *[kKMGT]?i?B?\s*"
)
_STEP = re.compile(r"(?:\s+(\w+)\s+: (\S+)\s+[0-9]+/[0-9]+|\[ *[0-9]+/[0-9]+\] (\w+) (\S+)\s+[0-9]+% \|.*)\s*")
_OTHER_STEP = re.compile(
    r"\s+(?:Preparing|Running scriptlet|Verifying|Cleanup|Obsoleting)\s*: .*|\[ *[0-9]+/[0-9]+\] .*|"
    r"\([0-9]+/[0-9]+\): .*"
)
_KNOWN = re.compile(
    r"Dependencies resolved\.|Transaction Summary:?|Running [Tt]ransaction.*|"
    r"Transaction (?:check|test) succeeded\.|Downloading Packages:|Total (?:download )?size\b.*|"
    r"Total +[0-9.,]+ +\S?i?B/s .*|Installed size: .*|Is this ok.*|"
    r"Package .* (?:is )?already installed.*|\s*Package +Arch(?:itecture)? +Version +Repository.*"
)
_RULE = re.compile("=+|-+")
_PROBLEM = re.compile(
    r"(?:Error|Fatal error|Failed to|Unable to|No match for|Cannot|You have enabled checking|The operation would|"
    r"Problem(?: [0-9]+)?: |Failed|Public key for|GPG check FAILED|OpenPGP check for|"
    r"Transaction (?:(?:check|test) error|failed)).*",
    re.IGNORECASE,
)
_ENDS = {
    "Complete!": "complete",
    **dict.fromkeys(("Nothing to do.", "Nothing to do"), "nothing"),
    **dict.fromkeys(("Operation aborted.", "Operation aborted by the user.", "Exiting on user command"), "aborted"),
}


def parse_transaction(text: str) -> Transaction:
    """What dnf said of a transaction, dry or not; or the JSON result of Ansible's module of that name.

    Raises ToolError for a text with no line of dnf or rpm, or of zypper, and for a list of packages that is
    not as long as its summary says.
    """
    if text.lstrip().startswith("{"):
        return _of_ansible(text)
    own = told_by("dnf", DNF_ALONE, text, other=ZYPPER_ALONE)
    rpm, reader = RpmLines(), _Reader()
    for number, line in numbered_lines(text):
        # without a terminal the answer stands behind the question
        end = line.strip().rpartition("]: ")[2]
        if end in _ENDS:
            reader.ended(_ENDS[end], number, line)
        elif line.startswith(">>>"):
            # what a script of a package printed
            if not rpm.take(line[4:]):
                (rpm.failures if line.startswith(">>> Error") else reader.notes).append(line[4:])
        elif not rpm.take(line.strip()):
            reader.take(number, line)
    reader.close()
    if not (own or reader.known or rpm.failures or rpm.lock or rpm.space):
        raise ToolError(f"dnf printed no line of a transaction: {visible((*reader.problems, first_line(text))[0])}")
    return Transaction(
        _plain(reader.planned),
        _plain(reader.done),
        reader.end,
        tuple(rpm.failures),
        tuple(reader.problems),
        rpm.lock,
        rpm.space,
        tuple(reader.notes),
    )


def _plain(packages: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return {verb: tuple(dict.fromkeys(names)) for verb, names in packages.items() if names}


class _Reader:
    """The lines of dnf itself: the table of what is planned, its summary, steps, and the lists at the end."""

    def __init__(self) -> None:
        self.planned: dict[str, list[str]] = {verb: [] for verb in _VERBS}
        self.done: dict[str, list[str]] = {verb: [] for verb in _VERBS}
        self.counts: dict[str, int] = {}
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.end = ""
        self.known = 0
        self.fronted = False
        self._part, self._verb, self._row = "", "", ""

    def ended(self, end: str, number: int, line: str) -> None:
        if self.end == "nothing" and end == "complete":
            # dnf 4 says both
            return
        if self.end not in ("", end):
            raise line_error("dnf", number, line, f"the end of a transaction that has ended ({self.end})")
        self.end, self.known, self._part = end, self.known + 1, ""

    def take(self, number: int, line: str) -> None:
        head, result, summary = _HEAD.fullmatch(line), _RESULT.fullmatch(line), _SUMMARY.fullmatch(line)
        step = _STEP.fullmatch(line)
        verb = _VERB_OF.get((step.group(1) or step.group(3)) if step else "", "")
        if head or result:
            self._finish_row(number, line)
            self._part = "table" if head else "result"
            self._verb = _VERB_OF.get((head or result).group(1), "")  # type: ignore[union-attr]
        elif step and verb:
            # yum puts the epoch first
            package = re.sub(r"^([0-9]+:)(.+)-([^-]+-[^-]+)$", r"\2-\1\3", step.group(2) or step.group(4))
            nevra = split_nevra(package)
            name = package if nevra and nevra.architecture else self._full_name(verb, package)
            (self.done[verb] if name else self.notes).append(name or package)
        elif summary:
            self._finish_row(number, line)
            self._part = ""
            action = _VERB_OF[summary.group(1).capitalize()]
            if action in self.counts:
                raise line_error("dnf", number, line, "the only line of the summary for this")
            self.counts[action] = int(summary.group(2) or 0) + int(summary.group(3) or 0)
        elif _RULE.fullmatch(line) or FRONT_END.fullmatch(line):
            self._finish_row(number, line)
            self.fronted = self.fronted or bool(FRONT_END.fullmatch(line))
            return
        elif _KNOWN.fullmatch(line) or _OTHER_STEP.fullmatch(line):
            self._finish_row(number, line)
            self._part = ""
        elif self._part == "table" and line[0].isspace():
            self._table_row(line)
            return
        elif self._part == "result" and line[0].isspace() and all(map(split_nevra, line.split())):
            if self._verb:
                self.done[self._verb] += line.split()
        elif _PROBLEM.match(line.strip()) or (self.problems and line[0].isspace() and not self._part):
            self.problems.append(line.strip())
            if not self.fronted:
                # any program may say `Error: `
                return
        else:
            # below a heading that is not known stand no packages of the one before
            self._finish_row(number, line)
            self._part = self._part if line[0].isspace() else ""
            self.notes.append(line.strip())
            return
        self.known += 1

    def _full_name(self, verb: str, prefix: str) -> str:
        """The name that a step cuts where it is long: of the only package of the table that begins so."""
        start = prefix.replace("-0:", "-")
        names = [name for name in self.planned[verb] if name.replace("-0:", "-").startswith(start)]
        return names[0] if len(names) == 1 else ""

    def _table_row(self, line: str) -> None:
        """A row of the table; one that is too long for the terminal goes on in the next line."""
        if line.strip().startswith("replacing "):
            return
        self._row = f"{self._row} {line.strip()}"
        row = _ROW.fullmatch(self._row)
        if row:
            name, architecture, evr, _ = row.groups()
            self.planned[self._verb].append(f"{name}-{evr}.{architecture}")
            self.known += 1
            self._row = ""

    def _finish_row(self, number: int, line: str) -> None:
        if self._row:
            raise line_error("dnf", number, line, f"the rest of {visible(self._row.strip()[:100])!r}")

    def close(self) -> None:
        """Hold the table against its summary. Raises ToolError."""
        if self._row:
            raise ToolError(f"dnf: the last package is not told whole: {visible(self._row[:120])!r}")
        listed = {verb: len(names) for verb, names in self.planned.items() if names}
        wrong = [verb for verb in {*listed, *self.counts} if listed.get(verb, 0) != self.counts.get(verb, 0)]
        if listed and self.counts and wrong:
            verb = wrong[0]
            raise ToolError(
                f"dnf lists {listed.get(verb, 0)} packages to {verb}, and its summary says {self.counts.get(verb, 0)}"
            )


def _of_ansible(text: str) -> Transaction:
    """The result of `ansible.builtin.dnf`: `Installed: <package>` and the like. Raises ToolError."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ToolError(f"dnf: JSON that cannot be read ({str(problem)[:100]})") from None
    results = body.get("results") if isinstance(body, dict) else None
    if not isinstance(results, list) or "rc" not in body:
        raise ToolError("dnf: line 1 begins JSON that is no result of Ansible's module dnf (results, rc)")
    done: dict[str, list[str]] = {verb: [] for verb in _VERBS}
    notes = []
    for line in map(as_text, as_list(results)):
        word, _, package = line.partition(": ")
        if word in _VERB_OF and split_nevra(package):
            done[_VERB_OF[word]].append(package)
        else:
            notes.append(line)
    problems = tuple(filter(None, [as_text(body.get("msg"))])) if body.get("rc") or body.get("failed") else ()
    return Transaction({}, _plain(done), "" if problems else "complete", (), problems, "", {}, tuple(notes))


def failure(text: str, status: int) -> str:
    """Why a transaction that ended with `status` cannot be taken as done, as part of a sentence; empty when it can.

    An answer that cannot be read counts as failed: what it did is looked up where it lies.
    """
    try:
        transaction = parse_transaction(text)
    except ToolError as problem:
        return str(problem)
    reasons = "; ".join(transaction.reasons[:3])
    if transaction.end == "nothing" and not reasons:
        return "it had nothing to do"
    return reasons or (first_line(text) if status else "")


def preview(runner: Runner, words: Sequence[str]) -> Transaction:
    """What a call of dnf (`install`, names or files) would change; nothing is. Raises ToolError."""
    ended = runner(["dnf", "--assumeno", "--setopt=installonly_limit=0", *words], timeout=600.0)
    return parse_transaction(f"{ended.stdout}\n{ended.stderr}")
