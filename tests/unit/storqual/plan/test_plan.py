# SPDX-License-Identifier: Apache-2.0
"""The inventories that come with the project, planned from their files through Ansible."""

import json
from pathlib import Path

import pytest

from storqual.inputs import load_suite
from storqual.inputs.policy import Gate
from storqual.judge.question import planned_criteria
from storqual.plan.make import PlanRequest, plan_run
from storqual.run import coverage, read_batch, read_run
from storqual_core.kit.errors import BadInputError

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[4]
INVENTORIES = REPOSITORY / "inventories"


def ask(inventory: str, baseline: str, candidate: str, **more: object) -> PlanRequest:
    return PlanRequest([INVENTORIES / inventory], baseline, candidate, "adapter", **{"seed": 1, **more})  # type: ignore[arg-type]


def test_the_local_inventory_plans_within_two_minutes(tmp_path: Path) -> None:
    """Files beside the checkout's cache, no root; what both arms declare is the same, and the plan says so."""
    planned = plan_run(ask("local", "baseline", "candidate"), tmp_path)
    assert planned.to_json()["expected_seconds"] < 120
    assert planned.path is not None
    run = read_run(planned.path)
    (drive, *_) = run.benches["this_machine"]["adapters"]["files"]["drives"]
    assert drive["id"] == str(REPOSITORY / ".cache" / "local" / "targets" / "drive0")
    assert run.benches["this_machine"]["state_dir"] == str(REPOSITORY / ".cache" / "local")
    block = read_batch(run.path, "s01-b01")
    assert set(block["targets"][drive["id"]]["claim"]) == {"file", "size"}
    assert {launch["request"]["fio"]["options"]["rate_iops"] for launch in block["turns"]} <= {200, 192, 48}
    assert "compares a drop with itself" in planned.to_json()["warnings"][0]
    assert len(coverage(run).holes) == planned.to_json()["points"]


def test_the_spec_sheets_of_a_suite_are_copied_into_the_run(tmp_path: Path) -> None:
    suite = (REPOSITORY / "suites" / "adapter.suite.yml").read_text(encoding="utf-8")
    path = tmp_path / "mine.suite.yml"
    path.write_text(suite.replace("criteria:\n", "criteria:\n  - {id: stated, metric: iops, against: product}\n"))
    path.write_text(path.read_text() + "products: [files]\n", encoding="utf-8")
    sheet = tmp_path / "files.product.yml"
    sheet.write_text("adapter: '*'\nsource: x\nlimits: {metric: iops, min: 1}\n", encoding="utf-8")
    request = PlanRequest([INVENTORIES / "local"], "baseline", "candidate", str(path), seed=1)
    planned = plan_run(request, tmp_path / "runs")
    assert planned.path is not None
    run = read_run(planned.path)
    assert run.input_file("product:files").read_bytes() == sheet.read_bytes()
    _, criterion = planned_criteria(run, load_suite(run.input_file("suite")), Gate())[0]
    assert criterion.id == "stated"


def test_the_example_lab_is_a_good_example(tmp_path: Path) -> None:
    package = "qla2xxx-dkms_10.02.14.01_all.deb"
    (tmp_path / package).touch()
    drop = (INVENTORIES / "example_lab" / "drops" / "driver_candidate.yml").read_text(encoding="utf-8")
    (tmp_path / "candidate.yml").write_text(drop.replace(f"/srv/drops/{package}", package), encoding="utf-8")
    candidate = str(tmp_path / "candidate.yml")
    planned = plan_run(ask("example_lab", "driver_in_field", candidate, limit="bench01"), tmp_path)
    assert planned.path is not None
    run = read_run(planned.path)
    assert b"baseline_max_age: 90d" in run.input_file("gate").read_bytes()
    spec = run.document["provision"]["bench01"]["candidate"]
    assert spec["driver"]["options"] == {"qla2xxx": {"ql2xmaxqdepth": "64", "ql2xmqsupport": "1"}}
    assert set(spec["drive"]) == {drive["id"] for drive in run.benches["bench01"]["adapters"]["fc0"]["drives"]}
    assert spec["nvram"] == {"fc0": {"execution_throttle": 32}}
    assert b"bmc" not in run.input_file("inventory").read_bytes()


def test_quick_on_the_virtual_bench_fits_its_minutes(tmp_path: Path) -> None:
    """At most twenty points over three adapters; at most 55 s of measuring in a session."""
    for number, kernel in enumerate(("linux-image-6.1.0-47-amd64", "linux-image-6.12.0-1-amd64")):
        drop = tmp_path / f"{number}.yml"
        drop.write_text(json.dumps({"driver": {"kernel": {"package": kernel}}}), encoding="utf-8")
    planned = plan_run(ask("virtual", str(tmp_path / "0.yml"), str(tmp_path / "1.yml"), profile="quick"), tmp_path)
    assert planned.path is not None
    run = read_run(planned.path)
    assert planned.to_json()["points"] <= 20
    assert len({point.adapter for point in run.plan.points}) == 3
    assert planned.to_json()["expected_seconds"] <= 8 * 60
    for session in run.plan.sessions:
        launches = [launch for block in session.batches for launch in read_batch(run.path, block)["turns"]]
        assert len(launches) * (run.plan.runtime_s + run.plan.ramp_s + 0.9) <= 55
    factors = {(name, level) for point in run.plan.points for name, level in point.factors.items()}
    assert len(factors) == 3 + 2 + 2


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    planned = plan_run(ask("local", "baseline", "candidate"), tmp_path / "runs", write=False)
    assert planned.path is None
    assert planned.to_json()["points"] == 4
    assert not (tmp_path / "runs").exists()


def test_an_inventory_that_ansible_cannot_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("benches: [\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"hosts.yml:2: found the end of the file, expected the node content"):
        plan_run(PlanRequest([tmp_path / "hosts.yml"], "a", "b", "adapter"), tmp_path / "runs")


def test_a_hostile_model_stays_text(tmp_path: Path) -> None:
    text = (INVENTORIES / "example_lab" / "hosts.yml").read_text(encoding="utf-8")
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "hosts.yml").write_text(text.replace("XS1600ME70004", '"{{ 7*7 }}<script>"'), encoding="utf-8")
    drop = tmp_path / "d.yml"
    drop.write_text("", encoding="utf-8")
    request = PlanRequest([lab], str(drop), str(drop), "adapter", limit="bench01")
    planned = plan_run(request, tmp_path / "runs")
    assert planned.path is not None
    drives = read_run(planned.path).benches["bench01"]["adapters"]["fc0"]["drives"]
    assert {drive["model"] for drive in drives} == {"{{ 7*7 }}<script>"}


@pytest.mark.parametrize(("inventory", "told"), [("virtual", True), ("virtual_rate", False)])
def test_a_required_cpu_time_that_follows_the_load_of_this_machine_is_told(
    tmp_path: Path, inventory: str, told: bool
) -> None:
    planned = plan_run(PlanRequest([INVENTORIES / inventory], "stable", "backport", "driver-cost", seed=1), tmp_path)
    assert any("clock: instructions" in warning for warning in planned.to_json()["warnings"]) is told
