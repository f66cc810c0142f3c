# SPDX-License-Identifier: Apache-2.0
"""A power cut in the middle of each provisioning step: the next run brings the bench to what is declared.

The reset button is pressed as soon as the bench itself shows that the step is under way. What a test of cuts between
any two side effects cannot show is shown here: what the drives, the file system, md, dpkg and the boot loader make of
it.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from storqual.virtual_bench.description import EmulatedDrive
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual_core.guard.signatures import volume_uuid
from tests.support.arming import Arming, look_while_arming
from tests.support.boot_cuts import ROOT, CutBench, cut_a_trial
from tests.support.driver_sources import driver_sources
from tests.support.live_bench import (
    INVENTORY,
    REPOSITORY,
    Bench,
    discard,
    over_ssh,
    own_lab,
    play,
    powered_bench,
    powered_on,
)

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

needs_compiler = pytest.mark.skipif(
    not (shutil.which("make") and shutil.which("gcc")), reason="needs gcc and make on this machine"
)
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


@dataclass(frozen=True)
class Light:
    """A bench of our own with one adapter, which is up in less time: what boots has to do with no other."""

    state: Path
    lab: Path
    drives: tuple[EmulatedDrive, ...]

    def ask(self, line: str) -> str:
        return over_ssh(self.state, "vbench", line, limit_s=900)

    def play(self, name: str, *words: object) -> None:
        code, output = play(self.lab / "log", self.lab, name, *words)
        assert code == 0, output[-3000:]


# what a trial could leave behind
LEFT = Path(__file__).with_suffix(".left").read_text(encoding="utf-8")


@contextmanager
def light_bench(name: str, folder: Path) -> Iterator[Light]:
    state = REPOSITORY / ".cache" / "bench" / f"light-{name}"
    discard(state)
    (bench,) = yaml.safe_load((INVENTORY / "hosts.yml").read_text(encoding="utf-8"))["benches"]["hosts"].values()
    adapters = {"vscsi": bench["storqual_adapters"]["vscsi"]}
    machine = {**bench["storqual_virtual"], "adapters": {"vscsi": bench["storqual_virtual"]["adapters"]["vscsi"]}}
    lab = own_lab(folder, INVENTORY, state, storqual_adapters=adapters, storqual_virtual=machine)
    state.mkdir(parents=True)
    with powered_on(folder / "power.log", lab):
        power = power_state(BenchPlaces.of(state))
        assert power is not None
        yield Light(state, lab, power.bench.drives)


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_while_trials_are_armed_the_loader_finds_what_it_is_told_to_boot(tmp_path: Path, kind: str) -> None:
    """The candidate is the running kernel with an initramfs of our own, as a driver on trial has it."""
    with light_bench(kind, tmp_path) as bench:
        before, drive = bench.ask(LEFT), bench.drives[0]
        if kind == "xfs":
            bench.ask(XFS.format(disk=f"/dev/disk/by-id/wwn-{drive.wwn}"))
        release, file = bench.ask("uname -r").strip(), BenchPlaces.of(bench.state).drive(drive.device)
        arming = Arming(bench.state, "vbench", release, "/boot/grub", tmp_path, file if kind == "xfs" else None)
        look_while_arming(arming)
        assert bench.ask(LEFT) == before


def _driver(folder: Path) -> str:
    """A drop with another build of the root drive's driver, which lies in the initramfs."""
    sources = driver_sources(folder, ["drivers/block/virtio_blk.c"])
    file = sources.module("virtio_blk", "good", more='MODULE_VERSION("1.0.1");\n')
    return f"driver: {{module: {{file: {file}, sha256: {hashlib.sha256(file.read_bytes()).hexdigest()}}}}}\n"


@pytest.mark.parametrize("kind", ["kernel", pytest.param("driver", marks=needs_compiler)])
def test_after_a_power_cut_at_any_moment_of_a_trial_the_old_system_runs(tmp_path: Path, kind: str) -> None:
    drop, also = tmp_path / "drop.yml", tmp_path / "hosts.yml"
    says = STEPS["kernel"].drop if kind == "kernel" else _driver(tmp_path)
    drop.write_text(f"name: t\ndescription: of a test\n{says}", encoding="utf-8")
    with light_bench(kind, tmp_path) as bench:
        adapters = yaml.safe_load((bench.lab / "hosts.yml").read_text(encoding="utf-8"))
        adapters["benches"]["hosts"]["vbench"]["storqual_adapters"]["root"] = ROOT
        also.write_text(yaml.safe_dump(adapters), encoding="utf-8")
        before = bench.ask(LEFT).splitlines()

        def work() -> None:
            # it stands still again and again while it boots
            limits = ("-e", "provision_boot_limit_s=1800", "-e", "restore_boot_limit_s=1800")
            bench.play("provision.yml", "-i", also, "-e", f"drop={drop}", "-e", "prove_s=0", *limits)
            bench.play("restore.yml", *limits)

        cut_a_trial(CutBench(bench.state, "vbench", "/boot/grub", "virtio_blk", tmp_path), work)
        left = bench.ask(LEFT).splitlines()
        # a kernel of Debian's stays installed, and in the menu
        gone = [line for line in before if line not in left and not line.endswith("/grub.cfg")]
        assert not gone if kind == "kernel" else left == before


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
