# SPDX-License-Identifier: Apache-2.0
"""Known formats on a device: libblkid's low-level probe through ctypes, else `blkid -p`, and what neither knows."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from ..kit.command import Runner, run
from ..kit.errors import ToolError

_LIBRARY = "libblkid.so.1"
# libblkid.h: LABEL 1<<1, UUID 1<<3, TYPE 1<<5, USAGE 1<<7, MAGIC 1<<9
_SUPERBLOCKS = (1 << 1) | (1 << 3) | (1 << 5) | (1 << 7) | (1 << 9)
# FORCE_GPT 1<<1 (also where the protective MBR is gone), MAGIC 1<<3
_PARTITIONS = (1 << 1) | (1 << 3)
_MANY = 64


@dataclass(frozen=True)
class FormatSignature:
    """A known format: what it is used for (`filesystem`, `raid`, `crypto`, `other`, `partition table`), its type."""

    usage: str
    kind: str
    uuid: str = ""
    label: str = ""


# (offset, bytes, type): formats that hold shared or foreign data and that some libblkid versions do not know
_CLUSTER = (
    (0x100000, b"\x0d\xd0\x01\xc0", "VMFS_volume_member"),
    (0x200000, b"\x5e\xf1\xab\x2f", "VMFS"),
    (32, b"ORCLDISK", "oracleasm"),
    (0, b"bluestore block device", "ceph_bluestore"),
    (0x10000, b"\x01\x16\x19\x70", "gfs2"),
    (0x2000, b"OCFSV2", "ocfs2"),
    (0x1000, b"OCFSV2", "ocfs2"),
    (0, b"LABELONE", "LVM2_member"),
)


def cluster_signatures(descriptor: int) -> list[FormatSignature]:
    """Formats found by their magic number alone. Raises OSError when the device cannot be read."""
    return [
        FormatSignature("filesystem", kind)
        for offset, magic, kind in _CLUSTER
        if os.pread(descriptor, len(magic), offset) == magic
    ]


def probe(descriptor: int, path: str, *, runner: Runner = run) -> list[FormatSignature]:
    """Every known format on an open device or file, partition tables included.

    Raises ToolError when neither libblkid nor blkid is there or the probe fails: then nothing is known, and a guard
    must refuse.
    """
    try:
        library = ctypes.CDLL(_LIBRARY, use_errno=True)
    except OSError:
        signatures = parse_export(*_ask_blkid(path, runner))
    else:
        signatures = _ask_library(library, descriptor, path)
    known = {signature.kind for signature in signatures}
    try:
        return [*signatures, *(extra for extra in cluster_signatures(descriptor) if extra.kind not in known)]
    except OSError as problem:
        raise ToolError(f"{path} cannot be read: {problem.strerror}") from problem


def _ask_library(library: ctypes.CDLL, descriptor: int, path: str) -> list[FormatSignature]:
    pointer, number = ctypes.c_void_p, ctypes.c_int
    library.blkid_new_probe.restype = pointer
    library.blkid_probe_set_device.argtypes = [pointer, number, ctypes.c_int64, ctypes.c_int64]
    for name in ("superblocks", "partitions"):
        getattr(library, f"blkid_probe_enable_{name}").argtypes = [pointer, number]
        getattr(library, f"blkid_probe_set_{name}_flags").argtypes = [pointer, number]
    library.blkid_do_probe.argtypes = [pointer]
    library.blkid_free_probe.argtypes = [pointer]
    handle = library.blkid_new_probe()
    if not handle:
        raise ToolError("libblkid could not be started")
    try:
        if library.blkid_probe_set_device(handle, descriptor, 0, 0) != 0:
            raise ToolError(f"libblkid cannot read {path}: {os.strerror(ctypes.get_errno())}")
        library.blkid_probe_enable_superblocks(handle, 1)
        library.blkid_probe_set_superblocks_flags(handle, _SUPERBLOCKS)
        library.blkid_probe_enable_partitions(handle, 1)
        library.blkid_probe_set_partitions_flags(handle, _PARTITIONS)
        signatures: list[FormatSignature] = []
        for _ in range(_MANY):
            result = library.blkid_do_probe(handle)
            if result == 1:
                return signatures
            if result != 0:
                raise ToolError(f"libblkid failed on {path}: {os.strerror(ctypes.get_errno())}")
            signatures.append(_signature(_values(library, handle)))
        return signatures
    finally:
        library.blkid_free_probe(handle)


def _values(library: ctypes.CDLL, handle: int) -> dict[str, str]:
    library.blkid_probe_numof_values.argtypes = [ctypes.c_void_p]
    library.blkid_probe_get_value.argtypes = [
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_char_p),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_size_t),
    ]
    values = {}
    for index in range(library.blkid_probe_numof_values(handle)):
        name, data, size = ctypes.c_char_p(), ctypes.c_void_p(), ctypes.c_size_t()
        references = (ctypes.byref(name), ctypes.byref(data), ctypes.byref(size))
        if library.blkid_probe_get_value(handle, index, *references) == 0 and name.value and data.value:
            text = ctypes.string_at(data.value, size.value).rstrip(b"\0")
            values[name.value.decode("ascii", "replace")] = text.decode("latin-1")
    return values


def _signature(values: dict[str, str]) -> FormatSignature:
    if "PTTYPE" in values and "TYPE" not in values:
        return FormatSignature("partition table", values["PTTYPE"], values.get("PTUUID", ""))
    return FormatSignature(
        values.get("USAGE", "other"), values.get("TYPE", "unknown"), values.get("UUID", ""), values.get("LABEL", "")
    )


def _ask_blkid(path: str, runner: Runner) -> tuple[int, str]:
    ended = runner(["blkid", "-p", "-o", "export", path], timeout=60.0)
    return ended.rc, ended.stdout


def parse_export(rc: int, text: str) -> list[FormatSignature]:
    """What `blkid -p -o export` found. Status 2 is nothing, 8 is several formats at once; others raise ToolError."""
    if rc == 8:
        return [FormatSignature("other", "several formats at once")]
    if rc == 2:
        return []
    wrong = f"ended with status {rc}" if rc else "told of several devices" if "\nDEVNAME=" in text.strip() else ""
    if wrong:
        raise ToolError(f"blkid {wrong}: nothing is known about what is on the device")
    values = {name: value for name, _, value in (line.partition("=") for line in text.splitlines()) if value}
    signatures = []
    if "TYPE" in values:
        signatures.append(_signature({name: value for name, value in values.items() if name != "PTTYPE"}))
    if "PTTYPE" in values:
        signatures.append(_signature({name: value for name, value in values.items() if name != "TYPE"}))
    return signatures or [FormatSignature("other", "unknown")]
