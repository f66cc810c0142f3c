# SPDX-License-Identifier: Apache-2.0
"""What happens between the guard's looks: writers that nobody lists, drives and nodes that are swapped."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual_core.guard import hold
from storqual_core.guard.signatures import AREA, make_stamp
from storqual_core.kit.errors import GuardRefusalError
from tests.support.bad_states import written
from tests.support.bench_tree import SIZE, STATE, BenchTree, claim
from tests.support.paths import Paths


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with one adapter, the claimed empty drive sda, and an unclaimed drive sdb."""
    return BenchTree(tmp_path).adapter().scsi("sda").scsi("sdb", wwn="0x5000c50000000002", serial="SER2")


def refusals(tree: BenchTree) -> list[str]:
    """What the guard says of sda for writing."""
    return [str(refusal) for refusal in hold.check([claim()], purpose="write", state_dir=STATE, machine=tree.machine)]


BUSY_SECONDS: dict[str, tuple[Callable[[BenchTree], object], str]] = {
    "written": (
        lambda t: t.machine.meanwhile.append(
            lambda: t.write("/sys/block/sda/stat", "0 0 0 0 1 0 8 0 0 0 0 0 0 0 0 0 0\n")
        ),
        "it is being written to, and the program is not known; find out what writes to it",
    ),
    "discarded": (
        lambda t: t.machine.meanwhile.append(
            lambda: t.write("/sys/block/sda/stat", "0 0 0 0 0 0 0 0 0 0 0 1 0 8 0 0 0\n")
        ),
        "it is being written to, and the program is not known",
    ),
    "under-way": (lambda t: t.write("/sys/block/sda/inflight", "       0        1\n"), "it is being written to"),
    "uncounted": (lambda t: t.write("/sys/block/sda/stat", ""), "the kernel does not count what is written to it"),
    "another-path-of-it": (
        lambda t: (
            t.scsi("sdc").stacked("dm-7", ["sda", "sdc"], title="mpatha", uuid="mpath-35000c50000000001"),
            t.machine.meanwhile.append(lambda: t.write("/sys/block/sdc/stat", "0 0 0 0 1 0 8 0 0 0 0 0 0 0 0 0 0\n")),
        ),
        "it is being written to, and the program is not known",
    ),
}


@pytest.mark.parametrize("state", BUSY_SECONDS)
def test_a_drive_that_somebody_unlisted_writes_to_is_taken_and_let_go_unwritten(tree: BenchTree, state: str) -> None:
    arrange, expected = BUSY_SECONDS[state]
    arrange(tree)
    written(tree)
    with (
        pytest.raises(GuardRefusalError, match=re.escape(expected)),
        hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine, runner=Paths(tree)),
    ):
        pytest.fail("the drive was given out")
    assert written(tree) == []
    with hold.hold([claim()], purpose="read", state_dir=STATE, machine=tree.machine, runner=Paths(tree)):
        """Who only reads does not mind."""


def test_an_open_file_that_waits_for_an_instant_is_no_reason(tree: BenchTree) -> None:
    tree.opened("socket:[4]", comm="broker", more="scm_fds: 1\n")
    tree.machine.meanwhile.append(lambda: tree.write("/proc/101/fdinfo/7", "scm_fds: 0\n"))
    assert refusals(tree) == []


def test_storquals_own_part_of_a_stamped_drive_is_no_foreign_partition(tree: BenchTree) -> None:
    """A block that was killed leaves it; the next one takes the drive all the same."""
    tree.partition("sda", 1, start=AREA)
    assert "the kernel knows partitions of it (sda1)" in refusals(tree)[0]
    tree.fill("sda", 0, make_stamp(claim().id, SIZE, end="start"))
    tree.fill("sda", -4096, make_stamp(claim().id, SIZE, end="end"))
    assert refusals(tree) == []
    tree.partition("sda", 2, start=2 * AREA)
    assert "the kernel knows partitions of it (sda2)" in refusals(tree)[0]


def test_a_node_that_leads_elsewhere_after_the_check_is_not_opened(tree: BenchTree) -> None:
    """A drive that is swapped between the check and the write: what is open is what counts."""
    busy = tree.machine.busy

    def swapped(path: str) -> str:
        said = busy(path)
        tree.machine.nodes["/dev/sda"] = tree.machine.nodes["/dev/sdb"]
        return said

    tree.machine.busy = swapped  # type: ignore[method-assign]
    written(tree)
    with (
        pytest.raises(GuardRefusalError, match="/dev/sda is a different device now"),
        hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine),
    ):
        pytest.fail("the drive was given out")
    assert written(tree) == []


def test_a_node_that_is_replaced_while_it_is_held_is_not_written(tree: BenchTree) -> None:
    """Stamps and what is looked at go through what is open, not through the path."""
    node = tree.root / "dev/sda"
    tree.machine.meanwhile.append(lambda: (node.rename(node.with_name("gone")), node.write_bytes(b"precious")))
    with hold.hold([claim()], purpose="write", state_dir=STATE, machine=tree.machine) as held:
        assert held.stamped == (claim().id,)
        tree.machine.meanwhile.clear()
        held.stamp(claim().id)
    assert node.read_bytes() == b"precious"
    assert node.with_name("gone").read_bytes()[:4096] == make_stamp(claim().id, SIZE, end="start")
