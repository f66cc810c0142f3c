# SPDX-License-Identifier: Apache-2.0
"""mdadm on a synthetic bench: real superblocks on the bench's sparse drives, and the array in `/sys`."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field

from storqual_core.kit.command import Completed
from tests.support.bench_tree import BenchTree

_SECTOR = 512
_OFFSET = 4096


def superblock(uuid: str) -> bytes:
    """As much of an md superblock 1.2 as libblkid looks at: magic, version, UUID, its own place."""
    body = bytearray(256)
    body[0:8] = (0xA92B4EFC).to_bytes(4, "little") + (1).to_bytes(4, "little")
    body[16:32] = bytes.fromhex(uuid.replace("-", ""))
    body[144:152] = (_OFFSET // _SECTOR).to_bytes(8, "little")
    return bytes(body)


@dataclass
class Array:
    """A running array."""

    node: str
    uuid: str
    level: str
    members: list[str]
    spares: list[str]
    chunk: str
    name: str
    bitmap: str = "none"
    state: str = "clean"
    progress: list[int] = field(default_factory=list)
    lost: tuple[str, ...] = ()


@dataclass
class FakeMd:
    """A Runner. `fail` names a command (`--create`) that fails without doing anything; `seen` are all command lines.

    `resync`: percentages that a new array with redundancy shows one after the other before it is idle.
    `known_to`: to how many members a new array gets to be known before the power goes; it does not start then.
    """

    tree: BenchTree
    arrays: dict[str, Array] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    fail: str = ""
    resync: Sequence[int] = ()
    known_to: int | None = None

    def __call__(self, argv: Sequence[str], **_options: object) -> Completed:
        self.seen.append(" ".join(argv))
        words = list(argv[1:])
        if argv[0] != "mdadm":
            return Completed(tuple(argv), 127, "", "not a command of this bench", 0.0)
        if self.fail and self.fail in words:
            return Completed(tuple(argv), 1, "", f"mdadm: {self.fail} failed for a reason", 0.0)
        if words == ["--detail", "--scan"]:
            said = "".join(f"ARRAY {array.node} metadata=1.2 UUID=x\n" for array in self.arrays.values())
        elif words[0] == "--detail":
            said = "".join(self._detail(self.arrays[node.rsplit("/", 1)[-1]]) for node in words[1:])
        elif words[0] == "--create":
            said = self._create(words[1], words[2:])
        elif words[0] == "--stop":
            said = self._stop(words[1].rsplit("/", 1)[-1])
        elif words[0] == "--grow":
            self.arrays[words[1].rsplit("/", 1)[-1]].bitmap = words[2].partition("=")[2]
            said = ""
        elif words[0] == "--readwrite":
            self.tree.write(f"/sys/block/{words[1].rsplit('/', 1)[-1]}/md/array_state", "active\n")
            said = ""
        else:
            raise AssertionError(f"mdadm is not called like this: {words}")
        return Completed(tuple(argv), 0, said, "", 0.0)

    def _create(self, device: str, words: Sequence[str]) -> str:
        options = dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
        nodes = [word for word in words if not word.startswith("--")]
        count = int(options["raid-devices"])
        name = f"md{127 - len(self.arrays)}"
        array = Array(
            f"/dev/{name}",
            options["uuid"],
            options["level"],
            nodes[:count],
            nodes[count:],
            options.get("chunk", "512K"),
            options["name"],
            options.get("bitmap", "none"),
        )
        if array.level != "0" and "assume-clean" not in options:
            array.progress = list(self.resync)
        if self.known_to is not None:
            array.members, array.state = array.members[: self.known_to], "inactive"
        self.assemble(array)
        self.tree.link(device, array.node)
        return "mdadm: array started.\n"

    def assemble(self, array: Array) -> None:
        """The array in `/sys` and its superblocks on the drives."""
        name = array.node.rsplit("/", 1)[-1]
        nodes = [*array.members, *array.spares]
        self.tree.stacked(name, [node.rsplit("/", 1)[-1] for node in nodes], level=f"raid{array.level}")
        self.tree.write(f"/sys/block/{name}/md/uuid", array.uuid + "\n")
        digits = array.uuid.replace("-", "")
        link = ":".join(digits[place : place + 8] for place in range(0, 32, 8))
        self.tree.link(f"/dev/disk/by-id/md-uuid-{link}", array.node)
        for node in nodes:
            self.tree.fill(node.rsplit("/", 1)[-1], _OFFSET, superblock(array.uuid))
            self.tree.machine.taken[node] = "another program or the kernel holds it exclusively"
        if array.level in ("1", "10") and array.state != "inactive":
            # what is at the end of one member, its scratch stamp too, is mirrored to the others
            first = (self.tree.root / array.members[0].lstrip("/")).read_bytes()[-_OFFSET:]
            for node in array.members[1:]:
                self.tree.fill(node.rsplit("/", 1)[-1], -_OFFSET, first)
        self.arrays[name] = array

    def _stop(self, name: str) -> str:
        array = self.arrays.pop(name)
        root = self.tree.root
        for node in (*array.members, *array.spares):
            lower = node.rsplit("/", 1)[-1]
            (root / self.tree.machine.real(f"/sys/class/block/{lower}").lstrip("/") / "holders" / name).unlink()
            del self.tree.machine.taken[node]
        number = self.tree.machine.nodes.pop(array.node).number
        shutil.rmtree(root / "sys/devices/virtual/block" / name)
        links = [root / f"sys/{place}" for place in (f"block/{name}", f"class/block/{name}", f"dev/block/{number}")]
        links += [path for path in (root / "dev").rglob("*") if path.is_symlink() and path.readlink().name == name]
        for link in (*links, root / "dev" / name):
            link.unlink()
        return f"mdadm: stopped {array.node}\n"

    @staticmethod
    def _detail(array: Array) -> str:
        digits = array.uuid.replace("-", "")
        states = [array.state]
        status = ""
        if array.progress:
            percent = array.progress.pop(0)
            states.append("resyncing")
            status = f"     Resync Status : {percent}% complete\n"
        rows = [
            f"       {place}       8       {place}        {place}      active sync   {node}\n"
            for place, node in enumerate(array.members)
            if node not in array.lost
        ]
        if array.state == "inactive":
            rows = [
                f"       -       8       {place}        -        {node}\n" for place, node in enumerate(array.members)
            ]
        rows += [f"       -       0        0        {place}      removed\n" for place, _ in enumerate(array.lost)]
        rows += [f"       {9}       8       {9}        -      spare   {node}\n" for node in array.spares]
        chunk = f"        Chunk Size : {array.chunk}\n" if array.level != "1" else ""
        bitmap = "     Intent Bitmap : Internal\n" if array.bitmap == "internal" else ""
        return (
            f"{array.node}:\n           Version : 1.2\n        Raid Level : raid{array.level}\n"
            f"        Array Size : 20480 (20.00 MiB 20.97 MB)\n{bitmap}"
            f"             State : {', '.join(states)} \n{chunk}{status}\n"
            f"              Name : any:{array.name}\n"
            f"              UUID : {':'.join(digits[place : place + 8] for place in range(0, 32, 8))}\n\n"
            f"    Number   Major   Minor   RaidDevice State\n{''.join(rows)}"
        )
