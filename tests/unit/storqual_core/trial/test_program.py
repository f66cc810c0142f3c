# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from storqual_core.data.faults import Way
from storqual_core.kit.errors import BadInputError, StorqualError
from storqual_core.kit.lock import hold_lock
from storqual_core.trial import program
from storqual_core.trial.program import TrialRun, main, read_trial

if TYPE_CHECKING:
    from pathlib import Path

CLAIM = {"claim": {"wwn": "0x5000c50000000001", "serial": "S1", "model": "M", "size": 1 << 30}}


def trial_file(tmp_path: Path, **changes: Any) -> Path:
    body = {
        "run": "r",
        "state_dir": str(tmp_path),
        "drive": "0x5000c50000000001",
        "adapter": "0000:00:05.0",
        "claims": {"0x5000c50000000001": CLAIM},
        "claimed": ["0x5000c50000000001", "0x5000c50000000002"],
        "tag": "00" * 8,
        "load": {
            "first": 4096,
            "sectors": 8192,
            "workers": 4,
            "sizes": [1, 8],
            "read_share": 0.2,
            "through_share": 0.1,
            "flush_every": 16,
            "seed": 1,
        },
        "way": "sg_reset_bus",
        "scope": "bus",
        "at_s": 1.0,
        "away_s": 1.0,
        "load_s": 6.0,
        "recover_s": 30.0,
        "parts": "all",
        "stream": str(tmp_path / "stream.jsonl"),
        **changes,
    }
    path = tmp_path / "trial.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


def test_a_trial_file_is_read(tmp_path: Path) -> None:
    trial = read_trial(trial_file(tmp_path))
    assert (trial.way, trial.scope, trial.load.sectors, trial.claims[0].serial) == ("sg_reset_bus", "bus", 8192, "S1")
    assert trial.claimed == ("0x5000c50000000001", "0x5000c50000000002")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"way": "pull_the_plug"}, "way: found 'pull_the_plug'"),
        ({"scope": "drive"}, "scope: found 'drive', expected 'bus'"),
        ({"way": "", "scope": "rack"}, "scope: found 'rack'"),
        ({"tag": "00"}, "tag: found 1 bytes"),
        ({"parts": "some"}, "parts: found 'some'"),
        ({"drive": "0x5000c50000000009"}, "expected one that is claimed"),
        ({"load": {}}, "is no trial file"),
    ],
    ids=["way", "narrower", "scope", "tag", "parts", "drive", "load"],
)
def test_a_wrong_trial_file_is_refused_before_anything_is_touched(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    path = trial_file(tmp_path, **changes)
    with pytest.raises(BadInputError) as refused:
        read_trial(path)
    assert told in " ".join(refused.value.problems)
    assert main([str(path)]) == 3
    assert not (tmp_path / "stream.jsonl").exists()


def test_a_trial_does_not_begin_while_another_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storqual_core.trial.program._EARLIER_S", 0.0)
    with hold_lock(tmp_path, "earlier", "trial"):
        assert main([str(trial_file(tmp_path))]) == 2
    lines = [json.loads(line) for line in (tmp_path / "stream.jsonl").read_text(encoding="ascii").splitlines()]
    assert [line["kind"] for line in lines] == ["end"]
    assert "is held by run earlier, trial" in lines[0]["message"]


def test_a_drive_that_is_not_there_is_refused_by_the_guard_and_told_in_the_stream(tmp_path: Path) -> None:
    assert main([str(trial_file(tmp_path))]) == 4
    lines = [json.loads(line) for line in (tmp_path / "stream.jsonl").read_text(encoding="ascii").splitlines()]
    assert [(line["kind"], line["code"], line["ios"]) for line in lines] == [("end", 4, 0)]
    assert "not on the bench" in lines[0]["message"]


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

    def __init__(self, *_: Any) -> None:
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


def test_a_drive_that_stays_away_is_waited_for_from_its_fault_on_and_not_from_the_loads_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, stream = Clock(), FakeStream()
    monkeypatch.setattr(program, "time", clock)
    monkeypatch.setattr(program, "Load", FakeLoad)
    monkeypatch.setattr(program, "read_state", lambda *_: {})
    monkeypatch.setattr(TrialRun, "_follow_log", lambda _self: None)
    path = trial_file(tmp_path, way="", at_s=2.0, away_s=1.0, load_s=7.0, recover_s=30.0)
    (tmp_path / "stream.jsonl.ended").touch()
    assert TrialRun(read_trial(path), cast("Any", stream))._load(cast("Any", FakeDevice(lost=True)))
    assert clock.now == pytest.approx(100.0 + 2.0 + 1.0 + 30.0, abs=0.3)
    assert ("lost", {"text": "the drive was not usable again 30 s after the fault"}) in stream.told


def test_the_second_reading_is_made_of_other_commands_than_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that answers every n-th read wrongly would else be wrong at the same places twice."""
    chunks: list[int] = []

    def read_region(*arguments: int) -> list[tuple[int, int, str, int]]:
        chunks.append(arguments[-1])
        return []

    monkeypatch.setattr(program, "read_region", read_region)
    device = FakeDevice(lost=False)
    TrialRun(read_trial(trial_file(tmp_path)), cast("Any", FakeStream()))._verify(cast("Any", device))
    assert len(set(chunks)) == len(chunks) == 2
    assert device.problems == [0]


def test_what_is_wrong_in_both_readings_is_read_sector_by_sector_until_it_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every seventh read gives what was there before, a sector may be hit in both of the first readings."""
    asked: list[tuple[int, int, int]] = []

    def read_region(_: int, __: bytes, first: int, sectors: int, chunk: int) -> list[tuple[int, int, str, int]]:
        asked.append((first, sectors, chunk))
        wrong = len(asked) < 5 and (sectors > 1 or len(asked) == 3)
        return [(4100, 2, "good", 1)] if sectors > 1 else [(first, 1, "good", 1 if wrong else 2)]

    class Loaded:
        def doubtful(self, first: int, count: int, code: str, sequence: int) -> list[int]:
            return [] if (code, sequence) == ("good", 2) else list(range(first, first + count))

    monkeypatch.setattr(program, "read_region", read_region)
    stream = FakeStream()
    run = TrialRun(read_trial(trial_file(tmp_path)), cast("Any", stream))
    monkeypatch.setattr(run, "_loaded", Loaded())
    run._verify(cast("Any", FakeDevice(lost=False)))
    assert asked[2:] == [(4100, 1, 1), (4101, 1, 1), (4100, 1, 1)]
    assert [line["turn"] for kind, line in stream.told if kind == "found"] == [1, 2, 3, 4]


@pytest.mark.parametrize("turns", [1, 4])
def test_what_is_left_after_the_bench_was_down_is_read_once_its_drive_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    looks: list[int] = []

    def read_drives(_machine: object) -> list[Any]:
        looks.append(1)
        return [SimpleNamespace(id="0x5000c50000000001")] if len(looks) >= turns else []

    def asked(*_: Any, **__: Any) -> None:
        raise StorqualError("asked")

    monkeypatch.setattr(program, "time", Clock())
    monkeypatch.setattr(program, "read_drives", read_drives)
    monkeypatch.setattr(program, "refuse_beyond", asked)
    stream = FakeStream()
    run = TrialRun(read_trial(trial_file(tmp_path, parts="verify", way="")), cast("Any", stream))
    with pytest.raises(StorqualError, match="asked"):
        run.run()
    assert (len(looks), stream.told) == (turns, [])


def test_a_drive_that_is_not_found_after_the_bench_was_down_is_told_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, stream = Clock(), FakeStream()
    monkeypatch.setattr(program, "time", clock)
    monkeypatch.setattr(program, "read_drives", lambda _machine: [])
    TrialRun(read_trial(trial_file(tmp_path, parts="verify", way="")), cast("Any", stream)).run()
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
                (tmp_path / "stream.jsonl.ended").touch()

    clock, stream = Late(), FakeStream()
    monkeypatch.setattr(program, "time", clock)
    monkeypatch.setattr(program, "Load", FakeLoad)
    monkeypatch.setattr(program, "read_state", lambda *_: {})
    monkeypatch.setattr(TrialRun, "_follow_log", lambda _self: None)
    path = trial_file(tmp_path, way="", at_s=2.0, away_s=1.0, load_s=7.0, recover_s=30.0)
    assert TrialRun(read_trial(path), cast("Any", stream))._load(cast("Any", FakeDevice(lost=False)))
    assert clock.now == pytest.approx(ends_at, abs=0.5)


def test_a_fault_may_write_what_the_guard_gives_and_the_load_leaves_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load of the trial file has bytes 2 MiB to 6 MiB, the guard gives 1 MiB to 15 MiB."""
    window = SimpleNamespace(offset=1 << 20, size=14 << 20)
    held = SimpleNamespace(window=lambda _drive: window)
    aims: list[Any] = []
    drive = SimpleNamespace(id="0x5000c50000000001", adapter="0000:00:05.0")
    way = Way("probe", "bench", "drive")
    monkeypatch.setattr(program, "hold", lambda *_, **__: nullcontext(held))
    monkeypatch.setattr(program, "read_drives", lambda _machine: [drive])
    monkeypatch.setattr(program, "WAYS", {"probe": (None, way)})
    monkeypatch.setattr(program, "ACTS", {"probe": lambda aim, _tell: aims.append(aim)})
    run = TrialRun(read_trial(trial_file(tmp_path, way="probe", scope="drive")), cast("Any", FakeStream()))
    with run._holder():
        run._bring_about()
    assert [aim.spare for aim in aims] == [(6 << 20, 9 << 20)]


@pytest.mark.parametrize("way", ["probe", "layer"])
def test_a_load_goes_through_a_layer_only_for_a_way_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    window = SimpleNamespace(offset=1 << 20, size=14 << 20)
    held = SimpleNamespace(window=lambda _drive: window)
    drive = SimpleNamespace(id="0x5000c50000000001", adapter="0000:00:05.0")
    ways = {name: (None, Way(name, "bench", "drive", layered=name == "layer")) for name in ("probe", "layer")}
    monkeypatch.setattr(program, "hold", lambda *_, **__: nullcontext(held))
    monkeypatch.setattr(program, "read_drives", lambda _machine: [drive])
    monkeypatch.setattr(program, "WAYS", ways)
    monkeypatch.setattr(program, "ACTS", dict.fromkeys(ways))
    monkeypatch.setattr(program, "layered", lambda over, of, *_: nullcontext(("layer", over is held, of is drive)))
    run = TrialRun(read_trial(trial_file(tmp_path, way=way, scope="drive")), cast("Any", FakeStream()))
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
    drive = SimpleNamespace(id="0x5000c50000000001", adapter="0000:00:05.0", name="sda", host="host2", hctl="2:0:0:0")
    way = Way("probe", "bench", "adapter", needs="/sys")

    class Held(FakeDevice):
        node = "/dev/sda"

        def __init__(self, _drive: str, holder: Any, _told: Any) -> None:
            super().__init__(lost=False)
            with holder():
                pass

        def close(self, _limit_s: float) -> bool:
            return True

    monkeypatch.setattr(program, "hold", lambda *_, **__: nullcontext(held))
    monkeypatch.setattr(program, "HeldDevice", Held)
    monkeypatch.setattr(program, "read_drives", lambda _machine: [drive])
    monkeypatch.setattr(program, "WAYS", {"probe": (None, way)})
    monkeypatch.setattr(program, "ACTS", {"probe": None})
    monkeypatch.setattr(program, "AFTER", {"probe": look})
    monkeypatch.setattr(program, "refuse_beyond", lambda *_, **__: ["0x5000c50000000001"])
    monkeypatch.setattr(program, "read_disks", lambda *_, **__: SimpleNamespace(boot_id="boot-2"))
    monkeypatch.setattr(program, "end_line", lambda *_: {})
    monkeypatch.setattr(TrialRun, "_load", lambda _self, _device: False)
    monkeypatch.setattr(TrialRun, "_verify", lambda self, _device: self._stream.line("found"))
    stream = FakeStream()
    TrialRun(read_trial(trial_file(tmp_path, way="probe", scope="adapter", parts=parts)), cast("Any", stream)).run()
    return stream


def test_what_a_fault_left_that_took_the_bench_down_is_looked_for_before_anything_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = left(tmp_path, monkeypatch, "verify")
    assert ("seen", {"seen": "dumped", "text": f"{'00' * 8} from byte {6 << 20}"}) in stream.told
    assert [kind for kind, _ in stream.told] == ["begin", "seen", "found", "disks"]


def test_what_a_fault_left_is_not_looked_for_on_the_boot_of_its_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [kind for kind, _ in left(tmp_path, monkeypatch, "all").told] == ["begin", "disks"]


def test_that_nothing_was_left_is_told_and_the_rest_is_read_back_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = left(tmp_path, monkeypatch, "verify", "no dump lies there")
    assert ("fault", {"phase": "failed", "text": "no dump lies there"}) in stream.told
    assert stream.told[-2][0] == "found"
