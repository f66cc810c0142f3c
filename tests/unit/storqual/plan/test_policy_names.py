# SPDX-License-Identifier: Apache-2.0
"""What a plan says of odd names: those in gate and waivers that nothing has, drops not called as their file."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from storqual.plan import make_plan
from tests.support.make_lab import make_lab

WAIVER = "waivers: [{%s, owner: me, reason: known, reference: X-1, expiry: 2035-01-01}]\n"


def warnings(folder: Path, **request: Any) -> str:
    return "\n".join(make_plan(make_lab(folder, candidate={"drive": {"WCE": 1}}, **request)).warnings)


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        (
            "required: [iopps]",
            "gate.yml:1: `required` names 'iopps', and no suite has such a criterion (did you mean",
        ),
        ("informative: [tail_p99]", "`informative` names 'tail_p99'"),
    ],
)
def test_a_gate_that_names_what_no_suite_has_is_told_with_its_line(gate: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "gate.yml").write_text(gate, encoding="utf-8")
    assert told in warnings(tmp_path)


@pytest.mark.parametrize("gate", ["required: [iops]", "required: ['io*']", "informative: [trials.device_reset]"])
def test_what_a_suite_or_a_check_may_have_is_no_reason_to_warn(gate: str, tmp_path: Path) -> None:
    (tmp_path / "gate.yml").write_text(gate, encoding="utf-8")
    assert "gate.yml" not in warnings(tmp_path)


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        ("criterion: flor", "waivers.yml:1: this waiver accepts nothing: no suite has a criterion 'flor'"),
        ("criterion: iops, bench: b2", "there is no bench 'b2'"),
        ("criterion: iops, adapter: symm", "there is no adapter 'symm' (did you mean 'sym'?)"),
        ("criterion: iops, suite: other", "there is no suite 'other'"),
        ("criterion: iops, adapter: s*", ""),
        ("criterion: test_mine.py::test_it", ""),
    ],
)
def test_a_waiver_that_accepts_nothing_is_told_with_its_line(scope: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "waivers.yml").write_text(WAIVER % scope, encoding="utf-8")
    said = warnings(tmp_path)
    assert told in said
    assert bool(told) == ("waivers.yml" in said)


def test_a_role_that_no_trusted_key_has_is_told(tmp_path: Path) -> None:
    key = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
    trusted = f"keys: [{{name: A, role: release-manager, public: ssh-ed25519 {key}, expires: 2035-01-01}}]\n"
    (tmp_path / "keys.yml").write_text(trusted, encoding="utf-8")
    (tmp_path / "gate.yml").write_text("signatures: [release-manger]\n", encoding="utf-8")
    said = warnings(tmp_path)
    assert "gate.yml:1: a signature as release-manger is asked for, and no key in" in said
    assert "did you mean 'release-manager'?" in said


def test_a_drop_with_another_name_than_its_file_is_told_with_the_name_that_counts(tmp_path: Path) -> None:
    request = make_lab(tmp_path, candidate={"name": "next", "drive": {"WCE": 1}})
    (told,) = [told for told in make_plan(request).warnings if "candidate.yml" in told]
    assert "this drop is called 'next': so runs, reports and waivers call it, and commands 'candidate'" in told
