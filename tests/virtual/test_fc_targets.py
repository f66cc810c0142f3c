# SPDX-License-Identifier: Apache-2.0
"""FC targets in a guest of their own: they lose their power and come back under writes, and end with their bench."""

import json
from pathlib import Path

import pytest

from storqual.run import read_run
from storqual.run.turns import turns_of
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import guests
from tests.support.live_bench import REPOSITORY, powered_on, ran

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

INVENTORY = REPOSITORY / "inventories" / "virtual_fc_apart"
PLACES = BenchPlaces.of(REPOSITORY / ".cache" / "bench" / "vfcapart")


# with timers that a port outlasts, and with timers that it does not
CAMPAIGNS = {("patient", "quick"): {"target_loss", "link_loss"}, ("short_timers", "gone"): {"target_absence"}}


def test_targets_are_lost_and_back_under_writes_and_nothing_is_lost(tmp_path: Path) -> None:
    PLACES.state.mkdir(parents=True, exist_ok=True)
    with powered_on(tmp_path / "power", INVENTORY):
        bench, _targets = guests(PLACES)
        assert bench.drives_seen == 2
        for (drop, profile), faults in CAMPAIGNS.items():
            runs = tmp_path / profile
            words = ["--baseline", drop, "--candidate", drop, "--suite", "fabric-targets", "--profile", profile]
            code, said = ran(tmp_path / "said", "storqual", "qualify", "-i", INVENTORY, "--runs", runs, *words)
            (run,) = (path.parent for path in runs.glob("*/run.json"))
            records = turns_of(read_run(run)).records
            assert {record["fault"] for record in records} == faults, said[-3000:]
            assert not [record["reasons"] for record in records if record["outcome"] == "void"], said[-3000:]
            verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
            assert (code, verdict["outcome"], verdict["sectors_written_outside_claims"]) == (0, "PASS", 0), said[
                -3000:
            ]
        assert len(guests(PLACES)) == 2
    assert guests(PLACES) == []
