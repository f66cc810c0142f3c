# SPDX-License-Identifier: Apache-2.0
"""The finished run that is shipped for practice: planned, run on a simulated bench and closed by the product.

Its candidate loses 12 % at one of two points, so that there is something to waive. It is not published: whoever
copies it publishes it, with the report of the version that they have.
"""

import io
import lzma
import shutil
import tarfile
import tempfile
from pathlib import Path

from storqual.base.files import example_run
from storqual.campaign import publication
from storqual.cli.playbook.record import record
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, drive, plan

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
GATE = """\
# a simulated bench has no adapters to look at, and says nothing of its drivers
informative:
  - bench_acceptance.robot::*
  - driver_drop.robot::*
  - sign_off.robot::Nothing Was Written Outside Claims
"""
LOSS = {"64k": 0.12}


def make_run(folder: Path) -> Path:
    gate = folder / "gate.yml"
    gate.write_text(GATE, encoding="utf-8")
    hosts = lab_hosts({"hba0": 2})
    path = plan(folder, hosts=hosts, suite=SUITE, baseline=KERNEL, candidate=OTHER, gate=gate)
    drive(path, Bench(Rates(noise=0.003, losses=LOSS)), close=False)
    record(path, "restored", {"bench": "b1"})
    _, measured = publication.look(path, None)
    publication.close(path, measured)
    # half of its size, and of no use for practice: the outcomes are in checks.jsonl
    shutil.rmtree(path / "robot")
    return path


def make_example() -> None:
    """Write the archive again, with nothing in it of whoever makes it."""
    folder = Path(tempfile.gettempdir()) / "storqual-example"
    folder.mkdir()
    try:
        run, out = make_run(folder), io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for file in sorted(path for path in run.rglob("*") if path.is_file()):
                entry = tarfile.TarInfo(str(file.relative_to(run.parent)))
                entry.size, entry.mode = file.stat().st_size, 0o644
                archive.addfile(entry, io.BytesIO(file.read_bytes()))
        example_run().write_bytes(lzma.compress(out.getvalue(), preset=9))
    finally:
        shutil.rmtree(folder)
