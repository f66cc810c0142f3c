# SPDX-License-Identifier: Apache-2.0
"""What judging a large run costs, of this checkout and of a former one, turn by turn.

python -m tests.error_rates.judging                                  # this checkout, 100,000 samples
python -m tests.error_rates.judging --against ../before --rounds 3   # both, in the order A B B A A B, with ratios

Each checkout judges a run that it made itself, with its own interpreter: a former one has no records of launches, and
derives nothing. The clock counts on an idle machine; beside other work only processor seconds can be compared.
"""

import argparse
import os
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[2]
LARGE = (4, 250, 50)
"""Benches, points, sessions of each arm: 100,000 samples."""
_MAKERS = ("error_rates", "benchmark")
"""Where `large_run` is, or was, below tests/."""
_JUDGE = "from pathlib import Path\nfrom storqual.judge.verdict import judge_run\njudge_run"
_LOOK_S = 0.1


@dataclass(frozen=True)
class Cost:
    """One turn: seconds of the clock and of all its processors, the largest size of all its processes together."""

    clock_s: float
    processor_s: float
    megabytes: float


class Checkout:
    """A checkout with its own interpreter, and a run that it made."""

    def __init__(self, path: Path, folder: Path, shape: tuple[int, int, int]) -> None:
        self._path = path
        maker = next(name for name in _MAKERS if (path / "tests" / name / "large_run.py").is_file())
        folder.mkdir()
        script = (
            f"from pathlib import Path\nfrom tests.{maker}.large_run import make_large_run\n"
            f"print(make_large_run(Path({str(folder)!r}), {', '.join(map(str, shape))}))"
        )
        self._run = self._python("-c", script)[1].strip()

    def judge(self) -> Cost:
        """Judge the run once more. Raises CalledProcessError when that fails."""
        # as text: processes beside it would import the module that was started again, as the command's are not
        return self._python("-c", f"{_JUDGE}(Path({self._run!r}))")[0]

    def _python(self, *arguments: str) -> tuple[Cost, str]:
        library = self._path / "library"
        environment = {**os.environ, "PYTHONPATH": f"{library}:{library / 'module_utils'}"}
        argv = [str(self._path / ".venv/bin/python"), *arguments]
        with tempfile.TemporaryFile() as said:
            began, largest, used = time.monotonic(), 0.0, None
            child = subprocess.Popen(argv, cwd=self._path, env=environment, stdout=said)
            while used is None:
                time.sleep(_LOOK_S)
                largest = max(largest, sum(map(_megabytes, _family(child.pid))))
                ended, status, usage = os.wait4(child.pid, os.WNOHANG)
                used = usage if ended else None
            clock = time.monotonic() - began
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                raise subprocess.CalledProcessError(child.returncode, argv)
            said.seek(0)
            return Cost(clock, used.ru_utime + used.ru_stime, largest), said.read().decode()


def _family(pid: int) -> list[int]:
    """A process with all that it started and that are still there."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def _megabytes(pid: int) -> float:
    """The resident size of a process; 0 for one that is gone. Memory that two of them share counts twice."""
    with suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1e6
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout, with a .venv of its own")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each checkout")
    parser.add_argument("--shape", type=int, nargs=3, default=LARGE, metavar=("BENCHES", "POINTS", "SESSIONS"))
    options = parser.parse_args()
    benches, points, sessions = options.shape
    paths = {"this": HERE, **({"other": options.against.resolve()} if options.against else {})}
    with tempfile.TemporaryDirectory() as name:
        shape = (benches, points, sessions)
        checkouts = {label: Checkout(path, Path(name) / label, shape) for label, path in paths.items()}
        print(f"judging {2 * benches * points * sessions} samples of {benches * points} points")
        print(f"{'checkout':<12}{'clock s':>9}{'processor s':>13}{'MB':>8}")
        costs: dict[str, list[Cost]] = {label: [] for label in checkouts}
        for turn in range(options.rounds):
            # A B, then B A: what the machine does meanwhile falls on both
            for label in list(checkouts)[:: -1 if turn % 2 else 1]:
                costs[label].append(checkouts[label].judge())
                _row(label, costs[label][-1])
    middle = {label: _middle(turns) for label, turns in costs.items()}
    for label, cost in middle.items():
        _row(f"{label}, mid", cost)
    if "other" in middle:
        this, other = middle["this"], middle["other"]
        ratios = Cost(
            this.clock_s / other.clock_s, this.processor_s / other.processor_s, this.megabytes / other.megabytes
        )
        print(f"{'ratio':<12}{ratios.clock_s:>9.2f}{ratios.processor_s:>13.2f}{ratios.megabytes:>8.2f}")


def _middle(turns: list[Cost]) -> Cost:
    return Cost(*(median(getattr(one, name) for one in turns) for name in Cost.__dataclass_fields__))


def _row(label: str, cost: Cost) -> None:
    print(f"{label:<12}{cost.clock_s:>9.1f}{cost.processor_s:>13.1f}{cost.megabytes:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
