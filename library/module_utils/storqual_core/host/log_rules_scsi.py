# SPDX-License-Identifier: Apache-2.0
"""Rules of the kernel's log: the SCSI mid-layer, the block layer and NVMe."""

from __future__ import annotations

from .log_rule import Rule

SCSI: tuple[Rule, ...] = (
    Rule(
        "adapter_reset",
        r"\b(?:host|adapter|controller|bus|ioc|hba|chip|ctrl|firmware)\b.{0,40}\breset(?:ting)?\b",
        "scsi host2: BUS RESET operation started",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "adapter_reset",
        r"\breset(?:ting)? (?:\w+ )?(?:host|adapter|controller|bus|scsi bus|link)\b",
        "megaraid_sas 0000:03:00.0: resetting fusion adapter scsi0.",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "adapter_reset",
        r"\bdiag(?:nostic)?[ _]reset\b",
        "mpt3sas_cm0: sending diag reset !!",
        driver="mpt3sas",
        source="drivers/scsi/mpt3sas/mpt3sas_base.c",
    ),
    Rule(
        "adapter_reset",
        r"\bhost bus reset\b|eh_(?:bus|host)_reset",
        "scsi host3: eh_bus_reset_handler called",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "adapter_reset",
        r"\bSCSI bus (?:has been|was) reset|SCSI BUS reset",
        "scsi2: SCSI bus was reset",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "task_abort",
        r"\b(?:attempting )?task abort\b",
        "sd 2:0:1:0: attempting task abort! scmd(0x0000000012345678)",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "task_abort",
        r"(?<!Key : )\babort(?:ing|ed)? (?:device |sbp2 )?(?:command|task|cmd|request|operation)\b",
        "sd 0:0:0:0: [sda] tag#3 aborting command",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "task_abort",
        r"\b(?:target|device|lun|logical unit)\b(?! after).{0,30}\breset\b",
        "sd 0:0:0:0: Power-on or device reset occurred",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "task_abort",
        r"\bABORT operation\b|\w*eh_(?:abort|device_reset)|\bDEVICE RESET operation\b|\bscmd \S+ abort"
        r"|\bAbort status\b|\bqueue an? (?:ABORT|TARGET RESET) message",
        "sym0:1:0:ABORT operation started.",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "task_abort",
        r"\bI/O (?:tag )?\d+ .*\baborting\b",
        "nvme nvme0: I/O 12 QID 3 timeout, aborting",
        driver="nvme",
        source="drivers/nvme/host/pci.c",
    ),
    Rule(
        "task_abort",
        r"\bcmd abort\b|\bcommand aborted\b",
        "scsi 0:0:1:0: command aborted",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "timeout",
        r"\bI/O \S+ .*\btimeout\b|\bnvme\S*: queue \d+: timeout\b",
        "nvme nvme0: I/O 12 (I/O Cmd) QID 3 timeout, completion polled",
        driver="nvme",
        source="drivers/nvme/host/pci.c",
    ),
    Rule(
        "timeout",
        r"\b(?:command|cmd|scmd|request|I/O)\b.{0,40}\btim(?:ed[ -]out|eout)\b|\bwait '[^']+' timeout\b",
        "ata3.00: cmd 61/08:00 timed out",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "timeout",
        r"\btimed out\b|\btiming out command\b|\btimeout, (?:aborting|reset|disable"
        r"|completion polled)|\btimeout error, dev ",
        "sd 0:0:0:0: [sda] tag#0 timing out command, waited 180s",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "timeout",
        r"hostbyte=(?:DID_TIME_OUT|0x0?3\b)",
        "sd 0:0:1:0: [sdb] tag#7 FAILED Result: hostbyte=0x03 driverbyte=0x00",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "medium_error",
        r"Sense Key ?[:=]? ?(?:Medium Error|0x0?3\b|(?<== )3, ASC = )|^Current \S+: sense = 7[01] +3\b",
        "sd 0:0:0:0: [sda] tag#1 Sense Key : 0x3 [current]",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "medium_error",
        r"critical medium error",
        "critical medium error, dev sda, sector 2048 op 0x0:(READ) flags 0x0",
        kernels="3.10-",
        source="block/blk-core.c",
    ),
    Rule(
        "medium_error",
        r"unrecovered read error|Add(?:\.|itional) Sense: (?:Write error"
        r"|Peripheral device write fault|Record not found)",
        "sd 0:0:0:0: [sda] tag#1 Add. Sense: Unrecovered read error",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "medium_error",
        r"Buffer I/O error .*lost .*write",
        "Buffer I/O error on dev sda1, logical block 7, lost async page write",
        source="fs/buffer.c",
    ),
    Rule(
        "sense_error",
        r"Sense Key ?:? ?(?:Hardware Error|Aborted Command|Not Ready|Recovered Error|Data Protect"
        r"|Blank Check|Copy Aborted|Miscompare)",
        "sd 0:0:0:0: [sda] tag#1 Sense Key : Hardware Error [current]",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "sense_error",
        r"Sense Key ?[:=] ?0x0?[1247abde]\b|^Current \S+: sense = 7[01] +[1247abde]\b",
        "sd 0:0:0:0: [sda] tag#1 Sense Key : 0x2 [current]",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "sense_error",
        r"critical (?:target|nexus|space allocation) error|\breservation conflict\b"
        r"|\bprotection error, dev ",
        "critical target error, dev sda, sector 8 op 0x1:(WRITE)",
        source="block/blk-core.c",
    ),
    Rule(
        "sense_error",
        r"\bAdd(?:\.|itional) Sense: .*(?:failure|error|defect|out of range|exceeded|communication|parity)",
        "sd 0:0:0:0: [sda] tag#1 Add. Sense: Internal target failure",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "device_removed",
        r"rejecting I/O to (?:offline|dead) device",
        "sd 0:0:0:0: rejecting I/O to offline device",
        source="drivers/scsi/scsi_lib.c",
    ),
    Rule(
        "device_removed",
        r"\bdevice offlined\b|\bOfflining disk\b|\bkilling request\b|\bdevice offline error, dev ",
        "sd 0:0:3:0: Device offlined - not ready after error recovery",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "device_removed",
        r"\bSynchronizing SCSI cache\b|\bStopping disk\b",
        "sd 3:0:0:0: [sdc] Synchronizing SCSI cache",
        source="drivers/scsi/sd.c",
    ),
    Rule(
        "device_removed",
        r"hostbyte=(?:DID_(?:NO_CONNECT|BAD_TARGET)|0x0?[14]\b)",
        "sd 0:0:1:0: [sdb] FAILED Result: hostbyte=0x01 driverbyte=0x00",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "device_removed",
        r"\bsurprise remov|Slot\(\S+\): (?:Link Down|Card not present)"
        r"|\b(?:can't|refused to|unable to) change power state\b",
        "pcieport 0000:00:02.0: pciehp: Slot(0): Link Down",
        source="drivers/pci/hotplug/pciehp_ctrl.c, drivers/pci/pci.c",
    ),
    Rule(
        "device_removed",
        r"\bdevice (?:was )?(?:removed|disconnected|gone)\b|^(?!md|loop|dm-"
        r"|zram)\S+: detected capacity change from \d+ to 0\b",
        "nvme nvme1: device gone",
        source="drivers/nvme/host",
    ),
    Rule(
        "device_removed",
        r"\bRemoving after probe failure|\bnvme\b.*: Device failed to resume",
        "nvme nvme0: Removing after probe failure status: -19",
        driver="nvme",
        source="drivers/nvme/host/pci.c",
    ),
    Rule(
        "device_removed",
        r"nvme\S*: (?:Device not ready; aborting|failed to set APST feature \(-"
        r"|Disabling device after reset failure)",
        "nvme nvme0: Device not ready; aborting initialisation, CSTS=0x0",
        driver="nvme",
        source="drivers/nvme/host/core.c",
    ),
    Rule(
        "io_error",
        r"\bI/?O error\b|\battempt to access beyond end of device\b|^zio pool=.* error=\d",
        "I/O error, dev sdc, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
        source="block/blk-mq.c",
    ),
    Rule(
        "io_error",
        r"\b(?:blk_update_request|print_req_error): |\b(?:quiet_error|buffer_io_error"
        r"|blk_print_req_error|raid\d+_end_\w+_request): \d+ callbacks suppressed",
        "blk_update_request: critical nexus, dev sda, sector 8",
        source="block/blk-core.c",
    ),
    Rule(
        "io_error",
        r"hostbyte=DID_(?!OK\b)\w+",
        "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=0s",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "io_error",
        r"hostbyte=0x(?!0+\b)[0-9a-f]+",
        "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=0x07 driverbyte=0x00",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "io_error",
        r"driverbyte=(?:DRIVER_(?:SENSE|ERROR|TIMEOUT)|0x0?[468]\b)",
        "sd 0:0:0:0: [sda] FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_TIMEOUT",
        kernels="-5.13",
        source="drivers/scsi/scsi_error.c, scsi_logging.c",
    ),
    Rule(
        "io_error",
        r"\w+\(0x[0-9a-f]+\) @ LBA",
        "nvme0n1: I/O Cmd(0x2) @ LBA 8, 8 blocks, I/O Error",
        driver="nvme",
        source="drivers/nvme/host/core.c",
    ),
    Rule(
        "io_error",
        r"\b(?:read|write)[- ]error\b",
        "sdb: write error while swapping",
        source="mm/page_io.c",
    ),
    Rule(
        "path_failed",
        r"\brecoverable transport error, dev |\bconnection\d+:\d+: (?:detected conn error"
        r"|ping timeout)|^iSCSI Login timeout on |^Did not receive response to NOPIN on ",
        "recoverable transport error, dev sda, sector 8 op 0x0:(READ) flags 0x0",
        source="block/blk-core.c, drivers/scsi/libiscsi.c",
    ),
    Rule(
        "io_error",
        r"\b(?:kernel resource|device resource|(?:open|active) zones exceeded"
        r"|duration limit exceeded) error, dev ",
        "device resource error, dev sda, sector 8 op 0x1:(WRITE) flags 0x0",
        kernels="5.9-",
        source="block/blk-core.c",
    ),
    Rule(
        "io_error",
        r"\bSCSI error ?: .*return code = 0x(?!0+\b)",
        "sd 0:0:0:0: SCSI error: return code = 0x00010000",
        kernels="2.6.0-2.6.27",
        source="drivers/scsi/scsi_lib.c",
    ),
    Rule(
        "io_error",
        r"\] (?:tag#\d+ )?FAILED Result: |\] .* failed: Result: "
        r"|\] REPORT ZONES .* failed|^st\d+: Error [1-9a-f]"
        r"|^scsi\d*: ERROR on channel \d+|\] Unhandled (?:error|sense) code",
        "sd 0:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=6s",
        source="drivers/scsi/scsi_lib.c",
    ),
    Rule(
        "sense_error",
        r"\] Unit Not Ready\b",
        "sd 0:0:0:0: [sda] Unit Not Ready",
        source="drivers/scsi/sd.c",
    ),
)
