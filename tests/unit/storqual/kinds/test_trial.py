# SPDX-License-Identifier: Apache-2.0
"""Records of trials and programs follow from what was told, today as in the version that recorded them."""

import json
from pathlib import Path

import pytest

from storqual.kinds.images import Logged
from storqual.kinds.trial import held_to_load
from storqual_core.turns.integrity_load import FILL_SECTORS
from tests.attacks.trial_run import trial_run

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
OF_ITS_RUN = ("raw",)
"""What depends on the name of the run."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trial_run(tmp_path_factory.mktemp("runs") / "good")


@pytest.mark.parametrize(
    ("name", "golden"),
    [("power_cut.vbench.fusion.2.1.candidate", "trials"), ("conformance.vbench.fusion.1.candidate", "external")],
)
def test_a_record_is_what_former_versions_made_of_the_same_stream(run: Path, name: str, golden: str) -> None:
    """Whoever changes what is derived gives it another schema, or runs of today are told as changed."""
    body = json.loads((run / "turns" / f"{name}.json").read_bytes())
    kept = {key: value for key, value in body.items() if key not in OF_ITS_RUN}
    assert kept == json.loads((GOLDEN / f"{golden}_record.json").read_bytes())


@pytest.mark.parametrize(
    "line", [[1, 2, 3], [1, 2, 3, [4.5]], ["1", 2, 3, [4]], [1, 2, 3, 4], None, [True, 0, 1, []]]
)
def test_what_is_no_entry_of_a_log_is_an_error(line: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        Logged.from_json(line)


LOAD = {"sectors": 4096, "sizes": [1]}


def test_lines_of_a_load_are_those_that_a_bench_tells() -> None:
    """A fill is longer than the I/Os of its load, and each turn reads the whole region."""
    lines = [
        {"kind": "io", "ios": [["w", 1, 0, FILL_SECTORS, 1, 2, 0], ["f", 0, 0, 0, 3, 4, 0]]},
        *({"kind": "found", "turn": turn, "runs": [[at, 2048, "good", 1]]} for turn in (1, 2) for at in (0, 2048)),
        {"kind": "note"},
    ]
    assert list(held_to_load(lines, LOAD)) == lines


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "io", "ios": [["w", 1, 0, FILL_SECTORS + 1, 1, 2, 0]]},
        {"kind": "found", "turn": 1, "runs": [[0, 4097, "good", 1]]},
        {"kind": "found", "turn": 1, "runs": [[0, -9999, "good", 1], [0, 9999, "good", 1]]},
    ],
)
def test_lines_of_no_load_are_refused(line: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="sectors"):
        list(held_to_load([line], LOAD))
