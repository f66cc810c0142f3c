# SPDX-License-Identifier: Apache-2.0
"""A path to a drive is lost and used again under load, on two adapters by two ways, and nothing of it is left."""

import json
from pathlib import Path

import pytest

from storqual.run import read_run
from storqual.run.turns import turns_of
from tests.support.live_bench import REPOSITORY, over_ssh, play, power_fixture, qualified

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(3600)]

INVENTORY = REPOSITORY / "inventories" / "virtual_paths"
STATE = REPOSITORY / ".cache" / "bench" / "vpaths"
LEFT = "; ".join(
    (
        *("cat /etc/multipath.conf", "multipath -l", "grep -l ^mpath- /sys/class/block/dm-*/dm/uuid"),
        "systemctl is-active multipathd",
    )
)


powered = power_fixture(INVENTORY, STATE)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    """One campaign of the suite: its exit code, what it said, and the run."""
    folder = tmp_path_factory.mktemp("campaign")
    words = ["--baseline", "stable", "--candidate", "stable", "--suite", "paths", "--seed", "1"]
    return qualified(folder, INVENTORY, *words)


def test_a_lost_path_costs_no_io_and_is_used_again(campaign: tuple[int, str, Path]) -> None:
    code, output, run = campaign
    files = turns_of(read_run(run))
    assert len(files.records) == len(files.planned) == 8, output[-3000:]
    for record in files.records:
        assert (record["outcome"], record["errors"]) == ("passed", 0), (record["id"], record["reasons"])
        told = [text.partition(":")[0] for _, what, text in record["timeline"] if what == "proof"]
        assert [name for name in told if name.startswith("path_")] == ["path_lost", "path_back"]
        assert record["stall_s"] > 0
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (code, verdict["outcome"]) == (0, "PASS"), output[-3000:]


def test_nothing_of_multipath_is_left_and_the_declared_paths_are_accepted_without_it(
    campaign: tuple[int, str, Path], tmp_path: Path
) -> None:
    _, output, run = campaign
    assert turns_of(read_run(run)).records, output[-3000:]
    assert over_ssh(STATE, "vpaths", f"{LEFT}; true", limit_s=60).split() == ["inactive"]
    code, said = play(tmp_path / "log", INVENTORY, "preflight.yml")
    assert code == 0, said[-2000:]
