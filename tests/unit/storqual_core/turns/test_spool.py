# SPDX-License-Identifier: Apache-2.0
"""What is finished survives; what is torn was never finished."""

import json
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.kit.errors import StorqualError
from storqual_core.turns import spool as spool_module
from storqual_core.turns.spool import Spool, Stream, read_spool

START = {"kind": "start", "boot_id": "x"}
END = {"kind": "end", "outcome": "stopped"}


def sample(index: int) -> dict[str, Any]:
    """The least that a sample line has."""
    return {"kind": "sample", "sample": {"id": f"s01-b01/{index}"}}


def test_finished_samples_are_known_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "run" / "b.jsonl")
    spool.append(START)
    spool.append_all([sample(0), sample(7)])
    spool.append(END)
    spool.close()
    held = read_spool(tmp_path / "run" / "b.jsonl")
    assert (held.done, held.start, held.end, held.starts) == ({0, 7}, START, END, 1)


def test_a_block_that_goes_on_has_no_end_line_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    spool = Spool(path)
    spool.append_all([START, sample(0), END])
    spool.reopen()
    spool.append_all([START, sample(1)])
    spool.close()
    kinds = [json.loads(line)["kind"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert kinds == ["start", "sample", "start", "sample"]


@settings(max_examples=40)
@given(cut=st.integers(min_value=0))
def test_a_spool_cut_anywhere_keeps_every_complete_line(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("spool") / "b.jsonl"
    spool = Spool(path)
    spool.append_all([START, *(sample(index) for index in range(4))])
    spool.close()
    whole = path.read_bytes()
    data = whole[: cut % (len(whole) + 1)]
    path.write_bytes(data)
    spool = Spool(path)
    spool.append(sample(9))
    spool.close()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(lines) == data.count(b"\n") + 1
    assert lines[-1] == sample(9)


def test_damage_in_the_middle_is_no_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps(START) + "\nrubbish\n" + json.dumps(sample(0)) + "\n", encoding="utf-8")
    with pytest.raises(StorqualError, match=r"line 2: is not a spool record"):
        Spool(path)


def test_a_stream_tells_what_ended_in_batches_and_each_line_at_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "run" / "t.all.jsonl", durable=False)
    stream = Stream(spool)
    stream.line("loading")
    for number in range(3):
        stream.tell("w", number, 4096, 1, 5, 6, 0)
    stream.close()
    spool.append({"kind": "end", "outcome": "done", "ios": stream.told})
    spool.close()
    lines = [json.loads(line) for line in spool.path.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["kind"] == "loading"
    assert [io[1] for line in lines if line["kind"] == "io" for io in line["ios"]] == [0, 1, 2]
    assert (lines[-1]["ios"], read_spool(spool.path).end) == (3, lines[-1])
    # what only the control node may read lies there
    assert spool.path.stat().st_mode & 0o077 == 0


def test_a_stream_that_has_nothing_to_tell_says_that_its_turn_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "ALIVE_S", 0.2)
    spool = Spool(tmp_path / "t.jsonl", durable=False)
    stream = Stream(spool)
    stream.tell("w", 1, 4096, 1, 5, 6, 0)
    end = time.monotonic() + 20
    while '"alive"' not in (text := spool.path.read_text(encoding="utf-8")):
        assert time.monotonic() < end
        time.sleep(0.02)  # a file that grows tells nobody
    stream.close()
    spool.close()
    kinds = [json.loads(line)["kind"] for line in text.splitlines()]
    assert kinds[:2] == ["io", "alive"]


def test_a_write_that_fails_half_way_is_taken_back(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "b.jsonl")
    spool.append(START)
    size = (tmp_path / "b.jsonl").stat().st_size
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
        with pytest.raises(StorqualError, match=r"b\.jsonl: cannot be written: File too large"):
            spool.append(sample(0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    spool.append(sample(1))
    spool.close()
    assert read_spool(tmp_path / "b.jsonl").done == {1}
