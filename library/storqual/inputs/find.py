# SPDX-License-Identifier: Apache-2.0
"""From what a user types to a file: `stable` is a drop of the inventory, `adapter` a suite of the project."""

import glob
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from storqual.base.files import suites_folder
from storqual.inputs.shape import unknown
from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError

GATE = "gate.yml"
WAIVERS = "waivers.yml"
_SUITE = ".suite.yml"


def beside_inventory(name: str, inventories: Sequence[Path]) -> Path | None:
    """The lab's own file `name`, in the folder of the first inventory that has one, whatever it is there."""
    beside = [(source if source.is_dir() else source.parent) / name for source in inventories]
    # a policy that cannot be read must not count as none
    return next((path for path in beside if os.path.lexists(path)), None)


def find_drop(name: str, inventories: Sequence[Path]) -> Path:
    """`<inventory>/drops/<name>.yml`; a name with `/` is a path. Raises BadInputError that lists what there is."""
    if "/" in name:
        return _existing(Path(name), "a drop manifest", "<name>.yml")
    folders = [(source if source.is_dir() else source.parent) / "drops" for source in inventories]
    labs = {
        other.parent.parent
        for source in inventories
        for other in source.parent.glob(f"*/drops/{glob.escape(name)}.yml")
        if other.is_file()
    }
    elsewhere = f"; {min(labs)} has a drop of that name" if labs else ""
    return _named(name, folders, ".yml", "drop", elsewhere)


def find_suite(name: str) -> Path:
    """`suites/<name>.suite.yml`; a name with `/` or the ending `.suite.yml` is a path.

    Raises BadInputError that lists what there is.
    """
    if "/" in name or name.endswith(_SUITE):
        return _existing(Path(name), "a suite", f"<name>{_SUITE}")
    beside = Path(f"{name}{_SUITE}")
    path = f"; to use {beside} of this folder, write --suite {beside}" if beside.is_file() else ""
    return _named(name, [Path("suites"), suites_folder()], _SUITE, "suite", path)


def _existing(path: Path, what: str, file: str) -> Path:
    if path.is_dir():
        raise BadInputError([f"{path}: this is a folder; {what} is a file {file}"])
    if not path.is_file():
        raise BadInputError([f"{path}: no such file; expected {what}"])
    return path


def _named(name: str, folders: Sequence[Path], suffix: str, what: str, elsewhere: str = "") -> Path:
    for folder in folders:
        path = folder / f"{name}{suffix}"
        if path.is_file():
            return path
        if path.is_dir():
            raise BadInputError([f"{path}: this is a folder; the {what} {name} would be a file of that name"])
    known = sorted(
        file.name.removesuffix(suffix) for folder in folders for file in folder.glob(f"*{suffix}") if file.is_file()
    )
    known = list(dict.fromkeys(known))
    if not name:
        there = f"; there is {', '.join(known)}" if known else ""
        raise BadInputError([f"no {what} is named; give --{what} NAME, to a playbook -e {what}=NAME{there}"])
    if known:
        raise BadInputError([f"{unknown(what, name, known, most=len(known))}{elsewhere}"])
    raise BadInputError([f"unknown {what} {name!r}; it would be the file {folders[0] / (name + suffix)}{elsewhere}"])


_LARGEST_FILE = 64 << 20
_MOST_DIGITS = 40


Hook = Callable[[dict[str, Any]], Any]


def read_json(path: Path, wanted: str, hook: Hook | None = None) -> tuple[Any, bytes]:
    """What a file holds, and its bytes. Raises BadInputError that names the file and what was `wanted`."""
    data = read_regular(path, _LARGEST_FILE)
    return parse_json(data, str(path), wanted, hook), data


def parse_json(data: bytes | str, name: str, wanted: str, hook: Hook | None = None) -> Any:  # noqa: ANN401 - whatever JSON holds
    """The same of a text that was read already."""
    try:
        return json.loads(data, object_hook=hook, parse_int=_number)
    except (ValueError, RecursionError) as problem:
        raise BadInputError([f"{name}: not JSON ({problem}); {wanted}"]) from None


def _number(text: str) -> int | float:
    """A whole number; one that no size, time or count has is a float, or infinite."""
    return int(text) if len(text) <= _MOST_DIGITS else float(text)
