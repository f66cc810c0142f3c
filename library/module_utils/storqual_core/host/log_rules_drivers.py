# SPDX-License-Identifier: Apache-2.0
"""Rules of the kernel's log: adapters' drivers, libata and Fibre Channel, in the words of each."""

from __future__ import annotations

from .log_rule import Rule

DRIVERS: tuple[Rule, ...] = (
    Rule(
        "adapter_reset",
        r"\bsmartpqi\b.*\bcontroller (?:is )?(?:now )?offline",
        "smartpqi 0000:5c:00.0: controller is offline: status code 0x14100",
        driver="smartpqi",
        kernels="4.9-",
        source="drivers/scsi/smartpqi/smartpqi_init.c",
    ),
    Rule(
        "adapter_reset",
        r"\bsmartpqi\b.*\b(?:resetting|reset of|re-enabling)\b",
        "smartpqi 0000:5c:00.0: resetting scsi 1:1:0:0 due to cmd 0x28",
        driver="smartpqi",
        kernels="4.9-",
        source="drivers/scsi/smartpqi/smartpqi_init.c",
    ),
    Rule(
        "adapter_reset",
        r"\bsmartpqi\b.*(?:\bnot ready\b|no heartbeat|taking controller offline|firmware panic|lockup)",
        "smartpqi 0000:5c:00.0: controller not ready after 180 seconds",
        driver="smartpqi",
        kernels="4.9-",
        source="drivers/scsi/smartpqi/smartpqi_init.c",
    ),
    Rule(
        "adapter_reset",
        r"\b(?:hpsa|cciss)\b.*(?:lockup detected|controller is offline|\bresetting\b|hard reset"
        r"|soft reset|waiting for (?:device|board))",
        "hpsa 0000:05:00.0: controller lockup detected: 0x00130000 after 0",
        driver="hpsa",
        source="drivers/scsi/hpsa.c",
    ),
    Rule(
        "task_abort",
        r"\bhpsa\b.*(?:\bABORT(?:ING|ED)?\b|unsolicited abort|was aborted|resetting (?:logical|physical)"
        r"|reset (?:logical|physical))",
        "hpsa 0000:05:00.0: scsi 2:1:0:0: Aborting command Direct-Access HP LOGICAL VOLUME",
        driver="hpsa",
        source="drivers/scsi/hpsa.c",
    ),
    Rule(
        "io_error",
        r"\bhpsa\b.*(?:has CHECK CONDITION|hardware error|connection lost|cp \S+ has status"
        r"|unknown status|protocol error)",
        "hpsa 0000:05:00.0: cp 00000000d2b1d5ae hardware error",
        driver="hpsa",
        source="drivers/scsi/hpsa.c",
    ),
    Rule(
        "timeout",
        r"\bhpsa\b.*\btimedout\b",
        "hpsa 0000:05:00.0: cp 00000000d2b1d5ae timedout",
        driver="hpsa",
        source="drivers/scsi/hpsa.c",
    ),
    Rule(
        "task_abort",
        r"log_info\(0x3(?:1(?:11|12|13|14|17|18)|005)[0-9a-f]{4}\)",
        "mpt2sas_cm0: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)",
        driver="mpt2sas, mpt3sas",
        kernels="2.6.30-",
        source="drivers/scsi/mpt3sas/mpt3sas_base.c (_base_sas_log_info)",
        severity="warning",
    ),
    Rule(
        "io_error",
        r"log_info\(0x3[0-9a-f]{7}\)|LogInfo\(0x3[0-9a-f]{7}\)",
        "mpt3sas_cm0: log_info(0x31080000): originator(PL), code(0x08), sub_code(0x0000)",
        driver="mpt2sas, mpt3sas, mptsas",
        source="drivers/scsi/mpt3sas/mpt3sas_base.c (_base_sas_log_info)",
        severity="warning",
    ),
    Rule(
        "adapter_reset",
        r"_ctrl_reset_handler|base_hard_reset_handler|MPTSCSIH.*reset|mptbase: .*(?:Recovered"
        r"|IOC is in FAULT)",
        "mptscsih: ioc0: WARNING - Issuing Reset from mptscsih_IssueTaskMgmt!!",
        driver="mptsas, mpt3sas",
        source="drivers/message/fusion",
    ),
    Rule(
        "adapter_reset",
        r"\bfault_state\b|in fault state|FW in FAULT|Found FW in FAULT|fault code",
        "mpt3sas_cm0: fault_state(0x5862)!",
        driver="mpt3sas, megaraid_sas",
        source="drivers/scsi",
    ),
    Rule(
        "adapter_reset",
        r"\bSAS host is non-operational|\bIOC is (?:non-operational|in FAULT)",
        "mpt2sas0: SAS host is non-operational !!!!",
        driver="mpt2sas, mpt3sas",
        source="drivers/scsi/mpt3sas/mpt3sas_base.c",
    ),
    Rule(
        "timeout",
        r"\bmpt[23]sas\S*: (?:\S+ )?(?:Command Timeout|\S+: timeout)\b",
        "mpt3sas_cm0: _config_request: timeout",
        driver="mpt3sas",
        source="drivers/scsi/mpt3sas",
    ),
    Rule(
        "device_removed",
        r"removing handle\(0x|handle\(0x[0-9a-f]+\).*delete",
        "mpt3sas_cm0: removing handle(0x000a), sas_addr(0x5000c50000000001)",
        driver="mpt3sas",
        source="drivers/scsi/mpt3sas/mpt3sas_scsih.c",
    ),
    Rule(
        "adapter_reset",
        r"^mega(?:raid|sas)\S*[ :].*\b(?:OCR|BDR|HRST)\b",
        "megaraid_sas 0000:03:00.0: OCR is requested by the firmware",
        driver="megaraid_sas, megaraid",
        source="drivers/scsi/megaraid",
    ),
    Rule(
        "adapter_reset",
        r"^mega(?:raid|sas)\S*[ :].*(?:FW restarted|adapter reset|waiting for \d+ commands"
        r"|Reset successful|HBA recovery|kill adapter|Adapter is DEAD)",
        "megasas: [ 5]waiting for 1 commands to complete",
        driver="megaraid_sas",
        source="drivers/scsi/megaraid",
    ),
    Rule(
        "timeout",
        r"^mega(?:raid|sas)\S*[ :].*DCMD.*timed out",
        "megaraid_sas 0000:03:00.0: DCMD(opcode: 0x10b0100) is timed out, func:megasas_sync_map_info",
        driver="megaraid_sas",
        kernels="4.6-",
        source="drivers/scsi/megaraid",
    ),
    Rule(
        "adapter_reset",
        r"\b(?:aacraid|AAC)\b.*(?:\bIOP reset\b|Host (?:bus|adapter) reset|Adapter kernel panic"
        r"|BLINK ?LED|Controller reset|adapter reset|SCSI hang)",
        "aacraid 0000:86:00.0: Issuing IOP reset",
        driver="aacraid",
        source="drivers/scsi/aacraid",
    ),
    Rule(
        "task_abort",
        r"\baacraid\b.*(?:Outstanding commands|outstanding cmd|Host adapter abort)",
        "aacraid: Outstanding commands on (0,0,0,0):",
        driver="aacraid",
        source="drivers/scsi/aacraid",
    ),
    Rule(
        "adapter_reset",
        r"\bata\d+(?:\.\d+)?: (?:COMRESET failed|reset failed|hardreset failed|softreset failed"
        r"|.*\b(?:hard|soft) resetting (?:link|port))",
        "ata3: COMRESET failed (errno=-16)",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "adapter_reset",
        r"\bhard resetting link\b|\bsoft resetting link\b",
        "ata3: hard resetting link",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "timeout",
        r"\bata\d+(?:\.\d+)?: (?:qc timeout|.*\(timeout\))",
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
        r"\bata\d+(?:\.\d+)?: failed command:",
        "ata3.00: failed command: WRITE FPDMA QUEUED",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "io_error",
        r"\bata\d+(?:\.\d+)?: (?:SError: \{ \S|irq_stat .*(?:fatal|error|PHY))|\(ATA bus error\)"
        r"|\bata\d+(?:\.\d+)?: .*\b(?:ATA|host|interface) (?:bus|fatal) error",
        "ata3: SError: { PHYRdyChg CommWake }",
        driver="libata",
        source="drivers/ata/libata-eh.c",
        severity="warning",
    ),
    Rule(
        "device_removed",
        r"\bata\d+(?:\.\d+)?: (?:disabled|disabling|detaching|revalidation failed"
        r"|link is slow to respond)|\bata\d+\.\d+: device detached",
        "ata3.00: revalidation failed (errno=-5)",
        driver="libata",
        source="drivers/ata/libata-eh.c",
    ),
    Rule(
        "link_event",
        r"\blpfc\b.*\bLink (?:Up|Down) Event",
        "lpfc 0000:04:00.0: 0:1305 Link Down Event x2 received Data: x2 x20 x800110 x0 x0",
        driver="lpfc",
        source="drivers/scsi/lpfc",
        severity="warning",
    ),
    Rule(
        "device_removed",
        r"\blpfc\b.*\bDevloss timeout",
        "lpfc 0000:04:00.0: 0:(0):0203 Devloss timeout on WWPN 50:01:00:00:00:00:00:01 NPort x010000 Data: x0 x7 x0",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "task_abort",
        r"\blpfc\b.*(?:SCSI (?:L|l)ayer (?:I/O Abort|issued (?:Device|Target|LUN) Reset)|abort handler)",
        "lpfc 0000:04:00.0: 0:(0):0713 SCSI layer issued Device Reset (0, 1) return x2002",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "adapter_reset",
        r"\blpfc\b.*(?:Adapter Hardware Error|HBA (?:needs|reset)|issued (?:Bus|Host) Reset"
        r"|Port Status Event|Firmware dump)",
        "lpfc 0000:04:00.0: 0:0457 Adapter Hardware Error Data: x80000000",
        driver="lpfc",
        source="drivers/scsi/lpfc",
    ),
    Rule(
        "link_event",
        r"\bqla2xxx\b.*\b(?:LOOP (?:DOWN|UP) detected|LIP (?:occurred|reset occurred)"
        r"|Asynchronous PORT UPDATE|RSCN database changed|Cable is unplugged)",
        "qla2xxx [0000:04:00.0]-500b:1: LOOP DOWN detected (2 7 0 0).",
        driver="qla2xxx",
        source="drivers/scsi/qla2xxx",
        severity="warning",
    ),
    Rule(
        "adapter_reset",
        r"\bqla\w+\b.*(?:ISP (?:System Error|abort|error)|(?:ADAPTER|BUS) RESET|Firmware dump"
        r"|RISC paused)|ISP (?:abort|error)",
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
        r"\b(?:bnx2fc|libfc|libfcoe|fnic|qedf|fcoe|bfa)\b.*\b[Ll]ink (?:is )?(?:up|down)\b",
        "bnx2fc: host7: Link down",
        driver="bnx2fc, libfc, fnic, qedf",
        source="drivers/scsi/bnx2fc, libfc, scsi_transport_fc.c",
        severity="warning",
    ),
    Rule(
        "link_event",
        r"\b(?:bnx2fc|libfc|qedf)\b.*\b(?:LOGO|port (?:deleted|logged out)|session (?:upload"
        r"|offload) (?:failed|timed)|rport .* (?:down|logo))",
        "host7: libfc: rport 010203: Received LOGO request",
        driver="bnx2fc, libfc, qedf",
        source="drivers/scsi/bnx2fc, libfc, scsi_transport_fc.c",
        severity="warning",
    ),
    Rule(
        "device_removed",
        r"\brport-\S+: blocked FC remote port time out",
        "rport-1:0-3: blocked FC remote port time out: removing target and saving binding",
        driver="scsi_transport_fc",
        source="drivers/scsi/bnx2fc, libfc, scsi_transport_fc.c",
    ),
    Rule(
        "adapter_reset",
        r"adapter (?:abort|is dead|died)",
        "fnic: adapter is dead",
        source="drivers/scsi",
    ),
    Rule(
        "adapter_reset",
        r"sym\d+: SCSI BUS (?:reset|has been reset|mode change)",
        "sym0: SCSI BUS has been reset.",
        driver="sym53c8xx",
        source="drivers/scsi/sym53c8xx_2",
    ),
    Rule(
        "adapter_reset",
        r"\bnvme\S*: controller is down",
        "nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10",
        driver="nvme",
        source="drivers/nvme/host/pci.c",
    ),
)
