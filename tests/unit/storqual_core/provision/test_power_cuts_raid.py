# SPDX-License-Identifier: Apache-2.0
"""The plug is pulled between any two side effects of making and of taking away a volume; the next run goes on."""

from pathlib import Path

import pytest

from storqual_core.kit.lock import read_saved
from storqual_core.kit.results import PartialError
from tests.support.bench_tree import BenchTree
from tests.support.fake_md import FakeMd
from tests.support.power_cut import every_cut
from tests.unit.storqual_core.provision.raid.test_layout import IDS, SMALL, provision, put_back, stamped

pytestmark = pytest.mark.slow


VOLUME = {"adapter": "sym", "level": "1", "name": "r1", "members": IDS[:2]}


def bench(root: Path) -> FakeMd:
    """Two claimed drives that are empty, and their mdadm."""
    tree = BenchTree(root).adapter()
    for place, wwn in enumerate(IDS[:2]):
        tree.scsi(f"sd{'ab'[place]}", wwn=wwn, serial=f"SER{place}", size=SMALL)
    return FakeMd(tree)


def as_it_was(md: FakeMd) -> bool:
    """No volume is left, and the drives that were members are scratch again."""
    clean = all(stamped(md.tree, f"sd{'ab'[place]}", IDS[place]) for place in range(2))
    return clean and not md.arrays and read_saved(md.tree.root / "var/lib/storqual") is None


def test_a_volume_is_made_by_the_next_run_and_taken_away(tmp_path: Path) -> None:
    cuts = 0
    for md in every_cut(tmp_path, bench, lambda md, mains: provision(md, VOLUME, runner=mains.runner(md))):
        cuts += 1
        said = provision(md, VOLUME)
        assert {entry["name"]: entry["read_back"] for entry in said["settings"]}["raid.level"] == "1"
        assert len(md.arrays) == 1
        assert put_back(md)["restored"]
        assert as_it_was(md)
    assert cuts > 10


def test_a_cut_inside_mdadm_leaves_an_array_that_is_made_again(tmp_path: Path) -> None:
    """The kernel holds its members and does not start it; nothing was ever written to it."""
    md = bench(tmp_path)
    md.known_to = 1
    with pytest.raises(PartialError):
        provision(md, VOLUME)
    md.known_to = None
    said = provision(md, VOLUME)
    assert "/dev/md127 stopped" in said["steps"]
    (array,) = md.arrays.values()
    assert (array.state, len(array.members)) == ("clean", 2)
    put_back(md)
    assert as_it_was(md)


@pytest.mark.long
def test_a_cut_restore_is_finished_by_the_next_one(tmp_path: Path) -> None:

    def with_volume(root: Path) -> FakeMd:
        md = bench(root)
        provision(md, VOLUME)
        return md

    for md in every_cut(tmp_path, with_volume, lambda md, mains: put_back(md, mains.runner(md))):
        put_back(md)
        assert as_it_was(md)
