# SPDX-License-Identifier: Apache-2.0
"""Asking benches: who answered, and why the others did not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from storqual.bench import ask
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

    monkeypatch.setattr(ask, "run_playbook", play)
    return bench


GONE = {"kind": "unreachable", "host": "bench02", "message": "no route to host\nmore words"}


def test_a_bench_that_does_not_answer_is_told_with_its_reason(answering: dict[str, Any]) -> None:
    answering |= {"answers": {"bench01": {"a": 1}}, "events": [{"kind": "task", "name": "x"}, GONE]}
    answers = ask.ask_every_bench("facts.yml", [INVENTORY])
    assert (dict(answers.found), dict(answers.silent)) == ({"bench01": {"a": 1}}, {"bench02": "no route to host"})
    assert ask.ask_benches("facts.yml", [INVENTORY]) == {"bench01": {"a": 1}}


def test_no_answer_at_all_is_a_failure_with_a_line_for_each_bench(answering: dict[str, Any]) -> None:
    answering |= {"events": [GONE, {**GONE, "host": "bench01", "message": "no python"}]}
    with pytest.raises(StorqualError) as told:
        ask.ask_benches("facts.yml", [INVENTORY])
    assert str(told.value).splitlines() == [
        "no bench answered (status 4):",
        "bench01 did not answer: no python",
        "bench02 did not answer: no route to host",
    ]
    answering |= {"events": [], "said": "first\nERROR! no such inventory\n"}
    with pytest.raises(StorqualError, match="ERROR! no such inventory"):
        ask.ask_benches("facts.yml", [INVENTORY])


def test_the_command_ends_with_code_2_when_a_bench_is_silent(answering: dict[str, Any]) -> None:
    answering |= {"answers": {"bench01": FACTS}, "events": [GONE]}
    ended = CliRunner().invoke(facts_command, ["-i", INVENTORY, "--json"], standalone_mode=False)
    assert ended.return_value == 2
    assert "bench02 did not answer: no route to host" in ended.output
