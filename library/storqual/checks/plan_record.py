# SPDX-License-Identifier: Apache-2.0
"""What this user recorded of a run that he planned: its checks, its inventories and its witnesses.

It lies outside the run, on this machine. None of it is read from the run, which may be a stranger's: a check is a
program, Ansible executes what an inventory's templates say, waivers lie beside an inventory, and a witness is told
with this user's SSH key.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storqual.run import Run, sha256_of
from storqual.run.files import read_lines
from storqual.run.layout import EVENTS, write_json
from storqual_core.kit.errors import BadInputError


def keep_record(
    run: Run, checks: Mapping[str, Any], inventories: Mapping[str, str], witnesses: Mapping[str, str]
) -> None:
    """Without inventories those of the record stay, and witnesses are added. Raises StorqualError."""
    record = {"inventories": inventories or recorded(run, "inventories"), "checks": checks}
    write_json(_record(run), {**record, "witnesses": {**recorded(run, "witnesses"), **witnesses}})


def planned_inventories(run: Run) -> tuple[str, ...]:
    """The inventories that this user planned the run from. Raises BadInputError where nothing is recorded of it."""
    sources = tuple(map(str, recorded(run, "inventories").values()))
    if not sources:
        reason = "this run was planned by another user or on another machine, so its inventory is not used"
        raise BadInputError([f"{run.path}: {reason}; name your own with -i"])
    return sources


def own_witnesses(run: Run) -> tuple[str, ...]:
    """The places that this user lets be told of the run, whatever run.json names."""
    return tuple(recorded(run, "witnesses"))


def own_labs(run: Run) -> tuple[Path, ...]:
    """The inventories that this user planned the run from; none for a run of somebody else."""
    return tuple(Path(name) for name in recorded(run, "inventories").values() if "," not in str(name))


def recorded(run: Run, part: str) -> dict[str, Any]:
    """`checks`, `inventories` or `witnesses` of the record; nothing for a run of somebody else."""
    try:
        return dict(json.loads(_record(run).read_text(encoding="utf-8"))[part])
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _record(run: Run) -> Path:
    """Where this user's record about the run is: its name is the digest of the run's first event, the plan."""
    _, planned = next(read_lines(run.path, EVENTS), (0, b""))
    declared = Path(os.environ.get("XDG_STATE_HOME", ""))
    state = declared if declared.is_absolute() else Path("~/.local/state").expanduser()
    return state / "storqual" / "checks" / f"{sha256_of(planned)}.json"
