# SPDX-License-Identifier: Apache-2.0
"""Programs are found by what they have open, wherever the kernel keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storqual_core.host.in_use import read_open_files, ways
from tests.support.bench_tree import BenchTree

if TYPE_CHECKING:
    from pathlib import Path

RING = "anon_inode:[io_uring]"


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with one drive."""
    return BenchTree(tmp_path).adapter().scsi("sda")


def writers(tree: BenchTree) -> dict[str, list[str]]:
    """Who writes, by kernel name."""
    return dict(read_open_files(tree.machine).writers)


def test_readers_do_no_harm_and_writers_are_named(tree: BenchTree) -> None:
    tree.partition("sda", 1)
    tree.opened("/dev/sda", flags="0100000", comm="systemd-udevd").opened("/dev/sda1", flags="0100001", comm="dd")
    tree.opened("/dev/bsg/2:0:0:0", comm="sg_format").opened("/dev/null").opened("/dev/gone").opened("socket:[12]")
    assert writers(tree) == {
        "sda1": ["is open for writing in dd (process 102)"],
        "sda": ["is open for writing in sg_format (process 103)"],
    }


@pytest.mark.parametrize("node", ["/dev/sg0", "/dev/bsg/2:0:0:0"])
def test_a_node_for_commands_takes_them_whatever_it_was_opened_for(tree: BenchTree, node: str) -> None:
    tree.opened(node, flags="0100000", comm="sg_raw")
    assert writers(tree) == {"sda": ["is open for commands in sg_raw (process 101)"]}


def test_a_node_that_was_closed_meanwhile_is_not_open(tree: BenchTree) -> None:
    tree.opened("/dev/sda", comm="mystery")
    (tree.root / "proc/101/fdinfo/7").unlink()
    assert writers(tree) == {"sda": ["is open for writing in mystery (process 101)"]}
    asked = tree.machine.lines

    def lines(path: str) -> list[str]:
        (tree.root / "proc/101/fd/7").unlink()
        return asked(path)

    tree.machine.lines = lines  # type: ignore[method-assign]
    assert writers(tree) == {}


def test_the_files_of_a_thread_count_as_those_of_its_program(tree: BenchTree) -> None:
    """The first thread may have ended, or the thread may have a table of its own."""
    tree.opened("/dev/sda", comm="worker", task="977")
    assert writers(tree) == {"sda": ["is open for writing in worker (process 101)"]}


def test_files_registered_with_io_uring_are_open_though_no_descriptor_shows_them(tree: BenchTree) -> None:
    tree.opened(RING, comm="fio", more="UserFiles:\t2\n    0: /dev/sda\n    1: <none>\nUserBufs:\t0\n")
    assert writers(tree) == {"sda": ["is registered with io_uring by fio (process 101)"]}


def test_an_older_kernel_names_registered_files_without_their_folder(tree: BenchTree) -> None:
    tree.opened(RING, comm="fio", more="UserFiles:\t1\n    0: sda\nUserBufs:\t0\n")
    assert writers(tree) == {"sda": ["is registered with io_uring by fio (process 101)"]}


@pytest.mark.parametrize("text", ["UserFiles:\t1\nUserBufs:\t0\n", ""])
def test_a_busy_ring_does_not_tell_its_files(tree: BenchTree, text: str) -> None:
    tree.opened(RING, comm="fio", more=text)
    assert read_open_files(tree.machine).unnamed == [
        "fio (process 101) has files registered with io_uring that are not listed"
    ]


@pytest.mark.parametrize("text", ["UserFiles:\t0\nUserBufs:\t0\n", "UserFiles:\t64\nUserBufs:\t0\nNAPI:\tdisabled\n"])
def test_a_ring_without_files_hides_none(tree: BenchTree, text: str) -> None:
    tree.opened(RING, comm="fio", more=text)
    assert read_open_files(tree.machine).unnamed == []


def test_open_files_that_wait_in_a_socket_are_told(tree: BenchTree) -> None:
    tree.opened("socket:[7]", comm="broker", more="scm_fds: 1\n")
    tree.opened("socket:[8]", comm="idle", more="scm_fds: 0\n").opened("socket:[9]", comm="tcp")
    assert read_open_files(tree.machine).unnamed == [
        "open files wait in a socket of broker (process 101) for being taken"
    ]


def test_a_mapping_outlives_its_descriptor(tree: BenchTree) -> None:
    tree.mapped("/dev/sda").mapped("/dev/sda", kinds="rw-p").mapped("/dev/null")
    tree.mapped("/dev/sda", task="977", comm="orphan")
    assert writers(tree) == {
        "sda": [
            "is mapped into the memory of mapper (process 101)",
            "is mapped into the memory of orphan (process 104)",
        ]
    }


def test_which_ways_a_machine_has_is_told(tree: BenchTree) -> None:
    assert ways(tree.machine) == {"open files of each thread": False, "shared mappings": False}
