# SPDX-License-Identifier: Apache-2.0
"""LUNs of several paths through a fabric: to lose one costs no I/O, whatever took it, and it comes back."""

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.run import read_run
from storqual.run.turns import turns_of
from tests.support.live_bench import REPOSITORY, over_ssh, power_fixture, qualified, ran

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(5400)]

INVENTORY = REPOSITORY / "inventories" / "virtual_fabric_paths"
STATE = REPOSITORY / ".cache" / "bench" / "vfpaths"
PATHS = {"fc": 4, "iscsi": 2, "nvmet": 2}
LOST = {
    ("fc", "path_offline"): 1,
    # both paths through the target port
    ("fc", "alua_unavailable"): 2,
    ("iscsi", "path_offline"): 1,
    ("iscsi", "alua_unavailable"): 1,
    ("nvmet", "ana_inaccessible"): 1,
    ("iscsi", "target_link_down"): 1,
    ("nvmet", "target_link_down"): 1,
}
TIMERS_S = {"path_offline": 30.0, "alua_unavailable": 30.0, "ana_inaccessible": 30.0, "target_link_down": 45.0}
"""What the suite allows a load to wait: the timers of `drops/short_timers.yml` and of multipathd, with room."""
STATES = "cat /sys/kernel/config/target/core/iblock_0/*/alua/port*/alua_access_state"
LINKS = "ip -n target -br link | grep -c DOWN"


powered = power_fixture(INVENTORY, STATE)


def test_a_lun_has_the_declared_paths_and_the_first_target_port_is_optimized(tmp_path: Path) -> None:
    code, said = ran(tmp_path / "facts", "storqual", "facts", "-i", INVENTORY, "--json")
    assert code == 0, said[-2000:]
    facts: dict[str, Any] = json.loads(said)["vfpaths"]
    paths = [path for drive in facts["drives"] for path in drive.get("paths", ())]
    found = {fabric: [path["access"] for path in paths if path["fabric"] == fabric] for fabric in ("fc", "iscsi")}
    assert {name: len(states) for name, states in found.items()} == {"fc": 4, "iscsi": 2}
    assert sorted(found["fc"]) == ["active/non-optimized"] * 2 + ["active/optimized"] * 2


def test_a_path_is_lost_failed_over_and_failed_back_without_a_lost_write(tmp_path: Path) -> None:
    words = ["--baseline", "short_timers", "--candidate", "short_timers", "--suite", "fabric-paths", "--seed", "1"]
    code, output, run = qualified(tmp_path, INVENTORY, *words)
    files = turns_of(read_run(run))
    tried: dict[tuple[str, str], list[str]] = {}
    for record in files.records:
        assert (record["outcome"], record["errors"]) == ("passed", 0), (record["id"], record["reasons"])
        told = {text.partition(":")[0]: text for _, what, text in record["timeline"] if what == "proof"}
        key = (record["adapter"], record["way"])
        before, after = PATHS[key[0]], PATHS[key[0]] - LOST[key]
        assert f"{before} paths of" in told["path_lost"], told
        assert f"{after} without" in told["path_lost"], told
        assert f"{before} paths of" in told["path_back"]
        assert 0 < record["stall_s"] < TIMERS_S[key[1]]
        tried.setdefault(key, []).append(record["arm"])
    assert {key: sorted(arms) for key, arms in tried.items()} == {key: ["baseline", "candidate"] for key in LOST}
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (code, verdict["outcome"]) == (0, "PASS"), output[-3000:]
    # as the bench was set up: two LUNs with an optimized port and one that is not, and every link up
    assert over_ssh(STATE, "vfpaths", f"{STATES}; {LINKS}; true", limit_s=60).split() == ["0", "1", "0", "1", "0"]
