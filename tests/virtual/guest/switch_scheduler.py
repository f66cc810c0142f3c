# SPDX-License-Identifier: Apache-2.0
"""Run inside a bench: a block whose arms differ in the scheduler alone; tells what the kernel has at each launch.

Reads `{"block": "s01-b01", "claim": {...}, "schedulers": [...], "nr_requests": 32}` from standard input, where the
claim is that of one drive; prints a JSON line per launch, `{"scheduler", "nr_requests"}`, then how the block ended.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from storqual_core.kit.machine import selected_word
from storqual_core.turns.batch_file import SCHEMA, LaunchTurn, parse_batch
from storqual_core.turns.launch_runner import LaunchRunner


class Looking(LaunchRunner):
    """Looks at the drive's queue as each launch begins."""

    def _launch(self, spool: Any, launch: LaunchTurn, position: int, folder: Path) -> str:
        device = self._places[launch.drives[0]].device
        assert device is not None
        seen = {name: (device / "queue" / name).read_text(encoding="ascii") for name in ("scheduler", "nr_requests")}
        told = {"scheduler": selected_word(seen["scheduler"]), "nr_requests": int(seen["nr_requests"])}
        print(json.dumps(told), flush=True)
        return super()._launch(spool, launch, position, folder)


def main() -> None:
    asked = json.load(sys.stdin)
    drive = asked["claim"]["wwn"]
    fio = {"rw": "randread", "bs": 4096, "iodepth": 1, "numjobs": 1, "runtime_s": 1.0, "ramp_s": 0.0}
    launches = [
        {
            "kind": "launch",
            "index": index,
            "id": f"{asked['block']}/{index}",
            "adapter": "fusion",
            "arm": ("baseline", "candidate")[index % 2],
            "configuration": scheduler,
            "point": "rand_read",
            "n": index + 1,
            "drives": [drive],
            "request": {
                "fio": {**fio, "ioengine": "libaio", "direct": 1},
                "switch": [
                    # named in the order that the kernel would undo
                    {"drive": drive, "setting": "nr_requests", "value": asked["nr_requests"]},
                    {"drive": drive, "setting": "scheduler", "value": scheduler},
                ],
            },
        }
        for index, scheduler in enumerate(asked["schedulers"])
    ]
    names = {"run": "switching", "block": asked["block"], "bench": "vbench", "session": "s01"}
    block = {"schema": SCHEMA, **names, "state_dir": "/var/lib/storqual", "idle_s": 0.0, "spool": "durable"}
    block["turns"] = launches
    block["targets"] = {drive: {"claim": asked["claim"]}}
    end = Looking(parse_batch(json.dumps(block))).run()
    print(json.dumps({"outcome": end.outcome, "message": end.message}))


if __name__ == "__main__":
    main()
