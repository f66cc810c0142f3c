# SPDX-License-Identifier: Apache-2.0
"""A console server, a recorder that is ended after each test, and places of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.console.console import Console
from tests.support.played_console import ConsoleServer


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def console(_own_places: None) -> Iterator[Console]:
    one = Console("vbench")
    yield one
    one.stop()


@pytest.fixture
def server() -> Iterator[ConsoleServer]:
    one = ConsoleServer()
    yield one
    one.close()
