# SPDX-License-Identifier: Apache-2.0
"""What a bench was like before the first write stays known until it is proven to be so again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lock import ForeignStateError, hold_lock, read_saved, remember, remove_after_proof, saved_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@pytest.fixture
def as_run(tmp_path: Path) -> Callable[..., Any]:
    """Call a function of the module under the lock, as one run."""

    def call(function: Callable[..., Any], values: Mapping[str, Any], run: str = "r1") -> Any:
        with hold_lock(tmp_path, run, "test") as lock:
            return function(lock, values)

    return call


def test_the_first_value_stays(tmp_path: Path, as_run: Callable[..., Any]) -> None:
    assert as_run(remember, {"drive.WCE@0x5": 1}) == {"drive.WCE@0x5": 1}
    assert as_run(remember, {"drive.WCE@0x5": 0, "kernel_default@bench": "6.1"}) == {"kernel_default@bench": "6.1"}
    saved = read_saved(tmp_path)
    assert saved is not None
    assert (saved.run, dict(saved.values)) == ("r1", {"drive.WCE@0x5": 1, "kernel_default@bench": "6.1"})


def test_another_runs_memory_is_refused_and_kept(tmp_path: Path, as_run: Callable[..., Any]) -> None:
    as_run(remember, {"a@bench": 1})
    for function in (remember, remove_after_proof):
        with pytest.raises(ForeignStateError, match=r"before run r1 .*restore it first"):
            as_run(function, {"a@bench": 1}, run="r2")
    saved = read_saved(tmp_path)
    assert saved is not None
    assert saved.run == "r1"


def test_only_a_proven_restore_forgets(tmp_path: Path, as_run: Callable[..., Any]) -> None:
    as_run(remember, {"a@bench": 1, "b@bench": "x", "c@bench": None})
    with pytest.raises(StorqualError) as caught:
        as_run(remove_after_proof, {"a@bench": 1, "b@bench": "y"})
    assert str(caught.value).splitlines()[1:] == [
        "b@bench: found 'y', expected 'x'",
        "c@bench: found nothing, expected None",
    ]
    assert read_saved(tmp_path) is not None
    as_run(remove_after_proof, {"a@bench": 1, "b@bench": "x", "c@bench": None, "more": 5})
    assert read_saved(tmp_path) is None
    as_run(remove_after_proof, {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "storqual.saved/9", "values": {}}', '{"values": 3}'])
def test_a_memory_that_cannot_be_read_stops_everything(tmp_path: Path, as_run: Callable[..., Any], text: str) -> None:
    """Writing over it would lose the state before the first write."""
    saved_path(tmp_path).write_text(text, encoding="utf-8")
    with pytest.raises(StorqualError, match="it holds the state of the bench before the first write"):
        as_run(remember, {"a@bench": 1})
    assert saved_path(tmp_path).read_text(encoding="utf-8") == text
