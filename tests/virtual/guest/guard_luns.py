# SPDX-License-Identifier: Apache-2.0
"""Run inside a bench of fabrics: what others do to a LUN (`lun_states.sh`), and what the guard says to that.

Reads `storqual_adapters` from standard input and prints one JSON line per state: what the guard said before and while
it lasted, and every sector that was written to a disk while the guard was asked.
"""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guard_tools import sectors

from storqual_core.guard import hold
from storqual_core.guard.claims import claims_of_adapters
from storqual_core.kit.errors import GuardRefusalError

CLAIMS = [claim for claim in claims_of_adapters(json.load(sys.stdin)) if claim.serial == "15C0000001"]


def ask_guard() -> tuple[list[str], dict[str, int]]:
    """The LUN is asked for as a batch does that writes."""
    before, said = sectors(), []
    try:
        with hold.hold(CLAIMS, purpose="write", run="guard-luns"):
            pass
    except GuardRefusalError as refusal:
        said = refusal.refusals
    return said, {
        name: count - before[name] for name, count in sectors().items() if name != "vda" and count != before[name]
    }


for state in sys.argv[1:]:
    first, _ = ask_guard()
    subprocess.run(["sh", "lun_states.sh", "begin", state], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    said, written = ask_guard()
    subprocess.run(["sh", "lun_states.sh", "end", state], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    print(json.dumps({"before": first, "said": said, "written": written}), flush=True)
print(json.dumps({"said": ask_guard()[0]}))
