# SPDX-License-Identifier: Apache-2.0
"""Whether a kernel loads a module that was built for another one: symbol by symbol, as the kernel itself decides.

With MODVERSIONS the first word of vermagic, the release, is not compared; each symbol that the module needs must be
exported, with the digest (CRC) of its type that the module was built against (kernel/module/version.c,
kernel/module/main.c). What a kernel exports stands in its symvers.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

from ..kit.archives import unpack
from ..kit.errors import ToolError
from ..kit.labelled_text import line_error
from ..kit.machine import Machine
from .initramfs import plain_module

_WEAK = 2
_NAME_SIZE = 64
_LISTED = 5


@dataclass(frozen=True)
class ModuleSymbols:
    """What a module needs: the CRC by symbol (empty: built without MODVERSIONS), all names, and weak ones."""

    crcs: Mapping[str, int]
    needed: frozenset[str]
    weak: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SymbolFit:
    """Symbols in which module and kernel differ, and those that the kernel lacks; `versions`: it has CRCs."""

    versions: bool
    differing: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def compatible(self) -> bool:
        return self.versions and not self.differing and not self.missing

    @property
    def words(self) -> str:
        """Why it does not fit, as part of a sentence; empty when it does."""
        parts = [] if self.versions else ["it was built without MODVERSIONS"]
        for what, names in (("differs in", self.differing), ("lacks", self.missing)):
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            parts += [f"the kernel {what} {', '.join(names[:_LISTED])}{more}"] if names else []
        return "; ".join(parts)


class _Elf:
    """The sections of an object file, by name. Raises ToolError for another file."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 64 or data[:4] != b"\x7fELF" or data[4] not in (1, 2) or data[5] not in (1, 2):
            raise ToolError("it is no object file (ELF)")
        self.wide = data[4] == 2
        self.order = "<" if data[5] == 1 else ">"
        self._data = data
        at = self._unpack("Q", 40) if self.wide else self._unpack("I", 32)
        size, count, names = self._unpack("HHH", 58 if self.wide else 46)
        heads = [self._head(at[0] + size * place) for place in range(count)]
        if names >= count:
            raise ToolError("its object file has no names of sections")
        table = self._content(heads[names])
        self._links = [(_text(table, head[0]), head) for head in heads]

    def _unpack(self, shape: str, place: int) -> Sequence[int]:
        try:
            numbers: Sequence[int] = struct.unpack_from(self.order + shape, self._data, place)
        except (struct.error, OverflowError):
            raise ToolError("its object file is cut") from None
        return numbers

    def _head(self, place: int) -> tuple[int, int, int, int]:
        """Name, place, size, and the section that belongs to it."""
        words = self._unpack("IIQQQQI", place) if self.wide else self._unpack("IIIIIII", place)
        return words[0], words[4], words[5], words[6]

    def _content(self, head: tuple[int, int, int, int]) -> bytes:
        _, place, size, _ = head
        content = self._data[place : place + size]
        if len(content) != size:
            raise ToolError("its object file is cut")
        return content

    def section(self, name: str) -> bytes:
        """The content of the first section of a name; empty when there is none."""
        head = next((head for known, head in self._links if known == name), None)
        return self._content(head) if head else b""

    def symbols(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of undefined symbols, and of the weak ones among them."""
        head = next((head for known, head in self._links if known == ".symtab"), None)
        if head is None or head[3] >= len(self._links):
            raise ToolError("its object file has no table of symbols")
        names = self._content(self._links[head[3]][1])
        shape = struct.Struct(self.order + ("IBBHQQ" if self.wide else "IIIBBH"))
        table = self._content(head)
        needed: set[str] = set()
        weak: set[str] = set()
        for row in shape.iter_unpack(table[: len(table) // shape.size * shape.size]):
            info, section = (row[1], row[3]) if self.wide else (row[3], row[5])
            name = _text(names, row[0]) if section == 0 else ""
            if name:
                (weak if info >> 4 == _WEAK else needed).add(name)
        return frozenset(needed), frozenset(weak)


def _text(table: bytes, place: int) -> str:
    """The text at a place, which ends with a NUL."""
    return table[place : max(table.find(b"\0", place), place)].decode("utf-8", "replace")


def module_symbols(content: bytes) -> ModuleSymbols:
    """What a module file (plain or packed) takes from outside. Raises ToolError for another file."""
    elf = _Elf(plain_module(content))
    needed, weak = elf.symbols()
    versions, width = elf.section("__versions"), 8 if elf.wide else 4
    if len(versions) % _NAME_SIZE:
        raise ToolError("its table of versions is cut")
    crcs: dict[str, int] = {}
    for place in range(0, len(versions), _NAME_SIZE):
        # on 64 bits the CRC has the low half of its field
        (crc,) = struct.unpack_from(elf.order + ("Q" if elf.wide else "I"), versions, place)
        crcs[_text(versions[: place + _NAME_SIZE] + b"\0", place + width)] = crc & 0xFFFFFFFF
    # kernels from 6.14 on may have names of any length in two sections of their own
    names = elf.section("__version_ext_names").split(b"\0")
    extended = elf.section("__version_ext_crcs")
    for place, name in zip(range(0, len(extended) // 4 * 4, 4), names):
        (crcs[name.decode("utf-8", "replace")],) = struct.unpack_from(elf.order + "I", extended, place)
    return ModuleSymbols(crcs, needed, weak)


_SYMVER = re.compile(r"0x([0-9a-f]{1,8})\s+(\S+)\s.*", re.IGNORECASE)


def parse_symvers(text: str) -> dict[str, int]:
    """The symvers of a kernel: the CRC by symbol. Raises ToolError with the line that is none."""
    crcs: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _SYMVER.fullmatch(line)
        if match is None:
            raise line_error("symvers", number, line, "a digest, a symbol and its module")
        crcs[match.group(2)] = int(match.group(1), 16)
    if not crcs:
        raise ToolError("symvers has no symbol")
    return crcs


def compare_symbols(module: ModuleSymbols, exported: Mapping[str, int]) -> SymbolFit:
    """What keeps a kernel of MODVERSIONS from loading a module, when it exports these symbols."""
    # the layout of modules themselves is compared too, and is no symbol that a module needs
    checked = {*module.needed, *module.weak, "module_layout"} & module.crcs.keys() & exported.keys()
    differing = sorted(name for name in checked if exported[name] != module.crcs[name])
    missing = sorted(module.needed - set(exported))
    return SymbolFit(bool(module.crcs), tuple(differing), tuple(missing))


def symvers_places(release: str) -> list[str]:
    """Where distributions put the symvers of a kernel, or its headers do."""
    packed = (".gz", ".xz", ".zst", "")
    beside = [f"/lib/modules/{release}/symvers{suffix}" for suffix in packed]
    return [
        *beside,
        *(f"/boot/symvers-{release}{suffix}" for suffix in packed),
        f"/lib/modules/{release}/build/Module.symvers",
    ]


def fit_of_file(path: str, machine: Machine, release: str) -> SymbolFit:
    """How a module file fits an installed kernel. Raises ToolError, also where that kernel has no symvers."""
    places = symvers_places(release)
    place = next((each for each in places if machine.exists(each)), "")
    if not place:
        raise ToolError(f"what kernel {release} exports is not known: none of {', '.join(places)} is there")
    try:
        packed = Path(machine.path(place)).read_bytes()
        content = Path(path).read_bytes()
    except OSError as problem:
        raise ToolError(f"{problem.filename} cannot be read: {problem.strerror}") from problem
    plain = packed if packed.startswith(b"0x") else unpack(packed)
    return compare_symbols(module_symbols(content), parse_symvers(plain.decode("utf-8", "replace")))
