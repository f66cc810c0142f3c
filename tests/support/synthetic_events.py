# SPDX-License-Identifier: Apache-2.0
"""What happened in a synthetic run: sessions, blocks, disks, findings, as the campaign would have recorded it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storqual.run import sha256_of
from tests.support.make_run import CPUS, DRIVERS, Shape, drive_id, time_at


def events_of(
    shape: Shape, plan: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """All events of a run in order, without the chain."""
    facts = {"cpu": {"model": "QEMU Virtual CPU", "count": CPUS}, "memory_bytes": 1 << 30, "accelerator": "tcg"}
    facts.update(shape.environment)
    drive = drive_id(shape.adapters[0], 0)
    records: list[dict[str, Any]] = [{"smart": {drive: dict(look)}} if look else {} for look in shape.smart]
    records = [
        {**record, **({"logs": dict(told)} if told else {})} for record, told in zip(records, shape.logs, strict=True)
    ]
    events: list[dict[str, Any]] = [
        {"time": time_at(-60), "kind": "planned", "run": shape.run, "plan_sha256": "", "blocks": {}},
        {
            "time": time_at(-50),
            "kind": "environment",
            "bench": shape.bench,
            "when": "before",
            "facts": facts,
            **records[0],
        },
    ]
    told = not shape.findings
    for number, session in enumerate(plan):
        block, arm = session["blocks"][0], session["arm"]
        common = {"bench": shape.bench, "session": session["id"]}
        boot = f"0000000{number}-0000-4000-8000-000000000000"
        begin = number * 120
        modules = {
            DRIVERS.get(alias, alias): {
                "srcversion": f"{sha256_of((alias + arm).encode())[:23].upper()}",
                "version": "1.0",
            }
            for alias in shape.adapters
        }
        if number == len(plan) - 1:
            events += [{"time": time_at(begin - 6), **event} for event in shape.before_last]
        events.append(
            {
                "time": time_at(begin - 5),
                "kind": "session_started",
                **common,
                "boot_id": boot,
                "kernel": shape.kernels.get(arm, ""),
                "arm": arm,
                "provisioned": {"drivers": modules, "settings": list(shape.settings.get(arm, ()))},
            }
        )
        events.append({"time": time_at(begin - 1), "kind": "block_started", **common, "block": block})
        findings = list(shape.findings) if not told and shape.arms[1] in session["arms"] else []
        told = told or bool(findings)
        disk = {"wwn": drive_id(shape.adapters[0], 0), "claimed": True, "system": ""}
        other = {"wwn": "0x5000c500ffff0001", "claimed": False, "system": ""}
        disks = {
            "sda": {
                "wwn": None,
                "claimed": False,
                "system": "/",
                "write_sectors_before": 0,
                "write_sectors_after": 800,
            },
            "sdb": {
                **disk,
                "write_sectors_before": 0,
                "write_sectors_after": 4096,
                **({"errors": dict(shape.errors)} if shape.errors and number == 0 else {}),
            },
            "sdc": {
                **other,
                "write_sectors_before": 0,
                "write_sectors_after": shape.sectors_outside if number == 0 else 0,
            },
        }
        events.append(
            {
                "time": time_at(begin + 100),
                "kind": "block_finished",
                **common,
                "block": block,
                "outcome": "done",
                "message": "",
                "samples": sum(sample["block"] == block for sample in samples),
                "boot_id": boot,
                "start": {"boot_id": boot, "kernel": shape.kernels.get(arm, ""), "fio": "fio-3.33"},
                "end": {"outcome": "done", "disks": disks, "overhead_s": 0.5},
                "findings": findings,
                "kernel_log": None,
            }
        )
    events += [{"time": time_at(3000), **event} for event in shape.events]
    events.append(
        {
            "time": time_at(3100),
            "kind": "environment",
            "bench": shape.bench,
            "when": "after",
            "facts": facts,
            **records[1],
        }
    )
    if not any(event["kind"] == "restore_failed" for event in shape.events):
        events.append({"time": time_at(3200), "kind": "restored", "bench": shape.bench})
    return events
