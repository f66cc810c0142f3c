# SPDX-License-Identifier: Apache-2.0
"""A driver with one planted defect on a virtual bench, and the campaign of trials that is to find it.

The module of `tests/planted` is compiled once and loaded with the defect as its parameter. Where a campaign has a
baseline, the layer is loaded in its session too and passes all on. Sessions are made without the plays around them,
which would take longer than the trials; that a build of it is found as a driver drop is for a whole campaign to show.
"""

import json
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from storqual.bench.program import build_program
from storqual.plan import PlanRequest
from storqual.run import read_run
from storqual.run.collect import collect
from storqual.run.turns import turns_of
from storqual.virtual_bench.places import BenchPlaces
from storqual.virtual_bench.power import reset
from tests.support.driver_sources import DriverSources
from tests.support.live_bench import INVENTORY, REPOSITORY, Bench, bench_here
from tests.support.turn_records import drive, plan_campaign

SOURCE = REPOSITORY / "tests" / "planted"
MODULE = "storqual_planted"
SUITE = REPOSITORY / "suites" / "robustness.suite.yml"
PCI = {
    "sym": "0000:00:05.0",
    "fusion": "0000:00:06.0",
    "mraid": "0000:00:07.0",
    "dc390": "0000:00:08.0",
    "vscsi": "0000:00:09.0",
}
_PLACE = f"/root/{MODULE}.ko"
_STATE_DIR = "/var/lib/storqual"


def build_planted(sources: DriverSources, defect: str = "none", adapters: str = "", **parameters: str) -> Path:
    """The module for the bench's kernel; a build of its own has its defect and its adapters without any parameter.

    `parameters` are those that such a build of the defect `drawn` can have, as they stand in C: ACT, FROM, EVERY.
    """
    folder = Path(tempfile.mkdtemp(dir=sources.folder))
    for file in SOURCE.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    text = (folder / f"{MODULE}.c").read_text(encoding="utf-8")
    own = {"DEFECT": f'"{defect}"', "ADAPTERS": f'"{adapters}"', **parameters}
    for name, value in own.items():
        head = f"#define PLANTED_{name} "
        lines = [f"{head}{value}" if line.startswith(head) else line for line in text.split("\n")]
        text = "\n".join(lines)
    (folder / f"{MODULE}.c").write_text(text, encoding="utf-8")
    headers = sources.folder / "headers/usr/src" / f"linux-headers-{sources.release}"
    for words in (["make", "-C", str(headers), f"M={folder}", "modules"], ["strip", "--strip-debug", f"{MODULE}.ko"]):
        ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
        assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-2000:]
    return folder / f"{MODULE}.ko"


@dataclass(frozen=True)
class Found:
    """What a campaign showed: the checks by name, the trials' records by arm, and the seconds the bench took.

    `acted` is how often the defect did, as far as the layer was still there to say so.
    """

    checks: Mapping[str, Mapping[str, Any]]
    records: Mapping[str, Sequence[Mapping[str, Any]]]
    seconds: float
    run: Path
    acted: int = 0

    def reasons(self, arm: str) -> list[str]:
        """All reasons of the trials of an arm that did not pass."""
        return [reason for record in self.records[arm] for reason in record["reasons"]]


def quick_profile(faults: Sequence[str]) -> str:
    """The shipped `quick` with these faults of it alone."""
    shipped = yaml.safe_load(SUITE.read_text(encoding="utf-8"))["profiles"]["quick"]
    return json.dumps({**shipped, "faults": list(faults)})


def qualify_planted(
    bench: Bench,
    adapter: str,
    defect: str,
    profile: str,
    folder: Path,
    *,
    parameters: str = "",
    baseline: bool = False,
    seed: int = 7,
    beside: Sequence[str] = (),
) -> Found:
    """Make trials of the shipped suite by a profile of one's own, such as `{faults: [host_reset], time: 1.5s}`.

    Without a profile it is the suite's `quick`. Adapters `beside` are planned for and have the defect as well.
    """
    suite = folder / f"{defect}.suite.yml"
    own = f"  planted: {profile}\n" if profile else ""
    suite.write_text(f"{SUITE.read_text(encoding='utf-8')}{own}", encoding="utf-8")
    request = PlanRequest(
        inventories=[Path(INVENTORY)],
        candidate="stable",
        baseline="stable" if baseline else "",
        suite=str(suite),
        profile="planted" if profile else "quick",
        adapters=[adapter, *beside],
        seed=seed,
    )
    path = plan_campaign(request, folder / "runs")
    began, acted = time.monotonic(), 0
    for session in read_run(path).plan.sessions:
        planted = defect if session.arm == "candidate" else "none"
        chosen = ",".join(PCI[name] for name in (adapter, *beside))
        acted += _make_session(bench, path, session.id, f"adapters={chosen} defect={planted} {parameters}")
    turns = turns_of(read_run(path))
    checks = {check.id: check.fields for check in turns.checks()}
    arms = {arm: [record for record in turns.records if record["arm"] == arm] for arm in ("baseline", "candidate")}
    return Found(checks, arms, time.monotonic() - began, path, acted)


def measure_planted(bench: Bench, adapters: Sequence[str], words: str, folder: Path, *, seed: int = 11) -> Path:
    """Measure the points of the adapter suite's `quick`, the candidate below a drawn defect; the run, not judged.

    The layer is there for the baseline too, and acts on nothing. The drops are those of two kernels, so that each
    session has one arm; the kernel stays.
    """
    request = PlanRequest(
        inventories=[Path(INVENTORY)],
        candidate="backport",
        baseline="stable",
        suite=str(REPOSITORY / "suites" / "adapter.suite.yml"),
        profile="quick",
        adapters=list(adapters),
        seed=seed,
    )
    run = plan_campaign(request, folder / "runs")
    program = build_program()
    bench.ask(f"mkdir -p {_STATE_DIR}")
    bench.send([str(program)], "/root")
    chosen = ",".join(PCI[name] for name in adapters)
    for file in sorted((run / "blocks").glob("*.json")):
        batch = json.loads(file.read_text(encoding="utf-8"))
        own = words if batch["turns"][0]["arm"] == "candidate" else "on=write act=zero_tail from=1000000000"
        bench.ask(f"rmmod {MODULE} 2>/dev/null; insmod {_PLACE} adapters={chosen} defect=drawn {own}")
        bench.send([str(file)], "/root")
        bench.ask(f"python3 /root/{program.name} run /root/{file.name}", limit_s=3000)
        collect(run, batch["block"], bench.ask(f"cat {_STATE_DIR}/spool/{batch['run']}/{batch['block']}.jsonl"))
    bench.ask(f"rmmod {MODULE}")
    return run


def _make_session(bench: Bench, run: Path, session: str, parameters: str) -> int:
    """Load the layer, make the trials, take the layer out; anew after each time that the bench went down.

    How often the defect acted since the layer was last loaded.
    """
    program = build_program()
    here = bench_here(bench.state, "vbench", program)

    def load() -> None:
        bench.wait_for_answer()
        bench.ask(f"rmmod {MODULE} 2>/dev/null; insmod {_PLACE} {parameters}")
        here.connection.put(program.read_bytes(), here.program)

    drive(run, here, sessions=[session], provision=load)
    bench.wait_for_answer()
    # what a defect holds back cannot be taken out, and a bench that was reset has nothing to take out
    told = bench.ask(
        f"cat /sys/module/{MODULE}/parameters/acted 2>/dev/null || echo 0; "
        f"rmmod {MODULE} 2>/dev/null; [ ! -e /sys/module/{MODULE} ] || echo stays"
    ).split()
    if "stays" in told:
        reset(BenchPlaces.of(bench.state))
    return int(told[0])


def send_planted(bench: Bench, file: Path) -> None:
    bench.send([str(file)], "/root")


FILE = Path(__file__).resolve().parents[1] / "planted" / "kinds.json"


@dataclass(frozen=True)
class Kind:
    """A kind of defect: what acts on which commands, and from where its parameters are drawn.

    `draw` has a range (or, of what is in `choose`, a list) for each. `profile` is the first one that must find it.
    `faults` are those without which it cannot act; `lacks` is what nothing on the shipped bench or in its loads has.
    """

    name: str
    about: str
    on: str
    act: str
    draw: dict[str, list[int]]
    profile: str
    choose: tuple[str, ...] = ()
    fixed: dict[str, int] | None = None
    faults: tuple[str, ...] = ()
    adapters: int = 1
    lacks: str = ""

    def parameters(self, seed: int) -> dict[str, int]:
        """Those of the module, drawn: the load does not know them."""
        source = random.Random(f"{seed}/{self.name}")
        drawn = {
            name: source.choice(limits) if name in self.choose else source.randint(*limits)
            for name, limits in self.draw.items()
        }
        return {"every": 1, **(self.fixed or {}), **drawn}

    def words(self, seed: int) -> str:
        listed = " ".join(f"{name}={value}" for name, value in self.parameters(seed).items())
        return f"on={self.on} act={self.act} {listed}"


@lru_cache(maxsize=1)
def all_kinds() -> dict[str, Kind]:
    entries: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    kinds = [
        Kind(**{name: tuple(v) if name in ("choose", "faults") else v for name, v in e.items()}) for e in entries
    ]
    return {kind.name: kind for kind in kinds}


FAMILIES = ("vscsi", "fusion", "sym")
ALONE = ("sym",)
"""The adapters of which a sweep keeps one drive busy at a time."""


def family_of(kind: Kind, seed: int) -> str:
    """The adapter that a defect is planted in: in turn, of those on which `quick` makes the trials of its kind."""
    left_out = yaml.safe_load(SUITE.read_text(encoding="utf-8"))["profiles"]["quick"]["leave_out"]
    tried = [name for name in FAMILIES if not any(name in left_out.get(fault, ()) for fault in kind.faults)]
    if "sibling_busy" in kind.draw:
        tried = [name for name in tried if name not in ALONE]
    return tried[seed % len(tried)]


def drawn_kinds(seed: int, number: int) -> list[Kind]:
    """So many kinds that profile `quick` must find, each another one while there are some."""
    quick = [kind for kind in all_kinds().values() if kind.profile == "quick" and not kind.lacks]
    random.Random(seed).shuffle(quick)
    return [quick[at % len(quick)] for at in range(number)]
