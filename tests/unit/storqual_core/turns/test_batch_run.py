# SPDX-License-Identifier: Apache-2.0
"""A block runs by itself to its end, survives what interrupts it, and repeats nothing that was finished."""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storqual_core.host.counters import CounterSnapshot, DiskCounters
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import GuardRefusalError
from storqual_core.kit.lock import LockedError, hold_lock, read_saved
from storqual_core.kit.results import PartialError
from storqual_core.turns import launch_runner
from storqual_core.turns.batch_file import Batch, FileSystemAsk, SwitchStep
from storqual_core.turns.batch_run import BatchOutcome
from storqual_core.turns.fio_job import FioTarget
from storqual_core.turns.launch_runner import LaunchRunner
from storqual_core.turns.spool import Spool
from storqual_core.turns.targets import HeldTargets, Switcher
from tests.support.fake_fio import FileTargets, fake_fio, job, launch, make_block, no_disks, result, spooled

pytestmark = pytest.mark.slow


class Bench:
    """A bench with a fake fio: what it answers, and what was run on it."""

    def __init__(self, folder: Path, script: str = "") -> None:
        self.folder = folder
        self.targets = FileTargets(folder)
        (folder / "out").write_text(result(job(drive="d0")), encoding="utf-8")
        self.calls = folder / "calls"
        self.program = fake_fio(folder, f'echo "$@" >> {self.calls}\n' + (script or f"cat {folder}/out"))
        self.commands: list[list[str]] = []
        self.answers: dict[str, str] = {}

    def block(self, *launches: Mapping[str, Any], **fields: Any) -> Batch:
        return make_block(self.folder / "state", launches, **fields)

    def run(self, block: Batch, **options: Any) -> BatchOutcome:
        usual: dict[str, Any] = {
            "resolve": self.targets,
            "program": self.program,
            "ledger": no_disks,
            "runner": self.command,
        }
        return LaunchRunner(block, **{**usual, **options}).run()

    def command(self, argv: Sequence[str], *, timeout: float = 0.0) -> Completed:
        self.commands.append(list(argv))
        answer = self.answers.get(argv[0], "fio-3.33" if "--version" in argv else "")
        return Completed(tuple(argv), 0, answer, "", 0.0)

    @property
    def fio_calls(self) -> list[str]:
        """The command lines of the fios that ran."""
        return self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench whose fio answers at once."""
    return Bench(tmp_path)


def test_a_block_becomes_one_sample_per_launch_with_its_evidence(bench: Bench) -> None:
    ready: list[int] = []
    block = bench.block(launch(0), launch(1, drives=["d1"], n=2), idle_s=0.05)
    assert bench.run(block, ready=lambda: ready.append(1)) == BatchOutcome("done", "")
    lines = [json.loads(line) for line in block.spool.read_text(encoding="utf-8").splitlines()]
    assert [line["kind"] for line in lines if line["kind"] != "log"] == ["start", "sample", "sample", "end"]
    assert (lines[0]["fio"], lines[-1]["outcome"], ready) == ("fio-3.33", "done", [1])
    first = spooled(block)[0]
    assert {
        key: first[key] for key in ("id", "bench", "adapter", "arm", "configuration", "session", "n", "status")
    } == {
        "id": "s01-b01/0",
        "bench": "bench",
        "adapter": "sym",
        "arm": "baseline",
        "configuration": "baseline",
        "session": "s01",
        "n": 1,
        "status": "ok",
    }
    assert first["primitives"].keys() >= {
        *("read_ios", "overhead_ns", "fio_wall_ns", "idle_wall_ns", "asked_runtime_ns")
    }
    artifacts = next(line["artifacts"] for line in lines if line["kind"] == "sample")
    raw = first["raw"][0]
    data = base64.b64decode(artifacts[raw["path"]])
    assert raw == {"path": f"raw/{hashlib.sha256(data).hexdigest()}.json.gz", "sha256": raw["path"][4:68]}
    assert gzip.decompress(data).decode() == (bench.folder / "out").read_text(encoding="utf-8")


def test_a_launch_has_what_its_sessions_and_paths_counted_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter(({"iscsi_digest_err": 17}, {"iscsi_digest_err": 20}, {}))
    still = {f"d0 {ends}": DiskCounters(5, 40, 5, 40, 0) for ends in ("a to b", "a to c")}
    quiet = CounterSnapshot(0, 1, {}, None, None, None, None, paths=still)
    ran = launch_runner.run_fio
    monkeypatch.setattr(launch_runner, "errors_together", lambda *_: next(counts))
    monkeypatch.setattr(
        launch_runner, "run_fio", lambda *given, **words: replace(ran(*given, **words), before=quiet, after=quiet)
    )
    block = bench.block(launch(0), launch(1))
    bench.run(block)
    first, second = spooled(block)
    assert first["primitives"]["error_iscsi_digest_err"] == 3
    assert first["primitives"]["path_bytes"] == {"a to b": 0, "a to c": 0}
    assert "error_iscsi_digest_err" not in second["primitives"]


def test_progress_says_where_the_block_is(bench: Bench) -> None:
    block = bench.block(launch(0), launch(1, point="last[bs=4k]"))
    bench.run(block)
    said = json.loads(block.progress.read_text(encoding="utf-8"))
    assert (said["block"], said["index"], said["of"], said["point"]) == ("s01-b01", 1, 2, "last[bs=4k]")
    assert said.keys() == {"block", "index", "of", "point", "iops_now", "started", "eta_s"}


def test_both_arms_of_a_launch_get_one_seed(bench: Bench) -> None:
    block = bench.block(launch(0, arm="baseline", n=1), launch(1, arm="candidate", n=1), launch(2, n=2))
    bench.run(block)
    seeds = [sample["seed"] for sample in spooled(block)]
    assert seeds[0] == seeds[1] != seeds[2]
    assert [f"--randseed={seed}" in call for seed, call in zip(seeds, bench.fio_calls, strict=True)] == [True] * 3


def test_a_second_start_repeats_no_finished_sample(bench: Bench) -> None:
    block = bench.block(*(launch(index) for index in range(4)))
    asked = iter([False] * 7)
    assert bench.run(block, stopping=lambda: next(asked, True)).outcome == "stopped"
    done = [sample["id"] for sample in spooled(block)]
    assert 0 < len(done) < 4
    with block.spool.open("ab") as file:
        file.write(b'{"kind": "sample", "sample": {"id": "s01-b01/3"')
    assert bench.run(block).outcome == "done"
    assert [sample["id"] for sample in spooled(block)] == [f"s01-b01/{index}" for index in range(4)]
    assert [line["outcome"] for line in spooled(block, "end")] == ["done"]
    before = block.spool.read_bytes()
    assert bench.run(block).outcome == "done"
    assert block.spool.read_bytes() == before


def test_a_block_of_an_earlier_boot_is_lost_not_continued(bench: Bench) -> None:
    block = bench.block(launch(0), launch(1))
    spool = Spool(block.spool)
    spool.append({"kind": "start", "boot_id": "before", "run": "r1"})
    spool.close()
    end = bench.run(block)
    assert (end.outcome, end.exit_code) == ("lost", 0)
    assert "the batch began in boot before" in end.message
    assert bench.fio_calls == []
    assert spooled(block, "end")[0]["outcome"] == "lost"


def test_a_refusal_of_the_guard_ends_the_block_before_anything_runs(bench: Bench) -> None:
    """Exit status 4, the guard's own words, no fio."""

    @contextmanager
    def refuse(_: Batch) -> Iterator[HeldTargets]:
        raise GuardRefusalError(["drive 0x5 is mounted on /data; unmount it"])
        yield HeldTargets({})

    block = bench.block(launch(0))
    end = bench.run(block, resolve=refuse)
    assert (end.outcome, end.exit_code, end.message) == ("refused", 4, "drive 0x5 is mounted on /data; unmount it")
    assert bench.fio_calls == []
    assert spooled(block, "start") == []


class FileSystemsInFolders:
    """Takes the place of what makes file systems: a folder for each drive, with a file that was written."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench = bench
        self.closed = False
        monkeypatch.setattr("storqual_core.turns.file_systems.FileSystems", self.make)

    def make(self, hold: object, targets: object, disks: object, kit: object, **work: Any) -> "FileSystemsInFolders":
        assert (hold, disks) == (None, {})
        self.work = work
        return self

    def aim(self, drives: Sequence[str], ask: FileSystemAsk | None) -> tuple[list[FioTarget], list[str]]:
        """A file on each drive, or the drive."""
        if ask is None:
            return [FioTarget(drive, f"/dev/{drive}") for drive in drives], []
        files = {drive: FioTarget(drive, f"/fs/{drive}/file", 0, ask.file_bytes, is_file=True) for drive in drives}
        for drive in drives:
            self.work["save"](drive)
        self.work["write_files"](files)
        return list(files.values()), [f"made {ask.kind}"]

    def close(self) -> None:
        self.closed = True


DRIVE = {"wwn": "0x5000c50000000001", "serial": "S0", "model": "ST336607LW", "size": 1 << 20}


def test_a_launch_on_a_file_system_reads_its_file_and_others_read_the_drive(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FileSystemsInFolders(bench, monkeypatch)
    asked = {"kind": "xfs", "file_bytes": 2 << 20}
    block = bench.block(launch(0, file_system=asked), launch(1), targets={"d0": {"claim": DRIVE}, "d1": {}})
    assert block.writes
    assert bench.run(block).outcome == "done"
    write, on_file, on_drive = bench.fio_calls
    assert "--rw=write" in write
    assert "--filename=/fs/d0/file --size=2097152" in write
    assert "--end_fsync=1" in write
    assert "--filename=/fs/d0/file --size=2097152" in on_file
    assert "--readonly" in on_file
    assert "--filename=/dev/d0" in on_drive
    assert [sample["notes"] for sample in spooled(block)] == [["made xfs"], []]
    assert made.closed
    saved = read_saved(block.state_dir)
    assert saved is not None
    assert saved.values == {"claim@d0": {**DRIVE, "wwn": "0x5000c50000000001", "routes": []}, "file_system@d0": None}


def test_two_blocks_never_run_at_once(bench: Bench) -> None:
    block = bench.block(launch(0))
    with (
        hold_lock(bench.folder / "state", "other", "firmware", wait_s=0),
        pytest.raises(LockedError, match="run other, firmware"),
    ):
        bench.run(block)


def test_a_drive_that_vanishes_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    """The launch in which it went is lost, later launches on it too, without a fio; others are measured."""
    bench = Bench(tmp_path)
    (tmp_path / "bad").write_text(result(job(error=2, ios=0, drive="d1")), encoding="utf-8")
    bench.program = fake_fio(
        tmp_path,
        f'echo "$@" >> {bench.calls}\n'
        f'case "$*" in *filename={tmp_path}/d1*) rm -f {tmp_path}/d1; cat {tmp_path}/bad; exit 1;; esac\n'
        f"cat {tmp_path}/out",
    )
    block = bench.block(launch(0), launch(1, drives=["d0", "d1"]), launch(2), launch(3, drives=["d1"]))
    end = bench.run(block)
    samples = spooled(block)
    assert [sample["status"] for sample in samples] == ["ok", "lost", "ok", "lost"]
    assert samples[1]["reason"].startswith(f"drive d1 ({tmp_path}/d1) is gone from the bench since ")
    assert samples[1]["reason"].endswith("d1: No such file or directory (exit status 1)")
    assert samples[3]["suspect"] == [samples[3]["reason"]]
    assert len(bench.fio_calls) == 3
    assert end.outcome == "done"
    assert "drive d1 " in end.message
    assert list(spooled(block, "end")[0]["lost_drives"]) == ["d1"]


def test_a_declared_fallback_is_used_and_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.program = fake_fio(
        tmp_path,
        f'echo "$@" >> {bench.calls}\n'
        'case "$*" in *ioengine=libaio*) echo "fio: engine libaio not loadable"; exit 1;; esac\n'
        f"cat {tmp_path}/out",
    )
    fallback = {"fallback": [{"ioengine": "libaio", "direct": 0}, {"ioengine": "psync", "direct": 0}]}
    block = bench.block(launch(0, fio=fallback), launch(1, fio=fallback), launch(2))
    bench.run(block)
    samples = spooled(block)
    assert [sample["status"] for sample in samples] == ["ok", "ok", "refused"]
    assert samples[0]["notes"] == ["declared fallback: engine psync, direct 0 instead of libaio, direct 1"]
    assert samples[2]["reason"] == "fio did not run (exit status 1): fio: engine libaio not loadable"
    assert len(bench.fio_calls) == 5


SWITCH = {"drive": "d0", "setting": "WCE", "value": 0}


@pytest.fixture
def switched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Any]]:
    """What launches had switched, with the number of fios that ran before; `2` is what the drive does not take."""
    made: list[tuple[int, Any]] = []

    def apply(_self: Switcher, steps: Sequence[SwitchStep]) -> list[str]:
        for step in steps:
            made.append((len(bench.fio_calls), step.value))
            if step.setting == "nomerges" and step.value == 2:
                raise PartialError("d0: drive.nomerges was set to 2 and reads back 0", steps=[], settings=[])
        return [f"seen with {step.value}" for step in steps]

    monkeypatch.setattr(Switcher, "apply", apply)
    monkeypatch.setattr("storqual_core.turns.targets.read_claims", lambda _targets: ())
    return made


def test_a_switch_is_made_before_its_launch(bench: Bench, switched: list[tuple[int, Any]]) -> None:
    block = bench.block(launch(0), launch(1, switch=[SWITCH]), launch(2))
    assert bench.run(block).outcome == "done"
    assert switched == [(1, 0)]
    assert [sample["notes"] for sample in spooled(block)] == [[], ["seen with 0"], []]


def test_a_switch_that_does_not_hold_stops_the_block(bench: Bench, switched: list[tuple[int, Any]]) -> None:
    """A sample under a configuration that is not in effect would be a lie."""
    block = bench.block(launch(0), launch(1, switch=[{**SWITCH, "setting": "nomerges", "value": 2}]), launch(2))
    end = bench.run(block)
    assert (end.outcome, end.exit_code) == ("stopped", 2)
    assert end.message == "d0: drive.nomerges was set to 2 and reads back 0"
    assert len(spooled(block)) == len(switched) == 1


def test_a_block_that_goes_on_makes_the_last_switch_again(bench: Bench, switched: list[tuple[int, Any]]) -> None:
    block = bench.block(launch(0, switch=[{**SWITCH, "value": 1}]), launch(1, switch=[SWITCH]), launch(2))
    spool = Spool(block.spool)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    spool.append({"kind": "start", "boot_id": boot})
    spool.append_all([{"kind": "sample", "sample": {"id": f"s01-b01/{index}"}} for index in (0, 1)])
    spool.close()
    assert bench.run(block).outcome == "done"
    assert switched == [(0, 0)]


def test_a_file_has_nothing_to_switch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storqual_core.turns.targets.read_claims", lambda _targets: ())
    block = bench.block(launch(0, switch=[SWITCH]))
    assert "d0: is not a drive that this batch holds" in bench.run(block).message


def test_all_samples_of_failing_fios_are_kept_with_their_reason(tmp_path: Path) -> None:
    """Refused, short, killed and failed launches are samples too, each with fio's own output."""
    bench = Bench(tmp_path)
    outputs = [
        (result(job(ios=0, runtime_ms=0)), "exit 0"),
        (result(job(runtime_ms=400)), "exit 0"),
        (result(job()), "exit 128"),
        (result(job(error=5)), "exit 1"),
        ("", "kill -9 $$"),
    ]
    for number, (text, _) in enumerate(outputs):
        (tmp_path / f"out{number}").write_text(text, encoding="utf-8")
    cases = "\n".join(f"*bs={512 << n}*) cat {tmp_path}/out{n}; {how};;" for n, (_, how) in enumerate(outputs))
    bench.program = fake_fio(tmp_path, f'case "$*" in {cases} esac')
    block = bench.block(*(launch(n, fio={"bs": 512 << n}) for n in range(len(outputs))))
    assert bench.run(block).outcome == "done"
    samples = spooled(block)
    assert [sample["status"] for sample in samples] == ["refused", "short", "killed", "io_error", "killed"]
    assert all(sample["suspect"][0] == sample["reason"] != "" for sample in samples)
    assert [len(sample["raw"]) for sample in samples] == [2, 2, 2, 2, 1]


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4


def test_memory_stays_flat_and_the_overhead_is_small(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """120 launches: no growth after the first 40, and per launch less than a bare fio costs by itself (0.3 s)."""
    memory: list[int] = []
    block = bench.block(*(launch(index) for index in range(120)))
    original: Callable[..., None] = Spool.append_all

    def counting(self: Spool, records: Sequence[Mapping[str, Any]]) -> None:
        memory.append(resident_kib())
        original(self, records)

    monkeypatch.setattr(Spool, "append_all", counting)
    bench.run(block)
    assert max(memory[40:]) - max(memory[:40]) <= 300
    overheads = sorted(sample["primitives"]["overhead_ns"] for sample in spooled(block))
    assert overheads[len(overheads) // 2] < 0.15e9
    assert overheads[0] > 0


def test_launches_of_a_batch_that_began_beside_other_work_are_suspect_and_the_adapters_log_is_a_finding(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watch:
        """A controller that reads its drives by itself, and complains later."""

        work = ("adapter 0000:3b:00.0 (storcli): a patrol read is under way",)
        unread = ("the log of adapter 0, storcli: odd",)

        def __init__(self, _machine: Any, addresses: Sequence[str], _runner: Any) -> None:
            assert list(addresses) == []

        def findings(self, time: str) -> list[dict[str, Any]]:
            return [
                {"kind": "adapter_fault", "severity": "error", "line": "Removed", "lines": ["Removed"], "time": time}
            ]

    monkeypatch.setattr("storqual_core.turns.launch_runner.AdapterWatch", Watch)
    block = bench.block(launch(0))
    assert bench.run(block).outcome == "done"
    lines = [json.loads(line) for line in block.spool.read_text(encoding="utf-8").splitlines()]
    said = "when the batch began, adapter 0000:3b:00.0 (storcli): a patrol read is under way"
    assert said in spooled(block)[0]["suspect"]
    assert lines[0]["beside"] == {"work": list(Watch.work), "unread": list(Watch.unread)}
    assert [finding["line"] for line in lines if line["kind"] == "log" for finding in line["findings"]] == ["Removed"]
