# SPDX-License-Identifier: Apache-2.0
"""`storqual inventory` and `resolve`: the benches of an inventory as storqual reads them, a drop for one of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import click

from storqual.cli.options import (
    adapters_option,
    as_json,
    complete_drop,
    lab_option,
    limit_option,
    print_json,
    print_pairs,
    print_rows,
)


@click.command("inventory")
@lab_option
@limit_option
@as_json
def inventory_command(inventories: tuple[str, ...], limit: str | None, as_json: bool) -> None:
    """Check an inventory and show its benches. No bench is contacted.

    \b
    Examples:
      storqual inventory -i inventories/virtual
      storqual inventory -i inventories/example_lab --json
    """
    from storqual.inputs import load_inventory

    benches = load_inventory([Path(source) for source in inventories], limit=limit).benches
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


@click.command("resolve")
@lab_option
@click.option("--bench", required=True, help="The bench the drop is for.")
@click.option(
    "--drop", required=True, shell_complete=complete_drop, help="The drop: a name in <inventory>/drops, or a path."
)
@adapters_option
@as_json
def resolve_command(inventories: tuple[str, ...], bench: str, drop: str, adapters: str | None, as_json: bool) -> None:
    """Show which settings, files and versions a drop gives one bench.

    \b
    Example:
      storqual resolve -i inventories/virtual --bench vbench --drop stable --json
    """
    from storqual.campaign.declared import resolve_drop
    from storqual.cli.campaign import comma_separated

    answer = resolve_drop([Path(source) for source in inventories], bench, drop, comma_separated(adapters) or ())
    if as_json:
        print_json(answer)
        return
    nothing = (
        ("left out", answer["left_out"])
        if "left_out" in answer
        else ("nothing", f"{drop} declares nothing for {bench}")
    )
    print_pairs(list(_lines(answer["declared"])) or [nothing])


def _lines(declared: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything that a bench would get, a line for each drive, adapter, volume, image and module."""
    yield from _software(declared["driver"])
    for section in ("os", "multipath"):
        if declared[section]["settings"]:
            yield section, _named(declared[section]["settings"])
    for adapter, words in declared["nvram"]["settings"].items():
        yield f"{adapter} nvram", _named(words)
    for image in declared["firmware"]:
        fields = {name: image["firmware"][name] for name in ("version", "tool", "activation")}
        for owner in (*image["adapters"], *image["drives"]):
            yield f"{owner} {image['firmware']['component']}", _named(fields)
    for volume in declared["raid"]["volumes"]:
        yield (
            f"{volume['adapter']} volume",
            _named({name: value for name, value in volume.items() if name != "adapter"}),
        )
    for drive, settings in declared["drive"]["settings"].items():
        yield drive, _named(settings)
    for adapter, most in declared["virtual"]["iops_limit"].items():
        yield f"{adapter} virtual limit", f"{most} IOPS"
    if declared["driver"]["panic_at_boot"]:
        yield "virtual", "the kernel panics at boot"


def _software(driver: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if driver["kernel"]:
        files = [PurePath(file).name for file in driver["kernel"].get("files", ())]
        yield "driver.kernel", _named({**driver["kernel"], "files": files})
    if driver["build"]:
        build = {name: driver["build"][name] for name in ("module", "version", "sha256")}
        files = [PurePath(path).name for path in driver["build"]["paths"]]
        named = {"file": files[0]} if len(files) == 1 else {"files": files}
        yield "driver build", _named({**named, **build, "as": driver["build"]["kmod"]})
    for module, options in driver["options"].items():
        yield f"options of {module}", _named(options) if isinstance(options, dict) else str(options)
    if driver["modules"]:
        yield "drivers expected", " ".join(driver["modules"])
    if driver["cmdline"]:
        yield "kernel command line", " ".join(driver["cmdline"])


def _named(values: Mapping[str, Any]) -> str:
    """`name=value` of each; a value that has parts is written out, never as a program would print it."""
    return "  ".join(f"{name}={_plain(value)}" for name, value in values.items() if value not in (None, "", [], {}))


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ",".join(f"{name}:{_plain(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(_plain(item) for item in value)
    return str(value)
