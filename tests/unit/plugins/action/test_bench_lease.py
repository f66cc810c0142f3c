# SPDX-License-Identifier: Apache-2.0
"""A bench that is off, such as a virtual one before its campaign, is queued for on the control node."""

import json
import sys
from pathlib import Path

import pytest

from storqual.run import append_event, iter_events
from storqual_core.kit.lease import LeaseBook
from tests.support.live_bench import ran
from tests.support.make_run import make_run
from tests.unit.plugins.action.test_recovering_action import NEW, play

pytestmark = pytest.mark.plays


def test_a_bench_that_is_off_is_queued_for_and_not_asked(tmp_path: Path) -> None:
    run, queue = make_run(tmp_path / "run"), tmp_path / "queue"
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


def test_a_bench_with_a_drive_that_fails_is_out_of_service_when_it_is_given_back(tmp_path: Path) -> None:
    run, queue, state = make_run(tmp_path / "run", finished=False), tmp_path / "queue", tmp_path / "state"
    logs = {"0x5": {"passed": False}}
    append_event(run, "environment", {"bench": "bench", "when": "after", "facts": {}, "logs": logs})
    lease = {"run": str(run), "state_dir": str(state), "python": sys.executable}
    given = {**lease, "release": True, "queue": str(queue), "lease": "{{ made.lease }}"}
    tasks = [
        {"name": "Reserve", "bench_lease": lease, "register": "made"},
        {"name": "Give back", "bench_lease": given, "environment": {"STORQUAL_LEASE": "{{ made.lease }}"}},
    ]
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "bench", "gather_facts": False, "tasks": tasks}]))
    bench = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"bench": bench}}}))
    code, output = ran(tmp_path / "log", "ansible-playbook", "-i", tmp_path / "hosts.yml", tmp_path / "play.yml")
    assert code == 0, output
    for folder in (queue, state):
        lease_now = LeaseBook(folder).read()
        assert lease_now.owner is None
        assert lease_now.out is not None
        assert "0x5" in lease_now.out.why
    [note] = [event for event in iter_events(run) if event.kind == "note"]
    assert "0x5" in note.text("text")
