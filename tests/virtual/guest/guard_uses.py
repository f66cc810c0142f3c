# SPDX-License-Identifier: Apache-2.0
"""States of drives in use: mounted, swap, below another device, served to others, open in a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guard_state import BOTH, EXT4, NVME, State
from guard_tools import (
    MOUNT,
    Bench,
    CannotMakeError,
    array,
    in_another_namespace,
    kept_open,
    linear,
    mapped,
    put,
    run,
    volume_group,
    with_partition,
)

from storqual_core.host.block_stack import target_of
from storqual_core.kit import command
from storqual_core.kit.errors import ToolError
from storqual_core.tools.nvme import formats_alone

if TYPE_CHECKING:
    from collections.abc import Sequence


def _mounted(bench: Bench) -> None:
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "noinit_itable")


def _mounted_by_id(bench: Bench) -> str:
    link = f"/dev/disk/by-id/wwn-{bench.claims['a'].wwn}"
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(link if Path(link).exists() else bench.node(), "-o", "noinit_itable")
    return link if Path(link).exists() else bench.node()


def _mounted_partition(bench: Bench) -> str:
    node = with_partition(bench)
    run(*EXT4, node)
    bench.mount(node, "-o", "noinit_itable")
    return node


def _parent_of_mounted(bench: Bench) -> None:
    _mounted_partition(bench)


def _mounted_read_only(bench: Bench) -> None:
    bench.made(*EXT4, bench.node(), "65536k")
    bench.mount(bench.node(), "-o", "ro")


def _mounted_elsewhere(bench: Bench) -> None:
    bench.made(*EXT4, bench.node(), "65536k")
    Path(MOUNT).mkdir(parents=True, exist_ok=True)
    in_another_namespace(["mount", "-o", "ro", bench.node(), MOUNT], bench)


def _no_mtab(bench: Bench) -> None:
    mtab = Path("/etc/mtab")
    if mtab.is_symlink() or mtab.exists():
        mtab.rename("/etc/mtab.away")
        bench.undo.append(lambda: Path("/etc/mtab.away").rename("/etc/mtab"))
    _mounted(bench)


def _btrfs_pair(bench: Bench) -> str:
    bench.touched |= {"a", "b"}
    run("mkfs.btrfs", "-q", "-f", "-K", "-d", "single", "-m", "raid1", bench.node("b"), bench.node("a"))
    run("btrfs", "device", "scan", bench.node("a"), bench.node("b"), check=False)
    bench.mount(bench.node("b"), "-o", "ro")
    return bench.node("a")


def _journal(bench: Bench) -> None:
    bench.touched |= {"a", "b"}
    run("mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "4096", bench.node("a"), "8192")
    journal = f"device={bench.node('a')}"
    run(*EXT4, "-b", "4096", "-J", journal, bench.node("b"), "65536k")
    bench.mount(bench.node("b"), "-o", "noinit_itable")


def _swap(bench: Bench) -> None:
    bench.made("mkswap", bench.node())
    run("swapon", bench.node())
    bench.later("swapoff", bench.node())


def _swap_partition(bench: Bench) -> str:
    node = with_partition(bench)
    run("mkswap", node)
    run("swapon", node)
    bench.later("swapoff", node)
    return node


def _above_swap(bench: Bench) -> None:
    _swap_partition(bench)


def _logical_volume_mounted(bench: Bench) -> str:
    node = volume_group(bench, active=True)
    run(*EXT4, node)
    bench.mount(node, "-o", "noinit_itable")
    return bench.node()


def _linear_mounted(bench: Bench) -> str:
    bench.touched.add("a")
    node = mapped(bench, "sqlin", linear(bench))
    run(*EXT4, node)
    bench.mount(node, "-o", "noinit_itable")
    return bench.node()


def _crypt(bench: Bench) -> str:
    run("modprobe", "dm-crypt")
    bench.touched.add("a")
    key = "00" * 32
    return mapped(
        bench, "sqcrypt", f"0 131072 crypt aes-xts-plain64 {key}{'11' * 32} 0 {bench.node()} 0", "CRYPT-PLAIN-sqcrypt"
    )


def _false_multipath(bench: Bench) -> str:
    table = f"0 65536 linear {bench.node('a')} 0\n65536 65536 linear {bench.node('b')} 0"
    return mapped(bench, "sqmpath", table, "mpath-sqmpath")


def _loop(bench: Bench) -> str:
    run("modprobe", "loop")
    node = run("losetup", "--show", "-f", bench.node()).stdout.strip()
    bench.later("losetup", "-d", node)
    return bench.node()


def _loop_mounted(bench: Bench) -> str:
    _loop(bench)
    node = run("losetup", "-n", "-O", "NAME", "-j", bench.node()).stdout.split()[0]
    bench.made(*EXT4, node, "65536k")
    bench.mount(node, "-o", "noinit_itable")
    return node


def _nvme_target(bench: Bench) -> None:
    run("modprobe", "nvmet")
    if not Path("/sys/kernel/config/nvmet").exists():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config", check=False)
    place = "/sys/kernel/config/nvmet/subsystems/sqguard"
    for folder in (place, f"{place}/namespaces/1"):
        Path(folder).mkdir()
        bench.later("rmdir", folder)
    put(f"{place}/namespaces/1/device_path", bench.node())
    put(f"{place}/namespaces/1/enable", "1")
    bench.undo.append(lambda: put(f"{place}/namespaces/1/enable", "0"))


def _scsi_target(bench: Bench) -> None:
    run("modprobe", "target_core_iblock")
    if not Path("/sys/kernel/config/target").exists():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config", check=False)
    for folder in ("/sys/kernel/config/target/core/iblock_7", "/sys/kernel/config/target/core/iblock_7/sqguard"):
        Path(folder).mkdir()
        bench.later("rmdir", folder)
    place = "/sys/kernel/config/target/core/iblock_7/sqguard"
    put(f"{place}/control", f"udev_path={bench.node()}")
    put(f"{place}/udev_path", bench.node())
    put(f"{place}/enable", "1")


def _sg(bench: Bench) -> str:
    _mounted(bench)
    return bench.drives["a"].sg


_REACHED = f"would reach it, because it is a namespace, LUN or path of the same device, and it is mounted on {MOUNT}"


def _sibling_mounted(bench: Bench) -> str:
    """The namespace beside the claimed one carries a file system that is in use; fio has nothing to do with it."""
    bench.made(*EXT4, bench.node("s"), "65536k", letter="s")
    bench.mount(bench.node("s"), "-o", "noinit_itable")
    return "/dev/zero"


def _formats_all(bench: Bench) -> str:
    if formats_alone(command.run, target_of("n", bench.name("n")).device):
        raise CannotMakeError("the controller says that a format is of one namespace (FNA)")
    return _sibling_mounted(bench)


def _without_nvme(argv: Sequence[str], **more: Any) -> command.Completed:
    """The guard's tools, less nvme: then nobody says how far a format reaches."""
    if argv[0] == "nvme":
        raise ToolError("nvme is not installed")
    return command.run(argv, **more)


def _nvme_generic(bench: Bench) -> str:
    bench.made(*EXT4, bench.node("n"), "65536k", letter="n")
    bench.mount(bench.node("n"), "-o", "noinit_itable")
    return bench.node("n")


USES = [
    State("mounted whole disk", f"it is mounted on {MOUNT} (ext4); unmount it", _mounted),
    State("mounted through a by-id link", f"it is mounted on {MOUNT} (ext4)", _mounted_by_id),
    State("mounted partition", f"is mounted on {MOUNT} (ext4); unmount it", _mounted_partition),
    State("parent of a mounted partition", f"1 on it is mounted on {MOUNT} (ext4)", _parent_of_mounted),
    State("mounted read-only", f"it is mounted on {MOUNT} (ext4)", _mounted_read_only),
    State("mounted in another mount namespace", "in the mount namespace of process", _mounted_elsewhere),
    State("mounted, bench without /etc/mtab", f"it is mounted on {MOUNT} (ext4)", _no_mtab),
    State("sg node of a mounted disk", f"it is mounted on {MOUNT} (ext4)", _sg, engine="sg"),
    State("second device of a mounted btrfs", "it is part of the mounted btrfs", _btrfs_pair),
    State("external journal of a mounted ext4", "holds it exclusively", _journal),
    State("active swap", "it is a system disk: it carries swap", _swap),
    State("active swap partition", "it is a system disk: it carries swap", _swap_partition),
    State("parent of an active swap partition", "it is a system disk: it carries swap", _above_swap),
    State("LVM physical volume, group inactive", "(LVM2_member", lambda b: volume_group(b, active=False) and None),
    State(
        "LVM logical volume active", "LVM volume sqguard-data (dm-", lambda b: volume_group(b, active=True) and None
    ),
    State("LVM logical volume mounted", f"on it is mounted on {MOUNT} (ext4)", _logical_volume_mounted),
    State(
        "md member, array running", "md array md77 (raid1) is made of it", lambda b: array(b, stopped=False) and None
    ),
    State("md array of two claims", "md array md77 (raid1) is made of it", lambda b: array(b, stopped=False), BOTH),
    State("md member, array stopped", "(linux_raid_member", lambda b: array(b, stopped=True) and None),
    State(
        "md member, superblock at the end",
        "(linux_raid_member",
        lambda b: array(b, stopped=True, metadata="1.0") and None,
    ),
    State("under dm-linear", "device-mapper volume sqlin (dm-", lambda b: mapped(b, "sqlin", linear(b)) and None),
    State("under a mounted dm-linear", f"sqlin (dm-0) on it is mounted on {MOUNT} (ext4)", _linear_mounted),
    State("under dm-crypt", "encrypted volume sqcrypt (dm-", _crypt),
    State("multipath device over two different drives", "multipath device sqmpath", _false_multipath, BOTH),
    State("under a loop device", "backs loop device", _loop),
    State("under a mounted loop device", f"is mounted on {MOUNT} (ext4)", _loop_mounted),
    State("served by an NVMe target", "it is served to other machines by an NVMe target", _nvme_target),
    State("served by a SCSI target", "it is served to other machines by a SCSI target", _scsi_target),
    State("held open with O_EXCL", "holds it exclusively", lambda b: kept_open(b.node(), os.O_RDONLY | os.O_EXCL, b)),
    State(
        "open for writing in a program",
        "it is open for writing in python3",
        lambda b: kept_open(b.node(), os.O_RDWR, b),
    ),
    State(
        "open for commands through its sg node",
        "it is open for writing in python3",
        lambda b: kept_open(b.drives["a"].sg, os.O_RDWR, b),
    ),
    State("sibling namespace mounted, firmware", _REACHED, _sibling_mounted, NVME, purpose="firmware"),
    State("sibling namespace mounted, reset", _REACHED, _sibling_mounted, NVME, purpose="reset"),
    State("sibling namespace mounted, format of all", _REACHED, _formats_all, NVME, purpose="format"),
    State(
        "sibling namespace mounted, format of unknown reach",
        _REACHED,
        _sibling_mounted,
        NVME,
        purpose="format",
        runner=_without_nvme,
    ),
    State("sibling namespace unused, firmware", "it is not claimed", lambda _: "/dev/zero", NVME, purpose="firmware"),
    State("NVMe drive mounted", f"it is mounted on {MOUNT} (ext4)", _nvme_generic, NVME),
]
