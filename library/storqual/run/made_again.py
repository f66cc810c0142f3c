# SPDX-License-Identifier: Apache-2.0
"""The quick way to hold a sample to its evidence: make its line again from its raw files, and compare the bytes.

A run has a hundred thousand samples, and nearly all of them follow from their raw files. A line that comes out the
same, byte for byte, is proven and need not be parsed. Whatever is not proven here is no finding yet:
`storqual.run.recompute` then reads it as its bench did, and says what is wrong.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Mapping, Sequence
from functools import partial

import jiter
from pydantic_core import from_json, to_json

from storqual.run.layout import RAW
from storqual_core.measure.derive import RECORD, SAMPLE_SCHEMA, derive, idle_of
from storqual_core.measure.fio_result import FioDocument, document_of

RECORD_END = f".{RECORD}.gz"
"""How the name of a launch's record ends."""
_BEGINS = f'{{"schema":"{SAMPLE_SCHEMA}",'.encode()
_RAW_AT = b',"raw":['
_PART = 1 << 16

# which of two values is meant is not known where a key stands twice, and NaN is no JSON
_strictly = partial(jiter.from_json, allow_inf_nan=False, catch_duplicate_keys=True)


class _LastIdle:
    """The idle window of a batch is measured once and stands in the record of each of its launches."""

    def __init__(self) -> None:
        self._asked: tuple[Sequence[Mapping[str, object]], int] = ([], 0)
        self._found: dict[str, int] = {}

    def __call__(self, idle: Sequence[Mapping[str, object]], tick_ns: int) -> dict[str, int]:
        """What `idle_of` finds."""
        if (idle, tick_ns) != self._asked:
            self._found = idle_of(idle, tick_ns)
            self._asked = (idle, tick_ns)
        return self._found


_idle = _LastIdle()


def is_made_again(folder: str, run_name: str, line: bytes) -> bool:
    """Whether this line of samples.jsonl comes out of its raw files in the run directory `folder`, byte for byte.

    False means only that it is not proven this way.
    """
    at = line.rfind(_RAW_AT)
    if at < 0 or not line.startswith(_BEGINS):
        return False
    try:
        # if these are not the files that the line names, the line made of them is another one
        files = from_json(line[at + len(_RAW_AT) - 1 : -1])
        texts, records = {}, []
        for file in files:
            path, sha256 = file["path"], file["sha256"]
            if not path.startswith(f"{RAW}/{sha256}.") or "/" in path[len(RAW) + 1 :]:
                return False
            data = read_file(f"{folder}/{path}")
            if hashlib.sha256(data).hexdigest() != sha256:
                return False
            texts[path] = text = _unpacked(data).decode()
            if path.endswith(RECORD_END):
                records.append(text)
        if len(records) != 1:
            return False
        record = _strictly(records[0].encode())
        return record["run"] == run_name and to_json({**derive(record, texts, _alone, _idle), "raw": files}) == line
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return False


def _alone(output: str) -> tuple[FioDocument | None, str]:
    """The result of fio where nothing stands beside it and no key twice. Raises ValueError where that is not so."""
    document = document_of(_strictly(output.encode()))
    if document is None:
        raise ValueError("this is not a result of fio")
    return document, ""


def read_file(path: str) -> bytes:
    """A whole file by one opening; a file object, or a Path, costs as much again. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(handle, _PART)]
        while parts[-1]:
            parts.append(os.read(handle, _PART))
        return b"".join(parts)
    finally:
        os.close(handle)


def _unpacked(data: bytes) -> bytes:
    """What gzip packed as one member, as the product does. Raises EOFError for anything else, zlib.error as zlib."""
    whole = zlib.decompressobj(wbits=31)
    text = whole.decompress(data)
    if not whole.eof or whole.unused_data:
        raise EOFError("this is not one whole member")
    return text
