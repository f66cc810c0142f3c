# SPDX-License-Identifier: Apache-2.0
"""`storqual resolve`: show what a drop means on a bench."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from storqual_core.errors import BadInputError

from storqual.cli.options import as_json, print_json
from storqual.text_safety import terminal_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["resolve_command"]


@click.command("resolve")
@click.option("-i", "--inventory", "inventories", multiple=True, help="Inventory of the lab (a folder or a file).")
@click.option("--drop", default="", help="A drop of the inventory, or a path.")
@click.option("--bench", default="", help="The bench it is for.")
@click.option("--adapters", default="", help="Only these adapters, separated by commas.")
@as_json
def resolve_command(inventories: tuple[str, ...], drop: str, bench: str, adapters: str, as_json: bool) -> None:
    """Say what a drop means on one bench: every setting, by drive and adapter. No bench is touched.

    \b
    Example:
      storqual resolve -i inventories/virtual --drop stable --bench vbench
    """
    from storqual.commands.resolve import resolve_drop

    asked = {"-i/--inventory": inventories, "--drop": drop, "--bench": bench}
    missing = [f"{name} is needed" for name, value in asked.items() if not value]
    if missing:
        raise BadInputError(missing)
    words = [word.strip() for word in adapters.split(",") if word.strip()]
    answer = resolve_drop([Path(inventory) for inventory in inventories], drop, bench, words)
    if as_json:
        print_json(answer)
        return
    lines = list(_lines(answer["spec"]))
    for line in lines or ["the drop declares nothing for this bench"]:
        click.echo(terminal_text(line))


def _lines(spec: Mapping[str, Any]) -> Iterator[str]:
    """One line per setting: owner, name, value."""
    for section in ("driver", "os", "virtual"):
        for name, value in spec[section].items():
            yield f"bench {section}.{name} {value}"
    for section in ("nvram", "drive"):
        for owner, values in spec[section].items():
            for name, value in values.items():
                yield f"{owner} {section}.{name} {value}"
    yield from (f"volume {volume}" for volume in spec["raid"])
    yield from (f"firmware {image}" for image in spec["firmware"])
