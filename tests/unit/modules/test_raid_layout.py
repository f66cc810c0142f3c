# SPDX-License-Identifier: Apache-2.0
"""The module raid_layout: its arguments become the step, and nothing declared is nothing done."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storqual_core.kit.errors import BadInputError


def given(state_dir: Path, **changes: Any) -> dict[str, Any]:
    defaults = {"volumes": [], "adapters": {}, "consent": [], "only": False, "wait_s": 0.0, "run": "r"}
    return {**defaults, "state_dir": str(state_dir), **changes}


def test_nothing_declared_is_nothing_done(load_module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """Not even the lock is taken, also when volumes of this run would have to go but there are none."""
    for only in (False, True):
        result = load_module("raid_layout").work(given(tmp_path, only=only), check=False)
        assert result.pop("diff") == {"before": "", "after": ""}
        assert result == {"changed": False, "settings": [], "steps": [], "drift": [], "progress": {}}
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_is_told_before_anything_is_touched(
    load_module: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    volumes = [{"adapter": "a", "level": "9"}, {"adapter": "b", "level": "1", "members": []}]
    with pytest.raises(BadInputError) as told:
        load_module("raid_layout").work(given(tmp_path, volumes=volumes), check=False)
    assert told.value.problems == [
        "volume 1 of adapter a: raid.level: '9' is not one of 0, 1, 5, 6, 10, 50, 60",
        "volume 2 of adapter b: found no members, expected a level and members",
    ]
    assert list(tmp_path.iterdir()) == []
