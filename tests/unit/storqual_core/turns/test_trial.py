# SPDX-License-Identifier: Apache-2.0

import errno
import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from storqual.kinds.oracle import Oracle
from storqual_core.kit.errors import BadInputError, StorqualError, ToolError
from storqual_core.kit.lock import LockedError, hold_lock
from storqual_core.kit.machine import Machine
from storqual_core.turns import spool, subject, trial
from storqual_core.turns.batch_file import Batch, parse_batch, read_batch_file
from storqual_core.turns.batch_run import TurnRunner
from storqual_core.turns.integrity_load import SweepRequest
from storqual_core.turns.main import main
from storqual_core.turns.requests import TrialRequest
from storqual_core.turns.scsi_command import LackingError
from storqual_core.turns.subject import TurnSubject
from storqual_core.turns.trial import TrialRun
from tests.support.batches import DRIVE, OTHER, drive_batch


@pytest.fixture(autouse=True)
def streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where streams lie, in place of `/run`."""
    monkeypatch.setattr(spool, "STREAMS", tmp_path)
    return tmp_path


def batch(tmp_path: Path, **changes: Any) -> Batch:
    return parse_batch(json.dumps(drive_batch("trial", tmp_path, **changes)))


def trial_run(tmp_path: Path, stream: "FakeStream", **changes: Any) -> TrialRun:
    subject = TurnSubject(batch(tmp_path, **changes), cast("Any", stream), Machine())
    assert isinstance(subject.turn.request, TrialRequest)
    return TrialRun(subject, subject.turn.request)


def test_the_request_of_a_trial_is_read(tmp_path: Path) -> None:
    read = batch(tmp_path)
    (turn,) = read.on_drives
    assert isinstance(turn.request, TrialRequest)
    assert (turn.drive, turn.request.way, turn.request.scope) == (DRIVE, "sg_reset_bus", "bus")
    # the load goes on for its whole time after the fault
    assert (turn.request.load.sectors, turn.request.load_s) == (8192, 6.0)
    assert list(read.targets) == [DRIVE, OTHER]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"way": "pull_the_plug"}, "way: found 'pull_the_plug'"),
        ({"part": "some"}, "part: found 'some'"),
        ({"pci": ""}, "pci: found ''"),
        ({"load": {}}, "load: found '{}', expected a mapping of first, flush_every"),
        ({"at_s": "soon"}, "at_s: found 'soon'"),
        ({"expect": {}}, "expect: recovery: found 'None'"),
        ({"moment": 1}, "moment: found 'moment'"),
    ],
    ids=["way", "part", "pci", "load", "time", "recovery", "unknown"],
)
def test_a_wrong_trial_is_refused_before_anything_is_touched(
    tmp_path: Path, streams: Path, changes: dict[str, Any], told: str
) -> None:
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(drive_batch("trial", tmp_path, **changes)), encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        read_batch_file(path)
    assert told in " ".join(refused.value.problems)
    assert main(["run", str(path)]) == 3
    assert not (streams / "r").exists()


def test_a_trial_does_not_begin_while_another_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storqual_core.kit.lock._SETTLE_S", 0.0)
    with hold_lock(tmp_path, "earlier", "trial"), pytest.raises(LockedError, match="held by run earlier, trial"):
        TurnRunner(batch(tmp_path)).run()


def test_a_drive_that_is_not_there_is_refused_by_the_guard_and_told_in_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(drive_batch("trial", tmp_path)), encoding="utf-8")
    assert main(["run", str(path)]) == 4
    text = read_batch_file(path).spool.read_text(encoding="ascii")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["kind"] for line in lines] == ["start", "end"]
    assert (lines[1]["outcome"], lines[1]["ios"]) == ("refused", 0)
    assert "not on the bench" in lines[1]["message"]
    assert lines[1]["disks"]


class Clock:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeLoad:
    """A load to which nothing happens."""

    ledger = None

    def __init__(self, *_: Any, **_more: object) -> None:
        pass

    def fill(self) -> int:
        return 0

    def start(self) -> None:
        pass

    def stop(self, _limit_s: float) -> bool:
        return True


class FakeDevice:
    """A drive that has gone for good, or one that is there."""

    def __init__(self, *, lost: bool) -> None:
        self.lost = lost
        self.problems: list[int] = []

    def use(self) -> int:
        return 5

    def done(self, problem: int) -> None:
        self.problems.append(problem)

    def give_up(self) -> None:
        pass


class FakeStream:
    """Keeps what is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def line(self, kind: str, **fields: Any) -> None:
        self.told.append((kind, fields))

    def tell(self, *_: Any) -> None:
        pass

    def send(self) -> None:
        pass


def tell_end(run: TrialRun) -> None:
    """The control node tells that its fault has ended."""
    spool_file = run._subject.batch.spool
    spool_file.parent.mkdir(parents=True, exist_ok=True)
    spool_file.with_name(f"{spool_file.name}{trial.ENDED}").touch()


def pretend(monkeypatch: pytest.MonkeyPatch, ways: dict[str, SimpleNamespace]) -> None:
    """Let there be ways that only a test knows."""
    monkeypatch.setattr(trial, "WAYS", {name: (None, way) for name, way in ways.items()})
    monkeypatch.setattr(trial, "ACTS", {name: getattr(way, "bring", None) for name, way in ways.items()})
    monkeypatch.setattr(trial, "AFTER", {name: way.after for name, way in ways.items() if hasattr(way, "after")})


def probing(tmp_path: Path, stream: FakeStream, *, part: str = "all", **changes: Any) -> TrialRun:
    """A trial of a way that only a test knows."""
    run = trial_run(tmp_path, stream, part=part)
    return TrialRun(run._subject, replace(run._trial, **changes))


def test_a_drive_that_stays_away_is_waited_for_from_its_fault_on_and_not_from_the_loads_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, stream = Clock(), FakeStream()
    monkeypatch.setattr(trial, "time", clock)
    monkeypatch.setattr(trial, "LoadWorkers", FakeLoad)
    monkeypatch.setattr(TurnSubject, "tell_state", lambda *_, **_kept: None)
    monkeypatch.setattr(TrialRun, "_follow_log", lambda _self: None)
    run = trial_run(tmp_path, stream, way="qmp_unplug", at_s=2.0, away_s=1.0, load_s=6.0)
    tell_end(run)
    assert run._load(cast("Any", FakeDevice(lost=True)))
    assert clock.now == pytest.approx(100.0 + 2.0 + 1.0 + 30.0, abs=0.3)
    assert ("lost", {"text": "the drive was not usable again 30 s after the fault"}) in stream.told


@pytest.mark.parametrize("ends", [True, False])
def test_a_drive_on_which_an_io_never_ended_is_sent_no_command_to_tell_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    aims: list[str] = []
    monkeypatch.setattr(subject, "read_state", lambda *words: aims.append(words[-1]))
    monkeypatch.setattr(trial, "LoadWorkers", FakeLoad)
    monkeypatch.setattr(FakeLoad, "stop", lambda *_: ends)
    monkeypatch.setattr(TrialRun, "_follow_log", lambda _self: None)
    run = trial_run(tmp_path, FakeStream(), load_s=0.0, at_s=0.0, way="qmp_unplug")
    tell_end(run)
    assert run._load(cast("Any", FakeDevice(lost=False))) is ends
    assert aims == [DRIVE, DRIVE if ends else ""]


@pytest.mark.parametrize(
    ("way", "fua", "scsi", "sent"),
    [
        ("qmp_log_writes", True, True, True),
        ("qmp_log_writes", False, True, False),
        ("qmp_log_writes", True, False, False),
        ("qmp_unplug", True, True, False),
    ],
)
def test_commands_with_fua_are_sent_where_the_fault_ends_none_and_the_drive_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, fua: bool, scsi: bool, sent: bool
) -> None:
    """The kernel would not send a command again that a fault has ended."""
    loads: list[object] = []

    class Load(FakeLoad):
        def __init__(self, *_: Any, sends_fua: bool) -> None:
            loads.append(sends_fua)

        def fill(self) -> int:
            return errno.EIO

    monkeypatch.setattr(trial, "LoadWorkers", Load)
    monkeypatch.setattr(TurnSubject, "tell_state", lambda *_, **_kept: None)
    run = trial_run(tmp_path, FakeStream(), way=way)
    run._limits = replace(run._limits, fua=fua, scsi=scsi)
    assert not run._load(cast("Any", FakeDevice(lost=False)))
    assert loads == [sent]


def test_the_second_reading_is_made_of_other_commands_than_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that answers every n-th read wrongly would else be wrong at the same places twice."""
    chunks: list[int] = []

    def read_region(*arguments: int) -> list[tuple[int, int, str, int]]:
        chunks.append(arguments[-2])
        return []

    monkeypatch.setattr(trial, "read_region", read_region)
    device = FakeDevice(lost=False)
    trial_run(tmp_path, FakeStream())._verify(cast("Any", device))
    assert len(set(chunks)) == len(chunks) == 2
    assert device.problems == [0, 0]


def test_what_is_wrong_in_both_readings_is_read_sector_by_sector_until_it_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every seventh read gives what was there before, a sector may be hit in both of the first readings."""
    asked: list[tuple[int, int, int]] = []

    def read_region(
        _: int, __: bytes, first: int, sectors: int, chunk: int, ___: int
    ) -> list[tuple[int, int, str, int]]:
        asked.append((first, sectors, chunk))
        wrong = len(asked) < 5 and (sectors > 1 or len(asked) == 3)
        return [(4100, 2, "good", 1)] if sectors > 1 else [(first, 1, "good", 1 if wrong else 2)]

    class Known:
        def doubtful(self, first: int, count: int, code: str, sequence: int) -> list[int]:
            return [] if (code, sequence) == ("good", 2) else list(range(first, first + count))

    monkeypatch.setattr(trial, "read_region", read_region)
    stream = FakeStream()
    run = trial_run(tmp_path, stream)
    monkeypatch.setattr(run, "_ledger", Known())
    run._verify(cast("Any", FakeDevice(lost=False)))
    assert asked[2:] == [(4100, 1, 1), (4101, 1, 1), (4100, 1, 1)]
    assert [line["turn"] for kind, line in stream.told if kind == "found"] == [1, 2, 3, 4]


def test_what_stays_wrong_is_read_no_further_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        trial, "read_region", lambda _fd, _tag, first, sectors, *_: [(first, sectors, "corrupted", 0)]
    )
    stream = FakeStream()
    run = trial_run(tmp_path, stream)
    known = SimpleNamespace(doubtful=lambda first, count, *_: range(first, first + count))
    monkeypatch.setattr(run, "_ledger", known)
    run._verify(cast("Any", FakeDevice(lost=False)))
    assert {line["turn"] for kind, line in stream.told if kind == "found"} == {1, 2, 3}


class FakeSweep:
    """A sweep with an I/O that takes `waits` seconds of the clock, and what it raises then."""

    failed_with = 0

    def __init__(self, clock: Clock, waits: float, raises: Exception | None = None) -> None:
        self._clock, self._waits, self._raises = clock, waits, raises
        self._ended = threading.Event()

    def run(self, *_: Any) -> None:
        if self._waits:
            self._ended.wait(60)
        if self._raises:
            raise self._raises

    def waits_s(self) -> float:
        self._clock.sleep(50.0)
        if self._clock.now - 100.0 > self._waits:
            self._ended.set()
        return 0.0 if self._ended.is_set() else self._clock.now - 100.0


@pytest.mark.parametrize(("waits", "hung"), [(0.0, False), (100.0, False), (1e9, True)])
def test_an_io_of_a_sweep_that_never_ends_is_told_and_the_bench_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: float, hung: bool
) -> None:
    monkeypatch.setattr(trial, "_LOG_S", 0.001)
    stream, device = FakeStream(), FakeDevice(lost=False)
    sweep = FakeSweep(Clock(), waits)
    assert trial_run(tmp_path, stream)._is_hung(cast("Any", sweep), cast("Any", device)) is hung
    assert [kind for kind, _ in stream.told] == ["hung"] * hung
    # who has it in use is not done with it
    assert device.problems == [0] * (not hung)
    sweep._ended.set()


def test_what_a_sweep_raises_is_raised(tmp_path: Path) -> None:
    sweep = FakeSweep(Clock(), 0.0, BadInputError(["no room"]))
    with pytest.raises(BadInputError):
        trial_run(tmp_path, FakeStream())._is_hung(cast("Any", sweep), cast("Any", FakeDevice(lost=False)))


@pytest.mark.parametrize("turns", [1, 4])
def test_what_is_left_after_the_bench_was_down_is_read_once_its_drive_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    looks: list[int] = []

    def drive(_self: TurnSubject) -> Any:
        looks.append(1)
        return SimpleNamespace(id=DRIVE) if len(looks) >= turns else None

    def asked(_self: TurnSubject, _scope: str) -> None:
        raise StorqualError("asked")

    monkeypatch.setattr(trial, "time", Clock())
    monkeypatch.setattr(TurnSubject, "drive", drive)
    monkeypatch.setattr(TurnSubject, "refuse_beyond", asked)
    stream = FakeStream()
    run = trial_run(tmp_path, stream, part="verify", way="qmp_unplug")
    with pytest.raises(StorqualError, match="asked"):
        run.run()
    assert (len(looks), stream.told) == (turns, [])


def test_a_drive_that_is_not_found_after_the_bench_was_down_is_told_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, stream = Clock(), FakeStream()
    monkeypatch.setattr(trial, "time", clock)
    monkeypatch.setattr(TurnSubject, "drive", lambda _self: None)
    trial_run(tmp_path, stream, part="verify", way="qmp_unplug").run()
    assert stream.told == [("lost", {"text": "the drive was not found within 30 s of the bench's start"})]
    assert clock.now == pytest.approx(130.0, abs=0.3)


@pytest.mark.parametrize(("told_at", "ends_at"), [(112.0, 116.0), (None, 141.0)], ids=["late", "never"])
def test_a_load_goes_on_until_the_control_nodes_fault_has_ended_and_for_some_time_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_at: float | None, ends_at: float
) -> None:
    """A control node under load may be slow to bring its fault about; that it never tells is waited out once."""

    class Late(Clock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if told_at is not None and self.now >= told_at:
                tell_end(run)

    clock, stream = Late(), FakeStream()
    monkeypatch.setattr(trial, "time", clock)
    monkeypatch.setattr(trial, "LoadWorkers", FakeLoad)
    monkeypatch.setattr(TurnSubject, "tell_state", lambda *_, **_kept: None)
    monkeypatch.setattr(TrialRun, "_follow_log", lambda _self: None)
    run = trial_run(tmp_path, stream, way="qmp_unplug", at_s=2.0, away_s=1.0, load_s=6.0)
    assert run._load(cast("Any", FakeDevice(lost=False)))
    assert clock.now == pytest.approx(ends_at, abs=0.5)


def test_a_fault_may_write_what_the_guard_gives_and_the_load_leaves_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load of the trial file has bytes 2 MiB to 6 MiB, the guard gives 1 MiB to 15 MiB."""
    window = SimpleNamespace(offset=1 << 20, size=14 << 20)
    held = SimpleNamespace(window=lambda _drive: window)
    aims: list[Any] = []
    drive = SimpleNamespace(id=DRIVE, adapter="0000:00:05.0", name="sda", host="host2", hctl="2:0:0:0")
    way = SimpleNamespace(scope="drive", layered=False, bring=lambda aim, _tell: aims.append(aim))
    monkeypatch.setattr(TurnSubject, "hold", lambda _self: nullcontext(held))
    monkeypatch.setattr(TurnSubject, "drive", lambda _self: drive)
    pretend(monkeypatch, {"probe": way})
    run = probing(tmp_path, FakeStream(), way="probe", scope="drive")
    with run._holder():
        run._bring_about()
    assert [aim.spare for aim in aims] == [(6 << 20, 9 << 20)]


@pytest.mark.parametrize("way", ["probe", "layer"])
def test_a_load_goes_through_a_layer_only_for_a_way_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    window = SimpleNamespace(offset=1 << 20, size=14 << 20)
    held = SimpleNamespace(window=lambda _drive: window)
    drive = SimpleNamespace(id=DRIVE, adapter="0000:00:05.0", name="sda", host="host2", hctl="2:0:0:0")
    ways = {name: SimpleNamespace(scope="drive", layered=name == "layer") for name in ("probe", "layer")}
    monkeypatch.setattr(TurnSubject, "hold", lambda _self: nullcontext(held))
    monkeypatch.setattr(TurnSubject, "drive", lambda _self: drive)
    pretend(monkeypatch, ways)
    monkeypatch.setattr(trial, "layered", lambda over, of, *_: nullcontext(("layer", over is held, of is drive)))
    run = probing(tmp_path, FakeStream(), way=way, scope="drive")
    with run._holder() as given:
        assert given == (held if way == "probe" else ("layer", True, True))


def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: str, problem: str = "") -> FakeStream:
    """What is told of a way that looks for its proof, in these parts of its trial."""

    def look(aim: Any, tell: Any) -> None:
        tell("dumped", f"{aim.tag} from byte {aim.spare[0]}")
        if problem:
            raise StorqualError(problem)

    window = SimpleNamespace(offset=1 << 20, size=14 << 20)
    held = SimpleNamespace(window=lambda _drive: window)
    drive = SimpleNamespace(id=DRIVE, adapter="0000:00:05.0", name="sda", host="host2", hctl="2:0:0:0")
    way = SimpleNamespace(scope="adapter", layered=False, needs="/sys", after=look, bring=None)

    class Held(FakeDevice):
        node = "/dev/sda"

        def __init__(self, _drive: str, holder: Any, _told: Any) -> None:
            super().__init__(lost=False)
            with holder():
                pass

        def close(self, _limit_s: float) -> bool:
            return True

    monkeypatch.setattr(TurnSubject, "hold", lambda _self: nullcontext(held))
    monkeypatch.setattr(trial, "HeldDevice", Held)
    monkeypatch.setattr(TurnSubject, "drive", lambda _self: drive)
    pretend(monkeypatch, {"probe": way})
    monkeypatch.setattr(TurnSubject, "refuse_beyond", lambda *_: [DRIVE])
    monkeypatch.setattr(TrialRun, "_load", lambda _self, _device: False)
    monkeypatch.setattr(TrialRun, "_verify", lambda self, _device: self._stream.line("found"))
    stream = FakeStream()
    probing(tmp_path, stream, part=parts, way="probe", scope="adapter").run()
    return stream


def test_what_a_fault_left_that_took_the_bench_down_is_looked_for_before_anything_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = left(tmp_path, monkeypatch, "verify")
    assert ("seen", {"seen": "dumped", "text": f"{'00' * 8} from byte {6 << 20}"}) in stream.told
    assert [kind for kind, _ in stream.told] == ["begin", "seen", "found"]


def test_what_a_fault_left_is_not_looked_for_on_the_boot_of_its_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [kind for kind, _ in left(tmp_path, monkeypatch, "all").told] == ["begin"]


def test_that_nothing_was_left_is_told_and_the_rest_is_read_back_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = left(tmp_path, monkeypatch, "verify", "no dump lies there")
    assert ("fault", {"phase": "failed", "text": "no dump lies there"}) in stream.told
    assert stream.told[-1][0] == "found"


@pytest.mark.parametrize("adapters", [("a", "a"), ("a", "b")])
def test_drives_that_are_busy_at_the_same_time_are_told_with_their_adapters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adapters: tuple[str, str]
) -> None:
    monkeypatch.setattr(trial, "LoadWorkers", FakeLoad)
    monkeypatch.setattr(FakeLoad, "ledger", SimpleNamespace(extents=()))
    placed = zip((DRIVE, OTHER, "idle"), (*adapters, "c"), strict=True)
    seen = [SimpleNamespace(id=name, adapter=adapter) for name, adapter in placed]
    monkeypatch.setattr(trial, "read_drives", lambda _: seen)
    stream = FakeStream()
    run = trial_run(tmp_path, stream)
    sweep = SweepRequest((), (), 8, (), (OTHER,), 0, 9.0)
    run._trial = replace(run._trial, load_s=0.0, load=replace(run._trial.load, sweep=sweep))
    beside = FakeDevice(lost=False)
    beside.close = lambda _: True  # type: ignore[attr-defined]
    monkeypatch.setattr(run, "_beside", lambda _, load: (beside, 1, load))
    with ExitStack() as stack:
        assert not run._crowd(cast("Any", FakeDevice(lost=False)), stack, [], count(1))
    rows = [row for kind, fields in stream.told if kind == "rows" for row in fields["rows"]]
    assert [row[1] for row in rows] == [["together", "2 drives", f"adapters: {len(set(adapters))}"]]
    assert any(kind == "lacks" for kind, _ in stream.told) == (len(set(adapters)) == 1)


def layered_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: Any
) -> tuple[FakeStream, list[Any], TrialRun]:
    """A trial of a load with a layer on top, a file in place of it; its stream, and its I/Os."""
    stream, ios = FakeStream(), []
    monkeypatch.setattr(stream, "tell", lambda *io: ios.append(list(io)))
    monkeypatch.setattr(subject.os, "O_DIRECT", 0)
    monkeypatch.setattr(TurnSubject, "drive", lambda _: SimpleNamespace(id=DRIVE))
    monkeypatch.setattr(TurnSubject, "hold", lambda _: nullcontext("held"))
    monkeypatch.setattr(trial, "layer_on", layer)
    run = trial_run(tmp_path, stream)
    run._trial = replace(run._trial, load_s=0.1, load=replace(run._trial.load, sectors=1024, sizes=(1, 8)))
    return stream, ios, run


@pytest.mark.parametrize("damaged", [False, True])
def test_what_lies_on_top_of_the_drive_is_loaded_and_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1024 * 512))
    story: list[str] = []

    @contextmanager
    def layer(name: str, held: object, *_: Any) -> Iterator[str]:
        story.append(f"{name} {held}")
        yield str(path)

    stream, ios, run = layered_trial(tmp_path, monkeypatch, layer)

    @contextmanager
    def away() -> Iterator[None]:
        story.append("away")
        yield

    if damaged:
        real = trial.read_region

        def read(descriptor: int, *rest: Any) -> Any:
            os.pwrite(descriptor, b"?", 77 * 512 + 100)
            return real(descriptor, *rest)

        monkeypatch.setattr(trial, "read_region", read)
    run._layer("crypt", cast("Any", SimpleNamespace(away=away)), count(1))
    assert story == ["away", "crypt held"]
    oracle = Oracle()
    oracle.take(ios)
    found = [run for kind, line in stream.told if kind == "found" and line["turn"] == 1 for run in line["runs"]]
    told = [one.sentence for one in oracle.judge(found, "acknowledged")]
    assert (oracle.missing(found), oracle.wrong_reads, bool(told)) == (0, [], damaged)
    assert not damaged or "corrupted: 1 sectors at 77 of crypt on top of the drive" in told[0]


@pytest.mark.parametrize(
    ("problem", "kind"), [(LackingError("no such target"), "lacks"), (ToolError("it cannot be mounted"), "fault")]
)
def test_a_layer_that_the_bench_has_not_is_told_and_one_that_fails_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, kind: str
) -> None:
    @contextmanager
    def layer(*_: Any) -> Iterator[str]:
        raise problem
        yield ""

    stream, _, run = layered_trial(tmp_path, monkeypatch, layer)
    run._layer("btrfs", cast("Any", SimpleNamespace(away=nullcontext)), count(1))
    ((told, fields),) = stream.told
    assert told == kind
    assert str(problem) in str(fields)
