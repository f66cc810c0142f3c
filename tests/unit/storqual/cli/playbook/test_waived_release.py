# SPDX-License-Identifier: Apache-2.0
"""A failing run that is published, published again with waivers, signed and verified: every part says the same."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storqual.campaign.pipeline import publish
from storqual.cli import main
from storqual.history.index import history_of
from storqual.report.export import criteria_csv, ocp_lines, open_metrics
from storqual.report.material import read_material
from storqual.report.trend import build_trend
from storqual.run import iter_events, sha256_of
from storqual.run.closing import close_run
from storqual.signoff.findings import run_findings
from storqual.signoff.verify import verify_run
from storqual_core.kit.errors import BadInputError
from tests.support.make_run import make_run
from tests.support.signing import Person, make_person, sign, write_keys
from tests.support.synthetic_shape import POINTS

pytestmark = pytest.mark.slow

WAIVERS = "- {criterion: iops, adapter: sym, owner: Pat, reason: known, reference: LAB-12, expiry: 2035-12-31}\n"
TOLD = "with 1 waiver: LAB-12 of Pat through 2035-12-31"
NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return make_person(tmp_path_factory.mktemp("person"), "Mia", "release-manager", expires="2099-12-31")


@pytest.fixture(scope="module")
def waivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lab") / "waivers.yml"
    path.write_text(WAIVERS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, person: Person, waivers: Path) -> Path:
    """A run that failed, was published, was published again with a waiver, and was signed."""
    folder = tmp_path_factory.mktemp("runs")
    run = make_run(folder, noise=0.003, points=POINTS[:1], adapters=("sym",), effect={"sym": -0.2})
    # a run that is closed already gets no hand-written checks, which would look for a real bench
    close_run(run)
    assert publish(run).verdict["exit_code"] == 1
    keys = write_keys(person.key.parent, person)
    with pytest.raises(BadInputError, match=r"(?s)report.html: this report is of another.*publish .* --waivers"):
        sign(run, person, keys, now=NOW, waivers=waivers)
    assert publish(run, waivers=waivers).verdict["exit_code"] == 0
    sign(run, person, keys, now=NOW)
    return run


def test_what_was_published_before_is_kept_and_on_record(released: Path) -> None:
    published = [event.fields["files"] for event in iter_events(released) if event.kind == "published"]
    assert len(published) == 2
    assert published[-1]["verdict.json"] == sha256_of((released / "verdict.json").read_bytes())
    kept = {
        sha256_of(path.read_bytes()): json.loads(path.read_text()) for path in released.glob("judgements/*/*.json")
    }
    assert kept[published[0]["verdict.json"]]["outcome"] == "FAIL"
    assert run_findings(released) == []


def test_report_history_trend_and_exports_name_the_waiver(released: Path, tmp_path: Path) -> None:
    verdict = json.loads((released / "verdict.json").read_text())
    assert verdict["reason"].endswith(f"1 failed and is accepted {TOLD}")
    assert f"this run passes {TOLD}" in verdict["warnings"]
    report = (released / "report.html").read_text(encoding="utf-8")
    assert "LAB-12 of Pat through 2035-12-31" in report
    (run,) = history_of(released.parent)["runs"]
    assert (run["outcome"], run["waivers"]) == ("PASS", TOLD)
    assert TOLD in build_trend([released.parent], tmp_path / "trend.html").read_text(encoding="utf-8")
    junit = (released / "junit.xml").read_text(encoding="utf-8")
    assert f'<property name="run_outcome" value="PASS {TOLD}" />' in junit
    assert '<property name="waiver" value="waived by Pat until 2035-12-31: known (LAB-12)" />' in junit
    material = read_material(released)
    assert criteria_csv(material).splitlines()[1].endswith(f"LAB-12,known,PASS {TOLD}")
    metrics = open_metrics(material)
    assert f'storqual_run_waivers{{run="{released.name}",waivers="LAB-12 of Pat through 2035-12-31"}} 1' in metrics
    assert any(f"this run passes {TOLD}" in line for line in ocp_lines(material))


def test_verify_says_released_with_the_waivers(
    released: Path, person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = person.key.parent / "keys.yml"
    verification = verify_run(
        released, keys, as_of=NOW + timedelta(hours=1), require_roles=["release-manager"], allow_virtual=True
    )
    assert (verification.problems, verification.to_json()["told"]) == ((), f"released {TOLD}")
    later = (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S")
    words = ["verify", str(released), "--keys", str(keys), "--as-of", later, "--require-role", "release-manager"]
    with pytest.raises(SystemExit):
        main([*words, "--allow-virtual"])
    assert f"{released.name}: released {TOLD}; outcome PASS" in capsys.readouterr().out


def test_a_signed_run_is_not_published_again(released: Path, waivers: Path) -> None:
    before = (released / "verdict.json").read_bytes()
    with pytest.raises(BadInputError, match="this run is signed and cannot be published again"):
        publish(released, waivers=waivers)
    assert (released / "verdict.json").read_bytes() == before
