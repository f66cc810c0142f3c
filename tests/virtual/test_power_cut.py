# SPDX-License-Identifier: Apache-2.0
"""A power cut in the middle of each provisioning step: the next run brings the bench to what is declared.

The reset button is pressed as soon as the bench itself shows that the step is under way. What a test of cuts between
any two side effects cannot show is shown here: what the drives, the file system, md, dpkg and the boot loader make of
it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual_core.guard.signatures import volume_uuid
from tests.support.arming import Arming, look_while_arming
from tests.support.boot_cuts import CutBench, cut_a_trial
from tests.support.live_bench import Bench, powered_bench

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

MEMBERS = [f"0x5000c5001f2a00{place}0" for place in range(5)]
KERNEL = "linux-image-6.12-amd64"
NVRAM = "nvram: {on: {adapter: dc390}, host_scsi_id: 6, max_tags: 8}\n"
MEMORY = "/var/lib/storqual/saved.json"
# /boot on a drive; what lies below it is seen again when that goes
XFS = """
mkfs.xfs -q -f {disk} && mount {disk} /mnt && cp -a /boot/. /mnt && umount /mnt && mount {disk} /boot
"""
PERSON = "playbooks/restore.yml writes the saved image back"


@dataclass(frozen=True)
class Step:
    """A drop, conditions of the shell that hold in the middle of its making, and how often lines show it made."""

    drop: str
    events: tuple[str, ...]
    made: dict[str, int]
    words: tuple[str, ...] = ()


STEPS = {
    "write cache": Step(
        "drive: {WCE: 0}\n",
        ("grep -q 'write through' /sys/class/scsi_disk/*/cache_type",),
        {r" page 08..[0-9a-f][0-38-b]": 22, r" kernel write through$": 22},
    ),
    "queue": Step(
        "drive: {on: {adapter: [fusion, mraid, vscsi]}, queue_depth: 4, scheduler: none}\n",
        ("grep -qx 4 /sys/block/sd*/device/queue_depth",),
        {r" device/queue_depth 4$": 16, r"scheduler \[none\]": 16},
        ("-e", "prove_s=1"),
    ),
    "EEPROM": Step(NVRAM, (f"grep -q nvram.image {MEMORY}",), {r"^SCSI ID 6$": 1}),
    "start of a driver": Step(NVRAM, ("[ ! -e /sys/bus/pci/devices/0000:00:08.0/driver ]",), {r"^SCSI ID 6$": 1}),
    "RAID": Step(
        f"raid: {{on: {{adapter: fusion}}, level: 5, strip: 64k, initialisation: full, members: {MEMBERS}}}\n",
        (f"grep -q {volume_uuid(MEMBERS)} {MEMORY}", "grep -q 'resync = ' /proc/mdstat"),
        {r"^array level raid5$": 1, r"^array sync_action idle$": 1},
    ),
    "module options": Step(
        "driver: {options: {sym53c8xx: {cmd_per_lun: 4}}}\n",
        ("[ ! -e /sys/module/sym53c8xx/initstate ]", "[ -e /etc/modprobe.d/zz-storqual.conf ]"),
        {r"^options sym53c8xx cmd_per_lun=4$": 1, r"^naa\.\S*15ea\S* device/queue_depth 4$": 4},
    ),
    "kernel": Step(
        f"driver: {{kernel: {{package: {KERNEL}}}}}\n",
        ("ls -d /lib/modules/6.12.*/kernel/drivers/scsi", "ls /boot/initrd.img-6.12.*.new"),
        {r"^kernel 6\.12\.": 1},
    ),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of our own, powered on for these tests and off again."""
    with powered_bench("cut", tmp_path_factory.mktemp("cut")) as found:
        yield found


def state(bench: Bench) -> list[str]:
    """What the bench is like, but for how its boot loader names the default."""
    return [line for line in bench.look() if not line.startswith("grubenv")]


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_while_trials_are_armed_the_loader_finds_what_it_is_told_to_boot(
    bench: Bench, tmp_path: Path, kind: str
) -> None:
    """The candidate is the running kernel with an initramfs of our own, as a driver on trial has it."""
    before, file = bench.look(), None
    places = BenchPlaces.of(bench.state)
    power = power_state(places)
    assert power is not None
    drive = next(adapter for adapter in power.bench.adapters if adapter.alias == "vscsi").drives[0]
    disk = f"/dev/disk/by-id/wwn-{drive.wwn}"
    if kind == "xfs":
        bench.ask(XFS.format(disk=disk))
        file = places.drive(drive.device)
    arming = Arming(bench.state, "vbench", bench.ask("uname -r").strip(), "/boot/grub", tmp_path, file)
    try:
        look_while_arming(arming)
    finally:
        if kind == "xfs":
            bench.ask(f"umount /boot; blkdiscard -f {disk}")
    assert bench.look() == before


def test_after_a_power_cut_at_any_moment_of_a_kernels_trial_the_old_system_runs(bench: Bench, tmp_path: Path) -> None:
    before = bench.look()

    def work() -> None:
        played = bench.provision(STEPS["kernel"].drop)
        assert played.code == 0, played.output
        assert bench.play("restore.yml").code == 0

    cut_a_trial(CutBench(bench.state, "vbench", "/boot/grub", "virtio_blk", tmp_path), work)
    assert bench.look() == before


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_lost_its_power_is_brought_to_its_end_and_taken_back(bench: Bench, name: str) -> None:
    step = STEPS[name]
    before = state(bench)
    for event in step.events:
        cut = bench.cut_power(step.drop, event, *step.words)
        assert cut.code != 0, cut.output
        assert "unreachable=1" in cut.output or "failed=1" in cut.output, cut.output

    played = bench.provision(step.drop, *step.words)
    if played.code != 0:
        # half an EEPROM is no state to go on from: it says who puts it right
        assert name == "EEPROM", played.output
        assert PERSON in " ".join(played.output.split()), played.output
        assert bench.play("restore.yml").code == 0
        played = bench.provision(step.drop, *step.words)
    assert played.code == 0, played.output
    now = state(bench)
    assert {line: sum(bool(re.search(line, found)) for found in now) for line in step.made} == step.made, now
    restored = bench.play("restore.yml")
    assert restored.code == 0, restored.output
    assert state(bench) == before
