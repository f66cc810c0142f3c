# SPDX-License-Identifier: Apache-2.0
"""`storqual schema`: the JSON Schema of a file that people write, for editors and other programs."""

import json
import os
from pathlib import Path

import click

from storqual.cli.options import as_json, print_json

NAMES = ("hosts", "drop", "suite", "gate", "waivers", "keys")
"""The kinds of files; here too, because a command line is completed without reading models."""


@click.command("schema")
@click.argument("name", type=click.Choice(NAMES))
@as_json
def schema_command(name: str, as_json: bool) -> None:
    """Print the JSON Schema (2020-12) of hosts.yml, a drop, a suite, gate.yml, waivers.yml or keys.yml.

    An editor with a language server for YAML checks and completes a file with it. `storqual new` writes the schemas
    into the folder schemas/ and names them in the first line of each file:
    # yaml-language-server: $schema=../../schemas/hosts.schema.json

    \b
    Examples:
      storqual schema hosts > schemas/hosts.schema.json
      storqual schema suite
    """
    from storqual.inputs.json_schema import json_schema

    del as_json  # a schema is JSON
    print_json(json_schema(name))


def schema_file(name: str) -> Path:
    """Where `storqual new` keeps a schema, below the current folder."""
    return Path("schemas") / f"{name}.schema.json"


_MODELINE = "# yaml-language-server: $schema="


def with_schema(name: str, path: Path, text: str) -> tuple[str, dict[Path, str]]:
    """The text of a file for editors: its first line names the schema; and the schema's own file, if it is missing.

    A file that is there already keeps the line that it has.
    """
    from storqual.inputs.json_schema import json_schema

    kept = first_line(path)
    if kept.startswith(_MODELINE):
        return f"{kept}\n{text}", {}
    schema = schema_file(name)
    line = f"{_MODELINE}{os.path.relpath(schema, path.parent)}"
    return f"{line}\n{text}", {} if schema.exists() else {schema: json.dumps(json_schema(name), indent=1) + "\n"}


def first_line(path: Path) -> str:
    """The first line of a file, empty for none or one that is no text."""
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.readline(4096).rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return ""
