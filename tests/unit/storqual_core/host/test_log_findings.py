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


@pytest.mark.parametrize("rule", RULES, ids=[f"{number}-{rule.kind}" for number, rule in enumerate(RULES)])
def test_the_example_of_a_rule_fits_it_and_is_of_its_kind(rule: Rule) -> None:
    assert re.search(rule.pattern, rule.example, re.IGNORECASE)
    assert classify(rule.example) == (None if rule.severity == "none" else rule.kind)
    assert rule.source


MORE = [
    ("kernel_bug", "BUG kmalloc-128 (Not tainted): Redzone overwritten"),
    (
        "kernel_bug",
        "BUG acme_cache (Tainted: G    B  OE ): Objects remaining in acme_cache on __kmem_cache_shutdown()",
    ),
    ("adapter_fault", "nvme nvme0: Property Set error: 881, offset 0x14"),
    ("adapter_fault", "nvmet: ctrl 3 fatal error occurred!"),
    (
        "adapter_fault",
        "qla2xxx [0000:04:00.0]-107ff:1: qla27xx_fwdt_entry_t262: dump ram MB failed. Area 5h start 10h end 20h",
    ),
    ("adapter_fault", "qla2xxx [0000:04:00.0]-28a0:1: MBX_GET_PORT_NAME failed, No FL Port."),
    ("io_error", "ata3.00: Read log 0x10 page 0x00 failed, Emask 0x40"),
    ("io_error", "ata3: failed to read log page 10h (errno=-5)"),
    ("adapter_reset", "smartpqi 0000:84:00.0: PCI reset prepare"),
    ("adapter_reset", "smartpqi 0000:84:00.0: PCI reset done - reinitializing"),
    ("adapter_fault", "hpsa 0000:05:00.0: cmd_alloc returned NULL!"),
    ("adapter_fault", "aac_read: aac_fib_send failed with status: -12."),
    (
        "adapter_fault",
        "megaraid_sas 0000:65:00.0: megasas_build_io_fusion 3273 sge_count (-12) is out of range. Range",
    ),
    ("adapter_fault", "hpsa 0000:05:00.0: DMAR: Allocating 1-page iova failed"),
    ("adapter_fault", "smartpqi 0000:84:00.0: AMD-Vi: IOMMU mapping error in map_sg (io-pages: 9 reason: -12)"),
    (
        "link_event",
        "lpfc 0000:07:00.0: 0:(0):0108 No retry ELS command x4 to remote NPORT xfffffe Retried:3 Error:x3/18",
    ),
    ("file_system_error", "XFS (sda1): Torn write (CRC failure) detected at log block 0x1c0. Truncating"),
    ("file_system_error", "XFS (dm-0): failed to locate log tail"),
    ("adapter_reset", "qla2xxx [0000:04:00.0]-8041:1: detected PCI disconnect."),
    ("adapter_reset", "qla2xxx [0000:04:00.0]-d001:1: Unable to capture FW dump"),
    ("path_failed", "nvme nvme1: NVME-FC{0}: starting error recovery Connectivity Loss"),
    ("path_failed", "nvme nvme1: NVME-FC{0}: transport association event: transport detected io error"),
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
    ("task_abort", "mptbase: ioc1: LogInfo(0x31140000): Originator={PL}, Code={IO Executed}, SubCode(0x0000)"),
    ("task_abort", "hpsa 0000:03:00.0: scsi 0:1:0:0: resetting logical  Direct-Access     ACME     LOGICAL VOLUME"),
    ("task_abort", "hpsa 0000:05:00.0: resetting device 2:0:0:1"),
    ("task_abort", "aacraid: Host adapter abort request (0,0,3,0)"),
    ("task_abort", "sd 5:0:0:0: [sdc] tag#14 uas_eh_abort_handler 0 uas-tag 15 inflight: CMD OUT"),
    ("sense_error", "sd 0:0:1:0: [sdi] Sense Key : Aborted Command [current]"),
    ("sense_error", "Info fld=0x0, Current sdc: sense key Hardware Error"),
    ("sense_error", "reservation conflict error, dev sda, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2"),
    ("medium_error", "sda: Current: sense key: Medium Error"),
    ("medium_error", "sd 0:0:0:0: [sda] tag#0 Add. Sense: Write error"),
    ("timeout", "timeout error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"),
    ("adapter_reset", "AAC0: adapter kernel panic'd fe."),
    ("adapter_reset", "sd 0:2:0:0: [sda] tag#100 OCR is requested due to IO timeout!!"),
    ("adapter_reset", "megaraid_sas: no pending cmds after reset"),
    ("adapter_fault", "aacraid 0000:03:00.0: Adapter health - -3"),
    ("adapter_fault", "aacraid 0000:01:00.0: Adapter health - 247"),
    ("adapter_fault", "mpt3sas_cm0: _base_fault_reset_work: Running mpt3sas_dead_ioc thread success !!!!"),
    ("adapter_fault", "nvme 0000:05:00.0: probe with driver nvme failed with error -5"),
    ("adapter_reset", "nvme nvme0: ctrl state 1 is not RESETTING"),
    ("aer", "Uhhuh. NMI received for unknown reason 30 on CPU 0."),
    ("md_degraded", "md/raid:md127: Too many read errors, failing device dm-0."),
    ("file_system_error", "BTRFS: Transaction aborted (error -22)"),
    ("io_error", "raid5_end_read_request: 22 callbacks suppressed"),
    ("adapter_fault", "aacraid: probe of 0000:02:05.0 failed with error -110"),
    (
        "adapter_reset",
        "megaraid_sas 0000:03:00.0: 5 (73s/0x0020/CRIT) - Controller encountered a fatal error and was reset",
    ),
    ("task_abort", "sd 0:0:20:0: megasas: target reset FAILED!!"),
    ("link_event", "lpfc 0000:82:00.0: 2:(0):2755 ADISC failure DID:05DF00 Status:x9/x70000"),
    (
        "adapter_fault",
        "mpi3mr 0000:c1:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0001 address=0x1000 flags=0x0050]",
    ),
    (
        "adapter_fault",
        "megaraid_sas 0000:03:00.0: 41 (5711s/0x0002/CRIT) - Enclosure PD 08(c None/p1) power supply 1 failed",
    ),
    ("md_degraded", "megaraid_sas 0000:03:00.0: 42 (boot + 3s/0x0001/FATAL) - VD 00/0 is now OFFLINE"),
    ("md_degraded", "md/raid:md127: raid level 5 active with 2 out of 3 devices, algorithm 2"),
    ("md_degraded", "raid1: Disk failure on sdb1, disabling device."),
    ("device_removed", "mpt3sas_cm0: mpt3sas_transport_port_remove: removed: sas_addr(0x5000000000000001)"),
    ("device_removed", "mpt3sas_cm0: expander_remove: handle(0x0009), sas_addr(0x5000000000000001)"),
    ("device_removed", "hpsa 0000:03:00.0: scsi 0:1:0:1: removed Direct-Access     ACME     LOGICAL VOLUME"),
    ("device_removed", "sdb: detected capacity change from 312581808 to 0"),
    ("device_removed", "sd 10:0:0:0: [sdb] killing request"),
    ("device_removed", "ata1.00: disable device"),
    ("link_event", "lpfc 0000:04:00.0: 0:(0):2858 FLOGI failure Status:x3/x16 TMO:x0"),
    ("link_event", "qla2xxx [0000:41:00.0]-28d8:7: fcport 50:01:00:00:00:00:00:01 (portid=0100ef) down on ISP"),
    ("link_event", "qla2300 0000:03:09.0: LOOP DOWN detected."),
    ("link_event", "qla2xxx 0000:03:01.0: LIP reset occured (f7f7)."),
    ("link_event", "qla2xxx [0000:83:00.1]-20f1:7: Mark all dev lost"),
    ("kernel_bug", "INFO: trying to register non-static key."),
    ("link_event", "ata1: irq_stat 0x00000040, connection status changed"),
    ("link_event", "ata1: SATA link down (SStatus 1 SControl 310)"),
    ("io_error", "lpfc 0000:0a:01.0: 4:0326 Rsp Ring 0 error: IOCB Data: x40011a18 x374af0c0"),
    ("io_error", "print_req_error: 12 callbacks suppressed"),
    ("io_error", "Write-error on swap-device (254:1:4474640)"),
    ("io_error", "nvme0n1: Write(0x1) @ LBA 0, 8 blocks, Namespace is Write Protected (sct 0x0 / sc 0x20) DNR"),
    ("io_error", "ata1.00: status: { DRDY ERR }"),
    ("path_failed", "device-mapper: dm-multipath: Failing path 8:96."),
    ("path_failed", "connection1:0: ping timeout of 5 secs expired, recv timeout 5, last rx 1, last ping 2, now 3"),
    ("file_system_error", "XFS (dm-7): log mount/recovery failed: error -5"),
    ("file_system_error", "XFS: Internal error XFS_WANT_CORRUPTED_RETURN at line 342 of file fs/xfs/xfs_alloc.c."),
    ("file_system_error", "XFS (dm-1): xfs_imap_to_bp: xfs_trans_read_buf() returned error -117."),
    ("file_system_error", "BTRFS: error (device sdb1) in btrfs_commit_transaction:2323: errno=-5 IO failure"),
    ("file_system_error", "EXT4-fs (sda1): This should not happen!! Data will be lost"),
    ("kernel_bug", "rcu: INFO: rcu_sched self-detected stall on CPU"),
]
QUIET = [
    "mpi3mr0: ioc_status/ioc_config after successful shutdown is (0x8)/(0x472000)",
    "pm80xx pm8001_abort_task 1100:rc= 0",
    "AAC0: kernel 5.2-0[19100] Aug 12 2014",
    "lpfc 0000:04:00.0: 0:3176 Port Name 0 Physical Link is functional",
    "qla2xxx [0000:08:00.0]-00c5:1: Allocated (9344 KB) for firmware dump.",
    "XFS (sda1): unknown mount option [foo].",
    "megaraid_sas 0000:18:00.0: Online Controller Reset(OCR)\t: Enabled",
    "megaraid_sas 0000:03:00.0: 5210 (7213s/0x0020/INFO) - Controller is operating normally",
    "mpt3sas_cm0: sending message unit reset !!",
    "mpi3mr0: issuing message unit reset(MUR)",
    "hpsa 0000:05:00.0: device is ready.",
    "pcieport 0000:00:1c.0: AER: enabled with IRQ 25",
    "pcieport 0000:00:1c.0: DPC: error containment capabilities: Int Msg #0, RPExt- PoisonedTLP- SwTrigger-",
    "DMAR: DRHD base: 0x000000fed90000 flags: 0x0",
    "md/raid:md127: raid level 6 active with 8 out of 8 devices, algorithm 2",
    "md0: detected capacity change from 1953262592 to 0",
    "device-mapper: multipath: 253:3: Reinstating path 8:16.",
    "device-mapper: raid: Superblocks created for new raid set",
    "XFS (vda1): Ending recovery (logdev: internal)",
    "BTRFS warning (device sdb1): 'recovery' is deprecated, use 'rescue=usebackuproot' instead",
    "ata1.00: disabling queued TRIM support",
    "sas: Enter sas_scsi_recover_host busy: 0 failed: 0",
    "sd 1:0:0:1: alua: port group 01 state N non-preferred supports tolusnA",
    "kvm: SMP vm created on host with unstable TSC; guest TSC will not be reset",
    "xhci_hcd 0000:00:14.0: Host controller reset timed out",
    "mei_me 0000:00:16.0: unexpected reset: dev_state = RESETTING",
    "nfs: server filer not responding, timed out",
    "Kernel command line: root=/dev/sda1 abort command I/O error",
    "Warning: PCIe ACS overrides enabled; This may allow non-IOMMU protected peer-to-peer DMA",
    "ixgbe 0000:03:00.0 eth0: Reset adapter",
    "e1000e 0000:00:1f.6 eno1: Reset adapter unexpectedly",
    "mlx5_core 0000:81:00.0: health recovery flow aborted, firmware reset",
    "NETDEV WATCHDOG: eth0 (ixgbe): transmit queue 3 timed out",
    "bnx2x 0000:04:00.0 em1: NIC Link is Down",
    "ata2: SATA link down (SStatus 0 SControl 300)",
    "ata1.00: configured for UDMA/133",
    "sd 0:0:0:0: [sda] tag#1 Sense Key : 0x5 [current]",
    "sd 0:0:0:0: [sda] tag#0 Add. Sense: Invalid field in cdb",
    "kasan: KernelAddressSanitizer initialized",
    "DMA-API: preallocated 65536 debug entries",
    "BTRFS info (device sdc): bdev /dev/sdd errs: wr 0, rd 0, flush 0, corrupt 0, gen 0",
    "raid5: raid level 5 set md0 active with 3 out of 3 devices, algorithm 2",
    "raid5: device sdb1 operational as raid disk 1",
    "hda: 80043264 sectors (40982 MB) w/1024KiB Cache, CHS=65535/16/63, UDMA(100)",
    "mpt3sas_cm0: \thandle(0x0009), ioc_status(success)(0x0000), smid(3335)",
    "mpt3sas_cm0: \tscsi_status(check condition)(0x02), scsi_state(autosense valid )(0x01)",
    "EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro",
    "smartpqi 0000:5c:00.0: added 1:0:0:0 5000c50000000001 Direct-Access",
]
# a command that failed with a check condition has a driver byte that says so only in kernels before 5.14
OLD_AND_NEW = [
    ("io_error", "sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=1s"),
    ("io_error", "sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=0x00 driverbyte=0x00"),
    ("io_error", "scsi2: ERROR on channel 0, id 3, lun 0, CDB: 0x28 00 00 00 08 00 00 00 08 00"),
    ("medium_error", "Current sdc: sense = 70  3"),
    ("sense_error", "Current sdc: sense = 70  4"),
    ("sense_error", "sdc: Current: sense key=0xb"),
    ("sense_error", "sd 1:0:0:0: [sdb] tag#9 Add. Sense: No defect spare location available"),
    ("sense_error", "sd 1:0:0:0: [sdb] tag#9 Add. Sense: Logical block address out of range"),
    ("sense_error", "sd 1:0:0:0: [sdb] tag#9 Add. Sense: Failure prediction threshold exceeded"),
    (
        "task_abort",
        "nvme nvme3: I/O tag 17 (d011) opcode 0x1 (Write) QID 2 timeout, aborting req_op:WRITE(1) size:8",
    ),
    ("device_removed", "nvme nvme3: Disabling device after reset failure: -19"),
    ("io_error", "mpt3sas_cm0: \tscsi_status(good)(0x00), scsi_state(state terminated no status )(0x0c)"),
    ("adapter_fault", "mpt3sas_cm1: _base_wait_for_doorbell_ack: failed due to timeout count(5000), int_status(0)!"),
    ("adapter_fault", "mpt3sas_cm1: _base_get_ioc_facts: handshake failed (r=-14)"),
    ("adapter_fault", "mpt3sas_cm1: failure at drivers/scsi/mpt3sas/mpt3sas_scsih.c:12336/_scsih_probe()!"),
    ("adapter_fault", "megaraid_sas 0000:00:04.0: Unknown command completed! [0x21]"),
    ("kernel_bug", "md/raid0:md0: make_request bug: can't convert block across chunks or bigger than 32k 64 8"),
    ("kernel_bug", "DMA-API: smartpqi 0000:43:00.0: cacheline tracking EEXIST, overlapping mappings"),
    ("aer", "pcieport 0000:00:1c.4:   device [8086:a114] error status/mask=00040000/00000000"),
    ("aer", "megaraid_sas 0000:03:00.0:    [20] UnsupReq               (First)"),
    ("file_system_error", "EXT4-fs (sdb1): shut down requested (2)"),
    ("file_system_error", "BTRFS info (device sdc): bdev /dev/sdd errs: wr 0, rd 4, flush 0, corrupt 0, gen 0"),
    ("md_degraded", "raid5: not enough operational devices for md3 (2/3 failed)"),
    ("md_degraded", "raid5: raid level 5 set md3 active with 2 out of 3 devices, algorithm 2"),
    ("md_degraded", "raid1: sdc1: rescheduling sector 4096"),
    ("md_degraded", "raid1: sdc: unrecoverable I/O read error for block 4096"),
    ("md_degraded", "md3: failed to create bitmap (-5)"),
    ("device_removed", "ata6: port is slow to respond, please be patient (Status 0xd0)"),
    ("io_error", "ata2: status=0x51 { DriveReady SeekComplete Error }"),
    ("io_error", "ata2: no sense translation for op=0x2a cmd=0x3d status: 0x51"),
    ("medium_error", "hde: dma_intr: error=0x40 { UncorrectableError }, LBAsect=4096, high=0, low=4096, sector=4096"),
    ("io_error", "hde: dma_intr: status=0x51 { DriveReady SeekComplete Error }"),
    ("timeout", "hde: lost interrupt"),
    ("timeout", "hde: status timeout: status=0xd0 { Busy }"),
    ("adapter_reset", "ide2: reset: master: error (0x00?)"),
    ("io_error", "lpfc 0000:65:00.1: 7:0357 ELS CQE error: status=x3: CQE: 116b0300 00000000 31420002 90010000"),
]


@pytest.mark.parametrize(("kind", "line"), OLD_AND_NEW, ids=[line[:50] for _, line in OLD_AND_NEW])
def test_words_of_older_and_newer_kernels_that_no_rule_knew_are_found(kind: str, line: str) -> None:
    assert classify(line) == kind


@pytest.mark.parametrize(("kind", "line"), MORE, ids=[line[:50] for _, line in MORE])
def test_trouble_in_the_words_of_other_drivers_is_recognised(kind: str, line: str) -> None:
    assert classify(line) == kind


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
    ],
)
def test_a_stamp_in_front_of_a_line_is_no_part_of_it(stamp: str) -> None:
    assert classify(stamp + "XFS (sdb1): log mount failed") == "file_system_error"
    assert classify(stamp + "megasas: [ 5]waiting for 1 commands to complete") == "adapter_reset"
    assert classify(stamp + "ixgbe 0000:03:00.0 eth0: Reset adapter") is None
    assert classify(stamp + "storqual: adapter reset") is None


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
