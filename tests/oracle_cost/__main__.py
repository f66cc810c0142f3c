# SPDX-License-Identifier: Apache-2.0
"""I/Os per second with and without the oracle on the virtual bench, in alternating pairs.

python -m tests.oracle_cost --adapters vscsi,mraid --pairs 8 --seconds 6
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

from storqual.bench.follow import Connection, stream
from storqual.bench.program import build_program
from storqual.inputs import read_inventory
from storqual.inputs.shape import raise_all
from storqual.inputs.trials import SECTOR, IntegrityLoad
from storqual.kinds.oracle import Oracle
from storqual.plan.batches import claim
from storqual.virtual_bench.places import BenchPlaces
from tests.support.batches import drive_batch

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
WANTED = 0.7
"""At least this much of the I/Os must be left with the oracle."""


def main() -> int:
    """Print a table for each adapter; 1 when the oracle costs more than it may on one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-i", "--inventory", type=Path, default=REPOSITORY / "inventories" / "virtual")
    parser.add_argument("--adapters", default="vscsi,fusion,mraid")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    inventory, problems = read_inventory([options.inventory])
    raise_all(problems)
    ((name, bench),) = inventory.benches.items()
    places = BenchPlaces.of(str(REPOSITORY / ".cache" / "bench" / name))
    worst = math.inf
    ssh = ["ssh", "-F", str(places.ssh_config), "-o", "ServerAliveInterval=5", "-o", "ConnectTimeout=10"]
    connection = Connection(name, lambda command: [*ssh, name, command], ["true"])
    program = build_program()
    remote = f"{bench.state_dir}/{program.name}"
    connection.put(program.read_bytes(), remote)
    for alias in options.adapters.split(","):
        turns = _turns(connection, remote, bench, alias, options.pairs, options.seconds)
        worst = min(worst, _print(alias, turns))
    return 0 if worst >= WANTED else 1


def _turns(
    connection: Connection, program: str, bench: Any, alias: str, pairs: int, seconds: float
) -> list[dict[str, Any]]:
    """What the bench tells of each turn; its I/Os are taken into a list as in a trial."""
    adapter = bench.adapters[alias]
    load, base = IntegrityLoad(region=2 << 20), f"/run/storqual/cost-{alias}"
    claims = {drive.id: claim(drive) for drive in adapter.claimed}
    asked = {
        "first": (2 << 20) // SECTOR,
        "sectors": load.region // SECTOR,
        "workers": load.workers,
        "sizes": [size // SECTOR for size in load.sizes],
        "read_share": load.reads,
        "through_share": load.write_through,
        "flush_every": load.flush_every,
        "seed": 1,
    }
    body = drive_batch("trial", bench.state_dir, claims=claims, way="qmp_unplug", load=asked, pci=adapter.address)
    connection.put(json.dumps(body).encode(), f"{base}.json")
    connection.put((HERE / "on_bench.py").read_bytes(), f"{base}.py")
    start = f'import sys; sys.path.insert(0, "{program}"); sys.argv = sys.argv[1:]; exec(open(sys.argv[0]).read())'
    words = f"python3 -I -S -c '{start}' {base}.py {base}.json {base}.jsonl {pairs} {seconds:g}"
    connection.run(f": > {base}.jsonl; setsid {words} </dev/null >{base}.out 2>&1 &")
    found, oracle = list[dict[str, Any]](), Oracle()
    for line in stream(connection, f"{base}.jsonl", limit_s=pairs * 2 * (seconds + 60)):
        if line is None:
            continue
        if line["kind"] == "io":
            oracle.take(line["ios"])
        elif line["kind"] == "turn":
            # each turn's writes are numbered anew
            oracle = Oracle()
            found.append(line)
    if len(found) < pairs * 2:
        sys.exit(connection.run(f"tail -5 {base}.out"))
    return found


def _print(alias: str, turns: list[dict[str, Any]]) -> float:
    """The pairs and their ratio with an interval at 95 %; the ratio."""
    rates = {(turn["pair"], turn["turn"]): turn["ios"] / turn["seconds"] for turn in turns}
    logs = []
    print(f"{alias}: {'pair':>6}{'with':>10}{'without':>10}{'ratio':>8}")
    for pair in range(len(turns) // 2):
        own, bare = rates[pair, "with"], rates[pair, "without"]
        logs.append(math.log(own / bare))
        print(f"{pair + 1:>{len(alias) + 8}}{own:>10.1f}{bare:>10.1f}{own / bare:>8.2f}")
    mean, spread = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    times = _T95.get(len(logs) - 1, 2.0)
    low, high = (math.exp(mean + sign * times * spread) for sign in (-1, 1))
    print(
        f"{alias}: with the oracle {math.exp(mean):.2f} of the I/Os without (95 %: {low:.2f} to {high:.2f})",
        flush=True,
    )
    return math.exp(mean)


_T95 = {1: 12.7, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 11: 2.20}
"""Student's t, two-sided at 95 %, by degrees of freedom."""


if __name__ == "__main__":
    sys.exit(main())
