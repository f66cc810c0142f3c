# SPDX-License-Identifier: Apache-2.0
"""`storqual new`: write a small working example of what a lab or the project adds, to be edited."""

import keyword
import re
import shutil
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from storqual.base.files import example_run, project_root, templates_folder
from storqual.base.text import terminal_text
from storqual.cli.options import as_json, print_json
from storqual.cli.schema import with_schema
from storqual_core.kit.errors import BadInputError

KINDS = ("suite", "drop", "lab", "check", "example", "tool", "metric", "fault")

_PLACEHOLDER = "newname"
"""What a template says where the new name belongs; a word that Python, YAML and Robot Framework take as it is."""

_FILE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_PYTHON_NAME = re.compile(r"[a-z][a-z0-9_]{0,23}")
_NAMES = dict.fromkeys(
    ("check", "tool", "metric", "fault"),
    (_PYTHON_NAME, "lower-case letters, digits and `_`, a letter first, at most 24"),
)
_ANY_NAME = (_FILE_NAME, "lower-case letters, digits, `_` and `-`, a letter first, at most 40")

_FAULT = """,
{"name": "newname", "acts_on": "drive", "sentence": "the drive's read-ahead is changed under load and back", "ways": [
  {"name": "newname_by_bench", "where": "bench", "scope": "drive", "needs": "/sys/block/{name}/queue/read_ahead_kb", \
"seen": ["read_back", "put_back"]}]}"""
"""A row for the table of faults, behind the last."""

_CORE = Path("library/module_utils/storqual_core")
_CORE_TESTS = Path("tests/unit/storqual_core")
_METRICS = Path("library/storqual/metrics")


@dataclass(frozen=True)
class AddedLine:
    """What a file of the checkout must say of a new part: `text`, in the block that is the group of `block`.

    It goes to the end of the block, or, of a block whose lines are sorted, to where it belongs.
    """

    file: Path
    block: str
    text: str
    is_sorted: bool = False


@dataclass(frozen=True)
class ProjectPart:
    """A part of the project: its templates by the folder that each goes to, and the lines that name it."""

    folders: Mapping[str, Path]
    lines: tuple[AddedLine, ...]
    test: str
    section: str


_PARTS = {
    "tool": ProjectPart(
        {
            f"{_PLACEHOLDER}.py": _CORE / "tools",
            f"test_{_PLACEHOLDER}.py": _CORE_TESTS / "tools",
            "fixtures": _CORE_TESTS / "tools" / "fixtures" / _PLACEHOLDER,
        },
        # the import by which Ansible ships the tools to a bench
        (
            AddedLine(
                _CORE / "tools/__init__.py",
                r"    from \. import \(.*\n((?:        \w+,\n)+)",
                "        newname,\n",
                is_sorted=True,
            ),
        ),
        f"python -m pytest {_CORE_TESTS}/tools -k '{_PLACEHOLDER} or shipped'",
        "Adding a vendor tool",
    ),
    "metric": ProjectPart(
        {f"{_PLACEHOLDER}.py": _METRICS, f"test_{_PLACEHOLDER}.py": Path("tests/unit/storqual/metrics")},
        (
            AddedLine(
                _METRICS / "__init__.py",
                r"((?:from storqual\.metrics\.\w+ import .*\n)+)",
                "from storqual.metrics.newname import METRIC as NEWNAME\n",
                is_sorted=True,
            ),
            AddedLine(_METRICS / "__init__.py", r"    for metric in \(\n((?:        \S+,\n)+)", "        NEWNAME,\n"),
        ),
        "python -m pytest tests/unit/storqual/metrics",
        "Adding a metric",
    ),
    "fault": ProjectPart(
        {f"{_PLACEHOLDER}.py": _CORE / "turns", f"test_{_PLACEHOLDER}.py": _CORE_TESTS / "turns"},
        (
            AddedLine(_CORE / "data/faults.json", r"(\n.*\]\})\n\]\}\n$", _FAULT),
            AddedLine(
                _CORE / "turns/bench_faults.py",
                r"((?:from \.\w+ import .*\n)+)",
                "from .newname import act_newname\n",
                is_sorted=True,
            ),
            AddedLine(
                _CORE / "turns/bench_faults.py",
                r'\nACTS: .*\n((?:    ".*\n)+)',
                '    "newname_by_bench": act_newname,\n',
            ),
        ),
        f"python -m pytest {_CORE_TESTS}/turns -k {_PLACEHOLDER}",
        "Adding a fault",
    ),
}


@dataclass(frozen=True)
class Example:
    """What is to be written: texts by path, the files among them that are there and change, what to do next.

    `schemas` are the JSON Schemas that the texts name and that are not there yet.
    """

    texts: Mapping[Path, str]
    changed: tuple[Path, ...] = ()
    then: tuple[str, ...] = ()
    schemas: tuple[Path, ...] = ()


@click.command("new")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("-i", "--inventory", "lab", type=click.Path(path_type=Path), help="The lab that the drop is for.")
@as_json
def new_command(kind: str, name: str, lab: Path | None, as_json: bool) -> None:
    """Write a small working example to edit: a suite, a drop, a lab, a check, a vendor tool, a metric or a fault.

    `example` copies a finished run with one failure to a folder of its own: to judge, waive, sign and verify.

    A lab goes to the folder inventories/, which is made if needed, and a drop to the folder drops/ of its lab. A
    suite or a check goes to suites/ or suites/robot/ if the current folder has these, otherwise to the current
    folder. A tool, a metric and a fault can only be written in a checkout of the project. No existing file is
    overwritten.

    \b
    Examples:
      storqual new suite streaming
      storqual new drop driver_4_2 -i inventories/local
      storqual new lab room7
      storqual new check cabling
      storqual new example practice
      storqual new tool acmecli --json
      storqual new metric slowest_second
      storqual new fault read_ahead_change
    """
    _check_name(kind, name)
    if (kind == "drop") != (lab is not None):
        needed = "needed for a drop" if kind == "drop" else f"for a drop only, not for a {kind}"
        raise BadInputError([f"-i/--inventory is {needed}"])
    if kind == "example":
        example = _copied_run(Path(name))
    elif lab is not None:
        example = _drop(name, lab)
    else:
        example = _part(kind, name) if kind in _PARTS else {"suite": _suite, "lab": _lab, "check": _check}[kind](name)
    if kind != "example":
        example = _with_schemas(example)
        _write(example)
    written = [str(path) for path in example.texts if path not in (*example.changed, *example.schemas)]
    changed = [str(path) for path in example.changed]
    schemas = [str(path) for path in example.schemas]
    if as_json:
        answer = {"kind": kind, "name": name, "files": written, "changed": changed, "schemas": schemas}
        print_json({**answer, "next": list(example.then)})
        return
    added = [*(f"{path} (lines added)" for path in changed), *(f"{path} (for editors)" for path in schemas)]
    for line in [*written, *added, *(f"next: {step}" for step in example.then)]:
        click.echo(terminal_text(line))


def _with_schemas(example: Example) -> Example:
    """The same with the JSON Schema of each file in its first line, for the language server of an editor."""
    from storqual.inputs.json_schema import schema_of

    texts = dict(example.texts)
    schemas: dict[Path, str] = {}
    for path, text in example.texts.items():
        name = schema_of(path)
        if name:
            texts[path], missing = with_schema(name, path, text)
            schemas |= missing
    return replace(example, texts={**texts, **schemas}, schemas=tuple(schemas))


def _check_name(kind: str, name: str) -> None:
    pattern, alphabet = _NAMES.get(kind, _ANY_NAME)
    if not pattern.fullmatch(name):
        raise BadInputError([f"{kind} {name!r}: this name cannot be used; a name has {alphabet}"])
    if kind in _PARTS and keyword.iskeyword(name):
        raise BadInputError([f"{kind} {name!r}: this is a reserved word of Python; choose another name"])


def _suite(name: str) -> Example:
    folder = _existing("suites")
    path = folder / f"{name}.suite.yml"
    suite = name if folder.name == "suites" else f"./{path}"
    plan = f"storqual plan -i {_files_of_this_machine()} --baseline baseline --candidate candidate --suite {suite}"
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
            f"storqual facts --host <name> --write-inventory --output {folder / 'hosts.yml'}",
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


def _copied_run(folder: Path) -> Example:
    """The finished run that comes with storqual, unpacked into `folder` and published. Raises BadInputError."""
    from storqual.campaign.pipeline import publish

    if folder.exists() or folder.is_symlink():
        raise BadInputError([f"{folder}: this folder exists already; choose another name"])
    try:
        with tarfile.open(example_run()) as archive:
            archive.extractall(folder, filter="data")
    except OSError as problem:
        shutil.rmtree(folder, ignore_errors=True)
        raise BadInputError([f"{folder}: cannot be written ({problem.strerror})"]) from None
    (run,) = folder.iterdir()
    published = publish(run.resolve())
    waivers, keys = folder / "waivers.yml", folder / "keys.yml"
    return Example(
        {run: "", run / published.report.name: ""},
        then=(
            f"storqual judge {run}",
            f"storqual waive {run} --output {waivers}, and fill it in",
            f"storqual publish {run} --waivers {waivers}",
            f"storqual signoff {run} --key KEY --keys {keys} --waivers {waivers}",
            f"storqual verify {run} --keys {keys}",
        ),
    )


def _part(kind: str, name: str) -> Example:
    """A vendor tool, a metric or a fault: code, test, and the lines that name it. Raises BadInputError."""
    part = _PARTS[kind]
    if name in _existing_names(kind):
        raise BadInputError([f"{kind} {name!r}: there is one of this name; choose another name"])
    changed: dict[Path, str] = {}
    for line in part.lines:
        text = changed.get(line.file) or (line.file.read_text(encoding="utf-8") if line.file.is_file() else "")
        block = re.search(line.block, text)
        if block is None:
            why = f"a {kind} is written in a checkout of storqual: make that the current folder"
            raise BadInputError([f"{line.file}: not found, or not as the project has it; {why}"])
        added = _named(line.text, name)
        lines = block[1].splitlines(keepends=True)
        if added in lines:
            raise BadInputError([f"{line.file}: {name} is listed there already; choose another name"])
        lines.append(added)
        within = "".join(sorted(lines) if line.is_sorted else lines)
        changed[line.file] = text[: block.start(1)] + within + text[block.end(1) :]
    texts: dict[Path, str] = {}
    for template, folder in part.folders.items():
        texts |= _filled(f"{kind}/{template}", name, Path(str(folder).replace(_PLACEHOLDER, name)))
    then = (part.test.replace(_PLACEHOLDER, name), f"read CONTRIBUTING.md, {part.section}")
    return Example({**texts, **changed}, changed=tuple(changed), then=then)


def _existing_names(kind: str) -> Collection[str]:
    """The names that a table would hold twice."""
    from storqual.metrics import METRICS
    from storqual_core.data.faults import FAULTS

    return {"metric": METRICS, "fault": FAULTS}.get(kind, ())


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
            _named(file.read_text(encoding="utf-8"), name),
        )


def _named(text: str, name: str) -> str:
    return text.replace(_PLACEHOLDER, name).replace(_PLACEHOLDER.upper(), name.upper())


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
