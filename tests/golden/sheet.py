# SPDX-License-Identifier: Apache-2.0
"""The sheet of one fixed bench: claimed, kept, missing, failing and unnamed drives, drift, a last result."""

import json
import re
from typing import Any

from storqual.history.past_runs import LastResult
from storqual.inputs.lab import inventory_from_hostvars
from storqual.report.sheet import make_sheet, render_sheet
from tests.golden import FOLDER

SHEET = "bench01.sheet.html"


FACTS: dict[str, Any] = json.loads((FOLDER / "bench01.facts.json").read_text(encoding="utf-8"))


def bench_of(facts: dict[str, Any] = FACTS) -> Any:
    """The bench as its inventory declares it: two drives that are there, one that is not."""
    drives = [
        {"wwn": drive["wwn"], "serial": drive["serial"], "vendor": "EXAMPLE", "model": "DISK9", "size": drive["size"]}
        for drive in facts["drives"][:2]
    ]
    drives[0] |= {"position": "shelf 1, bay 0", "claim": True}
    gone = {"wwn": "0x5000c50000000003", "serial": "SER0003", "model": "DISK9", "size": 1 << 20, "claim": True}
    adapter = {
        "model": "Example SAS HBA",
        "driver": "mpt3sas",
        "pci": "0000:3b:00.0",
        "slot": "2",
        "drives": [*drives, gone],
    }
    hosts = {
        "bench01": {
            "storqual_kind": "hardware",
            "storqual_reference": "0x5000c50000000001",
            "storqual_adapters": {"sas0": adapter},
        }
    }
    return inventory_from_hostvars(hosts).benches["bench01"]


LAST = LastResult(
    run="20261121T101500Z-adapter-4f2a",
    finished="2026-11-21T11:02:00.000Z",
    suite="adapter",
    baseline="driver_in_field",
    candidate="driver_candidate",
    outcome="FAIL",
    outcomes=(("FAIL", 1), ("PASS", 11)),
    reference=(("iops@sas0/rand_read[bs=4k,drives=1,iodepth=1]", "FAIL", -6.25),),
)


def sheet_html() -> str:
    """The sheet without its style sheet."""
    sheet = make_sheet(
        bench_of(),
        FACTS,
        made="2026-11-21 12:00 UTC",
        drop="driver_in_field",
        drift=("0x5000c50000000001 drive.WCE: 1, declared 0",),
        last=LAST,
    )
    return re.sub(r"<style>.*?</style>", "<style></style>", render_sheet(sheet), flags=re.DOTALL)


def accept_sheet() -> None:
    (FOLDER / SHEET).write_text(sheet_html(), encoding="utf-8")
    (FOLDER / f"{SHEET}.got").unlink(missing_ok=True)
