# SPDX-License-Identifier: Apache-2.0
"""The way back: a restore flashes what was found."""

from pathlib import Path
from typing import Any

import pytest

from storqual_core.kit.lock import hold_lock
from storqual_core.provision.firmware import flash
from storqual_core.provision.firmware.flash import put_firmware_back
from tests.support.flash_bench import Bench, Owners, make_bench, run_to_the_end
from tests.support.replay import Replay


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench whose tool is the fake one."""
    return make_bench(tmp_path, monkeypatch)


def put_back(bench: Bench, monkeypatch: pytest.MonkeyPatch, *, check: bool = False) -> Any:
    """What a restore does with what is remembered."""
    monkeypatch.setattr(flash, "Adapters", lambda *_: Owners(bench.card))
    memory = bench.saved.values
    step = bench.step(check=check)
    if check:
        return put_firmware_back(memory, step, None, runner=Replay([]))
    with hold_lock(bench.folder / "state", "r1", "restore") as lock:
        return put_firmware_back(memory, step, lock, runner=Replay([]))


@pytest.mark.parametrize("kind", ["reset", "reboot"])
def test_a_restore_flashes_the_version_that_was_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    bench.card.starts = kind
    run_to_the_end(bench, kind)
    seen = put_back(bench, monkeypatch, check=True)
    assert (seen.failures, seen.read_back, bench.card.version) == ([], {}, "2.0")
    back = put_back(bench, monkeypatch)
    if kind == "reboot":
        assert (back.pending, back.read_back) == ("reboot", {})
        bench.card.restart()
        back = put_back(bench, monkeypatch)
    assert (bench.card.version, back.pending, back.failures) == ("1.0", "", [])
    assert back.read_back == dict(bench.saved.values)
    assert bench.notes == {}


def test_a_restore_without_its_image_is_a_failure_that_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read back, so the memory stays."""
    bench.flash()
    (bench.folder / "fw-1.0.bin").unlink()
    back = put_back(bench, monkeypatch)
    assert back.read_back == {}
    assert "fw-1.0.bin: cannot be read" in back.failures[0]
