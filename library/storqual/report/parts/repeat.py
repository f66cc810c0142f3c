# SPDX-License-Identifier: Apache-2.0
"""How one point is measured again alone: a command of its own, and its fio job as a file to copy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storqual.report.material import Material
from storqual.report.parts.appendix import measure_again
from storqual.run.files import read_object
from storqual.run.layout import BLOCKS
from storqual.run.measurements import PointKey
from storqual_core.turns.fio_job import FioTarget, build_argv, launch_seed, read_ask

_MEASURING = {"output-format", "eta", "disk_util", "group_reporting", "lat_percentiles", "clat_percentiles"}
_MEASURING |= {"percentile_list", "per_job_logs", "log_avg_msec", "log_hist_msec"}
"""What says how fio measures and not what it does."""


@dataclass(frozen=True)
class Repeat:
    """The command that measures one point alone, and the job file of its first launch (empty without a batch)."""

    command: str
    job: str


def repeats_of(material: Material) -> dict[PointKey, Repeat]:
    """By point; the job is that of the point's first launch in the first batch file that has one."""
    jobs: dict[PointKey, str] = {}
    for file in sorted((material.run.path / BLOCKS).glob("*.json")):
        block = read_object(material.run.path, f"{BLOCKS}/{file.name}")
        targets = block.get("targets") or {}
        for launch in block.get("turns") or ():
            key = (str(block.get("bench")), str(launch.get("adapter")), str(launch.get("point")))
            if key in material.points and key not in jobs:
                jobs[key] = _job(material.run.name, launch, targets)
    again = measure_again(material)
    return {
        key: Repeat(shlex.join([*again, "--adapters", key[1], "--point", key[2]]), jobs.get(key, ""))
        for key in material.points
    }


def _job(run: str, launch: Mapping[str, Any], targets: Mapping[str, Any]) -> str:
    """A launch as a job file; empty for one that cannot be read."""
    ask = read_ask((launch.get("request") or {}).get("fio"), "fio", [])
    if ask is None:
        return ""
    seed = ask.seed or launch_seed(run, str(launch.get("point")), int(launch.get("n") or 1))
    drives = [_target(str(drive), targets.get(drive) or {}) for drive in launch.get("drives") or ()]
    words = build_argv(ask, drives, seed=seed, log_prefix="")[1:]
    head = "fio --readonly point.fio" if ask.reads_only else "fio point.fio WRITES to its targets"
    lines = [f"# {head}: the first launch of {launch.get('point')}; check that each target is the drive it names"]
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        if name == "name":
            lines += [f"[{value}]"]
        elif name != "readonly" and name not in _MEASURING and not name.startswith("write_"):
            lines.append(f"{name}={value}")
    return "\n".join(lines) + "\n"


def _target(drive: str, entry: Mapping[str, Any]) -> FioTarget:
    """A drive by its WWN on whatever bench it hangs, a file by its path; a volume has no name that would be right."""
    claim = entry.get("claim") or {}
    if claim.get("file"):
        return FioTarget(drive, str(claim["file"]), size=int(claim.get("size") or 0), is_file=True)
    if "volume" in entry:
        return FioTarget(drive, f"VOLUME {drive}")
    return FioTarget(drive, f"/dev/disk/by-id/{'wwn-' if drive.startswith('0x') else ''}{drive}")
