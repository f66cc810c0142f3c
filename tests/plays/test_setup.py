# SPDX-License-Identifier: Apache-2.0
"""From an installed system to a bench: the sudo rule is enough for a campaign, the health check tries each part."""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.played_task import OLD, play_task, write_ssh

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
RULES = REPOSITORY / "roles" / "bench_setup" / "files" / "storqual.sudoers"

# Of sudo what matters here: as whom, which command, and that another command is refused.
SUDO = Path(__file__).with_suffix(".sudo").read_text(encoding="utf-8")


def allowed(user: str, argv: list[str]) -> bool:
    """Whether the shipped file lets this command be run, as sudo does: arguments are one text with wildcards."""
    for line in RULES.read_text(encoding="utf-8").splitlines():
        rule = re.fullmatch(r"%USER% ALL=\((\S+)\) NOPASSWD: (\S+) (.*)", line)
        if rule and user == rule[1] and argv[0] == rule[2] and fnmatch.fnmatchcase(" ".join(argv[1:]), rule[3]):
            return True
    return False


def test_the_shipped_rule_lets_nobody_be_root_in_another_way() -> None:
    assert allowed("root", ["/bin/sh", "-c", "echo BECOME-SUCCESS-abcdef ; /usr/bin/python3"])
    for argv in (["/bin/bash"], ["/bin/sh"], ["/bin/sh", "-c", "id"], ["/usr/bin/fio", "x"], ["/usr/sbin/visudo"]):
        assert not allowed("root", argv), argv
    assert not allowed("postgres", ["/bin/sh", "-c", "echo BECOME-SUCCESS-abcdef ; /usr/bin/python3"])


@pytest.mark.skipif(shutil.which("visudo") is None, reason="visudo is not installed here")
def test_the_shipped_rule_is_one_that_sudo_reads(tmp_path: Path) -> None:
    file = tmp_path / "rules"
    file.write_text(RULES.read_text(encoding="utf-8").replace("%USER%", "storqual"), encoding="utf-8")
    subprocess.run(["visudo", "-cf", str(file)], check=True, capture_output=True)


def test_a_campaign_becomes_root_by_commands_of_the_shipped_rule_alone(tmp_path: Path) -> None:
    lab = tmp_path / "lab" / "inventories" / "local"
    shutil.copytree(REPOSITORY / "inventories" / "local", lab)
    log, sudo = tmp_path / "sudo.log", tmp_path / "sudo"
    sudo.write_text(SUDO.format(python=sys.executable, log=str(log)), encoding="utf-8")
    sudo.chmod(0o755)
    (lab / "group_vars").mkdir()
    become = {"ansible_become": True, "ansible_become_exe": str(sudo), "ansible_become_user": "root"}
    (lab / "group_vars" / "benches.yml").write_text(yaml.safe_dump(become), encoding="utf-8")
    suite = [
        *("--baseline", "baseline", "--candidate", "candidate", "--suite"),
        str(REPOSITORY / "tests/plays/tiny.suite.yml"),
    ]
    argv = [str(BIN / "storqual"), "qualify", "-i", str(lab), "--runs", str(tmp_path / "runs"), *suite]
    # who runs the tests may be root already, for whom Ansible would ask nobody
    env = {**os.environ, "ANSIBLE_BECOME_ALLOW_SAME_USER": "1"}
    ended = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    (verdict,) = (tmp_path / "runs").glob("*/verdict.json")
    assert json.loads(verdict.read_text(encoding="utf-8"))["outcome"] in ("PASS", "MARGINAL", "INCONCLUSIVE"), (
        ended.stdout
    )
    called = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    # facts, guard, batches, settings and restore at least
    assert len(called) > 5
    assert [argv for user, argv in called if not allowed(user, argv)] == []


SSH = Path(__file__).with_name("test_setup.ssh").read_text(encoding="utf-8")
LOOK = "identity iTCO_wdt\nstate {state}\ntimeout 60\npstore erst\nkdump \npanic 10\n"


def check(folder: Path, *, prove: bool, state: str = "active") -> dict[str, Any]:
    """What `bench_health` returned on a bench that is a script."""
    write_ssh(folder, SSH)
    (folder / "boot").write_text(OLD, encoding="utf-8")
    (folder / "look").write_text(LOOK.format(state=state), encoding="utf-8")
    power = [{"command": {"on": ["true"], "off": ["true"], "state": ["echo", "on"]}}]
    return play_task(folder, {"bench_health": {"prove": prove}}, storqual_kind="hardware", storqual_power=power)[1]


def parts(result: dict[str, Any]) -> dict[str, str]:
    return {row["part"]: row["works"] for row in result["health"]}


def test_without_consent_the_bench_is_looked_at_and_not_started_again(tmp_path: Path) -> None:
    result = check(tmp_path, prove=False)
    expected = {
        "power": "works",
        "console": "absent",
        "watchdog": "not tried",
        "pstore": "not tried",
        "kdump": "absent",
    }
    assert parts(result) == expected, result
    assert (result["failed"], result["changed"]) == (False, False)
    assert not (tmp_path / "fired").exists()
    assert not (tmp_path / "panicked").exists()


def test_with_consent_the_watchdog_fires_and_the_kernel_panics_once(tmp_path: Path) -> None:
    result = check(tmp_path, prove=True)
    expected = {"power": "works", "console": "absent", "watchdog": "works", "pstore": "works", "kdump": "absent"}
    assert parts(result) == expected, result
    assert (tmp_path / "count").read_text(encoding="utf-8") == "2"


def test_a_watchdog_that_nobody_feeds_fails_the_check(tmp_path: Path) -> None:
    result = check(tmp_path, prove=False, state="inactive")
    assert (parts(result)["watchdog"], result["failed"], result["storqual_exit_code"]) == ("broken", True, 1)


def test_a_bench_that_a_run_holds_is_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text('{"run": "r1"}', encoding="utf-8")
    result = check(tmp_path, prove=True)
    assert result["failed"]
    assert not (tmp_path / "fired").exists()
