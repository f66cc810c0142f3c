# SPDX-License-Identifier: Apache-2.0
"""The page of what is supported: as far as data exists, from it; the rest states what was tried and when."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML
from sources import PROJECT

from storqual_core.data.faults import FAULTS
from storqual_core.facts.tool_facts import FAMILIES, PACKAGES
from storqual_core.tools import TOOLS
from storqual_core.tools.capabilities import CAPABILITIES, offers

_BENCHES = ("virtual", "virtual_debug")
_RECORDINGS = PROJECT / "tests" / "unit" / "storqual_core" / "tools" / "recordings.json"
_PROGRAMS = {"sasflash": "sas3flash", "sg_write_buffer": "sg_write_buffer"}
_LIVE = {
    "dc390": "the EEPROM of the virtual bench: read, written, restored",
    "mdadm": "volumes of the virtual bench",
    "sg_write_buffer": "a simulated drive",
}
"""What more than reading was tried on, where it was."""

_TEXT = Path(__file__).with_name("supported.md")


def supported_page() -> str:
    """What is supported, with the evidence for each part."""
    ways = Counter(way.where for fault in FAULTS.values() for way in fault.ways)
    known = {
        "DRIVERS": ", ".join(f"`{name}`" for name in sorted(set(_live_drivers()))),
        "WAYS": str(sum(ways.values())),
        "VIRTUAL": str(ways["virtual"]),
    }
    text = re.sub("|".join(known), lambda word: known[word[0]], _TEXT.read_text(encoding="utf-8"))
    heads = ("| tool | capabilities | recorded outputs | live |", "|---|---|---|---|")
    return "\n".join([text.rstrip(), "", *heads, *_tools(), "", *_packages(), ""])


def _packages() -> Iterator[str]:
    """The package that brings each program, by family of distributions."""
    yield "## Packages"
    yield ""
    yield f"| program | {' | '.join(FAMILIES)} |"
    yield "|---" * (len(FAMILIES) + 1) + "|"
    for program, packages in sorted(PACKAGES.items()):
        yield f"| `{program}` | {' | '.join(packages)} |"


def _tools() -> Iterator[str]:
    recorded = Counter(tool for tool, _, _ in json.loads(_RECORDINGS.read_text(encoding="utf-8")).values())
    for name, tool in sorted(TOOLS.items()):
        found = offers(tool())
        named = [each for each in CAPABILITIES if each in found]
        if named:
            count = recorded.get(name, 0)
            cells = (f"`{_PROGRAMS.get(name, name)}`", ", ".join(named), str(count or "none"), _LIVE.get(name, "no"))
            yield f"| {' | '.join(cells)} |"


def _live_drivers() -> Iterator[str]:
    """The drivers of the benches that are emulated."""
    for name in _BENCHES:
        hosts = YAML(typ="safe").load(PROJECT / "inventories" / name / "hosts.yml")["benches"]["hosts"]
        for bench in hosts.values():
            yield from (adapter["driver"] for adapter in bench["storqual_adapters"].values())
