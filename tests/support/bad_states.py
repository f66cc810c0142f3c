# SPDX-License-Identifier: Apache-2.0
"""States of the drive sda of a synthetic bench with something to lose, and the words of the guard's refusal."""

import os
from collections.abc import Callable

from storqual_core.guard.signatures import make_stamp
from tests.support.bench_tree import MIB, SIZE, STATE, BenchTree, claim


def written(tree: BenchTree) -> list[str]:
    """The disks written since the last call."""
    changed = []
    for node in (tree.root / "dev").iterdir():
        if node.is_file():
            if node.stat().st_mtime_ns:
                changed.append(node.name)
            os.utime(node, (0, 0))
    return changed


def ext4(tree: BenchTree) -> BenchTree:
    """The magic and the fields of an ext4 superblock that libblkid wants to see."""
    superblock = bytearray(1024)
    superblock[0:8] = (1024).to_bytes(4, "little") + (4096).to_bytes(4, "little")
    superblock[0x38:0x3A] = b"\x53\xef"
    superblock[0x4C] = 1
    superblock[0x58:0x5A] = (256).to_bytes(2, "little")
    superblock[0x5C] = 4
    superblock[0x60] = 0x40
    superblock[0x78:0x7C] = b"data"
    return tree.fill("sda", 1024, bytes(superblock))


BAD_STATES: dict[str, tuple[Callable[[BenchTree], object], str]] = {
    "mounted": (lambda t: t.mount("8:16", "/data"), "it is mounted on /data (ext4); unmount it"),
    "mounted-with-a-blank": (lambda t: t.mount("8:16", "/my\\040data"), "it is mounted on /my data (ext4)"),
    "partition-mounted": (
        lambda t: t.partition("sda", 1).mount("8:17", "/data"),
        "partition sda1 on it is mounted on /data (ext4); unmount it",
    ),
    "mounted-in-a-container": (
        lambda t: t.mount("8:16", "/rootfs", namespace="77"),
        "is mounted on /rootfs (ext4) in the mount namespace of process 77 (containerd)",
    ),
    "btrfs-by-source": (lambda t: t.mount("0:45", "/data", "btrfs", "/dev/sda"), "it is mounted on /data (btrfs)"),
    "btrfs-member": (
        lambda t: t.link("/sys/fs/btrfs/uuid-1/devices/sda", "/sys/class/block/sda"),
        "it is part of the mounted btrfs uuid-1; unmount it",
    ),
    "swap": (lambda t: t.swap("/dev/sda"), "it is a system disk: it carries swap"),
    "swap-on-a-partition": (lambda t: t.partition("sda", 2).swap("/dev/sda2"), "it carries swap; take the claim out"),
    "root": (
        lambda t: t.mount("8:16", "/"),
        "it is a system disk: it carries /; take the claim out of the inventory",
    ),
    "boot": (lambda t: t.partition("sda", 1).mount("8:17", "/boot/efi"), "it is a system disk: it carries /boot/efi"),
    "lvm": (
        lambda t: t.stacked("dm-0", ["sda"], title="vg0-data", uuid="LVM-abc"),
        "LVM volume vg0-data (dm-0) is made of it; take that apart",
    ),
    "lvm-on-a-partition": (
        lambda t: t.partition("sda", 1).stacked("dm-0", ["sda1"], title="vg0-data", uuid="LVM-abc"),
        "LVM volume vg0-data (dm-0) is made of it",
    ),
    "md": (lambda t: t.stacked("md127", ["sda", "sdb"]), "md array md127 (raid1) is made of it"),
    "mounted-over-md-over-lvm": (
        lambda t: t.stacked("md1", ["sda"]).stacked("dm-3", ["md1"], title="x").mount("252:64", "/srv"),
        "device-mapper volume x (dm-3) on it is mounted on /srv (ext4)",
    ),
    "linear": (lambda t: t.stacked("dm-1", ["sda"], title="lin"), "device-mapper volume lin (dm-1) is made of it"),
    "crypt": (
        lambda t: t.stacked("dm-2", ["sda"], uuid="CRYPT-LUKS2-1"),
        "encrypted volume dm-2 (dm-2) is made of it",
    ),
    "loop-on-the-drive": (lambda t: t.loop("loop0", "/dev/sda"), "it backs loop device loop0"),
    "exported-over-nvme": (
        lambda t: t.write("/sys/kernel/config/nvmet/subsystems/s/namespaces/1/device_path", "/dev/sda\n"),
        "it is served to other machines by an NVMe target; stop serving it",
    ),
    "exported-over-scsi": (
        lambda t: t.write("/sys/kernel/config/target/core/iblock_0/disk/udev_path", "/dev/sda\n"),
        "it is served to other machines by a SCSI target",
    ),
    "open-in-a-virtual-machine": (
        lambda t: t.opened("/dev/sda"),
        "it is open for writing in qemu-system-x86 (process 101); end that program",
    ),
    "open-as-sg": (lambda t: t.opened("/dev/sg0", comm="fio"), "it is open for writing in fio (process 101)"),
    "open-in-a-thread-of-an-ended-process": (
        lambda t: t.opened("/dev/sda", comm="worker", task="977"),
        "it is open for writing in worker (process 101); end that program",
    ),
    "registered-with-io_uring": (
        lambda t: t.opened("anon_inode:[io_uring]", comm="fio", more="UserFiles:\t1\n    0: /dev/sda\n"),
        "it is registered with io_uring by fio (process 101); end that program",
    ),
    "registered-with-a-busy-ring": (
        lambda t: t.opened("anon_inode:[io_uring]", comm="fio", more="UserFiles:\t1\nUserBufs:\t0\n"),
        "it cannot be ruled out that a program writes to it: fio (process 101) has files registered with io_uring",
    ),
    "in-flight-in-a-socket": (
        lambda t: t.opened("socket:[4]", comm="broker", more="scm_fds: 1\n"),
        "it cannot be ruled out that a program writes to it: open files wait in a socket of broker (process 101)",
    ),
    "mapped": (
        lambda t: t.mapped("/dev/sda"),
        "it is mapped into the memory of mapper (process 101); end that program",
    ),
    "libvirt-disk": (
        lambda t: (t.link("/dev/disk/by-id/wwn-1", "/dev/sda"), t.opened("/dev/disk/by-id/wwn-1")),
        "it is open for writing in qemu-system-x86 (process 101); end that program",
    ),
    "partition-known-label-zeroed": (
        lambda t: t.partition("sda", 3, start=MIB),
        "the kernel knows partitions of it (sda3); if not needed, remove them from the kernel",
    ),
    "multipath-member": (
        lambda t: t.stacked("dm-4", ["sda", "sdb"], title="mpatha", uuid="mpath-1"),
        "multipath device mpatha (dm-4) is made of it; take that apart",
    ),
    "bcache": (lambda t: t.stacked("bcache0", ["sda"]), "bcache device bcache0 is made of it; take that apart"),
    "drbd": (lambda t: t.stacked("drbd0", ["sda"]), "DRBD device drbd0 is made of it; take that apart"),
    "linear-on-a-forgotten-partition": (
        lambda t: t.partition("sda", 1).stacked("dm-1", ["sda1"], title="lin"),
        "device-mapper volume lin (dm-1) is made of it",
    ),
    "crypt-mounted": (
        lambda t: t.stacked("dm-2", ["sda"], uuid="CRYPT-PLAIN-x").mount("252:48", "/srv"),
        "encrypted volume dm-2 (dm-2) on it is mounted on /srv (ext4)",
    ),
    "served-by-an-iscsi-target": (
        lambda t: (
            t.link("/dev/disk/by-id/wwn-1", "/dev/sda"),
            t.write("/sys/kernel/config/target/core/iblock_3/lun/udev_path", "/dev/disk/by-id/wwn-1\n"),
        ),
        "it is served to other machines by a SCSI target; stop serving it",
    ),
    "served-through-scsi-commands": (
        lambda t: t.write("/sys/kernel/config/target/core/pscsi_0/disk/udev_path", "/dev/sg0\n"),
        "it is served to other machines by a SCSI target",
    ),
    "zoned": (
        lambda t: t.write("/sys/block/sda/queue/zoned", "host-managed\n"),
        "it has zones (host-managed), which must be written in sequence",
    ),
    "held": (
        lambda t: t.machine.taken.update({"/dev/sda": "another program or the kernel holds it exclusively"}),
        "another program or the kernel holds it exclusively; find out what uses it",
    ),
    "file-system": (ext4, "it holds a file system (ext4 labelled data); if it is not needed, zero"),
    "data-at-the-start": (
        lambda t: t.fill("sda", 8 * MIB - 1, b"x"),
        "it holds data of an unknown kind in its first 8 MiB",
    ),
    "data-at-the-very-start": (
        lambda t: t.fill("sda", 0, b"x"),
        "unknown kind in its first 8 MiB; if it is not needed",
    ),
    "data-before-the-end": (
        lambda t: t.fill("sda", -8 * MIB, b"x"),
        "holds data of an unknown kind in its last 8 MiB",
    ),
    "data-at-the-end": (lambda t: t.fill("sda", -1, b"x"), "it holds data of an unknown kind in its last 8 MiB"),
    "vmfs": (lambda t: t.fill("sda", 0x100000, b"\x0d\xd0\x01\xc0"), "(VMFS_volume_member)"),
    "mbr": (
        lambda t: t.fill("sda", 446, b"\x00\x00\x02\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x10\x00\x00").fill(
            "sda", 510, b"\x55\xaa"
        ),
        "it has a partition table (dos)",
    ),
    "copy-of-another-scratch-drive": (
        lambda t: t.fill("sda", 0, make_stamp("0x5000c50000000099", SIZE, end="start")),
        "it carries the scratch stamp of another drive, so it is a copy of that drive",
    ),
    "one-stamp-beside-data": (
        lambda t: t.fill("sda", -4096, make_stamp(claim().id, SIZE, end="end")).fill("sda", 4 * MIB, b"x"),
        "it holds data of an unknown kind in its first 8 MiB",
    ),
    "stamps-beside-data-in-the-guard's-area": (
        lambda t: (
            t.fill("sda", 0, make_stamp(claim().id, SIZE, end="start"))
            .fill("sda", -4096, make_stamp(claim().id, SIZE, end="end"))
            .fill("sda", 65536, b"x")
        ),
        "it holds data of an unknown kind in its first 8 MiB",
    ),
    "read-only": (lambda t: t.write("/sys/block/sda/ro", "1\n"), "it is read-only; remove its write protection"),
    "offline": (lambda t: t.write("/sys/block/sda/device/state", "offline\n"), "its state is offline"),
    "node-missing": (lambda t: t.machine.nodes.pop("/dev/sda"), "its device node /dev/sda is missing"),
    "node-is-another-drive": (
        lambda t: t.machine.nodes.update({"/dev/sda": t.machine.nodes["/dev/sdb"]}),
        "its device node /dev/sda is missing or is another device",
    ),
    "mount-table-missing": (
        lambda t: (t.root / "proc/self/mountinfo").unlink(),
        "it cannot be examined: the kernel's mount table (/proc/self/mountinfo) cannot be read",
    ),
    "mount-table-not-understood": (
        lambda t: t.write("/proc/self/mountinfo", "a new format\n"),
        "a line of the kernel's mount table is not understood: a new format",
    ),
    "made-list-damaged": (lambda t: t.write(f"{STATE}/made.json", "{"), "cannot be read"),
    "a-second-drive-with-its-wwn": (
        lambda t: t.scsi("sdc", serial="SER1"),
        "2 devices of this bench answer to that name (sda, sdc); set up multipath",
    ),
}
