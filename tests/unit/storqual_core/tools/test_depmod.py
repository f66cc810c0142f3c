# SPDX-License-Identifier: Apache-2.0
"""Which of several files of a module depmod takes, by its configuration."""

from pathlib import Path

import pytest

from storqual_core.tools.depmod import OWN_ORDER, Override, overrides, parse_overrides, search_order, winner
from tests.support.bench_tree import BenchTree

EL = ("updates", "extra", "built-in", "weak-updates")
SUSE = ("updates", "extra", "weak-updates", "kgraft", "built-in")
OWN, LINK, EXTRA = "kernel/drivers/scsi/hba.ko.xz", "weak-updates/hba/hba.ko", "extra/hba/hba.ko"


@pytest.mark.parametrize(
    ("places", "order", "lines", "taken"),
    [
        # tried: a link loses to the kernel's own one in EL's order, and wins with an override
        ([OWN, LINK], EL, "", OWN),
        ([OWN, LINK], EL, "override hba * weak-updates/hba", LINK),
        ([OWN, LINK], SUSE, "", LINK),
        ([OWN, EXTRA], EL, "", EXTRA),
        ([OWN, EXTRA], OWN_ORDER, "", OWN),
        ([OWN, LINK, EXTRA], EL, "override hba * weak-updates/hba", LINK),
        # one for another kernel, another module, another place; a pattern for kernels
        ([OWN, LINK], EL, "override hba 6.1.0-9 weak-updates/hba", OWN),
        ([OWN, LINK], EL, "override hba 5.14.0-.* weak-updates/hba", LINK),
        ([OWN, LINK], EL, "override hbb * weak-updates/hba", OWN),
        ([OWN, LINK], EL, "override hba * weak-updates", OWN),
        ([OWN, LINK], EL, "override hba [ weak-updates/hba", OWN),
        ([], EL, "", ""),
    ],
)
def test_the_file_that_wins(places: list[str], order: tuple[str, ...], lines: str, taken: str) -> None:
    assert winner(places, order, parse_overrides(lines, "/etc/depmod.d/hba.conf"), "5.14.0-427.el9") == taken


def test_names_of_modules_may_have_dashes() -> None:
    override = Override("hba_x", "*", "extra/hba-x", "f")
    assert override.names("extra/hba-x/hba-x.ko.zst", "6.1")


def test_the_configuration_is_read_in_depmods_order(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path)
    assert (search_order(tree.machine), overrides(tree.machine)) == (OWN_ORDER, ())
    tree.write("/usr/lib/depmod.d/dist.conf", "# EL\nsearch updates extra built-in weak-updates\n")
    tree.write("/lib/depmod.d/a.conf", "override hba * extra/a\n")
    tree.write("/etc/depmod.d/a.conf", "override hba * extra/b\noverride cut\n")
    tree.write("/etc/depmod.d/a.conf.rpmsave", "override hba * extra/c\n")
    assert search_order(tree.machine) == EL
    assert [(each.folder, each.file) for each in overrides(tree.machine)] == [("extra/b", "/etc/depmod.d/a.conf")]
