# SPDX-License-Identifier: Apache-2.0
"""The plug is pulled between any two side effects of putting a driver build on a bench and of taking it off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storqual_core.bench_state import read_saved
from storqual_core.kernel_boot import System
from storqual_core.provision_build import BuildRequest, provision_build
from storqual_core.provision_options import OptionsBench
from storqual_core.restore import Tools, restore
from tests.power_cut import Mains, every_cut
from tests.unit.storqual_core.test_provision_build import PLACE, BuildBench, prebuilt, provide, put_back

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
    benches: dict[Path, BuildBench] = {}

    def scenario(root: Path, cut: int) -> tuple[Mains, Callable[[], Any]]:
        bench = benches[root] = BuildBench(root)
        mains = Mains(root, cut)
        request = BuildRequest("hba", files=[prebuilt(bench)], state_dir=str(root / "state"), run="r1")
        return mains, lambda: provision_build(request, OptionsBench(mains.runner(bench), bench.machine))

    cuts = 0
    for root in every_cut(tmp_path, scenario):
        cuts += 1
        bench = benches[root]
        if loses_memory:
            boot(bench)
            assert runs(bench) in ("AAAA", "BBBB")
        provide(bench, prebuilt(bench))
        assert runs(bench) == "BBBB", f"cut {cuts}"
        put_back(bench)
        assert runs(bench) == "AAAA"
        assert not (root / PLACE.lstrip("/")).exists()
        assert read_saved(root / "state") is None
    assert cuts > 8


@pytest.mark.parametrize("loses_memory", [False, True], ids=["program dies", "power is lost"])
def test_a_cut_restore_is_finished_by_the_next_one(tmp_path: Path, loses_memory: bool) -> None:
    """The memory goes last."""
    benches: dict[Path, BuildBench] = {}

    def scenario(root: Path, cut: int) -> tuple[Mains, Callable[[], Any]]:
        bench = benches[root] = BuildBench(root)
        provide(bench, prebuilt(bench))
        mains = Mains(root, cut)
        tools = Tools(mains.runner(bench), System(bench), machine=bench.machine)
        return mains, lambda: restore(str(root / "state"), tools, check=False)

    for root in every_cut(tmp_path, scenario):
        bench = benches[root]
        if loses_memory:
            boot(bench)
        put_back(bench)
        assert runs(bench) == "AAAA"
        assert read_saved(root / "state") is None
