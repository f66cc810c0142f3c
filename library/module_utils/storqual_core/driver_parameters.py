# SPDX-License-Identifier: Apache-2.0
"""What the queue parameters of Linux drivers are called and mean, and which NVRAM words a driver does not follow.

Sources: the drivers in the kernel's tree (`modinfo` names, not defaults: those differ between releases); that qla2xxx
writes 0xFFFF into its init block whatever the NVRAM says is commit bc8fb3cb9e20 of 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

__all__ = ["PARAMETERS", "QueueParameter", "driver_follows", "lun_depth_parameter", "parameter_of"]


@dataclass(frozen=True)
class QueueParameter:
    """One parameter: what it limits (`lun`, `target`, `host`, `controller`, `recovery`), its range where known.

    A parameter of scope `lun` is the queue depth that the driver gives each drive, so its effect can be watched.
    """

    module: str
    name: str
    scope: str
    meaning: str
    minimum: int | None = None
    maximum: int | None = None


PARAMETERS = (
    QueueParameter("qla2xxx", "ql2xmaxqdepth", "lun", "commands per LUN, for LUNs found from now on", 1, 65535),
    QueueParameter("qla2xxx", "ql2xqfullrampup", "recovery", "seconds before a lowered depth rises again", 0),
    QueueParameter("qla2xxx", "ql2xloginretrycount", "recovery", "login attempts, over the NVRAM's", 0),
    QueueParameter("qla2xxx", "qlport_down_retry", "recovery", "retries while a port is down, over the NVRAM's", 0),
    QueueParameter("qla2xxx", "ql2xlogintimeout", "recovery", "login time-out in seconds", 0),
    QueueParameter("lpfc", "lpfc_lun_queue_depth", "lun", "commands per LUN", 1, 512),
    QueueParameter("lpfc", "lpfc_tgt_queue_depth", "target", "commands per target", 10, 65535),
    QueueParameter("lpfc", "lpfc_hba_queue_depth", "host", "commands per adapter", 32, 8192),
    QueueParameter("mpt3sas", "max_queue_depth", "controller", "credits asked of the firmware; -1 takes what it has"),
    QueueParameter("megaraid_sas", "throttlequeuedepth", "recovery", "commands while the controller recovers", 1),
    QueueParameter("sym53c8xx", "cmd_per_lun", "lun", "tagged commands per LUN", 0, 64),
)
"""Drivers whose queue is one number; a string such as `aic7xxx=tag_info:{{..}}` is given as a module option."""

# drivers that do not follow a word of their adapter's NVRAM, and why; what can be set beside it is in PARAMETERS
_IGNORED: Mapping[tuple[str, str], str] = {
    ("qla2xxx", "execution_throttle"): "qla2xxx writes 0xFFFF into the init block whatever the NVRAM says",
    ("am53c974", "scsi_parity"): "am53c974 does not read the target records of the EEPROM",
    ("am53c974", "scsi_bus_reset"): "am53c974 resets the bus by itself and does not read this bit",
}


def parameter_of(module: str, name: str) -> QueueParameter | None:
    """The parameter in the table, or None for one that is not about queues."""
    return next((each for each in PARAMETERS if (each.module, each.name) == (module, name)), None)


def lun_depth_parameter(module: str) -> QueueParameter | None:
    """What a driver calls the queue depth that it gives each drive; None when it has no such parameter."""
    return next((each for each in PARAMETERS if each.module == module and each.scope == "lun"), None)


def driver_follows(driver: str, setting: str) -> str:
    """Why a driver does not follow an NVRAM word, as a sentence's part; empty when nothing is known against it."""
    return _IGNORED.get((driver, setting), "")
