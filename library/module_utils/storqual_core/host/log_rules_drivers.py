# SPDX-License-Identifier: Apache-2.0
"""Rules of the kernel's log: drivers of SAS, RAID and NVMe adapters, in the words of each."""

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
        r"\bsmartpqi\b.*(?:\bnot ready\b|no heartbeat)",
        "smartpqi 0000:5c:00.0: controller not ready after 180 seconds",
        driver="smartpqi",
        kernels="4.9-",
        source="drivers/scsi/smartpqi/smartpqi_init.c",
    ),
    Rule(
        "adapter_reset",
        r"\b(?:hpsa|cciss)\b.*(?:lockup detected|\bresetting array controller|hard reset|soft reset"
        r"|waiting (?:\d+ secs )?for (?:device|board))",
        "hpsa 0000:05:00.0: controller lockup detected: 0x00130000 after 0",
        driver="hpsa",
        source="drivers/scsi/hpsa.c",
    ),
    Rule(
        "task_abort",
        r"\b(?:hpsa|cciss)\b.*(?:\bABORT(?:ING|ED)?\b"
        r"|\breset(?:ting)? (?:logical|physical|device)|resetting scsi \d)",
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
        r"log_?info\(0x3(?:1(?:11|12|13|14|17|18)|005)[0-9a-f]{4}\)",
        "mpt2sas_cm0: log_info(0x31110d00): originator(PL), code(0x11), sub_code(0x0d00)",
        driver="mpt2sas, mpt3sas, mptsas",
        kernels="2.6.30-",
        source="drivers/scsi/mpt3sas/mpt3sas_base.c (_base_sas_log_info)",
        severity="warning",
    ),
    Rule(
        "io_error",
        r"\bmpt[23]sas\S*:\s+(?:(?:dev )?handle\(\w+\), ioc_status\(scsi (?:ioc|task) terminated"
        r"|ioc_status: (?:internal error|busy)\(|scsi_status\([^)]*\)\(\w+\), scsi_state\(.*state terminated)",
        "mpt3sas_cm0: \thandle(0x001a), ioc_status(scsi ioc terminated)(0x004b), smid(2583)",
        driver="mpt2sas, mpt3sas",
        source="drivers/scsi/mpt3sas/mpt3sas_scsih.c (_scsih_scsi_ioc_info)",
    ),
    Rule(
        "io_error",
        r"\bmpt[23]sas\S*:\s+break from .* scan: |log_?info\(0x3003[0-9a-f]{4}\)",
        "mpt3sas_cm0: log_info(0x30030101): originator(IOP), code(0x03), sub_code(0x0101)",
        driver="mpt2sas, mpt3sas, mptsas",
        source="drivers/scsi/mpt3sas: a configuration page was asked for that the controller does not have",
        severity="none",
    ),
    Rule(
        "io_error",
        r"log_?info\(0x3[0-9a-f]{7}\)",
        "mpt3sas_cm0: log_info(0x31080000): originator(PL), code(0x08), sub_code(0x0000)",
        driver="mpt2sas, mpt3sas, mptsas",
        source="drivers/scsi/mpt3sas/mpt3sas_base.c (_base_sas_log_info)",
        severity="warning",
    ),
    Rule(
        "adapter_reset",
        r"_ctl_(?:\w+_)?reset_handler|base_hard_reset_handler|MPTSCSIH.*reset|mptbase: .*(?:Recovered"
        r"|IOC is in FAULT)",
        "mptscsih: ioc0: WARNING - Issuing Reset from mptscsih_IssueTaskMgmt!!",
        driver="mptsas, mpt3sas",
        source="drivers/message/fusion",
    ),
    Rule(
        "adapter_reset",
        r"\bfault_state\b|in fault ?state|fault code",
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
        r"removing (?:handle\(0x|enclosure)|setting delete flag: ?handle\(0x"
        r"|\bmpt[23]sas\S*: .*(?:\bremoved: sas_addr|expander_remove"
        r"|device is not present)|\bmptsas: ioc\d+: removing ",
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
        r"^mega(?:raid|sas)\S*[ :].*(?:FW restarted|reset(?:ting fusion)? adapter"
        r"|wait(?:ing)? for \d+ (?:command|cmd)s"
        r"|reset+ing the host|outstanding commands\. Max wait|failed to do reset|cannot recover from previous reset"
        r"|Reset successful|HBA recovery|not operational after \d+ seconds wait|HBA is killed)",
        "megasas: [ 5]waiting for 1 commands to complete",
        driver="megaraid_sas",
        source="drivers/scsi/megaraid",
    ),
    Rule(
        "timeout",
        r"^mega(?:raid|sas)\S*[ :].*DCMD.*(?:timed out|timeout is detected)",
        "megaraid_sas 0000:03:00.0: DCMD(opcode: 0x10b0100) is timed out, func:megasas_sync_map_info",
        driver="megaraid_sas",
        kernels="4.6-",
        source="drivers/scsi/megaraid",
    ),
    Rule(
        "adapter_reset",
        r"\b(?:aacraid|AAC\d*)\b.*(?:\bIOP reset\b|Adapter kernel panic|BLINK ?LED|Controller reset|SCSI hang"
        r"|Resetting bus|SCSI bus appears)",
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
        r"adapter (?:is |appears )?dead",
        "aacraid: Host adapter appears dead",
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
    Rule(
        "adapter_reset",
        r"^megaraid\S*[ :].*Online Controller Reset\(OCR\)\s*:",
        "megaraid_sas 0000:18:00.0: Online Controller Reset(OCR)  : Enabled",
        driver="megaraid_sas",
        kernels="4.15-",
        source="drivers/scsi/megaraid/megaraid_sas_base.c",
        severity="none",
    ),
    Rule(
        "adapter_reset",
        r"\bmegasas: RESET\b|\bOCR is requested\b|^mega\S*[ :].*(?:pending cmds after reset|killing adapter)",
        "sd 2:2:3:0: [sdd] megasas: RESET cmd=28 retries=0",
        driver="megaraid_sas",
        source="drivers/scsi/megaraid",
    ),
    Rule(
        "medium_error",
        r"^mega.*/(?:WARN|CRIT|FATAL|DEAD)\) - .*medium error",
        "megaraid_sas 0000:03:00.0: 231 (721399863s/0x0002/FATAL) - Unrecoverable medium error during "
        "recovery on PD 03(e0x20/s3) at 1a2b3c",
        driver="megaraid_sas",
        kernels="3.17-",
        source="drivers/scsi/megaraid (megasas_decode_evt)",
    ),
    Rule(
        "md_degraded",
        r"^mega.*/(?:WARN|CRIT|FATAL|DEAD)\) - .*(?:\bDEGRADED\b|\bOFFLINE\b|(?<!Enclosure )\b[VP]D \S+ .*failed"
        r"|\bRebuild failed)"
        r"|^mega.*/INFO\) - State change on [VP]D .* to (?:FAILED|OFFLINE)\b",
        "megaraid_sas 0000:03:00.0: 232 (721399863s/0x0001/CRIT) - VD 00/0 is now DEGRADED",
        driver="megaraid_sas",
        kernels="3.17-",
        source="drivers/scsi/megaraid (megasas_decode_evt)",
    ),
    Rule(
        "sense_error",
        r"^mega.*/(?:INFO|WARN|CRIT|FATAL|DEAD)\) - Unexpected sense",
        "megaraid_sas 0000:03:00.0: 233 (721399863s/0x0002/WARN) - Unexpected sense: PD 03(e0x20/s3) "
        "Path 5000, CDB: 28 00, Sense: b/4b/03",
        driver="megaraid_sas",
        kernels="3.17-",
        source="drivers/scsi/megaraid (megasas_decode_evt)",
    ),
    Rule(
        "device_removed",
        r"^mega.*/(?:INFO|WARN|CRIT|FATAL|DEAD)\) - Removed: PD",
        "megaraid_sas 0000:03:00.0: 234 (721399863s/0x0002/WARN) - Removed: PD 03(e0x20/s3)",
        driver="megaraid_sas",
        kernels="3.17-",
        source="drivers/scsi/megaraid (megasas_decode_evt)",
    ),
    Rule(
        "adapter_fault",
        r"^mega.*/(?:CRIT|FATAL|DEAD)\) - |^mega(?:raid|sas)\S*[ :].*(?:Failed from megasas_init_fw"
        r"|Unknown command completed|Init cmd return status FAILED|ioc_init_fusion\(\) failed"
        r"|Fail from megasas_init_)",
        "megaraid_sas 0000:03:00.0: 235 (721399863s/0x0008/CRIT) - Battery has failed and cannot "
        "support data retention",
        driver="megaraid_sas",
        source="drivers/scsi/megaraid (megasas_decode_evt)",
    ),
    Rule(
        "adapter_reset",
        r"\bsmartpqi\b.*(?:reset recovery failed|PCI reset (?:prepare|done)|waiting for soft reset status"
        r"|Online Firmware Activation.*(?:FAILED|ABORTED))",
        "smartpqi 0000:84:00.0: reset recovery failed: -110",
        driver="smartpqi",
        kernels="5.14-",
        source="drivers/scsi/smartpqi/smartpqi_init.c",
    ),
    Rule(
        "device_removed",
        r"\bhpsa\b \S+ scsi \S+ removed |\bsmartpqi\b \S+ removed \d",
        "smartpqi 0000:23:00.0: removed 0:0:0:0 5000c50000000001 Direct-Access     ACME     DISK9       "
        "     AIO+ qd=32",
        driver="smartpqi, hpsa",
        source="drivers/scsi/smartpqi/smartpqi_init.c, drivers/scsi/hpsa.c",
    ),
    Rule(
        "adapter_fault",
        r"\bhpsa\b.*(?:\bcmd_alloc returned NULL|: out of memory)"
        r"|\baac_fib_send failed with status|\bsge_count \(-?\d+\) is out of range"
        r"|\b(?:smartpqi|hpsa|aacraid|mpi3mr\d*)\b.*\b(?:failed to (?:allocate|create)|adapter health - )"
        r"|\bsmartpqi \S+ error \w+ing "
        r"|^(?:mpt[23]sas|megaraid_sas|smartpqi|hpsa|aacraid|mpi3mr|lpfc|qla2xxx|nvme|pm80xx|mvsas|isci)\b.*\bprobe "
        r".*failed with error",
        "smartpqi 0000:23:00.0: failed to allocate PQI error buffer",
        driver="smartpqi, hpsa, aacraid, mpi3mr, mpt3sas",
        source="drivers/scsi",
    ),
    Rule(
        "io_error",
        r"\bhpsa\b.*\bfailed \d+ commands in fail_all",
        "hpsa 0000:03:00.0: failed 5 commands in fail_all",
        driver="hpsa",
        source="drivers/scsi/hpsa.c",
    ),
    Rule(
        "adapter_reset",
        r"\bmpt[23]sas\S*: .*\bhard[ _]reset\b|\bmpi3mr\d*: .*\bsoft reset\b",
        "mpt3sas_cm0: _base_fault_reset_work: hard reset: success",
        driver="mpt2sas, mpt3sas, mpi3mr",
        source="drivers/scsi/mpt3sas/mpt3sas_base.c, drivers/scsi/mpi3mr/mpi3mr_fw.c",
    ),
    Rule(
        "adapter_fault",
        r"\bmpt[23]sas\S* .*(?:fault info from|doorbell (?:handshake .*failed|is in use)|doorbell_\w+: failed"
        r"|handshake failed|failure at \S*drivers/scsi/"
        r"|pool: \w+ failed|failed (?:allocating|obtaining)|discovery errors|dead_ioc thread"
        r"|Temperature Threshold flags)",
        "mpt3sas_cm0: doorbell handshake int failed (line=5277)",
        driver="mpt2sas, mpt3sas",
        source="drivers/scsi/mpt3sas/mpt3sas_base.c, mpt3sas_scsih.c",
    ),
    Rule(
        "link_event",
        r"\bdevice_(?:un)?block(?:ed)?\b.*handle\(0x",
        "sd 0:0:1:0: device_block, handle(0x000a)",
        driver="mpt2sas, mpt3sas",
        source="drivers/scsi/mpt3sas/mpt3sas_scsih.c",
        severity="warning",
    ),
    Rule(
        "adapter_fault",
        r"\bmpi3mr\d*: .*(?:\bfault_code\b|\bunrecoverable\b|Failed ioc_status)"
        r"|\bsmartpqi\b.*received invalid response"
        r"|\b(?:aacraid|AAC\d*)\b.*(?:PCI error detected|Battery: (?!OK\b|optimal\b)\w)",
        "mpi3mr0: fault_code 0x0000f002",
        driver="mpi3mr, megaraid_sas, aacraid",
        source="drivers/scsi",
    ),
    Rule(
        "md_degraded",
        r"\bmptbase: ioc\d+: .*(?:PhysDisk .*(?:failed|missing|offline)|volume is now (?:failed"
        r"|state unknown))",
        "mptbase: ioc0:   PhysDisk is now failed, out of sync",
        driver="mptbase",
        source="drivers/message/fusion/mptsas.c",
    ),
    Rule(
        "task_abort",
        r"^sas: (?:Enter sas_scsi_recover_host busy: [1-9]|trying to find task|.*aborting task"
        r"|.*cmd error handler|I_T nexus reset|.* is not at LU)|\bpm8001_abort_task \d+:\s*rc ?= ?[1-9]"
        r"|\bhisi_sas\w* \S+ slot complete: task\(\w+\) aborted|^megaraid(?:: aborting-| abort: )",
        "sas: Enter sas_scsi_recover_host busy: 1 failed: 1",
        driver="libsas, pm80xx",
        source="drivers/scsi/libsas/sas_scsi_host.c",
    ),
    Rule(
        "adapter_fault",
        r"^3w-\w+: .*\bERROR\b(?!.*Invalid (?:command opcode|field))"
        r"|\bpm8\w+:.*(?:chip_init failed|MPI state is not ready|Fatal error|BAD main config"
        r"|failed to init|not toggled)|^stex\b.*: .*(?:no handshake|handshake failed|not operational)"
        r"|^ibmv(?:fc|scsi) \w+: .*(?:deregistered or failed|queue closed|connection lost|link down)"
        r"|\bufshcd\S* .*(?:_err_handler started|hibern8 \w+ failed|NOP OUT failed)|^ufs_device_wlun .*\bfailed\b",
        "3w-9xxx: scsi0: AEN: ERROR (0x04:0x000A): Drive error detected:unit=0, port=2.",
        driver="3w-9xxx, 3w-sas, pm80xx, ibmvfc, ibmvscsi, ufshcd",
        source="drivers/scsi/3w-9xxx.c, drivers/scsi/pm8001, drivers/scsi/ibmvscsi, drivers/ufs",
    ),
    Rule(
        "adapter_reset",
        r"\bnvme\S*: restart after slot reset",
        "nvme nvme0: restart after slot reset",
        driver="nvme",
        source="drivers/nvme/host/pci.c, fc.c",
    ),
    Rule(
        "adapter_fault",
        r"\bnvme\S*: (?:failed to (?:mark controller|set host mem|create)"
        r"|Identify Controller failed|Could not set queue count|Property Set error)"
        r"|\bnvme\S*: async event result "
        r"|\bnvmet: ctrl \d+ fatal error|\bqla2xxx\b.*(?:\bdump ram \S+ failed|\bMBX_\w+ failed)",
        "nvme nvme0: failed to mark controller live state",
        driver="nvme",
        source="drivers/nvme/host/pci.c, core.c",
    ),
    Rule(
        "path_failed",
        r"\bnvme\S*: no (?:usable|available) path|\bnvme\S*: .*(?:controller connectivity lost"
        r"|starting error recovery|transport association event|failed reconnect attempt"
        r"|failed to connect (?:socket|queue)|Connect (?:command failed|rejected|Invalid)|failed nvme_keep_alive"
        r"|keep-alive failed|establishment failed)",
        "block nvme0n1: no usable path - requeuing I/O",
        driver="nvme",
        source="drivers/nvme/host/multipath.c, fc.c",
    ),
)
