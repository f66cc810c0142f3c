# SPDX-License-Identifier: Apache-2.0
"""What ansible-playbook is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from storqual.bench import ansible_run


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
