# SPDX-License-Identifier: Apache-2.0
"""Rules of the kernel's log: libata and Fibre Channel, whose lines are mostly about a link."""

from __future__ import annotations

from .log_rule import Rule

LINKS: tuple[Rule, ...] = (
    Rule(
        "adapter_reset",
        r"\bata\d+(?:\.\d+)?: (?:(?:COMRESET|SRST|reset|hardreset|softreset) failed|device not ready \(errno="
        r"|.*\b(?:hard|soft) resetting (?:link|port))",
        "ata3: COMRESET failed (errno=-16)",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "timeout",
        r"\bata\d+(?:\.\d+)?: (?:qc timeout|lost interrupt|.*\(timeout\))",
        "ata3.00: qc timeout (cmd 0xec)",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "io_error",
        r"\bata\d+(?:\.\d+)?: exception Emask",
        "ata3.00: exception Emask 0x10 SAct 0x0 SErr 0x4050002 action 0xe frozen",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "io_error",
        r"\bata\d+(?:\.\d+)?: (?:failed command:|failed to (?:IDENTIFY|recover|read (?:log page|SCR))"
        r"|TEST_UNIT_READY failed|Read log \S+ page \S+ failed)",
        "ata3.00: failed command: WRITE FPDMA QUEUED",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "io_error",
        r"\bata\d+(?:\.\d+)?: (?:SError: \{ \S|irq_stat .*(?:error|PHY))|\(ATA bus error\)"
        r"|\bata\d+(?:\.\d+)?: .*\b(?:host bus|interface fatal) error",
        "ata3: SError: { PHYRdyChg CommWake }",
        driver="libata",
        source="drivers/ata/libata-eh.c",
        severity="warning",
    ),
    Rule(
        "device_removed",
        r"\bata\d+(?:\.\d+)?: (?:disabled|disable device|disabling(?! queued)|detaching"
        r"|revalidation failed|(?:link|port) is slow to respond)",
        "ata3.00: revalidation failed (errno=-5)",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "link_event",
        r"\blpfc\d*\b.*(?:\bLink (?:Up|Down) Event|\bPort Down\b|\bPending Link Event|\b(?:FLOGI|PLOGI"
        r"|PRLI|FDISC|ADISC) (?:failure|failed|timeout)|\bPRLI DID:\w+ Status:|\bFDISC cmpl status"
        r"|\bNo retry ELS command|Timeout while waiting for NameServer)",
        "lpfc 0000:04:00.0: 0:1305 Link Down Event x2 received Data: x2 x20 x800110 x0 x0",
        driver="lpfc",
        source="drivers/scsi/lpfc",
        severity="warning",
    ),
    Rule(
        "device_removed",
        r"\blpfc\d*\b.*\bDevloss timeout",
        "lpfc 0000:04:00.0: 0:(0):0203 Devloss timeout on WWPN 50:01:00:00:00:00:00:01 NPort x010000 Data: x0 x7 x0",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "task_abort",
        r"\blpfc\d*\b.*(?:SCSI layer (?:I/O Abort|issued (?:Device|Target|LUN) Reset)"
        r"|abort handler|Abort outstanding I/O|I/O flush failure)",
        "lpfc 0000:04:00.0: 0:(0):0713 SCSI layer issued Device Reset (0, 1) return x2002",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "adapter_reset",
        r"\blpfc\d*\b.*(?:Adapter Hardware Error|Restart HBA|issued (?:Bus|Host) Reset"
        r"|Port Status Event|Firmware dump|Resetting board|Reset Needed)",
        "lpfc 0000:04:00.0: 0:0457 Adapter Hardware Error Data: x80000000",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "link_event",
        r"\bqla2\w+\b.*\b(?:LOOP (?:DOWN|UP) detected|LIP (?:reset )?occurr?ed"
        r"|Asynchronous PORT UPDATE|RSCN database changed|Cable is unplugged|Mark all dev lost"
        r"|FPIN ELS|Async-\w+ failed|fcport .*(?:lost|down))",
        "qla2xxx [0000:04:00.0]-500b:1: LOOP DOWN detected (2 7 0 0).",
        driver="qla2xxx",
        source="drivers/scsi/qla2xxx",
        severity="warning",
    ),
    Rule(
        "adapter_reset",
        r"\bqla\w+\b.*(?:ISP (?:System Error|abort|error)|aborting ISP|(?:ADAPTER|BUS|LOOP) RESET"
        r"|(?<!for )(?:Firmware|FW) dump(?! (?:template|size))"
        r"|RISC paused|detected PCI disconnect)|\bscsi\(\d+\): .*\bISP abort",
        "qla2xxx [0000:04:00.0]-5003:1: ISP System Error - mbx1=4321h mbx2=0h.",
        driver="qla2xxx",
        source="drivers/scsi/qla2xxx",
    ),
    Rule(
        "task_abort",
        r"\bqla2xxx\b.*(?:(?:DEVICE|TARGET) RESET|Abort command issued)",
        "qla2xxx [0000:04:00.0]-8009:1: DEVICE RESET ISSUED nexus=1:0:0 cmd=0000000012345678.",
        driver="qla2xxx",
        source="drivers/scsi/qla2xxx",
    ),
    Rule(
        "link_event",
        r"\b(?:host\d+|qedf_\w+)\b.*\blink (?:is )?(?:up|down)\b"
        r"|\bbfa\b.* connectivity lost for ",
        "bnx2fc: host7: Link down",
        driver="bnx2fc, libfc, fnic, qedf",
        source="drivers/scsi/bnx2fc, libfc, scsi_transport_fc.c",
        severity="warning",
    ),
    Rule(
        "link_event",
        r"\bhost\d+: rport [0-9a-f]{6}: Received LOGO|\bbnx2fc\b.*\b(?:logo\b|is in DELETED state"
        r"|Port is being logged off|ofld_req failed|offload error|Upload compl not received)",
        "host7: rport 010203: Received LOGO request while in state Ready",
        driver="bnx2fc, libfc",
        source="drivers/scsi/bnx2fc, libfc, scsi_transport_fc.c",
        severity="warning",
    ),
    Rule(
        "device_removed",
        r"\brport-\S+: blocked FC remote port time out|\bqla2xxx\b.*\bis not coming back",
        "rport-1:0-3: blocked FC remote port time out: removing target and saving binding",
        driver="scsi_transport_fc",
        source="drivers/scsi/bnx2fc, libfc, scsi_transport_fc.c",
    ),
    Rule(
        "medium_error",
        r"\bUNC\b",
        "ata1.00: error: { UNC }",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "io_error",
        r"\blpfc\d*\b.*(?:FCP (?:cmd|command) x\w+ failed|Rsp Ring \d+ error|Iodone .* error)",
        "lpfc 0000:04:00.0: 0:(0):0729 FCP cmd x28 failed <0/1> status: x3 result: x16",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "adapter_fault",
        r"\blpfc\d*\b.*(?:initialization error|Adapter failed|Failed to (?:init|issue|allocate)"
        r"|temperature exceeded|Adapter is very hot)",
        "lpfc 0000:04:00.0: 0:0324 Config Port initialization error, mbxCmd x88",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "io_error",
        r"\bqla2xxx\b.*(?:FCP command status: 0x(?!0-0x0\b)|Dropped frame\(s\) detected)",
        "qla2xxx [0000:02:00.0]-302b:1: Dropped frame(s) detected (0x1000 of 0x2000 bytes).",
        driver="qla2xxx",
        source="drivers/scsi/qla2xxx/qla_isr.c",
    ),
    Rule(
        "link_event",
        r"\bata\d+(?:\.\d+)?: (?:irq_stat \w+, connection status changed"
        r"|limiting (?:SATA link )?speed to|SATA link down \(SStatus (?:1 |\w+ SControl F?3[1-9]0))",
        "ata1: limiting SATA link speed to 1.5 Gbps",
        driver="libata",
        source="drivers/ata/libata-eh.c, libata-core.c, libahci.c",
        severity="warning",
    ),
    Rule(
        "medium_error",
        r"(?<![g-z])res [0-9a-f]{2}/.*Emask 0x[0-9a-f]+ \(media error\)",
        "res 41/40:00:80:b9:74/00:00:00:00:00/40 Emask 0x409 (media error) <F>",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "timeout",
        r"(?<![g-z])res [0-9a-f]{2}/.*Emask 0x[0-9a-f]+ \(timeout\)",
        "res 40/00:10:d0:5d:a8/00:00:b2:00:00/40 Emask 0x4 (timeout)",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "io_error",
        r"(?<![g-z])res [0-9a-f]{2}/.*Emask 0x[0-9a-f]+ \((?!timeout|media)\w"
        r"|\bata\d+(?:\.\d+)?: (?:(?:error|status): \{ [^}]*\b(?:ICRC|IDNF|ABRT|ERR|DF)\b"
        r"|edma_err_cause=|NCQ disabled due to|failed to set xfermode)",
        "ata1.00: error: { ICRC ABRT }",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "io_error",
        r"\bata\d+: (?:status=0x[0-9a-f]+ \{[^}]*\bError\b|error=0x[0-9a-f]+ \{|no sense translation"
        r"|translated (?:op|ATA stat))",
        "ata1: error=0x04 { DriveStatusError }",
        driver="libata",
        kernels="-2.6.18",
        source="drivers/scsi/libata-scsi.c",
    ),
    Rule(
        "medium_error",
        r"^hd[a-t]: .*\bUncorrectableError\b",
        "hda: dma_intr: error=0x40 { UncorrectableError }, LBAsect=1024, sector=1024",
        driver="ide",
        kernels="-5.13",
        source="drivers/ide/ide-atapi.c, ide-taskfile.c",
    ),
    Rule(
        "timeout",
        r"^hd[a-t]: (?:lost interrupt|dma_timer_expiry|\w+ timeout|(?:error|timeout) waiting for DMA)",
        "hda: dma_timer_expiry: dma status == 0x21",
        driver="ide",
        kernels="-5.13",
        source="drivers/ide/ide-io.c, ide-dma.c",
    ),
    Rule(
        "adapter_reset",
        r"^ide\d+(?:\(\?\))?: (?:unexpected interrupt|reset)",
        "ide2: reset timed-out, status=0xd0",
        driver="ide",
        kernels="-5.13",
        source="drivers/ide/ide-eh.c",
    ),
    Rule(
        "io_error",
        r"^hd[a-t]: (?:\w+: (?:status|error)=0x[0-9a-f]+ \{[^}]*Error|drive not ready for command|DMA disabled)",
        "hdc: dma_intr: status=0x51 { DriveReady SeekComplete Error }",
        driver="ide",
        kernels="-5.13",
        source="drivers/ide",
    ),
    Rule(
        "io_error",
        r"\blpfc\d*\b.*(?:ELS CQE error|connect admin queue failed)",
        "lpfc 0000:04:00.0: 0:0357 ELS CQE error: status=x3: CQE: 116b0300 0 0 90010000",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "io_error",
        r"\bhisi_sas\w* \S+ erroneous completion|\bhv_storvsc\b.*\bstatus: scsi 0x",
        "hv_storvsc: tag#7 cmd 0x28 status: scsi 0x2 srb 0x4 hv 0xc0000001",
        driver="hisi_sas, hv_storvsc",
        source="drivers/scsi/hisi_sas, drivers/scsi/storvsc_drv.c",
        severity="warning",
    ),
    Rule(
        "device_removed",
        r"\bdev\[\d+:\w+\] is gone|^sas: sas_probe_sata: .* returned -",
        "hisi_sas_v3_hw 0000:b4:02.0: dev[3:5] is gone",
        driver="hisi_sas, mvsas, libsas",
        source="drivers/scsi/hisi_sas, drivers/scsi/mvsas, drivers/scsi/libsas/sas_ata.c",
    ),
    Rule(
        "task_abort",
        r"\baic7\w+_(?:abort|dev_reset) returns|\(scsi\d+:\S+\): (?:Abort (?:Tag )?Message Sent|SCB \d+ - Abort)"
        r"|\bCmd aborted from |^Recovery SCB completes",
        "aic7xxx_abort returns 0x2002",
        driver="aic7xxx, aic79xx",
        source="drivers/scsi/aic7xxx",
    ),
    Rule(
        "adapter_reset",
        r"\bSomeone reset channel [AB]\b",
        "scsi0: Someone reset channel A",
        driver="aic7xxx, aic79xx",
        source="drivers/scsi/aic7xxx",
    ),
    Rule(
        "adapter_fault",
        r"\bDump Card State Begins\b|\bahc_intr: HOST_MSG_LOOP bad phase|\bahc_intr - referenced scb not valid",
        ">>>>>>>>>>>>>>>>>> Dump Card State Begins <<<<<<<<<<<<<<<<<",
        driver="aic7xxx, aic79xx",
        source="drivers/scsi/aic7xxx",
    ),
    Rule(
        "adapter_fault",
        r"\blpfc_rport_invalid: Null",
        "**** lpfc_rport_invalid: Null vport on ndlp ffff88828bd82e00, DID fffffe",
        driver="lpfc",
        source="drivers/scsi/lpfc/lpfc_hbadisc.c",
    ),
    Rule(
        "timeout",
        r"\b(?:aacraid|AAC\d*)\b.*timeout detected on",
        "aacraid:ID(0:02:0) Timeout detected on cmd[0x2a]",
        driver="aacraid",
        source="what controllers of SCSI print through drivers/scsi/aacraid",
    ),
    Rule(
        "medium_error",
        r"\b(?:aacraid|AAC\d*)\b.*(?:Medium Error|Error Too Long To Correct|BBR sequence)",
        "aacraid:ID(0:02:0); Medium Error, Block Range 4096 : 4223",
        driver="aacraid",
        source="what controllers of SCSI print through drivers/scsi/aacraid",
    ),
    Rule(
        "sense_error",
        r"\b(?:aacraid|AAC\d*)\b.*\[k:0x[1-9a-f]",
        "aacraid:ID(0:02:0); Unit Attention [k:0x6,c:0x29,q:0x2]",
        driver="aacraid",
        source="what controllers of SCSI print through drivers/scsi/aacraid",
        severity="warning",
    ),
    Rule(
        "io_error",
        r"\b(?:aacraid|AAC\d*)\b.*(?:Error Event|returning error|drive failure|IO failed)",
        "aacraid:ID(0:02:0); Error Event [command:0x2a]",
        driver="aacraid",
        source="what controllers of SCSI print through drivers/scsi/aacraid",
    ),
)
