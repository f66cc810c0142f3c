# SPDX-License-Identifier: Apache-2.0
"""What the meter looks at during a launch: its targets, the drives behind its volumes, its adapters' interrupts."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from .block_targets import Place
from .counters import Meter, adapter_vectors

__all__ = ["BlockAim"]


class BlockAim:
    """Points the meter of a block. `targets` is the block file's section, `places` where each of them is.

    Interrupt numbers of an adapter are looked up once.
    """

    def __init__(self, meter: Meter, targets: Mapping[str, Mapping[str, Any]], places: Mapping[str, Place]) -> None:
        self._meter = meter
        self._targets = targets
        self._places = places
        self._vectors: dict[str, tuple[str, ...]] = {}

    def at(self, names: Iterable[str]) -> None:
        """Look at these targets."""
        listed = list(names)
        volumes = [self._targets[name].get("volume") or {} for name in listed]
        members = [member for volume in volumes for member in volume.get("members", ())]
        devices, behind = (
            {name: device for name in some for device in [self._places[name].device] if device is not None}
            for some in (listed, members)
        )
        vectors: set[str] = set()
        for address in {address for name in listed for address in self._places[name].adapters}:
            if address not in self._vectors:
                self._vectors[address] = adapter_vectors([address])
            vectors.update(self._vectors[address])
        self._meter.aim(devices, sorted(vectors), behind)
