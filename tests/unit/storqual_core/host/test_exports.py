# SPDX-License-Identifier: Apache-2.0
"""What serves a device to other machines is found by what the kernel opened, not only by what a tool wrote down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storqual_core.host.exports import Export, lost_exports, read_exports
from tests.support.bench_tree import BenchTree

if TYPE_CHECKING:
    from pathlib import Path

NVMET = "/sys/kernel/config/nvmet/subsystems/one"
BACKSTORE = "/sys/kernel/config/target/core/fileio_0/disk"
# as Linux 6.1 writes it (target_core_file.c, target_core_iblock.c)
FILEIO = (
    "Status: ACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384\n"
    "        TCM FILEIO ID: 0        File: {}  Size: 536870912  Mode: O_DSYNC Async: 0\n"
)
IBLOCK = (
    "Status: ACTIVATED  Max Queue Depth: 128  SectorSize: 512  HwMaxSectors: 2560\n"
    "        iBlock device: sda  UDEV PATH: {}  readonly: 0\n"
    "        Major: 8 Minor: 0  CLAIMED: IBLOCK\n"
)


@pytest.fixture
def tree(tmp_path: Path) -> BenchTree:
    """A bench with one drive, an NVMe one beside it."""
    tree = BenchTree(tmp_path).adapter().scsi("sda")
    return tree.adapter("0000:00:09.0", driver="nvme").nvme()


@pytest.mark.parametrize(
    ("place", "text", "title"),
    [
        (f"{NVMET}/namespaces/1/device_path", "/dev/sda\n", "an NVMe target"),
        (f"{BACKSTORE}/udev_path", "/dev/sda\n", "a SCSI target"),
        (f"{BACKSTORE}/info", FILEIO.format("/dev/sda"), "a SCSI target"),
        (f"{BACKSTORE}/info", IBLOCK.format("/dev/sda"), "a SCSI target"),
        ("/sys/kernel/scst_tgt/handlers/vdisk_blockio/one/filename", "/dev/sda\n", "a SCSI target"),
        ("/sys/kernel/config/usb_gadget/g/functions/mass_storage.0/lun.0/file", "/dev/sda\n", "a USB gadget"),
        ("/sys/class/udc/dummy_udc.0/device/gadget.0/lun0/file", "/dev/sda\n", "a USB gadget"),
    ],
)
def test_a_server_of_a_drive_is_found_wherever_the_kernel_names_it(
    tree: BenchTree, place: str, text: str, title: str
) -> None:
    tree.write(place, text)
    assert read_exports(tree.machine) == [Export(title, "/dev/sda", ("sda",))]


def test_a_controller_that_is_passed_on_serves_its_drives(tree: BenchTree) -> None:
    tree.write(f"{NVMET}/passthru/device_path", "/dev/nvme0\n")
    assert read_exports(tree.machine) == [Export("an NVMe target", "/dev/nvme0", ("nvme0n1",))]


def test_what_a_tool_wrote_down_and_the_kernel_opened_is_told_once(tree: BenchTree) -> None:
    tree.write(f"{BACKSTORE}/udev_path", "/dev/sda\n")
    tree.write(f"{BACKSTORE}/info", IBLOCK.format("/dev/sda"))
    assert len(read_exports(tree.machine)) == 1


@pytest.mark.parametrize("text", ["", "(null)\n", "Status: DEACTIVATED  Max Queue Depth: 0\n"])
def test_what_is_not_set_up_serves_nothing(tree: BenchTree, text: str) -> None:
    tree.write(f"{NVMET}/namespaces/1/device_path", text)
    tree.write(f"{BACKSTORE}/info", text)
    assert read_exports(tree.machine) == []
    assert lost_exports(tree.machine) == []


def test_what_is_served_and_leads_to_nothing_may_be_any_device(tree: BenchTree) -> None:
    tree.write(f"{NVMET}/namespaces/1/device_path", "/dev/gone\n")
    assert lost_exports(tree.machine) == []
    tree.write(f"{NVMET}/namespaces/1/enable", "1\n")
    tree.write(f"{BACKSTORE}/info", FILEIO.format("/run/private"))
    assert lost_exports(tree.machine) == [
        "an NVMe target serves /dev/gone, which leads to nothing now",
        "a SCSI target serves /run/private, which leads to nothing now",
    ]
