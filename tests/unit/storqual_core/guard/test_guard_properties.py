# SPDX-License-Identifier: Apache-2.0
"""No target whose stack contains a mounted, held or foreign device is ever accepted."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.guard import hold
from storqual_core.host.block_stack import physical, resolve
from tests.support.bench_tree import MIB, STATE, BenchTree, claim

pytestmark = pytest.mark.slow

DRIVES = ("sda", "sdb", "sdc")
SMALL = 3 * MIB
# hundreds of small trees, which some file systems take longer over than the guard
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
USES = ("mounted", "mounted elsewhere", "swap", "open", "held", "data", "stacked")


@dataclass(frozen=True)
class Layering:
    """Devices made of others (name to what they are made of), and what is done with which device."""

    stacks: tuple[tuple[str, tuple[str, ...]], ...]
    uses: tuple[tuple[str, str], ...]


@st.composite
def layerings(draw: st.DrawFn) -> Layering:
    """Up to five devices over three drives and their partitions, and up to three uses anywhere in that."""
    names = [*DRIVES, *(f"{drive}1" for drive in DRIVES)]
    stacks = []
    for index in range(draw(st.integers(0, 5))):
        name = draw(st.sampled_from(["dm-", "md"])) + str(index)
        under = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        stacks.append((name, tuple(under)))
        names.append(name)
    uses = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(USES[:-1])), max_size=3))
    return Layering(tuple(stacks), tuple(uses))


def build(tree: BenchTree, layering: Layering) -> None:
    tree.adapter()
    for place, drive in enumerate(DRIVES):
        tree.scsi(drive, wwn=f"0x5000c5000000000{place}", serial=f"SER{place}", size=SMALL)
        if drive in divided(layering):
            tree.partition(drive, 1)
    for name, under in layering.stacks:
        tree.stacked(name, under)
    for name, use in layering.uses:
        number = tree.machine.text(f"/sys/class/block/{name}/dev")
        if use == "mounted":
            tree.mount(number, "/data")
        elif use == "mounted elsewhere":
            tree.mount(number, "/data", namespace="77")
        elif use == "swap":
            tree.swap(f"/dev/{name}")
        elif use == "open":
            tree.opened(f"/dev/{name}")
        elif use == "held" and name in DRIVES:
            tree.machine.taken[f"/dev/{name}"] = "another program holds it"
        elif use == "data" and name in DRIVES:
            tree.fill(name, MIB + 5, b"x")


def divided(layering: Layering) -> set[str]:
    """The drives of which the kernel knows a partition: those whose partition is named anywhere."""
    named = {name for name, _ in layering.uses} | {lower for _, under in layering.stacks for lower in under}
    return {drive for drive in DRIVES if f"{drive}1" in named}


def disks_under(name: str, layering: Layering) -> set[str]:
    """The drives under a device, worked out from the description and not from the tree."""
    stacks = dict(layering.stacks)
    if name in stacks:
        return set().union(*(disks_under(lower, layering) for lower in stacks[name]))
    return {name.rstrip("1")}


@settings(max_examples=150, deadline=None)
@given(layerings())
def test_a_drive_is_accepted_exactly_when_nothing_in_its_stack_is_used(layering: Layering) -> None:
    busy = {disk for name, _ in layering.stacks for disk in disks_under(name, layering)} | divided(layering)
    for name, use in layering.uses:
        if use not in ("held", "data") or name in DRIVES:
            busy |= disks_under(name, layering)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        tree = BenchTree(Path(folder))
        build(tree, layering)
        for place, drive in enumerate(DRIVES):
            mine = claim(wwn=f"0x5000c5000000000{place}", serial=f"SER{place}", size=SMALL)
            refused = bool(hold.check([mine], purpose="write", state_dir=STATE, machine=tree.machine))
            assert refused == (drive in busy)


@settings(max_examples=75, deadline=None)
@given(layerings())
def test_every_path_leads_to_the_drives_it_would_change(layering: Layering) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        tree = BenchTree(Path(folder))
        build(tree, layering)
        for name, _ in layering.stacks:
            assert set(physical(tree.machine, name)) == disks_under(name, layering)
            assert set(resolve(tree.machine, f"/dev/{name}").disks) == disks_under(name, layering)
