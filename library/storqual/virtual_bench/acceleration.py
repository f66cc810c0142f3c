# SPDX-License-Identifier: Apache-2.0
"""KVM only where a guest really boots under it: the device may be there, open, and still not run one."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from storqual.base import child
from storqual.virtual_bench.places import cache_folder
from storqual.virtual_bench.qemu import PROGRAM, Acceleration
from storqual_core.kit.command import run
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from storqual.virtual_bench.image import BenchImage


_KVM = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PROBE_S = 10.0
SIGN_OF_LIFE = "storqual: bench start"
"""What the guest writes to its console as soon as its first unit runs."""


def _probe_argv(image: BenchImage) -> list[str]:
    """A guest of the bench image that writes nothing back, with its console on our pipe."""
    root = {
        "driver": "raw",
        "node-name": "root",
        "read-only": True,
        "file": {"driver": "file", "filename": str(image.root)},
    }
    disc = {
        "driver": "raw",
        "node-name": "disc",
        "read-only": True,
        "file": {"driver": "file", "filename": str(image.disc)},
    }
    argv = [
        PROGRAM,
        "-no-user-config",
        "-nodefaults",
        "-display",
        "none",
        "-machine",
        "pc",
        "-m",
        "512M",
        "-no-reboot",
    ]
    argv += ["-accel", "kvm", "-cpu", "host", "-serial", "stdio"]
    argv += ["-blockdev", json.dumps(root), "-device", "virtio-blk-pci,drive=root,bootindex=1"]
    return [*argv, "-blockdev", json.dumps(disc), "-device", "ide-cd,drive=disc,bootindex=0"]


def _probe(image: BenchImage) -> Acceleration:
    """Boot the image under KVM and watch its console for ten seconds."""
    began = time.monotonic()
    received, seen = b"", b""
    with child.start(
        _probe_argv(image), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as guest:
        assert guest.stdout is not None and guest.stderr is not None  # noqa: PT018, S101 - both are pipes, for mypy
        open_ends = [guest.stdout, guest.stderr]
        while open_ends and (left := _PROBE_S - (time.monotonic() - began)) > 0 and SIGN_OF_LIFE.encode() not in seen:
            for end in select.select(open_ends, [], [], left)[0]:
                data = os.read(end.fileno(), 65536)
                if not data:
                    open_ends.remove(end)
                elif end is guest.stdout:
                    seen += data
                else:
                    received += data
        guest.kill()
    seconds = time.monotonic() - began
    if SIGN_OF_LIFE.encode() in seen:
        return Acceleration("kvm", f"a guest booted under KVM in {seconds:.1f} s")
    lines = received.decode("utf-8", "replace").strip().splitlines()
    if lines:
        return Acceleration("tcg", f"KVM does not run a guest here: {lines[0]}")
    if "Linux version" in seen.decode("utf-8", "replace"):
        return Acceleration("tcg", f"a guest under KVM started its kernel and was not up within {_PROBE_S:g} s")
    return Acceleration("tcg", f"a guest under KVM gave no sign of life within {_PROBE_S:g} s")


def choose_acceleration(image: BenchImage, counts_instructions: bool = False) -> Acceleration:
    """KVM when it was seen to work since this machine was started, else TCG; `STORQUAL_ACCELERATION` overrides.

    A bench whose clock counts instructions is always emulated: KVM does not count them. Raises BadInputError when KVM
    is asked for all the same, or something unknown.
    """
    forced = os.environ.get("STORQUAL_ACCELERATION", "")
    if counts_instructions and forced in {"", "tcg"}:
        return Acceleration("tcg", "the clock of this bench counts instructions")
    if counts_instructions and forced == "kvm":
        raise BadInputError(["STORQUAL_ACCELERATION is kvm, and a clock that counts instructions needs tcg"])
    if forced in {"kvm", "tcg"}:
        return Acceleration(forced, "set by STORQUAL_ACCELERATION")
    if forced:
        raise BadInputError([f"STORQUAL_ACCELERATION is {forced!r}; expected kvm or tcg"])
    if not _KVM.exists():
        return Acceleration("tcg", f"{_KVM} does not exist")
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return Acceleration("tcg", f"{_KVM} may not be opened by this user")
    version = run([PROGRAM, "--version"]).expect().stdout.splitlines()[0]
    key = f"{_BOOT_ID.read_text(encoding='ascii').strip()} {version}"
    store = cache_folder() / "acceleration.json"
    try:
        known = json.loads(store.read_text(encoding="utf-8"))
        if known["key"] == key:
            return Acceleration(known["name"], known["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # never probed, or by another version: probe again
    found = _probe(image)
    fresh = store.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps({"key": key, "name": found.name, "reason": found.reason}) + "\n", encoding="utf-8")
    fresh.rename(store)
    return found
