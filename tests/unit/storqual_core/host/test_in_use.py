# SPDX-License-Identifier: Apache-2.0
"""Who uses what: mount tables are parsed whole or not at all, programs are found by what they have open."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storqual_core.host.in_use import (
    Export,
    Mount,
    find_uses,
    lost_exports,
    parse_mountinfo,
    parse_swaps,
    read_exports,
    read_open_files,
    system_disks,
    ways,
)
from storqual_core.kit.errors import ToolError
from tests.support.bench_tree import STATE, BenchTree


def test_a_line_of_mountinfo() -> None:
    lines = [
        "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue",
        "37 35 0:45 / /data rw - btrfs /dev/sda rw",
        "",
    ]
    assert parse_mountinfo(lines) == [
        Mount("98:0", "/mnt 2", "ext3", "/dev/root", "", "/mnt1"),
        Mount("0:45", "/data", "btrfs", "/dev/sda", ""),
    ]


@settings(deadline=None)
@given(st.text(alphabet=st.characters(blacklist_characters="\n"), min_size=1, max_size=80))
def test_a_line_is_understood_or_refused(line: str) -> None:
    with suppress(ToolError):
        assert len(parse_mountinfo([line])) == 1


def test_swaps_have_a_heading() -> None:
    assert parse_swaps(
        ["Filename Type Size Used Priority", "/dev/sda2 partition 1 0 -2", "/my\\040swap file 1 0 -3", ""]
    ) == ["/dev/sda2", "/my swap"]


def test_a_mount_of_the_machine_is_told_once_and_a_private_one_with_its_namespace(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sda").mount("8:16", "/data").mount("8:16", "/data", namespace="50")
    tree.mount("8:16", "/private", namespace="50").mount("8:16", "/private", namespace="51")
    assert find_uses(tree.machine)["sda"] == [
        "is mounted on /data (ext4)",
        "is mounted on /private (ext4) in the mount namespace of process 50 (containerd)",
        "is mounted on /private (ext4) in the mount namespace of process 51 (containerd)",
    ]


def test_active_swap_is_a_use_of_its_partition(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sdb").partition("sdb", 1).swap("/dev/sdb1").swap("/swapfile")
    assert find_uses(tree.machine)["sdb1"] == ["is active swap space"]


def test_the_machines_own_disks(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sda").scsi("sdb", wwn="0x5000c50000000002", serial="SER2")
    tree.scsi("sdc", wwn="0x5000c50000000003", serial="SER3").partition("sdb", 1)
    tree.stacked("md0", ["sda"]).mount("252:64", "/boot").swap("/dev/sdb1").mount("8:48", "/", namespace="60")
    assert system_disks(tree.machine, STATE) == {
        "vda": "carries / and storqual's spool",
        "sda": "carries /boot",
        "sdb": "carries swap",
    }


def test_a_mount_in_a_namespace_that_only_a_thread_is_in_is_found(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path).adapter().scsi("sda").mount("8:16", "/mine", namespace="50/task/51")
    tree.write("/proc/50/comm", "sidecar\n")
    assert find_uses(tree.machine)["sda"] == [
        "is mounted on /mine (ext4) in the mount namespace of process 50 (sidecar)"
    ]


def test_without_a_mount_table_nothing_is_known(tmp_path: Path) -> None:
    tree = BenchTree(tmp_path)
    tree.write("/proc/self/mountinfo", "")
    with pytest.raises(ToolError, match="cannot be read"):
        find_uses(tree.machine)


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


RING = "anon_inode:[io_uring]"


@pytest.fixture
def lone(tmp_path: Path) -> BenchTree:
    return BenchTree(tmp_path).adapter().scsi("sda")


def writers(lone: BenchTree) -> dict[str, list[str]]:
    """Who writes, by kernel name."""
    return dict(read_open_files(lone.machine).writers)


def test_readers_do_no_harm_and_writers_are_named(lone: BenchTree) -> None:
    lone.partition("sda", 1)
    lone.opened("/dev/sda", flags="0100000", comm="systemd-udevd").opened("/dev/sda1", flags="0100001", comm="dd")
    lone.opened("/dev/bsg/2:0:0:0", comm="sg_format").opened("/dev/null").opened("/dev/gone").opened("socket:[12]")
    assert writers(lone) == {
        "sda1": ["is open for writing in dd (process 102)"],
        "sda": ["is open for writing in sg_format (process 103)"],
    }


@pytest.mark.parametrize("node", ["/dev/sg0", "/dev/bsg/2:0:0:0"])
def test_a_node_for_commands_takes_them_whatever_it_was_opened_for(lone: BenchTree, node: str) -> None:
    lone.opened(node, flags="0100000", comm="sg_raw")
    assert writers(lone) == {"sda": ["is open for commands in sg_raw (process 101)"]}


def test_a_node_that_was_closed_meanwhile_is_not_open(lone: BenchTree) -> None:
    lone.opened("/dev/sda", comm="mystery")
    (lone.root / "proc/101/fdinfo/7").unlink()
    assert writers(lone) == {"sda": ["is open for writing in mystery (process 101)"]}
    asked = lone.machine.lines

    def lines(path: str) -> list[str]:
        (lone.root / "proc/101/fd/7").unlink()
        return asked(path)

    lone.machine.lines = lines  # type: ignore[method-assign]
    assert writers(lone) == {}


def test_the_files_of_a_thread_count_as_those_of_its_program(lone: BenchTree) -> None:
    """The first thread may have ended, or the thread may have a table of its own."""
    lone.opened("/dev/sda", comm="worker", task="977")
    assert writers(lone) == {"sda": ["is open for writing in worker (process 101)"]}


def test_files_registered_with_io_uring_are_open_though_no_descriptor_shows_them(lone: BenchTree) -> None:
    lone.opened(RING, comm="fio", more="UserFiles:\t2\n    0: /dev/sda\n    1: <none>\nUserBufs:\t0\n")
    assert writers(lone) == {"sda": ["is registered with io_uring by fio (process 101)"]}


def test_an_older_kernel_names_registered_files_without_their_folder(lone: BenchTree) -> None:
    lone.opened(RING, comm="fio", more="UserFiles:\t1\n    0: sda\nUserBufs:\t0\n")
    assert writers(lone) == {"sda": ["is registered with io_uring by fio (process 101)"]}


@pytest.mark.parametrize("text", ["UserFiles:\t1\nUserBufs:\t0\n", ""])
def test_a_busy_ring_does_not_tell_its_files(lone: BenchTree, text: str) -> None:
    lone.opened(RING, comm="fio", more=text)
    assert read_open_files(lone.machine).unnamed == [
        "fio (process 101) has files registered with io_uring that are not listed"
    ]


@pytest.mark.parametrize("text", ["UserFiles:\t0\nUserBufs:\t0\n", "UserFiles:\t64\nUserBufs:\t0\nNAPI:\tdisabled\n"])
def test_a_ring_without_files_hides_none(lone: BenchTree, text: str) -> None:
    lone.opened(RING, comm="fio", more=text)
    assert read_open_files(lone.machine).unnamed == []


def test_open_files_that_wait_in_a_socket_are_told(lone: BenchTree) -> None:
    lone.opened("socket:[7]", comm="broker", more="scm_fds: 1\n")
    lone.opened("socket:[8]", comm="idle", more="scm_fds: 0\n").opened("socket:[9]", comm="tcp")
    assert read_open_files(lone.machine).unnamed == [
        "open files wait in a socket of broker (process 101) for being taken"
    ]


def test_a_mapping_outlives_its_descriptor(lone: BenchTree) -> None:
    lone.mapped("/dev/sda").mapped("/dev/sda", kinds="rw-p").mapped("/dev/null")
    lone.mapped("/dev/sda", task="977", comm="orphan")
    assert writers(lone) == {
        "sda": [
            "is mapped into the memory of mapper (process 101)",
            "is mapped into the memory of orphan (process 104)",
        ]
    }


def test_which_ways_a_machine_has_is_told(lone: BenchTree) -> None:
    assert ways(lone.machine) == {"open files of each thread": False, "shared mappings": False}
