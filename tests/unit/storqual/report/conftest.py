# SPDX-License-Identifier: Apache-2.0
"""Runs that several tests of the report read; each is made once."""

from pathlib import Path

import pytest

from storqual.report import build_report
from tests.support.judged_reports import PANIC, QUICK, judged
from tests.support.report_pages import Page, read_page

BUILDS = {
    "baseline": "7585F59D32EFD68246EEB02 07.719.03.00-rc1",
    "candidate": "8C5836487970C71E87983C8 07.727.03.00-rc1",
}
SETTINGS = {
    arm: [
        {
            "name": "driver.module.megaraid_sas",
            "declared": None,
            "before": None,
            "read_back": BUILDS[arm],
            "changed": True,
            "proven": True,
            "proof": "loaded build equals the one on disk",
        },
        *(
            {
                "drive": f"0x5000c5000000000{number}",
                "name": name,
                "declared": value,
                "before": 32 if name.endswith("depth") else 1,
                "read_back": value,
                "changed": True,
                "proven": True if name.endswith("WCE") else None,
                "proof": "write latency rose from 0.41 ms to 3.3 ms" if name.endswith("WCE") else "",
            }
            for number in range(3)
            for name, value in (("drive.WCE", 0), ("drive.queue_depth", depth))
        ),
    ]
    for arm, depth in (("baseline", 32), ("candidate", 64))
}

FINDING = {
    "kind": "adapter_reset",
    "line": "sym0: SCSI BUS reset detected",
    "lines": ["sym0: SCSI BUS reset detected"],
    "count": 2,
    "launch": 3,
    "adapter": "sym",
    "point": QUICK[0],
    "time": "2026-11-21T10:02:40.000Z",
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    quiet = {"points": QUICK, "noise": 0.002}
    return {
        "pass": judged(folder / "pass", **quiet, launches=2, runtime_s=4.0, settings=SETTINGS),
        "fail": judged(
            folder / "fail",
            **quiet,
            effect={"sym": -0.1},
            findings=[FINDING],
            skipped={f"mpt/{QUICK[5]}": "the drive is reserved until Monday for the acceptance of another bench"},
            settings=SETTINGS,
            checks=[{"id": "link_rate", "outcome": "FAIL", "reason": "3 Gb/s, expected 6 Gb/s", "adapter": "mpt"}],
        ),
        "waived": judged(
            folder / "waived", **quiet, effect={f"sym/{QUICK[0]}": -0.1}, waived=[f"iops@sym/{QUICK[0]}"]
        ),
        "inconclusive": judged(folder / "inconclusive", points=QUICK, noise=0.03),
        "error": judged(
            folder / "error",
            **quiet,
            missing=QUICK,
            events=[
                {"kind": "kernel_panic", "bench": "vbench", "session": "s02", "arm": "candidate", "text": PANIC},
                {
                    "kind": "provision_failed",
                    "bench": "vbench",
                    "session": "s02",
                    "reason": "kernel 6.12 did not boot",
                },
            ],
        ),
        "local": judged(folder / "local", **quiet, kind="local", statuses={f"sym/{QUICK[0]}": "refused"}),
        "same": judged(
            folder / "same",
            **quiet,
            arms=("baseline", "candidate"),
            kernels={"baseline": "6.1.0-47-amd64", "candidate": "6.1.0-47-amd64"},
            manifests={"candidate": {"virtual": {"iops_limit": {"all": 900}}}},
            sectors_outside=7,
        ),
    }


@pytest.fixture(scope="session")
def pages(runs: dict[str, Path]) -> dict[str, Page]:
    return {name: read_page(build_report(path)) for name, path in runs.items()}
