# SPDX-License-Identifier: Apache-2.0
"""What launches wrote is read back and held to what fio writes: with the real fio, on files that tests damage."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storqual_core.turns.batch_file import LaunchTurn
from storqual_core.turns.content import READBACK_SCHEMA, OffsetSequence, data_of, unstamped
from storqual_core.turns.fio_job import FioAsk, FioTarget, read_ask
from storqual_core.turns.launch import Launched, empty_folder, run_fio
from storqual_core.turns.readback import Looked, Readback, try_fio
from storqual_core.turns.sectors import SECTOR
from tests.support.fake_fio import fake_fio

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("fio"), reason="needs fio on this machine")]

SIZE = 10 << 20


class NoMeter:
    """Counters of a bench without any."""

    def disks(self) -> dict[str, Any]:
        return {}

    def snapshot(self) -> None:
        return None


class Drive:
    """A file that fio writes, with the look at it; `damage` happens between the two."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "drive"
        self.path.write_bytes(os.urandom(SIZE))
        self.folder = folder / "scratch"
        self.folder.mkdir()
        self.readback = Readback("fio", self.folder, lambda: False)
        self.count = 0
        self.target = FioTarget("d0", str(self.path), 1 << 20, SIZE - (2 << 20), is_file=True)

    def launch(self, damage: Callable[[bytearray], object] = bytes, *, limit_s: float = 0.5, **fio: Any) -> Looked:
        ask = ask_of(**fio)
        self.count += 1
        turn = LaunchTurn(0, f"b/{self.count}", "a", "candidate", "c", "p", 1, ("d0",), ask, (), readback_s=limit_s)
        empty_folder(self.folder)
        ran: Launched = run_fio(
            ask,
            [self.target],
            seed=self.count,
            folder=self.folder,
            meter=NoMeter(),  # type: ignore[arg-type]
            tick=lambda _rate: None,
            stopping=lambda: False,
        )
        assert ran.result.status == "ok", ran.result.reason
        content = bytearray(self.path.read_bytes())
        damage(content)
        self.path.write_bytes(content)
        return self.readback.look(turn, ask, ran, [self.target], self.count)


def ask_of(**fio: Any) -> FioAsk:
    problems: list[str] = []
    usual = {"rw": "write", "bs": 4096, "ioengine": "psync", "direct": 0, "runtime_s": 0.15}
    ask = read_ask({**usual, **fio}, "launch", problems)
    assert ask is not None, problems
    return ask


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    return Drive(tmp_path)


LOADS = (
    {"rw": "write", "bs": 262144},
    {"rw": "write", "bs": 4096},
    {"rw": "randwrite", "bs": 4096},
    {"rw": "randwrite", "bs": 65536, "numjobs": 2},
    {"rw": "write", "bs": 65536, "numjobs": 2, "zones": True},
    {"rw": "randwrite", "bs": 8192, "numjobs": 3, "zones": True},
    {"rw": "randrw", "bs": 4096, "rwmixread": 30},
    {"rw": "rw", "bs": 65536},
    {"rw": "write", "bs": 6 << 20},
    {"rw": "write", "bs": 65536, "ioengine": "libaio", "iodepth": 8},
    {"rw": "randwrite", "bs": 65536, "ioengine": "libaio", "iodepth": 8},
    {"rw": "randwrite", "bs": 4096, "options": {"rate_iops": "800"}, "ramp_s": 0.2},
)


@pytest.mark.parametrize("fio", LOADS, ids=lambda fio: "-".join(map(str, fio.values())))
def test_what_was_written_is_found_again(drive: Drive, fio: dict[str, Any]) -> None:
    for _ in range(2):
        looked = drive.launch(**fio)
        data = data_of(looked.text)
        assert (data["wrong"], looked.reason, looked.doubts) == (0, "", ())
        assert data["sectors"] >= min(fio["bs"], 2 << 20) // SECTOR
        if fio["rw"] in ("write", "randwrite"):
            assert data["compared"]


def zero_tail(bs: int) -> Callable[[bytearray], None]:
    """A driver that zeroes the last sector of each of its writes."""

    def damage(content: bytearray) -> None:
        for at in range((1 << 20) + bs - SECTOR, SIZE - (1 << 20), bs):
            content[at : at + SECTOR] = bytes(SECTOR)

    return damage


def shifted(by: int) -> Callable[[bytearray], None]:
    """A driver whose writes all went further."""

    def damage(content: bytearray) -> None:
        content[:] = content[-by:] + content[:-by]

    return damage


def changed_byte(at: int) -> Callable[[bytearray], None]:
    """A driver that changes one byte of each sector."""

    def damage(content: bytearray) -> None:
        for sector in range(0, SIZE, SECTOR):
            content[sector + at] ^= 0xFF

    return damage


@pytest.mark.parametrize("rw", ["write", "randwrite"])
@pytest.mark.parametrize("bs", [4096, 262144])
def test_a_zeroed_tail_is_found_with_its_address_and_content(drive: Drive, rw: str, bs: int) -> None:
    data = data_of(drive.launch(zero_tail(bs), rw=rw, bs=bs).text)
    first = data["first"]
    assert data["wrong"] > 0
    assert (first["address"] - (1 << 20)) % bs == bs - SECTOR
    assert first["found"] == "00" * SECTOR
    assert len(first["expected"]) == 2 * SECTOR
    assert first["expected"].count("?") < 2 * 8 * 8
    assert first["again"] == "the same"


@pytest.mark.parametrize("by", [SECTOR, 4096, 1 << 20])
@pytest.mark.parametrize("rw", ["write", "randwrite"])
def test_what_was_written_elsewhere_is_found(drive: Drive, rw: str, by: int) -> None:
    assert data_of(drive.launch(shifted(by), rw=rw).text)["wrong"]


@pytest.mark.parametrize("at", [0, 1, 8, 63, 64, 65, 256, 257, 448, 511, 48, 56, 200])
def test_any_changed_byte_of_a_sector_is_found(drive: Drive, at: int) -> None:
    assert data_of(drive.launch(changed_byte(at), bs=4096).text)["wrong"]


@pytest.mark.parametrize("rw", ["write", "randwrite"])
def test_a_write_that_was_lost_is_found_where_an_earlier_launch_wrote(drive: Drive, rw: str) -> None:
    drive.launch(rw=rw, bs=65536)
    before = drive.path.read_bytes()

    def lose(content: bytearray) -> None:
        for at in range(1 << 20, SIZE - (1 << 20), 3 * 65536):
            content[at : at + 65536] = before[at : at + 65536]

    data = data_of(drive.launch(lose, rw=rw, bs=65536).text)
    assert data["wrong"]
    assert data["first"]["why"] == "this launch wrote it, and it holds something else"


def test_reads_are_compared_with_what_earlier_launches_wrote(drive: Drive) -> None:
    assert drive.launch(rw="read").reason == "what is there was not written by a launch of this batch"
    drive.launch(rw="write", bs=4096)
    drive.launch(rw="randwrite", bs=8192)
    data = data_of(drive.launch(rw="randread", bs=262144).text)
    assert data["of"] == "read"
    assert data["sectors"] >= 512
    assert data["wrong"] == 0
    assert data_of(drive.launch(zero_tail(262144), rw="randread", bs=262144).text)["wrong"]


@pytest.mark.parametrize(
    ("option", "value"),
    [("refill_buffers", 1), ("buffer_compress_percentage", 50), ("zero_buffers", 1), ("scramble_buffers", 0)],
)
def test_a_load_that_does_not_mark_its_sectors_is_not_looked_at_and_says_so(
    drive: Drive, option: str, value: int
) -> None:
    looked = drive.launch(options={option: value})
    assert looked.text == ""
    assert option in looked.reason
    # and what was known before is known no more
    drive.launch(rw="write")
    drive.launch(options={option: value})
    assert drive.launch(rw="read").reason


def test_a_trim_is_not_looked_at() -> None:
    assert unstamped(ask_of(rw="randtrim"))


def test_a_fio_that_writes_something_else_is_not_judged_by_it(tmp_path: Path) -> None:
    program = fake_fio(
        tmp_path, 'for a; do case $a in --filename=*) f=${a#*=};; esac; done; head -c 1572864 /dev/urandom > "$f"'
    )
    folder = tmp_path / "scratch"
    folder.mkdir()
    assert "does not mark" in try_fio(program, folder).reason
    empty_folder(folder)
    assert "wrote nothing" in try_fio(fake_fio(tmp_path, "exit 0"), folder).reason
    empty_folder(folder)
    known = try_fio("fio", folder)
    assert (known.reason, known.repeated is None) == ("", False)


def test_any_member_of_the_sequence_is_the_one_that_steps_lead_to() -> None:
    sequence = OffsetSequence(7, 3, repeated=False)
    drawn = [sequence.block(place, 1 << 32) for place in range(200)]
    assert len(set(drawn)) == 200
    state, steps = list(sequence._start), []
    for _ in range(206):
        state = [
            ((value & mask) << up & 0xFFFFFFFF) ^ (((value << left & 0xFFFFFFFF) ^ value) >> right)
            for value, (left, right, mask, up) in zip(
                state, ((13, 19, 0xFFFFFFFE, 12), (2, 25, 0xFFFFFFF8, 4), (3, 11, 0xFFFFFFF0, 17)), strict=True
            )
        ]
        steps.append(state[0] ^ state[1] ^ state[2])
    assert drawn == steps[6:]


def test_evidence_without_the_wrong_sectors_content_is_none(drive: Drive) -> None:
    record = json.loads(drive.launch(zero_tail(4096)).text)
    assert record["schema"] == READBACK_SCHEMA
    with pytest.raises(ValueError, match="is not there"):
        data_of(json.dumps({**record, "wrong": []}))
    with pytest.raises(ValueError, match="schema"):
        data_of(json.dumps({**record, "schema": "storqual.readback/0"}))


def test_at_least_one_block_is_read_and_no_more_than_there_is_time_for(drive: Drive) -> None:
    record = json.loads(drive.launch(limit_s=0.000001, bs=1 << 20).text)
    assert len(record["blocks"]) == 1
