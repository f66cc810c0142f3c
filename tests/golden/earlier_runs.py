# SPDX-License-Identifier: Apache-2.0
"""Runs that an earlier version made, as archives: unpack one, move an interrupted one to another folder."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

ARCHIVES = Path(__file__).resolve().parent / "runs"
KEYS = ARCHIVES / "keys.yml"
INTERRUPTED = "local-killed"
_ITS_LAB = "/srv/bench-lab/killed"
"""Where the interrupted run was made; files of the run and of the bench name targets below it."""
_TARGET_BYTES = 64 << 20


def expected() -> dict[str, Any]:
    """What its own version said of each run."""
    facts: dict[str, Any] = json.loads((ARCHIVES / "expected.json").read_text(encoding="utf-8"))
    return facts


def unpack(name: str, folder: Path) -> Path:
    """Unpack an archive into `folder`; its run directory."""
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    (run,) = (folder / "runs").iterdir()
    return run


def move_lab(folder: Path, run: Path) -> None:
    """Make `folder` the lab of an unpacked interrupted run: everything that names its targets names them there.

    The event chain and the digest of the inventory are made anew, as if the lab had been there from the beginning.
    The targets themselves, 64 MiB each, are no part of the archive and are made here.
    """
    for path in sorted(folder.rglob("*.json*")):
        if path.is_file() and path.suffix != ".gz":
            path.write_bytes(path.read_bytes().replace(_ITS_LAB.encode(), str(folder).encode()))
    _make_targets(folder / ".cache" / "local" / "targets")
    lines = (run / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    chain, previous = "", events[0]["previous"]
    for event in events:
        line = json.dumps({**event, "previous": previous}, ensure_ascii=False, separators=(",", ":"))
        chain, previous = f"{chain}{line}\n", _digest(line.encode())
    (run / "events.jsonl").write_text(chain, encoding="utf-8")
    document = json.loads((run / "run.json").read_text(encoding="utf-8"))
    inventory = document["inputs"]["inventory"]
    inventory["sha256"] = _digest((run / inventory["file"]).read_bytes())
    (run / "run.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def _make_targets(folder: Path) -> None:
    """The files that stand for drives, and the bench's record of them."""
    record = folder / ".claims.json"
    claims = json.loads(record.read_text(encoding="utf-8"))
    for inodes in claims.values():
        for name in inodes:
            with (folder / name).open("xb") as file:
                file.truncate(_TARGET_BYTES)
            inodes[name] = (folder / name).stat().st_ino
    record.write_text(json.dumps(claims), encoding="utf-8")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
