# SPDX-License-Identifier: Apache-2.0
"""Drives are brought to a known state before the first launch, each stage once."""

import json
import math
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from storqual_core.guard.claims import read_claims
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import BadInputError, GuardRefusalError, ToolError
from storqual_core.turns.batch_file import FillAsk, SteadyAsk, parse_batch
from storqual_core.turns.batch_run import StopRequestedError
from storqual_core.turns.fio_job import FioTarget, read_ask
from storqual_core.turns.precondition import (
    FEWEST_SECONDS,
    Slope,
    discard,
    drift_of,
    fill,
    format_drive,
    is_settled,
    settled_from,
    snia_of,
    steady,
)
from storqual_core.turns.targets import TargetDevice, hold_for_format
from tests.support.fake_fio import block_text, fake_fio, job, launch, result
from tests.unit.storqual_core.turns.test_batch_run import Bench

STEADY = {
    "fio": {"rw": "randwrite", "bs": 4096, "iodepth": 32, "runtime_s": 1.0, "ramp_s": 0.0},
    "volume": 0.0,
    "rounds": 3,
}
ASK: dict[str, Any] = {"purge": "discard", "consent": [], "fill": {"bs": 131072, "times": 2}, "steady": STEADY}


def stages(path: Path) -> list[str]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line["stage"] for line in lines if line["kind"] == "precondition"]


def reports(path: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["stage"]: line["report"] for line in lines if line["kind"] == "precondition"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    found = Bench(tmp_path)
    (tmp_path / "out").write_text(result(job(drive="d0", way="write", ios=5000)), encoding="utf-8")
    return found


def test_purge_fill_and_rounds_come_before_the_first_launch(bench: Bench) -> None:
    block = bench.block(launch(0), precondition=ASK)
    assert block.writes
    assert bench.run(block).outcome == "done"
    assert stages(block.spool) == ["purge", "fill", "steady"]
    first, second = bench.fio_calls[:2]
    assert "--rw=write --bs=131072" in first
    assert "--loops=2" in first
    assert "--rw=randwrite" in second
    assert len(bench.fio_calls) == 1 + 3 + 1
    found = reports(block.spool)
    assert found["fill"]["bytes"] == 5000 * 4096
    assert found["steady"]["rounds"] == 3
    assert found["steady"]["steady"] is False
    assert found["purge"]["d0"].startswith("not purged: a file")


def test_stages_that_were_done_are_not_repeated(bench: Bench) -> None:
    block = bench.block(launch(0), precondition=ASK)
    asked = iter([False] * 4)
    assert bench.run(block, stopping=lambda: next(asked, True)).outcome == "stopped"
    done = stages(block.spool)
    calls = len(bench.fio_calls)
    assert bench.run(block).outcome == "done"
    assert stages(block.spool) == ["purge", "fill", "steady"]
    assert done[:2] == ["purge", "fill"]
    assert not any("--loops" in call for call in bench.fio_calls[calls:])


@pytest.mark.parametrize(
    ("ask", "stage"),
    [({"purge": "discard"}, "purge"), ({"fill": ASK["fill"]}, "fill"), ({"steady": STEADY}, "steady")],
)
def test_what_is_not_asked_for_is_not_done_and_what_is_done_is_not_repeated(
    bench: Bench, ask: dict[str, Any], stage: str
) -> None:
    block = bench.block(launch(0), precondition=ask)
    assert bench.run(block, stopping=lambda: stages(block.spool) == [stage]).outcome == "stopped"
    calls = len(bench.fio_calls)
    assert bench.run(block).outcome == "done"
    assert stages(block.spool) == [stage]
    assert len(bench.fio_calls) == calls + 1


def test_rounds_fall_back_as_launches_do(bench: Bench) -> None:
    bench.program = fake_fio(
        bench.folder,
        f'echo "$@" >> {bench.calls}\n'
        'case "$*" in *ioengine=io_uring*) echo "fio: engine io_uring not loadable"; exit 1;; esac\n'
        f"cat {bench.folder}/out",
    )
    load = {**STEADY["fio"], "ioengine": "io_uring", "fallback": [{"ioengine": "libaio", "direct": 1}]}
    block = bench.block(launch(0), precondition={"steady": {**STEADY, "fio": load}})
    assert bench.run(block).outcome == "done"
    assert reports(block.spool)["steady"]["rounds"] == 3
    engines = [word for call in bench.fio_calls for word in call.split() if word.startswith("--ioengine=")]
    assert engines == ["--ioengine=io_uring", "--ioengine=libaio"] * 3 + ["--ioengine=libaio"]


def test_drives_are_formatted_once_and_are_scratch_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    stamped: list[str] = []

    class Held(dict[str, str]):
        def stamp(self, drive: str) -> None:
            stamped.append(drive)

    @contextmanager
    def hold(_block: object) -> Iterator[Held]:
        yield Held({"0x5": "/dev/sdz"})

    monkeypatch.setattr("storqual_core.turns.precondition.hold_for_format", hold)
    block = bench.block(launch(0), precondition={"purge": "format", "consent": ["ea71a0"]})
    for _ in range(2):
        bench.run(block)
    assert stages(block.spool) == ["purge"]
    assert stamped == ["0x5"]
    assert [words for words in bench.commands if words[0] == "sg_format"] == [
        ["sg_format", "--format", "--quick", "/dev/sdz"]
    ]


@pytest.mark.parametrize(
    ("is_file", "words"),
    [(True, "--ioengine=psync --direct=0"), (False, "--ioengine=libaio --direct=1 --iodepth=32")],
)
def test_a_drive_is_filled_past_the_page_cache(bench: Bench, is_file: bool, words: str) -> None:
    target = FioTarget("d0", str(bench.folder / "x"), 0, 1 << 20, is_file)
    done = fill(FillAsk(131072, 2), {"d0": target}, bench.folder, stopping=lambda: False, program=bench.program)
    assert words in bench.fio_calls[0]
    assert (done["times"], done["bytes"]) == (2, 5000 * 4096)


@pytest.mark.skipif(not shutil.which("fio"), reason="needs fio")
def test_what_fio_itself_writes_of_a_fill_is_read(tmp_path: Path) -> None:
    """Its result has to hold what every launch's holds: bins, which plain JSON has not."""
    place = tmp_path / "drive"
    place.write_bytes(b"\0" * (1 << 20))
    target = FioTarget("d0", str(place), 0, 1 << 20, is_file=True)
    folder = tmp_path / "out"
    folder.mkdir()
    assert fill(FillAsk(131072, 2), {"d0": target}, folder, stopping=lambda: False)["bytes"] == 2 << 20


class Endless:
    """A fio that never ends, as a drive that hangs makes it."""

    def __init__(self, *_words: object) -> None:
        self.waits = 0

    def __enter__(self) -> "Endless":
        ENDLESS.append(self)
        return self

    def __exit__(self, *_why: object) -> None:
        pass

    def wait(self, seconds: float) -> bool:
        self.waits += round(seconds)
        return False


ENDLESS: list[Endless] = []


def test_a_fill_is_given_up_when_it_takes_far_too_long_and_when_it_is_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes, and twice the 2 MB at 2 MB/s: 602 seconds. A stop is heard within a second."""
    monkeypatch.setattr("storqual_core.turns.precondition.FioProcess", Endless)
    targets = {"d0": FioTarget("d0", "/dev/sdz", 0, 2_000_000)}
    with pytest.raises(ToolError, match="the fill did not end within 602 s"):
        fill(FillAsk(131072, 2), targets, tmp_path, stopping=lambda: False)
    with pytest.raises(StopRequestedError):
        fill(FillAsk(131072, 2), targets, tmp_path, stopping=lambda: True)
    assert [each.waits for each in ENDLESS] == [603, 1]


def rounds(*each: tuple[str, int, Sequence[float]]) -> Callable[[object], Any]:
    """Rounds that end so, with so many bytes written, at these rates by the second."""
    left = iter(each)

    def run(_ask: object) -> Any:
        status, written, series = next(left)
        primitives = {"write_bytes": written, "runtime_ns": 2_000_000_000}
        found = SimpleNamespace(status=status, reason="it broke", primitives=primitives, jobs_ios=(1000, 500))
        return SimpleNamespace(result=found, series=series)

    return run


LEVEL = [100.0, 101.0] * 150
FALLING = [1000.0 - second for second in range(300)]
LOAD = read_ask(STEADY["fio"], "fio", [])
TARGETS = {"a": FioTarget("a", "/dev/sda", 0, 600), "b": FioTarget("b", "/dev/sdb", 0, 400)}


@pytest.mark.parametrize(
    ("volume", "series", "took", "steady_in_the_end"),
    [
        (0.0, LEVEL, 1, True),
        (2.0, LEVEL, 2, True),
        (2.1, LEVEL, 3, True),
        (9.0, LEVEL, 5, False),
        (0.0, FALLING, 5, False),
    ],
)
def test_rounds_end_when_enough_was_written_and_the_load_is_level(
    volume: float, series: list[float], took: int, steady_in_the_end: bool
) -> None:
    told: list[int] = []
    ask = SteadyAsk(LOAD, volume, 5)
    found = steady(ask, TARGETS, rounds(*[("ok", 1000, series)] * 5), told.append)
    assert (found["rounds"], found["steady"], told) == (took, steady_in_the_end, list(range(1, took + 1)))
    assert (found["iops"], found["bytes"], found["capacities"]) == ([750.0] * took, 1000 * took, float(took))


def test_a_round_that_fails_is_no_state_to_measure_in() -> None:
    ask = SteadyAsk(LOAD, 9.0, 5)
    with pytest.raises(ToolError, match=r"^round 2 ended io_error: it broke$"):
        steady(ask, TARGETS, rounds(("ok", 1000, LEVEL), ("io_error", 0, [])), lambda _number: None)


def test_a_fill_that_fails_stops_the_block(bench: Bench) -> None:
    (bench.folder / "out").write_text(result(job(drive="d0", way="write", error=5)), encoding="utf-8")
    block = bench.block(launch(0), precondition=ASK)
    end = bench.run(block)
    assert end.outcome == "stopped"
    assert "the fill ended io_error" in end.message
    assert stages(block.spool) == ["purge"]


def test_a_format_without_consent_is_refused_before_anything_is_touched(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []

    def refusing(_claims: object, **options: Any) -> Any:
        seen.append(options)
        raise GuardRefusalError(["drive 0x5: there is no consent to it"])

    monkeypatch.setattr("storqual_core.guard.hold.hold", refusing)
    monkeypatch.setattr("storqual_core.turns.targets.read_claims", lambda _targets: ())
    block = bench.block(launch(0), precondition={**ASK, "purge": "format", "consent": ["ea71a0"]})
    assert bench.run(block).outcome == "refused"
    assert (seen[0]["purpose"], seen[0]["consent"]) == ("format", ("ea71a0",))
    assert bench.fio_calls == []
    assert not any(words[0] in ("sg_format", "nvme") for words in bench.commands)


@pytest.mark.parametrize(
    "wrong",
    [
        {"purge": "erase"},
        {"fill": {"bs": 1, "times": 2}},
        {"fill": 2},
        {"steady": {**STEADY, "rounds": 0}},
        {"steady": {**STEADY, "fio": {"rw": "nothing"}}},
        {"consent": "all"},
        {"more": 1},
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInputError, match="precondition"):
        parse_batch(block_text(tmp_path, [launch(0)], precondition={**ASK, **wrong}))


class Tools:
    """Tools that answer by their first word, and what they were asked."""

    def __init__(self, **answers: tuple[int, str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str], *, timeout: float = 0.0) -> Completed:
        self.asked.append(" ".join(argv))
        rc, out, err = self.answers.get(argv[0], (0, "", ""))
        if argv[0] == "blkdiscard" and "--force" not in argv:
            rc, err = 0, ""
        return Completed(tuple(argv), rc, out, err, 0.0)


def drive(folder: Path, discards: int) -> tuple[FioTarget, TargetDevice]:
    """A drive of a megabyte with guard areas of 64 KiB, on a kernel that discards so much at once."""
    queue = folder / "queue"
    queue.mkdir()
    (queue / "discard_max_bytes").write_text(f"{discards}\n", encoding="ascii")
    (queue / "logical_block_size").write_text("512\n", encoding="ascii")
    return FioTarget("0x5", "/dev/sdz", 65536, 917504), TargetDevice(folder, ())


def test_a_discard_leaves_the_guards_areas(tmp_path: Path) -> None:
    """By the kernel where it can; with --force, because we hold the node ourselves."""
    tools = Tools()
    assert discard(*drive(tmp_path, 4096), tools) == "discarded by blkdiscard"
    assert tools.asked == ["blkdiscard --offset=65536 --length=917504 --force /dev/sdz"]


def test_an_old_blkdiscard_is_asked_in_its_own_words(tmp_path: Path) -> None:
    """Before 2.36 it knew no --force, and needed none."""
    tools = Tools(blkdiscard=(1, "", "blkdiscard: unrecognized option '--force'"))
    assert discard(*drive(tmp_path, 4096), tools) == "discarded by blkdiscard"
    assert tools.asked[-1] == "blkdiscard --offset=65536 --length=917504 /dev/sdz"


def test_a_discard_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="blkdiscard"):
        discard(*drive(tmp_path, 4096), Tools(blkdiscard=(1, "", "BLKDISCARD ioctl failed: Input/output error")))


def test_where_the_kernel_does_not_discard_the_drive_is_asked(tmp_path: Path) -> None:
    """UNMAP, when its page says that it knows it; else nothing is claimed to be purged."""
    says = "  Unmap command supported (LBPU): 1\n"
    tools = Tools(sg_vpd=(0, says, ""))
    assert discard(*drive(tmp_path, 0), tools) == "unmapped by sg_unmap"
    assert tools.asked[-1] == "sg_unmap --force --all=128,65536,1919 /dev/sdz"
    for answer in ((0, says.replace("1\n", "0\n"), ""), (5, "", "illegal request")):
        said = discard(FioTarget("0x5", "/dev/sdz", 65536, 917504), TargetDevice(tmp_path, ()), Tools(sg_vpd=answer))
        assert said == "not purged: neither kernel nor drive discards"


def test_formats_are_by_kind_of_drive() -> None:
    tools = Tools()
    assert "nvme format" in format_drive("/dev/nvme0n1", tools)
    assert "sg_format" in format_drive("/dev/sdz", tools)
    assert tools.asked == ["nvme format /dev/nvme0n1 --ses=1 --force", "sg_format --format --quick /dev/sdz"]


def test_flash_behind_scsi_is_sanitized_where_it_knows_that() -> None:
    tools = Tools()
    assert format_drive("/dev/sdz", tools, flash=True) == "sanitized by sg_sanitize, block erase"
    assert tools.asked == ["sg_sanitize --block --quick /dev/sdz"]
    without = Tools(sg_sanitize=(9, "", "Sanitize: invalid command opcode"))
    assert format_drive("/dev/sdz", without, flash=True) == "formatted by sg_format"
    with pytest.raises(ToolError, match="sg_sanitize"):
        format_drive("/dev/sdz", Tools(sg_sanitize=(3, "", "medium error")), flash=True)


BESIDE = {"0x6": {"claim": {"wwn": "eui.0011223344556677", "serial": "N1", "model": "M", "size": 1 << 30}}}


def test_drives_that_a_format_reaches_are_not_formatted_and_are_scratch_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The format of a namespace may erase its siblings: all are stamped after the last format."""
    done: list[str] = []

    class Held(dict[str, str]):
        def stamp(self, drive: str) -> None:
            done.append(f"stamp {drive}")

    @contextmanager
    def hold(_block: object) -> Iterator[Held]:
        yield Held({"0x4": "/dev/nvme0n1", "0x5": "/dev/nvme0n2", "0x6": "/dev/nvme0n3"})

    def form(node: str, *_: object, **__: object) -> str:
        done.append(f"format {node}")
        return "formatted"

    monkeypatch.setattr("storqual_core.turns.precondition.hold_for_format", hold)
    monkeypatch.setattr("storqual_core.turns.precondition.format_drive", form)
    bench.run(bench.block(launch(0), precondition={"purge": "format", "consent": ["x"], "beside": BESIDE}))
    assert done == ["format /dev/nvme0n1", "format /dev/nvme0n2", "stamp 0x4", "stamp 0x5", "stamp 0x6"]


def test_a_format_asks_the_guard_with_all_claims_of_the_bench(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    @contextmanager
    def hold(_claims: object, **options: Any) -> Iterator[None]:
        asked.update(options)
        yield

    monkeypatch.setattr("storqual_core.turns.targets.guard.hold", hold)
    monkeypatch.setattr(
        "storqual_core.turns.targets.read_claims", lambda targets: read_claims(targets) if "0x6" in targets else ()
    )
    block = bench.block(launch(0), precondition={"purge": "format", "consent": ["x"], "beside": BESIDE})
    with hold_for_format(block):
        pass
    assert (asked["purpose"], asked["consent"], [claim.id for claim in asked["beside"]]) == (
        "format",
        ("x",),
        ["0x6"],
    )


@pytest.mark.parametrize("beside", [["0x6"], {"0x6": "claimed"}])
def test_claims_beside_a_format_that_are_none_are_told(bench: Bench, beside: object) -> None:
    with pytest.raises(BadInputError, match="beside: found"):
        bench.block(launch(0), precondition={"purge": "format", "consent": ["x"], "beside": beside})


@pytest.mark.parametrize(("rotational", "stages_done"), [("1", ["as_found"]), ("0", ["purge"])])
def test_only_flash_is_conditioned_where_the_suite_says_so_and_disks_are_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rotational: str, stages_done: list[str]
) -> None:
    queue = bench.folder / "device" / "queue"
    queue.mkdir(parents=True)
    (queue / "rotational").write_text(f"{rotational}\n", encoding="ascii")
    monkeypatch.setattr("storqual_core.turns.launch_runner.place_of", lambda _target: TargetDevice(queue.parent, ()))
    monkeypatch.setattr("storqual_core.turns.launch_runner.is_gone", lambda *_given: False)
    monkeypatch.setattr("storqual_core.turns.targets.is_gone", lambda *_given: False)
    block = bench.block(launch(0), precondition={"purge": "discard", "media": "flash"})
    assert bench.run(block).outcome == "done"
    assert stages(block.spool) == stages_done
    assert sorted(reports(block.spool)[stages_done[0]]) == ["d0", "d1"]


def test_a_disk_is_not_formatted_where_only_flash_is_asked_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def hold(_block: object) -> Iterator[dict[str, str]]:
        yield {"0x5": "/dev/sdz"}

    monkeypatch.setattr("storqual_core.turns.precondition.hold_for_format", hold)
    monkeypatch.setattr("storqual_core.turns.precondition.is_flash", lambda _place: False)
    bench.run(bench.block(launch(0), precondition={"purge": "format", "consent": ["x"], "media": "flash"}))
    assert not any(words[0] == "sg_format" for words in bench.commands)


def noisy(levels: list[float], seed: int, spread: float = 0.03, correlation: float = 0.6) -> list[float]:
    """Seconds at these levels with AR(1) noise."""
    source, state, values = random.Random(seed), 0.0, []
    for level in levels:
        state = correlation * state + math.sqrt(1 - correlation**2) * source.gauss(0, 1)
        values.append(level * (1 + spread * state))
    return values


def test_snia_names_its_two_numbers() -> None:
    """Rounds that fall by 5 % of the mean each: 20 % of range, 20 % of excursion."""
    found = snia_of([9.0, 110.0, 105.0, 100.0, 95.0, 90.0])
    assert found is not None
    assert (round(found.range, 9), round(found.excursion, 9), found.steady) == (0.2, 0.2, False)
    level = snia_of([99.0, 101.0, 100.0, 101.0, 99.0])
    assert level is not None
    assert level.steady


@pytest.mark.parametrize(
    ("rounds", "steady"),
    [
        ([90.0, 110.0, 100.0, 100.0, 100.0], True),
        ([89.0, 111.0, 100.0, 100.0, 100.0], False),
        ([95.0, 97.5, 100.0, 102.5, 105.0], True),
        ([94.0, 97.0, 100.0, 103.0, 106.0], False),
    ],
)
def test_snias_limits_belong_to_what_is_steady(rounds: list[float], steady: bool) -> None:
    """20 % of range and 10 % of excursion are in, more of either is out."""
    found = snia_of(rounds)
    assert found is not None
    assert found.steady is steady


def test_a_drift_is_level_up_to_five_percent_either_way() -> None:
    assert Slope(0.0, -0.05, 0.05, 300).level
    assert not Slope(0.0, -0.051, 0.05, 300).level
    assert not Slope(0.0, -0.05, 0.051, 300).level


def test_the_change_is_that_of_the_line_from_its_first_second_to_its_last() -> None:
    """100 to 109 in ten seconds is 9 of 104.5; nine seconds are too few, and no rate has no change."""
    found = drift_of([100.0 + second for second in range(10)])
    assert found is not None
    assert (found.change, found.seconds) == (pytest.approx(9 / 104.5), 10)
    assert drift_of([100.0] * 9) is None
    assert drift_of([0.0] * 20) is None


def test_neighbours_that_are_alike_are_worth_fewer_seconds() -> None:
    turns = [1000.0 + (10 if second % 2 else -10) for second in range(400)]
    runs = [1000.0 + (10 if second // 10 % 2 else -10) for second in range(400)]
    narrow, wide = drift_of(turns), drift_of(runs)
    assert narrow is not None
    assert wide is not None
    assert wide.high - wide.low == pytest.approx(3 * (narrow.high - narrow.low), rel=0.05)


@pytest.mark.parametrize("rounds", [[], [1.0] * 4, [0.0] * 5])
def test_snia_says_nothing_of_too_few_rounds_or_of_a_drive_that_stands_still(rounds: list[float]) -> None:
    assert snia_of(rounds) is None


def test_the_interval_is_that_of_the_least_squares_line() -> None:
    """Where neighbours are not alike; scipy is the oracle, and 1.645 the normal law's 95 %."""
    values = [1000.0 + second + (10 if second % 2 else -10) for second in range(50)]
    line = linregress(range(50), values)
    across = 49 / (sum(values) / 50)
    found = drift_of(values)
    assert found is not None
    assert found.change == pytest.approx(line.slope * across)
    assert found.low == pytest.approx((line.slope - 1.6449 * line.stderr) * across, rel=1e-4)
    assert found.high == pytest.approx((line.slope + 1.6449 * line.stderr) * across, rel=1e-4)


@pytest.mark.parametrize(("seconds", "window"), [(299, None), (300, 300), (600, 300), (700, 350)])
def test_drift_is_asked_of_the_last_half_and_at_least_of_five_minutes(seconds: int, window: int | None) -> None:
    found = is_settled([9999.0] * (seconds - 350) + [100.0] * min(seconds, 350))
    assert (None if found is None else found.seconds) == window
    assert found is None or found.change == 0.0


def test_a_settled_series_is_called_level_soon() -> None:
    """Of two hundred noisy level series nearly all by 600 seconds, none before 300."""
    settled = 0
    for seed in range(200):
        values = noisy([1000.0] * 600, seed)
        assert is_settled(values[: FEWEST_SECONDS - 1]) is None
        found = is_settled(values)
        settled += found is not None and found.level
    assert settled >= 195


def test_a_decay_is_hardly_ever_called_level_while_it_is_off() -> None:
    """30 % above the plateau with time constants of 20 to 90 s: stops are judged by the level in their window."""
    wrong = 0
    for seed in range(200):
        tau = random.Random(seed).uniform(20, 90)
        values = noisy([1000.0 * (1 + 0.3 * math.exp(-second / tau)) for second in range(3000)], seed)
        for now in range(FEWEST_SECONDS, 3000, 30):
            found = is_settled(values[:now])
            if found is not None and found.level:
                window = range(now - found.seconds, now)
                bias = sum(0.3 * math.exp(-second / tau) for second in window) / found.seconds
                wrong += bias > 0.03
                break
    assert wrong <= 10


def test_a_cliff_beyond_the_window_is_not_seen_which_is_why_volume_comes_first() -> None:
    """Three times the plateau for 400 s: level so far, and nobody can know better from the series alone."""
    before = is_settled(noisy([3000.0] * 390, 1))
    after = is_settled(noisy([3000.0] * 400 + [1000.0] * 200, 1))
    assert before is not None
    assert before.level
    assert after is not None
    assert not after.level


@pytest.mark.parametrize(("transient", "least", "most"), [(0, 0, 5), (12, 10, 20), (20, 15, 30)])
def test_a_start_up_transient_is_cut_where_it_ends(transient: int, least: int, most: int) -> None:
    values = noisy([500.0] * transient + [1000.0] * (100 - transient), 3, spread=0.01, correlation=0.0)
    assert least <= settled_from(values) <= most


def test_nothing_is_cut_of_a_series_that_never_settles() -> None:
    """A straight rise would lose all but its end."""
    assert settled_from([float(second) for second in range(1, 101)]) == 0


@given(st.lists(st.floats(0, 1e9), max_size=80))
def test_any_series_has_an_answer(values: list[float]) -> None:
    assert 0 <= settled_from(values) <= len(values) / 2
    drift = drift_of(values)
    assert drift is None or drift.low <= drift.change <= drift.high
    snia_of(values)
