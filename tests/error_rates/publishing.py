# SPDX-License-Identifier: Apache-2.0
"""What publishing a large run costs, of this checkout and of another one, turn by turn.

python -m tests.error_rates.publishing                                  # this checkout, 100,000 samples
python -m tests.error_rates.publishing --against ../before --rounds 3   # both, in the order A B B A A B

`storqual publish` is run as people run it: close, hand-written checks, judge, report, audit, log. Both checkouts use
this one's interpreter and libraries, and each turn gets a fresh copy of one and the same run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.error_rates.large_run import make_large_run

HERE = Path(__file__).resolve().parents[2]
LARGE = (4, 250, 50)
"""Benches, points, sessions of each arm: 100,000 samples."""


@dataclass(frozen=True)
class Cost:
    """One turn: seconds of the clock and of the processors, the largest resident size of any of its processes."""

    clock_s: float
    user_s: float
    system_s: float
    megabytes: float


def publish(checkout: Path, run: Path) -> Cost:
    """Publish `run` by the code of `checkout`. Raises RuntimeError when no report comes of it."""
    paths = [str(checkout / "library"), str(checkout / "library" / "module_utils")]
    environment = {**os.environ, "PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": ""}
    argv = [sys.executable, "-m", "storqual", "publish", str(run), "--json"]
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        child = subprocess.Popen(
            argv, cwd=checkout, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        _, status, used = os.wait4(child.pid, 0)
        clock = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if not (run / "report.html").is_file():
            said.seek(0)
            raise RuntimeError(f"{checkout} published nothing: {said.read()[-2000:].decode()}")
    return Cost(clock, used.ru_utime, used.ru_stime, used.ru_maxrss / 1000)


def fresh(made: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(made, folder / made.name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each checkout")
    parser.add_argument("--shape", type=int, nargs=3, default=LARGE, metavar=("BENCHES", "POINTS", "SESSIONS"))
    options = parser.parse_args()
    benches, points, sessions = options.shape
    checkouts = {"this": HERE, **({"other": options.against.resolve()} if options.against else {})}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = make_large_run(folder / "large", benches, points, sessions, close=False)
        print(f"publishing {2 * benches * points * sessions} samples of {benches * points} points")
        print(f"{'checkout':<10}{'clock s':>9}{'user s':>9}{'system s':>10}{'MB':>8}")
        costs: dict[str, list[Cost]] = {label: [] for label in checkouts}
        for turn in range(options.rounds):
            # A B, then B A: what the machine does meanwhile falls on both
            for label in list(checkouts)[:: -1 if turn % 2 else 1]:
                cost = publish(checkouts[label], fresh(made, folder / "turn"))
                costs[label].append(cost)
                _row(label, cost)
        for label, turns in costs.items():
            fields = Cost.__dataclass_fields__
            _row(f"{label}, mid", Cost(*(median(getattr(one, field) for one in turns) for field in fields)))


def _row(label: str, cost: Cost) -> None:
    print(
        f"{label:<10}{cost.clock_s:>9.1f}{cost.user_s:>9.1f}{cost.system_s:>10.1f}{cost.megabytes:>8.0f}", flush=True
    )


if __name__ == "__main__":
    main()
