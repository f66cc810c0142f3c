# SPDX-License-Identifier: Apache-2.0
"""Look at a live bench's disk as its boot loader would, and arm trials on it again and again meanwhile.

A machine that is stopped has on its disk what a power cut at that moment would leave there, and grub-fstest reads it
with GRUB's own code, which replays no journal.
"""

import hashlib
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from storqual.bench.program import build_program
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state
from storqual.virtual_bench.qmp import converse
from storqual_core.kit.command import run
from storqual_core.kit.errors import ToolError
from storqual_core.provision.boot import trial_mark
from storqual_core.tools import bls
from storqual_core.tools.grub import TRIAL_ENTRY, Grub, MenuEntry, read_block
from tests.support.live_bench import over_ssh

UNIT = "storqual-arming"
LOOKS = 20
# each round has an initramfs of its own name, so that none is on the disk from an earlier one
_ROUNDS = Path(__file__).with_suffix(".rounds").read_text(encoding="utf-8")
_ONE_SHOT = "LoaderEntryOneShot".encode("utf-16-le")
# of a variable in OVMF's store: its head is so long, and says in a byte whether it is there or was removed
_HEAD, _STATE, _THERE = 60, 2, 0x3F


@dataclass(frozen=True)
class Boots:
    """What a boot loader finds: kernel and initramfs by default, and once where it is told to, by their SHA-256.

    `entry`: ours is in its menu, whether it is told to boot it or not.
    """

    default: tuple[str, ...]
    once: tuple[str, ...] = ()
    entry: bool = False


@dataclass(frozen=True)
class Disk:
    """A disk that stands still, as GRUB reads it. `loader` is the folder of its GRUB, empty for systemd-boot.

    A file system that is mounted at `point` is the whole disk. EFI variables are in the file `variables`.
    """

    image: Path
    loader: str
    point: str = ""
    variables: Path = Path()

    def _grub(self, word: str, path: str) -> bytes:
        top = "(loop0)" if self.loader else "(loop0,gpt1)"
        argv = ["grub-fstest", str(self.image), word, top + path.removeprefix(self.point)]
        ended = subprocess.run(argv, capture_output=True, check=False, timeout=120)
        assert ended.returncode == 0, (path, ended.stderr)
        return ended.stdout

    def _names(self, folder: str) -> list[str]:
        return self._grub("ls", f"{folder}/").decode("latin-1").split()

    def boots(self, scratch: Path, release: str) -> Boots:
        """Raises AssertionError where the loader would find an entry, or a file of it, that is not there.

        `release` is the default of a loader that is told it by an EFI variable.
        """
        shutil.rmtree(scratch, ignore_errors=True)
        return self._by_grub(scratch) if self.loader else self._by_variable(scratch, release)

    def _fetch(self, folder: str, scratch: Path, suffixes: tuple[str, ...]) -> Path:
        place = scratch / folder.strip("/")
        place.mkdir(parents=True)
        for name in self._names(folder):
            if name.endswith(suffixes):
                (place / name).write_bytes(self._grub("cat", f"{folder}/{name}"))
        return place

    def _digests(self, entry: MenuEntry) -> tuple[str, ...]:
        files = (entry.kernel, *entry.images)
        assert len(files) == 2, entry
        return tuple(hashlib.sha256(self._grub("cat", file)).hexdigest() for file in files)

    def _by_grub(self, scratch: Path) -> Boots:
        place = self._fetch(self.loader, scratch, (".cfg", "grubenv"))
        if "loader/" in self._names("/boot"):
            self._fetch("/boot/loader/entries", scratch, (bls.SUFFIX,))
        grub = Grub(lambda argv, **options: run(["grub-editenv", *argv[1:]], **options), str(place))
        try:
            variables = read_block((place / "grubenv").read_bytes()).variables
        except ToolError:
            # GRUB knows nothing then, and goes by the order of its menu
            variables = {}
        default = grub.default(variables)
        assert default is not None
        assert not trial_mark(default.arguments), default
        entry = any(each.identifier == TRIAL_ENTRY for each in grub.entries())
        if not variables.get("next_entry"):
            return Boots(self._digests(default), entry=entry)
        once = grub.resolve(variables["next_entry"])
        assert once is not None, variables
        assert trial_mark(once.arguments), once
        return Boots(self._digests(default), self._digests(once), entry)

    def _by_variable(self, scratch: Path, release: str) -> Boots:
        entries = bls.read_folder(str(self._fetch("/loader/entries", scratch, (bls.SUFFIX,))))

        def digests(name: str) -> tuple[str, ...]:
            (entry,) = (each for each in entries if each.base.endswith(name))
            assert (name == TRIAL_ENTRY) == bool(trial_mark(entry.value("options").split())), entry
            files = (entry.value("linux"), *entry.values("initrd"))
            return tuple(hashlib.sha256(self._grub("cat", file)).hexdigest() for file in files)

        store = self.variables.read_bytes()
        places = [at for at in range(len(store)) if store.startswith(_ONE_SHOT, at)] if _ONE_SHOT in store else []
        once = any(store[at - _HEAD + _STATE] == _THERE for at in places)
        there = any(entry.base == TRIAL_ENTRY for entry in entries)
        return Boots(digests(f"-{release}"), digests(TRIAL_ENTRY) if once else (), there)


@contextmanager
def stopped(state: Path) -> Iterator[BenchPlaces]:
    """The bench stands still meanwhile, with all that it wrote in its files."""
    places = BenchPlaces.of(state)
    power = power_state(places)
    assert power is not None
    monitor = Path(power.monitor)
    converse(monitor, lambda each: each.ask("stop"))
    try:
        yield places
    finally:
        converse(monitor, lambda each: each.ask("cont"))


def plain_disk(overlay: Path, target: Path) -> Path:
    argv = ["qemu-img", "convert", "-U", "-O", "raw", str(overlay), str(target)]
    subprocess.run(argv, check=True, timeout=300)
    return target


@dataclass(frozen=True)
class Arming:
    """The rounds on one bench, for a trial of `release`; `loader` is the folder of its GRUB.

    With a `drive`, which is the file behind it, /boot is an XFS on that one.
    """

    state: Path
    host: str
    release: str
    loader: str
    scratch: Path
    drive: Path | None = None

    def ask(self, line: str, data: bytes = b"") -> str:
        return over_ssh(self.state, self.host, line, data=data, limit_s=600)

    def start(self, rounds: int = 1000) -> None:
        self.ask("cat > /root/core.pyz", build_program(self.scratch).read_bytes())
        self.ask("cat > /root/arming.py", _ROUNDS.encode())
        words = f"python3 /root/arming.py {self.release} {rounds}"
        self.ask(f"systemctl reset-failed {UNIT} 2>/dev/null; systemd-run -q --unit={UNIT} {words}")
        self.ask(f"timeout 300 sh -c 'until grep -q storqual-trial {self.loader}/custom.cfg; do sleep 0.1; done'")

    def end(self) -> None:
        """Leave the bench as it was before the first round."""
        self.ask(f"systemctl stop {UNIT} 2>/dev/null; python3 /root/arming.py {self.release} 0")
        self.ask("rm /root/core.pyz /root/arming.py /root/arming.json")

    def looks(self, seed: int) -> Iterator[Boots]:
        """The disk at drawn moments. An entry that is to be booted is there, with its files as they were written."""
        drawn, copy = random.Random(seed), self.scratch / "disk"
        for _ in range(LOOKS):
            # a moment is drawn; there is nothing to await
            time.sleep(drawn.uniform(0.0, 1.5))
            with stopped(self.state) as places:
                if self.drive:
                    argv = ["cp", "--sparse=always", str(self.drive), str(copy)]
                    subprocess.run(argv, check=True, timeout=300)
                else:
                    plain_disk(places.overlay, copy)
            yield Disk(copy, self.loader, "/boot" if self.drive else "").boots(self.scratch / "seen", "")


def look_while_arming(arming: Arming) -> None:
    """Arm a trial again and again; the one that a loader is to boot has its initramfs, a copy of the default's."""
    arming.start()
    try:
        looks = list(arming.looks(seed=1))
    finally:
        arming.end()
    (default,) = {seen.default for seen in looks}
    assert {seen.once[1:] for seen in looks} == {(), default[1:]}
    # they were in the middle: with and without an order to boot it, and with an entry that nothing names yet
    kinds = {(bool(seen.once), seen.entry) for seen in looks}
    assert {(True, True), (False, True), (False, False)} <= kinds, looks
