# SPDX-License-Identifier: Apache-2.0
"""The page of what is supported: as far as data exists, from it; the rest states what was tried and when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from ruamel.yaml import YAML
from sources import PROJECT

from storqual_core.data.faults import FAULTS
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

_HEAD = """\
# What is supported, and what was never tried

This page says on what each part rests. *Live*: it was run on a bench, which until now was always the virtual bench
(emulated adapters, real drivers of the Linux kernel). *Recorded*: its output was recorded on somebody's hardware and is
read in tests. *Documentation only*: manuals and other programs say so. **No part was run on a physical adapter by this
project.**

## Benches

| | state |
|---|---|
| Debian 12, kernels 6.1 and 6.12, x86-64 | live, on the virtual bench |
| other Debian-like systems (GRUB 2 with `custom.cfg`, dpkg, initramfs-tools) | written for, not tried |
| RHEL, AlmaLinux, Rocky, Fedora, SUSE | kernel packages and builds are refused: there is no reader of rpm. Everything else needs only SSH, Python 3.8, fio, sg3_utils and sdparm; not tried |
| EL8 with its own Python 3.6 | not supported by ansible-core |
| processors other than x86-64 | not tried |
| files of the control node (`storqual_kind: local`) | live |
| NVMe | live with one emulated controller; more namespaces, formats and firmware simulated or refused |
| Fibre Channel, iSCSI, NVMe over Fabrics | not tried |
| a user with sudo in the place of root | written for, not tried |
| AWX, execution environments | not tried |

## The control node

Linux with Python 3.11 or newer and ansible-core 2.19 to 2.22. It was run on Debian 12 with Python 3.11.
"""


def supported_page() -> str:
    """What is supported, with the evidence for each part."""
    drivers = list(_live_drivers())
    faults = Counter(way.where for fault in FAULTS.values() for way in fault.ways)
    return "\n".join(
        [
            _HEAD,
            "## Drivers of adapters\n",
            f"Run live on emulated adapters: {', '.join(f'`{name}`' for name in sorted(set(drivers)))}. Any other"
            " driver is measured in the same way; its kernel messages are recognised if a rule knows them, and none of"
            " this was tried.\n",
            "## Vendor tools\n",
            "A capability without a recording or a live run rests on documentation only.\n",
            "| tool | capabilities | recorded outputs | live |",
            "|---|---|---|---|",
            *_tools(),
            "\n## Faults\n",
            f"Of {sum(faults.values())} ways to cause a fault, {faults['virtual']} need a virtual bench."
            " [Qualify robustness](../how-to/lead/robustness.md) says which of the others were tried, and on what;"
            " [Faults](faults.md) lists them.\n",
        ]
    )


def _tools() -> Iterator[str]:
    recorded = Counter(tool for tool, _, _ in json.loads(_RECORDINGS.read_text(encoding="utf-8")).values())
    for name, tool in sorted(TOOLS.items()):
        found = offers(tool())
        named = [each for each in CAPABILITIES if each in found]
        if named:
            count = recorded.get(name, 0)
            yield f"| `{_PROGRAMS.get(name, name)}` | {', '.join(named)} | {count or 'none'} | {_LIVE.get(name, 'no')} |"


def _live_drivers() -> Iterator[str]:
    """The drivers of the benches that are emulated."""
    for name in _BENCHES:
        hosts = YAML(typ="safe").load(PROJECT / "inventories" / name / "hosts.yml")["benches"]["hosts"]
        for bench in hosts.values():
            yield from (adapter["driver"] for adapter in bench["storqual_adapters"].values())
