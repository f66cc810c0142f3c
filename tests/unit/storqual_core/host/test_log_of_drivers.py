# SPDX-License-Identifier: Apache-2.0
"""What each driver and layer tells of its trouble in the kernel's log, in its own words."""

import pytest

from storqual_core.host.kernel_log import classify, decode_log_info


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("smartpqi 0000:5c:00.0: controller is offline: status code 0x6100c", "adapter_reset"),
        ("smartpqi 0000:5c:00.0: controller offline", "adapter_reset"),
        ("smartpqi 0000:5c:00.0: resetting scsi 1:1:0:0", "adapter_reset"),
        ("smartpqi 0000:5c:00.0: firmware not ready", "adapter_reset"),
        ("smartpqi 0000:5c:00.0: controller not ready after 180 seconds", "adapter_reset"),
    ],
)
def test_smartpqi_is_offline_resetting_or_not_ready(line: str, kind: str) -> None:
    assert classify(line) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ata3.00: exception Emask 0x0 SAct 0x7fffffff SErr 0x0 action 0x6 frozen", "io_error"),
        ("ata3.00: exception Emask 0x10 SAct 0x0 SErr 0x400100 action 0x0", "io_error"),
        ("ata3.00: failed command: WRITE FPDMA QUEUED", "io_error"),
        ("ata3: SError: { PHYRdyChg 10B8B Dispar }", "io_error"),
        ("ata3: COMRESET failed (errno=-16)", "adapter_reset"),
        ("         res 40/00:00:00:4f:c2/00:00:00:00:00/00 Emask 0x10 (ATA bus error)", "io_error"),
    ],
)
def test_libata_tells_of_trouble_without_a_hard_reset(line: str, kind: str) -> None:
    assert classify(line) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("hpsa 0000:05:00.0: Controller lockup detected: 0x00130000 after 30", "adapter_reset"),
        (
            "hpsa 0000:03:00.0: scsi 0:1:0:0: resetting logical  Direct-Access     ACME     LOGICAL VOLUME",
            "task_abort",
        ),
        ("hpsa 0000:05:00.0: scsi 0:1:0:0: reset logical  failed Direct-Access     HP", "task_abort"),
    ],
)
def test_hpsa_locks_up_and_resets(line: str, kind: str) -> None:
    assert classify(line) == kind


@pytest.mark.parametrize("name", ["mpt2sas0", "mpt2sas_cm0", "mpt3sas_cm1"])
def test_log_info_of_mpt2sas_and_mpt3sas_is_decoded_to_originator_and_code(name: str) -> None:
    line = f"{name}: log_info(0x31110d01): originator(PL), code(0x11), sub_code(0x0d01)"
    assert classify(line) == "task_abort"
    assert decode_log_info(line) == "originator PL, code 0x11 (reset), sub-code 0x0d01"


@pytest.mark.parametrize(
    "line",
    [
        "megaraid_sas 0000:03:00.0: OCR is requested by the firmware",
        "megaraid_sas 0000:03:00.0: scanning for scsi0 after OCR",
        "megaraid: hw error, not attempting BDR",
        "megaraid_sas 0000:03:00.0: HRST: adapter is reset",
    ],
)
def test_megaraid_tells_of_ocr_bdr_and_hrst(line: str) -> None:
    assert classify(line) == "adapter_reset"


@pytest.mark.parametrize(
    "line",
    [
        "aacraid 0000:86:00.0: Issuing IOP reset",
        "aacraid 0000:86:00.0: IOP reset failed",
        "aacraid 0000:86:00.0: IOP reset succeeded",
    ],
)
def test_aacraid_resets_its_iop(line: str) -> None:
    assert classify(line) == "adapter_reset"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("lpfc 0000:04:00.0: 0:1305 Link Down Event x2 received Data: x2 x20 x8 x0 x0", "link_event"),
        ("qla2xxx [0000:04:00.0]-500b:1: LOOP DOWN detected (2 3 0 0).", "link_event"),
        ("qla2xxx [0000:04:00.0]-500a:1: LOOP UP detected (8 Gbps).", "link_event"),
        ("bnx2fc: host7: Link down", "link_event"),
        ("rport-7:0-2: blocked FC remote port time out: removing target and saving binding", "device_removed"),
    ],
)
def test_links_and_ports_of_lpfc_qla2xxx_and_bnx2fc_go_down_and_up(line: str, kind: str) -> None:
    assert classify(line) == kind


HOST_BYTES = ("OK", "NO_CONNECT", "BUS_BUSY", "TIME_OUT", "BAD_TARGET", "ABORT", "PARITY", "ERROR", "RESET")
SENSE_KEYS = {2: "Not Ready", 3: "Medium Error", 4: "Hardware Error", 5: "Illegal Request", 11: "Aborted Command"}


@pytest.mark.parametrize(("number", "name"), list(enumerate(HOST_BYTES)), ids=HOST_BYTES)
def test_a_host_byte_in_numbers_means_what_its_name_means(number: int, name: str) -> None:
    result = "sd 0:0:1:0: [sdb] tag#7 FAILED Result: hostbyte="
    kind = classify(f"{result}DID_{name} driverbyte=DRIVER_OK")
    assert kind
    assert classify(f"{result}{number:#04x} driverbyte=0x00") == kind
    assert classify(f"{result}{number:#x} driverbyte=DRIVER_OK") == kind


def test_commands_that_timed_out_are_told_by_a_host_byte_of_3() -> None:
    assert classify("sd 0:0:1:0: [sdb] tag#7 FAILED Result: hostbyte=0x03 driverbyte=0x00") == "timeout"


@pytest.mark.parametrize(("number", "name"), list(SENSE_KEYS.items()), ids=list(SENSE_KEYS.values()))
def test_a_sense_key_in_numbers_means_what_its_name_means(number: int, name: str) -> None:
    line = "sd 0:0:0:0: [sda] tag#1 Sense Key : "
    assert classify(f"{line}{number:#x} [current]") == classify(f"{line}{name} [current]")
    assert (classify(f"{line}{number:#x} [current]") is None) is (name == "Illegal Request")


def test_md_could_not_write_its_superblock() -> None:
    assert classify("md: super_written gets error=-5, uptodate=0") == "md_degraded"


@pytest.mark.parametrize(
    "line",
    [
        "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0",
        "XFS (sdb1): metadata I/O error in xfs_trans_read_buf_map at daddr 0x8 len 8 error 5",
        "BTRFS error (device sdc): bdev /dev/sdc errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
        "EXT4-fs (sda1): Remounting filesystem read-only",
    ],
)
def test_file_systems_tell_of_errors(line: str) -> None:
    assert classify(line) == "file_system_error"


@pytest.mark.parametrize(
    "line",
    [
        "e1000e 0000:00:19.0 eth0: Reset adapter unexpectedly",
        "ixgbe 0000:03:00.0 eth2: Reset adapter",
        "bnx2x 0000:04:00.0 eth3: NIC Link is Down",
        "igb 0000:02:00.0: Resetting adapter",
        "NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out",
    ],
)
def test_a_network_driver_resets_no_adapter_here(line: str) -> None:
    assert classify(line) is None


@pytest.mark.parametrize(
    "driver",
    [
        *("e100", "e1000e", "stmmac", "hinic", "liquidio", "octeon_mgmt", "txgbe", "ngbe", "ath10k_pci", "mt7921e"),
        *("rtw_8822be", "brcmfmac", "rdma_rxe", "infiniband", "CIFS", "ceph", "libceph", "ast", "mgag200"),
        *("i801_smbus", "ucsi_acpi", "hid-generic", "uvcvideo", "ccp"),
    ],
)
def test_a_driver_that_has_no_drives_tells_no_fault_of_storage(driver: str) -> None:
    said = "0000:02:00.0: command timed out, adapter reset"
    assert classify(f"acmeraid {said}")
    assert classify(f"{driver} {said}") is None
