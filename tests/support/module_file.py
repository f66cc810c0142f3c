# SPDX-License-Identifier: Apache-2.0
"""Object files that are like kernel modules: a table of symbols, versions, and what modinfo reads."""

import struct
from collections.abc import Mapping, Sequence


def module_bytes(
    crcs: Mapping[str, int],
    *,
    needed: Sequence[str] = (),
    weak: Sequence[str] = (),
    wide: bool = True,
    order: str = "<",
    extended: bool = False,
    modinfo: bytes = b"",
) -> bytes:
    """A module that needs the symbols of `crcs` and `needed`; `wide` is 64 bits."""
    strings, rows = b"\0", []
    for name in [*crcs, *needed, *weak]:
        info = (2 if name in weak else 1) << 4
        place = len(strings)
        strings += name.encode() + b"\0"
        row = (place, info, 0, 0, 0, 0) if wide else (place, 0, 0, info, 0, 0)
        rows.append(struct.pack(order + ("IBBHQQ" if wide else "IIIBBH"), *row))
    sections = {".strtab": strings, ".symtab": b"".join(rows), ".modinfo": modinfo}
    if extended:
        sections["__version_ext_names"] = b"".join(name.encode() + b"\0" for name in crcs)
        sections["__version_ext_crcs"] = b"".join(struct.pack(order + "I", crc) for crc in crcs.values())
    elif crcs:
        shape = order + ("Q56s" if wide else "I60s")
        sections["__versions"] = b"".join(struct.pack(shape, crc, name.encode()) for name, crc in crcs.items())
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    sections[".shstrtab"] = names
    head = 64 if wide else 52
    body, heads = b"", []
    shape = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
    for name, content in sections.items():
        link = 1 if name == ".symtab" else 0
        heads.append(
            struct.pack(
                shape, names.index(name.encode() + b"\0"), 1, 0, 0, head + len(body), len(content), link, 0, 1, 0
            )
        )
        body += content
    table = struct.pack(shape, *[0] * 10) + b"".join(heads)
    size, count = struct.calcsize(shape), len(heads) + 1
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    at = head + len(body)
    if wide:
        rest = struct.pack(order + "HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at, 0, 64, 0, 0, size, count, count - 1)
    else:
        rest = struct.pack(order + "HHIIIIIHHHHHH", 1, 3, 1, 0, 0, at, 0, 52, 0, 0, size, count, count - 1)
    return ident + rest + body + table


def symvers_text(crcs: Mapping[str, int]) -> str:
    return "".join(f"0x{crc:08x}\t{name}\tvmlinux\tEXPORT_SYMBOL\t\n" for name, crc in crcs.items())
