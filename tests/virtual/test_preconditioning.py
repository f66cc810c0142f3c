# SPDX-License-Identifier: Apache-2.0
"""Drives are purged, filled and brought to a steady state on the bench; an open loop issues its arrivals there."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storqual.inputs import load_inventory

pytestmark = [pytest.mark.bench, pytest.mark.long, pytest.mark.timeout(1800)]

REPOSITORY = Path(__file__).resolve().parents[2]
INVENTORY = REPOSITORY / "inventories" / "virtual"
DROP = REPOSITORY / "tests" / "virtual" / "gate" / "drops" / "even.yml"
BIN = Path(sys.executable).parent
SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def bench_ends() -> Iterator[None]:
    """Power the bench off after the module."""
    yield
    command = [BIN / "ansible-playbook", "-i", INVENTORY, REPOSITORY / "playbooks" / "bench_down.yml"]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)


def drive_of(adapter: str) -> str:
    """How a run names the first drive of an adapter."""
    return str(load_inventory([INVENTORY]).benches["vbench"].adapters[adapter].claimed[0].id)


def measured(
    folder: Path,
    adapters: str,
    *,
    workload: str = "",
    profile: str = "",
    consent: str = "",
    codes: tuple[int, ...] = (0,),
) -> Path:
    """The run of a campaign of one arm and one launch an adapter, which may end with one of these exit codes."""
    suite = folder / "conditioned.suite.yml"
    suite.write_text(SUITE.format(workload=workload, profile=profile), encoding="utf-8")
    words = f"qualify -i {INVENTORY} --candidate {DROP} --suite {suite} --runs {folder}/runs --adapters {adapters}"
    done = subprocess.run(
        [BIN / "storqual", *words.split(), *(["--consent", consent] if consent else [])],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in codes, done.stdout[-3000:] + done.stderr[-2000:]
    (found,) = (folder / "runs").glob("*/run.json")
    return found.parent


def report_of(run: Path) -> dict[str, Any]:
    """What was done to the drives before the first launch."""
    (entry,) = json.loads((run / "run.json").read_text(encoding="utf-8"))["preconditioned"]
    found: dict[str, Any] = entry["report"]
    return found


def test_flash_is_discarded_and_filled_and_disks_are_measured_as_they_are(tmp_path: Path) -> None:
    profile = "precondition: {purge: discard, fill: 1, steady: null, media: flash}"
    run = measured(tmp_path, "sym,nvme", profile=profile)
    report = report_of(run)
    assert drive_of("sym") in report["as_found"]
    assert drive_of("nvme") not in report["as_found"]
    assert report["purge"] == {drive_of("nvme"): "discarded by blkdiscard"}
    # the guard's areas at both ends are not filled
    assert 0.99 * 2**30 < report["fill"]["bytes"] <= 2**30
    page = (run / "report.html").read_text(encoding="utf-8")
    assert f"{drive_of('sym')}, no flash" in page
    assert "discarded by blkdiscard" in page


def test_flash_is_purged_by_a_format_that_somebody_consented_to(tmp_path: Path) -> None:
    """The emulator writes the zeros at the drive's limit, and delays I/O after it: the log may tell of a time-out."""
    profile = "precondition: {purge: format, fill: null, steady: null, media: flash}"
    run = measured(tmp_path, "nvme", profile=profile, consent=drive_of("nvme"), codes=(0, 2))
    done = "formatted by nvme format, user data erased"
    assert report_of(run)["purge"] == {drive_of("nvme"): done}
    assert done in (run / "report.html").read_text(encoding="utf-8")


def test_rounds_go_on_until_five_minutes_are_level(tmp_path: Path) -> None:
    profile = "precondition: {fill: null, steady: {round: 30s, volume: 0, at_most: 330s}, media: flash}"
    # the emulated NVMe drive loses interrupts after some minutes of writes, and stands still then
    steady = report_of(measured(tmp_path, "vscsi", profile=profile))["steady"]
    assert steady["rounds"] in (10, 11)
    assert steady["steady"] is True
    assert steady["window_s"] >= 300
    assert max(map(abs, steady["drift"])) <= 0.05
    assert steady["snia"]["range"] <= 0.2


def test_an_open_loop_issues_its_arrivals(tmp_path: Path) -> None:
    """A hundred a second on a drive that does four hundred, whatever is outstanding."""
    run = measured(tmp_path, "nvme", workload="arrivals: poisson, rate_iops: 100,")
    (sample,) = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    found = json.loads(sample)
    assert (found["status"], found["primitives"]["open_loop"]) == ("ok", 1)
    assert found["primitives"]["read_ios"] == pytest.approx(found["primitives"]["asked_ios"], rel=0.25)
    assert not [doubt for doubt in found["suspect"] if "arrivals" in doubt]
