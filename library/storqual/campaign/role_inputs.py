# SPDX-License-Identifier: Apache-2.0
"""A session's specification as the provisioning roles take it: plain values, drives by id, one list for a bench."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storqual_core.settings import section_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["role_inputs"]


def role_inputs(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What `roles/campaign` hands to the roles; every key is always there.

    Drive settings are parted by where they live: mode-page fields in the drive, the rest in the kernel's queue.
    """
    known = section_of("drive")
    drives = []
    for drive, values in (spec.get("drive") or {}).items():
        fields = {name: value for name, value in values.items() if known[name].field is not None}
        queue = {name: value for name, value in values.items() if known[name].field is None}
        drives.append({"id": drive, "settings": fields, "queue": queue})
    driver = spec.get("driver") or {}
    virtual = spec.get("virtual") or {}
    return {
        "drives": [drive for drive in drives if drive["settings"] or drive["queue"]],
        "kernel": driver.get("kernel") or {},
        "modules": sorted(set((spec.get("expected_drivers") or {}).values())),
        "cmdline": (spec.get("os") or {}).get("cmdline") or [],
        "fresh_boot": spec.get("boot") == "always",
        "panic_at_boot": bool(virtual.get("panic_at_boot")),
        "iops_limit": virtual.get("iops_limit") or {},
        "unplug": virtual.get("unplug") or {},
    }
