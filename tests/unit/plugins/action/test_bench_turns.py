# SPDX-License-Identifier: Apache-2.0
"""How `bench_turns` reaches a bench for what outlasts a command: with the words of Ansible's own connection."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from storqual.bench.follow import Collector, Stopped, UnreachableError
from storqual.run import append_event, read_batch, read_run
from storqual.turns.recovering_action import virtual_state
from storqual_core.kit.errors import StorqualError
from tests.support.turn_records import REQUEST, plan_campaign

WORD = "a word"
PLUGIN = Path(__file__).resolve().parents[4] / "library" / "plugins" / "action" / "bench_turns.py"


def action(connection: Any) -> Any:
    spec = importlib.util.spec_from_file_location("bench_turns", PLUGIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = object.__new__(module.ActionModule)
    made._connection, made._play_context = connection, SimpleNamespace(remote_addr="bench")
    made._task = SimpleNamespace(environment=None)
    made._templar = SimpleNamespace(template=lambda value: value)
    return made


class Ssh:
    """Ansible's connection to a bench, by key or by password."""

    transport, _shell = "ssh", "sh"

    def __init__(self, become: Any = None, **options: str) -> None:
        self.become, self.options = become, {"ssh_executable": "ssh", **options}

    def get_option(self, name: str) -> str | None:
        return self.options.get(name)

    def _build_command(self, program: str, _subsystem: str, *given: str) -> list[bytes]:
        return [word.encode() for word in (program, "-F", "config", *given)]


class Sudo:
    """Becoming root with or without a password."""

    success = "BECOME-SUCCESS-x"

    def __init__(self, password: str | None = None) -> None:
        self.password = password

    def get_option(self, _name: str) -> str | None:
        return self.password

    def build_become_command(self, command: str, shell: str) -> str:
        return f"sudo {shell} {command}"


def test_commands_go_the_way_that_ansible_goes() -> None:
    lasting = action(Ssh())._lasting()
    assert lasting.words("uptime") == ["ssh", "-F", "config", "bench", "uptime"]
    assert lasting.parting == ["ssh", "-F", "config", "-O", "exit", "bench"]
    named = action(Ssh(host="other"))._lasting()
    assert named.words("uptime")[-2:] == ["other", "uptime"]


def test_who_is_not_root_becomes_it_and_what_sudo_says_first_is_no_output() -> None:
    lasting = action(Ssh(Sudo()))._lasting()
    assert lasting.words("uptime")[-1] == "sudo sh uptime"
    assert lasting.greeting
    assert Sudo.success.startswith(lasting.greeting)


@pytest.mark.parametrize("connection", [Ssh(password=WORD), Ssh(Sudo(WORD))], ids=["ssh", "sudo"])
def test_a_connection_that_asks_for_a_password_is_refused(connection: Ssh) -> None:
    with pytest.raises(StorqualError, match="a key for SSH and sudo without a password"):
        action(connection)._lasting()


def test_a_bench_that_is_this_machine_is_reached_by_a_shell() -> None:
    lasting = action(SimpleNamespace(transport="local", become=None))._lasting()
    assert lasting.run("echo here").strip() == "here"


def test_what_is_not_given_is_what_the_variables_of_the_bench_say() -> None:
    here = action(Ssh())
    here._task = SimpleNamespace(environment=None, args={})
    variables = {"storqual_kind": "virtual", "virtual_bench_state": "/state"}
    assert virtual_state(here, variables) == "/state"
    assert virtual_state(here, {**variables, "storqual_kind": "hardware"}) == ""
    for given in ("/other", ""):
        here._task.args = {"virtual_state": given}
        assert virtual_state(here, variables) == given
    here._task.args = {}
    assert here._python({"ansible_python_interpreter": "/opt/python"}) == "/opt/python"
    assert here._python({"ansible_python_interpreter": "auto"}) == here._python({}) == "/usr/bin/python3"


ARGUMENTS = {"python": "python3", "state_dir": "/s", "virtual_state": "", "recovery_limit_s": 600}


@pytest.mark.parametrize(
    "connection",
    [SimpleNamespace(transport="local", become=None), Ssh(password=WORD)],
    ids=["this machine", "password"],
)
def test_a_bench_that_cannot_be_brought_back_is_waited_for(connection: Any) -> None:
    here = action(connection)
    here._task = SimpleNamespace(environment=None, args=ARGUMENTS)
    assert here._way_back(Path("run"), "vbench", None) is None


def test_a_bench_that_stops_answering_under_a_batch_is_brought_back_from_the_boot_of_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan_campaign(REQUEST, tmp_path)
    append_event(run, "session_started", {"bench": "vbench", "session": "s01", "boot_id": "boot-1"})
    batch = next(iter(read_run(run).plan.sessions)).batches[0]
    asked: list[tuple[Any, ...]] = []

    def bring_back(path: Path, bench: Any, hung: Any, **words: Any) -> None:
        asked.append((path, bench.means.limit_s, hung, words["boot"], words["hangs"], words["silent_s"]))

    monkeypatch.setattr("storqual.turns.bring_back.bring_back", bring_back)
    here, resets = action(Ssh()), list[str]()
    here._task = SimpleNamespace(environment=None, args=ARGUMENTS)
    here._connection.reset = lambda: resets.append("reset")
    collector = Collector(run, "vbench", batch)
    here._way_back(run, "vbench", collector)(None, Stopped("it stopped answering", 31.0, answers=False))
    [(path, limit_s, hung, boot, hangs, silent_s)] = asked
    assert (path, limit_s, boot, hangs, silent_s) == (run, 600.0, "boot-1", False, 31.0)
    assert (hung.session, hung.block, hung.turn) == ("s01", batch, read_batch(run, batch)["turns"][0]["id"])
    # what Ansible keeps open leads to the boot that is gone
    assert resets == ["reset"]


@pytest.mark.parametrize("become", [None, object()])
def test_a_file_reaches_the_folder_of_root_whoever_logs_in(
    become: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over SSH a file is written by the user who logged in; what is root's is written by root."""
    done: list[str] = []
    here = action(SimpleNamespace(become=become))
    monkeypatch.setattr(here, "_transfer_file", lambda _source, target: done.append(f"user writes {target}"))
    monkeypatch.setattr(here, "_make_tmp_path", lambda: "/home/lab/.ansible/tmp/x/")
    monkeypatch.setattr(here, "_remove_tmp_path", lambda folder: done.append(f"removed {folder}"))
    monkeypatch.setattr(here, "_quick", lambda command: done.append(f"root: {command}"))
    here._put(tmp_path / "core.pyz", "/var/lib/storqual/core.pyz.part")
    if become is None:
        assert done == ["user writes /var/lib/storqual/core.pyz.part"]
    else:
        assert done == [
            "user writes /home/lab/.ansible/tmp/x/core.pyz",
            "root: cat /home/lab/.ansible/tmp/x/core.pyz > /var/lib/storqual/core.pyz.part",
            "removed /home/lab/.ansible/tmp/x/",
        ]


def test_a_bench_that_went_away_after_its_batch_is_left_to_the_next_task() -> None:
    made, removed = action(SimpleNamespace(_shell=SimpleNamespace(tmpdir="/tmp/x"))), []
    made._task.async_val = 0

    def gone(folder: str) -> None:
        removed.append(folder)
        raise AnsibleConnectionFailure("no answer")

    made._remove_tmp_path = gone
    made.cleanup()
    assert removed == ["/tmp/x"]


@pytest.mark.parametrize("gone", [UnreachableError("no answer"), AnsibleConnectionFailure("no way")], ids=str)
def test_a_bench_that_stops_answering_between_two_batches_is_left_to_the_next_task(
    gone: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan_campaign(REQUEST, tmp_path)
    batch = next(iter(read_run(run).plan.sessions)).batches[0]
    here = action(Ssh())
    here._task = SimpleNamespace(
        environment=None, check_mode=False, args={**ARGUMENTS, "run": str(run), "block": batch}
    )
    monkeypatch.setattr(ActionBase, "run", lambda *_: {})
    console = SimpleNamespace(mark=Mock(side_effect=range(9)))
    here.run.__globals__.update(console_of=lambda *_: console, turns=lambda *_: {"outcome": "done"})
    monkeypatch.setattr(here, "_following", lambda *_: batch)
    monkeypatch.setattr(here, "_send", Mock(side_effect=["core.pyz", gone]))
    result = here.run(None, {"inventory_hostname": "vbench"})
    # what the console says after the end of the first is why it is gone
    assert (result["outcome"], result["blocks"], result["console"], "failed" in result) == ("lost", [batch], 1, False)
    monkeypatch.setattr(here, "_send", Mock(side_effect=StorqualError("no space left")))
    assert here.run(None, {"inventory_hostname": "vbench"})["failed"]
