# SPDX-License-Identifier: Apache-2.0
"""Buffered reads that began anew at the start of their targets are in doubt."""

import pytest

from storqual_core.turns.fio_job import FioAsk, FioTarget, read_ask
from storqual_core.turns.fio_result import FioResult
from storqual_core.turns.launch import read_again

TARGETS = [FioTarget("a", "/f/a", 0, 1 << 20), FioTarget("b", "/f/b", 0, 1 << 20)]


def ask(direct: int, rw: str) -> FioAsk:
    problems: list[str] = []
    read = read_ask({"rw": rw, "bs": 4096, "runtime_s": 1.0, "direct": direct}, "fio", problems)
    assert read is not None, problems
    return read


@pytest.mark.parametrize(
    ("direct", "rw", "mib", "doubtful"),
    [(0, "read", 3, True), (0, "read", 2, False), (1, "read", 3, False), (0, "write", 3, False)],
)
def test_only_a_buffered_second_pass_is_in_doubt(direct: int, rw: str, mib: int, doubtful: bool) -> None:
    said = read_again(ask(direct, rw), TARGETS, FioResult("ok", "", {"read_bytes": mib << 20}))
    assert said == (
        ["all of its targets was read 1.5 times through the page cache: part of it came from memory"]
        if doubtful
        else []
    )


def test_a_target_of_unknown_size_is_not_judged() -> None:
    targets = [FioTarget("a", "/dev/x")]
    assert read_again(ask(0, "read"), targets, FioResult("ok", "", {"read_bytes": 1 << 40})) == []
