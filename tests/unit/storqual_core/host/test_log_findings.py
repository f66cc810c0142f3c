# SPDX-License-Identifier: Apache-2.0
"""Lines of the kernel's log are sorted into findings; ordinary lines are none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.host.log_findings import KINDS, RULES, classify, decode_log_info, find_all
from storqual_core.host.log_rule import Rule, read_rules

TROUBLE = [
    ("kernel_bug", "kernel BUG at drivers/scsi/scsi_lib.c:1180!"),
    ("kernel_bug", "BUG: unable to handle page fault for address: ffffdead"),
    ("kernel_bug", "WARNING: CPU: 0 PID: 12 at block/blk-mq.c:300 blk_mq_start_request+0x1/0x2"),
    ("kernel_bug", "watchdog: BUG: soft lockup - CPU#1 stuck for 22s!"),
    ("kernel_bug", "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"),
    ("kernel_bug", "general protection fault, probably for non-canonical address 0x1: 0000 [#1] PREEMPT SMP"),
    ("hung_task", "INFO: task kworker/0:1:23 blocked for more than 120 seconds."),
    ("aer", "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0"),
    ("aer", "mpt3sas 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"),
    ("aer", "mce: [Hardware Error]: Machine check events logged"),
    ("adapter_reset", "mptscsih: ioc0: WARNING - Issuing Reset from mptscsih_IssueTaskMgmt!!"),
    ("adapter_reset", "mptbase: ioc0: WARNING - IOC is in FAULT state!!!"),
    ("adapter_reset", "mpt3sas_cm0: sending diag reset !!"),
    ("adapter_reset", "mpt3sas_cm0: fault_state(0x5862)!"),
    ("adapter_reset", "megaraid_sas 0000:03:00.0: resetting fusion adapter scsi0."),
    ("adapter_reset", "megaraid_sas 0000:03:00.0: Found FW in FAULT state, will reset adapter scsi0."),
    ("adapter_reset", "qla2xxx [0000:04:00.0]-00af:1: Performing ISP error recovery - ha=0000000000000000."),
    ("adapter_reset", "sym0: SCSI BUS has been reset."),
    ("adapter_reset", "scsi host2: BUS RESET operation started"),
    ("adapter_reset", "ata3: hard resetting link"),
    ("adapter_reset", "nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10"),
    ("task_abort", "mptscsih: ioc0: attempting task abort! (sc=00000000d2b1d5ae)"),
    ("task_abort", "sd 2:0:1:0: attempting task abort! scmd(0x0000000012345678)"),
    ("task_abort", "sym0:1:0:ABORT operation started."),
    ("task_abort", "sd 0:0:0:0: Power-on or device reset occurred"),
    ("task_abort", "qla2xxx [0000:04:00.0]-801c:1: Abort command issued nexus=1:0:0 -- 2002."),
    ("timeout", "nvme nvme0: I/O 12 (I/O Cmd) QID 3 timeout, completion polled"),
    ("timeout", "sd 0:0:1:0: [sdb] tag#7 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK"),
    ("timeout", "sd 0:0:0:0: [sda] tag#0 timing out command, waited 180s"),
    ("medium_error", "sd 0:0:0:0: [sda] tag#1 Sense Key : Medium Error [current]"),
    ("medium_error", "critical medium error, dev sda, sector 2048 op 0x0:(READ) flags 0x0"),
    ("sense_error", "sd 0:0:0:0: [sda] tag#1 Sense Key : Hardware Error [current]"),
    ("sense_error", "critical target error, dev sda, sector 8 op 0x1:(WRITE)"),
    ("device_removed", "sd 0:0:0:0: rejecting I/O to offline device"),
    ("device_removed", "sd 0:0:3:0: Device offlined - not ready after error recovery"),
    ("device_removed", "sd 3:0:0:0: [sdc] Synchronizing SCSI cache"),
    ("device_removed", "pcieport 0000:00:02.0: pciehp: Slot(0): Link Down"),
    ("md_degraded", "md/raid1:md0: Disk failure on sdb, disabling device."),
    ("md_degraded", "md/raid:md127: Operation continuing on 3 devices."),
    ("io_error", "I/O error, dev sdc, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"),
    ("io_error", "Buffer I/O error on dev sdc, logical block 0, async page read"),
    ("io_error", "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s"),
]
ORDINARY = [
    "storqual: launch r1/s01-b01/0 begins",
    "storqual: adapter reset, I/O error and BUG: are words of ours here",
    "sd 2:0:0:0: [sdb] 2097152 512-byte logical blocks: (1.07 GB/1.00 GiB)",
    "sd 2:0:0:0: [sdb] Write Protect is off",
    "sd 2:0:0:0: [sdb] Attached SCSI disk",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
    "sym0: <895a> rev 0x0 at pci 0000:00:05.0 irq 10",
    "sym0: No NVRAM, ID 7, Fast-40, LVD, parity checking",
    "random: crng init done",
    "clocksource: Switched to clocksource tsc",
    "sd 0:0:0:0: [sda] tag#1 Sense Key : Illegal Request [current]",
    "e1000 0000:00:03.0 eth0: Intel(R) PRO/1000 Network Connection",
    "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
    "scsi 2:0:0:0: Direct-Access     SEAGATE  ST336607LW       0007 PQ: 0 ANSI: 5",
    "",
]


@pytest.mark.parametrize(("kind", "line"), TROUBLE, ids=[line[:50] for _, line in TROUBLE])
def test_trouble_is_recognised(kind: str, line: str) -> None:
    found = classify(line)
    assert found == kind


@pytest.mark.parametrize("line", ORDINARY)
def test_an_ordinary_line_is_no_finding(line: str) -> None:
    assert classify(line) is None


def test_each_kind_is_reported_once_with_its_lines() -> None:
    lines = [line for _, line in reversed(TROUBLE)] * 3 + ORDINARY
    found = find_all(lines)
    assert [finding.kind for finding in found] == [kind for kind in KINDS if kind in dict(TROUBLE)]
    bug = found[0]
    assert bug.count == 3 * sum(kind == "kernel_bug" for kind, _ in TROUBLE)
    assert len(bug.lines) == 5
    assert bug.sentence().startswith("kernel log: the kernel found a fault in itself: ")
    assert bug.sentence().endswith(f"(and {bug.count - 1} more)")


@given(st.lists(st.sampled_from([line for _, line in TROUBLE] + ORDINARY)))
def test_counts_add_up_and_order_does_not_matter(lines: list[str]) -> None:
    found = find_all(lines)
    assert sum(finding.count for finding in found) == sum(classify(line) is not None for line in lines)
    assert {f.kind: f.count for f in found} == {f.kind: f.count for f in find_all(reversed(lines))}


@given(st.text())
def test_any_text_has_at_most_one_kind(text: str) -> None:
    assert classify(text) is None or classify(text) in KINDS
    assert classify("storqual: " + text) is None


@pytest.mark.parametrize("rule", RULES, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(RULES)])
def test_the_example_of_a_rule_fits_it_and_is_of_its_kind(rule: Rule) -> None:
    assert re.search(rule.pattern, rule.example, re.IGNORECASE)
    assert classify(rule.example) == rule.kind
    assert rule.source


MORE = [
    ("adapter_reset", "smartpqi 0000:5c:00.0: controller offline: reason code 0x6100c"),
    ("adapter_reset", "smartpqi 0000:5c:00.0: reset of scsi 1:1:0:0: SUCCESS"),
    ("adapter_reset", "aacraid 0000:86:00.0: IOP reset succeeded"),
    ("adapter_reset", "aacraid: Host bus reset request. SCSI hang ?"),
    ("io_error", "ata1: SError: { UnrecovData Handshk }"),
    ("task_abort", "mpt2sas0: log_info(0x31111000): originator(PL), code(0x11), sub_code(0x1000)"),
    ("link_event", "lpfc 0000:04:00.0: 0:1303 Link Up Event x3 received Data: x3 x0 x8 x0 x0 x0 0"),
    ("link_event", "qla2xxx [0000:04:00.0]-500a:1: LOOP UP detected (8 Gbps)."),
    ("sense_error", "sd 0:0:0:0: [sda] tag#1 Sense Key : 0xb [current]"),
    ("device_removed", "sd 0:0:0:0: [sda] tag#1 FAILED Result: hostbyte=0x1 driverbyte=DRIVER_OK"),
    ("file_system_error", "XFS (sdb1): Corruption of in-memory data detected. Shutting down filesystem"),
    ("md_degraded", "md: super_written gets error=10"),
    ("kernel_bug", "WARNING: CPU: 2 PID: 0 at net/sched/sch_generic.c:477 dev_watchdog+0x1f4/0x200"),
    ("aer", "ixgbe 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer"),
]
QUIET = [
    "ixgbe 0000:03:00.0 eth0: Reset adapter",
    "e1000e 0000:00:1f.6 eno1: Reset adapter unexpectedly",
    "mlx5_core 0000:81:00.0: health recovery flow aborted, firmware reset",
    "NETDEV WATCHDOG: eth0 (ixgbe): transmit queue 3 timed out",
    "bnx2x 0000:04:00.0 em1: NIC Link is Down",
    "ata2: SATA link down (SStatus 0 SControl 300)",
    "ata1.00: configured for UDMA/133",
    "sd 0:0:0:0: [sda] tag#1 Sense Key : 0x5 [current]",
    "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=0x00 driverbyte=0x00",
    "EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro",
    "smartpqi 0000:5c:00.0: added 1:0:0:0 5000c50000000001 Direct-Access",
]


@pytest.mark.parametrize(("kind", "line"), MORE, ids=[line[:50] for _, line in MORE])
def test_trouble_in_the_words_of_other_drivers_is_recognised(kind: str, line: str) -> None:
    assert classify(line) == kind


@pytest.mark.parametrize("line", QUIET)
def test_what_a_network_driver_says_and_what_is_ordinary_is_no_finding(line: str) -> None:
    assert classify(line) is None


def test_a_log_info_word_is_decoded() -> None:
    line = "mpt3sas_cm0: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)"
    assert decode_log_info(line) == "originator PL, code 0x11 (reset), sub-code 0x0d00"
    assert decode_log_info("ioc0: LogInfo(0x30030101)") == (
        "originator IOP, code 0x03 (invalid configuration page), sub-code 0x0101"
    )
    assert decode_log_info("log_info(0x41110d00)") == ""
    assert find_all([line])[0].sentence().endswith("[originator PL, code 0x11 (reset), sub-code 0x0d00]")


OWN = {"kind": "timeout", "pattern": r"^acme_sr: stuck", "example": "acme_sr: stuck", "source": "its own manual"}


def test_a_benchs_own_rules_decide_before_the_shipped_ones() -> None:
    problems: list[str] = []
    own = read_rules(
        [OWN, {**OWN, "pattern": "hard resetting link", "example": QUIET_ONE, "severity": "none"}], "r", problems
    )
    assert problems == []
    assert classify("acme_sr: stuck", own) == "timeout"
    assert classify(QUIET_ONE) == "adapter_reset"
    assert classify(QUIET_ONE, own) is None
    assert [finding.kind for finding in find_all(["acme_sr: stuck", QUIET_ONE], own)] == ["timeout"]


QUIET_ONE = "ata9: hard resetting link"


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("text", "found no list"),
        ([7], "expected a mapping"),
        ([{**OWN, "kind": "odd"}], "kind: found 'odd'"),
        ([{**OWN, "severity": "odd"}], "severity: found 'odd'"),
        ([{**OWN, "pattern": "("}], "pattern: missing"),
        ([{**OWN, "pattern": "x" * 401}], "at most 400"),
        ([{**OWN, "example": "other"}], "the example does not fit the pattern"),
        ([{**OWN, "colour": "red"}], "found 'colour'"),
        ([{**OWN, "source": ""}], "no source is given"),
        ([{**OWN, "driver": 7}], "driver: found no text"),
    ],
)
def test_a_rule_that_is_wrong_is_told(entries: object, words: str) -> None:
    problems: list[str] = []
    assert read_rules(entries, "storqual_kernel_rules", problems) == ()
    assert words in problems[0]
