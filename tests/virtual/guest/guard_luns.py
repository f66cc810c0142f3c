# SPDX-License-Identifier: Apache-2.0
"""Run inside a bench whose targets are in its own kernel: what others do to a LUN, and what the guard says to that.

Reads `storqual_adapters` from standard input and prints one JSON line per state: what the guard said before, while
and after it lasted, and every sector that was written to a disk while the guard was asked.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guard_tools import MIB, MOUNT, empty, loaded, put, run, sectors, wait_for

from storqual_core.guard import hold
from storqual_core.guard.claims import claims_of_adapters
from storqual_core.host.sysfs import SysfsDrive, read_drives
from storqual_core.kit.errors import GuardRefusalError
from storqual_core.kit.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERIAL = "15C0000001"
NAME, PORTAL = "iqn.2026-11.storqual:0", "10.53.0.2:3260"
INITIATOR, OTHER = "iqn.2026-11.storqual:initiator", "iqn.2026-11.storqual:other"
TARGET = Path("/sys/kernel/config/target")
GROUP = TARGET / "iscsi" / NAME / "tpgt_1"
CLAIM = next(claim for claim in claims_of_adapters(json.load(sys.stdin)) if claim.serial == SERIAL)
OWN = next(
    p.parents[1] for p in TARGET.glob("core/iblock_*/*/wwn/vpd_unit_serial") if p.read_text().endswith(f"{SERIAL}\n")
)


def paths() -> list[SysfsDrive]:
    return [drive for drive in read_drives(Machine()) if drive.identity.wwn == CLAIM.wwn]


def ask_guard() -> tuple[list[str], dict[str, int]]:
    """The LUN is asked for as a batch does that writes."""
    run("sync")
    before = sectors()
    try:
        with hold.hold([CLAIM], purpose="write", run="guard-luns"):
            said = []
    except GuardRefusalError as refusal:
        said = refusal.refusals
    return said, {name: count - before[name] for name, count in sectors().items() if count != before[name]}


def served(stack: ExitStack, initiator: str, number: int, store: Path) -> None:
    """The target has a store as a LUN of this number and maps it for an initiator."""
    lun, acl = GROUP / f"lun/lun_{number}", GROUP / f"acls/{initiator}/lun_{number}"
    for made in (lun, acl.parent, acl):
        if not made.exists():
            made.mkdir()
            stack.callback(made.rmdir)
    for link, leads in ((lun / "store", store), (acl / "lun", lun)):
        if not any(each.is_symlink() for each in link.parent.iterdir()):
            link.symlink_to(leads)
            stack.callback(link.unlink)


@contextmanager
def filed(serial: str, size: int) -> Iterator[Path]:
    """A store over a sparse file."""
    loaded("target_core_file")
    store, file = TARGET / "core/fileio_0/stranger", Path("/root/stranger.img")
    store.mkdir(parents=True)
    put(str(store / "control"), f"fd_dev_name={file},fd_dev_size={size}")
    for name, text in (("vpd_unit_serial", serial), ("vendor_id", CLAIM.vendor), ("product_id", CLAIM.model)):
        put(str(store / "wwn" / name), text)
    put(str(store / "enable"), "1")
    try:
        yield store
    finally:
        store.rmdir()
        file.unlink()


@contextmanager
def in_place_of_it(serial: str, size: int) -> Iterator[None]:
    """What the LUN's number leads to is another store."""
    links = [
        next(p for p in place.iterdir() if p.is_symlink())
        for place in (GROUP / "lun/lun_0", GROUP / f"acls/{INITIATOR}/lun_0")
    ]
    kept = [(link, link.resolve()) for link in links]
    with filed(serial, size) as store, ExitStack() as stack:
        for link, leads in reversed(kept):
            stack.callback(link.symlink_to, leads)
        kept[1][0].unlink()
        kept[1][0].parent.rmdir()
        stack.callback(kept[1][0].parent.mkdir)
        kept[0][0].unlink()
        (GROUP / "lun/lun_0/store").symlink_to(store)
        kept[1][0].parent.mkdir()
        kept[1][0].symlink_to(kept[1][1])
        stack.callback((GROUP / "lun/lun_0/store").unlink)
        stack.callback(kept[1][0].parent.rmdir)
        stack.callback(kept[1][0].unlink)
        yield


@contextmanager
def reserved() -> Iterator[None]:
    """Another initiator registers, reserves the LUN, and ends its session."""
    iface, node = (
        ["iscsiadm", "-m", "iface", "-I", "other", "-o"],
        ["iscsiadm", "-m", "node", "-T", NAME, "-p", PORTAL, "-I", "other"],
    )
    (own,) = (path.name for path in paths())
    with ExitStack() as stack:
        served(stack, OTHER, 0, OWN)
        run(*iface, "new")
        stack.callback(run, *iface, "delete")
        run(*iface, "update", "-n", "iface.initiatorname", "-v", OTHER)
        run(*node, "-o", "new")
        stack.callback(run, *node, "-o", "delete")
        run(*node, "--login")
        try:
            wait_for(lambda: len(paths()) == 2, "the LUN of the other initiator")
            (generic,) = (path.sg for path in paths() if path.name != own)
            run("sg_persist", "--out", "--register", "--param-sark=0xabc", generic)
            run("sg_persist", "--out", "--reserve", "--param-rk=0xabc", "--prout-type=1", generic)
        finally:
            run(*node, "--logout")
        wait_for(lambda: len(paths()) == 1, "the end of the other session")
        yield


@contextmanager
def mounted_elsewhere() -> Iterator[None]:
    """The target's own side mounts a file system; the initiator has read the empty LUN before and keeps it open."""
    disk, node = OWN.joinpath("udev_path").read_text().strip(), paths()[0].node
    kept = os.open(node, os.O_RDONLY)
    try:
        for place in range(9):
            os.pread(kept, MIB, place * MIB)
        loop = run("losetup", "--find", "--show", disk).stdout.strip()
        try:
            run("mkfs.ext4", "-q", "-F", loop, "65536k")
            Path(MOUNT).mkdir(parents=True, exist_ok=True)
            run("mount", "-o", "noinit_itable", loop, MOUNT)
            try:
                yield
            finally:
                run("umount", MOUNT)
        finally:
            run("losetup", "--detach", loop)
    finally:
        os.close(kept)
        empty(node)


@contextmanager
def copied(*, multipath: bool) -> Iterator[None]:
    """A second LUN of the target has the name of the first; with `multipath` both are paths of one map."""
    with filed(SERIAL, CLAIM.size) as store, ExitStack() as stack:
        (own,) = (path.name for path in paths())
        served(stack, INITIATOR, 7, store)
        run("iscsiadm", "-m", "session", "-R")
        wait_for(lambda: len(paths()) == 2, "the LUN that is a copy")
        (copy,) = (path.name for path in paths() if path.name != own)
        stack.callback(put, f"/sys/block/{copy}/device/delete", "1")
        if multipath:
            loaded("dm-multipath")
            loaded("dm-round-robin")
            numbers = " ".join(f"{path.number} 1" for path in paths())
            table = f"0 {CLAIM.size // 512} multipath 0 0 1 1 round-robin 0 2 1 {numbers}"
            run("dmsetup", "create", "sqcopy", "--uuid", f"mpath-3{CLAIM.wwn[2:]}", "--table", table)
            stack.callback(run, "dmsetup", "remove", "--retry", "sqcopy")
        yield


STATES: dict[str, Callable[[], object]] = {
    "a foreign reservation": reserved,
    "mounted elsewhere": mounted_elsewhere,
    "two LUNs of one name": lambda: copied(multipath=False),
    "two LUNs of one name in one map": lambda: copied(multipath=True),
    "another size since the check": lambda: in_place_of_it(SERIAL, 2 * CLAIM.size),
    "another LUN since the check": lambda: in_place_of_it("15C00000FF", CLAIM.size),
}

ask_guard()
for name, state in STATES.items():
    first, _ = ask_guard()
    with state():  # type: ignore[attr-defined]
        said, written = ask_guard()
    print(json.dumps({"state": name, "before": first, "said": said, "written": written}), flush=True)
print(json.dumps({"state": "as it was", "before": [], "said": ask_guard()[0], "written": {}}))
