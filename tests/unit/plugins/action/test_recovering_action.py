# SPDX-License-Identifier: Apache-2.0
"""A bench that stops answering while settings are applied or put back: it is brought back, and the play goes on."""

from pathlib import Path
from typing import Any

import pytest

from storqual.run import append_event, iter_events, read_batch, read_run
from tests.support.played_task import NEW, OLD, play_task, write_ssh
from tests.support.turn_records import REQUEST, plan_campaign

pytestmark = pytest.mark.plays

ANSWER = {"changed": True, "restored": True, "settings": [], "reboot": False, "power_cycle": False}

# A bench that goes down by the first module that runs on it, and is back in the boot of `back` at the third login.
SSH = Path(__file__).with_name("test_recovering_action.ssh").read_text(encoding="utf-8")


def play(
    folder: Path,
    task: dict[str, Any],
    *,
    back: str,
    steady: bool = False,
    up: bool = True,
    reserved: bool = True,
    **more: str,
) -> dict[str, Any]:
    """What the task returned on a bench that goes down under it and comes `back` in that boot."""
    write_ssh(folder, SSH, answer=ANSWER)
    (folder / "back").write_text(back, encoding="utf-8")
    if up:
        (folder / "boot").write_text(OLD, encoding="utf-8")
    if steady:
        (folder / "steady").touch()
    under = {"STORQUAL_LEASE": f"7@{folder}"} if reserved else {}
    variables = {"ansible_python_interpreter": "/usr/bin/python3", "storqual_kind": "hardware", **more}
    return play_task(folder, {**task, "ignore_unreachable": True}, under=under, **variables)[1]


def boots_of_modules(folder: Path) -> list[str]:
    return (folder / "modules").read_text(encoding="utf-8").split()


RESTORE: dict[str, Any] = {"bench_restore": {"state_dir": "/var/lib/storqual"}}
APPLY: dict[str, Any] = {"bench_apply": {"declared": {}, "adapters": {}, "state_dir": "/var/lib/storqual"}}


def test_a_restore_goes_on_on_the_boot_that_follows_a_hang(tmp_path: Path) -> None:
    result = play(tmp_path, RESTORE, back=NEW)
    assert result["restored"]
    assert boots_of_modules(tmp_path) == [OLD, NEW]


def test_what_hung_while_settings_were_applied_is_not_applied_to_another_boot(tmp_path: Path) -> None:
    result = play(tmp_path, APPLY, back=NEW)
    assert (result["failed"], result["storqual_exit_code"]) == (True, 2)
    assert NEW in result["msg"]
    assert result["seconds"] > 0
    assert "ended_by" in result
    assert boots_of_modules(tmp_path) == [OLD]


def test_a_connection_that_was_only_lost_goes_on_in_the_same_boot(tmp_path: Path) -> None:
    result = play(tmp_path, APPLY, back=OLD)
    assert not result["failed"]
    assert boots_of_modules(tmp_path) == [OLD, OLD]


def test_a_bench_that_answers_is_called_once(tmp_path: Path) -> None:
    assert not play(tmp_path, APPLY, back=OLD, steady=True)["failed"]
    assert boots_of_modules(tmp_path) == [OLD]


def test_a_bench_that_does_not_answer_between_two_tasks_is_brought_back(tmp_path: Path) -> None:
    result = play(tmp_path, {"bench_reboot": {"reboot": False}}, back=NEW, up=False)
    assert not result["failed"]
    assert (result["boot_id"], result["changed"]) == (NEW, False)


def test_an_earlier_panic_on_the_console_is_not_what_ended_a_hang(tmp_path: Path) -> None:
    (tmp_path / "virtual").mkdir()
    (tmp_path / "virtual/console.log").write_text("Kernel panic - not syncing: last week\n", encoding="utf-8")
    (tmp_path / "downs").write_text("5", encoding="utf-8")
    virtual = {"storqual_kind": "virtual", "virtual_bench_state": str(tmp_path / "virtual")}
    result = play(tmp_path, {"bench_reboot": {"reboot": False}}, back=NEW, up=False, **virtual)
    assert "panic" not in result["ended_by"], result


@pytest.mark.parametrize("batches", [0, 1])
def test_a_hang_between_two_batches_is_an_event_of_what_the_bench_did_last(tmp_path: Path, batches: int) -> None:
    run = plan_campaign(REQUEST, tmp_path)
    started = {"bench": "bench", "session": "s01", "arm": "candidate", "boot_id": OLD}
    append_event(run, "session_started", started)
    block = next(name for entry in read_run(run).plan.sessions if entry.id == "s01" for name in entry.batches)
    if batches:
        done = {"bench": "bench", "session": "s01", "block": block}
        done |= {"outcome": "done", "samples": 0, "sha256": "0" * 64}
        append_event(run, "block_finished", done)
    # Ansible itself tries more than once
    (tmp_path / "downs").write_text("5", encoding="utf-8")
    play(tmp_path, {"bench_reboot": {"reboot": False, "run": str(run)}}, back=NEW, up=False)
    steps = [event for event in iter_events(run) if event.kind == "recovery_step"]
    [hung] = [event for event in iter_events(run) if event.kind == "bench_hung"]
    arm = read_batch(run, block)["turns"][-1]["arm"] if batches else "candidate"
    assert (hung.text("session"), hung.text("arm"), hung.text("block")) == ("s01", arm, block if batches else "")
    assert (hung.text("ended_by"), steps[0].text("step")) == ("watchdog", "ask")


@pytest.mark.parametrize("task", [APPLY, {"bench_reboot": {"reboot": False}}, {**APPLY, "check_mode": True}])
def test_a_bench_that_nobody_reserved_or_that_is_only_looked_at_is_not_brought_back(
    tmp_path: Path, task: dict[str, Any]
) -> None:
    result = play(tmp_path, task, back="", up=False, reserved="check_mode" in task)
    assert result.get("unreachable") or result["failed"]
    assert "ended_by" not in result
    assert not (tmp_path / "modules").exists()
