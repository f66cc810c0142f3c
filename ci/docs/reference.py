# SPDX-License-Identifier: Apache-2.0
"""Reference pages made from the code itself, so that they cannot tell of anything that is not there."""

from __future__ import annotations

import inspect
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from robot.libdoc import libdoc
from supported import supported_page

from playbooks import playbooks_page
from storqual.checks import pytest_fixtures
from storqual.cli import storqual
from storqual.cli.man import commands_of
from storqual.inputs.inventory import PSEUDO_DRIVER
from storqual.inputs.json_schema import SCHEMAS, json_schema
from storqual.metrics import METRICS
from storqual.plan.points import DEFAULTS
from storqual_core.data.faults import FAULTS, POWER, Way
from storqual_core.kit.settings import LINK_RATES, SECTIONS, Setting, section_of

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
    "multipath": "Multipath: what multipathd does with all maps",
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
applied to old runs. If its data is missing, a metric has no value, and a required criterion on it is an ERROR.

*Kind* says how it is judged: a `rate`, a `time` and a `ratio` by the ratio of candidate to baseline, so that a value
of 0 cannot be judged; a `count` by how many launches show it, and how much of it."""

_OF_COMMANDS = """\
Every command has `--help` and `--json`, and all use the same exit codes: see [Exit codes](exit-codes.md).
The labs and suites that the examples name are in the project's source; name your own instead."""

_OF_KEYS = """\
Every key of the files that you write. An unknown key is an error that names file and line. `storqual schema NAME`
prints the same as JSON Schema, for editors: see
[Configuration](configuration.md#check-files-while-you-write-them). [Suites and checks](suites.md) and
[Labs, drops, gates, waivers and keys](labs.md) explain them with examples.

| kind of value | how it is written |
|---|---|
| size | `512`, `4k`, `64KiB`, `1GiB`: prefixes are powers of 1024 |
| duration | `500ms`, `2s`, `5m`, `2h`; a number alone is seconds |
| percentage | `3%`; the sign is needed |
| limit with its unit | `5 ms`, `50 kIOPS`, `80 MiB/s`: a unit that fits the metric |
| pattern | a name in which `*` stands for anything |
| one or a list of | `iops`, or `[iops, latency_p99_us]` |"""

_OF_KEYWORDS = """\
A Robot Framework suite imports `storqual.robot_library.StorqualLibrary`. `storqual keywords keywords.html`
writes this list with types and examples."""

_OF_FAULTS = """\
The faults that the trials of a suite may name; see [Qualify robustness](../how-to/lead/robustness.md).
If a suite names no way, the first one that the bench supports is used. Writes that were acknowledged before the
fault must still be there after it; the column *I/O may fail* says whether I/Os may fail while it lasts."""


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
            (
                f"`{setting.name}`",
                setting.summary,
                _range(setting),
                _COST[setting.cost],
                f"no: {setting.refused}" if setting.refused else "yes",
                setting.proof,
            )
            for setting in known.values()
        ]
        parts += [
            f"## {_SECTION_TITLES[name]}",
            f"Section `{name}` of a drop.",
            table(("name", "meaning", "values", "change cost", "supported", "in effect"), rows),
        ]
    return "\n\n".join(parts)


_UNITS: Mapping[str, str] = {
    "100us": "(unit: 100 µs)",
    "10us": "(unit: 10 µs)",
    "100ms": "(unit: 100 ms)",
    "512B": "(unit: 512 B)",
    "us": "µs",
}
_VALUES: Mapping[str, str] = {
    "arguments": "list of words without blanks and quotes",
    "cpu_lists": "mapping: adapters to lists of CPU numbers",
    "dkms_package": "mapping: `{package, module, version}`, the package as a .deb file",
    "drive_numbers": "number, or mapping: drives to numbers",
    "kernel_package": "mapping: `{package, version}`, the name as the package manager knows it, "
    "or `{files}`, the .rpm or .deb files of one kernel",
    "kmod_package": "mapping: `{files, module, version, as}`, the .rpm files, or `driver_disk`, an .iso; "
    "`as` is `package` or `module`",
    "link_rate": ", ".join(f"`{rate}`" for rate in LINK_RATES),
    "list": "list",
    "mapping": "mapping: see [All keys](keys.md#firmware-of-drop)",
    "module_file": "mapping: `{file, sha256}`, the file as .ko, plain or compressed",
    "module_options": "mapping: `{module: {parameter: value}}`",
    "text": "text",
    "unplug": "mapping: `{drive, after_s}`",
}
"""Of kinds of settings that are no numbers."""


def _range(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    told = _VALUES.get(setting.kind, "size" if setting.kind == "size" else "")
    span = f"{setting.minimum} to {setting.maximum}" if setting.minimum is not None else ""
    unit = _UNITS.get(setting.unit, setting.unit)
    return ", ".join(filter(None, (told, f"{span} {unit}".strip())))


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
    commands = commands_of(storqual)
    names = [name for name, command in commands.items() if not command.hidden]
    parts = [
        "# Commands",
        _OF_COMMANDS,
    ]
    called = {name for name in names if ".playbook." in (commands[name].callback or print).__module__}
    internal = called - {"playbook"}
    for name in (name for name in names if name not in internal):
        command = commands[name]
        parts += [f"## storqual {name}", _help(command)]
        rows = [(_spelling(option, context), option.help or "", _default(option)) for option in _options(command)]
        usage = " ".join(["storqual", name, *command.collect_usage_pieces(click.Context(command))])
        parts += [f"```text\n{usage}\n```", table(("option", "meaning", "default"), rows)]
    listed = [(f"`storqual {name}`", _sentence(commands[name].help)) for name in sorted(internal)]
    if listed:
        parts += ["## Called by playbooks", "You need these only to follow what a playbook does."]
        parts.append(table(("command", "meaning"), listed))
    return "\n\n".join(parts)


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


_FILES: Mapping[str, str] = {
    "hosts": "hosts.yml",
    "drop": "A drop",
    "suite": "A suite",
    "gate": "gate.yml",
    "waivers": "waivers.yml",
    "keys": "keys.yml",
}
_TITLES: Mapping[str, str] = {
    "Bench": "Variables of a bench",
    "On": "`on` of an entry",
    "DropSignature": "Signature of an image",
    "Rollback": "Image to go back to",
    "Parameters": "Defaults of workloads",
    "IntegrityLoad": "Load of trials",
    "KernelRule": "Rule for the kernel log",
    "Guest": "Guest of a virtual bench",
    "Emulation": "Emulated adapter",
    "DriveLimits": "Limits of a virtual drive",
    "Pace": "Pace of a file",
    "BootFeatures": "Boot features",
    "WaiverRules": "Rules for waivers",
    "TrustedKey": "Trusted key",
    "PolicyRequirement": "Who must sign",
    "Steady": "Steady state",
    "Load": "Load up to a response time",
}
"""Headings of mappings whose names are not those that a reader knows."""


def keys_page() -> str:
    """Every key of the files that people write, from the schemas that editors get."""
    parts = ["# All keys", _OF_KEYS]
    for name in SCHEMAS:
        schema = json_schema(name)
        told = {_FILES[name]: schema, **_referred(schema)}
        parts += [f"## {_FILES[name]} {{ #{name} }}", schema.get("description", "")]
        for model, part in told.items():
            if part is not schema:
                parts.append(f"### {_TITLES.get(model, model)} {{ #{_anchor(model, name)} }}")
                parts.append(part.get("description", ""))
            parts += [_key_table(part, model, name)] if "properties" in part and model not in _GROUPS else []
    return "\n\n".join(filter(None, parts))


_GROUPS = ("benches", "group", "hosts.yml")
"""What an inventory is to Ansible: not keys of ours."""


def _anchor(model: str, name: str) -> str:
    return f"{_TITLES.get(model, model).lower().replace(' ', '-').replace('`', '')}-of-{name}"


def _referred(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a schema refers to, in the order in which a reader meets it; settings have a page of their own."""
    found: dict[str, dict[str, Any]] = {}
    left = _references({key: schema[key] for key in schema if key != "$defs"})
    while left:
        model = left.pop(0)
        if model not in found and not model.startswith("Settings of "):
            found[model] = schema["$defs"][model]
            left += _references(schema["$defs"][model])
    return {model: part for model, part in found.items() if model not in _GROUPS}


def _references(schema: dict[str, Any]) -> list[str]:
    return re.findall(r"#/\$defs/([^\"]+)", json.dumps(schema))


def _key_table(part: dict[str, Any], model: str, name: str) -> str:
    rows = [
        (f"`{key}`", _type(value, name), _default_of(part, model, key), value["description"])
        for key, value in part["properties"].items()
    ]
    return table(("key", "value", "default", "meaning"), rows)


def _default_of(part: dict[str, Any], model: str, key: str) -> str:
    if key in part.get("required", ()):
        return "required"
    default = part["properties"][key].get("default")
    if default is None and model in ("Workload", "Parameters"):
        default = {**DEFAULTS, "bs": "4k"}.get(key)
    listed = ", ".join(default) if isinstance(default, list) else default
    return "" if listed is None else f"`{str(listed).lower() if isinstance(listed, bool) else listed}`"


_TYPES = {"boolean": "true or false", "number": "number", "string": "text", "object": "mapping"}


def _type(value: dict[str, Any], name: str) -> str:
    """A schema in the words of a person who writes YAML."""
    if "$ref" in value:
        model = value["$ref"].rpartition("/")[2]
        if model.startswith("Settings of "):
            return "[settings](settings.md)"
        return f"[{_TITLES.get(model, model).replace('`', '').lower()}](#{_anchor(model, name)})"
    if "title" in value:
        examples = " or ".join(f"`{example}`" for example in value.get("examples", ()))
        return value["title"] + (f", such as {examples}" if examples else "")
    if "const" in value or "enum" in value:
        return ", ".join(f"`{word}`" for word in value.get("enum", [value.get("const")]) if word is not None)
    if "anyOf" in value:
        kinds = [part for part in value["anyOf"] if part.get("type") != "null"]
        if len(kinds) == 2 and kinds[1].get("items") == kinds[0]:
            return f"one or a list of: {_type(kinds[0], name)}"
        return " or ".join(dict.fromkeys(_type(part, name) for part in kinds))
    if value.get("type") == "array":
        return f"list of: {_type(value['items'], name)}"
    for inside in (*value.get("patternProperties", {}).values(), value.get("additionalProperties")):
        if isinstance(inside, dict) and inside:
            return f"mapping of names to: {_type(inside, name)}"
    if value.get("type") == "integer":
        return f"whole number{_span(value)}"
    return _TYPES.get(str(value.get("type")), "any value")


def _span(value: dict[str, Any]) -> str:
    least = value.get("minimum", value["exclusiveMinimum"] + 1 if "exclusiveMinimum" in value else None)
    most = value.get("maximum")
    if least is None:
        return ""
    return f" from {least} to {most}" if most is not None else f", at least {least}"


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
        )
        for fault in FAULTS.values()
    ]
    return "\n\n".join(
        [
            "# Faults",
            _OF_FAULTS,
            table(("fault", "meaning", "acts on", "ways", "I/O may fail"), rows),
        ]
    )


def _where(way: Way) -> str:
    """On which benches a way can be used."""
    if way.drivers == (PSEUDO_DRIVER,):
        return f"virtual benches with {PSEUDO_DRIVER}"
    where = {
        "bench": "any bench",
        "virtual": "virtual benches only",
        POWER: "benches whose inventory says what removes power",
    }
    return where[way.where]


PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/settings.md": settings_page,
    "reference/metrics.md": metrics_page,
    "reference/faults.md": faults_page,
    "reference/keys.md": keys_page,
    "reference/keywords.md": keywords_page,
    "reference/playbooks.md": playbooks_page,
    "reference/supported.md": supported_page,
}
