# SPDX-License-Identifier: Apache-2.0
"""Real programs on a real block device of this machine: each kind of hidden writer is found.

They need root and a loop device; where a machine has none these tests are skipped, and the same programs are states
of the guard's test on the virtual bench.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual_core.guard.writes import Quiet
from storqual_core.host.in_use import find_uses, read_open_files, ways
from storqual_core.kit.kernel import share_open_files
from storqual_core.kit.machine import Machine
from tests.support.hidden_writers import running

pytestmark = pytest.mark.slow

LISTED = {
    "a thread with a table of its own": "is open for writing in",
    "a process whose first thread has ended": "is open for writing in",
    "a file registered with io_uring": "is registered with io_uring by",
    "a mapping whose descriptor is closed": "is mapped into the memory of",
    "a private node of the device": "is open for writing in",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A loop device over a sparse file."""
    if os.geteuid() or not Path("/dev/loop-control").exists():
        pytest.skip("needs root and loop devices")
    backing = tmp_path_factory.mktemp("loop") / "disk"
    backing.write_bytes(b"")
    os.truncate(backing, 16 << 20)
    made = subprocess.run(["losetup", "--show", "-f", backing], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "-d", made.stdout.strip()], check=True)


def writers(node: str) -> list[str]:
    return list(read_open_files(Machine()).writers.get(Path(node).name, ()))


@pytest.mark.parametrize("kind", LISTED)
def test_a_hidden_writer_is_listed(node: str, kind: str) -> None:
    assert writers(node) == []
    with running(kind, node) as process:
        said = writers(node)
        assert any(sentence.startswith(LISTED[kind]) and f"process {process}" in sentence for sentence in said), said
    assert writers(node) == []


def test_a_descriptor_in_flight_is_told_as_one_that_may_be_any_device(node: str) -> None:
    with running("a descriptor that waits in a socket", node) as process:
        told = read_open_files(Machine()).unnamed
        assert any(f"process {process}" in sentence and "wait in a socket" in sentence for sentence in told), told


def test_a_loop_device_over_a_node_that_was_removed_is_a_use_of_the_device(node: str, tmp_path: Path) -> None:
    private, name = tmp_path / "private", Path(node).name
    os.mknod(private, 0o60600, os.stat(node).st_rdev)  # noqa: PTH116 - as os.mknod
    above = subprocess.run(["losetup", "--show", "-f", private], capture_output=True, text=True, check=True)
    try:
        private.unlink()
        loop = Path(above.stdout.strip()).name
        assert find_uses(Machine())[name] == [f"backs loop device {loop}"]
    finally:
        subprocess.run(["losetup", "-d", above.stdout.strip()], check=True)


def test_a_second_in_which_somebody_writes_is_not_quiet(node: str) -> None:
    """Counted on the device; named by fanotify on kernels that tell it of device nodes."""
    machine, name = Machine(), Path(node).name
    assert Quiet(machine, {name: node}).end() == {}
    with running("a program that goes on writing", node) as process:
        seen = Quiet(machine, {name: node}).end()
    assert seen[name].startswith("it is being written to")
    if machine.kernel_ways()["writes through a node (fanotify)"]:
        assert f"(process {process})" in seen[name]


def test_threads_of_one_program_share_their_open_files(node: str) -> None:
    with running("a thread with a table of its own", node) as process:
        tasks = [int(name) for name in os.listdir(f"/proc/{process}/task") if int(name) != process]  # noqa: PTH208
        assert not share_open_files(process, tasks[0])
    assert share_open_files(os.getpid(), os.getpid())


def test_what_this_kernel_tells_is_told() -> None:
    """Every kernel since 5.10 lists registered files and counts what waits in sockets."""
    told = ways(Machine())
    assert set(told) == {
        *("open files of each thread", "shared mappings", "files registered with io_uring"),
        *("open files that wait in a socket", "writes through a node (fanotify)"),
    }
    assert told["open files of each thread"]
