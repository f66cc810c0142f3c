# SPDX-License-Identifier: Apache-2.0
"""Sort lines of the kernel's log into findings: what happened to adapters, drives and the kernel itself.

A line is of the first kind of which a rule fits, most telling first; a bench's own rules come before the shipped
ones. What a network driver says, or USB, graphics and the like, is no trouble of an adapter here. Lines of no kind
are kept as log, they are no finding. A stamp of dmesg or syslog in front of a line is no part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Iterable

from .log_rule import KINDS, SEVERITIES, LinePatterns, Rule, shipped_rules

MARKER = "storqual: "
_EVIDENCE_LINES = 5
_LONGEST_END = 1024
"""Characters. The kernel cuts what it is given to fewer (LOG_LINE_MAX, PRINTKRB_RECORD_MAX in kernel/printk), so a
line of two such ends is no record."""
_OF_ANY_DRIVER = ("kernel_bug", "memory_short", "hung_task", "aer")
_OTHERS = re.compile(
    r"^(?:e100(?:0e?)?|igb|igbvf|igc|ixgbe\w*|i40e|iavf|ice|mlx[45]_\w+|bnx2x?|bnxt_en|tg3|r816[89]|r8152|be2net|cxgb\d?|"
    r"qede?|qlcnic|netxen_nic|sfc|enic|vmxnet3|virtio_net|atlantic|forcedeth|sky2|ena|hns3|nfp|mana|hv_netvsc|ionic|"
    r"stmmac\w*|hinic\w*|liquidio\w*|octeon\w*|txgbe|ngbe|ath\d+k\w*|mt7\w+|rtw\w*|brcm\w+|rdma_\w+|infiniband)\b"
    r"|^\S+ [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]:? (?:eth\d|en[opsx]\w|wl[opsx]\w)"
    r"|^NETDEV WATCHDOG\b|^(?:eth\d+|en[opsx]\w+|bond\d+|br\d+|virbr\d+|wl[opsx]\w+|wlan\d+)\b"
    r"|^(?:usb|xhci_hcd|[eou]hci\S*|hub|i2c\S*|i915|amdgpu|radeon|nouveau|nvidia|\[drm\S*|snd_\w+|iwlwifi|Bluetooth"
    r"|mei_me|ipmi\w*|IPMI|thunderbolt|tpm\w*|kvm\S*|ACPI|PM|nfs|RPC|audit|(?:Kernel )?command line|CIFS|(?:lib)?ceph"
    r"|ast|mgag200|i801_smbus|ucsi\w*|hid\S*|uvcvideo|ccp)[ :]"
    # a program that writes to the log: `systemd[1]: `; the driver of MegaRAID counts its cards so
    r"|^(?!mega)[a-z][\w.@-]*\[\d+\]: ",
    re.IGNORECASE,
)
# `[   12.345678] `, `[Wed Oct 16 01:13:11 2024] `, `[Oct16 01:13] `, `[  +0,000102] `,
# `Oct 16 01:13:11 host kernel: `, `2024-10-16T01:13:11,123456+02:00 `, `kernel: [   12.345678] `, `<4>`, `[  T123]`;
# months in any language
_SECONDS = r"\[(?: *\+? *\d+[.,]\d{3,6}(?: <[ +]*\d+[.,]\d{6}>)?"
_STAMP = re.compile(
    r"^\s*(?:<\d{1,3}>)?(?:[^\W\d]{3,4}\.? [ \d]?\d \d\d:\d\d:\d\d(?:[.,]\d+)? +(?:\S+ )?(?:kern\.\w+ )?kernel: "
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\s(?:\S+ kernel: )?)?(?:<\d{1,3}>)?"
    rf"(?:{_SECONDS}| *[TC]\d+|(?:[A-Z][a-z]{{2}} )?[A-Z][a-z]{{2}} ?[ \d]\d [\d:]{{5,8}}(?: \d{{4}})?"
    r"|[^\W\d]{2,3}\.?,? [ \d]?\d\.? [^\W\d]{3,4}\.? \d{4},? \d\d:\d\d:\d\d)\] ?){0,2}"
    rf"(?:(?:\S+ )?kernel: (?:{_SECONDS})\] ?)?)?"
)
_LOG_INFO = re.compile(r"\blog_?info\(0x(?P<value>[0-9a-f]{8})\)", re.IGNORECASE)
# drivers/message/fusion/lsi/mpi_log_sas.h: four bits of bus type (3 is SAS), four of originator, then the code
_ORIGINATORS = {0: "IOP", 1: "PL", 2: "IR"}
_CODES = {
    (0, 0x01): "invalid SAS address",
    (0, 0x03): "invalid configuration page",
    (0, 0x04): "diagnostic message error",
    (0, 0x05): "task terminated",
    (1, 0x01): "open failure",
    (1, 0x04): "frame transfer error",
    (1, 0x08): "all queued commands of a SATA drive failed after an error",
    (1, 0x0D): "SATA link down",
    (1, 0x11): "reset",
    (1, 0x12): "abort",
    (1, 0x13): "I/O not yet executed",
    (1, 0x14): "I/O executed",
    (1, 0x16): "open or transmit aborted",
    (1, 0x17): "I/O retried while a device is missing",
    (1, 0x18): "I/O cancelled after a receive error",
}


@dataclass(frozen=True)
class Finding:
    """One kind of trouble at one severity (error or warning): the number of lines, and the first few of them."""

    kind: str
    severity: str
    count: int
    lines: tuple[str, ...]

    def sentence(self) -> str:
        """For a sample's doubts."""
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        decoded = decode_log_info(self.lines[0])
        return f"kernel log: {KINDS[self.kind]}: {self.lines[0]}{f' [{decoded}]' if decoded else ''}{more}"


def decode_log_info(line: str) -> str:
    """`originator PL, code 0x11 (reset), sub-code 0x0d00` of a line with a SAS log_info word; empty for any other."""
    match = _LOG_INFO.search(line)
    value = int(match.group("value"), 16) if match else 0
    if value >> 28 != 3:
        return ""
    originator, code = value >> 24 & 0xF, value >> 16 & 0xFF
    meaning = _CODES.get((originator, code))
    return (
        f"originator {_ORIGINATORS.get(originator, originator)}, code 0x{code:02x}"
        f"{f' ({meaning})' if meaning else ''}, sub-code 0x{value & 0xFFFF:04x}"
    )


class _Patterns:
    """Rules compiled: what is ordinary, and one expression for each kind and severity, the most serious first."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        ordinary = [rule.pattern for rule in rules if rule.severity == "none"]
        self.ordinary = LinePatterns(ordinary) if ordinary else None
        self.findings: list[tuple[str, str, LinePatterns]] = []
        for severity, kind in product(SEVERITIES[:-1], KINDS):
            patterns = [rule.pattern for rule in rules if (rule.kind, rule.severity) == (kind, severity)]
            if patterns:
                self.findings.append((kind, severity, LinePatterns(patterns)))


# compiled when the kernel first logs something
_compiled = lru_cache(maxsize=8)(_Patterns)


def _ends(text: str) -> str:
    """The beginning and the end of a line that is longer than any that the kernel writes."""
    if len(text) <= 2 * _LONGEST_END:
        return text
    return f"{text[:_LONGEST_END]} {text[-_LONGEST_END:]}"


def classify(text: str, own: tuple[Rule, ...] = ()) -> str | None:
    """The kind of trouble that one line of the log is about; None for an ordinary line or one of our own markers.

    `own` are a bench's rules: they decide before the shipped ones. Of a line of more than 2 KiB its two ends count.
    """
    found = _kind_and_severity(text, own, shipped_rules())
    return found[0] if found else None


def _kind_and_severity(text: str, own: tuple[Rule, ...], shipped: tuple[Rule, ...]) -> tuple[str, str] | None:
    text = _ends(text)
    text = _STAMP.sub("", text, count=1)
    if text.startswith(MARKER):
        return None
    for rules in (own, shipped) if own else (shipped,):
        patterns = _compiled(rules)
        if patterns.ordinary is not None and patterns.ordinary.fits(text):
            return None
        others = rules is shipped and _OTHERS.search(text) is not None
        for kind, severity, pattern in patterns.findings:
            if (not others or kind in _OF_ANY_DRIVER) and pattern.fits(text):
                return kind, severity
    return None


def find_all(
    lines: Iterable[str], own: tuple[Rule, ...] = (), shipped: tuple[Rule, ...] | None = None
) -> list[Finding]:
    """Findings in `lines`: each kind and severity once, errors first, in order of rank, with its first lines.

    `own` are a bench's rules, `shipped` the rules of the data file, for a process that cannot read it.
    """
    shipped = shipped_rules() if shipped is None else shipped
    evidence: dict[tuple[str, str], list[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for line in lines:
        for part in line.splitlines() or [""]:
            found = _kind_and_severity(part, own, shipped)
            if found is not None:
                counts[found] = counts.get(found, 0) + 1
                kept = evidence.setdefault(found, [])
                if len(kept) < _EVIDENCE_LINES:
                    kept.append(part[:400])
    ranked = ((kind, severity) for severity, kind in product(SEVERITIES, KINDS))
    return [Finding(*found, counts[found], tuple(evidence[found])) for found in ranked if found in counts]


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that are a reason to doubt a launch, or fail a check."""
    return [finding for finding in findings if finding.severity == "error"]
