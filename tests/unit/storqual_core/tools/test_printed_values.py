# SPDX-License-Identifier: Apache-2.0
"""What tools print in forms of other releases and of other people's machines, and the values that it says.

Each row of `printed_values.json` is a text, who reads it, and what is read, by its place in that.
"""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import ToolError

ROWS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("printed_values.json").read_text())


def at(place: str, value: Any) -> Any:
    for key in place.split("/") if place else ():
        if isinstance(value, Mapping):
            value = value[key]
        else:
            value = value[int(key)] if isinstance(value, tuple | list) else getattr(value, key)
    return json.loads(json.dumps(value, default=sorted))


@pytest.mark.parametrize("title", sorted(ROWS))
def test_what_a_text_says_is_read(title: str) -> None:
    row = ROWS[title]
    module, _, name = row["reader"].partition(":")
    read, text = getattr(import_module(module), name), "\n".join(row["text"]) + "\n"
    if "refused" in row:
        with pytest.raises(ToolError, match=row["refused"]):
            read(text)
    else:
        answer = read(text)
        assert {place: at(place, answer) for place in row["values"]} == row["values"]
