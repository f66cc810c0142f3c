# SPDX-License-Identifier: Apache-2.0
"""`storqual packages`: fetch a package for benches that have no way out to an archive."""

import click

from storqual.cli.options import as_json, print_json


@click.command("packages")
@click.argument("package")
@click.option("--version", default="", help="Exactly this version (default: the newest of the archive).")
@as_json
def packages_command(package: str, version: str, as_json: bool) -> None:
    """Download PACKAGE and its dependencies that the virtual bench's image lacks; print the files.

    The signatures of the archive are checked.

    \b
    Example:
      storqual packages linux-image-6.12-amd64 --json
    """
    from storqual.virtual_bench.image import ensure_image
    from storqual.virtual_bench.package_cache import fetch_packages

    fetched = fetch_packages(ensure_image(lambda line: click.echo(line, err=True)), package, version)
    if as_json:
        print_json({"files": [file.path for file in fetched], "packages": [file.plain() for file in fetched]})
        return
    for file in fetched:
        click.echo(f"{file.sha256}  {file.path}")
