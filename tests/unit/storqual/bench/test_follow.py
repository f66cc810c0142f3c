# SPDX-License-Identifier: Apache-2.0
"""A block is followed by shell commands only, through lost connections, to its last line."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from storqual.bench.follow import (
    BatchPaths,
    BatchProgress,
    Stopped,
    Tail,
    UnreachableError,
    _parse_progress,
    follow,
    spool_line,
)
from storqual_core.kit.errors import StorqualError

PATHS = BatchPaths(
    program="/s/core.pyz", batch_file="/s/b.json", spool="/s/b.jsonl", progress="/s/progress.json", lock="/s/lock"
)
START = json.dumps({"kind": "start"}) + "\n"
SAMPLE = json.dumps({"kind": "sample", "sample": {"id": "b/0"}}) + "\n"
END = json.dumps({"kind": "end", "outcome": "done", "message": ""}) + "\n"


class FakeBench:
    """A bench whose spool grows by one piece a question; None in place of a piece is a lost connection."""

    def __init__(
        self,
        pieces: list[str | None],
        *,
        start: tuple[int, str, str] = (0, "", ""),
        held: bool = True,
        rate: float | None = 300.0,
    ) -> None:
        self.spool = ""
        self.pieces = pieces
        self.start = start
        self.held = held
        self.rate = rate
        self.starts = 0
        self.questions: list[str] = []

    def __call__(self, command: str) -> tuple[int, str, str]:
        """Answer as the bench's shell would."""
        if " start " in command:
            self.starts += 1
            return self.start
        self.questions.append(command)
        piece = self.pieces.pop(0) if self.pieces else ""
        if piece is None:
            raise UnreachableError("connection lost")
        self.spool += piece
        offset = int(command.split("tail -c +")[1].split(maxsplit=1)[0]) - 1
        progress = json.dumps({"block": "b", "index": 0, "of": 2, "point": "p", "iops_now": self.rate, "eta_s": 9})
        state = "held" if self.held else "free"
        return 0, f"{state}\n{progress}\n--storqual--\n{self.spool[offset:]}", ""


def run(bench: FakeBench, **options: object) -> tuple[object, list[str], list[BatchProgress | None]]:
    """Follow `bench` without waiting; returns the end, what was collected, what was shown."""
    got: list[str] = []
    shown: list[BatchProgress | None] = []

    def collect(text: str) -> int:
        got.append(text)
        return text.count('"sample":')

    clock: Callable[[], float] = iter(range(10_000)).__next__
    end = follow(
        bench,
        PATHS,
        collect=collect,
        show=lambda progress, _: shown.append(progress),
        clock=clock,
        wait=lambda _: None,
        **options,  # type: ignore[arg-type]
    )
    return end, got, shown


def test_a_block_is_collected_to_its_end() -> None:
    bench = FakeBench([START, SAMPLE, SAMPLE + END])
    end, got, shown = run(bench)
    assert "".join(got) == START + SAMPLE + SAMPLE + END
    assert (end.outcome, end.samples, bench.starts) == ("done", 2, 1)
    assert shown[0] == BatchProgress("b", 0, 2, "p", 300.0, 9.0)


def test_the_end_of_a_block_is_awaited_on_the_bench(tmp_path: Path) -> None:
    program, lock, spool = tmp_path / "program", tmp_path / "lock", tmp_path / "spool"
    (tmp_path / "end").write_text(END, encoding="utf-8")
    program.write_text(
        f"exec 9>{lock}; flock 9; (sleep 0.5; cat {tmp_path}/end >>{spool}) >/dev/null 2>&1 &\n", encoding="utf-8"
    )
    asked: list[str] = []

    def shell(line: str) -> tuple[int, str, str]:
        asked.append(line)
        ended = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    paths = BatchPaths(str(program), "block.json", str(spool), str(tmp_path / "progress"), str(lock), python="sh")
    end = follow(shell, paths, collect=lambda _: 0, show=lambda *_: None, poll_s=30.0)
    assert end.outcome == "done"
    assert len(asked) == 2, asked


def test_a_torn_line_waits_for_its_other_half() -> None:
    _, got, _ = run(FakeBench([START + SAMPLE[:10], SAMPLE[10:], END]))
    assert got == [START, SAMPLE, END]


def test_a_lost_connection_costs_nothing_but_time() -> None:
    bench = FakeBench([START, None, None, SAMPLE + END])
    end, got, _ = run(bench)
    assert "".join(got) == START + SAMPLE + END
    assert (end.outcome, bench.starts) == ("done", 1)


def test_a_bench_that_stays_silent_is_given_up() -> None:
    with pytest.raises(UnreachableError, match="connection lost"):
        run(FakeBench([START, *[None] * 50]), patience_s=10)


def test_a_bench_that_stays_silent_is_brought_back_and_its_batch_died_with_its_boot() -> None:
    bench = FakeBench([START, *[None] * 40, SAMPLE])
    stopped: list[Stopped] = []

    def bring_back(progress: BatchProgress | None, why: Stopped) -> None:
        assert progress is not None
        stopped.append(why)
        bench.pieces[:] = [SAMPLE]
        bench.held = False

    end, _, _ = run(bench, bring_back=bring_back)
    assert end.outcome == "died"
    [why] = stopped
    assert (why.answers, why.seconds >= 30) == (False, True)


def test_a_launch_without_an_io_is_brought_back_and_one_that_is_slow_is_not() -> None:
    stopped: list[Stopped] = []

    def bring_back(_progress: BatchProgress | None, why: Stopped) -> None:
        stopped.append(why)
        bench.pieces[:] = [END]

    bench = FakeBench([START, *[""] * 200, END])
    run(bench, bring_back=bring_back, still_s=100.0)
    assert not stopped
    bench = FakeBench([START, *[""] * 200, END], rate=0.0)
    run(bench, bring_back=bring_back, still_s=100.0)
    [why] = stopped
    assert (why.answers, why.seconds) == (True, pytest.approx(100, abs=2))
    # a launch that is prepared has no rate
    stopped.clear()
    bench = FakeBench([START, *[""] * 200, END], rate=None)
    run(bench, bring_back=bring_back, still_s=100.0)
    assert not stopped


def test_a_refused_start_is_no_block() -> None:
    """Exit status 4 of the bench program is the guard's refusal; its sentence is passed on."""
    end, got, _ = run(FakeBench([], start=(4, "", "drive 0x5 is mounted\n")))
    assert (end.outcome, end.message, got) == ("refused", "drive 0x5 is mounted", [])


def test_a_program_that_died_is_noticed() -> None:
    end, _, _ = run(FakeBench([START + SAMPLE], held=False))
    assert (end.outcome, end.samples) == ("died", 1)


def test_paths_are_quoted_for_the_shell() -> None:
    bench = FakeBench([END])
    follow(
        bench,
        BatchPaths("/s/core.pyz", "/s/b.json", "/s/my spool.jsonl", "/s/progress.json", "/s/lock"),
        collect=lambda _: 0,
        show=lambda *_: None,
        wait=lambda _: None,
    )
    assert "'/s/my spool.jsonl'" in bench.questions[0]


def test_a_block_that_cannot_go_on_is_collected_first() -> None:
    bench = FakeBench([START + SAMPLE], start=(2, "", "the bench was reset under this block\n"), held=False)
    end, got, _ = run(bench)
    assert "".join(got) == START + SAMPLE
    assert (end.outcome, end.message) == ("died", "the bench was reset under this block")


@pytest.mark.parametrize("text", ["[]", "7", '{"index": []}', '{"index": "x"}', '{"eta_s": NaN}', "[" * 5000])
def test_progress_that_a_bench_makes_up_is_none(text: str) -> None:
    assert _parse_progress(text) is None
    with pytest.raises(StorqualError, match="expected a JSON object"):
        spool_line(b"[]")


def test_a_line_that_does_not_end_is_refused() -> None:
    tail = Tail("spool")
    assert [*tail.take(b"a"), *tail.take(b"b\n\nc"), *tail.take(b"\n")] == [b"ab\n", b"\n", b"c\n"]
    assert tail.take(bytes(1 << 24)) == []
    with pytest.raises(StorqualError, match="a line of more than 16777216 bytes"):
        tail.take(b"a")
