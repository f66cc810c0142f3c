# SPDX-License-Identifier: Apache-2.0
"""A fixture bench with a drive that is reached by two paths, and a dmsetup that tells what its tree says."""

from collections.abc import Sequence

from storqual_core.kit.command import Completed
from tests.support.bench_tree import BenchTree

MAP = "mpath-35000c50000000001"
DMSETUP = ("dmsetup", "status", "--major")


def status(paths: Sequence[tuple[str, bool]], *, sectors: int = 2097152) -> str:
    told = " ".join(f"{number} {'A' if active else 'F'} {0 if active else 1} 0 1" for number, active in paths)
    return f"0 {sectors} multipath 2 0 0 0 1 1 A 0 {len(paths)} 2 {told}\n"


class Paths:
    """A runner for the tree: dmsetup knows its maps, and any other tool finds nothing."""

    def __init__(self, tree: BenchTree) -> None:
        self._tree = tree

    def __call__(self, argv: Sequence[str], **_: object) -> Completed:
        machine = self._tree.machine
        if tuple(argv[:3]) != DMSETUP:
            return Completed(tuple(argv), 2, "", "", 0.0)
        number = f"{argv[3]}:{argv[5]}"
        name = next(
            one for one in machine.names("/sys/class/block") if machine.text(f"/sys/class/block/{one}/dev") == number
        )
        below = machine.names(f"/sys/class/block/{name}/slaves")
        told = [
            (machine.text(f"/sys/class/block/{one}/dev"), machine.text(f"/sys/block/{one}/device/state") != "offline")
            for one in below
        ]
        return Completed(tuple(argv), 0, status(told), "", 0.0)


def two_paths(tree: BenchTree, *names: str) -> BenchTree:
    """The tree with the multipath device dm-7 over these paths."""
    return tree.stacked("dm-7", names or ("sda", "sdc"), title="mpatha", uuid=MAP)
