# SPDX-License-Identifier: Apache-2.0
"""What runs the guest's instructions, where the bench itself decides it."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.virtual_bench.acceleration import choose_acceleration
from storqual.virtual_bench.image import BenchImage
from storqual_core.kit.errors import BadInputError

NOWHERE = BenchImage(Path("/nowhere"))


@pytest.mark.parametrize("forced", ["", "tcg"])
def test_a_bench_that_counts_instructions_is_emulated_whatever_kvm_can(
    forced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORQUAL_ACCELERATION", forced)
    chosen = choose_acceleration(NOWHERE, counts_instructions=True)
    assert (chosen.name, chosen.reason) == ("tcg", "the clock of this bench counts instructions")


def test_kvm_cannot_be_forced_on_a_bench_that_counts_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORQUAL_ACCELERATION", "kvm")
    with pytest.raises(BadInputError, match="needs tcg"):
        choose_acceleration(NOWHERE, counts_instructions=True)


def test_a_way_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORQUAL_ACCELERATION", "xen")
    with pytest.raises(BadInputError, match="expected kvm or tcg"):
        choose_acceleration(NOWHERE, counts_instructions=True)
