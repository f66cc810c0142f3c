# SPDX-License-Identifier: Apache-2.0
"""A true adapter NVRAM on the virtual bench: the DC-390's EEPROM, and what its driver reads from it."""

import re
from collections.abc import Iterator

import pytest

from tests.support.live_bench import Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(1800)]

# what the driver said when it started, last, and the drives behind it
LOOK = """
dmesg | grep -o 'am53c974 0000:00:08.0: .*SCSI ID [0-9]*' | tail -n 1 | grep -o 'SCSI ID [0-9]*'
ls -d /sys/bus/pci/devices/0000:00:08.0/host*/target*/*:*:*:*/block/* | wc -l
cat /var/lib/storqual/saved.json 2>/dev/null || echo no memory
"""
DROP = "nvram: {on: {adapter: dc390}, host_scsi_id: 6, max_tags: 8}\n"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own, powered on for these tests and off again."""
    with powered_bench("nvram", tmp_path_factory.mktemp("nvram")) as found:
        yield found


def test_check_mode_shows_the_drift_and_writes_nothing(bench: Bench) -> None:
    """Exit code 1 for drift; the driver has read nothing new."""
    before = bench.ask(LOOK)
    assert before.splitlines() == ["SCSI ID 7", "2", "no memory"]
    played = bench.provision(DROP, "--check", "--diff")
    assert played.code == 1, played.output
    assert "dc390 nvram.host_scsi_id: 7, declared 6" in played.output
    assert "dc390 nvram.max_tags: 32, declared 8" in played.output
    assert bench.ask(LOOK) == before


def test_the_driver_starts_with_the_id_that_was_written_and_gets_its_own_back(bench: Bench) -> None:
    """Written bit by bit, read back, read by the kernel's driver; the second time nothing changes."""
    first = bench.provision(DROP, "-v")
    assert first.code == 0, first.output
    assert first.changed == 1
    assert "the driver started with SCSI id 6 (kernel log)" in first.output
    assert "no drive behind it takes tagged commands" in first.output
    identity, drives, memory = bench.ask(LOOK).splitlines()
    assert (identity, drives) == ("SCSI ID 6", "2")
    image = re.search(r'"nvram.image@dc390":"([0-9a-f]{256})"', memory)
    assert image
    assert (image.group(1)[128:130], image.group(1)[134:136]) == ("07", "04")

    second = bench.provision(DROP)
    assert (second.code, second.changed) == (0, 0), second.output

    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.ask(LOOK).splitlines() == ["SCSI ID 7", "2", "no memory"]
    again = bench.play("restore.yml")
    assert (again.code, again.changed) == (0, 0), again.output


@pytest.mark.parametrize(
    ("drop", "code", "words"),
    [
        ("nvram: {on: {adapter: dc390}, host_scsi_id: 0}\n", 2, "0 is the id of drive 0x5000e0c001010000"),
        ("nvram: {on: {adapter: dc390}, max_tags: 5}\n", 2, "power of two"),
        ("nvram: {on: {adapter: fusion}, frame_size: 2048}\n", 2, "adapter fusion"),
    ],
)
def test_what_cannot_be_is_refused_before_any_write(bench: Bench, drop: str, code: int, words: str) -> None:
    before = bench.ask(LOOK)
    played = bench.provision(drop)
    assert played.code == code, played.output
    assert words in played.output
    assert bench.ask(LOOK) == before


def test_a_drive_in_use_keeps_its_driver(bench: Bench) -> None:
    """Exit code 4: starting the driver again would take the drive away."""
    disk = bench.ask("ls /sys/bus/pci/devices/0000:00:08.0/host*/target*:0:0/*:*:*:*/block").strip()
    bench.ask(f"mkswap -q /dev/{disk} && swapon /dev/{disk}")
    try:
        before = bench.ask(LOOK)
        played = bench.provision(DROP)
        assert played.code == 4, played.output
        assert "is active swap space" in played.output
        assert bench.ask(LOOK) == before
    finally:
        bench.ask(f"swapoff /dev/{disk}; dd if=/dev/zero of=/dev/{disk} bs=64k count=1 status=none")
