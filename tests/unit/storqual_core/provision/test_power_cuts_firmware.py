# SPDX-License-Identifier: Apache-2.0
"""A flash that was cut at any of its effects: what the next run makes of it."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.errors import ToolError
from storqual_core.provision.firmware import flash
from tests.support.fake_flash import Card, PowerCut
from tests.support.flash_bench import Bench, make_bench, run_to_the_end


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench whose tool is the fake one."""
    return make_bench(tmp_path, monkeypatch)


def effects_of(bench: Bench, kind: str) -> int:
    """How many effects a whole flash has on the outside."""
    bench.card = Card(starts=kind, forgets=True)
    (bench.folder / "whole").mkdir()
    run_to_the_end(Bench(bench.folder / "whole", bench.card), kind)
    return len(bench.card.effects)


@pytest.fixture
def files_are_effects(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power may also go right before each write of the memory and of the journal."""

    def counted(write: Any) -> Any:
        def effect(*words: Any) -> Any:
            bench.card.effect(write.__name__)
            return write(*words)

        return effect

    for name in ("remember", "note", "clear"):
        monkeypatch.setattr(flash, name, counted(getattr(flash, name)))


@pytest.mark.usefixtures("files_are_effects")
@pytest.mark.parametrize("boots", [True, False], ids=["power is lost", "program dies"])
@pytest.mark.parametrize("kind", ["none", "reset", "reboot", "power cycle"])
def test_after_a_cut_at_any_effect_the_next_run_ends_as_declared(bench: Bench, kind: str, boots: bool) -> None:
    """In another boot or in the same; the version that was found is still known, and so are the settings."""
    effects = effects_of(bench, kind)
    assert effects >= 7
    for cut in range(effects):
        folder = bench.folder / f"cut-{cut}"
        folder.mkdir()
        bench.card = Card(starts=kind, forgets=True, cut_at=cut)
        here = Bench(folder, bench.card)
        with pytest.raises(PowerCut):
            run_to_the_end(here, kind)
        here.card.cut_at = None
        if boots:
            here.card.restart()
        run_to_the_end(here, kind)
        assert (here.card.version, here.card.half_written, here.notes) == ("2.0", False, {}), f"cut at {cut}"
        assert here.card.settings == {"execution_throttle": 32}
        assert here.saved.values["firmware.firmware@sas0"]["version"] == "1.0"


def test_after_a_power_cut_a_dead_controller_is_a_persons_work(bench: Bench) -> None:
    bench.card.cut_at = 1
    with pytest.raises(PowerCut):
        bench.flash()
    bench.card.cut_at = None
    bench.card.dead = True
    with pytest.raises(ToolError) as caught:
        bench.flash()
    told = str(caught.value)
    assert "a flash of firmware from 1.0 to 2.0 was interrupted" in told
    assert "Power-cycle the bench and run this again" in told
    assert "write 1.0 (on the bench: " in told
    assert "with storcli" in told
