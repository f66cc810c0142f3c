# SPDX-License-Identifier: Apache-2.0
"""What one arm declares and the other does not is there as it was found."""

from pathlib import Path

import pytest

from storqual.campaign.declared import declared_document
from storqual.plan import make_plan
from tests.support.make_lab import make_lab


@pytest.mark.parametrize(
    ("name", "build"),
    [("dkms", {"package": "x.deb", "module": "sym_driver"}), ("kmod", {"files": ["x.rpm"], "module": "sym_driver"})],
)
def test_a_driver_build_of_one_arm_is_taken_off_for_the_other(tmp_path: Path, name: str, build: dict) -> None:
    lab = make_lab(tmp_path, baseline={}, candidate={"driver": {name: build}})
    for file in ("x.deb", "x.rpm"):
        (tmp_path / "drops" / file).touch()
    campaign = make_plan(lab)
    specs = campaign.document["provision"]["b1"]
    placed = specs["candidate"]["driver"][name]
    assert all(Path(file).is_absolute() for file in placed.get("files", [placed.get("package")]))
    baseline, candidate = declared_document(specs["baseline"]), declared_document(specs["candidate"])
    assert (baseline["driver"]["build_as_found"], baseline["driver"]["build"]) == (True, {})
    assert (candidate["driver"]["build_as_found"], candidate["driver"]["build"]["module"]) == (False, "sym_driver")


def test_what_one_arm_has_of_adapters_the_other_has_as_found(tmp_path: Path) -> None:
    candidate = {"nvram": {"max_tags": 8, "execution_throttle": 4}, "driver": {"options": {"sym53c8xx": {"safe": 1}}}}
    campaign = make_plan(make_lab(tmp_path, baseline={"driver": {"options": {"m": {"p": 1}}}}, candidate=candidate))
    specs = campaign.document["provision"]["b1"]
    baseline, candidate_inputs = declared_document(specs["baseline"]), declared_document(specs["candidate"])
    assert all(names == ["max_tags", "execution_throttle"] for names in baseline["nvram"]["as_found"].values())
    assert (baseline["driver"]["options"], baseline["driver"]["options_as_found"]) == ({"m": {"p": "1"}}, True)
    assert candidate_inputs["driver"]["options"] == {"sym53c8xx": {"safe": "1"}}
    assert candidate_inputs["nvram"]["as_found"] == {}
