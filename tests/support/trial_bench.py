# SPDX-License-Identifier: Apache-2.0
"""A bench of trials that is this machine: a stand-in for ssh, and a stand-in for the bench's program.

The program writes what a real one writes: a load in which every write is numbered, a fault that tells its proof, what
was read back. It takes its time, so that it can be interrupted, and holds the lock of its bench as the real one does.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import uuid
from contextlib import suppress
from pathlib import Path

from storqual.robustness.store import read_trials
from storqual.run import read_run
from storqual.trials import link, one, session
from storqual.trials.link import Link
from storqual.trials.settle import settle

_SSH = """#!/bin/sh
for word in "$@"; do [ "$word" = -O ] && exit 0; done
[ -e '{folder}/cut' ] && exit 255
for word in "$@"; do :; done
exec sh -c "$(echo "$word" | sed 's#/proc/sys/kernel/random/boot_id#{folder}/boot_id#g')"
"""

_PROGRAM = """
import fcntl, json, os, sys, time
def main(argv):
    body = json.load(open(argv[0]))
    stream = open(body["stream"], "a", buffering=1)
    def line(kind, **fields):
        stream.write(json.dumps({"kind": kind, "at": time.monotonic_ns(), **fields}) + "\\n")
    lock = open(body["state_dir"] + "/lock", "a+")
    fcntl.flock(lock, fcntl.LOCK_EX)
    open(body["state_dir"] + "/running", "w").write(str(os.getpid()))
    state = {"drives": {}, "driver": "d", "link": "", "slab_bytes": 1}
    line("begin", node="/dev/x", touched=[], wall=0)
    line("state", when="before", state=state)
    line("loading")
    first, count, told = body["load"]["first"], 8, 0
    for number in range(1, 41):
        at = first + number % count
        now = time.monotonic_ns()
        line("io", ios=[["w", number, at, 1, now, now + 1, 0]])
        told += 1
        if number == 20:
            line("fault", phase="begin", text=body["way"])
            line("seen", seen="read_back", text="it is")
            line("seen", seen="put_back", text="it was")
            line("fault", phase="end", text=body["way"])
        time.sleep(STEP)
    line("state", when="after", state=state)
    runs = [[first + place, 1, "good", max(n for n in range(1, 41) if n % count == place)] for place in range(count)]
    for turn in (1, 2):
        line("found", turn=turn, runs=runs, whole=True)
    line("disks", disks={}, boot_id=open(body["state_dir"] + "/boot_id").read().strip())
    line("end", code=0, message="", ios=told)
    return 0
"""


class TrialBench:
    """One bench in a folder; `step_s` is how long each of a trial's forty writes takes."""

    def __init__(self, folder: Path, step_s: float = 0.01) -> None:
        self.folder = folder
        program = folder / "bin" / "storqual_core" / "trial" / "program.py"
        program.parent.mkdir(parents=True)
        for package in (program.parents[1], program.parent):
            (package / "__init__.py").touch()
        program.write_text(_PROGRAM.replace("STEP", str(step_s)), encoding="utf-8")
        ssh = folder / "ssh" / "ssh"
        ssh.parent.mkdir()
        ssh.write_text(_SSH.format(folder=folder), encoding="utf-8")
        ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
        (folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        """For whoever reaches the bench: its ssh, and where this module is found."""
        here = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
        return {**os.environ, "PATH": f"{self.folder / 'ssh'}:/usr/bin:/bin", "PYTHONPATH": path}

    def cut(self, *, away: bool) -> None:
        """Take the network away, or give it back. What runs on the bench does not notice."""
        flag = self.folder / "cut"
        if away:
            flag.touch()
        else:
            flag.unlink(missing_ok=True)

    def reset(self) -> None:
        """Press the reset button: what ran is gone, and so is what lay in memory."""
        with suppress(FileNotFoundError, ProcessLookupError, ValueError):
            os.kill(int((self.folder / "running").read_text(encoding="ascii")), signal.SIGKILL)
        for file in (self.folder / "memory").glob("*"):
            file.unlink(missing_ok=True)
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="utf-8")


def campaign(run: Path, folder: Path) -> None:
    """Make all that is left of a run's trials, as `storqual qualify --resume` does, without its playbooks."""
    vars(one).update(FOLDER=folder / "memory", _LOOKS_OF_SILENCE=3)
    vars(link).update(SILENCE_S=0.1, _AGAIN_S=0.1)
    vars(session).update(send_program=lambda *_: str(folder / "bin"))
    bench = Link("bench", (), folder / "control")
    for name, _ in read_trials(read_run(run)).sessions:
        done = False
        while not done:
            settle(bench, str(folder), None, say=print)
            done = session.run_session(run, "vbench", name, bench, python=sys.executable, virtual="", say=print)


if __name__ == "__main__":
    campaign(Path(sys.argv[1]), Path(sys.argv[2]))
