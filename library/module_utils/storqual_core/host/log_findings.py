# SPDX-License-Identifier: Apache-2.0
"""Sort lines of the kernel's log into findings: what happened to adapters, drives and the kernel itself.

A line is of the first kind whose pattern fits, most telling first. Patterns are the kernel's own wording in drivers
that storqual meets; each names where it comes from. Lines of no kind are kept as log, they are no finding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Iterable, Pattern

MARKER = "storqual: "
_EVIDENCE_LINES = 5


@dataclass(frozen=True)
class Finding:
    """One kind of trouble: how many lines said so, and the first few of them."""

    kind: str
    count: int
    lines: tuple[str, ...]

    def sentence(self) -> str:
        """For a sample's doubts."""
        return f"kernel log: {KINDS[self.kind][0]}: {self.lines[0]}" + (
            f" (and {self.count - 1} more)" if self.count > 1 else ""
        )


def _any(*patterns: str) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


# kind -> what it is in words, its patterns; order is rank
KINDS: dict[str, tuple[str, str]] = {
    # the kernel core: BUG, WARN, traps, sanitisers, lockdep, watchdogs and RCU
    "kernel_bug": (
        "the kernel found a fault in itself",
        _any(
            r"\bkernel BUG at\b",
            r"^BUG: ",
            r"^WARNING: ",
            r"^Oops\b",
            r"\bKernel panic\b",
            r"general protection fault",
            r"unable to handle kernel",
            r"\bKASAN: ",
            r"\bUBSAN: ",
            r"possible (?:circular locking|recursive locking|irq lock inversion) ",
            r"\bsoft lockup\b",
            r"\bhard LOCKUP\b",
            r"rcu.*detected (?:expedited )?stalls",
        ),
    ),
    "hung_task": (
        "a task waited too long",
        _any(r"task \S+ blocked for more than \d+ seconds", r"^INFO: task .* blocked"),
    ),
    # drivers/pci/pcie/aer.c, dpc.c, arch/x86/kernel/cpu/mce
    "aer": (
        "PCI Express or machine-check error",
        _any(
            r"PCIe Bus Error",
            r"\bAER: ",
            r"\bDPC: ",
            r"\[Hardware Error\]",
            r"\bmce: .*(?:error|exception)",
            r"EDAC .*\bU?CE\b",
        ),
    ),
    # the wording of mpt3sas, megaraid, qla2xxx, lpfc, sym53c8xx, aic7xxx, esp_scsi, Fusion-MPT, libata and nvme
    "adapter_reset": (
        "an adapter or link was reset",
        _any(
            r"\b(?:host|adapter|controller|bus|ioc|hba|chip|ctrl|firmware)\b.{0,40}\breset(?:ting)?\b",
            r"\breset(?:ting)? (?:\w+ )?(?:host|adapter|controller|bus|scsi bus|link|ioc|ctrl)\b",
            r"\bdiag(?:nostic)?[ _]reset\b",
            r"_ctrl_reset_handler|base_hard_reset_handler|MPTSCSIH.*reset|mptbase: .*(?:Recovered|IOC is in FAULT)",
            r"\bfault_state\b|in fault state|FW in FAULT|Found FW in FAULT|fault code",
            r"adapter (?:abort|is dead|died)|ISP (?:abort|error)|SCSI BUS reset|bus_reset_handler|eh_bus_reset",
            r"\bSCSI bus (?:has been|was) reset|sym\d+: SCSI BUS (?:reset|has been reset|mode change)",
            r"\bhard resetting link\b|\bsoft resetting link\b|\bhost bus reset\b",
        ),
    ),
    # drivers/scsi/scsi_error.c and the drivers' own handlers
    "task_abort": (
        "commands were aborted",
        _any(
            r"\b(?:attempting )?task abort\b",
            r"\babort(?:ing|ed)? (?:the )?(?:command|task|cmd|scmd|request|operation)\b",
            r"\b(?:task|target|device|lun|logical unit)\b.{0,30}\breset\b",
            r"\bABORT operation\b|\beh_abort|\bDEVICE RESET operation\b|\bscmd\S* abort|\bAbort status\b",
            r"\bI/O \d+ .*\baborting\b",
            r"\bcmd abort\b|\bcommand aborted\b",
        ),
    ),
    "timeout": (
        "commands timed out",
        _any(
            r"\bI/O \S+ .*\btimeout\b",
            r"\b(?:command|cmd|scmd|request|I/O)\b.{0,40}\btim(?:ed[ -]out|eout)\b",
            r"\btimed out\b|\btiming out command\b|\btimeout, (?:aborting|reset|disable|completion polled)",
            r"hostbyte=DID_TIME_OUT",
        ),
    ),
    # drivers/scsi/scsi_logging.c, sense keys by name
    "medium_error": (
        "a drive could not read or write its medium",
        _any(
            r"Sense Key : Medium Error",
            r"critical medium error",
            r"unrecovered read error",
            r"\bUNC\b",
            r"Buffer I/O error .*lost .*write",
        ),
    ),
    "sense_error": (
        "a drive reported an error",
        _any(
            r"Sense Key : (?:Hardware Error|Aborted Command|Not Ready|Recovered Error)",
            r"Sense Key : (?:Data Protect|Blank Check|Copy Aborted|Miscompare)",
            r"critical (?:target|nexus|space allocation) error",
            r"\bAdd\. Sense: .*(?:failure|error)",
        ),
    ),
    # the wording of sd and nvme, and of hot-plug slots
    "device_removed": (
        "a device went away",
        _any(
            r"rejecting I/O to (?:offline|dead) device",
            r"\bdevice offlined\b|Device offlined - not ready after error recovery",
            r"\bSynchronizing SCSI cache\b.*|\bStopping disk\b.*|\[\w+\] (?:Removing|Detaching)\b.*",
            r"hostbyte=DID_(?:NO_CONNECT|BAD_TARGET)",
            r"\bsurprise remov|Slot\(\S+\): (?:Link Down|Card not present)",
            r"\bdevice (?:was )?(?:removed|disconnected|gone)\b",
            r"Removing (?:after probe failure|from iommu)|removing handle\(0x|handle\(0x[0-9a-f]+\).*delete",
            r"nvme\S*: (?:Device not ready; aborting|failed to set APST|Disabling device after reset failure)",
        ),
    ),
    # drivers/md
    "md_degraded": (
        "an array lost a member or is not whole",
        _any(
            r"md/raid\S*: ?(?:Disk failure on|not enough operational|\S+: Disk failure on)",
            r"md: .*kicking non-fresh",
            r"\bOperation continuing on \d+ devices\b",
            r"\bmd\S*: .*\bdegraded\b|\barray is degraded\b|\bvolume .*\bdegraded\b",
            r"md/raid.*(?:read error (?:not )?correct)",
        ),
    ),
    # the wording of the block layer, of buffers and of nvme
    "io_error": (
        "I/O failed",
        _any(
            r"\bI/O error\b",
            r"blk_update_request: ",
            r"\bBuffer I/O error\b",
            r"hostbyte=DID_(?!OK\b)\w+",
            r"driverbyte=DRIVER_(?:SENSE|ERROR|TIMEOUT)",
            r"I/O Cmd\(0x[0-9a-f]+\) @ LBA",
            r"\bread error\b|\bwrite error\b",
        ),
    ),
}


@lru_cache(maxsize=None)
def _compiled() -> dict[str, Pattern[str]]:
    """The patterns, compiled when the kernel first says something: a quiet block never needs them."""
    return {kind: re.compile(pattern, re.IGNORECASE) for kind, (_, pattern) in KINDS.items()}


def classify(text: str) -> str | None:
    """The kind of trouble that one line of the log is about; None for an ordinary line or one of our own markers."""
    if text.startswith(MARKER):
        return None
    for kind, pattern in _compiled().items():
        if pattern.search(text):
            return kind
    return None


def find_all(lines: Iterable[str]) -> list[Finding]:
    """Findings in `lines` (without time stamps): each kind once, in order of rank, with its first lines."""
    evidence: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for line in lines:
        for part in line.splitlines() or [""]:
            kind = classify(part)
            if kind is not None:
                counts[kind] = counts.get(kind, 0) + 1
                kept = evidence.setdefault(kind, [])
                if len(kept) < _EVIDENCE_LINES:
                    kept.append(part[:400])
    return [Finding(kind, counts[kind], tuple(evidence[kind])) for kind in KINDS if kind in counts]
