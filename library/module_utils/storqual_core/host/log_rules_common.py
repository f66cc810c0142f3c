# SPDX-License-Identifier: Apache-2.0
"""Rules of the kernel's log: the kernel itself, PCI Express, IOMMUs, file systems, md and device-mapper."""

from __future__ import annotations

from .log_rule import Rule

COMMON: tuple[Rule, ...] = (
    Rule(
        "kernel_bug",
        r"\bkernel BUG at\b",
        "kernel BUG at drivers/scsi/scsi_lib.c:1180!",
        source="kernel/panic.c, lib/bug.c",
    ),
    Rule(
        "kernel_bug",
        r"^BUG(?:: | \S+ \((?:Not t|T)ainted)",
        "BUG: unable to handle page fault for address: ffffdead",
        source="arch/x86/mm/fault.c",
    ),
    Rule(
        "kernel_bug",
        r"^(?-i:WARNING: )",
        "WARNING: CPU: 0 PID: 12 at block/blk-mq.c:300 blk_mq_start_request+0x1/0x2",
        source="kernel/panic.c, lib/bug.c",
    ),
    Rule(
        "kernel_bug",
        r"^Oops\b|\b[0-9a-f]{4,16} \[#\d+\]|^Fixing recursive fault\b",
        "divide error: 0000 [#1] PREEMPT SMP",
        source="arch/x86/kernel/dumpstack.c",
    ),
    Rule(
        "kernel_bug",
        r"\bKernel panic - ",
        "Kernel panic - not syncing: Fatal exception",
        source="kernel/panic.c",
    ),
    Rule(
        "kernel_bug",
        r"general protection fault",
        "general protection fault, probably for non-canonical address 0x1: 0000 [#1] PREEMPT SMP",
        source="arch/x86/kernel/traps.c",
    ),
    Rule(
        "kernel_bug",
        r"unable to handle kernel",
        "Unable to handle kernel paging request at virtual address dead000000000100",
        source="arch/arm64/mm/fault.c",
    ),
    Rule(
        "kernel_bug",
        r"\bKASAN: (?!KernelAddressSanitizer initialized|CONFIG_)",
        "[drv] KASAN: use-after-free in scsi_done+0x1/0x2",
        kernels="4.0-",
        source="mm/kasan/report.c",
    ),
    Rule(
        "kernel_bug",
        r"\bUBSAN: ",
        "UBSAN: array-index-out-of-bounds in drivers/scsi/x.c:12:3",
        kernels="4.5-",
        source="lib/ubsan.c",
    ),
    Rule(
        "kernel_bug",
        r"^DMA-API: \S+ [0-9a-f]{4}:[0-9a-f]{2}:\S+: |make_request bug: ",
        "DMA-API: mpt3sas 0000:01:00.0: device driver frees DMA memory with wrong function",
        source="kernel/dma/debug.c, drivers/md/raid0.c",
    ),
    Rule(
        "kernel_bug",
        r"possible (?:circular locking|recursive locking|irq lock inversion) "
        r"|^INFO: trying to register non-static key",
        "INFO: possible recursive locking detected",
        source="kernel/locking/lockdep.c",
    ),
    Rule(
        "kernel_bug",
        r"\bsoft lockup\b",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s!",
        source="kernel/watchdog.c",
    ),
    Rule(
        "kernel_bug",
        r"\bhard LOCKUP\b",
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3",
        source="kernel/watchdog_hld.c",
    ),
    Rule(
        "kernel_bug",
        r"rcu.*(?:detected (?:expedited )?stalls|self-detected stall)",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        source="kernel/rcu/tree_stall.h",
    ),
    Rule(
        "memory_short",
        r"\bpage allocation (?:failure|stalls)\b|\bSL[AU]B: Unable to allocate memory\b",
        "kworker/u8:2: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO)",
        source="mm/page_alloc.c, mm/slub.c, mm/slab.c",
    ),
    Rule(
        "memory_short",
        r"\binvoked oom-killer\b|^oom-kill:|\bout of memory: kill|^oom_reaper: reaped",
        "Out of memory: Killed process 812 (fio) total-vm:40kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB",
        source="mm/oom_kill.c",
    ),
    Rule(
        "memory_short",
        r"\bswiotlb buffer is full\b|\bDMA: Out of SW-IOMMU space\b",
        "mpt3sas 0000:01:00.0: swiotlb buffer is full (sz: 65536 bytes), total 32768 (slots), used 128 (slots)",
        source="kernel/dma/swiotlb.c",
    ),
    Rule(
        "hung_task",
        r"task \S+ blocked for more than \d+ seconds",
        "INFO: task kworker/0:1:23 blocked for more than 120 seconds.",
        source="kernel/hung_task.c",
    ),
    Rule(
        "hung_task",
        r"^INFO: task .* blocked",
        "INFO: task dd blocked in I/O",
        source="kernel/hung_task.c",
    ),
    Rule(
        "aer",
        r"PCIe Bus Error|\bNMI received for unknown reason\b",
        "mpt3sas 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
        source="drivers/pci/pcie/aer.c, dpc.c",
    ),
    Rule(
        "aer",
        r"\bAER: ",
        "pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0",
        source="drivers/pci/pcie/aer.c, dpc.c",
    ),
    Rule(
        "aer",
        r": +device \[[0-9a-f]{4}:[0-9a-f]{4}\] error status/mask=|: +\[ ?\d+\] (?:RxErr|BadTLP|BadDLLP"
        r"|Rollover|Timeout|NonFatalErr|CorrIntErr|HeaderOF|DLP|SDES|TLP|FCP|CmpltTO|CmpltAbrt|UnxCmplt|RxOF|MalfTLP|ECRC|UnsupReq"
        # as kernels before 4.17 call them
        r"|ACSViol|UncorrIntErr|(?:Poison)?TLPBlocked(?:Err)?|BlockedTLP|AtomicOpBlocked"
        r"|(?:Malformed|Bad|Poisoned) TLP|Bad DLLP|(?:Replay Timer|Completion) Timeout"
        r"|RELAY_NUM Rollover|Unsupported Request|Receiver (?:Error|Overflow)"
        r"|Advisory Non-Fatal|Data Link Protocol|Surprise Down Error"
        r"|Flow Control Protocol|Completer Abort|Unexpected Completion|ACS Violation)\b",
        "nvme 0000:01:00.0:    [14] CmpltTO                (First)",
        source="drivers/pci/pcie/aer.c",
    ),
    Rule(
        "aer",
        r"\bDPC: ",
        "pcieport 0000:00:1c.0: DPC: containment event, status:0x1f01",
        source="drivers/pci/pcie/aer.c, dpc.c",
    ),
    Rule(
        "aer",
        r"\[Hardware Error\]",
        "mce: [Hardware Error]: Machine check events logged",
        source="arch/x86/kernel/cpu/mce, drivers/acpi/apei",
    ),
    Rule(
        "aer",
        r"\bmce: .*(?:error|exception)",
        "mce: CPU 3 machine check exception",
        source="arch/x86/kernel/cpu/mce",
    ),
    Rule(
        "aer",
        r"EDAC .*\b(?:U?CE|UE)\b",
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0",
        source="drivers/edac",
    ),
    Rule(
        "file_system_error",
        r"\bEXT[234]-fs:? (?:error|\(\S+\): (?:error|failed to convert|previous I/O error))",
        "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
        source="fs/ext4/super.c",
    ),
    Rule(
        "file_system_error",
        r"\bRemounting filesystem read-only",
        "EXT4-fs (sda1): Remounting filesystem read-only",
        source="fs/ext4/super.c, fs/fat",
    ),
    Rule(
        "file_system_error",
        r"\bJBD2?: .*(?:error|is corrupt|recovery failed|no valid journal superblock|file too short)"
        r"|Aborting journal on device",
        "Aborting journal on device sda1-8.",
        source="fs/jbd2/journal.c",
    ),
    Rule(
        "file_system_error",
        r"^XFS(?: \(\S+\))?: .*(?:corrupt|shut(?:ting)? ?down"
        r"|writeback error|internal error|CRC error|error -?\d+|mount failed"
        r"|check failed|run xfs_repair|please un?mount|torn write|failed to locate log)"
        r"|^\S+: writeback error on inode \d",
        'XFS (sdb1): metadata I/O error in "xfs_buf_ioend" at daddr 0x8 len 8 error 5',
        source="fs/xfs",
    ),
    Rule(
        "file_system_error",
        r"^BTRFS:? (?:error|critical|warning) (?!.*is deprecated)|^BTRFS info .*forced readonly"
        r"|^BTRFS: Transaction aborted|^BTRFS info .* errs: (?!wr 0, rd 0, flush 0, corrupt 0, gen 0\b)wr ",
        "BTRFS error (device sdc): bdev /dev/sdc errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
        source="fs/btrfs",
    ),
    Rule(
        "file_system_error",
        r"^(?:FAT-fs|F2FS-fs|UDF-fs)\b.*\berror\b|^EXT2-fs: group descriptors corrupted"
        r"|^F2FS-fs \S+: (?:Failed to (?:get valid|find devices)|Inconsistent segment|Wrong (?!.*quota))"
        r"|^ISOFS: unable to read i-node|^isofs_fill_super: bread failed|^iso9660: Corrupted directory",
        "FAT-fs (sdd1): error, fat_get_cluster: invalid cluster chain",
        source="fs/fat",
        severity="warning",
    ),
    Rule(
        "md_degraded",
        r"(?:md/(?:raid|linear)\S*|^raid\d+\S*): ?(?:Disk failure on|not enough operational"
        r"|cannot start dirty degraded)",
        "md/raid1:md0: Disk failure on sdb, disabling device.",
        driver="md",
        source="drivers/md",
    ),
    Rule(
        "md_degraded",
        r"\bmd: (?:.*kicking non-fresh|\S+ does not have a valid v1\S* superblock"
        r"|invalid superblock checksum on |md_import_device returned -)",
        "md: kicking non-fresh sdb1 from array!",
        driver="md",
        source="drivers/md/md.c",
    ),
    Rule(
        "md_degraded",
        r"\bOperation continuing on \d+ devices\b",
        "md/raid:md127: Operation continuing on 3 devices.",
        driver="md",
        source="drivers/md/raid5.c",
    ),
    Rule(
        "md_degraded",
        r"\bmd\S*: .*\bdegraded\b|\bvolume .*\bdegraded\b",
        "md/raid:md0: raid level 5 active with 2 out of 3 devices, degraded",
        driver="md",
        source="drivers/md",
    ),
    Rule(
        "md_degraded",
        r"(?:md/raid|^raid\d+).*(?:read error (?:not )?correct)",
        "md/raid1:md0: read error corrected (8 sectors at 2048 on sdb)",
        driver="md",
        source="drivers/md/raid1.c",
    ),
    Rule(
        "md_degraded",
        r"md: super_written (?:gets )?error",
        "md: super_written gets error=-5",
        driver="md",
        source="drivers/md/md.c",
    ),
    Rule(
        "aer",
        r"^EEH: .*(?:Frozen|has failed|failure)"
        r"|^zpci: .*(?:reports an error|recovery failed|reset request failed|Cannot be recovered)",
        "EEH: Frozen PE#fd on PHB#1 detected",
        source="arch/powerpc/kernel/eeh.c, arch/s390/pci/pci_event.c",
    ),
    Rule(
        "aer",
        r"\bAER:? enabled with IRQ|\bDPC:? (?:error containment capabilities|enabled with IRQ)",
        "pcieport 0000:00:1c.0: AER: enabled with IRQ 25",
        source="drivers/pci/pcie/aer.c, dpc.c",
        severity="none",
    ),
    Rule(
        "adapter_fault",
        r"AMD-Vi: .*(?:Completion-Wait loop timed out|IOMMU mapping error)"
        r"|\bDMAR: .*(?:fault addr|handling fault status|Allocating \d+-page iova failed)"
        r"|\bEvent logged \[|\b(?:ILLEGAL_DEV_TABLE_ENTRY|IO_PAGE_FAULT|\w+_HARDWARE_ERROR) device=",
        "DMAR: [DMA Write] Request device [03:00.0] fault addr 1000 [fault reason 05] PTE Write access is not set",
        source="drivers/iommu/amd/iommu.c, drivers/iommu/intel/dmar.c",
    ),
    Rule(
        "file_system_error",
        r"\bEXT[234]-fs .*(?:block allocation failed|data will be lost|mounting fs with errors"
        r"|(?:initial|last) error at time|shut down requested|error -\d|Couldn't remount)"
        r"|\bEXT[234]-fs warning .*(?:directory missing|checksum|corrupt|invalid|bad directory|\berr[ =]-\d"
        r"|error recorded|in need of filesystem check)",
        "EXT4-fs (sda1): warning: mounting fs with errors, running e2fsck is recommended",
        source="fs/ext4/super.c, fs/ext4/inode.c",
    ),
    Rule(
        "path_failed",
        r"\b(?:dm-)?multipath: (?:\S+ )?Failing path|\bmultipath: could not failover",
        "device-mapper: multipath: 253:3: Failing path 8:16.",
        driver="dm-multipath",
        source="drivers/md/dm-mpath.c",
    ),
    Rule(
        "path_failed",
        r"\balua: (?:rtpg failed|stpg (?:failed|sense)|port group \w+ state [UOX]\b)",
        "sd 1:0:0:1: alua: port group 01 state U non-preferred supports TolUsNA",
        driver="scsi_dh_alua",
        source="drivers/scsi/device_handler/scsi_dh_alua.c",
        severity="warning",
    ),
    Rule(
        "io_error",
        r"^device-mapper: (?:(?:thin|cache)(?: metadata)?|snapshots|crypt|integrity|verity\S*|space map \w+"
        r"|btree(?: spine)?|array|block manager|raid): .*(?:\bfail(?:ed|ure| mode)\b|\berror\b|Invalidating"
        r"|read-only mode|out-of-data-space|no free (?:data|metadata) space)",
        "device-mapper: thin: 253:4: metadata operation 'dm_pool_commit_metadata' failed: error = -5",
        driver="dm",
        source="drivers/md/dm-thin.c, dm-snap.c, dm-raid.c",
    ),
    Rule(
        "md_degraded",
        r"(?:md/raid\S*|^raid\d+\S*): .*active with (?P<members>\d+) out of (?!(?P=members) )\d+ ",
        "md/raid1:md0: active with 1 out of 2 mirrors",
        driver="md",
        source="drivers/md/raid1.c, raid5.c, raid10.c",
    ),
    Rule(
        "md_degraded",
        r"(?:md/raid\S*|^raid\d+\S*): .*(?:failed to run raid set|Cannot continue operation|redirecting sector"
        r"|rescheduling sector|unrecoverable I/O|too many read errors|\d+ read_errors,? >)|\bmd: pers->run\(\) failed"
        r"|^md\S*: (?:failed to create|invalid) bitmap",
        "md/raid1:md0: redirecting sector 8 to other mirror: sdb1",
        driver="md",
        source="drivers/md/raid1.c, raid5.c, md.c",
    ),
    Rule(
        "md_degraded",
        r"^md\S*: mismatch sector in range",
        "md0: mismatch sector in range 1234-1242",
        driver="md",
        kernels="4.12-",
        source="drivers/md/raid5.c",
    ),
)
