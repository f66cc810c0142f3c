# SPDX-License-Identifier: Apache-2.0
"""Files that are put in place in one step, also in folders that others may write to."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual_core.kit.durable import copy_file, replace_file


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("put", [replace_file, lambda path, text: copy_file(written(path, text), path)])
def test_no_link_that_waits_under_the_name_of_the_part_is_written_through(
    tmp_path: Path, put: Callable[[Path, str], None], link: Callable[[Path, Path], None]
) -> None:
    victim, path = tmp_path / "victim", tmp_path / "file"
    victim.write_text("precious", encoding="utf-8")
    link(victim, tmp_path / f".file.{os.getpid()}.part")
    put(path, "text")
    assert [victim.read_text(encoding="utf-8"), path.read_text(encoding="utf-8")] == ["precious", "text"]
    assert not list(tmp_path.glob(".file*"))


def written(path: Path, text: str) -> Path:
    source = path.with_name("source")
    source.write_text(text, encoding="utf-8")
    return source
