# SPDX-License-Identifier: Apache-2.0
"""What is stopped whatever it is for, and what makes two devices one drive."""

from pathlib import Path

import pytest

from tests.support.bad_states import ext4
from tests.support.bench_tree import BenchTree
from tests.unit.storqual_core.guard.test_hold import refusals

CONSENT = ["00000001"]


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with one adapter and its claimed empty drive sda."""
    return BenchTree(tmp_path).adapter().scsi("sda")


@pytest.mark.parametrize("purpose", ["write", "firmware", "format", "delete_volume"])
def test_what_destroys_is_stopped_by_contents_and_write_protection(tree: BenchTree, purpose: str) -> None:
    assert refusals(tree, purpose=purpose, consent=CONSENT) == []
    tree.write("/sys/block/sda/ro", "1\n")
    assert "it is read-only" in refusals(tree, purpose=purpose, consent=CONSENT)[0]
    tree.write("/sys/block/sda/ro", "0\n")
    assert "it holds a file system (ext4" in refusals(ext4(tree), purpose=purpose, consent=CONSENT)[0]


@pytest.mark.parametrize("purpose", ["read", "settings"])
def test_a_setting_of_a_drive_that_cannot_be_written_is_no_write(tree: BenchTree, purpose: str) -> None:
    tree.write("/sys/block/sda/ro", "1\n")
    assert refusals(tree, purpose=purpose) == []


def test_two_paths_under_anything_but_multipath_are_two_drives(tree: BenchTree) -> None:
    tree.scsi("sdc").stacked("dm-7", ["sda", "sdc"], title="both")
    assert "2 devices of this bench answer to that name" in refusals(tree)[0]
