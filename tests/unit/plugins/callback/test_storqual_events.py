# SPDX-License-Identifier: Apache-2.0
"""The exit code of a judging play: the verdict's, unless what it published contradicts it."""

import importlib.util
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storqual.base import child
from storqual.base.files import project_root


@pytest.fixture
def callback() -> Any:
    """The plugin as Ansible loads it: from its file."""
    path = project_root() / "library" / "plugins" / "callback" / "storqual_events.py"
    spec = importlib.util.spec_from_file_location("storqual_events", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("verdict", "publish", "code"),
    [(0, 0, 0), (1, 1, 1), (0, 2, 2), (1, 2, 2), (2, 2, 2), (0, 70, 70)],
    ids=["passed", "failed", "refused-report-of-a-pass", "refused-report-of-a-failure", "could-not", "unexpected"],
)
def test_a_play_that_could_not_publish_its_report_could_not_judge(
    callback: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: int, publish: int, code: int
) -> None:
    (tmp_path / "verdict.json").write_text(json.dumps({"exit_code": verdict}), encoding="utf-8")
    ended = SimpleNamespace(returncode=publish)
    monkeypatch.setattr(child, "run", lambda *_words, **_more: ended)
    play = callback.CallbackModule()
    play._run, play._began = tmp_path, time.time() - 5
    assert play._verdict_code() == code


@pytest.mark.parametrize(("broken", "code"), [("_tell", 1), ("_show_drift", 70)])
def test_what_breaks_at_the_end_of_a_play_leaves_no_code_of_ansible(
    callback: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, code: int
) -> None:
    """Ansible warns of a callback that raises and ends with 0, also beside a verdict that is FAIL."""
    (tmp_path / "verdict.json").write_text(json.dumps({"exit_code": 1}), encoding="utf-8")
    play = callback.CallbackModule()
    play._run, play._published, play._judging = tmp_path, True, True
    monkeypatch.setattr(play, broken, lambda *_: int(""))
    with pytest.raises(SystemExit) as left:
        play.v2_playbook_on_stats(SimpleNamespace(processed={"b1": 1}))
    assert left.value.code == code


@pytest.mark.parametrize("action", ["storqual_command", "ansible.builtin.set_fact", "bench_facts"])
def test_a_bench_says_neither_which_run_it_is_nor_that_it_is_judged(callback: Any, action: str) -> None:
    body = {"data": {"verdict": "/elsewhere/verdict.json"}, "ansible_facts": {"plan_run": "/elsewhere"}}
    play = callback.CallbackModule()
    host = SimpleNamespace(get_name=lambda: "b1")
    play.v2_runner_on_ok(SimpleNamespace(result=body, host=host, task=SimpleNamespace(action=action)))
    assert play._published is (action == "storqual_command")
    assert (play._run is None) is (action == "bench_facts")
