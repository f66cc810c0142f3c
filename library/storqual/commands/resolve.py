# SPDX-License-Identifier: Apache-2.0
"""`storqual resolve`: what the provisioning roles get when no campaign asks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from storqual.campaign.role_inputs import role_inputs
from storqual.model import find_drop, load_drop, load_inventory
from storqual.model.shape import raise_all
from storqual.plan.firmware_checks import image_problems
from storqual.plan.resolve import resolve
from storqual_core.errors import BadInputError

__all__ = ["resolve_drop"]


def resolve_drop(sources: Sequence[Path], bench: str, drop: str, adapters: Sequence[str] = ()) -> dict[str, Any]:
    """The bench as its inventory describes it, and the drop as its roles take it.

    Raises BadInputError for files that cannot be used, a bench or an adapter that the inventory does not have.
    """
    benches = load_inventory(sources).benches
    if bench not in benches:
        raise BadInputError([f"{sources[0]}: found no bench {bench!r}, expected one of {', '.join(benches)}"])
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
    return {"bench": here.model_dump(mode="json", exclude_none=True), "roles": role_inputs(spec)}
