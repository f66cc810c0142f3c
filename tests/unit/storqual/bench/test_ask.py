# SPDX-License-Identifier: Apache-2.0
"""Asking benches: who answered, and why the others did not."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from storqual.bench import ansible_run, drift
from storqual.bench.drift import drift_table
from storqual.cli.facts import facts_command
from storqual_core.kit.errors import StorqualError
from tests.golden.sheet import FACTS

INVENTORY = str(Path(__file__).resolve().parents[4] / "inventories" / "local")


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A play over benches: their answers by name, and what goes wrong on the others."""
    bench: dict[str, Any] = {"answers": {}, "events": [], "said": ""}

    def play(name: str, **more: Any) -> int:
        folder = Path(more["variables"]["answers_folder"])
        for host, answer in bench["answers"].items():
            (folder / f"{host}.json").write_text(json.dumps(answer), encoding="utf-8")
        lines = "".join(json.dumps(event) + "\n" for event in bench["events"])
        Path(more["environment"]["STORQUAL_PROGRESS_FILE"]).write_text(lines, encoding="utf-8")
        more["output"].write_text(bench["said"], encoding="utf-8")
        return 4

    monkeypatch.setattr(ansible_run, "run_playbook", play)
    return bench


GONE = {"kind": "unreachable", "host": "bench02", "message": "no route to host\nmore words"}


def test_a_bench_that_does_not_answer_is_told_with_its_reason(answering: dict[str, Any]) -> None:
    answering |= {"answers": {"bench01": {"a": 1}}, "events": [{"kind": "task", "name": "x"}, GONE]}
    answers = ansible_run.ask_every_bench("facts.yml", [INVENTORY])
    assert (dict(answers.by_bench), dict(answers.silent)) == ({"bench01": {"a": 1}}, {"bench02": "no route to host"})
    assert ansible_run.ask_benches("facts.yml", [INVENTORY]) == {"bench01": {"a": 1}}


def test_no_answer_at_all_is_a_failure_with_a_line_for_each_bench(answering: dict[str, Any]) -> None:
    answering |= {"events": [GONE, {**GONE, "host": "bench01", "message": "no python"}]}
    with pytest.raises(StorqualError) as told:
        ansible_run.ask_benches("facts.yml", [INVENTORY])
    assert str(told.value).splitlines() == [
        "no bench answered (status 4):",
        "bench01 did not answer: no python",
        "bench02 did not answer: no route to host",
    ]
    answering |= {"events": [], "said": "first\nERROR! no such inventory\n"}
    with pytest.raises(StorqualError, match="ERROR! no such inventory"):
        ansible_run.ask_benches("facts.yml", [INVENTORY])


def test_the_command_ends_with_code_2_when_a_bench_is_silent(answering: dict[str, Any]) -> None:
    answering |= {"answers": {"bench01": FACTS}, "events": [GONE]}
    ended = CliRunner().invoke(facts_command, ["-i", INVENTORY, "--json"], standalone_mode=False)
    assert ended.return_value == 2
    assert "bench02 did not answer: no route to host" in ended.output


def test_every_bench_has_a_row() -> None:
    found = {"bench02": ["d1 drive.WCE: 1, declared 0", "d1 drive.DRA: 0, declared 1"], "bench01": []}
    assert drift_table(found, {"bench010": "no route to host\nsecond line"}) == [
        "drift: 1 of 3 benches differ from what is declared, 1 could not be read",
        *("bench     state", "bench01   as declared", "bench010  not read: no route to host"),
        *("bench02   2 differences", "            d1 drive.WCE: 1, declared 0"),
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
    assert (found.differences, found.unseen) == ({"b1": ["x"]}, {"b2": "unreachable"})
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
