# SPDX-License-Identifier: Apache-2.0
"""Waiting for something that can only be looked at again and again."""

from __future__ import annotations

import time
from typing import Callable

from .errors import ToolError

_LOOK_S = 0.05


def await_seen(seen: Callable[[], bool], limit_s: float, what: str) -> None:
    """Look until it is seen. Raises ToolError with `what` where it is not within the limit."""
    end = time.monotonic() + limit_s
    while not seen():
        if time.monotonic() > end:
            raise ToolError(f"{what} within {limit_s:g} s")
        time.sleep(_LOOK_S)
