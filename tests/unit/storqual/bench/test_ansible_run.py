# SPDX-License-Identifier: Apache-2.0
"""What ansible-playbook is started with."""

import sys
from pathlib import Path

import pytest

from storqual.bench import ansible_run
from storqual.bench.ansible_run import forks
from tests.support.terminal import INTERRUPT, at_terminal


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"LC_ALL": "C"}, "C.UTF-8"),
        ({"LANG": "POSIX"}, "C.UTF-8"),
        ({}, "C.UTF-8"),
        ({"LC_ALL": "de_DE.UTF-8"}, "de_DE.UTF-8"),
        ({"LC_ALL": "C", "LANG": "en_US.utf8"}, "C.UTF-8"),
        ({"LANG": "en_US.utf8"}, ""),
    ],
)
def test_ansible_gets_a_locale_that_it_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], taken: str
) -> None:
    program = tmp_path / "ansible-playbook"
    program.write_text('#!/bin/sh\nprintf "%s" "$LC_ALL"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(ansible_run, "_program", lambda: program)
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    answer = tmp_path / "answer"
    assert ansible_run.run_playbook("restore.yml", inventories=[], variables={}, output=answer) == 0
    assert answer.read_text(encoding="utf-8") == taken


GIB = 2**30


def test_thirty_two_benches_do_not_wait_for_one_another_on_a_small_control_node() -> None:
    assert forks(available=4 * GIB, processors=1) >= 32


def test_memory_and_processors_limit_the_workers() -> None:
    assert forks(available=2 * GIB, processors=64) == 21
    assert forks(available=1024 * GIB, processors=2) == 128
    assert forks(available=0, processors=2) == 8


@pytest.mark.parametrize("own", [None, "3"])
def test_a_play_gets_them_unless_somebody_said_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    program = tmp_path / "ansible-playbook"
    program.write_text(f'#!/bin/sh\necho "$ANSIBLE_FORKS" > {tmp_path}/told\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(ansible_run, "_program", lambda: program)
    monkeypatch.setattr(ansible_run, "forks", lambda: 77)
    monkeypatch.delenv("ANSIBLE_FORKS", raising=False)
    if own is not None:
        monkeypatch.setenv("ANSIBLE_FORKS", own)
    ansible_run.run_playbook("facts.yml", inventories=[], variables={})
    told = int((tmp_path / "told").read_text(encoding="utf-8"))
    assert told == (3 if own else 77)


ASKS = Path(__file__).with_suffix(".asks").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_play_has_the_terminal_it_asks_there_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    play, hosts, begun = tmp_path / "play.yml", tmp_path / "hosts.yml", tmp_path / "begun"
    hosts.write_text("all: {hosts: {localhost: {}}}\n", encoding="utf-8")
    play.write_text(ASKS, encoding="utf-8")
    variables = {"begun": str(begun)}
    call = f"run_playbook({str(play)!r}, inventories=[{str(hosts)!r}], variables={variables})"
    program = f"from storqual.bench.ansible_run import run_playbook; raise SystemExit({call})"
    typed: list[tuple[str | Path, str]] = [("Which word", "walnut\n"), (begun, INTERRUPT)]
    code, screen = at_terminal(
        [sys.executable, "-c", program], typed, env={"ANSIBLE_DISPLAY_OK_HOSTS": "true", "LC_ALL": "C.UTF-8"}
    )
    assert "it was walnut" in screen
    # as Ansible itself ends where its user interrupts it, or a task that the terminal interrupted as well
    assert code in (99, 2), screen
