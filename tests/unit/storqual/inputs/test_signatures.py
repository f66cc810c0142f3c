# SPDX-License-Identifier: Apache-2.0
"""A run that nobody could sign is told before it is measured: its gate cannot be changed afterwards."""

from pathlib import Path

import pytest

from storqual.plan import make_plan
from tests.support.make_lab import make_lab
from tests.support.signing import REQUIRED, TRUSTED


@pytest.fixture(autouse=True)
def _no_keys_of_this_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORQUAL_KEYS", raising=False)


def told(folder: Path, keys: str, gate: str | None) -> tuple[str, ...]:
    """What a plan in a lab with these keys and this gate says of signing, without the folder."""
    request = make_lab(folder)
    (folder / "keys.yml").write_text(keys, encoding="utf-8")
    if gate is not None:
        (folder / "gate.yml").write_text(gate, encoding="utf-8")
    campaign = make_plan(request)
    assert set(campaign.unsigned) <= set(campaign.warnings)
    return tuple(one.replace(f"{folder}/", "") for one in campaign.unsigned)


def test_keys_that_require_two_roles_need_a_gate_that_asks_for_both(tmp_path: Path) -> None:
    assert told(tmp_path, TRUSTED + REQUIRED, None) == (
        (
            "nobody could sign this run: keys.yml requires a signature as technician, and without a gate policy the "
            "run asks for release-manager only; set `signatures: [release-manager, technician]` in gate.yml beside "
            "the inventory before it is measured"
        ),
    )


def test_a_gate_that_asks_for_less_is_named(tmp_path: Path) -> None:
    (one,) = told(tmp_path, TRUSTED + REQUIRED, "signatures: [technician]\n")
    assert "and gate.yml asks for technician only; set `signatures: [technician, release-manager]` in gate.yml" in one


@pytest.mark.parametrize(
    ("keys", "gate"),
    [
        (TRUSTED + REQUIRED, "signatures: [technician, release-manager, director]\n"),
        (TRUSTED + "require: [{roles: release-manager}]\n", None),
        (TRUSTED, None),
        ("keys: []\n", None),
        ("keys: [", None),
        (TRUSTED + "require: [{roles: technician, drop: other}]\n", None),
        (TRUSTED + "require: [{roles: technician, suite: other}]\n", None),
        (TRUSTED + "require: [{roles: technician, bench: other}]\n", None),
    ],
)
def test_a_lab_whose_runs_can_be_signed_is_told_nothing(tmp_path: Path, keys: str, gate: str | None) -> None:
    assert told(tmp_path, keys, gate) == ()


def test_the_keys_that_a_user_has_set_for_all_commands_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tmp_path / "mine.yml"
    keys.write_text(TRUSTED + REQUIRED, encoding="utf-8")
    monkeypatch.setenv("STORQUAL_KEYS", str(keys))
    assert f"{keys} requires a signature as technician" in make_plan(make_lab(tmp_path)).unsigned[0]
