# SPDX-License-Identifier: Apache-2.0
"""One run with launches, trials and a foreign program, as a bench that only exists here leaves it."""

from pathlib import Path

from storqual.campaign.pipeline import publish
from storqual.cli.playbook.record import record
from tests.attacks.finished_run import GATE, SUITE
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, drive, plan

_OTHERS = Path(__file__).with_suffix(".others").read_text(encoding="utf-8")


def mixed_run(folder: Path, *, loss: float = 0.0) -> Path:
    """A published run whose candidate loses that share of its IOPS; its trials and its program pass."""
    gate = folder / "gate.yml"
    folder.mkdir(parents=True)
    gate.write_text(GATE, encoding="utf-8")
    hosts = lab_hosts({"sym": 2})
    path = plan(folder, hosts=hosts, suite=SUITE + _OTHERS, baseline=KERNEL, candidate=OTHER, gate=gate)
    drive(path, Bench(Rates(noise=0.003, losses={"bs": loss})), close=False)
    record(path, "restored", {"bench": "b1"})
    publish(path)
    return path
