# SPDX-License-Identifier: Apache-2.0
"""Physics on the virtual bench: what the methods find where the truth is known beforehand."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from storqual.study.demand import growths
from storqual.study.points import points_of_runs
from storqual.study.settings import setting_studies
from tests.support.live_bench import BIN, REPOSITORY, over_ssh, play, powered_on, qualified

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

INVENTORY = REPOSITORY / "inventories" / "virtual_methods"

CHANNELS = Path(__file__).with_suffix(".channels").read_text(encoding="utf-8")


FILES = Path(__file__).with_suffix(".files").read_text(encoding="utf-8")

DEPTH = Path(__file__).with_suffix(".depth").read_text(encoding="utf-8")

SETTINGS = Path(__file__).with_suffix(".settings").read_text(encoding="utf-8")

CACHED = Path(__file__).with_suffix(".cached").read_text(encoding="utf-8")

COMMANDS = Path(__file__).with_suffix(".commands").read_text(encoding="utf-8")

GROWING = Path(__file__).with_suffix(".growing").read_text(encoding="utf-8")

STRIPED = Path(__file__).with_suffix(".striped").read_text(encoding="utf-8")

CACHES = Path(__file__).with_suffix(".caches").read_text(encoding="utf-8")

LOOK = (
    "ls -d /sys/block/sd*/sd* /sys/block/md*/md*p* 2>/dev/null; grep -c storqual /proc/mounts; "
    "ls -d /var/lib/storqual/saved.json /run/storqual/*/ 2>/dev/null; true"
)
"""Parts of drives and volumes, mounts, what waits to be restored, mount points."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for runs, with the bench of the methods powered on."""
    folder = tmp_path_factory.mktemp("runs")
    with powered_on(folder / "power.log", INVENTORY):
        yield folder


def on_bench(command: str) -> str:
    """What a command on the bench of the methods says."""
    return over_ssh(REPOSITORY / ".cache" / "bench" / "vmethods", "vmethods", command, limit_s=1200)


def passed(runs: Path, folder: Path, name: str, suite: str, adapter: str = "sym", candidate: str = "stable") -> Path:
    """The run of a suite that passed; on the adapter with two channels, unless another is named."""
    file = folder / f"{name}.suite.yml"
    file.write_text(suite, encoding="utf-8")
    words = ("--candidate", candidate, "--suite", file, "--adapters", adapter)
    code, output, run = qualified(folder / "runs", INVENTORY, *words)
    assert code == 0, output
    return run


def test_files_on_xfs_and_ext4_are_read_at_the_drives_rate_and_nothing_is_left(runs: Path, tmp_path: Path) -> None:
    run = passed(runs, tmp_path, "files", FILES)
    points = {(point.levels["target"], point.levels["direct"]): point for point in points_of_runs([run])}
    assert set(points) == {(target, direct) for target in ("xfs", "ext4", "raw") for direct in (True, False)}
    assert all(len(point.launches) == 2 for point in points.values())
    assert on_bench(LOOK).split() == ["0"]
    code, output = play(runs / "preflight.log", INVENTORY, "preflight.yml")
    assert code == 0, output


def test_a_file_on_a_striped_volume_is_read_at_the_rate_of_its_drives_and_nothing_is_left(
    runs: Path, tmp_path: Path
) -> None:
    """Four drives of 6 MiB a second; a request of a MiB is sixteen strips, four of each drive."""
    run = passed(runs, tmp_path, "striped", STRIPED, candidate="stable-volume")
    points = {tuple(point.levels.values()): point for point in points_of_runs([run])}
    one = points["raw",].mean("throughput_mib_s")
    assert one == pytest.approx(6, rel=0.15)
    for target in ("volume", "xfs_on_volume", "ext4_on_volume"):
        assert 2.5 * one < points[target,].mean("throughput_mib_s") < 4.2 * one, target
        assert len(points[target,].drives) == 4
    # a request of one strip is one drive's, and zones that begin on the same drive go round the drives in step
    for readers in (1, 4):
        assert points[readers,].mean("throughput_mib_s") > 1.5 * one
    assert on_bench(LOOK).split() == ["0"]
    assert on_bench("grep -h ^md /proc/mdstat; true") == ""
    code, output = play(runs / "preflight.log", INVENTORY, "preflight.yml")
    assert code == 0, output


@pytest.mark.parametrize(
    ("text", "drop"), [(FILES, "stable"), (STRIPED, "stable-volume")], ids=["of drives", "of a volume"]
)
def test_a_killed_block_on_a_file_system_leaves_no_mount_and_its_restore_no_part(
    runs: Path, tmp_path: Path, text: str, drop: str
) -> None:
    suite = tmp_path / "files.suite.yml"
    suite.write_text(text.replace("launches: 2", "launches: 6"), encoding="utf-8")
    here = tmp_path / "runs"
    words = ("-i", INVENTORY, "--candidate", drop, "--suite", suite, "--adapters", "sym", "--runs", here)
    with (runs / "killed.log").open("wb") as stream:
        job = subprocess.Popen(
            [str(BIN / "storqual"), "qualify", *map(str, words)],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
        try:
            mounted = "until grep -qs ' /run/storqual/' /proc/[0-9]*/mountinfo; do sleep 0.2; done; cat {}"
            holder = on_bench(f'timeout 1100 sh -c "{mounted.format("/var/lib/storqual/lock")}"')
            process = json.loads(holder)["pid"]
            on_bench(f"kill -9 {process}; while [ -d /proc/{process} ]; do sleep 0.1; done")
            left = on_bench(LOOK).split()
            assert "0" in left
            assert left[-1] == "/var/lib/storqual/saved.json"
        finally:
            job.wait(timeout=1500)
    assert on_bench(LOOK).split() == ["0"]


def test_a_queue_depth_sweep_follows_littles_law(runs: Path, tmp_path: Path) -> None:
    """A throttled drive serves one I/O every 10 ms: what is outstanding is the rate times the response time.

    The rate does not grow with the depth, and the suite's own study says so.
    """
    run = passed(runs, tmp_path, "depth", DEPTH)
    for point in points_of_runs([run]):
        depth, rate, response = point.levels["iodepth"], point.mean("iops"), point.mean("latency_mean_us")
        assert rate == pytest.approx(100, rel=0.1)
        assert response is not None
        assert rate * response / 1e6 == pytest.approx(depth, rel=0.1), point.point
    (growth,) = [one for one in growths(points_of_runs([run])) if one.line.along == "iodepth"]
    assert growth.scaling.linear_to == 1


def test_the_mode_page_study_puts_the_write_cache_first_and_calls_the_planted_setting_neutral(
    runs: Path, tmp_path: Path
) -> None:
    """Every command takes 20 ms: written through, a write takes a flush of its own, and half the rate is left.

    A write that is followed by a flush anyhow, and a read, are the same with and without the write cache; the page
    cache's read-ahead is nothing to direct I/O.
    """
    run = passed(runs, tmp_path, "settings", SETTINGS, "symb")
    found = {one.workload: one for one in setting_studies(points_of_runs([run]), margin=0.1) if one.metric == "iops"}
    first, second = found["write"].effects
    assert (first.setting, first.influence) == ("drive.WCE", "worse"), found["write"].sentences
    assert first.shift.low is not None
    assert first.shift.high is not None
    assert -0.55 < first.shift.low < first.shift.high < -0.4, found["write"].sentences
    assert (second.setting, second.influence) == ("drive.read_ahead_kb", "neutral"), found["write"].sentences
    for workload in ("durable", "read"):
        assert {one.influence for one in found[workload].effects} == {"neutral"}, found[workload].sentences


def test_a_driver_that_holds_twice_the_commands_gives_twice_the_rate_and_is_taken_back(
    runs: Path, tmp_path: Path
) -> None:
    """Every command takes 100 ms and 128 are asked for: what the driver holds is ten I/Os a second for each."""
    look = (
        "for each in /sys/class/scsi_host/host*; do test $(cat $each/proc_name) = vmw_pvscsi && cat $each/can_queue; "
        "done; ls /etc/modprobe.d/zz-storqual.conf 2>/dev/null; true"
    )
    before = on_bench(look)
    run = passed(runs, tmp_path, "commands", COMMANDS, "para")
    rates = {point.levels["driver.can_queue"]: point.mean("iops") for point in points_of_runs([run])}
    # a busy host takes a fifth of the rate; the limit holds on any
    assert rates[32] <= 336
    assert rates[64] <= 672
    assert rates[64] > 1.5 * rates[32]
    (effect,) = next(one for one in setting_studies(points_of_runs([run])) if one.metric == "iops").effects
    assert effect.influence == "better"
    assert "can_queue, 64 declared: host" in (run / "events.jsonl").read_text(encoding="utf-8")
    assert on_bench(look) == before


def test_what_is_written_through_is_held_to_the_drives_rate_and_what_is_written_back_is_not(
    runs: Path, tmp_path: Path
) -> None:
    """A file of 24 MiB on a drive of 100 I/Os a second: the page cache takes it at once.

    Without `invalidate: 0` fio has the cache written at the end of each round over the file, and waits for it.
    """
    run = passed(runs, tmp_path, "cached", CACHED)
    rates = {point.workload: point.mean("iops") for point in points_of_runs([run])}
    assert rates["through"] <= 110
    assert rates["back"] > 3 * rates["through"]


def test_two_channels_scale_to_twice_one(runs: Path, tmp_path: Path) -> None:
    run = passed(runs, tmp_path, "channels", CHANNELS)
    (growth,) = [one for one in growths(points_of_runs([run])) if one.line.along == "ports"]
    second = growth.scaling.levels[-1]
    assert second.at == 2
    assert second.efficiency.value == pytest.approx(1.0, abs=0.05)
    assert growth.scaling.linear_to == 2


def test_a_volume_is_made_of_as_many_drives_as_its_level_is_to_have_and_reads_at_their_rate(
    runs: Path, tmp_path: Path
) -> None:
    """Each random read is one member's, of 100 a second: RAID 0 of two and four, RAID 5 of three."""
    run = passed(runs, tmp_path, "growing", GROWING, "fusion", "raid")
    points = {(point.levels["raid.level"], point.levels["raid.members"]): point for point in points_of_runs([run])}
    assert {key: len(point.drives) for key, point in points.items()} == {("0", 2): 2, ("0", 4): 4, ("5", 3): 3}
    # sixteen at random over the members: one of four now and then waits for nothing
    for (_, members), point in points.items():
        assert 75 * members < point.mean("iops") <= 105 * members
    study = next(one for one in setting_studies(list(points.values()), margin=0.1) if one.metric == "iops")
    assert {(one.setting, one.influence) for one in study.effects} == {("raid.members", "better")}, study.sentences
    assert on_bench("grep -h ^md /proc/mdstat; ls /var/lib/storqual/saved.json 2>/dev/null; true") == ""


def test_the_disk_cache_of_a_volume_is_the_write_cache_of_each_member_and_is_put_back(
    runs: Path, tmp_path: Path
) -> None:
    """Read back from the mode page of each, on three of four drives, and as it was found afterwards."""
    caches = "for each in /sys/block/sd*; do echo ${each##*/} $(cat $each/queue/write_cache); done"
    before = on_bench(caches)
    run = passed(runs, tmp_path, "caches", CACHES, "fusion", "raid")
    started = [json.loads(line) for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    seen = [
        {
            setting["drive"]: (setting["declared"], setting["read_back"])
            for setting in event["provisioned"]["settings"]
            if setting["name"] == "drive.WCE"
        }
        for event in started
        if event["kind"] == "session_started"
    ]
    members = [f"0x5000c5001f2b0{number}00" for number in range(3)]
    assert [[caches_of[member] for member in members] for caches_of in seen] == [[(0, 0)] * 3, [(1, 1)] * 3]
    assert seen[0]["0x5000c5001f2b0300"] == (1, 1)
    assert on_bench(caches) == before
