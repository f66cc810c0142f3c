# SPDX-License-Identifier: Apache-2.0
"""`storqual inventory`: the benches of an inventory as storqual reads them."""

from pathlib import Path

import click

from storqual.cli.options import as_json, limit_option, print_json, print_rows


@click.command("inventory")
@click.option(
    "-i", "--inventory", "sources", multiple=True, required=True, help="Inventory to check (a folder or a file)."
)
@limit_option
@as_json
def inventory_command(sources: tuple[str, ...], limit: str | None, as_json: bool) -> None:
    """Check an inventory and show its benches. No bench is contacted.

    \b
    Examples:
      storqual inventory -i inventories/virtual
      storqual inventory -i inventories/example_lab --json
    """
    from storqual.inputs import load_inventory

    benches = load_inventory([Path(source) for source in sources], limit=limit).benches
    if as_json:
        print_json({name: bench.model_dump(mode="json", exclude_none=True) for name, bench in benches.items()})
        return
    print_rows(
        ("Bench", "Kind", "Adapter", "Model", "Drives", "Claimed"),
        [
            (name, bench.kind, alias, adapter.model, len(adapter.drives), len(adapter.claimed))
            for name, bench in benches.items()
            for alias, adapter in bench.adapters.items()
        ],
    )
