# SPDX-License-Identifier: Apache-2.0
"""Timers and services of package managers are still while a bench is measured, and run again after it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual.campaign.declared import declared_document
from storqual_core.kit.command import Completed
from storqual_core.kit.errors import ToolError
from storqual_core.kit.lock import read_saved
from storqual_core.kit.results import PartialError
from storqual_core.provision.apply import Apply, ApplyRequest, ProvisionedBench
from storqual_core.provision.boot import System
from storqual_core.provision.restore import Tools, restore
from tests.support.bench_tree import BenchTree
from tests.support.power_cut import Mains, every_cut

TIMER, SERVICE = "dnf-makecache.timer", "packagekit.service"


class Systemd:
    """Units that are installed, those that run, and what does not stop or start."""

    def __init__(self, root: Path, *, running: Sequence[str] = (TIMER,), stuck: bool = False) -> None:
        self.tree = BenchTree(root)
        self.running, self.stuck = set(running), stuck
        self.seen: list[str] = []
        self.answer = ""
        for unit in (TIMER, SERVICE):
            self.tree.write(f"/usr/lib/systemd/system/{unit}", "")

    @property
    def state_dir(self) -> str:
        return str(self.tree.root / "state")

    def __call__(self, argv: Sequence[str], **_options: Any) -> Completed:
        self.seen.append(" ".join(argv))
        _, verb, *units = argv
        out = self.answer
        if verb == "is-active":
            out = out or "".join(f"{'active' if unit in self.running else 'inactive'}\n" for unit in units)
        elif not self.stuck:
            self.running = self.running - {*units} if verb == "stop" else self.running | {*units}
        return Completed(tuple(argv), 0, out, "", 0.0)

    def apply(self, runner: Any = None, **words: Any) -> dict[str, Any]:
        declared = declared_document({})
        request = ApplyRequest(declared, {}, words.pop("kind", "hardware"), ["os"], state_dir=self.state_dir, **words)
        return Apply(request, ProvisionedBench(runner or self, self.tree.machine, System(self))).run()

    def restore(self) -> dict[str, Any]:
        return restore(self.state_dir, Tools(self, System(self), machine=self.tree.machine), check=False)


def test_what_runs_is_stopped_recorded_and_started_again(tmp_path: Path) -> None:
    bench = Systemd(tmp_path)
    result = bench.apply()
    assert (bench.running, result["drift"]) == (set(), [])
    (entry,) = result["settings"]
    assert (entry["name"], entry["before"], entry["read_back"]) == (f"os.unit:{TIMER}", "active", "inactive")
    # a boot starts it again, and another one that did not run before
    bench.running = {TIMER, SERVICE}
    bench.apply()
    assert bench.running == set()
    assert bench.restore()["restored"]
    assert bench.running == {TIMER, SERVICE}
    assert read_saved(tmp_path / "state") is None


@pytest.mark.parametrize("words", [{"kind": "local"}, {"check": True}])
def test_nothing_is_stopped_where_nothing_may_be_changed(tmp_path: Path, words: dict[str, Any]) -> None:
    bench = Systemd(tmp_path)
    bench.apply(**words)
    assert bench.running == {TIMER}
    assert read_saved(tmp_path / "state") is None


def test_a_bench_that_has_none_is_not_even_asked(tmp_path: Path) -> None:
    bench = Systemd(tmp_path)
    for unit in (TIMER, SERVICE):
        (tmp_path / "usr/lib/systemd/system" / unit).unlink()
    bench.apply()
    assert bench.seen == []


def test_one_that_does_not_stop_is_named(tmp_path: Path) -> None:
    with pytest.raises(PartialError, match=f"{TIMER} still run"):
        Systemd(tmp_path, stuck=True).apply()


def test_an_answer_of_another_kind_is_an_error(tmp_path: Path) -> None:
    bench = Systemd(tmp_path)
    bench.answer = "System has not been booted with systemd"
    with pytest.raises(ToolError, match="does not tell whether"):
        bench.apply()


def test_a_power_cut_at_any_moment_ends_with_all_as_it_ran(tmp_path: Path) -> None:
    def work(bench: Systemd, mains: Mains) -> None:
        bench.apply(mains.runner(bench))

    cuts = 0
    for bench in every_cut(tmp_path, Systemd, work):
        cuts += 1
        bench.restore()
        assert bench.running == {TIMER}
        assert read_saved(bench.tree.root / "state") is None
    assert cuts > 4
