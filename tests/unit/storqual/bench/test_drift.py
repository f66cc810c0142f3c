# SPDX-License-Identifier: Apache-2.0
"""The table at the end of a look at many benches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from storqual.bench import drift
from storqual.bench.drift import drift_table
from storqual_core.kit.errors import StorqualError


def test_every_bench_has_a_row() -> None:
    found = {"bench02": ["d1 drive.WCE: 1, declared 0", "d1 drive.DRA: 0, declared 1"], "bench01": []}
    assert drift_table(found, {"bench010": "no route to host\nsecond line"}) == [
        "drift: 1 of 3 benches differ from what is declared, 1 could not be read",
        "bench     state",
        "bench01   as declared",
        "bench010  not read: no route to host",
        "bench02   2 differences",
        "            d1 drive.WCE: 1, declared 0",
        "            d1 drive.DRA: 0, declared 1",
    ]


def test_what_a_drive_says_cannot_act_on_the_terminal() -> None:
    assert drift_table({"b": ["\x1b[2J drive.WCE"]}, {})[-1].endswith("\\x1b[2J drive.WCE")


def test_drift_is_looked_for_in_check_mode_and_read_from_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    events: list[dict[str, Any]] = [{"kind": "drift", "benches": {"b1": ["x"]}, "unseen": {"b2": "unreachable"}}]

    def play(name: str, **more: Any) -> int:
        asked.update(more, name=name)
        lines = "".join(json.dumps(event) + "\n" for event in events)
        Path(more["environment"]["STORQUAL_PROGRESS_FILE"]).write_text(lines, encoding="utf-8")
        more["output"].write_text("the end\n", encoding="utf-8")
        return 1

    monkeypatch.setattr(drift, "run_playbook", play)
    found = drift.look_for_drift(["inventories/lab"], "stable", limit="b*")
    assert (found.found, found.unseen) == ({"b1": ["x"]}, {"b2": "unreachable"})
    assert (asked["name"], asked["options"]) == ("setup.yml", ["--check", "--limit", "b*"])
    events[:] = [{"kind": "unreachable", "host": "b2", "message": "no route"}]
    with pytest.raises(StorqualError, match="no bench could be compared with stable:\nb2 did not answer: no route"):
        drift.look_for_drift(["inventories/lab"], "stable")
    events.append({"kind": "drift", "benches": {}, "unseen": {"b2": "no route"}})
    with pytest.raises(StorqualError, match="b2 did not answer"):
        drift.look_for_drift(["inventories/lab"], "stable")
    events.clear()
    with pytest.raises(StorqualError, match="the end"):
        drift.look_for_drift(["inventories/lab"], "stable")
