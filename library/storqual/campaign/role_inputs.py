# SPDX-License-Identifier: Apache-2.0
"""A session's specification as the provisioning roles take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storqual.campaign.firmware_inputs import firmware_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["role_inputs"]


def role_inputs(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What `roles/campaign` hands to the roles; every key is always there."""
    driver = spec.get("driver") or {}
    virtual = spec.get("virtual") or {}
    found = spec.get("as_found") or {}
    system = spec.get("os") or {}
    firmware = [firmware_inputs(image) for image in spec.get("firmware") or []]
    return {
        "adapter_firmware": [image for image in firmware if not image["drives"]],
        "drive_firmware": [image for image in firmware if image["drives"]],
        "drives": spec.get("drive") or {},
        "volumes": spec.get("raid") or [],
        # volumes of another configuration of this bench may be there and must not stay
        "only_volumes": bool(spec.get("raid") or found.get("raid")),
        "drives_as_found": found.get("drive") or {},
        "nvram": spec.get("nvram") or {},
        "start_drivers": _start_drivers(spec),
        "nvram_as_found": found.get("nvram") or {},
        "dkms": driver.get("dkms") or {},
        "module": driver.get("module") or {},
        "build_as_found": any(name in (found.get("driver") or {}).get("", ()) for name in ("dkms", "module")),
        "options": driver.get("options") or {},
        "options_as_found": _options_as_found(found),
        "kernel": driver.get("kernel") or {},
        "modules": sorted(set((spec.get("expected_drivers") or {}).values())),
        "cmdline": [*(system.get("cmdline") or []), *([f"maxcpus={system['cpus']}"] if system.get("cpus") else [])],
        "fresh_boot": spec.get("boot") == "always",
        "panic_at_boot": bool(virtual.get("panic_at_boot")),
        "iops_limit": virtual.get("iops_limit") or {},
        "unplug": virtual.get("unplug") or {},
    }


def _options_as_found(found: Mapping[str, Any]) -> bool:
    """Whether only the other arm has module options, or a throttle that may have become one."""
    options = any("options" in names for names in (found.get("driver") or {}).values())
    return options or any("execution_throttle" in names for names in (found.get("nvram") or {}).values())


def _start_drivers(spec: Mapping[str, Any]) -> list[str]:
    """The adapters whose drivers start again in any case: neighbours of one arm are two sessions."""
    again = spec.get("change") == "reload" and spec.get("boot") == "never" and spec.get("kind") != "local"
    return list(spec.get("adapters") or ()) if again else []
