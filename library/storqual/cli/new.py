# SPDX-License-Identifier: Apache-2.0
"""`storqual new`: write a small working example of a suite, a drop, a lab, a check or a tool, to be edited."""

from __future__ import annotations

import bisect
import keyword
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from storqual.base.resources import project_root, templates_folder
from storqual.base.text import terminal_text
from storqual.cli.options import as_json, print_json
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KINDS = ("suite", "drop", "lab", "check", "tool")

_PLACEHOLDER = "newname"
"""What a template says where the new name belongs; a word that Python, YAML and Robot Framework take as it is."""

_FILE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_PYTHON_NAME = re.compile(r"[a-z][a-z0-9_]{0,23}")
_NAMES = {
    "check": (_PYTHON_NAME, "lower-case letters, digits and `_`, a letter first, at most 24"),
    "tool": (_PYTHON_NAME, "lower-case letters, digits and `_`, a letter first, at most 24"),
}
_ANY_NAME = (_FILE_NAME, "lower-case letters, digits, `_` and `-`, a letter first, at most 40")

_TOOLS = Path("library/module_utils/storqual_core/tools")
_TOOL_TESTS = Path("tests/unit/storqual_core/tools")
_SHIPPED = re.compile(r"^    from \. import \(.*\n((?:        \w+,\n)+)    \)$", re.MULTILINE)
"""The import in `tools/__init__.py` by which Ansible ships the tools to a bench."""


@dataclass(frozen=True)
class Example:
    """What is to be written: texts by path, the files among them that are there and change, what to do next."""

    texts: Mapping[Path, str]
    changed: tuple[Path, ...] = ()
    then: tuple[str, ...] = ()


@click.command("new")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("-i", "--inventory", "lab", type=click.Path(path_type=Path), help="The lab that the drop is for.")
@as_json
def new_command(kind: str, name: str, lab: Path | None, as_json: bool) -> None:
    """Write a small working example to edit: a suite, a drop, a lab, a check or a vendor tool.

    A lab goes to the folder inventories/, which is made if needed, and a drop to the folder drops/ of its lab. A
    suite or a check goes to suites/ or suites/robot/ if the current folder has these, otherwise to the current
    folder. A tool can only be written in a checkout of the project. No existing file is overwritten.

    \b
    Examples:
      storqual new suite streaming
      storqual new drop driver_4_2 -i inventories/local
      storqual new lab room7
      storqual new check cabling
      storqual new tool acmecli --json
    """
    _check_name(kind, name)
    if (kind == "drop") != (lab is not None):
        needed = "needed for a drop" if kind == "drop" else f"for a drop only, not for a {kind}"
        raise BadInputError([f"-i/--inventory is {needed}"])
    if lab is not None:
        example = _drop(name, lab)
    else:
        example = {"suite": _suite, "lab": _lab, "check": _check, "tool": _tool}[kind](name)
    _write(example)
    written = [str(path) for path in example.texts if path not in example.changed]
    changed = [str(path) for path in example.changed]
    if as_json:
        print_json({"kind": kind, "name": name, "files": written, "changed": changed, "next": list(example.then)})
        return
    added = [f"{path} (one line added)" for path in changed]
    for line in [*written, *added, *(f"next: {one}" for one in example.then)]:
        click.echo(terminal_text(line))


def _check_name(kind: str, name: str) -> None:
    """Raise BadInputError for a name that is not of the alphabet."""
    pattern, alphabet = _NAMES.get(kind, _ANY_NAME)
    if not pattern.fullmatch(name):
        raise BadInputError([f"{kind} {name!r}: this name cannot be used; a name has {alphabet}"])
    if kind == "tool" and keyword.iskeyword(name):
        raise BadInputError([f"tool {name!r}: this is a reserved word of Python; choose another name"])


def _suite(name: str) -> Example:
    folder = _existing("suites")
    path = folder / f"{name}.suite.yml"
    asked = name if folder.name == "suites" else f"./{path}"
    plan = f"storqual plan -i {_files_of_this_machine()} --baseline baseline --candidate candidate --suite {asked}"
    return Example(_filled("suite", name, folder), then=(f"{plan} --dry-run",))


def _drop(name: str, lab: Path) -> Example:
    """A drop for `lab`; files of this machine have no settings. Raises BadInputError for a lab that is none."""
    from storqual.inputs import load_inventory

    benches = load_inventory([lab]).benches
    template = "drop_of_files" if all(bench.kind == "local" for bench in benches.values()) else "drop"
    folder = (lab if lab.is_dir() else lab.parent) / "drops"
    then = tuple(f"storqual resolve -i {lab} --bench {bench} --drop {name}" for bench in list(benches)[:1])
    return Example(_filled(template, name, folder), then=then)


def _lab(name: str) -> Example:
    # below inventories/ in every folder, because pages and examples name labs there
    folder = Path("inventories") / name
    drop = "in_field"
    return Example(
        {**_filled("lab", name, folder), **_filled("drop", drop, folder / "drops")},
        then=(
            f"storqual inventory -i {folder}",
            f"storqual facts --host <name> --write-inventory > {folder / 'hosts.yml'}",
            f"storqual resolve -i {folder} --bench bench01 --drop {drop}",
        ),
    )


def _check(name: str) -> Example:
    texts = _filled("check", name, _existing("suites"))
    places = {path: _existing("suites/robot") / path.name if path.suffix == ".robot" else path for path in texts}
    robot, test = sorted(places.values(), key=lambda path: path.suffix != ".robot")
    lab = _files_of_this_machine()
    return Example(
        {places[path]: text for path, text in texts.items()},
        then=(
            f"python -m pytest {test} -p storqual.pytest_plugin --storqual-inventory {lab}",
            f"storqual robot {robot} -i {lab}",
        ),
    )


def _tool(name: str) -> Example:
    """A vendor tool with its outputs, its test, and the line that ships it."""
    registry = _TOOLS / "__init__.py"
    found = _SHIPPED.search(registry.read_text(encoding="utf-8")) if registry.is_file() else None
    if found is None:
        raise BadInputError(
            [f"{registry}: not found; a tool is written in a checkout of storqual: make that the current folder"]
        )
    names = found.group(1).split()
    if f"{name}," in names:
        raise BadInputError([f"{registry}: {name} is listed there already; choose another name"])
    bisect.insort(names, f"{name},")
    listed = "".join(f"        {one}\n" for one in names)
    places = {
        f"{_PLACEHOLDER}.py": _TOOLS,
        f"test_{_PLACEHOLDER}.py": _TOOL_TESTS,
        "fixtures": _TOOL_TESTS / "fixtures" / name,
    }
    texts: dict[Path, str] = {}
    for part, folder in places.items():
        texts |= _filled(f"tool/{part}", name, folder)
    texts[registry] = found.string[: found.start(1)] + listed + found.string[found.end(1) :]
    test = f"python -m pytest {_TOOL_TESTS} -k '{name} or shipped'"
    return Example(texts, changed=(registry,), then=(test, "read CONTRIBUTING.md, Adding a vendor tool"))


def _existing(folder: str) -> Path:
    """Where the project looks for such files, when it is here; else the current folder."""
    return Path(folder) if Path(folder).is_dir() else Path()


def _files_of_this_machine() -> Path:
    """The inventory that needs no bench."""
    here = Path("inventories/local")
    return here if here.is_dir() else project_root() / here


def _filled(template: str, name: str, folder: Path) -> dict[Path, str]:
    """The files of a template with `name` in them, by where they go below `folder`."""
    return dict(_each_filled(templates_folder() / "new" / template, name, folder))


def _each_filled(source: Path, name: str, folder: Path) -> Iterator[tuple[Path, str]]:
    # an installer compiles Python files where they lie, into a folder beside them
    for file in [source] if source.is_file() else sorted(path for path in source.iterdir() if path.is_file()):
        yield (
            folder / file.name.replace(_PLACEHOLDER, name),
            file.read_text(encoding="utf-8").replace(_PLACEHOLDER, name),
        )


def _write(example: Example) -> None:
    """Write all of it or nothing. Raises BadInputError for what is there already and what cannot be written."""
    there = [path for path in example.texts if path not in example.changed and (path.exists() or path.is_symlink())]
    if there:
        raise BadInputError([f"{path}: this file exists already; choose another name" for path in there])
    done: list[Path] = []
    try:
        for path, text in example.texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w" if path in example.changed else "x", encoding="utf-8") as file:
                done += [] if path in example.changed else [path]
                file.write(text)
    except OSError as problem:
        for path in done:
            path.unlink(missing_ok=True)
        raise BadInputError([f"{problem.filename}: cannot be written ({problem.strerror})"]) from None
