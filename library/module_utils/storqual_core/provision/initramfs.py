# SPDX-License-Identifier: Apache-2.0
"""Which build of a driver an initramfs carries: the third place where a driver lies, and the one that boots.

An initramfs is a row of cpio archives (format newc); the first ones may be plain (processor microcode), the last one
is compressed. Kernel documentation: driver-api/early-userspace/buffer-format.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Iterable, Iterator, Mapping, Optional, Sequence

from ..kit.archives import (
    MAGICS,
    Member,
    compose,
    magic_of,
    new_file,
    new_folder,
    pack,
    pack_like,
    read_archive,
    unpack,
)
from ..kit.command import Runner, find_program
from ..kit.errors import MissingToolError, ToolError
from ..kit.machine import Machine
from ..tools.grub import initramfs_names
from ..tools.kmod import Build

# a module in the image, plain or compressed by itself
_MODULE = re.compile(r"(?:^|/)([\w-]+)\.ko(?:\.(?:xz|zst|gz))?$")
_FIELD = re.compile(rb"(?:^|\0)(srcversion|version|vermagic)=([^\0]*)\0")


@dataclass(frozen=True)
class ArchivePart:
    """One piece of an initramfs: its archives, packed together (`packing` is how it begins) or plain (empty)."""

    packing: bytes
    archives: tuple[tuple[Member, ...], ...]


def read_parts(image: bytes, *, unpacked: bool = False) -> list[ArchivePart]:
    """The pieces of an initramfs in order, packed once at most. Raises ToolError for a broken or unknown one."""
    parts: list[ArchivePart] = []
    place = 0
    while place < len(image):
        if image[place] == 0:
            place += 1
        elif unpacked or image[place : place + 6] in MAGICS:
            members, place = read_archive(image, place)
            parts.append(ArchivePart(b"", (tuple(members),)))
        else:
            # what follows packed data is padding
            packed = image[place:]
            inner = read_parts(unpack(packed), unpacked=True)
            parts.append(ArchivePart(magic_of(packed), tuple(archive for part in inner for archive in part.archives)))
            break
    return parts


def entries(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in an initramfs. Raises ToolError when the image is broken."""
    for part in read_parts(image):
        for archive in part.archives:
            for member in archive:
                yield member.name, member.content


def module_name(filename: str) -> str:
    """The module in a file of this name, as the kernel names it; empty when it is no module."""
    match = _MODULE.search(filename)
    return match.group(1).replace("-", "_") if match else ""


def plain_module(content: bytes) -> bytes:
    """A module file unpacked. Raises ToolError for broken packed data."""
    return content if content.startswith(b"\x7fELF") or not content else unpack(content)


def module_build(content: bytes, filename: str = "") -> Build:
    """The build that a module file (plain or packed) names in itself. Raises ToolError for broken packed data."""
    fields = {
        key.decode(): value.decode("utf-8", "replace")
        for key, value in _FIELD.findall(_doubled(plain_module(content)))
    }
    return Build(fields.get("srcversion", ""), fields.get("version", ""), fields.get("vermagic", ""), filename)


def _doubled(data: bytes) -> bytes:
    """Every NUL twice: one ends a field and the same one begins the next, and a match uses up both."""
    return data.replace(b"\0", b"\0\0")


def builds_in(path: str, names: Sequence[str]) -> dict[str, Build | None]:
    """The builds of `names` in the initramfs at `path`, None for one that it does not carry. Raises ToolError."""
    try:
        image = Path(path).read_bytes()
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem
    wanted = {name.replace("-", "_"): name for name in names}
    builds: dict[str, Build | None] = dict.fromkeys(names)
    for filename, content in entries(image):
        name = wanted.get(module_name(filename))
        if name is not None:
            builds[name] = module_build(content, filename)
    return builds


_MAKERS = {"initramfs-tools": "update-initramfs", "dracut": "dracut"}
# packing one under emulation takes minutes
_MAKE_TIMEOUT = 1800.0


def initramfs_maker(machine: Machine) -> tuple[str, str]:
    """`initramfs-tools` or `dracut`, and the evidence; where both are installed, the one that a new kernel calls.

    Where that is not known the name is empty, and the evidence is what was looked at.
    """
    programs = {"initramfs-tools": "mkinitramfs", "dracut": "dracut"}
    there = {name: path for name, program in programs.items() if (path := find_program(machine, program))}
    hooks = [name for name in there if machine.exists(f"/etc/kernel/postinst.d/{name}")]
    chosen = list(there) if len(there) == 1 else hooks
    if len(chosen) == 1:
        hook = f", /etc/kernel/postinst.d/{chosen[0]}" if chosen[0] in hooks else ""
        return chosen[0], f"{there[chosen[0]]}{hook}"
    return "", f"{', '.join(there.values() or programs.values())}, /etc/kernel/postinst.d"


@dataclass(frozen=True)
class Initramfs:
    """The initramfs of one kernel, as its distribution makes it."""

    machine: Machine
    runner: Runner
    release: str

    @property
    def path(self) -> str:
        """Its file, empty where there is none: its name is another one with each maker and distribution."""
        names = initramfs_names(self.release)
        boot = Path(self.machine.path("/boot"))
        files = [*(boot / name for name in names), *boot.glob(f"*/{self.release}/initrd")]
        return next((f"/boot/{file.relative_to(boot)}" for file in files if file.exists()), "")

    def make(self) -> tuple[str, dict[str, bytes]]:
        """Make it anew; the command, for a sentence, and the files in it, which was read to its end.

        Raises ToolError; MissingToolError when the bench has no program that makes it.
        """
        commands = {
            "initramfs-tools": ["update-initramfs", "-u", "-k", self.release],
            "dracut": ["dracut", "--force", self.path, self.release],
        }
        maker, _ = initramfs_maker(self.machine)
        for command in [commands[maker]] if maker else commands.values():
            with suppress(MissingToolError):
                line = self.runner(command, timeout=_MAKE_TIMEOUT).expect().line
                return line, dict(entries(Path(self.machine.path(self.path)).read_bytes()))
        raise MissingToolError(f"none of {', '.join(_MAKERS.values())} is installed: {self.path} cannot be made anew")


Index = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""Files of a module folder by their place in it, to the index files (`modules.dep` and so on) for them."""

# what a module that was not in the initramfs is found under, and where initramfs-tools lists what is loaded
_FOLDER = "updates/storqual"
_LOADED = "conf/modules"
# depmod wants these to tell modules that are part of the kernel
_GIVEN = ("modules.order", "modules.builtin", "modules.builtin.modinfo")
_TIMEOUT = 300.0

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class NewModule:
    """A module to be carried: its name, its file's content (not packed), and the modules that it needs."""

    name: str
    content: bytes
    needs: Sequence[str] = ()


ModuleLookup = Callable[[str], Optional[NewModule]]
"""A module by its name as the kernel has it on the disk, without content where it is built in, None for no such."""


def copy_with(
    image: bytes, release: str, module: NewModule, index: Index, lookup: ModuleLookup = lambda _: None
) -> bytes:
    """`image` with `module` in place of its build of the same name, or added and loaded where it has none.

    What the module needs and the image does not carry is added as `lookup` has it by its name. Raises ToolError when
    that has it neither, when the image is broken, or cannot be told to load the module.
    """
    parts = read_parts(image)
    folder = _module_folder(parts, release)
    members = {member.name: member for part in parts for archive in part.archives for member in archive}
    inside = {name[len(folder) :]: member.content for name, member in members.items() if name.startswith(folder)}
    new = {f"{_FOLDER}/{other.name}.ko": other.content for other in _lacking(module, inside, lookup)}
    changed = {
        name: pack_like(name, module.content) for name in inside if module_name(name) == module.name.replace("-", "_")
    }
    replaced = {folder + name: content for name, content in changed.items()}
    if not changed:
        new[f"{_FOLDER}/{module.name}.ko"] = module.content
        replaced[_loaded_list(members)] = _with_line(members[_loaded_list(members)].content, module.name)
    added = [new_folder(folder + path) for path in ("updates", _FOLDER) if new and folder + path not in members]
    added += [new_file(folder + place, content) for place, content in new.items()]
    indexed = index({**inside, **changed, **new})
    replaced.update({folder + name: content for name, content in indexed.items() if name in inside})
    return _compose(_with(parts, replaced, added))


def with_file(image: bytes, name: str, content: bytes | None) -> bytes:
    """`image` with one file put in, exchanged, or (None) without it. Its folder must be there. Raises ToolError."""
    parts = read_parts(image)
    names = {member.name for part in parts for archive in part.archives for member in archive}
    if content is None:
        kept = [
            replace(
                part,
                archives=tuple(
                    tuple(member for member in archive if member.name != name) for archive in part.archives
                ),
            )
            for part in parts
        ]
        return _compose(kept)
    if name in names:
        return _compose(_with(parts, {name: content}, []))
    folder = name.rpartition("/")[0]
    if folder not in names:
        raise ToolError(f"the initramfs has no folder {folder}, so {name} cannot be put into it")
    return _compose(_with(parts, {}, [new_file(name, content)]))


def depmod_index(runner: Runner, release: str) -> Index:
    """The index that depmod makes of a module folder, in a folder of its own. It raises ToolError."""

    def index(files: Mapping[str, bytes]) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory(prefix="storqual-") as folder:
            # depmod looks under /lib/modules or /usr/lib/modules, as its distribution has it
            modules = Path(folder) / "usr/lib/modules" / release
            modules.mkdir(parents=True)
            (Path(folder) / "lib").symlink_to("usr/lib")
            for name, content in files.items():
                if ".." in name.split("/") or not (module_name(name) or name in _GIVEN):
                    continue
                place = modules / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            runner(["depmod", "-b", folder, release], timeout=_TIMEOUT).expect()
            return {path.name: path.read_bytes() for path in modules.glob("modules.*") if path.name not in _GIVEN}

    return index


def _module_folder(parts: Sequence[ArchivePart], release: str) -> str:
    """`usr/lib/modules/<release>/` as the image names it."""
    shape = re.compile(rf"((?:\./)?(?:usr/)?lib/modules/{re.escape(release)}/)")
    for part in parts:
        for archive in part.archives:
            for member in archive:
                match = shape.match(member.name)
                if match:
                    return match.group(1)
    raise ToolError(f"the initramfs holds no modules of kernel {release}")


def _lacking(module: NewModule, inside: Files, lookup: ModuleLookup) -> Iterator[NewModule]:
    """What the new build needs and would miss at boot, with what that needs. Raises ToolError for what is nowhere."""
    builtin = inside.get("modules.builtin", b"").decode("utf-8", "replace").splitlines()
    there = {module_name(name) for name in (*inside, *builtin)}
    needs = [name.replace("-", "_") for name in module.needs]
    while needs:
        name = needs.pop()
        if name in there:
            continue
        there.add(name)
        lacking = lookup(name)
        if lacking is None:
            raise ToolError(
                f"this build of {module.name} needs {name}, which neither the initramfs nor its kernel has: it could "
                "not be loaded in a trial boot"
            )
        needs += [need.replace("-", "_") for need in lacking.needs]
        if lacking.content:
            yield lacking


def _loaded_list(members: Iterable[str]) -> str:
    for name in members:
        if name in (_LOADED, f"./{_LOADED}"):
            return name
    raise ToolError(
        f"the initramfs has no {_LOADED}, which initramfs-tools writes: have the initramfs carry the driver first "
        "(dracut: add_drivers), then a build of it can be exchanged in a copy"
    )


def _with_line(content: bytes, line: str) -> bytes:
    head = content if not content or content.endswith(b"\n") else content + b"\n"
    return head + line.encode() + b"\n"


def _with(parts: Sequence[ArchivePart], replaced: Files, added: Sequence[Member]) -> list[ArchivePart]:
    """The pieces with other contents, and further files at the end of the last archive."""
    fresh = [
        replace(
            part,
            archives=tuple(
                tuple(
                    member.holding(replaced[member.name]) if member.name in replaced else member for member in archive
                )
                for archive in part.archives
            ),
        )
        for part in parts
    ]
    if added:
        *others, last = fresh[-1].archives
        fresh[-1] = replace(fresh[-1], archives=(*others, (*last, *added)))
    return fresh


def _compose(parts: Iterable[ArchivePart]) -> bytes:
    composed = []
    for part in parts:
        plain = b"".join(compose(archive) for archive in part.archives)
        composed.append(pack(plain, part.packing) if part.packing else plain)
    return b"".join(composed)
