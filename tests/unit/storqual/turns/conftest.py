# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for a connection give the lines of a stream themselves."""

from collections.abc import Iterator
from typing import Any

import pytest

from storqual.turns import live_turn


@pytest.fixture(autouse=True)
def _own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    real = live_turn.stream

    def lines(connection: Any, path: str, *, limit_s: float) -> Iterator[dict[str, Any] | None]:
        follow = getattr(connection, "lines", None)
        yield from real(connection, path, limit_s=limit_s) if follow is None else follow(path, limit_s=limit_s)

    monkeypatch.setattr(live_turn, "stream", lines)
