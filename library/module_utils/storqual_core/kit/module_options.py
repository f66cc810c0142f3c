# SPDX-License-Identifier: Apache-2.0
"""Module options as modprobe keeps them: one file of our own, read last, and what all files say together.

modprobe reads the files of its folders by name and hands the kernel all options of a module in that order, so the
last one holds (modprobe.d(5)); words of the kernel's command line come after them.
"""

from __future__ import annotations

import re
import shlex
from typing import Mapping

from .errors import BadInputError, ToolError

FILE = "/etc/modprobe.d/zz-storqual.conf"
_HEAD = "# Written by storqual, which also removes it; options declared in a drop.\n"
_NAME = re.compile(r"[A-Za-z][\w-]*\Z")
_TRUE, _FALSE = ("1", "y", "yes", "on", "true"), ("0", "n", "no", "off", "false")

Options = Mapping[str, Mapping[str, str]]
"""Values as text by module and parameter; dashes in a module's name are underscores."""


def declared_options(options: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Options as a drop declares them, `{module: {parameter: value}}`. Raises BadInputError with every problem."""
    found: dict[str, dict[str, str]] = {}
    problems = []
    for module, parameters in options.items():
        if not _NAME.match(module):
            problems.append(f"found {module!r}, expected the name of a kernel module")
        elif not isinstance(parameters, Mapping) or not parameters:
            problems.append(f"{module}: found {parameters!r}, expected {{parameter: value}}")
        else:
            mine = found.setdefault(module.replace("-", "_"), {})
            for name, value in parameters.items():
                text = _text(value)
                if not _NAME.match(str(name)):
                    problems.append(f"{module}: found {name!r}, expected the name of a parameter")
                elif text is None:
                    problems.append(f"{module}.{name}: found {value!r}, expected one printable word")
                else:
                    mine[str(name)] = text
    if problems:
        raise BadInputError(problems)
    return found


def _text(value: object) -> str | None:
    """A value as a module takes it; None for what a line of modprobe.d or a command line cannot carry."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, (str, int)):
        return None
    text = str(value)
    return text if text and re.fullmatch(r"[!-~]+", text) and not set(text) & set("\"'\\#`$") else None


def parse_options(text: str) -> dict[str, dict[str, str]]:
    """The `options` lines of a file, or of `modprobe --showconfig`: the last value of each parameter.

    A line goes on after a backslash; a parameter without a value is a flag and has an empty one. Raises ToolError.
    """
    found: dict[str, dict[str, str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split(None, 2)
        if len(words) < 3 or words[0] != "options":
            continue
        try:
            pairs = shlex.split(words[2], posix=True)
        except ValueError as problem:
            raise ToolError(f"an options line of modprobe is not understood ({problem}): {line[:120]!r}") from problem
        for pair in pairs:
            name, _, value = pair.partition("=")
            found.setdefault(words[1].replace("-", "_"), {})[name] = value
    return found


def in_file(text: str | None) -> dict[str, dict[str, str]]:
    """The options of our own file; none when there is no file."""
    return parse_options(text or "")


def compose(options: Options) -> str | None:
    """Our file with these options; None (no file) when there are none."""
    lines = [
        f"options {module} {' '.join(f'{name}={value}' for name, value in sorted(parameters.items()))}\n"
        for module, parameters in sorted(options.items())
        if parameters
    ]
    return _HEAD + "".join(lines) if lines else None


def same_value(one: str, other: str) -> bool:
    """Whether the kernel's text of a parameter is the declared value: `Y` is 1, `0x10` is 16."""
    if one == other:
        return True
    lowered = one.strip().lower(), other.strip().lower()
    for words in (_TRUE, _FALSE):
        if all(word in words for word in lowered):
            return True
    try:
        return int(lowered[0], 0) == int(lowered[1], 0)
    except ValueError:
        return lowered[0] == lowered[1]
