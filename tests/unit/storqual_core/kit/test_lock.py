# SPDX-License-Identifier: Apache-2.0
"""One process changes a bench at a time, and says who it is."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import StorqualError
from storqual_core.kit.lock import (
    ForeignStateError,
    LockedError,
    hold_lock,
    lock_holder,
    lock_path,
    read_saved,
    remember,
    remove_after_proof,
    saved_path,
)

HOLD = """
import sys, time
from pathlib import Path
from storqual_core.kit.lock import hold_lock
with hold_lock(Path(sys.argv[1]), "r1", "measuring", block="b1"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock of `tmp_path`."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_held_bench_is_refused_with_the_holders_name(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    with pytest.raises(LockedError, match=rf"run r1, measuring, process {other.pid}, since"):  # noqa: SIM117
        with hold_lock(tmp_path, "r2", "drive_settings", wait_s=0):
            pass
    holder = lock_holder(tmp_path)
    assert holder is not None
    assert (holder.run, holder.block, holder.pid) == ("r1", "b1", other.pid)


def test_a_killed_holder_holds_nothing(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    """The kernel's lock is the truth, whatever is written inside."""
    other.kill()
    other.wait()
    assert lock_path(tmp_path).read_text(encoding="utf-8") != ""
    assert lock_holder(tmp_path) is None
    with hold_lock(tmp_path, "r2", "drive_settings", wait_s=0) as lock:
        assert lock.run == "r2"


def test_a_free_lock_is_empty_and_has_no_holder(tmp_path: Path) -> None:
    assert lock_holder(tmp_path / "new") is None
    with hold_lock(tmp_path / "new", "r1", "plan"):
        holder = lock_holder(tmp_path / "new")
        assert holder is not None
        assert holder.pid == os.getpid()
    assert lock_path(tmp_path / "new").read_text(encoding="utf-8") == ""
    assert lock_holder(tmp_path / "new") is None
    lock_path(tmp_path).symlink_to(lock_path(tmp_path / "new"))
    with pytest.raises(OSError, match="symbolic links"), hold_lock(tmp_path, "r1", "plan"):
        pass


def test_a_follower_that_only_asks_does_not_cost_a_block_its_lock(tmp_path: Path) -> None:
    """`flock -n` holds the lock for a moment; taking it waits that moment."""
    lock_path(tmp_path).touch()
    asking = subprocess.Popen(
        ["flock", str(lock_path(tmp_path)), "sh", "-c", "echo asked; sleep 0.5"], stdout=subprocess.PIPE, text=True
    )
    assert asking.stdout is not None
    assert asking.stdout.readline() == "asked\n"
    with hold_lock(tmp_path, "r1", "measuring"):
        asking.communicate()
        assert subprocess.run(["flock", "-n", str(lock_path(tmp_path)), "true"], check=False).returncode == 1


def test_a_program_started_under_the_lock_does_not_inherit_it(tmp_path: Path) -> None:
    """An orphaned fio must not keep the bench locked."""
    with hold_lock(tmp_path, "r1", "measuring"):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        with hold_lock(tmp_path, "r2", "measuring", wait_s=0):
            pass
    finally:
        child.kill()
        child.wait()


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
