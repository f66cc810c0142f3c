# SPDX-License-Identifier: Apache-2.0
"""Many benches are served at once: a task that holds its worker until all others have begun comes to its end."""

from pathlib import Path

import pytest

from storqual.bench import ansible_run
from storqual.bench.ansible_run import forks

pytestmark = pytest.mark.plays

BENCHES = 20
"""More than Ansible would serve by itself (5), and more than the least of ours (8)."""
PLAY = Path(__file__).with_name("test_many_benches.play").read_text(encoding="utf-8")


def play(folder: Path, monkeypatch: pytest.MonkeyPatch, workers: str | None) -> int:
    begun = folder / "begun"
    begun.mkdir()
    (folder / "playbooks").mkdir()
    (folder / "ansible.cfg").write_text("[defaults]\nnocows = true\n", encoding="utf-8")
    text = PLAY.format(folder=begun, benches=BENCHES).replace("seq 600", "seq 600" if workers is None else "seq 50")
    (folder / "playbooks" / "all_at_once.yml").write_text(text, encoding="utf-8")
    hosts = "".join(f"    b{number}: {{ansible_connection: local}}\n" for number in range(BENCHES))
    (folder / "hosts.yml").write_text(f"all:\n  hosts:\n{hosts}", encoding="utf-8")
    monkeypatch.setattr(ansible_run, "project_root", lambda: folder)
    monkeypatch.delenv("ANSIBLE_FORKS", raising=False)
    if workers is not None:
        monkeypatch.setenv("ANSIBLE_FORKS", workers)
    hosts_file = str(folder / "hosts.yml")
    return ansible_run.run_playbook("all_at_once.yml", inventories=[hosts_file], variables={}, output=folder / "said")


def test_as_many_benches_as_there_are_measure_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if forks() < BENCHES:
        pytest.skip(f"this machine has memory for {forks()} workers")
    assert play(tmp_path, monkeypatch, None) == 0, (tmp_path / "said").read_text(encoding="utf-8")


def test_with_fewer_workers_they_would_wait_for_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play(tmp_path, monkeypatch, "8") != 0
