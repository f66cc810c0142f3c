# SPDX-License-Identifier: Apache-2.0
"""What is known and is no code: rules and tables as JSON, each row with its example."""

from __future__ import annotations

import json
import pkgutil
from typing import Any

from ..kit.errors import StorqualError


def read_table(name: str) -> dict[str, Any]:
    """The content of the file `<name>.json` of this folder.

    The bench program and the control node carry these files; Ansible ships code only, so a module gets what it needs
    of them as an argument. Raises StorqualError where the file is not shipped.
    """
    try:
        data = pkgutil.get_data(__name__, f"{name}.json")
    except OSError:
        data = None
    if data is None:
        raise StorqualError(f"table {name} is not shipped with this module: pass it as an argument")
    table: dict[str, Any] = json.loads(data)
    return table
