# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of what people write: for editors and for the reference, from the models that read the files.

A file that its reader takes is valid by its schema: a schema refuses nothing that the reader takes. What depends on
other files or on several keys is found by the reader alone.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema

from storqual.inputs.drop import SETTING_SECTIONS, DropManifest, On
from storqual.inputs.fields import SIZE, WORD
from storqual.inputs.inventory import HOST_VARIABLES, Bench
from storqual.inputs.policy import Gate, Trust, WaiversFile
from storqual.inputs.suite import Suite
from storqual_core.kit.quantities import format_size
from storqual_core.kit.settings import KMOD_FORMS, LINK_RATES, Setting, section_of

Json = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MEANINGS = Path(__file__).with_name("key_meanings.json")
_NUMBER_IN_QUOTES = {"type": "string", "pattern": r"^\s*[-+]?[0-9][0-9a-fA-FxXoO_]*\s*$"}


class _Written(GenerateJsonSchema):
    """Without titles made of the names of keys: titles here are kinds of values, such as `size`."""

    def field_title_should_be_set(self, schema: CoreSchema | Any) -> bool:  # noqa: ANN401 - as pydantic declares it
        del schema
        return False


@cache
def _meanings() -> Mapping[str, Mapping[str, str]]:
    """By model and key, as it is written; the key `` is the model itself."""
    meanings: Mapping[str, Mapping[str, str]] = json.loads(_MEANINGS.read_text(encoding="utf-8"))
    return meanings


def _of_model(model: type[BaseModel]) -> Json:
    schema = model.model_json_schema(by_alias=True, schema_generator=_Written)
    for name, part in ((model.__name__, schema), *schema.get("$defs", {}).items()):
        meanings = _meanings().get(name, {})
        if meanings.get(""):
            part["description"] = meanings[""]
        for key, value in part.get("properties", {}).items():
            # parameters of a workload are those of `defaults`
            meaning = meanings.get(key) or (_meanings()["Workload"].get(key) if name == "Parameters" else None)
            if "description" not in value and meaning:
                value["description"] = meaning
            if "default" in value:
                _write_default(value)
    return schema


def _write_default(value: Json) -> None:
    """The default as a person writes it; none where it only says that nothing is set."""
    default = value.pop("default")
    titles = {part.get("title") for part in _parts(value)}
    if isinstance(default, bool) or default in (None, "", []) or isinstance(default, dict):
        written: object = default if isinstance(default, bool) else None
    elif "percentage" in titles:
        written = f"{100 * default:g}%"
    elif "duration" in titles:
        written = f"{default:g}s"
    elif "size" in titles:
        written = [format_size(size) for size in default] if isinstance(default, list) else format_size(default)
    else:
        written = default
    if written is not None:
        value["default"] = written


def _parts(schema: Json) -> Iterator[Json]:
    """A schema, and those of which it takes any, and of their items."""
    yield schema
    for part in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        yield from _parts(part)


def _plain(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same where numbers are no text: Ansible reads an inventory and forgets how a number was written."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _plain(value) for key, value in schema.items()}
    return {**plain, "type": "string"} if plain.get("type") == WORD["type"] else plain


def _hosts() -> Json:
    schema = _plain(_of_model(Bench))
    known = {name: schema["properties"][name] for name in HOST_VARIABLES}
    unknown = {"anyOf": [{"not": {"pattern": "^storqual_"}}, {"enum": list(known)}]}
    variables = {"type": ["object", "null"], "properties": known, "propertyNames": unknown}
    bench = {"$ref": "#/$defs/Bench"}
    # Ansible takes one name in the place of a mapping
    several = {"type": ["object", "null", "string"]}
    benches = {
        "description": schema["description"],
        "type": ["object", "null"],
        "properties": {
            "hosts": {**several, "additionalProperties": bench, "description": "the benches by name"},
            "vars": {**several, **bench, "description": "variables that all benches of the group share"},
            "children": {**several, "additionalProperties": {"$ref": "#/$defs/benches"}},
        },
    }
    group = {
        "type": ["object", "null"],
        "properties": {
            "children": {
                **several,
                "properties": {"benches": {"$ref": "#/$defs/benches"}},
                "additionalProperties": {"$ref": "#/$defs/group"},
            }
        },
    }
    return {
        "description": "An inventory of Ansible: benches are the hosts of the group `benches`.",
        "type": "object",
        "properties": {"benches": {"$ref": "#/$defs/benches"}},
        "additionalProperties": {"$ref": "#/$defs/group"},
        "$defs": {**schema["$defs"], "Bench": variables, "benches": benches, "group": group},
    }


def _drop() -> Json:
    schema = _of_model(DropManifest)
    on = _of_model(On)
    schema["$defs"]["On"] = on
    schema["$defs"].pop("_Settings")
    for section in SETTING_SECTIONS:
        name = f"Settings of {section}"
        schema["$defs"][name] = {
            "type": "object",
            "properties": {
                "on": {"$ref": "#/$defs/On", "description": on["description"]},
                **{setting.name: _of_setting(setting) for setting in section_of(section).values()},
            },
            "additionalProperties": False,
        }
        entry = {"$ref": f"#/$defs/{name}"}
        schema["properties"][section]["anyOf"] = [entry, {"type": "array", "items": entry, "minItems": 1}]
    return {**schema, "type": ["object", "null"]}


def _of_setting(setting: Setting) -> Json:
    """One setting of a drop: its meaning, its values, and whether it can be set."""
    refused = f" (cannot be set: {setting.refused})" if setting.refused else ""
    return {"description": f"{setting.summary}{refused}", **_values(setting)}


def _values(setting: Setting) -> Json:
    span = {} if setting.minimum is None else {"minimum": setting.minimum, "maximum": setting.maximum}
    whole = {"anyOf": [{"type": "integer", **span}, {"type": "boolean"}, _NUMBER_IN_QUOTES]}
    if setting.kind == "choice":
        numbers = [int(choice) for choice in setting.choices if choice.isdigit()]
        return {"enum": [*setting.choices, *numbers]}
    if setting.kind in ("dkms_package", "module_file", "unplug"):
        keys = {
            "dkms_package": (("package", "module"), ("version",)),
            "module_file": (("file", "sha256"), ()),
            "unplug": (("drive", "after_s"), ()),
        }[setting.kind]
        properties = {key: dict(WORD) for key in (*keys[0], *keys[1])}
        return {"type": "object", "properties": properties, "required": list(keys[0]), "additionalProperties": False}
    kinds: Mapping[str, Json] = {
        "flag": whole,
        "integer": whole,
        "size": dict(SIZE),
        "text": dict(WORD),
        "list": {"type": "array", "items": dict(WORD)},
        "arguments": {"type": "array", "items": dict(WORD)},
        "link_rate": {"type": ["string", "number"], "examples": list(LINK_RATES)},
        "seconds_or_off": {"anyOf": [whole, {"const": "off"}]},
        "retries": {"anyOf": [whole, {"enum": ["fail", "queue"]}]},
        "kernel_package": {
            "type": "object",
            "properties": {
                "package": dict(WORD),
                "files": {"type": "array", "items": {"type": "string", "pattern": r"\.(rpm|deb)$"}, "minItems": 1},
            },
            "oneOf": [{"required": ["package"]}, {"required": ["files"]}],
        },
        "kmod_package": {
            "type": "object",
            "properties": {
                "files": {"type": "array", "items": {"type": "string", "pattern": r"\.rpm$"}, "minItems": 1},
                "driver_disk": {"type": "string", "pattern": r"\.iso$"},
                "module": dict(WORD),
                "version": dict(WORD),
                "as": {"enum": list(KMOD_FORMS)},
            },
            "required": ["module"],
            "oneOf": [{"required": ["files"]}, {"required": ["driver_disk"]}],
            "additionalProperties": False,
        },
        "mapping": {"type": "object", "minProperties": 1},
        "module_options": {"type": "object", "additionalProperties": {"type": "object", "minProperties": 1}},
        "drive_numbers": {"anyOf": [whole, {"type": "object", "additionalProperties": whole, "minProperties": 1}]},
        "cpu_lists": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": whole, "minItems": 1},
            "minProperties": 1,
        },
    }
    return kinds[setting.kind]


def _waivers() -> Json:
    schema = _of_model(WaiversFile)
    listed = schema["properties"]["waivers"]
    described = {key: schema.pop(key) for key in ("description", "$defs")}
    return {**described, "anyOf": [schema, {"type": "array", "items": listed["items"]}, {"type": "null"}]}


_MADE: Mapping[str, Callable[[], Json]] = {
    "hosts": _hosts,
    "drop": _drop,
    "suite": lambda: _of_model(Suite),
    "gate": lambda: {**_of_model(Gate), "type": ["object", "null"]},
    "waivers": _waivers,
    "keys": lambda: _of_model(Trust),
}
SCHEMAS = tuple(_MADE)
"""The kinds of files that have a schema."""


def json_schema(name: str) -> Json:
    """The schema of one kind of file. Raises KeyError for a kind that is not in SCHEMAS."""
    return {"$schema": _DIALECT, **_MADE[name](), "title": f"storqual {name}"}


def schema_of(path: Path) -> str:
    """The kind of file that a path names by the folders and endings that the project uses; empty for none."""
    if path.name.endswith(".suite.yml"):
        return "suite"
    if path.suffix == ".yml" and path.parent.name == "drops":
        return "drop"
    return path.stem if path.suffix == ".yml" and path.stem in ("hosts", "gate", "waivers", "keys") else ""
