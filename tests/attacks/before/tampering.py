# SPDX-License-Identifier: Apache-2.0
"""What a kind of tampering with a run before it is signed is, the list of them, and how files are edited."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from storqual.run import sha256_of
from storqual.run.closing import collected, plan_digest
from storqual.run.collect import batch_digest
from storqual.run.layout import dump_line
from tests.attacks.finished_run import put
from tests.support.sealed_run import chained, lines_of

__all__ = ["KINDS", "Kind", "chained", "document", "edited", "kind", "lines_of", "made_anew"]

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


def made_anew(run: Path) -> None:
    """The whole chain over what the files say now, as if nothing had been published: only what they say is left."""
    path = run / "samples.jsonl"
    lines = [line[:-1] for line in path.read_bytes().splitlines(keepends=True)] if path.is_file() else []
    events = [event for event in lines_of(run / "events.jsonl") if event["kind"] not in ("judged", "published")]
    for event in events:
        if event["kind"] == "planned":
            event["plan_sha256"] = plan_digest(json.loads((run / "run.json").read_bytes()))
        elif event["kind"] == "block_finished":
            own = [sha256_of(line) for line in lines if json.loads(line)["block"] == event["block"]]
            event.update(samples=len(own), sha256=batch_digest(own))
        elif event["kind"] == "closed":
            event.update(collected(run))
    chained(run / "events.jsonl", events)


@contextmanager
def document(path: Path) -> Iterator[dict[str, Any]]:
    body = json.loads(path.read_text(encoding="utf-8"))
    yield body
    put(path, json.dumps(body, indent=1))
