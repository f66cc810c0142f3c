# SPDX-License-Identifier: Apache-2.0
"""Lines of the kernel's log are sorted into findings; ordinary lines are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storqual_core.host.log_findings import KINDS, classify, decode_log_info, find_all

TROUBLE = [
    ("kernel_bug", "kernel BUG at drivers/scsi/scsi_lib.c:1180!"),
    ("kernel_bug", "BUG: unable to handle page fault for address: ffffdead"),
    ("kernel_bug", "WARNING: CPU: 0 PID: 12 at block/blk-mq.c:300 blk_mq_start_request+0x1/0x2"),
    ("kernel_bug", "watchdog: BUG: soft lockup - CPU#1 stuck for 22s!"),
    ("kernel_bug", "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"),
    ("kernel_bug", "general protection fault, probably for non-canonical address 0x1: 0000 [#1] PREEMPT SMP"),
    ("memory_short", "kvm: page allocation failure: order:0, mode:0x40a20(GFP_ATOMIC|__GFP_COMP), nodemask=(null)"),
    ("memory_short", "swapper/3: page allocation failure. order:1, mode:0x20"),
    ("memory_short", "fio invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0"),
    ("memory_short", "megaraid_sas 0000:03:00.0: swiotlb buffer is full (sz: 65536 bytes)"),
    ("hung_task", "INFO: task kworker/0:1:23 blocked for more than 120 seconds."),
    ("aer", "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0"),
    ("aer", "mpt3sas 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"),
    ("adapter_fault", "AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=05:00.0 address=0x0000000000001000]"),
    ("adapter_fault", "mpi3mr0: marking the controller unrecoverable"),
    ("adapter_fault", "mpi3mr1: Issue IOUCTL time_stamp: Failed ioc_status(0x0001) Loginfo(0x00000000)"),
    ("adapter_fault", "megaraid_sas 0000:03:00.0: FW responded with invalid status"),
    ("adapter_fault", "aacraid 0000:86:00.0: PCI error detected 1"),
    ("adapter_fault", "AAC1: Battery: dead"),
    ("adapter_fault", "smartpqi 0000:5c:00.0: error handler received invalid response: 0x1"),
    (
        "adapter_fault",
        "lpfc 0000:04:00.0: 0:0406 Adapter maximum temperature exceeded (95), taking this port offline",
    ),
    ("adapter_reset", "aacraid:ID(0:02:0); Abort Timeout. Resetting Bus 0"),
    ("adapter_reset", "aacraid: SCSI bus appears hung"),
    ("adapter_reset", "lpfc820 0000:04:00.0: 0:0345 Resetting board due to mailbox timeout"),
    ("adapter_reset", "lpfc 0000:04:00.0: 0:2887 Reset Needed: Attempting Port Recovery..."),
    ("adapter_reset", "megaraid_sas 0000:03:00.0: megasas_wait_for_outstanding_fusion:2801 waiting for 4 cmds"),
    ("timeout", "aacraid:SCSI Channel[1]: Timeout Detected On 3 Command(s)"),
    ("timeout", "megaraid_sas 0000:03:00.0: IO/DCMD timeout is detected, forcibly FAULT Firmware"),
    ("task_abort", "pm80xx pm8001_abort_task 1100:rc= 5"),
    ("task_abort", "lpfc 0000:04:00.0: 0:(0):0724 I/O flush failure for context LUN : cnt x2"),
    ("medium_error", "aacraid:ID(0:02:0); Error Too Long To Correct"),
    ("sense_error", "aacraid:ID(0:02:0); Hardware Error [k:0x4,c:0x44,q:0x0]"),
    ("io_error", "AAC0: ID(0:02:0) - drive failure (retries exhausted)"),
    ("link_event", "lpfc 0000:04:00.0: 0:(0):0222 Initial FLOGI timeout"),
    ("link_event", "lpfc 0000:04:00.0: 0:(0):0820 FLOGI Failed (x300)."),
    ("link_event", "lpfc 0000:04:00.0: 0:(0):0223 Timeout while waiting for NameServer login"),
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


@pytest.mark.parametrize(
    "stamp",
    [
        "[  906.104104] ",
        "[  906.104104][  T123] ",
        "<3>[  906.104104] ",
        "[Wed Oct 16 01:13:11 2024] ",
        "Apr  7 21:20:42 bench1 kernel: ",
        "Apr 27 21:20:42 bench1 kernel: [  906.104104] ",
        "2026-11-19T05:18:11.573Z bench1 kernel: ",
        "Jun 20 13:54:03 bench1 kern.warn kernel: ",
        "[    1.277602] bench1 kernel: ",
        "kernel: [  868.435387] ",
        "[Jul 6 09:19] ",
        "[Jul16 09:19] ",
        "[ +10,204216] ",
        "[  906.104104 <    0.000012>] ",
        "2024-05-01T10:11:12,123456+02:00 ",
        "2016-12-12 17:08:32\t",
        "mrt 17 20:55:15 bench1 kernel: ",
        "Okt. 17 20:55:15 bench1 kernel: ",
        "fév 17 20:55:15 bench1 kernel: ",
        "    [  906.104104] ",
        "[92903.774] ",
        "[Mi, 16. Okt 2024, 01:13:11] ",
    ],
)
def test_a_stamp_in_front_of_a_line_is_no_part_of_it(stamp: str) -> None:
    assert classify(stamp + "XFS (sdb1): log mount failed") == "file_system_error"
    assert classify(stamp + "megasas: [ 5]waiting for 1 commands to complete") == "adapter_reset"
    assert classify(stamp + "ixgbe 0000:03:00.0 eth0: Reset adapter") is None
    assert classify(stamp + "storqual: adapter reset") is None


def test_a_log_info_word_is_decoded() -> None:
    line = "mpt3sas_cm0: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)"
    assert decode_log_info(line) == "originator PL, code 0x11 (reset), sub-code 0x0d00"
    assert decode_log_info("ioc0: LogInfo(0x30030101)") == (
        "originator IOP, code 0x03 (invalid configuration page), sub-code 0x0101"
    )
    assert decode_log_info("log_info(0x41110d00)") == ""
    assert find_all([line])[0].sentence().endswith("[originator PL, code 0x11 (reset), sub-code 0x0d00]")
