# SPDX-License-Identifier: Apache-2.0
"""Run inside a bench: one block by the bench program itself, on a scsi_debug drive whose service time is known.

Reads `{"delay_ns", "queue", "background", "block", "bare"}` from standard input: service time of each command,
how many the drive takes at once, the share of the processor that something else uses, the block file, and
commands by launch that are run before it. Prints one JSON line per sample, then the results that fio itself
left in /root/trial/bare, then how the block ended."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from storqual_core.turns.batch_file import Batch, LaunchTurn, parse_batch
from storqual_core.turns.fio_job import FioTarget
from storqual_core.turns.launch_runner import LaunchRunner
from storqual_core.turns.spool import Spool
from storqual_core.turns.targets import HeldTargets

BARE = Path("/root/trial/bare")
PERIOD_S = 0.02
# so much processor time in each period, whoever runs beside it
BUSY = """
import sys, time
share, period = float(sys.argv[1]), float(sys.argv[2])
while True:
    began, used = time.monotonic(), time.process_time()
    while time.process_time() - used < share * period:
        pass
    time.sleep(max(period - (time.monotonic() - began), 0.001))
"""


def attached() -> str:
    """The kernel's name of the drive, as soon as it has looked at it: that takes some commands, each of them slow."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        for path in Path("/sys/block").glob("sd*/device/model"):
            name = path.parts[3]
            if path.read_text(encoding="ascii").strip() == "scsi_debug" and Path(f"/dev/{name}").exists():
                subprocess.run(["udevadm", "settle"], check=True)
                return name
        time.sleep(0.1)  # the module is loaded before its drive is there, and says nothing then
    raise AssertionError("no drive of scsi_debug appeared")


@contextmanager
def drive(delay_ns: int, queue: int) -> Iterator[str]:
    """The node of a scsi_debug drive; the module is unloaded in the end."""
    options = (f"ndelay={delay_ns}", f"max_queue={queue}", "dev_size_mb=64", "no_lun_0=0")
    subprocess.run(["modprobe", "scsi_debug", *options], check=True)
    try:
        name = attached()
        (Path("/sys/block") / name / "queue" / "scheduler").write_text("none", encoding="ascii")
        (Path("/sys/block") / name / "device" / "queue_depth").write_text(str(queue), encoding="ascii")
        yield f"/dev/{name}"
    finally:
        subprocess.run(["rmmod", "scsi_debug"], check=False)


@contextmanager
def background(share: float) -> Iterator[None]:
    if not share:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", BUSY, str(share), str(PERIOD_S)]) as child:
        time.sleep(1.0)
        try:
            yield
        finally:
            child.kill()


class WithBareFio(LaunchRunner):
    """Runs commands of its own between launches; their time is not the launches'."""

    bare: Mapping[str, Sequence[Sequence[str]]] = {}

    def _launch(self, spool: Spool, launch: LaunchTurn, position: int, folder: Path) -> str:
        began = time.monotonic_ns()
        for words in self.bare.get(str(launch.index), ()):
            node = self._targets["d0"].node
            subprocess.run([word.replace("=DRIVE", f"={node}") for word in words], check=True, capture_output=True)
        self._excluded_ns += time.monotonic_ns() - began
        return super()._launch(spool, launch, position, folder)


def main() -> None:
    asked = json.load(sys.stdin)
    shutil.rmtree(BARE, ignore_errors=True)
    BARE.mkdir(parents=True)
    block = parse_batch(json.dumps(asked["block"]))
    shutil.rmtree(block.state_dir, ignore_errors=True)
    with drive(asked["delay_ns"], asked["queue"]) as node, background(asked["background"]):

        @contextmanager
        def resolve(_: Batch) -> Iterator[HeldTargets]:
            # nobody claims a drive of scsi_debug; the guard has tests of its own
            yield HeldTargets({"d0": FioTarget("d0", node)})

        runner = WithBareFio(block, resolve=resolve)
        runner.bare = asked["bare"]
        end = runner.run()
    for line in block.spool.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["kind"] == "sample":
            print(json.dumps({"sample": record["sample"]}))
    for path in sorted(BARE.glob("*.json")):
        print(json.dumps({"bare": json.loads(path.read_text(encoding="utf-8"))}))
    print(json.dumps({"outcome": end.outcome, "message": end.message}))


if __name__ == "__main__":
    main()
