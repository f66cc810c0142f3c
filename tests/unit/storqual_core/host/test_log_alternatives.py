# SPDX-License-Identifier: Apache-2.0
"""Words that stand beside each other in one rule: each is found by itself, not only the one that the example has."""

from __future__ import annotations

import pytest

from storqual_core.host.log_findings import classify

LINES = [
    # PCIe AER, as kernels before 4.17 and after it call the errors
    *(
        ("aer", f"pcieport 0000:00:07.0:    [{bit:2}] {name}")
        for bit, name in (
            (0, "Receiver Error         (First)"),
            (6, "Bad TLP"),
            (7, "Bad DLLP"),
            (8, "RELAY_NUM Rollover"),
            (12, "Replay Timer Timeout"),
            (13, "Advisory Non-Fatal"),
            (4, "Data Link Protocol"),
            (5, "Surprise Down Error"),
            (12, "Poisoned TLP"),
            (13, "Flow Control Protocol"),
            (14, "Completion Timeout     (First)"),
            (15, "Completer Abort"),
            (16, "Unexpected Completion"),
            (17, "Receiver Overflow"),
            (18, "Malformed TLP"),
            (20, "Unsupported Request"),
            (21, "ACS Violation"),
        )
    ),
    ("file_system_error", "F2FS-fs (sdz7): Failed to find devices"),
    ("file_system_error", "F2FS-fs (sdz7): Inconsistent segment (7) type [1, 0] in SSA and SIT"),
    ("file_system_error", "EXT4-fs (sdz7): error -5 when getting RAID attributes of its drive"),
    (
        "file_system_error",
        "EXT4-fs warning (device sdz7): ext4_clear_journal_err:7: Marking fs in need of filesystem check.",
    ),
    ("io_error", "device-mapper: thin: 253:7: no free metadata space available."),
    ("io_error", "device-mapper: thin: 253:7: switching pool to out-of-data-space (error IO) mode"),
    ("adapter_reset", "megaraid: 7 outstanding commands. Max wait 180 sec"),
    ("adapter_reset", "megasas: cannot recover from previous reset failures"),
    ("task_abort", "sas: task 0x0000000007a7a7a7 is not at LU, I_T nexus reset"),
    ("task_abort", "sas: trying to find task: I_T nexus reset of dev 7"),
    ("task_abort", "megaraid abort: 7:7[255:0], fw owner"),
    ("adapter_fault", "pm80xx0:: pm80xx_chip_init 777:chip_init failed"),
    ("adapter_fault", "pm80xx0:: process_oq 777:Fatal error of its firmware"),
    ("adapter_fault", "pm80xx0:: pm80xx_chip_init 777:BAD main config signature 0x7"),
    ("adapter_fault", "pm80xx0:: mpi_init_check 777:failed to init its queues"),
    ("adapter_fault", "pm80xx0:: pm80xx_chip_soft_rst 777:SIGNATURE not toggled"),
    ("adapter_fault", "stex(0000:07:00.0): no handshake signature"),
    ("adapter_fault", "stex(0000:07:00.0): firmware not operational"),
    ("adapter_fault", "ibmvscsi 30000007: connection lost, its partner went down"),
    ("adapter_fault", "ibmvfc 30000007: Client partner or host queue closed"),
    ("adapter_fault", "ibmvfc 30000007: Host partner adapter deregistered or failed (rc=7)"),
    ("adapter_fault", "ibmvfc 30000007: link down event of its host"),
    ("adapter_fault", "ufshcd-qcom 1d87000.ufs: hibern8 enter failed. ret = -110"),
    ("adapter_fault", "ufshcd-qcom 1d87000.ufs: ufshcd_verify_dev_init: NOP OUT failed -110"),
    ("adapter_fault", "ufs_device_wlun 7:0:0:49488: START_STOP failed for power mode: 1"),
    ("path_failed", "nvme nvme7: keep-alive failed: 7"),
    ("path_failed", "nvme nvme7: association establishment failed, retrying in 7 seconds"),
    ("path_failed", "nvme nvme7: failed to connect queue: 7 ret=-110"),
    ("path_failed", "nvme nvme7: Connect rejected: status 7 (nvme status code)."),
    ("path_failed", "nvme nvme7: Connect Invalid Data Parameter, subsysnqn of nobody"),
    ("task_abort", "aic7xxx_dev_reset returns 0x2003"),
    ("task_abort", "(scsi7:A:7:0): SCB 7 - Abort Completed."),
    ("task_abort", "scsi7:0:7:0: Cmd aborted from QINFIFO"),
    ("task_abort", "Recovery SCB completes"),
    ("adapter_fault", "scsi7: ahc_intr: HOST_MSG_LOOP bad phase 0x7"),
    ("adapter_fault", "scsi7: ahc_intr - referenced scb not valid during SEQINT 0x77 scb(7)"),
    ("timeout", "res 40/00:00:00:00:00/00:00:00:00:00/00 Emask 0x4 (timeout)"),
    (
        "timeout",
        "cmd 60/08:00:07:00:00/00:00:00:00:00/40 tag 7 res 40/00:00:00:00:00/00:00:00:00:00/00 Emask 0x4 (timeout)",
    ),
    (
        "io_error",
        "cmd 60/08:00:07:00:00/00:00:00:00:00/40 tag 7 res 51/84:00:00:00:00/00 Emask 0x1 (device error)",
    ),
]


@pytest.mark.parametrize(("kind", "line"), LINES, ids=[line[-60:] for _, line in LINES])
def test_each_word_of_a_rule_is_found_by_itself(kind: str, line: str) -> None:
    assert classify(line) == kind
