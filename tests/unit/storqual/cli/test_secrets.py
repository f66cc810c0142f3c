# SPDX-License-Identifier: Apache-2.0
"""A password that stands in an inventory reaches no artefact: no run directory, no export, no terminal."""

from pathlib import Path

import pytest

from storqual.campaign.pipeline import publish
from storqual.plan.make import PlanRequest, plan_run
from storqual.report.export import criteria_csv, github_annotations, gitlab_code_quality, open_metrics, samples_csv
from storqual.report.material import read_material
from storqual.report.summary import print_summary
from storqual.run import read_run_json

pytestmark = pytest.mark.slow

SECRET = "canary-" + "5d41402a"

HOSTS = Path(__file__).with_suffix(".hosts").read_text(encoding="utf-8").replace("{SECRET}", SECRET)
DRIVE = '            - {{wwn: "0x5000c50015ea71a{0}", serial: S{0}, model: ST1, size: 1GiB, claim: true}}\n'


def test_a_password_of_the_inventory_is_in_no_artefact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = tmp_path / "lab"
    (lab / "drops").mkdir(parents=True)
    (lab / "hosts.yml").write_text(HOSTS + "".join(map(DRIVE.format, range(4))), encoding="utf-8")
    for drop in ("field", "new"):
        (lab / "drops" / f"{drop}.yml").write_text(f"name: {drop}\ndrive: {{WCE: 0}}\n", encoding="utf-8")
    planned = plan_run(PlanRequest((lab,), "field", "new", "adapter", seed=1), tmp_path / "runs")
    assert planned.path is not None
    done = publish(planned.path)
    print_summary(dict(done.verdict), read_run_json(planned.path), done.report)
    material = read_material(planned.path)
    texts = [write(material) for write in (criteria_csv, samples_csv, open_metrics)]
    texts += [write(material, tmp_path) for write in (github_annotations, gitlab_code_quality)]
    texts += capsys.readouterr()
    assert not any(SECRET in text for text in texts)
    files = [path for path in planned.path.rglob("*") if path.is_file()]
    assert {"report.html", "pytest.html", "junit.xml", "ocp.jsonl"} <= {path.name for path in files}
    assert [str(path) for path in files if SECRET.encode() in path.read_bytes()] == []
