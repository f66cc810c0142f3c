# SPDX-License-Identifier: Apache-2.0
"""What a kind of tampering with a run before it is signed is, the list of them, and how files are edited."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storqual.run.layout import dump_line
from tests.attacks.finished_run import put
from tests.support.sealed_run import chained, lines_of

__all__ = ["KINDS", "Kind", "chained", "document", "edited", "kind", "lines_of"]

Kind = Callable[[Path, random.Random], None]
KINDS: dict[str, Kind] = {}
"""By name; the modules beside this one put them here."""


def kind(function: Kind) -> Kind:
    KINDS[function.__name__] = function
    return function


@contextmanager
def edited(path: Path) -> Iterator[list[dict[str, Any]]]:
    lines = lines_of(path)
    yield lines
    put(path, b"".join(map(dump_line, lines)))


@contextmanager
def document(path: Path) -> Iterator[dict[str, Any]]:
    body = json.loads(path.read_text(encoding="utf-8"))
    yield body
    put(path, json.dumps(body, indent=1))
