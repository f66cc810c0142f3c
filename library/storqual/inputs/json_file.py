# SPDX-License-Identifier: Apache-2.0
"""Read JSON that a program made and a person names: facts of benches, what Ansible makes of an inventory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from storqual_core.kit.durable import read_regular
from storqual_core.kit.errors import BadInputError

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
