# SPDX-License-Identifier: Apache-2.0
"""States that descriptors, mounts and labels alone do not show: hidden writers, what the kernel remembers."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from guard_state import BOTH, EXT4, NVME, State
from guard_tools import (
    MOUNT,
    Bench,
    debug_claim,
    debug_drive,
    kept_open,
    linear,
    loaded,
    mapped,
    poke,
    put,
    run,
    volume_group,
    wait_for,
    with_partition,
)
from hidden_writers import SCRIPTS, WRITES_ON, running

from storqual_core.kit.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable

_SAID = {
    "a thread with a table of its own": "it is open for writing in python3",
    "a process whose first thread has ended": "it is open for writing in python3",
    "a file registered with io_uring": "it is registered with io_uring by python3",
    "a descriptor that waits in a socket": "it cannot be ruled out that a program writes to it",
    "a mapping whose descriptor is closed": "it is mapped into the memory of python3",
    "a private node of the device": "it is open for writing in python3",
    "a program that goes on writing": "it is open for writing in python3",
}


def _hidden(kind: str) -> Callable[[Bench], None]:
    def arrange(bench: Bench) -> None:
        bench.touched.add("a")
        stack = ExitStack()
        process = stack.enter_context(running(kind, bench.node()))
        bench.undo.append(stack.close)
        if kind == WRITES_ON:
            bench.writers[process] = bench.name()
            bench.undo.append(bench.writers.clear)

    return arrange


def _label_zeroed(bench: Bench) -> None:
    """The kernel keeps the partition until it reads the table again, which udev asks for unless somebody reads it."""
    kept_open(with_partition(bench), os.O_RDONLY, bench)
    poke(bench.node(), (0, bytes(512)))


def _linear_on_a_partition(bench: Bench) -> str:
    part = with_partition(bench)
    mapped(bench, "sqpart", f"0 2048 linear {part} 0")
    return bench.node()


def _partition_open(bench: Bench) -> str:
    part = with_partition(bench)
    kept_open(part, os.O_RDWR, bench)
    return part


def _multipath(bench: Bench) -> str:
    """The kernel's own multipath target over two different drives."""
    loaded("dm-multipath")
    loaded("dm-round-robin")
    numbers = [Path(f"/sys/block/{bench.name(letter)}/dev").read_text().strip() for letter in "ab"]
    groups = " ".join(f"round-robin 0 1 1 {number} 1" for number in numbers)
    return mapped(bench, "sqreal", f"0 65536 multipath 0 0 2 1 {groups}", "mpath-sqreal")


def _crypt_mounted(bench: Bench) -> str:
    loaded("dm-crypt")
    bench.touched.add("a")
    table = f"0 131072 crypt aes-xts-plain64 {'22' * 64} 0 {bench.node()} 0"
    node = mapped(bench, "sqcrypt", table, "CRYPT-PLAIN-sqcrypt")
    run(*EXT4, node)
    bench.mount(node, "-o", "noinit_itable")
    return bench.node()


def _suspended(bench: Bench) -> None:
    mapped(bench, "sqsusp", linear(bench))
    run("dmsetup", "suspend", "--noudevsync", "sqsusp")
    bench.later("dmsetup", "resume", "--noudevsync", "sqsusp")


def _swap_on_a_volume(bench: Bench) -> str:
    node = volume_group(bench, active=True)
    run("mkswap", node)
    run("swapon", node)
    bench.later("swapoff", node)
    return bench.node()


def _bcache(bench: Bench) -> None:
    """A backing device's superblock, as far as a reader of labels looks."""
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    bench.poke(4096, bytes(8) + (8).to_bytes(8, "little") + (1).to_bytes(8, "little") + magic + bytes(472))


def _drbd(bench: Bench) -> None:
    """Internal metadata of DRBD 8 lie in the last 4 KiB."""
    bench.poke(-4096, bytes(60) + (0x8374026D).to_bytes(4, "big") + bytes(4032))


def _lazily_unmounted(bench: Bench) -> None:
    """Gone from every mount table, and still written by who stands in it."""
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")
    inside = subprocess.Popen(["sleep", "600"], cwd=MOUNT)
    bench.undo.append(lambda: (inside.kill(), inside.wait()))
    run("umount", "-l", MOUNT)


def _virtual_machine(bench: Bench) -> None:
    """What libvirt does with a disk: another program has it open under its stable name."""
    code = (
        "import os,sys,time; open('/proc/self/comm','w').write('qemu-system-x86');"
        f"os.open({bench.node()!r}, os.O_RDWR); print('open', flush=True); time.sleep(600)"
    )
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert program.stdout is not None
    program.stdout.readline()
    bench.undo.append(lambda: (program.kill(), program.wait()))


def _zoned(bench: Bench) -> str:
    bench.later("modprobe", "-r", "scsi_debug")
    loaded("scsi_debug", "zbc=managed", "dev_size_mb=64", "zone_size_mb=4", "zone_max_open=4")
    return debug_drive().node


def _zoned_memory(bench: Bench) -> str:
    bench.later("modprobe", "-r", "null_blk")
    loaded("null_blk", "nr_devices=1", "zoned=1", "zone_size=4", "gb=1")
    wait_for(lambda: Path("/dev/nullb0").is_block_device(), "the memory drive")
    return "/dev/zero"  # no drive lies behind it, so bare fio could destroy nothing


def _fabric(bench: Bench) -> str:
    """A drive that comes back as an NVMe namespace with paths of its own, through the kernel's loop transport."""
    loaded("nvme-loop")
    if not Path("/sys/kernel/config/nvmet").exists():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config", check=False)
    place, port = "/sys/kernel/config/nvmet/subsystems/sqloop", "/sys/kernel/config/nvmet/ports/7"
    for folder in (place, f"{place}/namespaces/1", port):
        Path(folder).mkdir()
        bench.later("rmdir", folder)
    put(f"{place}/attr_allow_any_host", "1")
    put(f"{place}/namespaces/1/device_path", bench.node())
    put(f"{place}/namespaces/1/enable", "1")
    bench.undo.append(lambda: put(f"{place}/namespaces/1/enable", "0"))
    put(f"{port}/addr_trtype", "loop")
    Path(f"{port}/subsystems/sqloop").symlink_to(place)
    bench.undo.append(Path(f"{port}/subsystems/sqloop").unlink)
    before = set(os.listdir("/sys/block"))  # noqa: PTH208 - names only
    run("nvme", "connect", "-t", "loop", "-n", "sqloop")
    bench.later("nvme", "disconnect", "-n", "sqloop")

    def heads() -> list[str]:
        """Namespaces that were not there before, without their hidden paths."""
        new = set(os.listdir("/sys/block")) - before  # noqa: PTH208 - names only
        return sorted(name for name in new if "c" not in name and Path(f"/dev/{name}").is_block_device())

    # the kernel looks for namespaces after the tool has ended
    wait_for(lambda: bool(heads()), "the namespace")
    return f"/dev/{heads()[0]}"


def _generic_open(bench: Bench) -> str:
    kept_open(f"/dev/ng{bench.name('n').removeprefix('nvme')}", os.O_RDWR, bench)
    return bench.node("n")


class _Swapping(Machine):
    """Between the check and the opening the node becomes another drive's, as after an unplug and a plug."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self._bench = bench
        self._done = False

    def busy(self, path: str) -> str:
        """As ever; then the node is swapped."""
        said = super().busy(path)
        node = self._bench.node()
        if path == node and not self._done:
            self._done = True
            number = os.stat(self._bench.node("b")).st_rdev  # noqa: PTH116 - as os.mknod
            Path(node).rename(f"{node}.away")
            os.mknod(node, 0o60600, number)
            self._bench.undo.append(lambda: Path(f"{node}.away").replace(node))
        return said


def _nothing(bench: Bench) -> str:
    del bench
    return "/dev/zero"


HIDDEN = [
    *(State(f"written by {kind}", _SAID[kind], _hidden(kind)) for kind in SCRIPTS),
    State("partition that the kernel remembers, table zeroed", "the kernel knows partitions of it", _label_zeroed),
    State("under dm-linear on a partition", "device-mapper volume sqpart (dm-", _linear_on_a_partition),
    State("partition open for writing", "1 on it is open for writing in python3", _partition_open),
    State("member of the kernel's multipath with another drive", "multipath device sqreal", _multipath, BOTH),
    State("under a mounted dm-crypt", f"sqcrypt (dm-0) on it is mounted on {MOUNT} (ext4)", _crypt_mounted),
    State("under a suspended dm-linear", "device-mapper volume sqsusp (dm-", _suspended),
    State("swap on a logical volume", "it is a system disk: it carries swap", _swap_on_a_volume),
    State("bcache label", "(bcache)", _bcache),
    State("DRBD label", "(drbd)", _drbd),
    State("unmounted lazily, a program still in it", "holds it exclusively", _lazily_unmounted),
    State("disk of a virtual machine", "it is open for writing in qemu-system-x86", _virtual_machine),
    State("zoned SCSI drive", "it has zones (host-managed)", _zoned, debug_claim),
    State(
        "zoned null_blk",
        "no drive of this bench has serial",
        _zoned_memory,
        lambda b: [b.claim(id="nullb0", wwn="", serial="nullb0", vendor="", model="null_blk", size=1 << 30)],
    ),
    State("below an NVMe namespace of the loop transport", "served to other machines by an NVMe target", _fabric),
    State(
        "open for commands through its bsg node",
        "it is open for writing in python3",
        lambda b: kept_open(f"/dev/bsg/{b.drives['a'].hctl}", os.O_RDWR, b),
    ),
    State("NVMe drive open through its generic node", "it is open for writing in python3", _generic_open, NVME),
    State("swapped between the check and the write", "is a different device now", _nothing, machine=_Swapping),
]
