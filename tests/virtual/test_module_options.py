# SPDX-License-Identifier: Apache-2.0
"""Module options on the virtual bench: a driver loaded with them, its drives' queues, an option that takes a boot."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_bench import Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(1800)]

LOOK = Path(__file__).with_suffix(".look").read_text(encoding="utf-8")
DROP = "driver: {options: {sym53c8xx: {cmd_per_lun: 4}}}\n"
THROTTLE = "nvram: {on: {adapter: sym}, execution_throttle: 4}\n"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own, powered on for these tests and off again."""
    with powered_bench("options", tmp_path_factory.mktemp("options")) as found:
        yield found


def test_check_mode_shows_the_drift_and_loads_nothing(bench: Bench) -> None:
    """Exit code 1 for drift; the module was not loaded again."""
    before = bench.ask(LOOK + "ls -lcd /sys/module/sym53c8xx/holders")
    played = bench.provision(DROP, "--check", "--diff")
    assert played.code == 1, played.output
    assert "module option sym53c8xx.cmd_per_lun: not set, declared 4" in played.output
    assert bench.ask(LOOK + "ls -lcd /sys/module/sym53c8xx/holders") == before


@pytest.mark.parametrize("drop", [DROP, THROTTLE], ids=["option", "throttle"])
def test_a_queue_of_four_is_shown_in_flight_and_taken_back(bench: Bench, drop: str) -> None:
    before = bench.ask(LOOK).splitlines()
    assert before[1:] == ["no file", "no memory"]
    first = bench.provision(drop, "-e", "prove_s=0.5", "-v")
    assert first.code == 0, first.output
    assert first.changed == 1
    assert "the driver gave 4 of 4 drives a queue depth of 4; on 4 of them: 4 in flight at most" in first.output
    now = bench.ask(LOOK).splitlines()
    assert now[0].split() == ["4"] * 4
    assert "options sym53c8xx cmd_per_lun=4" in now

    second = bench.provision(drop)
    assert (second.code, second.changed) == (0, 0), second.output

    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.ask(LOOK).splitlines() == before
    again = bench.play("restore.yml")
    assert (again.code, again.changed) == (0, 0), again.output


def test_what_cannot_be_is_refused_before_anything_is_loaded(bench: Bench) -> None:
    before = bench.ask(LOOK)
    played = bench.provision("driver: {options: {sym53c8xx: {cmd_per_lum: 4}}}\n")
    assert played.code == 2, played.output
    assert "has no parameter cmd_per_lum; did you mean cmd_per_lun?" in played.output
    assert bench.ask(LOOK) == before


def test_an_option_whose_module_cannot_be_taken_out_takes_one_boot(bench: Bench) -> None:
    look = "cat /sys/module/scsi_mod/parameters/scan /proc/sys/kernel/random/boot_id"
    scan, boot = bench.ask(look).split()
    other = "sync" if scan == "async" else "async"
    drop = f"driver: {{options: {{scsi_mod: {{scan: {other}}}}}}}\n"
    tried = bench.provision(drop)
    assert tried.code == 0, tried.output
    now, new = bench.ask(look).split()
    assert (now, new != boot) == (other, True)
    again = bench.provision(drop)
    assert (again.code, again.changed) == (0, 0), again.output
    assert bench.ask(look).split() == [other, new]
    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.ask(look).split()[0] == scan
    assert bench.play("restore.yml").changed == 0


def test_the_drivers_of_all_adapters_start_again_and_every_drive_is_back(bench: Bench) -> None:
    drives = bench.ask("cat /sys/block/sd*/device/wwid /sys/block/nvme*/serial | sort")
    played = bench.play_module(
        "hba_nvram", {"nvram": {}, "start": ["sym", "fusion", "mraid", "dc390", "vscsi", "nvme"]}
    )
    assert played.code == 0, played.output
    assert played.output.count("started again") == 6, played.output
    assert bench.ask("cat /sys/block/sd*/device/wwid /sys/block/nvme*/serial | sort") == drives
    assert bench.ask("cat /var/lib/storqual/saved.json 2>/dev/null || echo no memory").strip() == "no memory"
