# SPDX-License-Identifier: Apache-2.0
"""Lines of `ocp.jsonl` read into the types of the `ocptv` package, which check every field, and written back."""

import dataclasses as dc
import enum
import json
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ocptv.output import objects
from ocptv.output.emit import ArtifactEmitter


def written_back(line: Mapping[str, Any], hardware: Mapping[str, Any]) -> dict[str, Any]:
    """What the package writes for this line; `hardware` are the devices that the run's start lists, by id.

    Raises KeyError for an object that the specification does not have, TypeError or ValueError for a field that it
    has otherwise; the caller compares the answer with the line, so that a field too many is found as well.
    """
    root = objects.Root(
        impl=_any_of(objects.RootArtifactType, line, hardware),
        sequence_number=line["sequenceNumber"],
        timestamp=datetime.fromisoformat(line["timestamp"]).timestamp(),
    )
    return dict(_without_empty(json.loads(ArtifactEmitter._serialize(root))))


def _any_of(kinds: object, data: Mapping[str, Any], hardware: Mapping[str, Any]) -> Any:
    """The one object of these kinds that stands in `data` under its own name; None when none does."""
    found = [kind for kind in _dataclasses(kinds) if getattr(kind, "SPEC_OBJECT", None) in data]
    return _object(found[0], data[found[0].SPEC_OBJECT], hardware) if found else None


def _object(kind: Any, data: Mapping[str, Any], hardware: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(kind, vars(objects))
    return kind(**{field.name: _value(field, hints[field.name], data, hardware) for field in dc.fields(kind)})


def _value(field: Any, hint: object, data: Mapping[str, Any], hardware: Mapping[str, Any]) -> Any:
    name = field.metadata.get("spec_field")
    if name is None:
        if objects.Metadata in typing.get_args(hint):
            return objects.Metadata(data["metadata"]) if "metadata" in data else None
        return _any_of(hint, data, hardware)
    kinds = list(_dataclasses(hint))
    if name not in data:
        return [] if typing.get_origin(hint) is list else None
    value = data[name]
    if name == "hardwareInfoId" and objects.HardwareInfo in kinds:
        return _object(objects.HardwareInfo, hardware[value], hardware)
    if isinstance(value, list) and kinds:
        return [_object(kinds[0], one, hardware) for one in value]
    words = [one for one in (hint, *typing.get_args(hint)) if isinstance(one, type) and issubclass(one, enum.Enum)]
    return words[0](value) if words else value


def _dataclasses(hint: object) -> Iterator[Any]:
    if isinstance(hint, type) and dc.is_dataclass(hint):
        yield hint
    elif not isinstance(hint, type) or isinstance(hint, types.GenericAlias):
        for inner in typing.get_args(hint):
            yield from _dataclasses(inner)


def _without_empty(value: Any) -> Any:
    """The package writes lists that hold nothing; leaving them out is valid too."""
    if isinstance(value, dict):
        return {key: _without_empty(inner) for key, inner in value.items() if inner != []}
    return [_without_empty(inner) for inner in value] if isinstance(value, list) else value
