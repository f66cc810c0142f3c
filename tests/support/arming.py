# SPDX-License-Identifier: Apache-2.0
"""Look at a live bench's root disk as its boot loader would, while trials are armed and while whole ones go on.

A machine that is stopped has on its disk what a power cut at that moment would leave there, and grub-fstest reads it
with GRUB's own code, which replays no journal. So a look takes seconds, and a boot some minutes.
"""

import hashlib
import os
import random
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from storqual.bench.program import build_program
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import power_state, reset
from storqual.virtual_bench.qmp import converse
from tests.support.live_bench import over_ssh

UNIT = "storqual-arming"
LOOKS = 40
CUTS = int(os.environ.get("STORQUAL_LIVE_CUTS", "3"))
# each round has an initramfs of its own name, so that none is on the disk from an earlier one
_ROUNDS = Path(__file__).with_suffix(".rounds").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Seen:
    """What a boot loader would find: the entries that its variables name, and whether ours is in its menu."""

    saved_entry: str
    next_entry: str
    entry: bool


@dataclass(frozen=True)
class Arming:
    """The rounds on one bench, for a trial of `release`; `loader` is the folder of its GRUB."""

    state: Path
    host: str
    release: str
    loader: str
    scratch: Path

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

    def looks(self, number: int, seed: int) -> Iterator[Seen]:
        """The disk at drawn moments. An entry that is to be booted is there, with its files as they were written."""
        native = self.scratch / "native"
        native.write_bytes(self._native())
        drawn = random.Random(seed)
        for _ in range(number):
            # a moment is drawn; there is nothing to await
            time.sleep(drawn.uniform(0.0, 1.5))
            yield self._look(native)

    def _native(self) -> bytes:
        argv = ["ssh", "-F", str(self.state / "ssh_config"), self.host]
        line = f"cat /boot/initramfs-{self.release}.img 2>/dev/null || cat /boot/initrd.img-{self.release}"
        return subprocess.run([*argv, line], capture_output=True, check=True, timeout=300).stdout

    def _look(self, native: Path) -> Seen:
        return _seen(_copied_disk(self.state, self.scratch), self.loader, native)


def _copied_disk(state: Path, scratch: Path) -> Path:
    """The root disk of a bench as it is at this moment, which stands still meanwhile."""
    places, disk = BenchPlaces.of(state), scratch / "disk"
    power = power_state(places)
    assert power is not None
    monitor = Path(power.monitor)
    converse(monitor, lambda each: each.ask("stop"))
    try:
        argv = ["qemu-img", "convert", "-U", "-O", "raw", str(places.overlay), str(disk)]
        subprocess.run(argv, check=True, timeout=300)
    finally:
        converse(monitor, lambda each: each.ask("cont"))
    return disk


@dataclass(frozen=True)
class Boots:
    """What a boot loader with entries in files would boot: by default, and once, where it is told to.

    Each is the SHA-256 of kernel and initramfs as the loader reads them, and the words of the command line.
    """

    default: tuple[str, ...]
    once: tuple[str, ...] = ()
    default_words: str = ""
    once_words: str = ""


def what_boots(state: Path, scratch: Path, loader: str) -> Boots:
    """Raises AssertionError where the loader would find an entry, or a file of it, that is not there."""
    disk = _copied_disk(state, scratch)

    def read(path: str) -> bytes:
        ended = _fstest(disk, "cat", f"(loop0){path}")
        assert ended.returncode == 0, (path, ended.stderr)
        return ended.stdout

    def entry(name: str) -> tuple[tuple[str, ...], str]:
        text = read(f"{loader}/custom.cfg" if name.startswith("storqual-") else f"/boot/loader/entries/{name}.conf")
        lines = text.decode("latin-1")
        if name.startswith("storqual-"):
            own = re.search(rf"^menuentry .* --id {name} \{{\n(.*?)^\}}", lines, re.DOTALL | re.MULTILINE)
            assert own, (name, lines)
            lines = own[1]
        files = re.findall(r"^\s*(?:linux|initrd)\s+(\S+)", lines, re.MULTILINE)
        assert len(files) == 2, lines
        return tuple(hashlib.sha256(read(path)).hexdigest() for path in files), lines

    variables = dict(re.findall(r"^(\w+)=(.*)$", read(f"{loader}/grubenv").decode("latin-1"), re.MULTILINE))
    default, default_words = entry(variables["saved_entry"])
    if not variables.get("next_entry"):
        return Boots(default, (), default_words)
    once, once_words = entry(variables["next_entry"])
    return Boots(default, once, default_words, once_words)


def _fstest(disk: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["grub-fstest", str(disk), *words], capture_output=True, check=False, timeout=120)


def _seen(disk: Path, loader: str, native: Path) -> Seen:
    environment = _fstest(disk, "cat", f"(loop0){loader}/grubenv").stdout.decode("latin-1")
    variables = dict(re.findall(r"^(\w+)=(.*)$", environment, re.MULTILINE))
    menu = _fstest(disk, "cat", f"(loop0){loader}/custom.cfg").stdout.decode("latin-1")
    following = variables.get("next_entry", "")
    entry = re.search(r"^menuentry .* --id storqual-trial \{\n(.*?)^\}", menu, re.DOTALL | re.MULTILINE)
    if following:
        assert following == "storqual-trial"
        assert entry is not None, (environment, menu)
        assert "storqual.trial=round" in entry[1]
        image = re.findall(r"^ *initrd (\S+)$", entry[1], re.MULTILINE)
        assert [_fstest(disk, "cmp", f"(loop0){path}", str(native)).returncode for path in image] == [0], entry[1]
    return Seen(variables.get("saved_entry", ""), following, entry is not None)


def cut_while_arming(arming: Arming, saved_entry: str) -> None:
    """Arm a trial again and again, with looks at the disk and then with power cuts, at drawn moments.

    The kernel of `saved_entry` runs. Only an entry that has our mark boots the other one, and it boots once.
    """
    running = arming.ask("uname -r").strip()
    arming.start()
    looks = list(arming.looks(LOOKS, seed=1))
    assert {seen.saved_entry for seen in looks} == {saved_entry}
    # they were in the middle: with and without an order to boot it, and with an entry that nothing names yet
    kinds = {(bool(seen.next_entry), seen.entry) for seen in looks}
    assert {(True, True), (False, True), (False, False)} <= kinds, looks
    drawn = random.Random(2)
    for _ in range(CUTS):
        time.sleep(drawn.uniform(0.0, 10.0))
        kernel = reset(BenchPlaces.of(arming.state), limit_s=600).kernel
        marked = "storqual.trial=round" in arming.ask("cat /proc/cmdline")
        assert marked or kernel == running
        if marked:
            kernel = reset(BenchPlaces.of(arming.state), limit_s=600).kernel
            assert "storqual.trial=" not in arming.ask("cat /proc/cmdline")
        assert kernel == running
        arming.start()
