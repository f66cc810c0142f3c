# SPDX-License-Identifier: Apache-2.0
"""Records of trials and programs follow from what was told, today as in the version that recorded them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storqual.robustness.follows import trial_findings
from storqual.robustness.images import Logged
from storqual.run import read_run
from tests.attacks.trial_run import trial_run

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
OF_ITS_RUN = ("stream_sha256", "write_log_sha256")
"""What depends on the name of the run."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trial_run(tmp_path_factory.mktemp("runs") / "good")


def test_nothing_speaks_against_a_run_as_it_was_made(run: Path) -> None:
    assert trial_findings(read_run(run)) == []


@pytest.mark.parametrize(
    "name", ["trials/power_cut.fusion.2.1.candidate.json", "external/conformance.fusion.1.candidate.json"]
)
def test_a_record_is_what_former_versions_made_of_the_same_stream(run: Path, name: str) -> None:
    """Whoever changes what is derived gives it another schema, or runs of today are told as changed."""
    body = json.loads((run / name).read_bytes())
    kept = {key: value for key, value in body.items() if key not in OF_ITS_RUN}
    assert kept == json.loads((GOLDEN / f"{Path(name).parent.name}_record.json").read_bytes())


@pytest.mark.parametrize(
    "line", [[1, 2, 3], [1, 2, 3, [4.5]], ["1", 2, 3, [4]], [1, 2, 3, 4], None, [True, 0, 1, []]]
)
def test_what_is_no_entry_of_a_log_is_an_error(line: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        Logged.from_json(line)
