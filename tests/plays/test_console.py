# SPDX-License-Identifier: Apache-2.0
"""A whole campaign whose bench has a console over IPMI, with a program that plays ipmitool."""

import os
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from storqual.console.console import Console
from tests.plays.test_local import HERE, REPOSITORY, SECRET, files_with, job, the_run, words
from tests.support.played_console import PANIC

pytestmark = pytest.mark.plays

_SOL = """#!{python}
import os, sys
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1:]) + " | " + os.environ.get("IPMI_PASSWORD", "") + chr(10))
if sys.argv[-1] == "activate":
    os.write(1, {said!r})
    os.read(0, 1)
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of this machine as a bench, with the console of a BMC whose password is in a variable."""
    folder = tmp_path / "lab" / "inventories" / "local"
    shutil.copytree(REPOSITORY / "inventories" / "local", folder)
    hosts = yaml.safe_load((folder / "hosts.yml").read_text(encoding="utf-8"))
    (bench,) = hosts["benches"]["hosts"].values()
    bench["storqual_console"] = {"ipmi_sol": {"host": "bmc.lab", "user": "u", "password": "{{ bmc_password }}"}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    (folder / "group_vars").mkdir()
    (folder / "group_vars" / "benches.yml").write_text(f"bmc_password: {SECRET}\n", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


def test_a_campaign_records_its_console_shows_the_panic_and_writes_the_password_nowhere(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (HERE / "tiny.suite.yml").is_file()
    programs = tmp_path / "bin"
    programs.mkdir()
    said = PANIC.replace("\n", "\r\n").encode()
    (programs / "ipmitool").write_text(_SOL.format(python=sys.executable, log=str(tmp_path / "called"), said=said))
    (programs / "ipmitool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    job(words(lab, "-vvv"), tmp_path / "log")
    output = (tmp_path / "log").read_text(encoding="utf-8")
    run = the_run(lab)
    assert f"-E -U u -H bmc.lab -p 623 sol activate | {SECRET}\n" in (tmp_path / "called").read_text(encoding="utf-8")
    report = (run / "report.html").read_text(encoding="utf-8")
    assert "It names megaraid_sas" in report, output[-3000:]
    assert "megasas_build_and_issue_cmd_fusion" in report
    assert len(list(run.glob("raw/*.console.gz"))) == 1
    assert Console("this_machine").running() is None
    assert files_with(SECRET, run) == []
    assert files_with(SECRET, tmp_path / "state") == []
    assert SECRET not in output


def test_a_campaign_whose_console_cannot_be_recorded_says_what_to_install(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything of the bench is touched."""
    # the folder of ipmitool has ssh too, by which the bench is reserved
    (tmp_path / "bin").mkdir()
    for folder in reversed(os.environ["PATH"].split(":")):
        for program in Path(folder).glob("*"):
            link = tmp_path / "bin" / program.name
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    (tmp_path / "bin" / "ipmitool").unlink(missing_ok=True)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    code = job(words(lab), tmp_path / "log")
    output = (tmp_path / "log").read_text(encoding="utf-8")
    assert code not in (0, 1)
    assert "install ipmitool" in output
    assert not (the_run(lab) / "samples.jsonl").exists()
