# SPDX-License-Identifier: Apache-2.0
"""Make a run directory: it appears whole, with every input copied in, or not at all."""

import secrets
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storqual.run.closing import plan_digest
from storqual.run.events import append_event
from storqual.run.layout import (
    BATCHES,
    INPUTS,
    RAW,
    RUN_FILE,
    RUN_SCHEMA,
    NoSpaceError,
    dump_json,
    locked,
    now,
    room_for,
    sha256_of,
    sync_tree,
    write_json,
)
from storqual_core.kit.durable import MOST, checked_name
from storqual_core.kit.errors import BadInputError


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input as used: `file` is its name in inputs/, `source` how the user named it."""

    file: str
    source: str
    data: bytes

    @property
    def sha256(self) -> str:
        """The digest by which `--resume` and the judge know the input again."""
        return sha256_of(self.data)

    def to_json(self) -> dict[str, str]:
        return {"file": f"{INPUTS}/{self.file}", "source": self.source, "sha256": self.sha256}


def new_run_id(suite: str) -> str:
    """`<UTC yyyymmddThhmmssZ>-<suite>-<4 hex>`."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{suite}-{secrets.token_hex(2)}"


def create_run(
    runs: Path,
    run_id: str,
    document: Mapping[str, Any],
    *,
    inputs: Mapping[str, InputFile],
    batches: Iterable[Mapping[str, Any]],
) -> Path:
    """Write `runs/<run_id>/` with run.json, inputs/, blocks/ and the event `planned`; returns its path.

    `document` is run.json without schema, run, created, finished and inputs. Raises BadInputError when the directory
    exists or cannot be written.
    """
    path = runs / checked_name(run_id, "run", most=2 * MOST)
    if path.exists():
        raise BadInputError([f"{path}: this run directory exists already; choose another name"])
    try:
        runs.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=runs, prefix=f".{run_id}."))
    except (FileExistsError, NotADirectoryError):
        raise BadInputError([f"{runs}: this is a file; --runs takes a folder"]) from None
    except OSError as problem:
        raise BadInputError([f"{runs}: runs cannot be written here ({problem.strerror})"]) from None
    full = {
        "schema": RUN_SCHEMA,
        "run": run_id,
        "created": now(),
        "finished": None,
        "inputs": {name: entry.to_json() for name, entry in inputs.items()},
        **document,
    }
    try:
        with room_for(runs):
            _fill(draft, full, inputs.values(), batches)
            draft.chmod(0o755)
            draft.replace(path)
    except NoSpaceError:
        shutil.rmtree(draft, ignore_errors=True)
        reason = "there is no space for a run on this disk; free some space, or name another folder with --runs"
        raise BadInputError([f"{runs}: {reason}"]) from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return path


def _fill(
    draft: Path, document: Mapping[str, Any], inputs: Iterable[InputFile], batches: Iterable[Mapping[str, Any]]
) -> None:
    """Write everything of a new run, and wait until it is on the disk."""
    for folder in (INPUTS, BATCHES, RAW):
        (draft / folder).mkdir()
    for entry in inputs:
        (draft / INPUTS / entry.file).write_bytes(entry.data)
    for batch in batches:
        name = checked_name(batch["block"], "block", most=2 * MOST)
        (draft / BATCHES / f"{name}.json").write_bytes(dump_json(batch))
    (draft / RUN_FILE).write_bytes(dump_json(document))
    files = {path.name: sha256_of(path.read_bytes()) for path in sorted((draft / BATCHES).iterdir())}
    fields = {"run": document["run"], "plan_sha256": plan_digest(document), "blocks": files}
    append_event(draft, "planned", fields)
    sync_tree(draft)


def write_batch(run: Path, batch: Mapping[str, Any]) -> Path:
    """Write a batch file unless it is there: what a bench may be running is never changed."""
    path = run / BATCHES / f"{checked_name(batch['block'], 'block', most=2 * MOST)}.json"
    with locked(run):
        if not path.exists():
            write_json(path, batch)
    return path
