# SPDX-License-Identifier: Apache-2.0
"""The plug is pulled between any two side effects of putting a driver build on a bench and of taking it off."""

from pathlib import Path

import pytest

from storqual_core.kit.lock import read_saved
from storqual_core.provision.boot import System
from storqual_core.provision.driver import pending_starts
from storqual_core.provision.driver_build import BuildRequest, provision_build
from storqual_core.provision.engine import Call
from storqual_core.provision.options import OptionsBench
from storqual_core.provision.restore import Tools, restore
from tests.support.power_cut import Mains, every_cut
from tests.unit.storqual_core.provision.test_provision_build import PLACE, BuildBench, prebuilt, provide, put_back


def runs(bench: BuildBench) -> str | None:
    """The build that is loaded; None when the adapter has no driver."""
    folder = bench.root / "sys/module/hba"
    return (folder / "srcversion").read_text().strip() if (folder / "initstate").exists() else None


def boot(bench: BuildBench) -> None:
    """The power comes back: the build on disk is loaded."""
    bench(["modprobe", "hba"])


@pytest.mark.parametrize("loses_memory", [False, True], ids=["program dies", "power is lost"])
def test_the_declared_build_runs_after_the_next_run(tmp_path: Path, loses_memory: bool) -> None:
    """There is a driver at every boot in between, and the kernel's own after the restore."""

    def work(bench: BuildBench, mains: Mains) -> None:
        request = BuildRequest("hba", files=[prebuilt(bench)], call=Call(str(bench.root / "state"), "r1"))
        provision_build(request, OptionsBench(mains.runner(bench), bench.machine))

    cuts = 0
    for bench in every_cut(tmp_path, BuildBench, work):
        cuts += 1
        if loses_memory:
            boot(bench)
            assert runs(bench) in ("AAAA", "BBBB")
        provide(bench, prebuilt(bench))
        assert runs(bench) == "BBBB", f"cut {cuts}"
        put_back(bench)
        assert runs(bench) == "AAAA"
        assert not (bench.root / PLACE.lstrip("/")).exists()
        assert not pending_starts(bench.machine, str(bench.root / "state"))
        assert read_saved(bench.root / "state") is None
    assert cuts > 8


@pytest.mark.parametrize("loses_memory", [False, True], ids=["program dies", "power is lost"])
def test_a_cut_restore_is_finished_by_the_next_one(tmp_path: Path, loses_memory: bool) -> None:

    def changed(root: Path) -> BuildBench:
        bench = BuildBench(root)
        provide(bench, prebuilt(bench))
        return bench

    def work(bench: BuildBench, mains: Mains) -> None:
        tools = Tools(mains.runner(bench), System(bench), machine=bench.machine)
        restore(str(bench.root / "state"), tools, check=False)

    for bench in every_cut(tmp_path, changed, work):
        if loses_memory:
            boot(bench)
        put_back(bench)
        assert runs(bench) == "AAAA"
        assert read_saved(bench.root / "state") is None
