# SPDX-License-Identifier: Apache-2.0
"""A runner whose addpart, delpart, mkfs and mount work on a bench of a fixture tree."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from storqual_core.kit.command import Completed
from tests.support.bench_tree import BenchTree


@dataclass
class FakeParts:
    """What was asked of it is in `calls`; `then` is done when its tool is called, `fails` are tools that fail."""

    tree: BenchTree
    calls: list[list[str]] = field(default_factory=list)
    then: dict[str, Callable[[], object]] = field(default_factory=dict)
    fails: dict[str, list[str]] = field(default_factory=dict)

    @property
    def tools(self) -> list[str]:
        """The tools in the order in which they were called; not those that only look."""
        return [words[0] for words in self.calls if words[0] != "blkid"]

    def __call__(self, argv: Sequence[str], **_: object) -> Completed:
        words = list(argv)
        self.calls.append(words)
        said = self.fails.get(words[0]) or []
        if said:
            return Completed(tuple(argv), 1, "", said.pop(0), 0.0)
        if words[0] == "addpart":
            self.add(words[1].removeprefix("/dev/"), int(words[2]), int(words[3]))
        elif words[0] == "delpart":
            self.remove(words[1].removeprefix("/dev/"), int(words[2]))
        self.then.get(words[0], lambda: None)()
        # blkid finds nothing: the ends of the fixtures are stamps
        return Completed(tuple(argv), 2 if words[0] == "blkid" else 0, "", "", 0.0)

    def add(self, disk: str, number: int, start: int) -> None:
        self.tree.partition(disk, number)
        self.tree.write(f"/sys/class/block/{_part(disk, number)}/start", f"{start}\n")

    def remove(self, disk: str, number: int) -> None:
        tree, name = self.tree, _part(disk, number)
        number_of = tree.machine.text(f"/sys/class/block/{name}/dev")
        shutil.rmtree(tree.machine.path(tree.machine.real(f"/sys/class/block/{name}")))
        for link in (f"sys/class/block/{name}", f"sys/dev/block/{number_of}", f"dev/{name}"):
            (tree.root / link).unlink()
        del tree.machine.nodes[f"/dev/{name}"]


def _part(disk: str, number: int) -> str:
    return f"{disk}p{number}" if disk[-1].isdigit() else f"{disk}{number}"
