# SPDX-License-Identifier: Apache-2.0
"""The sweep on a file: a drive that does as it is told is never accused, and one with a defect is found.

The defects lie where a driver's would, between the load and the drive: the system calls of the load are led through
`Faulty`, which knows nothing of what the load draws. What is found is judged as on the control node: by the reads of
the load, and by the list of acknowledged writes against what is read back in the end.
"""

import errno
import itertools
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.inputs.trials import IntegrityLoad
from storqual.kinds.load_coverage import coverage_of, grown_memory, unreached
from storqual.kinds.oracle import Oracle, read_sentence
from storqual.plan.covering import covering
from storqual_core.kit.machine import Machine
from storqual_core.turns import enquiries, kernel_ways, load_sweep, scsi_command
from storqual_core.turns.enquiries import ORDER
from storqual_core.turns.integrity_load import IntegrityRequest, SweepRequest
from storqual_core.turns.load_levels import (
    COMMAND_FACTORS,
    FACTORS,
    PLACES,
    SIZES,
    QueueLimits,
    alias_places,
    drawn_size,
    reached_places,
    regions_of,
    size_of,
)
from storqual_core.turns.load_memory import Arena
from storqual_core.turns.load_sweep import Sweep, span_of
from storqual_core.turns.scsi_command import CommandEnd, LackingError
from storqual_core.turns.sectors import SECTOR, read_region
from tests.support.bench_tree import BenchTree
from tests.support.planted_driver import Kind, all_kinds
from tests.support.planted_model import PlantedModel, is_known

TAG = b"trial--1"
WINDOW = (2048, (1 << 21) - 2048)
MOST = 4096
LIMITS = QueueLimits(scsi=False, limit=2048, depth=16)


class Faulty:
    """System calls with a defect: `change` makes of a write (sector, data) what reaches the drive, or None."""

    def __init__(self, change: Callable[[int, bytes], tuple[int, bytes] | None]) -> None:
        self._change = change
        self.acted = 0
        self.pwritev = os.pwritev

    def write(self, descriptor: int, pieces: Sequence[memoryview], offset: int, flags: int = 0) -> int:
        data = b"".join(pieces)
        changed = self._change(offset // SECTOR, data)
        if changed == (offset // SECTOR, data):
            return self.pwritev(descriptor, pieces, offset, flags)
        self.acted += 1
        if changed is not None:
            sector, other = changed
            os.pwrite(descriptor, other, sector * SECTOR)
        return len(data)


def rows_of(places: Sequence[str], seed: int, *, lacking: bool = False) -> tuple[tuple[str, ...], ...]:
    """Rows without the ways that would pass the defect by: io_uring and mappings are no calls of `os`."""
    factors = {**FACTORS, "place": places, "way": ("direct", "dsync", "buffered"), "read": ("direct", "buffered")}
    factors["size"] = [size for size in SIZES if lacking or size_of(size, LIMITS, MOST)[0]]
    return tuple(covering(factors, 2, seed))


def swept(
    path: Path,
    seed: int,
    *,
    descriptor: int | None = None,
    machine: Machine | None = None,
    idles_s: tuple[float, ...] = (0.0,) * 5,
    lacking: bool = False,
    limit_s: float = 600.0,
) -> tuple[Oracle, list[Any], list[Any], Sweep]:
    """The oracle, its violations, the lines that were told, and the sweep."""
    path.touch()
    os.truncate(path, 1 << 30)
    opened = os.open(path, os.O_RDWR) if descriptor is None else descriptor
    places = reached_places(*WINDOW, span_of(MOST), seed)
    commands = tuple(covering({**COMMAND_FACTORS, "place": places}, 2, seed))
    left_out = (("read verify", "it is left out by the plan"),)
    rows = rows_of(places, seed, lacking=lacking)
    request = SweepRequest(rows, commands, MOST, idles_s, (), 0, limit_s, 60, left_out)
    load = IntegrityRequest(1 << 19, 4096, 2, (1,), 0.2, 0.1, 16, seed, request)
    told: list[Any] = []
    lines: list[Any] = []
    sweep = Sweep(
        load,
        request,
        LIMITS,
        WINDOW,
        TAG,
        lambda *io: told.append(io),
        lambda kind, **fields: lines.append((kind, fields)),
    )
    try:
        sweep.run(opened, machine or Machine(), seed)
        found = [run for first, many in sweep.parts for run in read_region(opened, TAG, first, many, 1024)]
    finally:
        if descriptor is None:
            os.close(opened)
    oracle = Oracle()
    oracle.take(told)
    return oracle, oracle.judge(found, "acknowledged"), lines, sweep


def test_a_drive_that_does_as_it_is_told_is_not_accused_and_all_is_covered(tmp_path: Path) -> None:
    oracle, violations, lines, sweep = swept(tmp_path / "drive", 5)
    assert (violations, oracle.wrong_reads) == ([], [])
    request = sweep._request
    reached = [row for kind, fields in lines if kind == "rows" for row in fields["rows"]]
    lacks = [fields for kind, fields in lines if kind == "lacks"]
    coverage = coverage_of({"rows": request.rows, "commands": request.commands}, reached, lacks, oracle)
    for factor in ("size", "place", "side", "shape"):
        for level, (planned, acknowledged, read_back) in coverage["levels"][factor].items():
            assert planned, (factor, level)
            lacking = any(fields["what"] == f"{factor} {level}" for fields in lacks)
            assert (acknowledged == read_back > 0) != lacking, (factor, level)
    # a file is no SCSI drive, which is told once for each command and is no failure
    why = dict(unreached(coverage))
    assert why["command write6"] == "this is no SCSI drive"
    assert why["read verify"] == "it is left out by the plan"
    lengths = {write.length for write in oracle.writes.values()}
    assert {1, 255, 256, 257, 1024, 2047, 2048, 2049} <= lengths
    assert any(write.sector < 1 << 20 < write.sector + write.length for write in oracle.writes.values())


def tail(draw: random.Random) -> Callable[[int, bytes], tuple[int, bytes]]:
    least = draw.randrange(8, 600) * SECTOR
    return lambda at, data: (at, data[:-SECTOR] + bytes(SECTOR) if len(data) >= least else data)


def head(draw: random.Random) -> Callable[[int, bytes], tuple[int, bytes]]:
    least = draw.randrange(8, 600) * SECTOR
    return lambda at, data: (at, data[SECTOR : 2 * SECTOR] + data[SECTOR:] if len(data) >= least else data)


def one_length(draw: random.Random) -> Callable[[int, bytes], tuple[int, bytes]]:
    length = (1 << draw.randrange(4, 11)) + draw.choice((-1, 0, 1))
    return lambda at, data: (at, data[:-8] + bytes(8) if len(data) == length * SECTOR else data)


def cut_address(draw: random.Random) -> Callable[[int, bytes], tuple[int, bytes]]:
    bits = draw.choice((16, 20))
    return lambda at, data: (max(2048, at & ((1 << bits) - 1)), data)


def half_gibibyte_lower(_: random.Random) -> Callable[[int, bytes], tuple[int, bytes]]:
    return lambda at, data: (at - (1 << 20) if at >= (1 << 20) + 2048 else at, data)


def one_block_more(draw: random.Random) -> Callable[[int, bytes], tuple[int, bytes]]:
    least = draw.randrange(2, 200) * SECTOR
    return lambda at, data: (at, data + bytes(SECTOR) if len(data) >= least else data)


def across(draw: random.Random) -> Callable[[int, bytes], tuple[int, bytes]]:
    edge = 1 << draw.choice((16, 20))

    def change(at: int, data: bytes) -> tuple[int, bytes]:
        return at, data[: (edge - at) * SECTOR] if at < edge < at + len(data) // SECTOR else data

    return change


def every_nth(draw: random.Random) -> Callable[[int, bytes], tuple[int, bytes] | None]:
    state = Counter[str]()
    each = draw.randrange(20, 300)

    def change(at: int, data: bytes) -> tuple[int, bytes] | None:
        state["writes"] += 1
        return None if state["writes"] % each == 0 else (at, data)

    return change


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize(
    "defect", [tail, head, one_length, cut_address, half_gibibyte_lower, one_block_more, across, every_nth]
)
def test_a_defect_between_the_load_and_the_drive_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    defect: Callable[[random.Random], Callable[[int, bytes], tuple[int, bytes] | None]],
    seed: int,
) -> None:
    """Its parameters are drawn by a seed of its own, which the load does not know."""
    faulty = Faulty(defect(random.Random(f"defect/{seed}")))
    monkeypatch.setattr(kernel_ways.os, "pwritev", faulty.write)
    oracle, violations, _, _ = swept(tmp_path / "drive", 10 + seed)
    assert faulty.acted
    assert violations or oracle.wrong_reads


SEEDS = range(int(os.environ.get("STORQUAL_PLANTED_SEED", "1")), 0, -1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "kind", [kind for kind in all_kinds().values() if is_known(kind)], ids=lambda kind: kind.name
)
def test_a_kind_of_defect_is_found_that_the_layer_of_the_virtual_bench_has_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, seed: int
) -> None:
    """More of their seeds: `STORQUAL_PLANTED_SEED=10` draws ten times."""
    model = PlantedModel(kind, seed, 1 << 21, LIMITS.limit)
    monkeypatch.setattr(kernel_ways.os, "pwritev", model.pwritev)
    monkeypatch.setattr(kernel_ways.os, "preadv", model.preadv)
    monkeypatch.setattr(load_sweep.Ring, "transfer", lambda _, *words, **named: model.transfer(*words, **named))
    monkeypatch.setattr(load_sweep.time, "sleep", model.sleep)
    oracle, violations, _, _ = swept(tmp_path / "drive", 20 + seed, idles_s=(3.1, 4.1, 3.4), lacking=True)
    assert model.acted
    failed = [write for write in oracle.writes.values() if write.problem]
    assert violations or oracle.wrong_reads or failed


def test_a_read_that_changes_memory_beside_its_buffer_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = kernel_ways.KernelWays.read

    def overrun(self: Any, way: str, memory: Any, sector: int) -> None:
        real(self, way, memory, sector)
        if len(memory.pieces) == 1 and len(memory.pieces[0]) == 9 * SECTOR:
            memory.guards[-1][3] = 0

    monkeypatch.setattr(kernel_ways.KernelWays, "read", overrun)
    oracle, violations, _, _ = swept(tmp_path / "drive", 3)
    assert violations == []
    assert {kind for kind, *_ in oracle.wrong_reads} == {"overrun"}


def test_a_write_that_changes_the_memory_that_it_was_taken_from_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = kernel_ways.KernelWays.write

    def scribble(self: Any, way: str, memory: Any, sector: int) -> None:
        real(self, way, memory, sector)
        if way == "dsync":
            memory.pieces[-1][-1] ^= 1

    monkeypatch.setattr(kernel_ways.KernelWays, "write", scribble)
    oracle, violations, _, _ = swept(tmp_path / "drive", 3)
    assert violations == []
    assert {kind for kind, *_ in oracle.wrong_reads} == {"source changed"}


@pytest.mark.parametrize("defect", ["none", "write", "read", "answer", "end of answer"])
def test_what_an_enquiry_leaves_behind_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    """The first write, or read, after an INQUIRY goes wrong; or INQUIRY is answered otherwise after a write.

    Or the end of an answer is lost that is no multiple of 4 bytes.
    """
    last, written = [b""], [0]

    def send(_descriptor: int, command: bytes, pieces: Sequence[memoryview] = (), **_: object) -> CommandEnd:
        last[0] = command
        if command[0] == 0x4D:
            return CommandEnd(2, 0, 0.0, key=5, code=0x20)
        if command[0] == 0xA0:
            return CommandEnd(0, 7, 0.0)
        for piece in pieces:
            piece[:] = bytes((command[0] + (defect == "answer" and written[0] > 0),)) * len(piece)
            if defect == "end of answer" and len(piece) % 4:
                piece[-1] ^= 0xFF
        return CommandEnd(0, 0, 0.0)

    def write(self: Any, way: str, memory: Any, sector: int) -> None:
        written[0] += last[0] != b""
        if defect != "write" or last[0][:1] != b"\x12":
            real_write(self, way, memory, sector)
        last[0] = b""

    def read(self: Any, way: str, memory: Any, sector: int) -> None:
        if defect != "read" or last[0][:1] != b"\x12":
            real_read(self, way, memory, sector)
        last[0] = b""

    real_write, real_read = kernel_ways.KernelWays.write, kernel_ways.KernelWays.read
    monkeypatch.setattr(kernel_ways.KernelWays, "write", write)
    monkeypatch.setattr(kernel_ways.KernelWays, "read", read)
    monkeypatch.setattr(enquiries, "send", send)
    lines: list[Any] = []
    wrong = sent_alone(
        tmp_path / "drive",
        replace(LIMITS, scsi=True),
        Sweep._between_enquiries,
        lambda kind, **fields: lines.append((kind, fields)),
    )
    kinds = {sentence.partition(":")[0] for sentence in wrong}
    rows = {fields["rows"][0][1][1]: fields["rows"][0][3] for kind, fields in lines if kind == "rows"}
    # a drive refuses LOG SENSE, which is sent all the same; an adapter does not take REPORT LUNS
    assert set(rows) == set(ORDER) - {"REPORT LUNS"}
    assert [fields["what"] for kind, fields in lines if kind == "lacks"] == ["REPORT LUNS"]
    right = {name for name, good in rows.items() if good}
    if defect == "answer":
        # what differs from one moment to the next is not compared, and TEST UNIT READY has no answer
        assert (kinds, right) == ({"other answer"}, {"TEST UNIT READY", "REQUEST SENSE", "LOG SENSE"})
        assert "INQUIRY" in read_sentence("other answer", ORDER.index("INQUIRY"), 0)
    elif defect == "end of answer":
        # READ CAPACITY(10) has no allocation length
        assert (kinds, set(rows) - right) == (
            {"other answer"},
            {name for name in rows if name.startswith(("INQUIRY", "MODE"))} | {"READ CAPACITY(16)"},
        )
    else:
        assert bool(kinds) == (defect != "none")
        assert right == set(rows) - ({"INQUIRY", "INQUIRY of page 83h"} if kinds else set())


def sent_alone(
    path: Path,
    limits: QueueLimits,
    send: Callable[[Sweep, Any], object],
    line: Callable[..., None] = lambda *_, **__: None,
) -> list[str]:
    """What is told of reads that went wrong in a part of a sweep, on a filled file; in the words of the oracle."""
    told: list[Any] = []
    path.touch()
    os.truncate(path, 1 << 30)
    request = SweepRequest((), (), MOST, (), (), 0, 600.0)
    load = IntegrityRequest(1 << 19, 4096, 2, (1,), 0.2, 0.1, 16, 1, request)
    sweep = Sweep(*(load, request, limits, WINDOW, TAG, lambda *io: told.append(io)), line)
    with path.open("r+b") as file:
        ways = kernel_ways.KernelWays(file.fileno(), limits, Arena(MOST * SECTOR, 512, 512, 1))
        sweep._fill(ways)
        send(sweep, ways)
        ways.close()
    oracle = Oracle()
    oracle.take(told)
    return [read_sentence(kind, sector, length) for kind, sector, length, _ in oracle.wrong_reads]


@pytest.mark.parametrize(("beyond", "kinds"), [(0, []), (1, ["deallocated"])], ids=["its ranges", "a block more"])
def test_blocks_between_the_ranges_of_an_unmap_must_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beyond: int, kinds: list[str]
) -> None:
    def empty(descriptor: int, extents: Sequence[tuple[int, int]]) -> None:
        assert len(extents) == 3
        for first, blocks in extents:
            os.pwrite(descriptor, bytes((blocks + beyond) * SECTOR), first * SECTOR)

    monkeypatch.setattr(kernel_ways, "unmap", empty)
    limits = replace(LIMITS, scsi=True, keeps_zeros=True)
    wrong = sent_alone(tmp_path / "drive", limits, lambda sweep, ways: sweep._send(ways, "unmap_parts", 1 << 20, 33))
    assert [sentence.partition(":")[0] for sentence in wrong] == kinds


@pytest.mark.parametrize("compares", [True, False])
def test_a_verification_that_finds_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compares: bool
) -> None:
    def perform(descriptor: int, command: bytes, pieces: Sequence[memoryview] = (), *, reads: bool) -> None:
        sent = b"".join(pieces)
        sector = int.from_bytes(command[2:10], "big")
        if not reads and compares and os.pread(descriptor, len(sent), sector * SECTOR) != sent:
            raise scsi_command.MiscompareError

    monkeypatch.setattr(kernel_ways, "perform", perform)
    monkeypatch.setattr(kernel_ways, "send", lambda *_, **__: CommandEnd(0, 0, 0.0))

    def verify(sweep: Sweep, ways: Any) -> None:
        memory = ways.arena.shape("aligned", 8 * SECTOR)
        assert sweep._verify(ways, memory, 1 << 20, 8) == compares

    wrong = sent_alone(tmp_path / "drive", replace(LIMITS, scsi=True), verify)
    assert [sentence.partition(":")[0] for sentence in wrong] == ([] if compares else ["uncompared"])


@pytest.mark.parametrize(("refused", "asked"), [(True, set(ORDER)), (False, set(ORDER) - {"LOG SENSE"})])
def test_what_a_drive_refuses_can_be_left_out(
    monkeypatch: pytest.MonkeyPatch, refused: bool, asked: set[str]
) -> None:
    def send(_descriptor: int, command: bytes, *_: object, **__: object) -> CommandEnd:
        return CommandEnd(2, 0, 0.0, key=5, code=0x20) if command[0] == 0x4D else CommandEnd(0, 0, 0.0)

    monkeypatch.setattr(enquiries, "send", send)
    assert set(enquiries.Enquirer(0, print, refused=refused).names) == asked


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        (CommandEnd(2, 0, 0.0, key=5, code=0x21), []),
        (CommandEnd(0, 7, 0.0), []),
        (CommandEnd(0, 0, 0.0, residual=2 * SECTOR), []),
        (CommandEnd(0, 0, 0.0), ["unrefused"] * 4),
        (CommandEnd(2, 0, 0.0), ["unrefused"] * 4),
    ],
    ids=["refused", "host", "nothing came", "good", "no reason"],
)
def test_a_read_behind_the_end_of_the_drive_must_be_refused_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: CommandEnd, kinds: list[str]
) -> None:
    sent: list[bytes] = []

    def send(_descriptor: int, command: bytes, _pieces: object = (), **_: object) -> CommandEnd:
        inside = int.from_bytes(command[2:6] if command[0] == 0x28 else command[2:10], "big") < (1 << 21) - 1
        sent.append(command)
        return CommandEnd(0, 0, 0.0) if inside else answer

    for module in (kernel_ways, scsi_command):
        monkeypatch.setattr(module, "send", send)
    monkeypatch.setitem(globals(), "LIMITS", replace(LIMITS, scsi=True))
    oracle, told = Oracle(), []
    path = tmp_path / "drive"
    path.touch()
    os.truncate(path, 1 << 30)
    request = SweepRequest((), (), MOST, (), (), 0, 600.0)
    load = IntegrityRequest(1 << 19, 4096, 2, (1,), 0.2, 0.1, 16, 1, request)
    sweep = Sweep(load, request, LIMITS, WINDOW, TAG, lambda *io: told.append(io), lambda *_, **__: None)
    with path.open("r+b") as file:
        ways = kernel_ways.KernelWays(file.fileno(), LIMITS, Arena(1 << 20, 512, 512, 1))
        sweep._read_beyond(ways)
        ways.close()
    oracle.take(told)
    assert [kind for kind, *_ in oracle.wrong_reads] == kinds
    assert {command[0] for command in sent} == {0x28, 0x88}


def test_a_slow_drive_leaves_out_some_rows_and_some_commands_and_not_all_of_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()
    over = SimpleNamespace(monotonic=lambda: 1.0 * next(calls), monotonic_ns=lambda: 0, sleep=lambda _: None)
    made: Counter[str] = Counter()
    monkeypatch.setattr(load_sweep, "time", over)
    monkeypatch.setattr(Sweep, "_row", lambda *_: made.update(rows=1))
    monkeypatch.setattr(Sweep, "_command", lambda *_: made.update(commands=1))
    monkeypatch.setattr(Sweep, "_fill", lambda *_: None)
    _, _, lines, sweep = swept(tmp_path / "drive", 4, limit_s=100.0)
    rows, commands = len(sweep._request.rows), len(sweep._request.commands)
    assert made["rows"] + made["commands"] < 110
    assert made["commands"] == pytest.approx(made["rows"] * commands / rows, abs=1.5)
    lacks = [fields["what"] for kind, fields in lines if kind == "lacks" and "were over" in fields["why"]]
    assert sorted(lacks) == [
        f"{name} {made[name] + 1} to {all_}" for name, all_ in (("commands", commands), ("rows", rows))
    ]


def test_writes_at_once_are_of_one_block_and_of_many_and_all_is_read_back(tmp_path: Path) -> None:
    oracle, violations, lines, _ = swept(tmp_path / "drive", 9)
    assert violations == []
    burst = next(row for kind, fields in lines if kind == "rows" for row in fields["rows"] if row[1][0] == "burst")
    together = Counter(write.begin for write in oracle.writes.values()).most_common(1)[0]
    assert together[1] == int(burst[1][1]) > LIMITS.depth
    assert {w.length for w in oracle.writes.values() if w.begin == together[0]} == {1, 8, 128}


def test_lengths_are_drawn_that_no_level_names() -> None:
    drawn = [drawn_size(LIMITS, MOST, number / 2000) for number in range(2000)]
    assert (min(drawn), drawn_size(LIMITS, MOST, 1.0)) == (1, LIMITS.limit)
    for low in (1, 16, 128, 512):
        assert 150 < sum(low <= one < 2 * low for one in drawn) < 210
    assert all(drawn_size(replace(LIMITS, block=8), MOST, number / 50) % 8 == 0 for number in range(50))


@pytest.mark.parametrize(
    ("kind", "longest"), [("write", 1), ("write", 256), ("write", 2048), ("read", 2048), ("read", 256), ("flush", 0)]
)
def test_memory_that_any_ordinary_command_leaks_grows_in_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, longest: int
) -> None:
    """One of many pieces as well as one of a block: what leaks may be the list of its pieces.

    The kernel counts slabs of 32 KiB, and every fourth such command leaks.
    """
    leaked, acted = [0], itertools.count(1)

    def leak(length: int) -> None:
        leaked[0] += 3072 * (length == longest * SECTOR and next(acted) % 4 == 0)

    write, read, flush = kernel_ways.KernelWays.write, kernel_ways.KernelWays.read, os.fdatasync

    def leaky_write(self: Any, way: str, memory: Any, sector: int) -> None:
        leak(sum(map(len, memory.pieces)) if kind == "write" else -1)
        write(self, way, memory, sector)

    def leaky_read(self: Any, way: str, memory: Any, sector: int) -> None:
        leak(sum(map(len, memory.pieces)) if kind == "read" else -1)
        read(self, way, memory, sector)

    def leaky_flush(descriptor: int) -> None:
        leak(0 if kind == "flush" else -1)
        flush(descriptor)

    monkeypatch.setattr(kernel_ways.KernelWays, "write", leaky_write)
    monkeypatch.setattr(kernel_ways.KernelWays, "read", leaky_read)
    monkeypatch.setattr(load_sweep.os, "fdatasync", leaky_flush)
    monkeypatch.setattr(load_sweep, "kernel_memory", lambda _: (leaked[0] >> 15 << 15, 0))
    path = tmp_path / "drive"
    path.touch()
    os.truncate(path, 1 << 30)
    commands = IntegrityLoad.model_fields["memory_commands"].default
    request = SweepRequest((), (), MOST, (), (), commands, 600.0)
    load = IntegrityRequest(1 << 19, 4096, 2, (1,), 0.2, 0.1, 16, 1, request)
    lines: dict[str, Any] = {}
    sweep = Sweep(
        *(load, request, LIMITS, WINDOW, TAG, lambda *_: None, lambda kind, **fields: lines.update({kind: fields}))
    )
    with path.open("r+b") as file:
        ways = kernel_ways.KernelWays(file.fileno(), LIMITS, Arena(1 << 20, 512, 512, 1))
        sweep._measure_memory(ways, Machine())
        ways.close()
    assert grown_memory(lines["memory"]["samples"])


def test_a_drive_that_fails_every_command_ends_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "drive").touch()
    descriptor = os.open(tmp_path / "drive", os.O_RDWR)
    broken = os.open("/dev/full", os.O_RDWR)
    try:
        _, _, lines, sweep = swept(tmp_path / "drive", 3, descriptor=broken)
    finally:
        os.close(descriptor)
        os.close(broken)
    assert sweep.failed_with
    assert any("I/Os failed" in fields["why"] for kind, fields in lines if kind == "lacks")


@pytest.mark.parametrize("size", [1 << 30, 64 << 30, 3 << 40])
def test_places_are_those_that_the_drive_has_room_for_and_never_overlap(size: int) -> None:
    end = size // SECTOR - 2048
    regions = regions_of(2048, end, 8192, 7)
    assert [region.name for region in regions] == [name for name in PLACES if name in {one.name for one in regions}]
    ordered = sorted(regions, key=lambda one: one.first)
    assert all(one.end <= other.first for one, other in itertools.pairwise(ordered))
    assert all(one.first >= 2048 and one.end <= end for one in regions)
    wanted = {f"2^{power}" for power in (16, 20, 28, 31, 32) if (1 << power) + 8192 <= end}
    assert wanted <= {one.name for one in regions}
    aliases = alias_places(regions, 2048, end, 1, 256, 1200)
    for region in regions:
        for power in range(16, 33):
            for alias in (region.anchor - (1 << power), region.anchor & ((1 << power) - 1)):
                inside = 2048 <= alias < end and not any(one.first <= alias < one.end for one in regions)
                assert not inside or alias in aliases or len(aliases) == 1200


@pytest.mark.parametrize("block", [1, 8])
def test_every_size_is_whole_blocks_and_reaches_both_sides_of_the_limit(block: int) -> None:
    limits = QueueLimits(block=block, limit=2560, hard=4096)
    sizes = {level: size_of(level, limits, 8192)[0] for level in SIZES}
    assert all(size % block == 0 for size in sizes.values())
    assert (sizes["limit-1"], sizes["limit"], sizes["limit+1"]) == (2560 - block, 2560, 2560 + block)
    assert sizes["double"] == 5120 + block
    assert size_of("hard+1", limits, 4096)[1]


@pytest.fixture(scope="module")
def triples() -> Iterator[list[tuple[str, ...]]]:
    return covering({"a": "1234", "b": "123", "c": "12", "d": "123"}, 3, 1)


def test_every_triple_of_levels_is_in_a_row(triples: list[tuple[str, ...]]) -> None:
    for first, second, third in ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)):
        found = {(row[first], row[second], row[third]) for row in triples}
        assert len(found) == len({row[first] for row in triples}) * len({row[second] for row in triples}) * len(
            {row[third] for row in triples}
        )
    assert 36 <= len(triples) < 60


def test_the_same_seed_makes_the_same_rows_and_every_pair_is_in_one() -> None:
    made = covering(FACTORS, 2, 4)
    assert made == covering(FACTORS, 2, 4) != covering(FACTORS, 2, 5)
    pairs = {(a, b) for row in made for a in enumerate(row) for b in enumerate(row) if a[0] < b[0]}
    levels = [len(levels) for levels in FACTORS.values()]
    assert len(pairs) == sum(one * other for at, one in enumerate(levels) for other in levels[at + 1 :])
    assert len(made) < 1.3 * len(SIZES) * len(PLACES)


def test_an_adapter_that_takes_no_long_commands_lacks_them_and_has_failed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers every command of 16 bytes with a host status, a read of the first block among them."""
    sent: list[int] = []

    def answer(_descriptor: int, command: bytes, _pieces: object = (), **_: object) -> CommandEnd:
        sent.append(command[0])
        return CommandEnd(0, 5 if len(command) == 16 else 0, 0.0)

    for module in (kernel_ways, scsi_command):
        monkeypatch.setattr(module, "send", answer)
    path = tmp_path / "drive"
    path.write_bytes(bytes(1 << 20))
    descriptor = os.open(path, os.O_RDWR)
    ways = kernel_ways.KernelWays(descriptor, replace(LIMITS, scsi=True), arena := Arena(1 << 20, 512, 512, 1))
    memory = arena.shape("aligned", 8 * SECTOR)
    with pytest.raises(LackingError, match=r"READ\(16\).*host status 0x5"):
        ways.write("sg16", memory, 100)
    ways.write("sg10", memory, 100)
    ways.close()
    os.close(descriptor)
    assert sent == [0x88, 0x2A]


@pytest.fixture
def protected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchTree:
    """A drive on which the kernel makes protection information and does not check it."""
    tree = BenchTree(tmp_path / "bench")
    for name, value in {"write_generate": 1, "read_verify": 0}.items():
        tree.write(f"/sys/block/sda/integrity/{name}", f"{value}\n")
    monkeypatch.setitem(globals(), "LIMITS", replace(LIMITS, integrity="/sys/block/sda/integrity", protection=1))
    return tree


def switches_of(tree: BenchTree) -> tuple[str, ...]:
    return tuple(tree.machine.text(f"/sys/block/sda/integrity/{name}") for name in ("write_generate", "read_verify"))


def test_protection_information_is_made_and_checked_by_whoever_can_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protected: BenchTree
) -> None:
    seen = Counter[tuple[str, ...]]()
    real = os.pwritev

    def write(*words: Any) -> int:
        seen[switches_of(protected)] += 1
        return real(*words)

    monkeypatch.setattr(kernel_ways.os, "pwritev", write)
    oracle, violations, lines, _ = swept(tmp_path / "drive", 4, machine=protected.machine)
    assert (violations, oracle.wrong_reads) == ([], [])
    assert {switches: seen[switches] >= 4 for switches in itertools.product("10", "10")} == dict.fromkeys(seen, True)
    assert switches_of(protected) == ("1", "0")
    rows = [row[1] for kind, fields in lines if kind == "rows" for row in fields["rows"] if row[1][0] == "protection"]
    assert len(rows) == 4


def test_scsi_debug_is_not_asked_for_protection_information_that_it_does_not_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protected: BenchTree
) -> None:
    monkeypatch.setitem(globals(), "LIMITS", replace(LIMITS, inserts=False))
    _, _, lines, _ = swept(tmp_path / "drive", 4, machine=protected.machine)
    rows = [row[1] for kind, fields in lines if kind == "rows" for row in fields["rows"] if row[1][0] == "protection"]
    assert [row[1:] for row in rows] == [["write_generate=1", f"read_verify={verify}"] for verify in (1, 0)]
    assert any("scsi_debug" in fields["why"] for kind, fields in lines if kind == "lacks")


def test_data_that_its_protection_information_belies_is_found_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protected: BenchTree
) -> None:
    """Where the kernel checks it, the read fails with EILSEQ; no errno of an I/O says that data are wrong."""
    real = os.preadv

    def read(*words: Any) -> int:
        if switches_of(protected) == ("1", "1"):
            raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ))
        return real(*words)

    monkeypatch.setattr(kernel_ways.os, "preadv", read)
    oracle, violations, _, _ = swept(tmp_path / "drive", 4, machine=protected.machine)
    assert violations == []
    assert {kind for kind, *_ in oracle.wrong_reads} == {"protection"}
    assert switches_of(protected) == ("1", "0")


@pytest.mark.parametrize(("protection", "why"), [(0, "not formatted"), (2, "type 2")])
def test_a_drive_without_protection_information_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protection: int, why: str
) -> None:
    monkeypatch.setitem(globals(), "LIMITS", replace(LIMITS, protection=protection))
    _, _, lines, _ = swept(tmp_path / "drive", 4)
    (told,) = [fields for kind, fields in lines if kind == "lacks" and fields["what"].startswith("T10")]
    assert why in told["why"]


def test_every_command_comes_first_after_a_pause_and_every_kind_of_write_last_before_one(tmp_path: Path) -> None:
    pairs = set()
    for seed in (4, 5):
        _, _, lines, _ = swept(tmp_path / "drive", seed)
        told = [row[1] for kind, fields in lines if kind == "rows" for row in fields["rows"]]
        idles = [words[2] for words in told if words[0] == "idle"]
        assert any(words.endswith(("write", "longest")) for words in idles[:3])
        pairs |= {tuple(words.split()[1::2]) for words in idles[:3]}
    assert {last for last, _ in pairs} == {"dsync", "longest", "write"}
    assert {first for _, first in pairs} == {"write", "read", "flush", "longest", "dsync"}


@pytest.mark.parametrize("when", ["last", "first"])
def test_a_write_beside_a_pause_that_is_lost_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The drive loses what it was given last before each pause, or first after it."""
    kept: list[tuple[int, bytes]] = []
    lost = []
    real = os.pwritev
    resting = [False]

    def sleep(_: float) -> None:
        if when == "last" and kept:
            sector, old = kept[-1]
            os.pwrite(descriptor, old, sector * SECTOR)
            lost.append(sector)
        resting[0] = True

    def write(opened: int, pieces: Sequence[memoryview], offset: int, flags: int = 0) -> int:
        size = sum(map(len, pieces))
        kept[:] = [(offset // SECTOR, os.pread(opened, size, offset))]
        if when == "first" and resting[0]:
            resting[0] = False
            lost.append(offset // SECTOR)
            return size
        return real(opened, pieces, offset, flags)

    path = tmp_path / "drive"
    path.touch()
    descriptor = os.open(path, os.O_RDWR)
    monkeypatch.setattr(kernel_ways.os, "pwritev", write)
    monkeypatch.setattr(load_sweep.time, "sleep", sleep)
    oracle, violations, _, _ = swept(path, 6, descriptor=descriptor)
    os.close(descriptor)
    assert len(lost) >= 3
    assert violations or oracle.wrong_reads
