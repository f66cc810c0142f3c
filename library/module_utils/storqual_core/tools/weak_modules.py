# SPDX-License-Identifier: Apache-2.0
"""weak-modules, depmod and modprobe on modules of another kernel: linked, not compatible, refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..kit.errors import ToolError
from ..kit.labelled_text import first_line, numbered_lines


@dataclass(frozen=True)
class Fit:
    """A module of kernel `built_for` beside another kernel; `symbols` are those that differ."""

    module: str
    built_for: str
    kernel: str
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True)
class WeakModules:
    """What was said of modules; `unknown` pairs a module's file with a symbol, `problems` are other failures."""

    compatible: tuple[Fit, ...] = ()
    incompatible: tuple[Fit, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


_FIT = re.compile(
    r"Module (\S+) from kernel (\S+) is (not )?compatible\s+with kernel (\S+?)(?: in symbols:((?:\s+\w+)+))?"
)
_UNKNOWN = re.compile(
    r"(?:depmod: )?WARNING: (/\S+) (?:needs unknown symbol|disagrees about version of symbol) (\w+)"
)
_PROBLEM = re.compile(
    r"getopt: .*|.*: Unknown format|Unable to decompress .*|(?:depmod|modprobe|insmod): (?:ERROR|FATAL).*"
    r"|.*\bversion magic '[^']*' should be '[^']*'.*|.*: disagrees about version of symbol \w+"
    r"|.*: no symbol version for \w+|.*: Unknown symbol \w+.*|.*No space left on device"
)


def parse_answer(text: str) -> WeakModules:
    """`weak-modules --verbose`, or what depmod and modprobe say of a module; nothing said is nothing wrong.

    Raises ToolError for a text with no line that any of them prints, and for a fit that is cut.
    """
    fits: dict[bool, list[Fit]] = {True: [], False: []}
    unknown, problems, notes = [], [], []
    for number, printed in numbered_lines(text):
        line = printed.strip()
        fit, symbol = _FIT.fullmatch(line), _UNKNOWN.fullmatch(line)
        if fit and bool(fit.group(3)) == bool(fit.group(5)):
            module, built_for, _, kernel, symbols = fit.groups()
            fits[not fit.group(3)].append(Fit(module, built_for, kernel, tuple((symbols or "").split())))
        elif " compatible " in line and "from kernel" in line:
            raise ToolError(f"weak-modules: line {number} is cut, or not understood: {line[:160]!r}")
        elif symbol:
            unknown.append((symbol.group(1), symbol.group(2)))
        elif _PROBLEM.fullmatch(line):
            problems.append(line)
        else:
            notes.append(line)
    if notes and not (fits[True] or fits[False] or unknown or problems):
        raise ToolError(f"no line that weak-modules, depmod or modprobe prints of a module: {first_line(text)}")
    return WeakModules(tuple(fits[True]), tuple(fits[False]), tuple(unknown), tuple(problems), tuple(notes))
