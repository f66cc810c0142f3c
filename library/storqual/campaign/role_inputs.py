# SPDX-License-Identifier: Apache-2.0
"""A firmware image as its roles take it: which files go to the bench, and what the module is told about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from storqual.inputs import find_drop, load_drop, load_inventory
from storqual.inputs.shape import raise_all
from storqual.plan.checks import image_problems
from storqual.plan.resolve import resolve
from storqual_core.kit.errors import BadInputError
from storqual_core.provision.firmware.subject import REDFISH


def firmware_inputs(image: Mapping[str, Any]) -> dict[str, Any]:
    """`adapters` and `drives` it is for, `copies` (from, to), `firmware` with paths below the bench's state folder.

    The folder of each file is its image's digest: two images of one name do not meet, and what is there stays right.
    """
    copies: list[dict[str, str]] = []
    own = _on_bench(image, copies)
    return {
        "adapters": list(image.get("adapters") or ()),
        "drives": list(image.get("drives") or ()),
        "copies": copies,
        "file": image["file"],
        "firmware": {
            **own,
            "tool": image["tool"],
            "component": image.get("component") or "firmware",
            "activation": image["activation"],
            "from": list(image.get("from") or ()),
            "boards": list(image.get("boards") or ()),
            "rollback": [
                {**_on_bench(each, copies), "component": image.get("component") or "firmware"}
                for each in image.get("rollback") or ()
            ],
        },
    }


def _on_bench(image: Mapping[str, Any], copies: list[dict[str, str]]) -> dict[str, str]:
    """One image and its signature below the state folder; what must be copied there is added to `copies`."""
    signature = image.get("signature") or {}
    named = {"path": image["file"], "signature": signature.get("file", ""), "key": signature.get("key", "")}
    found = {"sha256": image["sha256"], "version": image.get("version") or ""}
    for name, source in named.items():
        found[name] = f"firmware/{image['sha256']}/{PurePath(source).name}" if source else ""
        if source:
            copies.append({"from": source, "to": found[name]})
    return found


OS_TUNING = ("governor", "irq_affinity")
"""What is set on the running kernel; the rest of the section `os` takes a boot, or is a drive's."""


def role_inputs(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What `roles/campaign` hands to the roles; every key is always there."""
    driver = spec.get("driver") or {}
    virtual = spec.get("virtual") or {}
    found = spec.get("as_found") or {}
    system = spec.get("os") or {}
    firmware = [firmware_inputs(image) for image in spec.get("firmware") or []]
    return {
        # adapters first: a drive is flashed by way of its adapter
        "firmware": sorted(firmware, key=lambda image: (bool(image["drives"]), image["firmware"]["tool"] == REDFISH)),
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
        "os_tuning": {name: system[name] for name in OS_TUNING if name in system},
        "os_as_found": [name for name in OS_TUNING if name in (found.get("os") or {}).get("", ())],
        "fresh_boot": spec.get("boot") == "always",
        "panic_at_boot": bool(virtual.get("panic_at_boot")),
        "iops_limit": virtual.get("iops_limit") or {},
    }


def _options_as_found(found: Mapping[str, Any]) -> bool:
    """Whether only the other arm has module options, or a throttle that may have become one."""
    options = any("options" in names for names in (found.get("driver") or {}).values())
    return options or any("execution_throttle" in names for names in (found.get("nvram") or {}).values())


def _start_drivers(spec: Mapping[str, Any]) -> list[str]:
    """The adapters whose drivers start again in any case: neighbours of one arm are two sessions."""
    again = spec.get("change") == "reload" and spec.get("boot") == "never" and spec.get("kind") != "local"
    return list(spec.get("adapters") or ()) if again else []


def resolve_drop(sources: Sequence[Path], bench: str, drop: str, adapters: Sequence[str] = ()) -> dict[str, Any]:
    """The bench as its inventory describes it, and the drop as its roles take it.

    Raises BadInputError for files that cannot be used, a bench or an adapter that the inventory does not have.
    """
    benches = load_inventory(sources).benches
    if bench not in benches:
        raise BadInputError([f"{sources[0]}: there is no bench {bench!r}; the benches are: {', '.join(benches)}"])
    here = benches[bench]
    unknown = [alias for alias in adapters if alias not in here.adapters]
    if unknown:
        known = ", ".join(here.adapters)
        raise BadInputError([f"{bench}: found no adapter {alias!r}, expected one of {known}" for alias in unknown])
    under_test = list(adapters) or [alias for alias, adapter in here.adapters.items() if adapter.claimed]
    path = find_drop(drop, sources)
    manifest = load_drop(path)
    raise_all(image_problems(manifest, path))
    spec = resolve(manifest, here, under_test).to_json()
    spec["expected_drivers"] = {
        alias: here.adapters[alias].driver for alias in under_test if here.adapters[alias].driver
    }
    return {"bench": here.model_dump(mode="json", exclude_none=True), "roles": role_inputs(spec), "change": ""}
