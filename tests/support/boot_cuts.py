# SPDX-License-Identifier: Apache-2.0
"""Power cuts of a bench at drawn moments of a trial, each booted: the disk is copied, and copies are started later.

The machine stands still while its disk and its EFI variables are copied, so a copy is what a power cut at that moment
would leave, and the trial goes on. One trial is enough for any number of cuts.
"""

import os
import queue
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from storqual.virtual_bench.boot import BootFailedError, wait_for_boot
from storqual.virtual_bench.description import BenchDescription
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_off, power_state, reset, switch_on
from storqual_core.kit.errors import ToolError
from storqual_core.provision.boot import trial_mark
from storqual_core.tools.grub import OWN_ARGUMENT
from tests.support.arming import Boots, Disk, plain_disk, stopped
from tests.support.live_bench import over_ssh

CUTS = int(os.environ.get("STORQUAL_LIVE_CUTS", "6"))
ROOT = {"model": "virtio disk", "driver": "virtio_blk", "pci": "0000:00:03.0", "drives": []}
"""The root drive's adapter, as an inventory has it whose driver is tried."""
_LONGEST_PAUSE_S = 6.0
_START_LIMIT_S = 900.0
_QUESTION = """
release=$(uname -r)
image=$(find /boot -name initrd.img-$release -o -name initramfs-$release.img -o -path "*/$release/initrd")
driver=$(cat /sys/module/{module}/srcversion /sys/module/{module}/notes/.note.gnu.build-id | sha256sum)
echo "$release ${{driver%% *}} $(sha256sum < $image)"
cat /proc/sys/kernel/random/boot_id /proc/cmdline
"""


@dataclass(frozen=True)
class Runs:
    """What runs: the kernel's release, the driver's build and the initramfs by digest, this start, its words."""

    system: str
    boot_id: str
    words: str

    @property
    def marked(self) -> bool:
        return bool(trial_mark(self.words.split()))


@dataclass(frozen=True)
class Cut:
    """A power cut: after how many seconds, the folder with what it left, and what the boot loader finds there.

    `moment`: before our entry was written, between that and the order to boot it, until that was obeyed, with the
    entry still there, and after it.
    """

    after_s: float
    left: Path
    boots: Boots
    moment: str


@dataclass(frozen=True)
class CutBench:
    """A bench for a trial of a kernel or of `module`; `loader` is the folder of its GRUB, empty for systemd-boot."""

    state: Path
    host: str
    loader: str
    module: str
    scratch: Path

    @property
    def copies(self) -> Path:
        """Beside the bench's own files, for they take more room than those."""
        return self.state.with_name(f"{self.state.name}-cuts")

    def forget(self) -> None:
        shutil.rmtree(self.copies, ignore_errors=True)

    def runs(self, state: Path) -> Runs:
        answer = over_ssh(state, self.host, _QUESTION.format(module=self.module), limit_s=300)
        return Runs(*answer.strip().split("\n"))

    def description(self) -> BenchDescription:
        """Without adapters that no cut concerns: they take most of a start."""
        power = power_state(BenchPlaces.of(self.state))
        assert power is not None
        kept = [adapter for adapter in power.bench.adapters if adapter.device == "virtio-scsi-pci"]
        return replace(power.bench, adapters=tuple(kept))

    def cut_during(self, work: Callable[[], None], old: Runs) -> list[Cut]:
        """Power cuts at drawn moments of `work`; of those that are kept for no start nothing is left."""
        drawn, cuts, began = random.Random(f"{self.host} {self.module}"), list[Cut](), time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(work)
            while not done.done():
                # a moment is drawn; there is nothing to await
                time.sleep(drawn.uniform(0.0, _LONGEST_PAUSE_S))
                cuts.append(self._cut(time.monotonic() - began, old, cuts))
                for cut in drawn.sample(cuts, len(cuts)):
                    # no more of a moment than could be started
                    if sum(each.moment == cut.moment and each.left.exists() for each in cuts) > CUTS // 2 + 1:
                        shutil.rmtree(cut.left, ignore_errors=True)
            done.result()
        return cuts

    def _cut(self, after_s: float, old: Runs, earlier: list[Cut]) -> Cut:
        left = self.copies / f"{len(earlier):03}"
        left.mkdir(parents=True)
        with stopped(self.state) as places:
            files = [places.overlay, places.overlay.with_suffix(".image"), places.variables]
            argv = ["cp", "--sparse=always", *(str(file) for file in files if file.exists()), str(left)]
            subprocess.run(argv, check=True, timeout=300)
        image = plain_disk(left / places.overlay.name, self.scratch / "disk")
        disk = Disk(image, self.loader, variables=left / places.variables.name)
        boots = disk.boots(self.scratch / "seen", old.system.split()[0])
        ordered = bool(earlier) and earlier[-1].moment not in ("before", "written")
        moment = ("booted" if ordered else "written") if boots.entry else ("over" if ordered else "before")
        return Cut(after_s, left, boots, "ordered" if boots.once else moment)

    def started(self, cut: Cut, state: Path, description: BenchDescription) -> list[Runs]:
        """What runs after the cut, and after another one where that was the trial."""
        places = BenchPlaces.of(state)
        for last in (False, True):
            shutil.rmtree(state, ignore_errors=True)
            state.mkdir(parents=True)
            argv = ["cp", "--sparse=always", *map(str, cut.left.iterdir()), str(state)]
            subprocess.run(argv, check=True, timeout=300)
            try:
                switch_on(places, description)
                _await(places)
                seen = [self.runs(state)]
                if seen[0].marked:
                    reset(places, limit_s=_START_LIMIT_S)
                    seen.append(self.runs(state))
            except BootFailedError as problem:
                # an emulator fails now and then; what does not come back twice is no fault of its
                print(f"{cut.left.name}, {cut.moment}: {problem}")
                if last:
                    raise
            else:
                return seen
            finally:
                power_off(places, graceful=False)
        raise AssertionError


def _await(places: BenchPlaces) -> None:
    power = power_state(places)
    assert power is not None
    wait_for_boot(
        power.bench.name,
        ssh_config=places.ssh_config,
        port=power.port,
        log=places.console,
        since=0,
        began=time.monotonic(),
        drives=power.bench.devices,
        limit_s=_START_LIMIT_S,
        running=lambda: power_state(places) is not None,
    )


def cut_a_trial(bench: CutBench, work: Callable[[], None]) -> None:
    """At each moment of `work` the loader finds the old system, and a bench that lost its power comes back to it.

    A trial that was ordered may be booted first, with its marks, and once.
    """
    bench.forget()
    old, description = bench.runs(bench.state), bench.description()
    cuts = bench.cut_during(work, old)
    assert {cut.boots.default for cut in cuts} == {cuts[0].boots.default}
    assert len({cut.boots.once for cut in cuts} - {()}) == 1, cuts
    chosen, places = _chosen(cuts), queue.Queue[Path]()
    for number in range(2):
        places.put(bench.copies / f"start{number}")

    def start(cut: Cut) -> list[Runs] | str:
        state, seen = places.get(), list[Runs]()
        try:
            seen = bench.started(cut, state, description)
        except (ToolError, AssertionError) as problem:
            return str(problem)
        finally:
            print(f"{cut.left.name}, {cut.moment}, {cut.after_s:.0f} s: {seen}", flush=True)
            places.put(state)
        return seen

    with ThreadPoolExecutor(places.qsize()) as pool:
        starts = list(zip(chosen, pool.map(start, chosen), strict=True))
    wrong = [(cut, seen) for cut, seen in starts if isinstance(seen, str) or not _is_right(cut, seen, old)]
    once = sum(len(seen) == 2 for _, seen in starts)
    moments = dict(Counter(cut.moment for cut in chosen))
    print(f"{len(cuts)} moments looked at; power cut at {len(chosen)}, {moments}: the trial came first after {once}")
    assert not wrong
    ids = [old.boot_id, *(each.boot_id for _, seen in starts for each in seen if isinstance(each, Runs))]
    assert len(ids) == len(set(ids))
    assert len(chosen) == CUTS, cuts
    bench.forget()


def _is_right(cut: Cut, seen: list[Runs], old: Runs) -> bool:
    if seen[0].marked and not cut.boots.once:
        return False
    # before a package's scripts make images anew, the default becomes an entry of ours with a copy of the old one
    words = [word for word in seen[-1].words.split() if not word.startswith(OWN_ARGUMENT)]
    return (seen[-1].system, words) == (old.system, old.words.split())


def _chosen(cuts: list[Cut]) -> list[Cut]:
    """Cuts of each moment in turn, as long as there are any."""
    held: dict[str, list[Cut]] = {}
    for cut in cuts:
        if cut.left.exists():
            held.setdefault(cut.moment, []).append(cut)
    chosen: list[Cut] = []
    while len(chosen) < CUTS and any(held.values()):
        for each in held.values():
            if each and len(chosen) < CUTS:
                chosen.append(each.pop(len(each) // 2))
    return chosen
