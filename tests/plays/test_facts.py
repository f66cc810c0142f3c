# SPDX-License-Identifier: Apache-2.0
"""`storqual facts` and `storqual sheet` over Ansible, on this machine: an inventory and a page of what is here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storqual.inputs import load_inventory

pytestmark = pytest.mark.plays

REPOSITORY = Path(__file__).resolve().parents[2]
LOCAL = str(REPOSITORY / "inventories" / "local")


def storqual(*words: str, folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "storqual", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_deep_facts_of_this_machine(tmp_path: Path) -> None:
    (facts,) = json.loads(storqual("facts", "-i", LOCAL, "--deep", "--json", folder=tmp_path)).values()
    assert facts["schema"] == "storqual.facts/1"
    assert isinstance(facts["unread"], list)
    assert facts["kernel"]["release"] == os.uname().release
    assert all("health" in drive for drive in facts["drives"])


def test_the_sheet_of_this_machine_says_what_may_be_destroyed(tmp_path: Path) -> None:
    """Its files, and nothing else."""
    said = storqual("sheet", "-i", LOCAL, "-o", "out", "--json", folder=tmp_path)
    ((bench, path),) = json.loads(said)["sheets"].items()
    (declared,) = load_inventory([Path(LOCAL)]).benches.values()
    page = (tmp_path / path).read_text(encoding="utf-8")
    assert bench == declared.name
    assert page.count("DESTROY</span>") == 1 + sum(len(adapter.claimed) for adapter in declared.adapters.values())


def test_a_bench_of_files_is_asked_for_what_it_has(tmp_path: Path) -> None:
    """Its kernel log is read where that is allowed; what needs adapters is left out; logs lie where asked."""
    words = ["robot", "bench_acceptance", "-i", str(REPOSITORY / "inventories" / "local"), "--output", str(tmp_path)]
    program = str(Path(sys.executable).parent / "storqual")
    ended = subprocess.run(
        [program, *words, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    checks = {line["id"].partition("::")[2]: line for line in json.loads(ended.stdout)["checks"]["this_machine"]}
    assert set(checks) == {
        "The Kernel Log Is Clean Since The Bench Booted",
        "The Management Controller Sees A Healthy Bench",
    }
    log = checks["The Kernel Log Is Clean Since The Bench Booted"]
    assert log["outcome"] in ("PASS", "FAIL") or "dmesg was refused" in log["reason"]
    assert checks["The Management Controller Sees A Healthy Bench"]["outcome"] == "SKIPPED"
    assert (tmp_path / "this_machine" / "xunit.xml").is_file()


# what Python 3.6.15 says of a module of Ansible 2.19, and of the bench program
OLD_PYTHON = """\
#!/bin/sh
cat > /dev/null
printf '  File "<stdin>", line 3\\nSyntaxError: future feature annotations is not defined\\n' >&2
exit 1
"""


@pytest.mark.parametrize(
    "words", ["facts", "qualify --baseline baseline --candidate candidate --suite adapter --profile quick"]
)
def test_a_bench_with_an_old_python_only_is_refused_with_what_to_do(words: str, tmp_path: Path) -> None:
    lab, python = tmp_path / "inventories" / "lab", tmp_path / "python3.6"
    shutil.copytree(LOCAL, lab)
    python.write_text(OLD_PYTHON, encoding="utf-8")
    python.chmod(0o755)
    hosts = (lab / "hosts.yml").read_text(encoding="utf-8")
    (lab / "hosts.yml").write_text(hosts.replace("{{ ansible_playbook_python }}", str(python)), encoding="utf-8")
    argv = [sys.executable, "-m", "storqual", *words.split(), "-i", "inventories/lab"]
    ended = subprocess.run(
        argv, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert "ansible_python_interpreter" in ended.stdout + ended.stderr
    assert "SyntaxError" not in ended.stdout + ended.stderr
