# SPDX-License-Identifier: Apache-2.0
"""An inventory, drops and a suite in a folder, as the loaders read them, without asking Ansible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storqual.plan import PlanRequest

# what two drops differ in: kernels cost a boot each, drive settings are switched by the bench in an instant
KERNEL = {"driver": {"kernel": {"package": "linux-image-6.1.0-47-amd64"}}}
OTHER = {"driver": {"kernel": {"package": "linux-image-6.12.0-1-amd64"}}}
INSTANT = ({"drive": {"WCE": 1, "queue_depth": 4}}, {"drive": {"WCE": 0, "queue_depth": 16}})

SMALL_SUITE = """\
name: small
workloads:
  seq_read: {rw: read, factors: {bs: [4k, 64k], drives: [1, 2], iodepth: [1, 8]}}
  rand_write: {rw: randwrite, factors: {bs: [4k, 64k], drives: [1, 2], iodepth: [1, 8]}}
criteria:
  - {metric: iops, against: baseline}
profiles:
  quick: {cells: 8, adapters: 2, runtime: 2s, ramp: 500ms, sessions: 4, pairs: 2, margin: 8%, indifference: 2%}
  full: {cells: all, runtime: 2s, ramp: 500ms, sessions: 4, launches: 2, pairs: 4, margin: 8%, indifference: 2%}
"""


def lab_hosts(adapters: Mapping[str, int], *, kind: str = "virtual", bench: str = "b1") -> dict[str, dict[str, Any]]:
    """Host variables of one bench: so many claimed drives on each adapter, two ports."""
    listed = {
        alias: {
            "model": f"{alias} adapter",
            "driver": f"{alias}_driver",
            "pci": f"0000:00:{number + 5:02x}.0",
            "drives": [
                {
                    "wwn": f"0x5000c500{sum((bench + alias).encode()):04x}{position:04x}",
                    "serial": f"{bench}{alias}{position:04d}".upper(),
                    "vendor": "SEAGATE",
                    "model": "ST336607LW",
                    "size": "1GiB",
                    "port": position % 2,
                    "claim": True,
                }
                for position in range(count)
            ],
        }
        for number, (alias, count) in enumerate(adapters.items())
    }
    return {bench: {"storqual_kind": kind, "storqual_adapters": listed}}


def make_lab(
    folder: Path,
    *,
    hosts: Mapping[str, Mapping[str, Any]] | None = None,
    baseline: Mapping[str, Any] | None = None,
    candidate: Mapping[str, Any] | None = None,
    suite: str = SMALL_SUITE,
    **request: Any,
) -> PlanRequest:
    """Write the files and return the request that plans with them; `request` are more of its fields."""
    hosts = hosts or lab_hosts({"sym": 4, "mpt": 4})
    (folder / "drops").mkdir(parents=True, exist_ok=True)
    listed = {"benches": {"hosts": list(hosts)}, "_meta": {"hostvars": dict(hosts)}}
    (folder / "hosts.json").write_text(json.dumps(listed), encoding="utf-8")
    (folder / "small.suite.yml").write_text(suite, encoding="utf-8")
    for name, drop in (("baseline", baseline), ("candidate", candidate)):
        (folder / "drops" / f"{name}.yml").write_text(json.dumps(drop or {}), encoding="utf-8")
    fields: dict[str, Any] = {
        "inventories": [folder / "hosts.json"],
        "baseline": "baseline",
        "candidate": "candidate",
        "suite": str(folder / "small.suite.yml"),
        "seed": 1,
        **request,
    }
    return PlanRequest(**fields)
