# SPDX-License-Identifier: Apache-2.0
"""`storqual facts`: what benches are made of, and a draft of their inventory."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json
from storqual.text_safety import terminal_text
from storqual_core.errors import StorqualError

__all__ = ["facts_command"]


@click.command("facts")
@click.option("-i", "--inventory", "inventories", multiple=True, required=True, help="Where the benches are named.")
@click.option("--limit", help="Only these benches (an Ansible pattern).")
@click.option("--write-inventory", is_flag=True, help="Draft an inventory of what was found; it claims nothing.")
@as_json
def facts_command(inventories: tuple[str, ...], limit: str | None, write_inventory: bool, as_json: bool) -> None:
    """Read adapters, drives, volumes and tools of benches; nothing on them is changed.

    \b
    Examples:
      storqual facts -i inventories/virtual
      storqual facts -i inventories/example_lab --limit bench7 --write-inventory > inventories/lab/hosts.yml
    """
    from storqual.ansible_run import run_playbook
    from storqual.facts import draft_inventory

    with tempfile.TemporaryDirectory(prefix="storqual-facts-") as folder:
        log = Path(folder) / "log"
        status = run_playbook(
            "facts.yml",
            inventories=inventories,
            variables={"facts_folder": folder},
            options=["--limit", limit] if limit else [],
            output=log,
        )
        found = {
            path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*.json"))
        }
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if not found:
        raise StorqualError(f"no bench answered (status {status}): {said[-1] if said else 'Ansible said nothing'}")
    if write_inventory:
        click.echo(draft_inventory(found), nl=False)
    elif as_json:
        print_json(found)
    else:
        for name, facts in found.items():
            click.echo(terminal_text(f"{name}  kernel {facts['kernel']['release']}  boot {facts['boot_id']}"))
            for adapter in facts["adapters"]:
                click.echo(terminal_text(f"  {adapter.get('pci')}  {adapter.get('driver')}"))
            for drive in facts["drives"]:
                click.echo(
                    terminal_text(
                        f"  {drive.get('node')}  {drive.get('wwn') or drive.get('serial')}  {drive.get('model')}"
                    )
                )
