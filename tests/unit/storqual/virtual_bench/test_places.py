# SPDX-License-Identifier: Apache-2.0
"""Two checkouts do not collide, socket paths are short, and nobody else can prepare them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storqual.virtual_bench.places import BenchPlaces, cache_folder, make_private, socket_folder
from storqual_core.kit.errors import StorqualError


def test_sockets_of_two_checkouts_are_apart(tmp_path: Path) -> None:
    assert socket_folder(tmp_path / "a") != socket_folder(tmp_path / "b")


def test_a_socket_path_fits_however_deep_the_checkout_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket address has room for 107 bytes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/4294967294")
    deep = tmp_path / Path(*["a-long-folder-name"] * 20)
    assert len(os.fsencode(socket_folder(deep) / "monitor")) <= 107


def test_one_folder_reached_by_two_paths_is_one_bench(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert BenchPlaces.of(tmp_path / "link") == BenchPlaces.of(tmp_path / "real" / ".." / "real")


def test_a_socket_folder_is_for_its_user_only(tmp_path: Path) -> None:
    folder = tmp_path / "storqual-0" / "bench"
    make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_mode & 0o022 == 0
    make_private(folder)


def test_a_socket_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "storqual-0" / "bench"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(StorqualError, match="writable by others"):
        make_private(folder)


def test_a_socket_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Somebody else could have laid it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "storqual-0").mkdir(mode=0o700)
    (tmp_path / "storqual-0" / "bench").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorqualError):
        make_private(tmp_path / "storqual-0" / "bench")


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORQUAL_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("STORQUAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert cache_folder() == tmp_path / "there" / "storqual"
