# SPDX-License-Identifier: Apache-2.0
"""Tests of the nodes that udev does not watch."""

import os
import stat
from pathlib import Path

import pytest

from storqual_core.turns.targets import private_nodes


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> str:
    """A path that is the block device 8:16 for `os.stat`."""
    real = os.stat

    def status(path: object, *rest: object, **named: object) -> os.stat_result:
        if str(path) == "/dev/sdb":
            return os.stat_result((stat.S_IFBLK | 0o660, 0, 0, 1, 0, 0, 0, 0, 0, 0), {"st_rdev": os.makedev(8, 16)})
        return real(path, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", status)
    return "/dev/sdb"


def test_a_disk_gets_a_second_node_and_a_file_stays_what_it_is(tmp_path: Path, disk: str) -> None:
    """Same device number, nobody else may open it, gone afterwards."""
    file = tmp_path / "file"
    file.touch()
    asked = []

    def make(path: Path, mode: int, device: int) -> None:
        asked.append((path, mode, device))
        path.touch()

    folder = tmp_path / "nodes"
    with private_nodes({"a": disk, "f": str(file)}, folder, make) as nodes:
        assert nodes == {"a": str(folder / "disk0"), "f": str(file)}
        assert asked == [(folder / "disk0", stat.S_IFBLK | 0o600, os.makedev(8, 16))]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_where_nobody_may_make_nodes_the_disk_s_own_is_used(tmp_path: Path, disk: str) -> None:

    def forbidden(path: Path, mode: int, device: int) -> None:
        raise PermissionError(path, mode, device)

    with private_nodes({"a": disk}, tmp_path / "nodes", forbidden) as nodes:
        assert nodes == {"a": disk}


def test_what_a_killed_program_left_is_removed_first(tmp_path: Path, disk: str) -> None:
    folder = tmp_path / "nodes"
    folder.mkdir()
    (folder / "disk7").touch()
    with private_nodes({"a": disk}, folder, lambda path, _mode, _device: path.touch()):
        assert [entry.name for entry in folder.iterdir()] == ["disk0"]
