# SPDX-License-Identifier: Apache-2.0
"""Variables given with `-e` that no playbook and no role knows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storqual.bench.ansible_run import run_playbook, unknown_variables
from storqual_core.kit.errors import BadInputError

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[4]
PLAYBOOKS = sorted((REPOSITORY / "playbooks").glob("*.yml"))


def unknown(playbook: str, *given: str) -> list[str]:
    return unknown_variables(REPOSITORY / "playbooks" / playbook, REPOSITORY / "roles", given)


def test_a_misspelt_variable_is_told_with_the_one_that_was_meant() -> None:
    """Without this it would provision every adapter."""
    assert unknown("setup.yml", "adpaters", "drop") == [
        "adpaters is not a variable of setup.yml; did you mean adapters?"
    ]
    assert unknown("restore.yml", "xyzzy") == ["xyzzy is not a variable of restore.yml"]


@pytest.mark.parametrize("value", ["/runs/r{{lookup('pipe','id')}}", ["/suites/test_{%x%}.py"], {"a": "{# x #}"}])
def test_a_name_that_ansible_would_execute_starts_no_play(value: object) -> None:
    with pytest.raises(BadInputError, match=r"^resume: "):
        run_playbook("no_such.yml", inventories=(), variables={"runs": "/runs", "resume": value})


def test_what_playbook_roles_and_ansible_know_is_let_pass() -> None:
    assert unknown("qualify.yml", "resume", "runs", "virtual_bench_state", "ansible_user") == []
    # what `storqual qualify` hands over
    options = (
        *("candidate", "baseline", "suite", "profile", "adapters", "seed", "consent", "budget", "gate"),
        *("history",),
    )
    assert unknown("qualify.yml", *options, "waivers") == []
    assert unknown("facts.yml", "answers_folder", "facts_deep", "look_depths") == []


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_the_variables_that_a_playbook_names_in_its_head_are_known(playbook: Path) -> None:
    words = playbook.read_text(encoding="utf-8").split("\n- name")[0].replace("(", " ").split()
    given = [words[place + 1].partition("=")[0] for place, word in enumerate(words[:-1]) if word == "-e"]
    assert unknown(playbook.name, *given) == []


def test_the_play_ends_with_code_3_before_anything_is_touched(tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            *(Path(sys.executable).parent / "ansible-playbook", "-i", REPOSITORY / "inventories" / "local"),
            *(REPOSITORY / "playbooks" / "setup.yml", "-e", '{"drop": "baseline", "adpaters": "x"}'),
        ],
        env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3, ended.stdout + ended.stderr
    assert "adpaters is not a variable of setup.yml; did you mean adapters?" in ended.stderr
    assert "TASK" not in ended.stdout
