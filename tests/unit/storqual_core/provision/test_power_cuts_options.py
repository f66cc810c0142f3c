# SPDX-License-Identifier: Apache-2.0
"""The plug is pulled between any two side effects of loading a driver with options; it is never left unloaded."""

from pathlib import Path

import pytest

from storqual_core.kit.lock import read_saved
from storqual_core.provision.boot import System
from storqual_core.provision.engine import Call
from storqual_core.provision.options import OptionsBench, provision_options
from storqual_core.provision.restore import Tools, restore
from tests.support.adapter_bench import AdapterBench
from tests.support.power_cut import Mains, every_cut
from tests.unit.storqual_core.provision.test_options import FOUR, PCI, WWN, provide, put_back


def bench_in(root: Path) -> AdapterBench:
    """A Symbios adapter with one drive; its module shows none of its parameters."""
    made = AdapterBench(root, modules={"sym53c8xx": {"cmd_per_lun": None, "safe": "0"}})
    made.adapter(PCI, "sym53c8xx")
    made.drive("sda", PCI, 0, WWN)
    return made


def boot(bench: AdapterBench) -> None:
    """The power comes back: the module is loaded with what our file says."""
    bench.given.clear()
    bench(["modprobe", "sym53c8xx"])


def runs_with(bench: AdapterBench) -> dict[str, str] | None:
    """The options that the loaded module was given; None when it is not loaded."""
    return bench.given.get("sym53c8xx", {}) if bench.machine.exists("/sys/module/sym53c8xx/initstate") else None


@pytest.mark.parametrize("loses_memory", [False, True], ids=["program dies", "power is lost"])
def test_the_driver_runs_as_declared_after_the_next_run(tmp_path: Path, loses_memory: bool) -> None:

    def work(bench: AdapterBench, mains: Mains) -> None:
        call = Call(str(bench.root / "state"), "r1")
        provision_options(FOUR, call, OptionsBench(mains.runner(bench), bench.machine))

    cuts = 0
    for bench in every_cut(tmp_path, bench_in, work):
        cuts += 1
        if loses_memory:
            boot(bench)
        provide(bench, FOUR)
        assert runs_with(bench) == {"cmd_per_lun": "4"}, f"cut {cuts}"
        assert "cmd_per_lun=4" in (bench.modprobe_file() or "")
        put_back(bench)
        assert runs_with(bench) == {}
        assert bench.modprobe_file() is None
        assert read_saved(bench.root / "state") is None
    assert cuts > 6


@pytest.mark.parametrize("loses_memory", [False, True], ids=["program dies", "power is lost"])
def test_a_cut_restore_is_finished_by_the_next_one(tmp_path: Path, loses_memory: bool) -> None:

    def changed(root: Path) -> AdapterBench:
        bench = bench_in(root)
        provide(bench, FOUR)
        return bench

    def work(bench: AdapterBench, mains: Mains) -> None:
        tools = Tools(mains.runner(bench), System(bench), machine=bench.machine)
        restore(str(bench.root / "state"), tools, check=False)

    for bench in every_cut(tmp_path, changed, work):
        if loses_memory:
            boot(bench)
        put_back(bench)
        assert runs_with(bench) == {}
        assert bench.modprobe_file() is None
        assert read_saved(bench.root / "state") is None
