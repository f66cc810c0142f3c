# SPDX-License-Identifier: Apache-2.0
"""The commands that set the fabrics of a bench up: handed over at power-on and run at every boot, of any kernel."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from storqual.virtual_bench.fabrics import FABRICS, INITIATOR, TARGET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storqual.virtual_bench.description import BenchDescription, EmulatedAdapter

_SETUP = Path(__file__).parent / "recipe" / "fabrics"


def setup(description: BenchDescription) -> str:
    """The commands that set the fabrics of a bench up; empty when it has none."""
    fabrics = [adapter for adapter in description.adapters if adapter.device in FABRICS]
    if not fabrics:
        return ""
    lines = [line for adapter in fabrics for line in _commands(adapter)]
    last = "restart_when_hung" if all(adapter.end == TARGET for adapter in fabrics) else "end"
    return _SETUP.read_text(encoding="utf-8") + "\n".join([*lines, last, ""])


def _commands(adapter: EmulatedAdapter) -> Iterator[str]:
    """All drives of all ports before any port: what is served is complete before somebody asks for it."""
    routes = [route for drive in adapter.drives for route in drive.routes.split()]
    if adapter.end:
        yield f"apart {adapter.end} {len(routes)}"
    for drive in adapter.drives if adapter.end != INITIATOR else ():
        function = f"0000:00:{adapter.slot:02x}.{adapter.function + drive.channel}"
        texts = (drive.serial, drive.vendor or "LIO-ORG", drive.model, drive.revision or "0001", drive.wwn)
        yield shlex.join([f"{adapter.device}_drive", drive.routes, drive.device, function, str(drive.target), *texts])
    if any(route.partition(":")[0] != route.partition(":")[2] for route in routes):
        yield "mesh=yes"
    for port in sorted({port for route in routes for port in route.split(":")}):
        yield f"{adapter.device}_port {port}"
