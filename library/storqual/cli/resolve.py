# SPDX-License-Identifier: Apache-2.0
"""`storqual resolve`: a drop for one bench, every `on` applied, every drive by its id."""

from __future__ import annotations

from pathlib import Path

import click

from storqual.cli.options import as_json, complete_drop, print_json
from storqual.cli.tables import print_pairs


@click.command("resolve")
@click.option("-i", "--inventory", "sources", multiple=True, required=True, help="A folder or a file.")
@click.option("--bench", required=True, help="The bench the drop is for.")
@click.option("--drop", required=True, shell_complete=complete_drop, help="A name in <inventory>/drops, or a path.")
@click.option("--adapters", default="", help="Only these adapters, separated by commas; all without it.")
@as_json
def resolve_command(sources: tuple[str, ...], bench: str, drop: str, adapters: str, as_json: bool) -> None:
    """Show what a drop means for one bench.

    \b
    Example:
      storqual resolve -i inventories/virtual --bench vbench --drop stable --json
    """
    from storqual.campaign.role_inputs import resolve_drop

    chosen = tuple(alias for alias in adapters.split(",") if alias)
    answer = resolve_drop([Path(source) for source in sources], bench, drop, chosen)
    if as_json:
        print_json(answer)
        return
    roles = answer["roles"]
    pairs: list[tuple[str, object]] = [
        (drive, "  ".join(f"{name}={value}" for name, value in settings.items()))
        for drive, settings in roles["drives"].items()
    ]
    pairs += [
        (
            f"{volume['adapter']} volume",
            "  ".join(f"{name}={value}" for name, value in volume.items() if name != "adapter"),
        )
        for volume in roles["volumes"]
    ]
    pairs += [
        (
            f"{owner} {image['firmware']['component']}",
            "  ".join(f"{name}={image['firmware'][name]}" for name in ("version", "tool", "activation")),
        )
        for image in roles["firmware"]
        for owner in (*image["adapters"], *image["drives"])
    ]
    print_pairs([*pairs, *((name, roles[name]) for name in ("kernel", "cmdline", "modules"))])
