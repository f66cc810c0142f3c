# SPDX-License-Identifier: Apache-2.0
"""Children of the control node: what they inherit, and that no Python of them looks into the current folder."""

import gc
import os
import sys
from pathlib import Path

import pytest

from storqual.base import child
from storqual_core.kit.command import child_environment, run

PATHS = ["", ":", ":/a", "/a:", "/a::/b", ".", "./x:/a", "x:/a:y"]


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with modules and a program in it; whatever is executed leaves a mark."""
    marks = tmp_path / "marks"
    marks.mkdir()
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("random", "json", "multiprocessing", "sitecustomize", "storqual", "pickle", "encodings"):
        (folder / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w').close()\n", encoding="utf-8")
    (folder / "true").write_text(f"#!/bin/sh\n: > {marks}/true\n", encoding="utf-8")
    (folder / "true").chmod(0o755)
    monkeypatch.chdir(folder)
    return marks


@pytest.mark.parametrize("path", PATHS)
def test_nothing_relative_is_inherited(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("PYTHONPATH", path)
    environment = child_environment()
    assert all(entry.startswith("/") for entry in filter(None, environment["PATH"].split(":")))
    assert (
        environment.get("PYTHONPATH", "/").split(":") == [entry for entry in path.split(":") if entry.startswith("/")]
        or "PYTHONPATH" not in environment
    )
    assert environment["PYTHONSAFEPATH"] == "1"


@pytest.mark.parametrize("path", [":", ".", ":/usr/bin"])
def test_a_child_in_a_hostile_folder_takes_nothing_from_it(
    path: str, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("PATH", f"{path}:/usr/bin:/bin")
    assert child.run(child.python("-c", "import random, json"), timeout=60).returncode == 0
    assert child.run([sys.executable, "-c", "import random, json"], timeout=60).returncode == 0
    assert child.run(child.storqual("--version"), timeout=60, capture_output=True).returncode == 0
    assert child.start(["true"]).wait() == 0
    assert run(["true"]).rc == 0
    assert not list(hostile.iterdir())


def test_workers_in_a_hostile_folder_take_nothing_from_it(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the workers nor the tracker that `multiprocessing` starts with the pool; this process is as before."""
    monkeypatch.setenv("PYTHONPATH", ":")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with child.Workers(gc.disable) as pool:
        assert pool.submit(pow, 2, 5).result() == 32
        assert pool.submit(os.getpid).result() != os.getpid()
    assert not list(hostile.iterdir())
    assert (os.environ.get("PYTHONSAFEPATH"), os.environ["PYTHONPATH"]) == (None, ":")


def test_an_empty_folder_is_empty_and_gone_afterwards() -> None:
    with child.empty_folder() as folder:
        assert folder.is_absolute()
        assert not list(folder.iterdir())
    assert not folder.exists()


def test_the_command_line_alone_protects_where_the_environment_was_cleared(hostile: Path) -> None:
    """sudo and su keep no PYTHONSAFEPATH."""
    cleared = ["env", "-u", "PYTHONSAFEPATH", *child.python("-c", "import random, json")]
    assert child.run(cleared, timeout=60).returncode == 0
    assert not list(hostile.iterdir())
