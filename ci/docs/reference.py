# SPDX-License-Identifier: Apache-2.0
"""Reference pages made from the code itself, so that they cannot tell of anything that is not there."""

from __future__ import annotations

import inspect
import json
import re
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from key_meanings import KEY_MEANINGS
from pydantic import BaseModel
from robot.libdoc import libdoc

from storqual.checks import pytest_fixtures
from storqual.cli import storqual
from storqual.inputs.drop import DropSignature, Firmware, Rollback
from storqual.inputs.inventory import PSEUDO_DRIVER
from storqual.inputs.suite import Criterion, Parameters, Profile, Suite, Workload
from storqual.metrics import METRICS
from storqual_core.data.faults import FAULTS, Way
from storqual_core.kit.settings import SECTIONS, Setting, section_of

_COST = {
    "instant": "instant: one write",
    "reload": "reload: the driver is reloaded",
    "rebuild": "rebuild: the volume is created again",
    "reboot": "reboot: the bench reboots",
}

_SECTION_TITLES = {
    "drive": "Drives: mode pages and the kernel's queue",
    "nvram": "NVRAM of adapters",
    "raid": "RAID volumes",
    "os": "Operating system",
    "virtual": "Virtual benches only",
    "driver": "Drivers",
    "firmware": "Firmware",
}

_OF_SETTINGS = """\
These are the names that a drop may set and a suite may vary (`drive.WCE`). Every value is read back after it
was written. The column *in effect* says how storqual also shows that the setting has its effect; a setting
without an entry is proven by reading it back. *Change cost* is what it takes to change the setting; it
determines how the plan orders the campaign."""

_OF_METRICS = """\
Each metric is computed from the counts that a launch recorded, so a metric that is added later can also be
applied to old runs. If its data is missing, a metric has no value, and a required criterion on it is an ERROR."""

_OF_COMMANDS = """\
Every command has `--help` and `--json`, and all use the same exit codes: see [Exit codes](exit-codes.md)."""

_OF_KEYS = """\
An unknown key is an error that names file and line. [Suites and checks](suites.md) and [Labs, drops, gates,
waivers and keys](labs.md) show examples; the other sections of a drop use the names in
[Settings](settings.md)."""

_OF_KEYWORDS = """\
A Robot Framework suite imports `storqual.robot_library.StorqualLibrary`. `storqual keywords keywords.html`
writes this list with types and examples."""

_OF_FAULTS = """\
The faults that the trials of a suite may name; see [Qualify robustness](../how-to/lead/robustness.md).
If a suite names no way, the first one that the bench supports is used."""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; a vertical bar in a text is escaped, and so is a placeholder that would be an HTML tag."""
    lines = [list(heads)]
    lines.append(["---"] * len(lines[0]))
    lines.extend([_shown(" ".join(cell.split())).replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _shown(text: str) -> str:
    """Text in which `<module>` is no tag and `{file, ...}` is no list of attributes; code stays as it is."""
    parts = text.split("`")
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;").replace("{", "&#123;") for number, part in enumerate(parts)
    )


def _sentence(text: str | None) -> str:
    """The whole first sentence of a docstring, over all its lines."""
    paragraph = " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())
    found = re.match(r".+?[.](?=\s|$)", paragraph)
    return found.group() if found else paragraph


def settings_page() -> str:
    """Every name that a drop may set."""
    parts = [
        "# Settings",
        _OF_SETTINGS,
    ]
    for name in SECTIONS:
        known = section_of(name)
        if not known:
            continue
        rows = [
            (f"`{setting.name}`", setting.summary, _range(setting), _COST[setting.cost], _effect(setting))
            for setting in known.values()
        ]
        parts += [
            f"## {_SECTION_TITLES[name]}",
            f"Section `{name}` of a drop.",
            table(("name", "meaning", "values", "change cost", "in effect"), rows),
        ]
    return "\n\n".join(parts)


def _range(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.minimum is not None and setting.maximum is not None:
        return f"{setting.minimum} to {setting.maximum} {setting.unit}".strip()
    return f"{setting.kind} {setting.unit}".strip()


def _effect(setting: Setting) -> str:
    return f"cannot be set: {setting.refused}" if setting.refused else setting.proof


def metrics_page() -> str:
    """Every metric that a criterion may name."""
    rows = [
        (f"`{metric.name}`", metric.label, metric.unit or "-", metric.better, metric.kind, _needs(metric.needs))
        for metric in METRICS.values()
    ]
    return "\n\n".join(
        [
            "# Metrics",
            _OF_METRICS,
            table(("name", "label", "unit", "better", "kind", "computed from"), rows),
        ]
    )


def _needs(needs: Iterable[str]) -> str:
    return ", ".join(" or ".join(f"`{one}`" for one in need.split("|")) for need in needs)


def commands_page() -> str:
    """Every command that people call, with its options, as its own parser knows them."""
    context = click.Context(storqual, info_name="storqual")
    names = [name for name in storqual.list_commands(context) if not _of(name, context).hidden]
    parts = [
        "# Commands",
        _OF_COMMANDS,
    ]
    called = {name for name in names if ".playbook." in (_of(name, context).callback or print).__module__}
    internal = called - {"playbook"}
    for name in (name for name in names if name not in internal):
        command = _of(name, context)
        parts += [f"## storqual {name}", _help(command)]
        rows = [(_spelling(option, context), option.help or "", _default(option)) for option in _options(command)]
        usage = " ".join(["storqual", name, *command.collect_usage_pieces(click.Context(command))])
        parts += [f"```text\n{usage}\n```", table(("option", "meaning", "default"), rows)]
    listed = [(f"`storqual {name}`", _sentence(_of(name, context).help)) for name in sorted(internal)]
    if listed:
        parts += ["## Called by playbooks", "You need these only to follow what a playbook does."]
        parts.append(table(("command", "meaning"), listed))
    return "\n\n".join(parts)


def _of(name: str, context: click.Context) -> click.Command:
    found = storqual.get_command(context, name)
    if found is None:
        raise LookupError(name)
    return found


def _options(command: click.Command) -> list[click.Option]:
    return [option for option in command.params if isinstance(option, click.Option) and not option.hidden]


def _help(command: click.Command) -> str:
    """The help text; the examples under it become a block."""
    text, _, examples = inspect.cleandoc(command.help or "").partition("\b\n")
    lines = [line.strip() for line in examples.splitlines()[1:] if line.strip()]
    block = "\n\n```text\n" + "\n".join(lines) + "\n```" if lines else ""
    # words in capitals and angle brackets are placeholders, not HTML
    return text.strip().replace("<", "&lt;") + block


def _spelling(option: click.Option, context: click.Context) -> str:
    metavar = "" if option.is_flag else f" {option.make_metavar(context)}"
    # a list of date formats says less than the word for it
    metavar = " TIME" if "%Y" in metavar else metavar
    return f"`{', '.join(option.opts)}{metavar}`"


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    if option.is_flag or option.default is None or not isinstance(option.default, str | int | Path):
        return ""
    return f"`{option.default}`"


_KEYS: Mapping[str, type[BaseModel]] = {
    "Suite": Suite,
    "Workload and `defaults`": Workload,
    "Criterion": Criterion,
    "Profile": Profile,
    "Firmware of a drop": Firmware,
    "Image to go back to (`rollback`)": Rollback,
    "Signature of an image": DropSignature,
}


def keys_page() -> str:
    """Every key of suites and of firmware entries, from the models that read them."""
    parts = [
        "# Keys of suites and drops",
        _OF_KEYS,
    ]
    for title, model in _KEYS.items():
        rows = [
            (f"`{key}`", _type(field.annotation), _value(field.default), _meaning(model, key, field.description))
            for key, field in ((field.alias or name, field) for name, field in model.model_fields.items())
        ]
        summary = "" if model is Parameters else inspect.cleandoc(model.__doc__ or "").replace("\n", " ")
        parts += [f"## {title}", summary, table(("key", "value", "default", "meaning"), rows)]
    return "\n\n".join(parts)


def _meaning(model: type[BaseModel], key: str, description: str | None) -> str:
    """What a key means. Raises LookupError for one that nobody described: the build stops."""
    told = description or KEY_MEANINGS[model.__name__].get(key)
    if not told:
        raise LookupError(f"{model.__name__}.{key} has no meaning in ci/docs/key_meanings.py")
    return told


_PLAIN: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Any: "any value",
    type(None): "",
}


def _type(annotation: Any) -> str:  # noqa: ANN401 - any type
    """A type in words that a person writes YAML by."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _type(get_args(annotation)[0])
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in get_args(annotation))
    if origin in (Union, types.UnionType):
        return " or ".join(filter(None, map(_type, get_args(annotation))))
    if origin in (tuple, list):
        return f"one or a list of: {_type(get_args(annotation)[0])}"
    if origin is dict:
        return f"mapping to: {_type(get_args(annotation)[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"{annotation.__name__.lower()} (mapping)"
    return _PLAIN.get(annotation, str(annotation))


def _value(default: Any) -> str:  # noqa: ANN401 - of any type
    if default is None or isinstance(default, BaseModel) or default in ((), {}):
        return ""
    if repr(default) == "PydanticUndefined":
        return "required"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def keywords_page() -> str:
    """The Robot Framework keywords, and the fixtures of the pytest plugin."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keywords.json"
        libdoc("storqual.robot_library.StorqualLibrary", str(path), docformat="ROBOT", quiet=True)
        library = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        (keyword["name"], ", ".join(f"`{one['repr']}`" for one in keyword["args"]), keyword["shortdoc"])
        for keyword in library["keywords"]
    ]
    return "\n\n".join(
        [
            "# Keywords and fixtures",
            "## Robot Framework keywords",
            _OF_KEYWORDS,
            table(("keyword", "arguments", "meaning"), rows),
            "## Fixtures of the pytest plugin",
            "A test requests a fixture by the name of an argument; see [Suites and checks](suites.md).",
            table(("fixture", "meaning"), _fixtures()),
            "## Markers of the pytest plugin",
            table(("marker", "meaning"), _markers()),
        ]
    )


def _fixtures() -> Iterator[tuple[str, str]]:
    for name, value in vars(pytest_fixtures).items():
        if type(value).__name__ == "FixtureFunctionDefinition":
            yield f"`{name}`", _sentence(inspect.getdoc(value))


def _markers() -> Iterator[tuple[str, str]]:
    """As `pytest --markers` shows them."""
    told: list[str] = []

    class Config:
        """Keeps what the plugin says of its markers."""

        def addinivalue_line(self, _name: str, line: str) -> None:
            told.append(line)

        def __getattr__(self, _name: str) -> Callable[..., None]:
            return lambda *_, **__: None

    pytest_fixtures.pytest_configure(Config())  # type: ignore[arg-type]
    for line in told:
        name, _, meaning = line.partition(": ")
        yield f"`{name}`", meaning


def faults_page() -> str:
    """Every fault that a trial may cause, the ways to cause it, and what proves that it happened."""
    rows = [
        (
            f"`{fault.name}`",
            fault.sentence,
            fault.acts_on,
            "; ".join(f"{way.name} ({_where(way)})" for way in fault.ways),
            "yes" if fault.io_errors else "no",
            f"{fault.keeps} writes",
        )
        for fault in FAULTS.values()
    ]
    return "\n\n".join(
        [
            "# Faults",
            _OF_FAULTS,
            table(("fault", "meaning", "acts on", "ways", "I/O may fail", "must be preserved"), rows),
        ]
    )


def _where(way: Way) -> str:
    """On which benches a way can be used."""
    if way.drivers == (PSEUDO_DRIVER,):
        return f"virtual benches with {PSEUDO_DRIVER}"
    return {"bench": "any bench", "virtual": "virtual benches only"}[way.where]


PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/settings.md": settings_page,
    "reference/metrics.md": metrics_page,
    "reference/faults.md": faults_page,
    "reference/keys.md": keys_page,
    "reference/keywords.md": keywords_page,
}
