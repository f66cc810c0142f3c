# SPDX-License-Identifier: Apache-2.0
"""What pages about servers are run on: the lab `room7` with files of this machine in the place of drives.

The commands are those of the page and do all that they say. What only a server can show is not there: suites are
small, drops declare nothing, and `ssh` reaches this machine, whatever bench is named.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.site_blocks import REPOSITORY, Command, run

LAB = Path("inventories/room7")
_HOSTS = """\
benches:
  hosts:
    bench01:
      ansible_connection: local
      ansible_python_interpreter: "{{ ansible_playbook_python }}"
      storqual_kind: local
      storqual_state_dir: "{{ inventory_dir }}/state"
      storqual_adapters:
        hba0:
          model: files of this machine
          drives:
            - file: "{{ inventory_dir }}/state/targets/drive0"
              size: 64MiB
              paced: {iops: 400, bandwidth: 12MiB}
              claim: true
"""
_SUITE = """\
name: %s
description: Random reads of one file.
workloads:
  rand_read: {rw: randread, iodepth: 4, drives: 1, factors: {bs: [4k]}}
criteria:
  - %s
profiles:
  quick: %s
  full: %s
"""
_PROFILE = "{cells: all, runtime: 1s, ramp: 0s, idle: 0s, launches: 2, pairs: 3, margin: 30%, indifference: 15%}"
_AGAINST_BASELINE = "{metric: iops, against: baseline, required: true, margin: 30%}"
_LIMIT = "{metric: iops, against: absolute, min: 100, required: true}"
_SUITES = {"adapter": _AGAINST_BASELINE, "qla1040-adapters": _LIMIT, "drive-settings": _LIMIT}
_DROPS = ("in_field", "candidate", "build")
_SSH = """\
#!/bin/sh
# the bench is this machine, whatever its name
while :; do
    case $1 in
        -O) exit 0 ;;
        -[oplFiS]) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
shift
# as a login on a bench: without the programs of this environment
PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin exec sh -c "$*"
"""
_PROGRAMS = {"ssh": _SSH, "dmesg": "#!/bin/sh\necho 'a bench without a fault'\n"}
_BUDGET = "1m"
"""Hours would be spent where other programs keep this machine busy."""


class Desk:
    """A folder for one page, its environment, and its commands as they are run here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name, text in _PROGRAMS.items():
            program = folder / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text, encoding="utf-8")
            program.chmod(0o755)
        for name, criterion in _SUITES.items():
            suite = folder / "suites" / f"{name}.suite.yml"
            suite.parent.mkdir(exist_ok=True)
            suite.write_text(_SUITE % (name, criterion, _PROFILE, _PROFILE), encoding="utf-8")
        self.furnish()
        here = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {"PATH": os.pathsep.join(here), "STORQUAL_BASELINE": "in_field", "STORQUAL": "storqual"}

    def furnish(self) -> None:
        """The lab as it is before a block; blocks may make their own."""
        for name in _DROPS:
            drop = self._folder / LAB / "drops" / f"{name}.yml"
            drop.parent.mkdir(parents=True, exist_ok=True)
            drop.write_text(f"name: {name}\n", encoding="utf-8")
        (self._folder / LAB / "hosts.yml").write_text(_HOSTS, encoding="utf-8")

    def clear(self) -> None:
        """No lab, for a block that makes one."""
        shutil.rmtree(self._folder / LAB)

    def here(self, command: Command) -> Command:
        """The command with what there is here in the place of what the page names."""
        line = re.sub(r"--budget \w+", f"--budget {_BUDGET}", command.line)
        line = re.sub(r"--resume \S+", lambda _: f"--resume {self._interrupted()}", line)
        if "playbook preflight" in line:
            self._make_files()
        return Command(line, command.shown)

    def _interrupted(self) -> str:
        """A run that was planned, and of which nothing was measured yet."""
        words = f"storqual plan -i {LAB} --baseline in_field --candidate candidate --suite adapter"
        self._run(words)
        return max(path.parent.name for path in (self._folder / "runs").glob("*/run.json"))

    def _make_files(self) -> None:
        """Drives are there before a bench is described; files are made by the preflight of a run."""
        run_of_files = self._interrupted()
        self._run(f"storqual playbook preflight -i {LAB} -e run=runs/{run_of_files}")

    def _run(self, line: str) -> None:
        code, said = run(Command(line, ()), self._folder, self.environment)
        assert code == 0, said

    def commit(self) -> None:
        """A checkout in which a change adds a drop to what `origin/main` has."""
        shutil.copytree(REPOSITORY / "ci", self._folder / "ci")
        added = self._folder / LAB / "drops" / "build.yml"
        kept = added.read_text(encoding="utf-8")
        added.unlink()
        git = ["git", "-c", "user.name=Pat", "-c", "user.email=pat@example.org", "-C", str(self._folder)]
        commit = ["commit", "--quiet", "--all", "--message", "a change"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        subprocess.run([*git, "add", str(LAB), "ci"], check=True)
        subprocess.run([*git, *commit], check=True)
        subprocess.run([*git, "update-ref", "refs/remotes/origin/main", "HEAD"], check=True)
        added.write_text(kept, encoding="utf-8")
        subprocess.run([*git, "add", str(added)], check=True)
        subprocess.run([*git, *commit], check=True)
