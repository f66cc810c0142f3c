# SPDX-License-Identifier: Apache-2.0
"""`storqual facts`: what benches are made of, and a draft of their inventory."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storqual.base.text import terminal_text
from storqual.cli.options import NEW_FILE, as_json, json_text, limit_option, print_rows
from storqual.cli.schema import with_schema
from storqual_core.facts.bench_kind import kind_words
from storqual_core.host.fabric import path_words, port_words
from storqual_core.host.watchdog import watchdog_words
from storqual_core.kit.durable import replace_file
from storqual_core.kit.errors import BadInputError

if TYPE_CHECKING:
    from storqual.bench.ansible_run import Answers


EXIT_SILENT = 2
"""Could not be told: a bench did not answer."""


@click.command("facts")
@click.option(
    "-i", "--inventory", "inventories", multiple=True, help="Inventory that names the benches (a folder or a file)."
)
@click.option("--host", "hosts", multiple=True, help="A machine that is in no inventory yet, by its SSH host name.")
@limit_option
@click.option("--deep", is_flag=True, help="Run vendor tools, smartctl, sdparm, lspci and dmidecode as well.")
@click.option(
    "--write-inventory", is_flag=True, help="Draft an inventory of what was found; no drive is claimed in it."
)
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    help="Write the answer into this file, once every bench has answered; until then the file stays as it was. An"
    " inventory gets the line for editors that `storqual new` writes.",
)
@as_json
def facts_command(
    inventories: tuple[str, ...],
    hosts: tuple[str, ...],
    limit: str | None,
    deep: bool,
    write_inventory: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Read adapters, drives, volumes and tools of benches. Nothing on them is changed.

    The exit code is 2 if a bench does not answer; the others are still reported, but no file is written.

    \b
    Examples:
      storqual facts -i inventories/virtual
      storqual facts -i inventories/example_lab --limit bench01 --deep --json
      storqual facts --host bench7.lab.example --write-inventory --output hosts.yml
    """
    if not inventories and not hosts:
        raise click.UsageError("-i INVENTORY is needed, or --host NAME for a machine that is in no inventory yet")
    if output is not None and not (write_inventory or as_json):
        raise click.UsageError("--output takes the answer of --write-inventory or of --json")
    if output is not None and not output.absolute().parent.is_dir():
        # read now: the benches are not asked for an answer that has no place
        raise BadInputError([f"{output}: there is no folder {output.parent}; make it, or name another file"])
    answers = _read(inventories, hosts, limit, deep=deep or write_inventory)
    fact_sets = dict(answers.by_bench)
    text = _draft(fact_sets) if write_inventory else json_text(fact_sets)
    if output is not None:
        if not answers.silent:
            _write(output, text, for_editors=write_inventory)
    elif write_inventory or as_json:
        click.echo(text, nl=False)
    else:
        for name, facts in fact_sets.items():
            _show(name, facts)
            click.echo(terminal_text(f"  set up with: {', '.join(kind_words(facts['kind']))}"))
            for sentence in facts.get("conditions", ()):
                click.echo(terminal_text(f"  look at: {sentence}"))
            for sentence in facts.get("unread", ()):
                click.echo(terminal_text(f"  not read: {sentence}"), err=True)
    for name, why in answers.silent.items():
        click.echo(f"storqual: {terminal_text(name)} did not answer: {terminal_text(why)}", err=True)
    if answers.silent and output is not None:
        click.echo(f"storqual: {terminal_text(str(output))} was not written", err=True)
    return EXIT_SILENT if answers.silent else 0


def _read(inventories: tuple[str, ...], hosts: tuple[str, ...], limit: str | None, *, deep: bool) -> Answers:
    """The fact sets by bench. Raises StorqualError when no bench answered."""
    from storqual.bench.ansible_run import ask_every_bench
    from storqual.inputs.lab import GROUP, bench_names, missing_inventories
    from storqual.inputs.shape import raise_all

    with tempfile.TemporaryDirectory(prefix="storqual-hosts-") as folder:
        new = Path(folder) / "hosts.yml"
        # JSON is YAML, and quotes whatever a name holds
        new.write_text(json.dumps({GROUP: {"hosts": {host: {} for host in hosts}}}), encoding="utf-8")
        sources = [*inventories, *([str(new)] if hosts else [])]
        files = [Path(source) for source in sources if "," not in source]
        raise_all(missing_inventories(files))
        if limit is not None and len(files) == len(sources):
            bench_names(files, limit)
        return ask_every_bench("facts.yml", sources, limit=limit, variables={"facts_deep": deep})


def _write(output: Path, text: str, *, for_editors: bool) -> None:
    """The answer into its file; an inventory names its schema in the first line, as `storqual new` writes it."""
    text, schemas = with_schema("hosts", output, text) if for_editors else (text, {})
    for path, content in {**schemas, output: text}.items():
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        replace_file(path.absolute(), content)
        click.echo(f"storqual: wrote {terminal_text(str(path))}", err=True)


def _draft(fact_sets: dict[str, Any]) -> str:
    """The draft once the loader of inventories has taken it. Raises BadInputError with what it refuses."""
    from storqual.bench.draft import draft_inventory
    from storqual.inputs import load_inventory

    text = draft_inventory(fact_sets)
    with tempfile.TemporaryDirectory(prefix="storqual-draft-") as folder:
        place = Path(folder) / "hosts.yml"
        place.write_text(text, encoding="utf-8")
        load_inventory([place])
    return text


def _show(name: str, facts: dict[str, Any]) -> None:
    kernel = f"{name}: kernel {facts['kernel']['release']}, boot {facts['boot_id']}"
    click.echo(terminal_text(f"{kernel}; watchdog: {watchdog_words(facts['watchdogs'])}"))
    print_rows(
        ("PCI", "Driver", "Board", "Firmware", "Slot", "Link"),
        [
            (
                adapter["pci"],
                adapter["driver"] or "no driver",
                adapter["board"],
                adapter["firmware"],
                adapter["slot"],
                f"{adapter['link']['speed']} x{adapter['link']['width']}" if adapter["link"]["width"] else "",
            )
            for adapter in facts["adapters"]
        ],
        title=f"Adapters of {name}",
    )
    print_rows(
        ("Drive", "Adapter", "WWN or serial", "Model", "Revision"),
        [
            (drive["node"], drive["adapter"], drive["wwn"] or drive["serial"], drive["model"], drive["revision"])
            for drive in facts["drives"]
        ],
        title=f"Drives of {name}",
    )
    paths = [(drive["node"], path_words(path)) for drive in facts["drives"] for path in drive["paths"]]
    if paths:
        hosts = [(adapter["pci"], host) for adapter in facts["adapters"] for host in adapter["hosts"]]
        ports = [(pci, port_words(host["fc_port"])) for pci, host in hosts if "fc_port" in host]
        print_rows(("Adapter", "FC port"), ports, title=f"FC ports of {name}")
        print_rows(("Drive", "Path"), paths, title=f"Paths of {name}")
    print_rows(
        ("Volume", "Kind", "Level", "State"),
        [(volume["name"], volume["kind"], volume.get("level"), volume["state"]) for volume in facts["volumes"]],
        title=f"Volumes of {name}",
    )
