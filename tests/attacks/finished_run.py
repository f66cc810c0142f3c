# SPDX-License-Identifier: Apache-2.0
"""Small finished runs, made by the product's own code on a simulated bench, and cheap copies of them."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from storqual.campaign.pipeline import publish
from storqual.cli.playbook.record import record
from tests.support.make_lab import KERNEL, OTHER, lab_hosts
from tests.support.simulated_campaign import Bench, Rates, drive, plan

SUITE = Path(__file__).with_suffix(".suite").read_text(encoding="utf-8")
GATE = """\
informative:
  - bench_acceptance.robot::*
  - driver_drop.robot::*
  - sign_off.robot::Nothing Was Written Outside Claims
"""
"""A simulated bench has no adapters to look at, and says nothing of its drivers."""


def finished_run(
    folder: Path, loss: float, *, adapters: Mapping[str, int] | None = None, more: str = "", gate: str = GATE
) -> Path:
    """A published run of 16 launches in 8 sessions for each adapter, whose candidate loses that share.

    `adapters` are drives by adapter, `sym` with two without it; `more` is what the suite has beside the usual; `gate`
    is the text of the gate policy.
    """
    folder.mkdir(parents=True)
    policy = folder / "gate.yml"
    policy.write_text(gate, encoding="utf-8")
    hosts = lab_hosts(adapters or {"sym": 2})
    path = plan(folder, hosts=hosts, suite=f"{SUITE}{more}", baseline=KERNEL, candidate=OTHER, gate=policy)
    drive(path, Bench(Rates(noise=0.003, losses={"bs": loss})), close=False)
    record(path, "restored", {"bench": "b1"})
    publish(path)
    return path


def copy_of(run: Path, folder: Path) -> Path:
    """A copy of `run` with the files of its own: a file with a second name is no file of a run."""
    copy = folder / run.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    return copy


def put(path: Path, data: bytes | str) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
