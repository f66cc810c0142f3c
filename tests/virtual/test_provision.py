# SPDX-License-Identifier: Apache-2.0
"""Provisioning on the virtual bench: set, read back, set again, only look, refuse, boot once, fall back, put back.

What the bench is like is asked of the bench itself, over SSH and with its own tools, not of what the roles report.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_bench import Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

KERNEL = "linux-image-6.12-amd64"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own, powered on for these tests and off again."""
    with powered_bench("provision", tmp_path_factory.mktemp("provision")) as found:
        yield found


def caches(lines: list[str]) -> list[int]:
    """WCE of each drive behind a SCSI driver, from its caching page."""
    pages = [line.split(" page ")[1] for line in lines if " page 08" in line]
    return [int(bool(int(page[4:6], 16) & 4)) for page in pages]


SETTINGS = Path(__file__).with_suffix(".settings").read_text(encoding="utf-8")


def test_check_mode_shows_the_drift_and_touches_nothing(bench: Bench) -> None:
    """Exit code 1 for drift; the bench is as before, not even a lock file is new."""
    before = bench.touched()
    played = bench.provision(SETTINGS, "--check", "--diff")
    assert played.code == 1, played.output
    assert re.search(r"drive\.WCE: 1, declared 0", played.output)
    assert re.search(r"drive\.queue_depth: \d+, declared 4", played.output)
    assert bench.touched() == before


def test_settings_of_all_adapters_are_set_proven_and_put_back(bench: Bench) -> None:
    before = bench.look()
    first = bench.provision(SETTINGS, "-e", "prove_s=0.5", "-v")
    assert first.code == 0, first.output
    assert first.changed == 1
    assert first.output.count("the depth of 4 was reached and not exceeded") >= 16
    now = bench.look()
    assert caches(now) == [0] * 22
    assert all(line.endswith("write through") for line in now if " kernel " in line)
    assert sum(line.endswith("device/queue_depth 4") for line in now) == 16
    assert sum("queue/scheduler [none]" in line for line in now) == 16
    assert any(line.startswith("nvme") and line.rstrip().endswith("0") for line in now)

    second = bench.provision(SETTINGS)
    assert (second.code, second.changed) == (0, 0), second.output
    assert bench.look() == now

    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert bench.look() == before
    again = bench.play("restore.yml")
    assert (again.code, again.changed) == (0, 0), again.output


def test_a_write_cache_that_was_off_is_set_on_and_off_again(bench: Bench) -> None:
    switch = """
    for disk in /sys/block/sd*; do
        sdparm --quiet --{}=WCE /dev/${{disk##*/}}
        echo 1 >$disk/device/rescan
    done
    udevadm settle; nvme set-feature /dev/nvme0 --feature-id=6 --value={}
    """
    bench.ask(switch.format("clear", 0))
    try:
        before = bench.look()
        assert caches(before) == [0] * 22
        drop = "drive: {WCE: 1}\n"
        first = bench.provision(drop)
        assert first.code == 0, first.output
        assert caches(bench.look()) == [1] * 22
        second = bench.provision(drop)
        assert (second.code, second.changed) == (0, 0), second.output
        restored = bench.play("restore.yml")
        assert restored.code == 0, restored.output
        assert bench.look() == before
    finally:
        bench.ask(switch.format("set", 1))


@pytest.mark.parametrize(
    ("drop", "code", "words"),
    [
        ("drive: {WCF: 0}\n", 3, "WCF"),
        ("drive: {DRA: 1, WCE: 0}\n", 2, "DRA is 0 and not changeable on this drive"),
        ("drive: [{WCE: 0}, {on: {adapter: [fusion]}, queue_depth: 4000}]\n", 2, "its adapter takes"),
        ("drive: {on: {adapter: [sym]}, queue_depth: 4}\n", 2, "does not let it be changed"),
        ("drive: {on: {adapter: [nvme]}, queue_depth: 4}\n", 2, "has no queue_depth"),
    ],
)
def test_what_cannot_be_is_refused_before_any_write(bench: Bench, drop: str, code: int, words: str) -> None:
    before = bench.look()
    played = bench.provision(drop)
    assert played.code == code, played.output
    assert words in played.output
    if "WCE" in drop and "queue" in drop:
        # the step before the refused one stood on its own
        assert bench.play("restore.yml").code == 0
    assert bench.look() == before


def test_a_drive_in_use_is_refused_by_the_guard(bench: Bench) -> None:
    """Exit code 4, with the drive, the reason and the remedy."""
    disk = bench.ask("basename $(grep -l FUS0000001 /sys/block/sd*/device/vpd_pg80 | cut -d/ -f1-4)").strip()
    bench.ask(f"mkswap -q /dev/{disk} && swapon /dev/{disk}")
    try:
        before = bench.look()
        played = bench.provision(SETTINGS)
        assert played.code == 4, played.output
        assert "0x5000c5001f2a0000" in played.output
        assert bench.look() == before
    finally:
        bench.ask(f"swapoff /dev/{disk}; dd if=/dev/zero of=/dev/{disk} bs=64k count=1 status=none")


def test_a_kernel_is_tried_falls_back_from_a_panic_runs_and_is_left_again(bench: Bench) -> None:
    before = bench.look()
    old = bench.ask("uname -r").strip()
    drop = f"driver:\n  kernel: {{package: {KERNEL}}}\ndrive: {{WCE: 0}}\n"
    files = bench.touched()
    shown = bench.provision(drop, "--check", "--diff")
    assert shown.code == 1, shown.output
    assert f"declared {KERNEL}" in shown.output
    assert bench.touched() == files

    panic = bench.provision(drop + "virtual: {panic_at_boot: true}\n")
    assert panic.code == 2, panic.output
    assert "did not start in its trial boot: the bench is back by itself on " + old in panic.output
    assert bench.ask("uname -r").strip() == old
    assert "Kernel panic" in (bench.state / "console.log").read_text(encoding="utf-8", errors="replace")

    tried = bench.provision(drop)
    assert tried.code == 0, tried.output
    new, boot = bench.ask("uname -r; cat /proc/sys/kernel/random/boot_id").split()
    assert new.startswith("6.12.")
    loaded = bench.ask("cat /sys/module/mptsas/srcversion").strip()
    assert loaded == bench.ask(f"modinfo -k {new} -F srcversion mptsas").strip()
    assert loaded != bench.ask(f"modinfo -k {old} -F srcversion mptsas").strip()

    again = bench.provision(drop)
    assert (again.code, again.changed) == (0, 0), again.output
    assert bench.ask("uname -r; cat /proc/sys/kernel/random/boot_id").split() == [new, boot]

    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    now = [line for line in bench.look() if not line.startswith("grubenv")]
    assert now == [line for line in before if not line.startswith("grubenv")]
    # a newer kernel stays installed, so the former one is named as the default
    assert old in bench.ask("grub-editenv /boot/grub/grubenv list")
