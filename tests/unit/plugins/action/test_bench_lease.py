# SPDX-License-Identifier: Apache-2.0
"""A bench that is off, such as a virtual one before its campaign, is queued for on the control node."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storqual.run import append_event, iter_events
from storqual_core.kit.lease import LeaseBook
from tests.support.live_bench import ran
from tests.support.make_run import make_run
from tests.support.power_services import FileSwitch, labgrid_lab, python_environment
from tests.unit.plugins.action.test_recovering_action import NEW, play

pytestmark = pytest.mark.plays


def test_a_bench_that_is_off_is_queued_for_and_not_asked(tmp_path: Path) -> None:
    run, queue = make_run(tmp_path / "run"), tmp_path / "queues" / "bench"
    task = {
        "bench_lease": {"run": str(run), "wait": "", "only_queue": True},
        "vars": {"storqual_queue": {"folder": str(tmp_path / "queues")}},
    }
    result = play(tmp_path, task, back=NEW, up=False)
    assert (result["failed"], result["lease"]) == (False, "")
    owner = LeaseBook(queue).read().owner
    assert owner is not None
    assert (owner.run, result["queued"].partition("@")[2]) == (run.name, str(queue))
    assert not (tmp_path / "logins").exists()


def reserve_and_give_back(
    folder: Path, run: Path, state: Path, queue: dict[str, Any], *, meanwhile: Sequence[dict[str, Any]] = ()
) -> tuple[int, str]:
    """A play that reserves this machine, does something, and gives it back whatever became of that."""
    lease = {"run": str(run), "state_dir": str(state), "python": sys.executable}
    given = {**lease, "release": True, "lease": "{{ made.lease }}", "queued": "{{ made.queued }}"}
    back = {"name": "Give back", "bench_lease": given, "environment": {"STORQUAL_LEASE": "{{ made.lease }}"}}
    tasks = [{"name": "Reserve", "bench_lease": lease, "register": "made"}, {"block": [*meanwhile], "always": [back]}]
    if not meanwhile:
        tasks[1] = back
    (folder / "play.yml").write_text(json.dumps([{"hosts": "bench", "gather_facts": False, "tasks": tasks}]))
    bench = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "storqual_queue": queue}
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"bench": bench}}}))
    return ran(folder / "log", "ansible-playbook", "-i", folder / "hosts.yml", folder / "play.yml")


@pytest.mark.long
def test_a_place_of_labgrid_is_acquired_while_it_is_needed_and_released_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = python_environment(tmp_path / "labgrid", "labgrid==26.0.1")
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    run = make_run(tmp_path / "run")
    with labgrid_lab(FileSwitch.made(tmp_path), programs) as lab:
        queue = {"labgrid": {"place": "bench1", "coordinator": lab.coordinator}}
        held = {"command": {"argv": ["labgrid-client", "-x", lab.coordinator, "-p", "bench1", "power", "get"]}}
        code, output = reserve_and_give_back(
            tmp_path, run, tmp_path / "state", queue, meanwhile=[held, {"fail": {"msg": "on purpose"}}]
        )
        assert code == 2
        assert "on purpose" in output
        assert lab.holder == ""
        # somebody else has it: nothing is reserved that would be left
        lab.client("acquire", user="ann")
        code, output = reserve_and_give_back(tmp_path, run, tmp_path / "state", queue)
        assert code != 0
        assert "ann" in output
        assert lab.holder == "ann"
    for folder in (tmp_path / "state", tmp_path / "home" / "storqual" / "benches" / "bench"):
        assert LeaseBook(folder).read().owner is None


def test_a_bench_with_a_drive_that_fails_is_out_of_service_when_it_is_given_back(tmp_path: Path) -> None:
    run, queue, state = make_run(tmp_path / "run", finished=False), tmp_path / "queues" / "bench", tmp_path / "state"
    logs = {"0x5": {"passed": False}}
    append_event(run, "environment", {"bench": "bench", "when": "after", "facts": {}, "logs": logs})
    code, output = reserve_and_give_back(tmp_path, run, state, {"folder": str(queue.parent)})
    assert code == 0, output
    for folder in (queue, state):
        lease_now = LeaseBook(folder).read()
        assert lease_now.owner is None
        assert lease_now.out is not None
        assert "0x5" in lease_now.out.why
    [note] = [event for event in iter_events(run) if event.kind == "note"]
    assert "0x5" in note.text("text")
