# SPDX-License-Identifier: Apache-2.0
"""Which tool makes a volume: md where the kernel sees the members as disks, else the tool of their adapter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Collection, Mapping, Sequence

from ...guard.claims import Claim, claims_of_adapters
from ...guard.snapshot import matching
from ...host.sysfs import read_drives
from ...kit.command import Runner, run
from ...kit.errors import BadInputError
from ...kit.machine import Machine
from ...tools import TOOLS
from ...tools.capabilities import offers
from .controller import ControllerVolumes
from .layout import Backends
from .md import MdVolumes
from .plan import Wish

_MD = "mdadm"
_TOOL_OF_DRIVER: Mapping[str, str] = {
    "aacraid": "arcconf",
    "hpsa": "ssacli",
    "megaraid_sas": "storcli",
    "mpi3mr": "storcli2",
    "mpt2sas": "sas3ircu",
    "mpt3sas": "sas3ircu",
    "smartpqi": "ssacli",
}


def volumes_of(
    state_dir: str,
    run_id: str,
    consent: Collection[str] = (),
    *,
    machine: Machine | None = None,
    runner: Runner = run,
) -> Backends:
    """What makes volumes on a bench, by tool, for one run. It raises BadInputError for a tool that makes none."""

    def backend(tool: str, claims: Sequence[Claim], made: Collection[str]) -> Any:  # noqa: ANN401 - by tool
        if tool == _MD:
            return MdVolumes(claims, state_dir, run_id, consent, made, machine or Machine(), runner)
        makers = [name for name in TOOLS if _makes_volumes(name)]
        if tool not in makers:
            raise BadInputError([f"raid.tool {tool!r} makes no volumes; known: {', '.join(makers)}"])
        return ControllerVolumes(tool, TOOLS[tool](), claims, state_dir, consent, made, machine or Machine(), runner)

    return backend


def _makes_volumes(tool: str) -> bool:
    return {"raid.objections", "raid.create", "raid.delete"} <= set(offers(TOOLS[tool]()))


@dataclass(frozen=True)
class Chooser:
    """The tool for volumes whose drop names none."""

    adapters: Mapping[str, Any]
    machine: Machine = field(default_factory=Machine)

    def tool(self, wish: Wish) -> str:
        """Software RAID when the kernel sees every member, the tool of the adapter's driver when it sees none.

        Raises BadInputError when neither is so, or when no tool is known for the driver.
        """
        claims = [claim for claim in claims_of_adapters(self.adapters) if claim.id in wish.drives]
        drives = read_drives(self.machine)
        seen = [claim.id for claim in claims if matching(claim, drives)]
        if len(seen) == len(claims):
            return _MD
        driver = str(self.adapters.get(wish.adapter, {}).get("driver", ""))
        if not seen and driver in _TOOL_OF_DRIVER:
            return _TOOL_OF_DRIVER[driver]
        hidden = ", ".join(claim.id for claim in claims if claim.id not in seen)
        raise BadInputError(
            [f"{wish.owner}: the kernel of this bench does not see {hidden}; name the tool that does (raid.tool)"]
        )
