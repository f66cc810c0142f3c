# SPDX-License-Identifier: Apache-2.0
"""A bench of trials that is this machine: a stand-in for its connection, and one for the bench's program.

The program writes what a real one writes: a load in which every write is numbered, a fault that tells its proof, what
was read back. It takes its time, so that it can be interrupted, and holds the lock of its bench as the real one does.
"""

import os
import signal
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

from storqual.bench import follow
from storqual.bench.follow import Connection, ConnectionLostError
from storqual.turns import live_trial
from storqual.turns.bring_back import BenchHere
from storqual_core.turns import spool
from tests.support.turn_records import drive

_COMMAND = """\
[ -e '{folder}/cut' ] && exit 255
exec sh -c "$(echo "$0" | sed 's#/proc/sys/kernel/random/boot_id#{folder}/boot_id#g')"
"""

_PROGRAM = Path(__file__).with_name("trial_bench.program").read_text(encoding="utf-8")


class TrialBench:
    """One bench in a folder; `step_s` is how long each of a trial's forty writes takes."""

    def __init__(self, folder: Path, step_s: float = 0.01) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "core.py").write_text(_PROGRAM.replace("STEP", str(step_s)), encoding="utf-8")
        (folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        """For whoever runs a campaign: where this module is found."""
        here = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
        return {**os.environ, "PYTHONPATH": path}

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
        for file in (self.folder / "memory").rglob("*.jsonl*"):
            file.unlink(missing_ok=True)
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="utf-8")


def campaign(run: Path, folder: Path) -> None:
    """Run all that is left of a run, and resume where the bench did not answer, as `storqual qualify` does."""
    vars(spool).update(STREAMS=folder / "memory")
    vars(live_trial).update(_LOOKS_OF_SILENCE=3)
    vars(follow).update(SILENCE_S=0.1, _AGAIN_S=0.1)
    command = _COMMAND.format(folder=folder)
    bench = Connection("bench", lambda text: ["sh", "-c", command, text], ["true"])
    here = BenchHere("vbench", bench, sys.executable, str(folder), str(folder / "core.py"), None)
    while True:
        try:
            drive(run, here)
        except ConnectionLostError as problem:
            print(problem)
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    campaign(Path(sys.argv[1]), Path(sys.argv[2]))
